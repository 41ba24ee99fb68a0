"""The benchmark of the Spark half runs, compares what its candidates write, and says what it measured."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parent / "spark"
MODULES = ("figures", "taking", "same", "slots", "jobs", "lakes")


@pytest.fixture
def bench(monkeypatch):
    """Modules of the benchmark by name, gone again behind the test."""
    for folder in (BENCH.parent / "programs", BENCH / "programs", BENCH):
        monkeypatch.syspath_prepend(str(folder))
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield {name: importlib.import_module(name) for name in MODULES}
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.mark.spark
def test_a_small_run_compares_all_tables_and_has_all_figures(tmp_path):
    for needed in ("pyspark", "deltalake", "duckdb"):
        if importlib.util.find_spec(needed) is None:
            pytest.skip(f"{needed} is not installed")
    command = [sys.executable, str(BENCH / "spark_bench.py"), "--rows", "2000", "--rounds", "1"]
    command += ["--only", "warm", "source", "--lakes", str(tmp_path / "lakes"), "--work", str(tmp_path)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TAP_", "BENCH_"))}
    done = subprocess.run(
        [*command, "--json", str(tmp_path / "found.json")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads((tmp_path / "found.json").read_text())
    candidates = {(run["part"], run["candidate"]) for run in found["runs"]}
    by_hand = {"Spark by hand, row_number", "Spark by hand, max of a struct"}
    others = {"DuckDB", "burler export", "burler export, 1 % new rows"}
    if importlib.util.find_spec("polars") is not None:  # else it is said that it is left out
        others.add("Polars")
    assert {name for part, name in candidates if part == "latest row of each key"} == by_hand | others
    assert {name for part, name in candidates if part == "every row"} == {"Spark by hand"} | others
    assert {name for part, name in candidates if part.startswith("DataSource")} == {
        'format("burler")',
        "bare DataSource",
        "making the dicts alone",
    }
    for run in found["runs"]:
        assert run["rows"] == 2000
        assert [took["wall"] > 0 for took in run["runs"]] == [True], run
    tables = {"latest row of each key": len(by_hand | others) - 1, "every row": len(others)}
    for part, count in tables.items():
        assert f"{part}, 2,000 rows: {count} tables, and after 1 % more" in found["checked"]
    assert ("Polars" in others) == (found["left_out"] == [])
    assert len(found["bars"]) == 8
    assert all(bar["value"] > 0 for bar in found["bars"])
    assert done.stdout.count("| 2,000 |") == len(found["runs"])


def test_tables_that_differ_are_an_error(bench, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("duckdb")
    pa = importlib.import_module("pyarrow")
    standard, same = importlib.import_module("standard"), bench["same"]
    rows = standard.page(0, 5)

    def mark(name, changed):
        table = pa.Table.from_pylist(
            [{**row, "ts": None, "time_extracted": None} for row in changed],
            schema=standard.arrow_schema().append(pa.field("time_extracted", pa.timestamp("us", tz="UTC"))),
        )
        pq.write_table(table, tmp_path / name)
        return same.mark([tmp_path / name])

    right = mark("right", rows)
    same.check({"one": right, "in another order": mark("turned", rows[::-1])}, 5)
    with pytest.raises(same.Differ, match="few has 4 rows, not 5"):
        same.check({"one": right, "few": mark("few", rows[:4])}, 5)
    for number, change in enumerate(({"a": "other"}, {"arr": [1, 2]}, {"nested": {"x": 1}}, {"f2": None})):
        other = mark(f"wrong{number}", [{**rows[0], **change}, *rows[1:]])
        with pytest.raises(same.Differ, match="differ in their values"):
            same.check({"one": right, "wrong": other}, 5)


def test_a_keyed_lake_has_new_rows_of_old_keys_and_an_increment_has_half_of_them(bench):
    lakes = bench["lakes"]
    rows = [row for page in lakes.rows_of(0, 6000, 5000) for row in page]
    assert {row["id"] for row in rows} == set(range(5000))
    assert len({row["ts"] for row in rows}) == 6000
    more = [row for page in lakes.rows_of(6000, 60, 5000) for row in page]
    assert sum(row["id"] >= 5000 for row in more) == 30
    assert len({row["id"] for row in more}) == 60
    assert min(row["ts"] for row in more) > max(row["ts"] for row in rows)


def test_what_a_process_leaves_behind_counts(bench, tmp_path):
    """A JVM may outlive the command that has started it."""
    taking = bench["taking"]
    burn = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
    leave = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {burn!r}]); print('gone')"
    took = taking.run([sys.executable, "-c", leave], tmp_path)
    assert took.cpu >= 0.3
    assert took.wall > 0 and took.peak > 1_000_000
    with pytest.raises(taking.Failed, match="exit code 3: no luck"):
        taking.run([sys.executable, "-c", "import sys; print('no luck', file=sys.stderr); sys.exit(3)"], tmp_path)


def test_the_clock_counts_children_that_live_and_those_that_have_ended(bench):
    burn = "import time; end = time.process_time() + 0.2\nwhile time.process_time() < end: pass\n"
    command = [sys.executable, "-c", burn + "print(flush=True); input()"]
    with bench["taking"].Clock() as clock:
        living = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        living.stdout.readline()
        subprocess.run([sys.executable, "-c", burn], check=True)
    with living:
        living.communicate(b"\n")
    assert clock.took.cpu >= 0.38  # the kernel counts in hundredths


def test_bars_and_medians(bench):
    figures, took = bench["figures"], bench["taking"].Took
    found = figures.Found()
    for wall in (3.0, 1.0, 2.0):
        found.add("part", 1000, "one", took(wall, 2 * wall, 5_000_000))
    found.bars = [figures.Bar("seconds", 1.2, 1.1), figures.Bar("times", 1.2, 1.1, least=True)]
    text = found.markdown()
    assert "| part | 1,000 | one | 2.00 | 4.00 | 500 | 5 |" in text
    assert "- seconds: 1.20, at most 1.1: MISS" in text
    assert "- times: 1.20, at least 1.1: PASS" in text


def test_slots_are_held_against_one(bench, monkeypatch):
    slots = bench["slots"]
    told = {1: 16.0, 4: 4.0, 16: 8.0}
    monkeypatch.setattr(
        slots, "_run", lambda number, _seconds: {"wall": told[number], "cold": 9.0, "cpu": 5.0, "rows": 16_000}
    )
    assert [(bar.value, bar.verdict) for bar in slots.measure(1).bars] == [(1.0, "PASS"), (0.125, "MISS")]
    monkeypatch.setattr(slots, "_run", lambda number, _seconds: {"wall": 1.0, "cold": 9.0, "cpu": 5.0, "rows": 15_999})
    with pytest.raises(slots.Differ, match="15,999 rows were committed with 1 slots, not 16,000"):
        slots.measure(1)
