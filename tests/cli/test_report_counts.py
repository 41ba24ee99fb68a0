"""What the report counts is what is on the wire: partitions in threads, retries, substreams, rows left out."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tapprocess import write_tap

from support.cli import Ended, burler

TAP = """
import burler
tap = burler.tap("tap-all")

@tap.partitions("parts")
def accounts():
    return [{"a": i} for i in range(20)]

@tap.sync("parts", key_properties="id", replication_key="id", order="asc", workers=4)
def parts(partition):
    for i in range(100):
        if partition["a"] == 7 and i == 50:
            raise ValueError("no")
        yield {"id": partition["a"] * 1000 + i}
tap.schema("parts", SCHEMA)

class Expired(Exception):
    pass

tries = []

@tap.sync("again", key_properties="id", replication_key="id", order="asc", retry_sync_on=Expired)
def again():
    tries.append(1)
    for i in range(500):
        if i == 300 and len(tries) < 3:
            raise Expired
        yield {"id": i}
tap.schema("again", SCHEMA)

@tap.sync("left_out", key_properties="id", on_bad_record="skip")
def left_out():
    for i in range(100):
        yield {"id": "x" if i % 10 == 0 else i}
tap.schema("left_out", SCHEMA)

@tap.post_transform("left_out")
def hook(record):
    return None if record["id"] % 5 == 1 else record

@tap.sync("parents", key_properties="id", replication_key="id", order="asc")
def parents():
    for i in range(250):
        yield {"id": i}
tap.schema("parents", SCHEMA)

@tap.sync("children", key_properties="id", parent="parents")
def children(parent):
    if parent["id"] % 100 == 50:
        raise KeyError("child")
    for i in range(3):
        yield {"id": parent["id"] * 10 + i}
tap.schema("children", SCHEMA)
"""


@pytest.fixture(autouse=True)
def tap(tmp_path: Path) -> None:
    write_tap(tmp_path, TAP)


def reported(folder: Path, *args: str) -> tuple[Ended, dict[str, dict[str, Any]], dict[str, Any]]:
    """A run, its streams by name, and its whole report. Rows and series are held against the wire."""
    ended = burler("run", "tap_x.py", "--report", "report.json", *args, cwd=folder)
    report = json.loads((folder / "report.json").read_text())
    streams = {one["stream"]: one for one in report["streams"]}
    wire = Counter(message["stream"] for message in ended.messages if message["type"] == "RECORD")
    assert {name: one["rows"] for name, one in streams.items() if one["rows"]} == wire
    assert report["totals"]["rows"] == wire.total()
    for one in report["series"]:
        assert one["rows"] == sorted(one["rows"]) and one["rows"][-1] == wire[one["stream"]]
        assert one["seconds"] == sorted(one["seconds"])
    return ended, streams, report


def test_a_run_of_everything(tmp_path: Path):
    ended, streams, report = reported(tmp_path, "-o", "state.json")
    assert ended.code == report["exit_code"] == 1
    assert {name: one["status"] for name, one in streams.items() if one["error_count"]} == {
        "parts": "failed",
        "children": "failed",
    }
    assert [(e["where"], e["type"]) for e in streams["parts"]["errors"]] == [('partition {"a":7}', "ValueError")]
    assert [(e["where"], e["message"]) for e in streams["children"]["errors"]] == [
        ("parent parents id=50", "'child'"),
        ("parent parents id=150", "'child'"),
    ]
    assert (streams["left_out"]["rows"], streams["left_out"]["skipped"]) == (70, 30)
    assert (streams["again"]["bookmark_from"], streams["again"]["bookmark_to"]) == (None, 499)
    assert streams["again"]["rows"] > 500 and streams["again"]["error_count"] == 0
    assert len(ended.lines("CRITICAL")) == 3

    _ended, streams, _report = reported(tmp_path, "--state", "state.json", "--select", "again")
    assert (streams["again"]["rows"] > 500, streams["again"]["updated"]) == (True, 0)
    assert (streams["again"]["bookmark_from"], streams["again"]["bookmark_to"]) == (499, 499)


def test_streams_side_by_side(tmp_path: Path):
    (tmp_path / "config.json").write_text('{"workers": 3}')
    _ended, streams, report = reported(tmp_path, "-c", "config.json")
    assert len(streams) == 5
    assert report["totals"]["errors"] == 3
