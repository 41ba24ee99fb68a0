"""``burler extract``: STATE lines, exit codes, any other tap's command."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from extracted import PARTS, app, committed, rows_of

from support.internals import cli_main, cli_process

FOREIGN = """
import json
import sys

args = sys.argv[1:]
STREAMS = ("one", "two", "bad")

def read(flag):
    return json.load(open(args[args.index(flag) + 1])) if flag in args else {}

def say(message):
    print(json.dumps(message), flush=True)

if "--help" in args:
    print("usage: [--config FILE] [--catalog FILE] [--state FILE] [--discover]")
elif "--discover" in args:
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}}
    meta = [{"breadcrumb": [], "metadata": {"inclusion": "available", "table-key-properties": ["id"]}}]
    say({"streams": [{"tap_stream_id": n, "stream": n, "schema": schema, "metadata": meta} for n in STREAMS]})
else:
    config, state = read("--config"), read("--state").get("bookmarks", {})
    for entry in read("--catalog")["streams"]:
        name = entry["stream"]
        if not any(one["metadata"].get("selected") for one in entry["metadata"] if not one["breadcrumb"]):
            continue
        begun = state.get(name, {}).get("id", 0)
        say({"type": "SCHEMA", "stream": name, "schema": entry["schema"], "key_properties": ["id"]})
        for number in range(begun, begun + 3):
            say({"type": "RECORD", "stream": name, "record": {"id": number}})
        say({"type": "STATE", "value": {"bookmarks": {name: {"id": begun + 3}}}})
        if name == "bad":
            say({"type": "RECORD", "stream": name, "record": {"id": 99}})
            print("no answer for " + config["token"], file=sys.stderr)
            sys.exit(3)
"""
SECRET = "hush-41c8"


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"token": SECRET}))
    return str(path)


def burler(*args: Any) -> int:
    return cli_process.click_exit(cli_main.cli, [str(one) for one in args], "burler")


def states(text: str) -> list[dict[str, Any]]:
    return [json.loads(line)["value"] for line in text.splitlines()]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What commands would show of how far they are, as their work ends."""
    from support.internals import cli_progress as module

    ends: list[str] = []

    @contextlib.contextmanager
    def progress(said: Any, **_more: Any) -> Iterator[bool]:
        yield False
        ends.append(said())

    monkeypatch.setattr(module, "progress", progress)
    return ends


def test_an_app(spark: Any, tmp_path: Path, config: str, capfd: pytest.CaptureFixture[str], shown: list[str]):
    path, lake, out = app(tmp_path, PARTS, "tap_parts_cli"), tmp_path / "lake", tmp_path / "state.json"
    assert burler("extract", path, lake, "-c", config, "--select", "rows", "--out-file", out) == 0
    assert re.fullmatch(r"done (\d+) of \1 tasks", shown[0])
    said = states(capfd.readouterr().out)
    assert json.loads(out.read_text()) == said[-1]
    assert len(rows_of(lake, "tap-parts", "rows")) == 70
    assert burler("extract", path, lake, "-c", config, "--select", "rows", "--state", out) == 0
    assert states(capfd.readouterr().out)[-1] == said[-1]
    assert len(rows_of(lake, "tap-parts", "rows")) == 73


def test_any_other_tap_is_one_task_a_stream(
    spark: Any, tmp_path: Path, config: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
):
    caplog.set_level("INFO", "burler")
    tap, lake = app(tmp_path, FOREIGN, "tap_foreign"), tmp_path / "lake"
    options = ("--exec", f"{sys.executable} {tap}", "--tap-id", "tap-foreign", "-c", config)
    assert burler("extract", lake, *options) == 1
    last = states(capfd.readouterr().out)[-1]
    assert last == {"bookmarks": {name: {"id": 3} for name in last["bookmarks"]}}
    assert set(last["bookmarks"]) == {"one", "two", "bad"}
    assert "bad: command 'tap_foreign.py' ended with code 3. It said last: no answer for ***" in caplog.text
    assert SECRET not in caplog.text
    assert [row["id"] for row in rows_of(lake, "tap-foreign", "bad")] == [0, 1, 2, 99], "as a pipe would have it"
    state = tmp_path / "state.json"
    state.write_text(json.dumps(last))
    assert burler("extract", lake, *options, "--state", state, "--select", "one") == 0
    (again,) = states(capfd.readouterr().out)
    assert again["bookmarks"] == {"one": {"id": 6}, "two": {"id": 3}, "bad": {"id": 3}}, "the others stay"
    assert [row["id"] for row in rows_of(lake, "tap-foreign", "one")] == [0, 1, 2, 3, 4, 5]
    assert len(committed(lake, "tap-foreign", "two")) == 4


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["lake"], "say what to extract, and where to"),
        (["tap_x.py", "lake", "--exec", "tap-y"], "with --exec there is no APP"),
        (["tap_nowhere.py", "lake"], "there is no file"),
        (["lake", "--exec", "no-such-tap-here"], "--exec: there is no program 'no-such-tap-here'"),
        (["lake", "--exec", "sleep 'x"], "--exec can't be split into words"),
        (["lake", "--exec", "true", "-c", "missing.json"], "config file missing.json does not exist"),
        (["lake", "--exec", "true", "-s", "missing.json"], "state file missing.json can't be read"),
    ],
    ids=["no-app", "both", "no-file", "no-command", "quotes", "no-config", "no-state"],
)
def test_what_is_wrong_is_said_in_one_line(
    spark: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    args: list[str],
    says: str,
):
    monkeypatch.chdir(tmp_path)
    assert burler("extract", *args) == 2
    assert says in caplog.text
    assert not (tmp_path / "lake").exists()
