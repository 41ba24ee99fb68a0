"""The setting ``workers``: independent streams at a time."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

import pytest
from families import failures_of
from parts import FIELDS, given, marks, never_ahead, row

import burler
from burler.errors import StorageError
from burler.singer.messages import Message, Records
from burler.testing import FakeClock, MemorySink, run_tap
from support.internals import signals
from support.runs import run_into

WAIT = 20.0


def streams(count: int, fn: Any, **options: Any) -> burler.Tap:
    """Streams s0, s1, ... that share a function."""
    tap = burler.tap("tap-t")
    for number in range(count):
        tap.sync(f"s{number}", **{"key_properties": "id", "replication_key": "id", "schema": FIELDS, **options})(fn)
    return tap


def test_so_many_streams_run_at_a_time_and_no_more():
    together, lock, running, most = threading.Barrier(3, timeout=WAIT), threading.Lock(), [0], [0]

    def rows(stream):
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        together.wait()
        yield row(stream.name, 1)
        with lock:
            running[0] -= 1

    run = run_tap(streams(6, rows), {"workers": 3})
    assert not run.result.errors
    assert most == [3]
    assert run.states[-1] == {"bookmarks": {f"s{n}": {"id": 1} for n in range(6)}}
    assert [run.result.rows[f"s{n}"] for n in range(6)] == [1] * 6


def test_one_at_a_time_is_the_default():
    tap = streams(3, lambda: [row("x", threading.get_ident())])
    run = run_tap(tap)
    assert {one["id"] for n in range(3) for one in run.records(f"s{n}")} == {threading.get_ident()}
    assert [m["stream"] for m in run.messages if m["type"] == "RECORD"] == ["s0", "s1", "s2"]


def test_each_stream_has_its_schema_before_its_rows_and_the_first_is_on_the_main_thread():
    where: dict[str, threading.Thread] = {}
    together = threading.Barrier(4, timeout=WAIT)

    def rows(stream):
        where[stream.name] = threading.current_thread()
        together.wait()
        yield row(tap.get_bookmark(), 1)

    tap = streams(4, rows)
    state = {"bookmarks": {f"s{n}": {"id": n} for n in range(4)}}
    tap_run = run_tap(tap, {"workers": 4, "on_bad_record": "null"}, state=state)
    assert where["s0"] is threading.main_thread()
    assert len(set(where.values())) == 4
    seen: set[str] = set()
    for message in tap_run.messages:
        if message["type"] == "SCHEMA":
            assert message["stream"] not in seen
            seen.add(message["stream"])
        if message["type"] == "RECORD":
            assert message["stream"] in seen


def test_a_stream_is_told_its_own_bookmark_in_its_thread():
    seen: dict[str, Any] = {}
    together = threading.Barrier(4, timeout=WAIT)

    def rows(stream):
        together.wait()
        seen[stream.name] = (tap.get_bookmark(), stream.bookmark)
        yield row("x", 9)

    tap = streams(4, rows)
    run_tap(tap, {"workers": 4}, state={"bookmarks": {f"s{n}": {"id": n} for n in range(4)}})
    assert seen == {f"s{n}": (n, n) for n in range(4)}


def test_a_stream_that_fails_stops_no_other():
    def rows(stream):
        yield row("x", 1)
        if stream.name in ("s1", "s3"):
            raise ConnectionError("gone")
        yield row("x", 2)

    run = run_tap(streams(5, rows), {"workers": 3})
    assert sorted(run.result.errors) == ["s1", "s3"]
    assert {name: len(run.records(name)) for name in run.result.rows} == {"s0": 2, "s1": 1, "s2": 2, "s3": 1, "s4": 2}
    assert run.result.exit_code == 1
    assert [run.states[-1]["bookmarks"].get(f"s{n}") for n in (0, 2, 4)] == [{"id": 2}] * 3


def test_no_state_is_ahead_whichever_stream_writes_it():
    """A STATE of one stream speaks of all, and of each no more than what is out."""
    source = {"only": range(80)}
    tap = burler.tap("tap-t")

    def rows(stream, partition):
        for one in given(source)(stream, partition):
            yield one
            time.sleep(0.0002)

    for number in range(4):
        tap.partitions(f"s{number}")(lambda: [{"account": "only"}])
        options = {"replication_key": "id", "schema": FIELDS, "bookmark_strategy": "every_n(3)", "order": "asc"}
        tap.sync(f"s{number}", **options)(rows)
    run = run_tap(tap, {"workers": 4, "page_max_rows": 5})
    for number in range(4):
        out = -1
        for message in run.messages:
            if message["type"] == "RECORD" and message["stream"] == f"s{number}":
                out = message["record"]["id"]
            if message["type"] == "STATE":
                assert marks(message["value"], f"s{number}").get("only", -1) <= out
    assert len(run.states) > 40
    assert never_ahead(run, {}) == 0


def test_workers_for_streams_and_for_their_partitions():
    together = threading.Barrier(6, timeout=WAIT)

    def rows(partition):
        together.wait()
        yield row(partition["account"], 1)

    tap = burler.tap("tap-t")
    for name in ("s0", "s1"):
        tap.partitions(name)(lambda: [{"account": one} for one in "abc"])
        tap.sync(name, replication_key="id", schema=FIELDS, workers=3)(rows)
    run = run_tap(tap, {"workers": 2})
    assert not run.result.errors
    assert [marks(run.states[-1], name) for name in ("s0", "s1")] == [dict.fromkeys("abc", 1)] * 2


def test_the_state_names_a_stream_that_is_not_at_its_end():
    """So the next run begins with one that has something left."""
    begun, others = threading.Event(), threading.Event()

    def rows(stream):
        yield row("x", 1)
        if stream.name == "s0":
            begun.set()
            assert others.wait(WAIT)
        else:
            assert begun.wait(WAIT)
            stream.save_bookmark()
            if stream.name == "s2":
                threading.Timer(0.3, others.set).start()

    run = run_tap(streams(3, rows), {"workers": 2})
    between = [state["currently_syncing"] for state in run.states if "currently_syncing" in state]
    assert set(between) <= {"s0", "s1", "s2"}
    assert between[-1] == "s0"
    assert "currently_syncing" not in run.states[-1]


class Failing(MemorySink):
    """Fails at the fifth page of rows, or the first behind it of the main thread, or of one beside it."""

    pages = 0

    def __init__(self, *, in_main: bool) -> None:
        super().__init__()
        self.in_main = in_main

    def write(self, message: Message) -> None:
        if isinstance(message, Records):
            self.pages += 1
            if self.pages >= 5 and self.in_main == (threading.current_thread() is threading.main_thread()):
                raise StorageError("the disk is full")
        super().write(message)


@pytest.mark.parametrize(("workers", "in_main"), [(1, True), (3, True), (3, False)])
def test_an_error_of_the_sink_in_any_thread_ends_the_run(workers: int, in_main: bool):
    def rows():
        for number in range(2000):
            time.sleep(0.001)
            yield row("x", number)

    sink = Failing(in_main=in_main)
    begun = time.monotonic()
    with pytest.raises(StorageError, match="the disk is full"):
        run_into(streams(6, rows), {"workers": workers, "page_max_rows": 5}, sink)
    assert time.monotonic() - begun < WAIT
    assert sink.closed
    while any(thread.name.startswith("burler-stream") for thread in threading.enumerate()):
        assert time.monotonic() - begun < WAIT  # none begins again what it can't write
        time.sleep(0.01)


def test_a_limit_takes_streams_one_after_the_other():
    threads = set()

    def rows():
        threads.add(threading.get_ident())
        yield from (row("x", number) for number in range(10))

    run = run_tap(streams(4, rows), {"workers": 4}, limit=2)
    assert [len(run.records(f"s{n}")) for n in range(4)] == [2] * 4
    assert threads == {threading.get_ident()}


def test_a_stream_that_is_left_behind_is_told_with_all_of_its_time(caplog: pytest.LogCaptureFixture):
    """Its function blocks in a thread while the run is to end; a STATE came a moment before that."""
    clock, stopper, blocked, hold = FakeClock(), signals.Stopper(), threading.Event(), threading.Event()
    tap = burler.tap("tap-t")

    @tap.sync("main", key_properties="id", schema=FIELDS)
    def main():
        blocked.wait(WAIT)
        stopper.end()
        return []

    @tap.sync("left", key_properties="id", replication_key="id", order="asc", schema=FIELDS)
    def left(stream):
        yield row("left", 1)
        clock.advance(100)
        stream.save_bookmark()
        clock.advance(5)
        blocked.set()
        hold.wait(WAIT)

    try:
        with caplog.at_level(logging.INFO, logger="burler"):
            run_tap(tap, {"workers": 2}, clock=clock, stopper=stopper)
    finally:
        hold.set()
    [said] = [one.getMessage() for one in caplog.records if one.getMessage().startswith("stream 'left': stopped")]
    assert ", 105.0 s, " in said


def test_what_has_failed_of_a_stream_that_is_left_behind_is_told():
    stopper, blocked, hold = signals.Stopper(), threading.Event(), threading.Event()
    tap = burler.tap("tap-t")

    @tap.sync("main", key_properties="id", schema=FIELDS)
    def main():
        blocked.wait(WAIT)
        stopper.end()
        return []

    tap.partitions("left", key="account")(lambda: [{"account": "a"}, {"account": "b"}])

    @tap.sync("left", key_properties="id", replication_key="id", order="asc", schema=FIELDS)
    def left(partition):
        yield row(partition["account"], 1)
        if partition["account"] == "a":
            raise LookupError("as planned")
        blocked.set()
        hold.wait(WAIT)

    try:
        run = run_tap(tap, {"workers": 2}, stopper=stopper)
    finally:
        hold.set()
    assert [one.where for one in failures_of(run, "left")] == ["partition a"]
    assert run.result.exit_code == 1
    assert run.result.rows["left"] == 2
