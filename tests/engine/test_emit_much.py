"""Rows that are emitted by name in great numbers, and in runs that are stopped or break meanwhile."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from emitting import emits_all, emits_each, emitting, ids, row, rows_in
from tapprocess import python, write_tap

from burler.errors import BadRecordError, StorageError
from burler.singer.messages import Records
from burler.testing import MemorySink, run_tap
from support.internals import signals
from support.runs import run_into


def counting(reached: list[int], bad: int | None = None) -> Callable[..., None]:
    """A function that emits 100,000 rows, one of them bad, and notes those that it got rid of."""

    def main(stream):
        for i in range(100_000):
            stream.emit_record(row(i) if i != bad else {"id": "bad", "key": i})
            reached.append(i)

    return main


# ---- many -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("emit", [emits_each, emits_all])
def test_rows_go_out_while_their_function_goes_on_emitting(emit: Any):
    sink = MemorySink()
    ahead: list[int] = []

    def rows() -> Iterator[dict[str, int]]:
        for i in range(30_000):
            ahead.append(i - rows_in(sink)) if i % 1000 == 0 else None
            yield row(i)

    result = run_into(
        emitting(lambda stream: emit(stream, rows()), bookmark_strategy="every_n(1000)"),
        {"page_max_age_seconds": 600.0},
        sink,
    )
    assert not result.errors
    assert [m["record"]["id"] for m in sink.messages if m.get("stream") == "main" and "record" in m] == list(
        range(30_000)
    )
    assert max(ahead) <= 6_000
    states = [m["value"].get("bookmarks", {}).get("main", {}).get("key", -1) for m in sink.messages if "value" in m]
    assert len({key for key in states if 0 < key < 29_999}) >= 2, "STATE on the way, too"


def test_memory_does_not_grow_with_what_one_call_emits(tmp_path: Path):
    path = write_tap(tmp_path, MANY, "tap_many.py")
    used = {}
    for count in (10_000, 100_000):
        ended = python(path, str(count), cwd=tmp_path, timeout=120)
        assert ended.code == 0, ended.stderr
        used[count] = json.loads(ended.stdout)
        assert used[count]["rows"] == count
    assert used[100_000]["kilobytes"] - used[10_000]["kilobytes"] < 6_000, used


MANY = """
import sys
import burler
from support.runs import print_memory

tap = burler.tap("tap-many")

@tap.sync("rows", key_properties="id", replication_key="id", order="asc", schema=SCHEMA)
def rows(stream):
    stream.emit_records({"id": i, "text": "x" * 200} for i in range(int(sys.argv[1])))

print_memory(tap)
"""


@pytest.mark.parametrize("emit", [emits_each, emits_all])
def test_a_function_that_emits_without_end_ends_at_a_limit(emit: Any):
    asked = 0

    def endless() -> Iterator[dict[str, int]]:
        nonlocal asked
        for asked in range(400_000):
            yield row(asked)

    out = run_tap(emitting(lambda stream: emit(stream, endless())), limit=3)
    assert not out.result.errors
    assert ids(out) == [0, 1, 2]
    assert ids(out, "other") == [9]
    assert asked < 50_000


# ---- a run that ends in the middle ------------------------------------------------------------------


@pytest.mark.parametrize("at", [0, 1, 63, 64, 4_999, 5_000, 12_345])
@pytest.mark.parametrize("emit", [emits_each, emits_all])
def test_a_stop_leaves_out_exactly_what_was_emitted_after_it(emit: Any, at: int):
    stopper = signals.Stopper()

    def rows() -> Iterator[dict[str, int]]:
        for i in range(20_000):
            if i == at:
                stopper.handle(signal.SIGTERM, None)
            yield row(i)

    out = run_tap(emitting(lambda stream: emit(stream, rows()), order="asc"), stopper=stopper)
    assert out.result.stopped_by == signal.SIGTERM
    assert not out.result.errors
    assert ids(out) == list(range(at))
    assert out.states[-1].get("bookmarks", {}).get("main", {}).get("key", -1) == at - 1
    assert out.states[-1]["currently_syncing"] == "main"


def test_a_signal_while_emitted_rows_are_written_waits_until_they_are():
    """No line may be torn, and what is out is covered by the STATE."""

    class Signalled(MemorySink):
        def write(self, message: Any) -> None:
            if isinstance(message, Records) and self.messages[-1]["type"] == "SCHEMA":
                signal.raise_signal(signal.SIGTERM)
            super().write(message)

    reached: list[int] = []
    sink = Signalled()
    result = run_into(emitting(counting(reached), order="asc"), {"page_max_age_seconds": 600.0}, sink)
    assert result.stopped_by == signal.SIGTERM
    assert not result.errors
    came = [m["record"]["id"] for m in sink.messages if m["type"] == "RECORD"]
    assert came == list(range(len(came)))
    assert len(reached) <= len(came) <= len(reached) + 1 < 50_000
    assert [m["value"] for m in sink.messages if "value" in m][-1]["bookmarks"]["main"] == {"key": came[-1]}


def test_user_code_that_eats_a_stop_emits_nothing_behind_it():
    stopper = signals.Stopper()

    def main(stream):
        stream.emit_record(row(0))
        try:
            stopper.handle(signal.SIGTERM, None)
        except BaseException:
            stream.emit_record(row(2))
        stream.emit_records([row(3)])

    out = run_tap(emitting(main, order="asc"), stopper=stopper)
    assert ids(out) == [0]
    assert out.states[-1]["bookmarks"]["main"] == {"key": 0}


def test_a_sink_that_fails_ends_the_emitting_function():
    class Full(MemorySink):
        def write(self, message: Any) -> None:
            if len(self.messages) > 3_000:
                raise StorageError("disk full")
            super().write(message)

    reached: list[int] = []
    sink = Full()
    with pytest.raises(StorageError, match="disk full"):
        run_into(emitting(counting(reached)), {}, sink)
    assert len(reached) < 50_000
    assert [m for m in sink.messages if m["type"] == "STATE"] == []


@pytest.mark.parametrize("at", [10, 7_000])
def test_a_bad_row_ends_a_function_that_goes_on_emitting(at: int):
    reached: list[int] = []
    out = run_tap(emitting(counting(reached, bad=at), order="asc"))
    assert isinstance(out.result.errors["main"], BadRecordError)
    assert ids(out) == list(range(at))
    assert out.states[-1]["bookmarks"]["main"] == {"key": at - 1}
    assert len(reached) < 20_000, "it is told so on the way"
