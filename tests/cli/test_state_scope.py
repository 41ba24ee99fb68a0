"""``state_scope: touched``: what a STATE leaves out, what ``--out-file`` holds all the same, how it is read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tapprocess import write_tap

from burler.singer import merge_states, parse_state
from support.cli import Ended, burler

TAP = """
import burler, os
tap = burler.tap("tap-parts")

@tap.partitions("parts")
def accounts():
    return [{"a": i} for i in range(5)]

@tap.sync("parts", key_properties="id", replication_key="id", order="asc")
def parts(partition, stream):
    if str(partition["a"]) in os.environ.get("BREAK", ""):
        raise ValueError("no")
    for i in range(stream.bookmark or 0, 300):
        yield {"id": i}
tap.schema("parts", SCHEMA)

@tap.sync("table", key_properties="id", replication_method="FULL_TABLE", resumable_by="id",
          bookmark_strategy="every_n(100)")
def table(stream):
    for i in range(stream.bookmark or 0, 300):
        if i == 250 and "table" in os.environ.get("BREAK", ""):
            raise ValueError("no")
        yield {"id": i}
tap.schema("table", SCHEMA)
"""


@pytest.fixture(autouse=True)
def tap(tmp_path: Path) -> None:
    write_tap(tmp_path, TAP)
    (tmp_path / "config.json").write_text('{"state_scope": "touched"}')


def run(folder: Path, *args: str, **env: str) -> Ended:
    return burler("run", "tap_x.py", "-c", "config.json", "-o", "whole.json", *args, cwd=folder, **env)


def states(ended: Ended) -> list[dict[str, Any]]:
    return [message["value"] for message in ended.messages if message["type"] == "STATE"]


def whole(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "whole.json").read_text())
    return found


def test_lines_carry_what_has_changed_and_the_file_carries_all(tmp_path: Path):
    ended = run(tmp_path)
    assert ended.code == 0
    lines = states(ended)
    assert len(lines) > 3
    assert merge_states(lines) == whole(tmp_path)
    assert not any("parts" in line.get("bookmarks", {}) for line in lines if "table" in line.get("bookmarks", {}))
    (tmp_path / "config.json").write_text("{}")
    assert states(run(tmp_path))[-1].keys() == whole(tmp_path).keys()


def test_lines_of_many_runs_in_one_file_are_always_the_whole_state(tmp_path: Path):
    """As ``burler run --state lines | target >> lines`` keeps them: also what a later run takes away is gone."""
    lines = tmp_path / "lines"
    lines.touch()
    versions = []
    for broken in ("13 table", "3", "table", "", ""):
        given = ["--state", "lines"] if lines.stat().st_size else []
        ended = run(tmp_path, *given, BREAK=broken)
        assert ended.code == bool(broken)
        with lines.open("ab") as file:
            file.writelines(line + b"\n" for line in ended.stdout.splitlines() if b'"STATE"' in line)
        kept = whole(tmp_path)
        assert parse_state(lines.read_bytes(), source="lines", merge=True) == kept
        table = kept["bookmarks"]["table"]
        versions.append((table.get("version") is not None, "full_table" in table))
        rows = [m["record"]["id"] for m in ended.messages if m["type"] == "RECORD" and m["stream"] == "table"]
        assert rows[-1] == (249 if "table" in broken else 299)
    assert versions == [(False, True), (True, False), (True, True), (True, False), (True, False)]
    assert set(kept["bookmarks"]["parts"]["partitions"]) == {f'{{"a":{i}}}' for i in range(5)}


def test_the_whole_state_is_taken_back_in_either_scope(tmp_path: Path):
    run(tmp_path)
    before = whole(tmp_path)
    for config in ('{"state_scope": "touched"}', "{}"):
        (tmp_path / "config.json").write_text(config)
        ended = run(tmp_path, "--state", "whole.json", "--select", "parts")
        assert [m["record"]["id"] for m in ended.messages if m["type"] == "RECORD"] == [299] * 5
        assert whole(tmp_path) == before


def test_a_state_in_the_full_scope_is_the_last_line_alone(tmp_path: Path):
    (tmp_path / "config.json").write_text("{}")
    line = {"bookmarks": {"parts": {"partitions": {'{"a":0}': {"id": 299}}}}}
    (tmp_path / "lines").write_text("\n".join(map(json.dumps, [line, {"bookmarks": {"table": {"version": 5}}}])))
    ended = run(tmp_path, "--state", "lines", "--select", "parts")
    assert sum(m["type"] == "RECORD" for m in ended.messages) == 5 * 300
