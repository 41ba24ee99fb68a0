"""``--sink``, and the sinks beside stdout."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

import burler
from burler.errors import StorageError, UsageError
from burler.singer.messages import Records, Schema, State
from support import internals
from support.internals import batch_config, memory_sink, runtime_run, sinks_base, sinks_open, stdout_sink

FIELDS = {"type": "object", "properties": {"id": {"type": "integer"}}}


def make(fn: Any) -> burler.Tap:
    tap = burler.tap("tap-t")
    tap.sync("rows", key_properties="id", replication_key="id", bookmark_strategy="every_n(10)")(fn)
    tap.schema("rows", FIELDS)
    return tap


def stdout() -> stdout_sink.StdoutSink:
    return stdout_sink.StdoutSink(stdout_sink.LineWriter(os.open(os.devnull, os.O_WRONLY)))


@pytest.mark.parametrize("text", ["", "stdoutt", "lake", "lake:", "kafka:x", "lake;x"])
def test_unknown_sinks(text: str):
    with pytest.raises(UsageError, match="Known: stdout, lake:URL"):
        sinks_open.open_sink(text, stdout(), tap_id="t", settings=internals.settings.Settings())


def test_stdout_is_the_sink_given():
    sink = stdout()
    assert sinks_open.open_sink("stdout", sink, tap_id="t", settings=internals.settings.Settings(batch=False)) is sink


@pytest.mark.parametrize(("said", "form"), [(None, "messages"), (True, "rows"), (False, "messages")])
def test_a_streams_metadata_may_ask_for_files_where_no_setting_does(tmp_path, said: bool | None, form: str):
    settings = internals.settings.Settings(
        batch_config=batch_config.BatchConfig(storage=batch_config.BatchStorage(root=str(tmp_path))), batch=None
    )
    off = dataclasses.replace(settings, batch_config=None)
    assert sinks_base.form_for(sinks_open.open_sink("stdout", stdout(), tap_id="t", settings=settings), "s", said) == (
        "rows" if said is None else form
    )
    with contextlib.chdir(tmp_path):
        assert (
            sinks_base.form_for(sinks_open.open_sink("stdout", stdout(), tap_id="t", settings=off), "s", said) == form
        )


class States(memory_sink.MemorySink):
    """Notes with each STATE how many rows the lake's published files hold."""

    def __init__(self, lake: Path) -> None:
        super().__init__()
        self._lake = lake
        self.rows: list[int] = []

    def write(self, message: Any) -> None:
        super().write(message)
        if isinstance(message, State):
            self.rows.append(len(rows_of(self._lake)))


def rows_of(lake: Path) -> list[int]:
    manifest = lake / "raw" / "tap-t" / "rows" / "manifest.json"
    if not manifest.exists():
        return []
    files = json.loads(manifest.read_text())["files"]
    lines = [line for name in files for line in gzip.decompress((manifest.parent / name).read_bytes()).splitlines()]
    found = [json.loads(line) for line in lines]
    return sorted(m["record"]["id"] for m in found if m["type"] == "RECORD")


def test_a_lake_lets_a_state_go_once_its_rows_are_committed(tmp_path: Path):
    states = States(tmp_path / "lake")
    settings = internals.settings.Settings(max_file_records=25)
    sink = sinks_open.open_sink(f"lake:{tmp_path / 'lake'}", states, tap_id="tap-t", settings=settings)  # type: ignore[arg-type]
    result = runtime_run.run(make(lambda: ({"id": i} for i in range(100))), {"page_max_rows": 5}, sink)
    assert result.exit_code == 0
    assert rows_of(tmp_path / "lake") == list(range(100))
    marks = [m["value"]["bookmarks"]["rows"]["id"] for m in states.messages]
    assert marks[-1] == 99
    assert marks == sorted(marks)
    assert all(rows > mark for rows, mark in zip(states.rows, marks, strict=True))
    assert {m["type"] for m in states.messages} == {"STATE"}


def test_a_lake_keeps_what_a_broken_stream_gave(tmp_path: Path):
    def rows():
        yield from ({"id": i} for i in range(15))
        raise RuntimeError("boom")

    states = States(tmp_path / "lake")
    sink = sinks_open.open_sink(
        f"lake:{tmp_path / 'lake'}", states, tap_id="tap-t", settings=internals.settings.Settings()
    )  # type: ignore[arg-type]
    assert runtime_run.run(make(rows), {}, sink).exit_code == 1
    assert rows_of(tmp_path / "lake") == list(range(15))
    assert states.messages[-1]["value"]["bookmarks"]["rows"]["id"] == 14


def test_a_lake_that_breaks_lets_no_state_go(tmp_path: Path):
    lake = tmp_path / "lake"
    lake.mkdir()
    (lake / "raw").write_text("in the way")
    states = States(lake)
    sink = sinks_open.open_sink(f"lake:{lake}", states, tap_id="tap-t", settings=internals.settings.Settings())  # type: ignore[arg-type]
    with pytest.raises((StorageError, UsageError)):
        runtime_run.run(make(lambda: [{"id": 1}]), {}, sink)
    assert states.messages == []


def test_a_run_that_breaks_elsewhere_commits_nothing_more(tmp_path: Path):
    states = States(tmp_path / "lake")
    sink = sinks_open.open_sink(
        f"lake:{tmp_path / 'lake'}", states, tap_id="tap-t", settings=internals.settings.Settings()
    )  # type: ignore[arg-type]
    sink.write(Schema("rows", FIELDS, ()))
    sink.write(Records("rows", b'{"type":"RECORD","stream":"rows","record":{"id":1}}\n', 1, dt.datetime.now(dt.UTC)))
    sink.write(State({"x": 1}))
    sink.close(complete=False)
    assert states.messages == []
    assert rows_of(tmp_path / "lake") == []
    assert states.closed


def test_memory_keeps_a_copy_of_each_message():
    sink = memory_sink.MemorySink()
    value = {"x": [1]}
    sink.write(State(value))
    value["x"].append(2)
    sink.write(Records("s", b'{"type":"RECORD","record":{"a":"\\u2028"}}\n', 1, dt.datetime.now(dt.UTC)))
    assert sink.messages[0] == {"type": "STATE", "value": {"x": [1]}}
    assert sink.messages[1]["record"] == {"a": "\u2028"}
