"""docs/tables.md shows what is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.cli import burler

pytestmark = pytest.mark.usefixtures("packages")

PAGE = (Path(__file__).parents[3] / "docs" / "tables.md").read_text(encoding="utf-8")


def test_its_python_runs(lake, tmp_path, monkeypatch, capsys):
    lake.commit("contacts", [{"id": 1, "name": "a"}, {"id": 1, "name": "b"}])
    monkeypatch.chdir(tmp_path)
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(block, "docs/tables.md", "exec"), {"__name__": "snippet"})
    assert capsys.readouterr().out.split()[:3] == ["contacts", "2", "1"]


def test_its_options_are_those_of_the_command():
    spans = [*re.findall(r"`([^`\n]+)`", PAGE), *re.findall(r"^    (burler export .*)$", PAGE, re.MULTILINE)]
    told = {option for span in spans for option in re.findall(r"--[a-z][a-z-]+", span)}
    known = set(re.findall(r"--[a-z][a-z-]+", burler("export", "--help").text))
    assert told - known == set()
    assert known - told == {"--help", "--stream"}


def test_its_columns_are_those_of_a_table(lake, tmp_path):
    import deltalake

    from burler.spark import export

    lake.commit("contacts", [{"id": 1, "name": "a"}])
    export(None, str(lake.root), tmp_path / "out")

    names = [field.name for field in deltalake.DeltaTable(str(tmp_path / "out/tap-x/contacts")).schema().fields]
    assert names == ["id", "name", *re.findall(r"^\| `(_sdc_\w+)`", PAGE, re.MULTILINE)]
