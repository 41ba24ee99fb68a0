"""Partitions as Spark tasks: rows, states and commits are those of a local run."""

from __future__ import annotations

import json
import logging
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from extracted import PARTS, app, committed, rows_of, same_rows, tap_of

import burler
from burler.errors import ExportError, LockLost, StorageError, UsageError
from burler.lake import LakeDriver, care, open_store
from burler.singer.messages import Schema
from burler.spark import export, extract, table
from burler.testing import run_tap

SECRET = "hush-7f3a"
CONFIG = {"token": SECRET}


def states_equal(one: Any, other: Any) -> bool:
    """Whether they say the same; versions are times."""

    def plain(node: Any) -> Any:
        if not isinstance(node, dict):
            return node
        return {key: key == "version" or plain(value) for key, value in node.items()}

    return bool(plain(one) == plain(other))


def test_rows_and_state_are_those_of_a_local_run(spark: Any, tmp_path: Path):
    path, lake = app(tmp_path, PARTS, "tap_parts_one"), tmp_path / "lake"
    local = run_tap(tap_of(path), CONFIG)
    states: list[dict[str, Any]] = []
    done = extract(spark, path, lake, config=CONFIG, emit=states.append)
    assert done.errors == {}
    assert states_equal(done.state, local.result.state)
    assert states[-1] == done.state
    assert done.rows == local.result.rows
    for stream in ("rows", "plain", "shards"):
        assert same_rows(rows_of(lake, "tap-parts", stream), local.records(stream))
    version = done.state["bookmarks"]["shards"]["version"]
    messages = committed(lake, "tap-parts", "shards")
    assert [m["version"] for m in messages if m["type"] == "ACTIVATE_VERSION"] == [version]
    assert messages[-1]["type"] == "ACTIVATE_VERSION", "it counts once all parts are there"

    again = extract(spark, path, lake, config=CONFIG, state=done.state)
    assert again.rows["rows"] == 3, "each partition goes on where it was"
    assert states_equal(again.state, run_tap(tap_of(path), CONFIG, state=done.state).result.state)
    assert not list(care.check(open_store(str(lake))).findings)


def test_a_state_is_out_only_once_its_rows_are_in_the_manifest(spark: Any, tmp_path: Path):
    path, lake = app(tmp_path, PARTS, "tap_parts_two"), tmp_path / "lake"

    def emit(state: dict[str, Any]) -> None:
        marks = state.get("bookmarks", {}).get("rows", {}).get("partitions", {})
        there = {(row["account"], row["id"]) for row in rows_of(lake, "tap-parts", "rows")}
        for key, entry in marks.items():
            assert (json.loads(key)["account"], entry["id"]) in there
        seen.append(len(marks))

    seen: list[int] = []
    done = extract(spark, path, lake, config=CONFIG, select="rows", emit=emit)
    assert done.errors == {}
    assert seen == sorted(seen)
    assert seen[-1] == 3


def test_tasks_run_side_by_side(spark: Any, tmp_path: Path):
    source = """
    import time
    import burler

    tap = burler.tap("tap-waits")

    @tap.partitions("rows")
    def parts():
        return [{"n": n} for n in range(2)]

    @tap.sync("rows", schema={"properties": {"begun": {"type": "number"}, "ended": {"type": "number"}}})
    def rows(partition):
        begun = time.time()
        time.sleep(1.5)
        yield {"begun": begun, "ended": time.time()}
    """
    lake = tmp_path / "lake"
    assert spark.sparkContext.defaultParallelism == 2
    extract(spark, app(tmp_path, source, "tap_waits"), lake)
    one, other = rows_of(lake, "tap-waits", "rows")
    assert max(one["begun"], other["begun"]) < min(one["ended"], other["ended"])
    extract(spark, app(tmp_path, source, "tap_waits"), tmp_path / "alone", slots=1)
    one, other = sorted(rows_of(tmp_path / "alone", "tap-waits", "rows"), key=lambda row: row["begun"])
    assert one["ended"] <= other["begun"], "one slot, one task at a time"


FAILING = """
import os
import resource
import burler

tap = burler.tap("tap-failing", {"token": "?"})
SCHEMA = {"properties": {"id": {"type": "integer"}, "text": {"type": ["null", "string"]}}}

@tap.partitions("rows")
def parts():
    return [{"n": n} for n in range(4)]

def killed():
    os.kill(os.getpid(), 9)

def disk_full():
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        for n in range(10_000):
            yield {"id": n, "text": os.urandom(50).hex()}
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

@tap.sync("rows", key_properties="id", replication_key="id", schema=SCHEMA)
def rows(config, partition):
    n = partition["n"]
    yield {"id": n}
    if n == 1:
        raise ConnectionError("no answer to " + config["token"])
    if n == 2:
        killed()
    if n == 3:
        yield from disk_full()

@tap.partitions("lost")
def nothing(config):
    raise ConnectionError("no list for " + config["token"])

@tap.sync("lost", schema=SCHEMA)
def never():
    return []

@tap.sync("last", key_properties="id", schema=SCHEMA)
def last():
    return [{"id": 1}]
"""


def test_what_fails_says_how_and_does_not_stop_the_others(spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG, "burler")
    path, lake = app(tmp_path, FAILING, "tap_failing"), tmp_path / "lake"
    done = extract(spark, path, lake, config=CONFIG)
    failed = {one.where: str(one.error) for one in done.errors["rows"].failures}  # type: ignore[attr-defined]
    assert "ConnectionError: no answer to ***" in failed['partition {"n":1}']
    assert "tap_failing.py:" in failed['partition {"n":1}']
    assert "its Python worker ended before it was done" in failed['partition {"n":2}']
    assert "can't be written" in failed['partition {"n":3}']
    assert "File too large" in failed['partition {"n":3}']
    assert "partitions function" in str(done.errors["lost"])
    assert sorted(row["id"] for row in rows_of(lake, "tap-failing", "rows")) == [0, 1], "as far as each has come"
    assert rows_of(lake, "tap-failing", "last") == [{"id": 1}]
    parts = done.state["bookmarks"]["rows"]["partitions"]
    assert parts['{"n":0}'] == {"id": 0}
    assert '{"n":2}' not in parts
    assert '{"n":3}' not in parts
    assert done.exit_code == 1
    assert SECRET not in caplog.text
    assert SECRET not in str(done.errors)
    for file in lake.rglob("*"):
        assert file.is_dir() or SECRET.encode() not in file.read_bytes()


def test_another_process_that_holds_the_lock_is_said(spark: Any, tmp_path: Path):
    path, lake = app(tmp_path, PARTS, "tap_parts_locked"), tmp_path / "lake"
    tap = tap_of(path)
    schema = next(m for m in run_tap(tap, CONFIG, schemas_only=True).messages if m["stream"] == "plain")
    with LakeDriver(open_store(str(lake)), "tap-parts") as driver:
        driver.begin(Schema("plain", schema["schema"], tuple(schema["key_properties"])))
        with pytest.raises(LockLost) as raised:
            extract(spark, path, lake, config={**CONFIG, "lock_timeout_seconds": 0.5}, select="plain")
        assert raised.value.exit_code == 3
    done = extract(spark, path, lake, config=CONFIG, select="plain")
    assert len(rows_of(lake, "tap-parts", "plain")) == done.rows["plain"] == 20


def test_of_two_attempts_at_a_task_one_is_committed(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What Spark does with a slow task or a dead worker: both write, the second one's result arrives."""
    path, lake = app(tmp_path, PARTS, "tap_parts_twice"), tmp_path / "lake"
    frame = type(spark.range(1))
    once = frame.mapInArrow

    def twice(self: Any, task: Any, *schema: Any, **more: Any) -> Any:
        def attempts(batches: Any) -> Any:
            held = list(batches)
            list(task(iter(held)))
            yield from task(iter(held))

        return once(self, attempts, *schema, **more)

    monkeypatch.setattr(frame, "mapInArrow", twice)
    done = extract(spark, path, lake, config=CONFIG, select="rows")

    assert (done.errors, done.rows["rows"]) == ({}, 70)
    assert len(rows_of(lake, "tap-parts", "rows")) == 70
    assert {finding.kind for finding in care.check(open_store(str(lake))).findings} == {"orphan"}


STOPPED = """
import time
import burler

tap = burler.tap("tap-stopped")

@tap.partitions("rows")
def parts():
    return [{"n": n} for n in range(6)]

@tap.sync("rows", key_properties="id", replication_key="id", schema={"properties": {"id": {"type": "integer"}}})
def rows(stream, partition):
    for _ in range(600 if partition["n"] else 0):
        if %r in open(__file__ + ".go").read():
            break
        time.sleep(0.1)
    yield {"id": partition["n"]}
"""


def test_a_signal_ends_the_run_with_the_state_of_what_is_done(spark: Any, tmp_path: Path):
    path, lake = app(tmp_path, STOPPED % "go", "tap_stopped"), tmp_path / "lake"
    go = tmp_path / "tap_stopped.py.go"
    go.write_text("")
    states: list[dict[str, Any]] = []

    def emit(state: dict[str, Any]) -> None:
        states.append(state)
        if "bookmarks" in state and len(states) == 1:
            os.kill(os.getpid(), signal.SIGTERM)

    begun = time.monotonic()
    done = extract(spark, path, lake, emit=emit)
    assert time.monotonic() - begun < 40
    assert done.stopped_by == signal.SIGTERM
    assert states[-1] == {"bookmarks": {"rows": {"partitions": {'{"n":0}': {"id": 0}}}}, "currently_syncing": "rows"}
    go.write_text("go")
    again = extract(spark, path, lake, state=states[-1])
    assert again.stopped_by is None
    assert {row["id"] for row in rows_of(lake, "tap-stopped", "rows")} == set(range(6))
    assert "currently_syncing" not in again.state


NOTHING = """
import burler

tap = burler.tap("tap-nothing")
SCHEMA = {"properties": {"id": {"type": "integer"}}}

@tap.partitions("rows")
def parts():
    return [{"part": 1}, {"part": 2}]

@tap.sync("rows", key_properties="id", replication_key="id", schema=SCHEMA)
def rows(partition):
    return []
"""


def test_a_stream_without_rows_has_its_columns(spark: Any, tmp_path: Path):
    path, lake = app(tmp_path, NOTHING, "tap_nothing"), tmp_path / "lake"
    assert extract(spark, path, lake).errors == {}
    (made,) = export(spark, lake, tmp_path / "tables")
    assert (made.rows_read, made.rows_written) == (0, 0)
    assert table(spark, made.table).columns[0] == "id" and table(spark, made.table).count() == 0


def test_a_tap_that_is_made_here_goes_by_value(spark: Any, tmp_path: Path):
    tap = burler.tap("tap-here")

    @tap.sync(
        "rows", key_properties="id", schema={"properties": {"id": {"type": "integer"}, "pid": {"type": "integer"}}}
    )
    def rows() -> Any:
        import os

        return [{"id": 1, "pid": os.getpid()}]

    extract(spark, tap, tmp_path / "lake")
    (row,) = rows_of(tmp_path / "lake", "tap-here", "rows")
    assert row["pid"] != os.getpid()


def test_what_can_not_be_is_said_before_anything_runs(spark: Any, tmp_path: Path):
    path = app(tmp_path, PARTS, "tap_parts_wrong")
    with pytest.raises(UsageError, match="slots must be a number above 0"):
        extract(spark, path, tmp_path / "lake", config=CONFIG, slots=0)
    with pytest.raises(UsageError, match="token"):
        extract(spark, path, tmp_path / "lake", config={})
    with pytest.raises(UsageError, match="give app or exec"):
        extract(spark, path, tmp_path / "lake", exec="tap-x")
    with pytest.raises(UsageError, match="nothing is called"):
        extract(spark, path, tmp_path / "lake", config=CONFIG, select="nothing_like_it")
    assert not (tmp_path / "lake" / "raw").exists()
    for name in ("config", "state"):
        with pytest.raises(UsageError, match=f"{name} must be a dict, not str") as caught:
            extract(spark, path, tmp_path / "lake", **{name: '{"token": "hunter2"}'})
        assert "hunter2" not in str(caught.value)


def test_a_lake_that_can_not_be_written_ends_the_run(spark: Any, tmp_path: Path):
    path = app(tmp_path, PARTS, "tap_parts_unwritable")
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "raw").write_text("a file stands where the lake's folder must be")
    with pytest.raises((StorageError, UsageError, ExportError)):
        extract(spark, path, tmp_path / "lake", config=CONFIG)
