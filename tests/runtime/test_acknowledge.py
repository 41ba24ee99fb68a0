"""``@tap.acknowledge``: a source is told once the STATE line that moved its stream has left the tap, never before."""

from __future__ import annotations

import gzip
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from blocked import started, wait_for
from parts import key_of, partitioned
from tapprocess import burler as burler_command
from tapprocess import write_tap
from taps import FIELDS, ids, make

import burler
from burler.errors import DeclarationError, StorageError, StreamError
from burler.runtime.run import run as run_into
from burler.runtime.signals import Stopper
from burler.singer.messages import Message, Records, State
from burler.sinks.memory import MemorySink
from burler.testing import run_tap


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
    stopper, sink = Stopper(), MemorySink()

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


# ---- a log ----------------------------------------------------------------------------------------------


class Log:
    """A source that forgets what was acknowledged; entries come strictly after a place."""

    def __init__(self, count: int) -> None:
        self.entries = list(range(1, count + 1))
        self.acknowledged = 0

    def read(self, after: int) -> Any:
        for entry in list(self.entries):
            if entry > after:
                yield {"id": entry}

    def acknowledge(self, place: int) -> None:
        assert place >= self.acknowledged
        self.acknowledged = place
        self.entries = [entry for entry in self.entries if entry > place]


class Breaking(MemorySink):
    """Breaks at a page; what came before has arrived."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.left = at

    def write(self, message: Message) -> None:
        if isinstance(message, Records):
            self.left -= 1
            if self.left < 0:
                raise StorageError("the pipe is gone")
        super().write(message)


def test_a_log_is_read_to_its_end_whatever_breaks_on_the_way():
    log, arrived, state = Log(100), set(), None
    breaks = iter([3, 1, 0, 7, 2, 10_000])
    while log.entries:
        tap = burler.tap("tap-log")

        @tap.sync(
            "changes",
            replication_method=burler.LOG_BASED,
            replication_key="id",
            bookmark_strategy="every_n(5)",
            resume="exclusive",
            schema=FIELDS,
        )
        def changes(stream):
            yield from log.read(stream.bookmark or 0)

        tap.acknowledge("changes")(lambda bookmark: log.acknowledge(bookmark))
        sink = Breaking(next(breaks))
        try:
            run_into(tap, {"page_max_rows": 5}, sink, state=state)
        except StorageError:
            pass
        arrived |= {m["record"]["id"] for m in sink.messages if m["type"] == "RECORD"}
        state = next((m["value"] for m in reversed(sink.messages) if m["type"] == "STATE"), state)
        assert set(range(1, log.acknowledged + 1)) <= arrived
    assert arrived == set(range(1, 101))


# ---- real sinks -------------------------------------------------------------------------------------------

SOURCE = """
import gzip, os, pathlib, sys, time
import burler
tap = burler.tap("tap-x")

@tap.sync("rows", key_properties="id", replication_key="id", bookmark_strategy="every_n(10)", schema=SCHEMA)
def rows(stream):
    for number in range(100):
        if number == 55 and os.environ.get("BLOCK"):
            sys.stderr.write("BLOCKED\\n")
            time.sleep(600)
        yield {"id": number, "text": None}

@tap.acknowledge("rows")
def acknowledge(bookmark):
    held = 0
    for manifest in pathlib.Path("lake").rglob("*.json"):
        held += 1
    files = sum(1 for one in pathlib.Path("lake").rglob("*.gz") if not one.name.startswith("."))
    sys.stderr.write(f"ACK {bookmark} {files}\\n")
"""


def acknowledged(stderr: str) -> list[tuple[int, int]]:
    lines = [line.split() for line in stderr.splitlines() if line.startswith("ACK ")]
    return [(int(bookmark), int(files)) for _ack, bookmark, files in lines]


def rows_in(lake: Path) -> int:
    found = 0
    for path in lake.rglob("*.gz"):
        found += sum(b'"RECORD"' in line for line in gzip.decompress(path.read_bytes()).splitlines())
    return found


def test_a_lake_tells_of_what_is_committed(tmp_path: Path):
    (tmp_path / "config.json").write_text(json.dumps({"max_file_records": 20, "page_max_rows": 10}))
    app = write_tap(tmp_path, SOURCE)
    done = burler_command("run", app, "--config", "config.json", "--sink", "lake:lake", cwd=tmp_path)
    assert done.code == 0, done.stderr
    told = acknowledged(done.stderr)
    assert told[-1][0] == 99
    assert len(told) >= 3
    assert all(files * 20 >= bookmark + 1 - 20 and files >= 1 for bookmark, files in told)
    assert rows_in(tmp_path / "lake") == 100


def test_a_lake_that_is_killed_has_told_of_nothing_that_is_open(tmp_path: Path):
    """The file is open: no STATE has come, so the source keeps all."""
    with started(tmp_path, SOURCE, "--sink", f"lake:{tmp_path}/lake", BLOCK="1") as process:
        said = wait_for(process, b"BLOCKED", 1)
        process.kill()
        out, err = process.communicate(timeout=30)
    assert b"STATE" not in out
    assert acknowledged((said + err).decode()) == []


def test_stdout_tells_of_lines_that_were_written(tmp_path: Path):
    done = burler_command("run", write_tap(tmp_path, SOURCE), cwd=tmp_path)
    states = [m["value"]["bookmarks"]["rows"]["id"] for m in done.messages if m["type"] == "STATE"]
    told = [bookmark for bookmark, _files in acknowledged(done.stderr)]
    assert told[-1] == 99
    assert set(told) <= set(states)


def test_threads_of_the_test_are_gone():
    assert not [one for one in threading.enumerate() if one.name.startswith("burler-")]
