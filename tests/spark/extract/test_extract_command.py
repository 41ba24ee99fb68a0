"""``burler extract``: STATE lines, exit codes, any other tap's command."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from extracted import FOREIGN, PARTS, app, committed, rows_of

from support.cli import Ended, burler

SECRET = "hush-41c8"


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"token": SECRET}))
    return str(path)


def states(done: Ended) -> list[dict[str, Any]]:
    return [message["value"] for message in done.messages]


def test_an_app(spark: Any, tmp_path: Path, config: str):
    path, lake, out = app(tmp_path, PARTS, "tap_parts_cli"), tmp_path / "lake", tmp_path / "state.json"
    given = ("extract", path, lake, "-c", config, "--select", "rows")
    done = burler(*given, "--out-file", out)
    assert done.code == 0, done.stderr
    assert json.loads(out.read_text()) == states(done)[-1]
    assert len(rows_of(lake, "tap-parts", "rows")) == 70
    again = burler(*given, "--state", out)
    assert (again.code, states(again)[-1]) == (0, states(done)[-1])
    assert len(rows_of(lake, "tap-parts", "rows")) == 73


def test_any_other_tap_is_one_task_a_stream(spark: Any, tmp_path: Path, config: str):
    tap, lake = app(tmp_path, FOREIGN, "tap_foreign"), tmp_path / "lake"
    given = ("extract", lake, "--exec", f"{sys.executable} {tap}", "--tap-id", "tap-foreign", "-c", config)
    done = burler(*given)
    assert done.code == 1
    last = states(done)[-1]
    assert last == {"bookmarks": {name: {"id": 3} for name in last["bookmarks"]}}
    assert set(last["bookmarks"]) == {"one", "two", "bad"}
    assert "bad: command 'tap_foreign.py' ended with code 3. It said last: no answer for ***" in done.stderr
    assert SECRET not in done.stderr
    assert [row["id"] for row in rows_of(lake, "tap-foreign", "bad")] == [0, 1, 2, 99], "as a pipe would have it"
    state = tmp_path / "state.json"
    state.write_text(json.dumps(last))
    again = burler(*given, "--state", state, "--select", "one")
    assert again.code == 0, again.stderr
    assert states(again)[-1]["bookmarks"] == {"one": {"id": 6}, "two": {"id": 3}, "bad": {"id": 3}}, "the others stay"
    assert [row["id"] for row in rows_of(lake, "tap-foreign", "one")] == [0, 1, 2, 3, 4, 5]
    assert len(committed(lake, "tap-foreign", "two")) == 4


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["lake"], "say what to extract, and where to"),
        (["tap_x.py", "lake", "--exec", "tap-y"], "with --exec there is no APP"),
        (["tap_nowhere.py", "lake"], "there is no file"),
        (["lake", "--exec", "no-such-tap-here"], "--exec: there is no program 'no-such-tap-here'"),
        (["lake", "--exec", "true", "-c", "missing.json"], "config file missing.json does not exist"),
        (["lake", "--exec", "true", "-s", "missing.json"], "state file missing.json can't be read"),
    ],
    ids=["no-app", "both", "no-file", "no-command", "no-config", "no-state"],
)
def test_what_is_wrong_is_said_in_one_line(spark: Any, tmp_path: Path, args: list[str], says: str):
    done = burler("extract", *args, cwd=tmp_path)
    assert done.code == 2
    assert says in done.one_critical()
    assert not (tmp_path / "lake").exists()
