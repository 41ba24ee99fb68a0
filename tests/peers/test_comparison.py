"""docs/comparison.md: its programs are the files beside this one, and the two that make Singer taps run here."""

import json
import re
from pathlib import Path

import compared
import compared_shop
import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "comparison.md"


@pytest.mark.parametrize("name", ["burler", "singer-sdk"])
def test_a_program_brings_all_orders_and_then_what_is_new(tmp_path, request, name):
    python = request.getfixturevalue("peers") / "python" if name == "singer-sdk" else None
    _file, run = compared.PROGRAMS[name]
    with compared_shop.serving() as server:
        (tmp_path / "config.json").write_text(json.dumps({"url": server.url}))
        first = run(tmp_path, python)
        server.rows.append(compared.NEW)
        second = run(tmp_path, python)
    assert [row["id"] for row in first.rows] == [1, 2, 3, 4, 5, 6, 7]
    assert [row["id"] for row in second.rows] == [7, 8]  # what stands at the bookmark comes again
    assert second.rows[-1]["customer"] == "Hal"


def test_the_page_shows_the_programs_that_run():
    shown = re.findall(r"```(?:python|yaml)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert shown == [(compared.HERE / file).read_text(encoding="utf-8") for file, _run in compared.PROGRAMS.values()]


def test_the_page_counts_their_lines():
    text = PAGE.read_text(encoding="utf-8")
    for name, (file, _run) in compared.PROGRAMS.items():
        assert re.search(rf"^\| {name} \| \S+ \| {compared.lines_of(file)} \|", text, re.MULTILINE), name


MEASURED = {
    "burler, checked against the schema, as RECORD lines": "burler: pages",
    "Singer SDK": "singer-sdk: rows",
    "Singer SDK, its optional msgspec writer": "singer-sdk, msgspec writer: rows",
    "dlt, JSON lines in files": "dlt: pages",
    "Airbyte CDK, rows as they are": "airbyte-cdk, no shaping: rows",
    "Airbyte CDK, with its type transformer": "airbyte-cdk, shaping: rows",
}


def test_the_speeds_are_those_that_were_measured():
    """docs/performance.md has them; here they stand with three digits."""
    measured = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8")
    found = {}
    for label, name in MEASURED.items():
        line = re.search(rf"^\| {re.escape(name)} \|(.*)\|$", measured, re.MULTILINE)[1].split("|")
        found[label] = int(line[1].replace(",", "")), line[-1].strip()
    ours = found["burler, checked against the schema, as RECORD lines"][0]
    for label, (rows, megabytes) in found.items():
        shown = f"{float(f'{rows:.3g}'):,.0f}"
        times = ours / rows
        said = "" if rows == ours else f"{times:.0f} times" if times >= 10 else f"{times:.1f} times"
        assert re.search(rf"^\| {re.escape(label)} \| {shown} \| {said}.*\| {megabytes} MB \|$", text, re.MULTILINE), (
            label
        )


@pytest.mark.parametrize("name", ["burler", "singer-sdk"])
def test_the_page_says_how_many_rows_come(name):
    assert re.search(rf"^\| {name} \| \S+ \| \d+ \| 7 \| 2 \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
