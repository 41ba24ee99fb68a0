"""docs/lake-reading.md says what is true."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from support.cli import burler

PAGE = (Path(__file__).parents[3] / "docs" / "lake-reading.md").read_text(encoding="utf-8")


def test_the_snippet_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {"__name__": "snippet"}
    exec(compile(block, "docs/lake-reading.md", "exec"), scope)
    said = capsys.readouterr().out
    assert '"record":{"name":"Ann"}' in said
    assert said.splitlines()[-2:] == ["Ann", "1 ['name']"]
    (given,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    lines = burler("lake", "read", "./lake", cwd=tmp_path).messages
    state, shown = lines[-1]["value"], json.loads(given)
    assert state["bookmarks"]["contacts"].keys() == shown["bookmarks"]["contacts"].keys()
    assert state["bookmarks"]["contacts"]["sequence"] == 1


def test_every_option_is_there_and_every_command_can_be_typed(tmp_path: Path) -> None:
    options = re.findall(r"^  (--[a-z-]+)", burler("lake", "read", "--help").text, re.MULTILINE)
    assert len(options) > 8
    for option in options:
        assert option == "--help" or f"`{option}" in PAGE, option
    typed = re.findall(r"^    burler lake read (.*?)(?: [|>].*)?$", PAGE, re.MULTILINE)
    assert len(typed) > 6
    (tmp_path / "state.jsonl").write_text("{}")
    (tmp_path / "catalog.json").write_text('{"streams":[]}')
    for line in typed:
        assert "no lake at ./lake" in burler("lake", "read", *shlex.split(line), cwd=tmp_path).stderr, line
