"""The benchmarks run at their quickest, compare what they measure, and say it. Nothing is timed here."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.cli import environment

ROOT = Path(__file__).resolve().parents[1]
BENCH = ROOT / "tests" / "bench"
MODULES = ("before", "cases", "growth", "report", "results")


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Modules of the benchmark by name. ``report`` and the like are not for the whole test run: they go again."""
    there = set(sys.modules)
    monkeypatch.syspath_prepend(str(BENCH / "programs"))
    monkeypatch.syspath_prepend(str(BENCH))
    yield {name: importlib.import_module(name) for name in MODULES}
    for name in set(sys.modules) - there:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(BENCH)):
            del sys.modules[name]


def run(program: str, *args: Any, may_miss: bool = False) -> str:
    """What a program of the benchmark prints. ``may_miss``: its bar, which is for many more rows."""
    words = [sys.executable, str(BENCH / program), *map(str, args)]
    done = subprocess.run(words, capture_output=True, text=True, env=environment(PYTHONWARNINGS="default"), check=False)
    assert done.returncode in ((0, 1) if may_miss else (0,)), done.stdout + done.stderr[-3000:]
    assert "Traceback" not in done.stderr, done.stderr[-3000:]
    return done.stdout


def cells(text: str, title: str) -> list[str]:
    """The cells of the table row that begins with a title."""
    [line] = [line for line in text.splitlines() if line.startswith(f"| {title} |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_make_bench_measures_a_row_of_each_kind(bench: dict[str, Any]):
    cases, growth, results = bench["cases"], bench["growth"], bench["results"]
    names = ["pages", "memory-arrow", "import", "small-partitions"]
    rows = {row.name: row for row in (*cases.RATES, *cases.MEMORY, *cases.STARTS, *growth.GROWTH)}
    said = run("run.py", "--quick", "--no-peers", "--rows", 500, "--runs", 1, "--row", *names)
    rate, memory, start, many = (cells(said, rows[name].title) for name in names)
    assert float(rate[1].replace(",", "")) > 0 and rate[-1] in (results.PASS, results.MISS)
    assert memory[4] in (results.PASS, results.MISS)
    assert float(start[1].removesuffix(" s")) > 0
    assert float(many[3]) > 0 and many[-1] in (results.PASS, results.MISS)
    assert "before timing: " in said and "error" not in said


def test_a_row_that_is_slower_than_before_has_lost(bench: dict[str, Any]):
    """Under 0.97 in both series; where the figures lie over 5 % apart, under 0.95 in their mean."""
    before, steady, unsteady = bench["before"], 0.01, 0.2
    told = [
        before.verdict(before.Series(one, spread), before.Series(two, spread))
        for one, two, spread in (
            (0.96, 0.96, steady),
            (0.96, 0.98, steady),
            (0.96, 0.93, unsteady),
            (0.96, 0.96, unsteady),
        )
    ]
    assert told == ["LOST", "held", "LOST", "held (unsteady)"]
    assert before.verdict(before.Series(0.98, steady), None) == "held"


def test_the_docs_page_takes_the_tables_and_names_every_row_and_program(bench: dict[str, Any], tmp_path: Path):
    cases, growth, report = bench["cases"], bench["growth"], bench["report"]
    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    for row in (*cases.RATES, *cases.MEMORY, *cases.STARTS, *growth.GROWTH, *growth.WORKERS):
        assert f"`{row.name}`" in text, row.name
    for program in (*cases.PROGRAMS, *growth.PROGRAMS):
        assert program.does in text, program.name
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    report.into_docs(page, "new\n")
    head, rest = text.split(report.BEGIN)
    assert page.read_text(encoding="utf-8") == f"{head}{report.BEGIN}\n\nnew\n\n{report.END}{rest.split(report.END)[1]}"


@pytest.mark.nightly
def test_all_rows_are_measured():
    """Each row of the table once: minutes."""
    said = run("run.py", "--quick", "--no-peers", "--rows", 2000, "--runs", 1)
    assert "before timing: " in said and "error" not in said


@pytest.mark.nightly
@pytest.mark.parametrize(
    "words",
    [
        ("sql_bench.py", "--rows", 2000, "--rounds", 1, "--no-peers"),
        ("passthrough_bench.py", "--rows", 500, "--rounds", 1),
        ("verify_bench.py", "--rows", 2000, "--rounds", 1),
        ("run.py", "--profile", "pages", "--rows", 2000),
    ],
    ids=lambda words: words[0],
)
def test_the_benchmarks_beside_it_run(words: tuple[Any, ...]):
    """PostgreSQL is started for each: seconds, but they seldom break."""
    assert run(*words, may_miss=True).strip()


@pytest.mark.nightly
def test_plans_by_manifest_and_by_listing_are_the_same(bench: dict[str, Any]):
    """An S3 server that lists files. The bar is for many more of them, so that the exit code says nothing."""
    import lake_plan_bench

    lines, _ratio = lake_plan_bench.report(1500, lake_plan_bench.measure(1500, 1))
    assert "1,500 files" in lines[0]
    # One LIST is the look at the store when it is opened; one GET asks for a manifest.
    assert lines[1].startswith("with a manifest") and lines[1].endswith("1 GET, 1 LIST")
    assert lines[2].startswith("by listing") and lines[2].endswith("1 GET, 3 LIST")


@pytest.mark.spark
@pytest.mark.nightly
def test_the_benchmark_of_the_spark_half_runs(tmp_path: Path):
    """A minute of Spark."""
    args = (
        "--rows",
        2000,
        "--rounds",
        1,
        "--only",
        "warm",
        "source",
        "--lakes",
        tmp_path / "lakes",
        "--work",
        tmp_path,
    )
    run("spark/spark_bench.py", *args, "--json", tmp_path / "found.json")
    found = json.loads((tmp_path / "found.json").read_text())
    parts = {run["part"] for run in found["runs"]}
    assert {"latest row of each key", "every row"} < parts
