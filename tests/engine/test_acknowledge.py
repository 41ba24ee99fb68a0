"""``@tap.acknowledge``: a source is told once the STATE line that moved its stream has left the tap, never before."""

from __future__ import annotations

import time
from typing import Any

import pytest
from parts import key_of, partitioned
from taps import FIELDS, ids, make

import burler
from burler.errors import DeclarationError, StorageError, StreamError
from burler.singer.messages import Message, State
from burler.testing import MemorySink, run_tap
from support.internals import signals
from support.runs import run_into


def told_by(sink: MemorySink) -> list[Any]:
    """The bookmarks of ``a`` that STATEs have carried so far."""
    return [m["value"].get("bookmarks", {}).get("a", {}).get("id") for m in sink.messages if m["type"] == "STATE"]


def counting(tap: burler.Tap, sink: MemorySink, stream: str = "a") -> list[Any]:
    """Declare a function that notes what it is told; it must stand in a STATE that is out."""
    told: list[Any] = []

    @tap.acknowledge(stream)
    def acknowledge(bookmark):
        assert bookmark in told_by(sink), "told before its STATE is out"
        told.append(bookmark)

    return told


# ---- when ---------------------------------------------------------------------------------------------


def test_it_is_told_behind_each_state_that_moved_the_stream():
    sink = MemorySink()
    tap = make(a=(lambda: iter([ids(n) for n in (1, 2, 3)]), {"bookmark_strategy": "on_page"}))
    told = counting(tap, sink)
    run_into(tap, {}, sink)
    assert told == [1, 2, 3]


def test_a_stream_that_has_not_moved_is_told_nothing():
    sink = MemorySink()
    tap = make(a=lambda: [], b=(lambda: iter([ids(1), ids(2)]), {"bookmark_strategy": "on_page"}))
    told = counting(tap, sink)
    run_into(tap, {}, sink, state={"bookmarks": {"a": {"id": 7}}})
    assert told == []


def test_it_is_told_as_the_stream_goes_on_and_not_at_the_end_alone():
    """A log may hold back only so much."""
    seen: list[int] = []

    def rows():
        for number in range(50):
            yield ids(number)
            seen.append(len(told))

    sink = MemorySink()
    tap = make(a=(rows, {"bookmark_strategy": "every_n(10)"}))
    told = counting(tap, sink)
    run_into(tap, {"page_max_rows": 1}, sink)
    assert seen[-1] >= 3
    assert told[-1] == 49


def test_it_is_told_while_another_stream_runs():
    """A STATE speaks of all streams; an error of what is told belongs to the stream that it speaks of."""

    def broken():
        raise ValueError("no slot")

    tap = make(a=lambda: ids(1), b=(lambda: iter([ids(1), ids(2)]), {"bookmark_strategy": "on_page"}))
    tap.acknowledge("a")(broken)
    run = run_tap(tap)
    assert list(run.result.errors) == ["a"]
    assert "its acknowledge function" in str(run.result.errors["a"])
    assert run.records("b") == ids(1, 2)
    assert run.states[-1]["bookmarks"]["b"] == {"id": 2}


class Failing(MemorySink):
    """Fails at a STATE line."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.left = at

    def write(self, message: Message) -> None:
        if isinstance(message, State):
            self.left -= 1
            if self.left == 0:
                raise StorageError("the disk is full")
        super().write(message)


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_state_that_could_not_be_written_is_never_told(at: int):
    sink = Failing(at)
    tap = make(a=(lambda: iter([ids(n) for n in (1, 2, 3)]), {"bookmark_strategy": "on_page"}))
    told = counting(tap, sink)
    with pytest.raises(StorageError):
        run_into(tap, {}, sink)
    assert told == [1, 2][: at - 1]


class Keeping(MemorySink):
    """Keeps STATEs until it is closed, as a sink of files does; then it may fail."""

    def __init__(self, *, fails: bool) -> None:
        super().__init__()
        self.kept: list[Message] = []
        self.fails = fails

    def write(self, message: Message) -> None:
        if isinstance(message, State):
            self.kept.append(message)
        else:
            super().write(message)

    def close(self, *, complete: bool) -> None:
        if self.fails:
            raise StorageError("the disk is full")
        for message in self.kept:
            super().write(message)
        super().close(complete=complete)


@pytest.mark.parametrize("fails", [False, True])
def test_a_sink_that_keeps_states_tells_when_it_lets_them_go(fails: bool):
    sink = Keeping(fails=fails)
    tap = make(a=(lambda: iter([ids(n) for n in (1, 2, 3)]), {"bookmark_strategy": "on_page"}))
    told = counting(tap, sink)
    if fails:
        with pytest.raises(StorageError):
            run_into(tap, {}, sink)
    else:
        run_into(tap, {}, sink)
    assert told == ([] if fails else [3])


def test_a_limit_tells_nothing():
    sink = MemorySink()
    tap = make(a=lambda: ids(1, 2, 3))
    told = counting(tap, sink)
    run_into(tap, {}, sink, limit=2)
    assert told == []


def test_a_stopped_run_tells_of_its_last_state():
    stopper, sink = signals.Stopper(), MemorySink()

    def rows():
        yield from ids(1, 2)
        stopper.handle(15, None)

    tap = make(a=rows)
    told = counting(tap, sink)
    run_into(tap, {}, sink, stopper=stopper)
    assert told == [2]


def test_a_failed_stream_is_told_as_far_as_its_state_went():
    sink = MemorySink()

    def rows():
        yield from ids(1, 2)
        raise ConnectionError

    tap = make(a=rows)
    told = counting(tap, sink)
    result = run_into(tap, {}, sink)
    assert told == [2]
    assert "a" in result.errors


# ---- what -----------------------------------------------------------------------------------------------


def test_what_it_is_told():
    told: list[Any] = []

    def rows(stream):
        yield from ids(1)
        stream.state["lsn"] = "0/16B3748"

    tap = make(a=rows)
    tap.client(lambda: "the client")

    @tap.acknowledge("a")
    def acknowledge(bookmark, state, stream, client, config):
        told.append((bookmark, state, stream.name, stream.bookmark, client, config["x"], tap.get_bookmark()))

    run_tap(tap, {"x": 5}, state={"bookmarks": {"a": {"id": 0}}})
    assert told == [(1, {"lsn": "0/16B3748"}, "a", 1, "the client", 5, 1)]


def test_a_position_alone_is_told():
    told: list[Any] = []
    tap = burler.tap("tap-t")

    @tap.sync("a", schema=FIELDS)
    def rows(stream):
        yield from ids(1)
        stream.state["at"] = 7

    tap.acknowledge("a")(lambda bookmark, state: told.append((bookmark, state)))
    run_tap(tap)
    assert told == [(None, {"at": 7})]


def test_what_it_writes_into_the_state_it_is_given_reaches_no_state():
    def rows(stream):
        yield ids(1)
        stream.state["at"] = 1
        yield ids(2)

    tap = make(a=(rows, {"bookmark_strategy": "on_page"}))
    tap.acknowledge("a")(lambda state: state.update(at="changed"))
    run = run_tap(tap)
    assert [state["bookmarks"]["a"].get("stream_state") for state in run.states][-1] == {"at": 1}


def test_a_class_and_a_handle():
    told: list[Any] = []
    tap = burler.tap("tap-t")

    @tap.stream
    class Rows(burler.Stream):
        replication_key = "id"
        schema = FIELDS

        def sync(self):
            self.given = ids(4)
            return self.given

        def acknowledge(self, bookmark):
            told.append((bookmark, self.given))

    other = tap.stream("other", replication_key="id", schema=FIELDS)
    other.sync(lambda: ids(5))
    other.acknowledge(lambda bookmark: told.append(bookmark))
    run_tap(tap)
    assert told == [(4, ids(4)), 5]


@pytest.mark.parametrize("workers", [1, 4])
def test_partitions_are_told_of_each(workers: int):
    """One at a time, and never of less than before, whichever thread writes the STATE."""
    told: dict[str, list[int]] = {}
    inside, most = [0], [0]

    def rows(partition):
        for number in range(20):
            yield [{"account": partition["account"], "id": number}]
            time.sleep(0.0005)

    tap = partitioned("abcd", rows, workers=workers, bookmark_strategy="on_page")

    @tap.acknowledge("rows")
    def acknowledge(stream, bookmark):
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        time.sleep(0.001)
        inside[0] -= 1
        told.setdefault(stream.partition["account"], []).append(bookmark)

    run = run_tap(tap)
    assert not run.result.errors
    assert {name: marks[-1] for name, marks in told.items()} == dict.fromkeys("abcd", 19)
    assert all(marks == sorted(set(marks)) for marks in told.values()), told
    assert most == [1]
    assert key_of("a") in run.states[-1]["bookmarks"]["rows"]["partitions"]


# ---- a function that fails --------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["end_of_sync", "on_page"])
@pytest.mark.parametrize("error", [ValueError, SystemExit])
def test_a_function_that_fails_is_an_error_of_its_stream(strategy: str, error: Any):
    def broken(bookmark):
        raise error("no slot")

    tap = make(a=(lambda: iter([ids(1), ids(2)]), {"bookmark_strategy": strategy}), b=lambda: ids(7))
    tap.acknowledge("a")(broken)
    run = run_tap(tap)
    assert isinstance(run.result.errors["a"], StreamError)
    assert "its acknowledge function" in str(run.result.errors["a"])
    assert "no slot" in str(run.result.errors["a"])
    assert list(run.result.errors) == ["a"]
    assert run.records("b") == ids(7)
    assert run.result.exit_code == 1


def test_a_function_with_a_yield_is_refused():
    tap = make(a=lambda: ids(1))
    with pytest.raises(DeclarationError, match="yield"):

        @tap.acknowledge("a")
        def acknowledge():
            yield 1
