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
