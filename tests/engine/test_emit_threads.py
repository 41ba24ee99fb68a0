"""Rows that are emitted by name in threads of the author's own."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from emitting import emitting, ids, row, rows_in
from families import CHILD, PARENT, failures_of

import burler
from burler.errors import BadRecordError, BurlerError
from burler.testing import MemorySink, run_tap
from support.internals import signals
from support.runs import run_into

FIELDS = {"type": "object", "properties": {"id": {"type": "integer"}}}


def _in_threads(count: int, action: Any) -> None:
    threads = [threading.Thread(target=action, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("yields", [False, True])
def test_threads_emit_each_row_once_and_each_in_its_order(yields: bool):
    def main(stream):
        def some(number: int) -> None:
            for i in range(3_000):
                stream.emit_record(row(10_000 * number + i))
                if i % 500 == 0:
                    stream.emit_records([row(10_000 * number + i)], "beside")

        if yields:
            yield row(90_000)
        _in_threads(4, some)
        if yields:
            yield row(90_001)

    out = run_tap(emitting(main))
    assert not out.result.errors
    came = ids(out)
    assert sorted(came) == [10_000 * n + i for n in range(4) for i in range(3_000)] + [90_000, 90_001] * yields
    for number in range(4):
        mine = [i for i in came if i // 10_000 == number]
        assert mine == sorted(mine)
    assert len(ids(out, "beside")) == 24
    assert out.states[-1]["bookmarks"]["main"]["key"] == max(came)


def test_rows_of_threads_go_out_while_the_function_waits_for_them():
    sink = MemorySink()
    there = threading.Event()

    def main(stream):
        def some(number: int) -> None:
            stream.emit_record(row(number))
            there.wait(20)

        threads = [threading.Thread(target=some, args=(i,)) for i in range(2)]
        for thread in threads:
            thread.start()
        end = time.monotonic() + 20
        while rows_in(sink) < 2 and time.monotonic() < end:
            time.sleep(0.01)
        there.set()
        for thread in threads:
            thread.join()
        return []

    begun = time.monotonic()
    assert not run_into(emitting(main), {"page_max_age_seconds": 0.05}, sink).errors
    assert time.monotonic() - begun < 15


def _caught(into: list[BaseException], action: Any) -> threading.Thread:
    def work() -> None:
        try:
            action()
        except BaseException as error:
            into.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


@pytest.mark.parametrize("begun_before", [False, True])
@pytest.mark.parametrize("partitioned", [False, True])
def test_a_thread_that_emits_when_its_function_has_ended_is_told_so(partitioned: bool, begun_before: bool):
    """Its row belongs to nothing any more: it must not vanish, nor be taken for one of the next partition."""
    raised: list[BaseException] = []
    ended, threads = threading.Event(), []

    def late() -> Iterator[dict[str, int]]:
        if begun_before:
            yield row(0)
        ended.wait(20)
        yield row(7)

    def main(stream):
        if not threads:
            threads.append(_caught(raised, lambda: stream.emit_records(late())))
            time.sleep(0.05)
            return []
        ended.set()
        threads[0].join()
        return [row(1)]

    tap = emitting(main)
    if partitioned:
        tap.partitions("main")(lambda: [{"n": 1}, {"n": 2}])
    else:
        tap.sync("next", key_properties="id", schema=PARENT)(lambda: main(None))
    out = run_tap(tap)
    assert len(raised) == 1
    assert isinstance(raised[0], BurlerError)
    assert "stream 'main'" in str(raised[0])
    assert "not once the function has ended" in str(raised[0])
    assert 7 not in ids(out)


def test_what_a_thread_emits_while_its_partition_fails_is_no_row_of_the_next():
    """Its bookmark would pass rows that are not out."""
    count = 12

    def main(stream, partition):
        begins = 1_000_000 * (count - int(partition["n"]))
        emits = threading.Event()

        def some() -> None:
            with contextlib.suppress(BurlerError, LookupError):  # the task's, if it fails while a row is written
                for i in range(begins, begins + 900_000):
                    stream.emit_record(row(i))
                    emits.set()

        threading.Thread(target=some, daemon=True).start()
        assert emits.wait(30)  # on a busy machine the thread may begin late
        time.sleep(0.01)
        raise LookupError("as planned")

    tap = emitting(main, order="asc")
    tap.partitions("main", key="n")(lambda: [{"n": str(n)} for n in range(count)])
    out = run_tap(tap)
    assert {type(one.error) for one in failures_of(out, "main")} == {LookupError}
    for n, entry in out.states[-1]["bookmarks"]["main"]["partitions"].items():
        assert entry["key"] < 1_000_000 * (count - int(n) + 1)


def test_a_bad_row_of_a_thread_is_the_streams_error():
    def main(stream):
        _in_threads(1, lambda _: stream.emit_record({"id": "bad"}))
        yield row(1)

    out = run_tap(emitting(main))
    assert isinstance(out.result.errors["main"], BadRecordError)
    assert "main" not in out.states[-1].get("bookmarks", {})


def test_the_tap_itself_can_not_be_asked_in_a_thread_of_the_authors_own():
    """It does not know which stream runs there; the parameter does."""
    raised: list[BaseException] = []
    tap = burler.tap("tap-emits")

    @tap.sync("main", key_properties="id", schema=PARENT)
    def main():
        _caught(raised, lambda: tap.emit_record(row(1))).join()
        return []

    run_tap(tap)
    assert [type(error) for error in raised] == [BurlerError]
    assert "in your own threads take 'stream' as a parameter" in str(raised[0])


def test_a_parent_that_a_thread_emits_while_others_have_their_turn_is_held_by_its_own_key():
    """Keys in no order: 1 comes while the children of 5 are at work, and its own child fails."""
    taken = threading.Event()

    def family(fails: bool) -> burler.Tap:
        tap = burler.tap("tap-emits")

        @tap.sync("parents", key_properties="id", replication_key="key", schema=PARENT)
        def parents(stream):
            rows = [one for one in (row(5), row(1), row(6)) if one["key"] >= (stream.bookmark or 0)]
            if rows[0]["id"] != 5:
                yield from rows
                return
            thread = threading.Thread(target=lambda: (taken.wait(20), stream.emit_record(row(1)), came.set()))
            thread.start()
            yield rows[0]
            yield row(6)
            thread.join()

        came = threading.Event()

        @tap.sync("children", parent="parents", key_properties=["parent", "id"], schema=CHILD)
        def children(parent):
            if parent["id"] == 5 and not taken.is_set():
                taken.set()
                came.wait(20)
            if parent["id"] == 1 and fails:
                raise LookupError("as planned")
            yield {"id": 1, "parent": parent["id"]}

        tap.sync("below", parent="children", schema=CHILD)(lambda parent: [{"id": 1, "parent": parent["parent"]}])
        return tap

    out = run_tap(family(True), {"parent_buffer_rows": 1})
    assert list(out.result.errors) == ["children"]
    assert {one["parent"] for one in out.records("below")} == {5, 6}
    assert out.states[-1].get("bookmarks", {}).get("parents", {}).get("key", -1) <= 1
    rest = run_tap(family(False), state=out.states[-1])
    assert {one["parent"] for each in (out, rest) for one in each.records("below")} == {1, 5, 6}


def test_a_thread_that_emits_under_a_lock_that_a_hook_wants_stops_nothing():
    lock, integer = threading.Lock(), {"properties": {"id": {"type": "integer"}}}
    tap = burler.tap("tap-family")

    @tap.sync("parents", key_properties="id", schema=integer)
    def parents(stream):
        ended = threading.Event()

        def emit() -> None:
            number = 0
            while not ended.is_set():
                with lock:
                    stream.emit_record({"id": number}, stream="emitted")
                number += 1
                time.sleep(0.0005)

        thread = threading.Thread(target=emit)
        thread.start()
        try:
            for number in range(30):
                yield {"id": number}
        finally:
            ended.set()
            thread.join()

    tap.stream("emitted", emitted_by="parents", key_properties="id", schema=integer)
    tap.sync("children", parent="parents", key_properties="id", schema=integer)(lambda parent: [{"id": parent["id"]}])

    @tap.post_transform("children")
    def looked_up(record):
        time.sleep(0.001)
        with lock:
            return record

    run = run_tap(tap, {"parent_buffer_rows": 3})
    assert not run.result.errors
    assert [row["id"] for row in run.records("children")] == list(range(30))


@pytest.mark.parametrize("says", ["save_bookmark", "state"])
def test_a_thread_that_goes_on_behind_a_stop_moves_nothing_ahead_of_its_rows(says: str):
    """Its rows are dropped from there on, while the function's finally runs."""
    tap, stopper, begun, over = burler.tap("tap-threads"), signals.Stopper(), threading.Event(), threading.Event()

    options = {"replication_method": burler.LOG_BASED}
    if says == "save_bookmark":
        options = {"replication_key": "id", "bookmark_strategy": "manual"}

    @tap.tail("rows", key_properties="id", schema=FIELDS, **options)
    def rows(stream):
        def emit() -> None:
            for i in range(1, 100_000):
                if over.is_set():
                    return
                stream.emit_record({"id": i})
                if says == "state":
                    stream.state = {"id": i}
                else:
                    stream.save_bookmark(i)
                if i == 50:
                    begun.set()

        thread = threading.Thread(target=emit)
        thread.start()
        try:
            assert begun.wait(20)
            stopper.handle(signal.SIGTERM, None)
        finally:
            time.sleep(0.2)
            over.set()
            thread.join()

    out = run_tap(tap, {"tail": True}, stopper=stopper)
    seen = 0
    for message in out.messages:
        if message["type"] == "RECORD":
            seen = message["record"]["id"]
        elif message["type"] == "STATE":
            entry = message["value"].get("bookmarks", {}).get("rows", {})
            assert max(entry.get("id", 0), entry.get("stream_state", {}).get("id", 0)) <= seen
    assert seen >= 50
