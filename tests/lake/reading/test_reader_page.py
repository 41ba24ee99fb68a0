"""docs/lake-reading.md says what is true."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from support.internals import cli_main, replay_plan, replaying

READ = cli_main.cli.commands["lake"].commands["read"]

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
    store = scope["store"]
    (given,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    lines: list[bytes] = []
    replaying.Replay(
        store, replay_plan.choose(store, replay_plan.Asked()), write=lines.append, monotonic=lambda: 0.0
    ).run()  # type: ignore[arg-type]
    state, shown = json.loads(lines[-1])["value"], json.loads(given)
    assert state["bookmarks"]["contacts"].keys() == shown["bookmarks"]["contacts"].keys()
    assert state["bookmarks"]["contacts"]["sequence"] == 1


def test_every_option_is_there_and_every_command_can_be_typed() -> None:
    for parameter in READ.params:
        for name in parameter.opts:
            if name.startswith("--"):
                assert f"`{name}" in PAGE, name
    typed = re.findall(r"^    burler lake read (.*?)(?: [|>].*)?$", PAGE, re.MULTILINE)
    assert len(typed) > 6
    for line in typed:
        with READ.make_context("read", shlex.split(line)) as context:
            assert context.params["url"] == "./lake"
