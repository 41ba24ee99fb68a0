"""The engine: what comes out for which tap, in which order; and what a broken stream does."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from taps import FIELDS, ids, make

import burler
from burler.errors import BadRecordError, StorageError, StreamError
from burler.singer.messages import Records
from burler.testing import MemorySink, run_tap, without_times
from support.runs import run_into

# ---- order of messages --------------------------------------------------------------------------


def test_a_run_message_by_message():
    tap = make(a=lambda: ids(1, 2), b=lambda: [])
    assert without_times(run_tap(tap).messages) == [
        {"type": "SCHEMA", "stream": "a", "schema": FIELDS, "key_properties": ["id"], "bookmark_properties": ["id"]},
        {"type": "RECORD", "stream": "a", "record": {"id": 1}},
        {"type": "RECORD", "stream": "a", "record": {"id": 2}},
        {"type": "STATE", "value": {"currently_syncing": "b", "bookmarks": {"a": {"id": 2}}}},
        {"type": "SCHEMA", "stream": "b", "schema": FIELDS, "key_properties": ["id"], "bookmark_properties": ["id"]},
        {"type": "STATE", "value": {"bookmarks": {"a": {"id": 2}}}},
    ]


def test_every_record_says_when_it_was_extracted():
    for message in run_tap(make(a=lambda: ids(1))).messages:
        if message["type"] == "RECORD":
            assert len(message["time_extracted"]) == 27
            assert message["time_extracted"].endswith("Z")


def test_every_n_cuts_pages_where_a_state_is_due():
    def rows():
        yield from ids(*range(1000))

    for n, page in [(7, 1000), (352, 1000), (352, 24), (100, 100), (1, 1000), (999, 350)]:
        tap = make(a=(rows, {"bookmark_strategy": f"every_n({n})"}))
        run = run_tap(tap, {"page_max_rows": page})
        at = [count for kind, count in _runs(run.types) if kind == "RECORD"]
        assert at == [n] * (1000 // n) + ([1000 % n] if 1000 % n else []), (n, page)
        assert [state["bookmarks"]["a"]["id"] for state in run.states[: 1000 // n]] == list(range(n - 1, 1000, n))


def _runs(types: list[str]) -> list[tuple[str, int]]:
    return [(kind, len(list(group))) for kind, group in itertools.groupby(types)]


def test_every_n_counts_the_rows_of_all_streams_of_the_function():
    def rows():
        for i in range(100):
            yield {"id": i}
            yield "b", ids(i, i, i)

    tap = make(a=(rows, {"bookmark_strategy": "every_n(40)"}))
    tap.stream("b", emitted_by="a", key_properties="id", schema=FIELDS)
    run = run_tap(tap)
    between = [count for count in _records_between_states(run.types) if count]
    assert sum(between) == 400
    assert all(40 <= count <= 160 for count in between[:-1])
    assert len(between) >= 3


def _records_between_states(types: list[str]) -> list[int]:
    counts = [0]
    for kind in types:
        if kind == "STATE":
            counts.append(0)
        counts[-1] += kind == "RECORD"
    return counts


def test_end_of_sync_gives_one_state_at_the_end_of_each_stream():
    def rows():
        yield from ids(*range(2500))

    run = run_tap(make(a=(rows, {"order": None}), b=(rows, {"order": None})))
    assert [kind for kind, _ in _runs(run.types)] == ["SCHEMA", "RECORD", "STATE", "SCHEMA", "RECORD", "STATE"]


def test_a_state_that_says_nothing_new_is_not_repeated():
    def rows(stream):
        yield from ids(5, 5, 5, 5)

    run = run_tap(make(a=(rows, {"bookmark_strategy": "every_n(1)"})))
    assert [state.get("bookmarks") for state in run.states] == [{"a": {"id": 5}}] * 2  # then without currently_syncing


def test_states_that_are_big_come_so_seldom_that_rows_outweigh_them():
    """A strategy says the most often that a STATE comes; the last one always comes."""

    def rows(stream):
        stream.state["filler"] = "x" * 20_000
        for i in range(5000):
            yield {"id": i}

    run = run_tap(make(a=(rows, {"bookmark_strategy": "every_n(10)"})))
    states = [len(json.dumps(state)) for state in run.states]
    records = [len(json.dumps(m)) for m in run.messages if m["type"] == "RECORD"]
    assert 5 < len(states) < 30
    assert sum(states[1:-2]) <= sum(records)  # the last of the stream, and that of the run, come in any case
    assert run.states[-1]["bookmarks"]["a"]["id"] == 4999
    pages = len({m["time_extracted"] for m in run.messages if m["type"] == "RECORD"})
    assert pages <= 520, "pages must not shrink while a STATE is put off"


def test_within_a_page_the_functions_own_rows_come_first():
    def rows():
        yield "b", {"id": 1}
        yield {"id": 1}

    tap = make(a=rows)
    tap.stream("b", emitted_by="a", key_properties="id", schema=FIELDS)
    run = run_tap(tap)
    assert [m["stream"] for m in run.messages if m["type"] == "RECORD"] == ["a", "b"]


# ---- errors of one stream -----------------------------------------------------------------------


def _bad_row():
    yield from ids(1, 2)
    yield {"id": "x"}
    yield {"id": 4}


def _exits():
    yield from ids(1)
    raise SystemExit(3)


def _raises_at_once():
    raise LookupError("at once")


@pytest.mark.parametrize(
    ("fn", "kind", "out"),
    [
        (_bad_row, BadRecordError, [1, 2]),
        (_exits, StreamError, [1]),
        (_raises_at_once, LookupError, []),
        (lambda: iter([{"id": 1}, 7]), StreamError, [1]),
        (lambda: iter([{"id": 1}, "row"]), StreamError, [1]),
        (lambda: 7, StreamError, []),
        (lambda: iter([{"id": 1}, ("nosuch", {"id": 2})]), StreamError, [1]),
    ],
)
def test_a_broken_stream_does_not_stop_the_others(fn: Any, kind: type[Exception], out: list[int]):
    run = run_tap(make(a=lambda: ids(1), bad=fn, z=lambda: ids(9)))
    assert list(run.result.errors) == ["bad"]
    assert isinstance(run.result.errors["bad"], kind)
    assert run.records("bad") == ids(*out)
    assert run.records("z") == ids(9)
    assert run.states[-1]["bookmarks"] == {"a": {"id": 1}, "z": {"id": 9}} | (
        {"bad": {"id": out[-1]}} if out and fn is not None and "nosuch" not in str(run.result.errors["bad"]) else {}
    )
    assert "currently_syncing" not in run.states[-1]


def test_an_unknown_stream_name_says_how_to_declare_it():
    run = run_tap(make(a=lambda: iter([("nosuch", {"id": 2})])))
    assert "tap.stream('nosuch', emitted_by='a'" in str(run.result.errors["a"])


def test_the_generator_is_closed_when_a_row_does_not_fit():
    closed = []

    def rows():
        try:
            yield {"id": "x"}
            yield from itertools.repeat({"id": 1}, 5000)
        finally:
            closed.append(True)

    run_tap(make(a=rows))
    assert closed == [True]


def test_the_generator_is_closed_when_it_raises_over_a_row_that_does_not_fit():
    closed = []

    class Pages:
        def __iter__(self):
            return self

        def __next__(self):
            if getattr(self, "n", 0):
                raise ValueError("boom")
            self.n = 1
            return {"id": "x"}

        def close(self):
            closed.append(True)

    run_tap(make(a=lambda: Pages()))
    assert closed == [True]


def test_an_error_while_closing_is_logged(caplog: pytest.LogCaptureFixture):
    def rows():
        try:
            yield {"id": "x"}
            yield {"id": 1}
        finally:
            raise ValueError("in finally")

    def pages():
        yield from ids(1)
        try:
            yield {"id": "x"}
        finally:
            pass

    run = run_tap(make(a=rows, b=pages), {"page_max_rows": 1})
    assert isinstance(run.result.errors["a"], BadRecordError)
    assert "ValueError: in finally" in caplog.text


# ---- a page of several streams ------------------------------------------------------------------


def _beside(bad_main: bool, bad_beside: bool) -> burler.Tap:
    def rows():
        for i in range(50):
            yield {"id": "x" if bad_main and i == 30 else i}
            yield "b", {"id": "x" if bad_beside and i == 20 else i}

    tap = make(a=(rows, {"bookmark_strategy": "every_n(1000)"}))
    tap.stream("b", emitted_by="a", key_properties="id", schema=FIELDS)
    return tap


def test_a_bad_row_does_not_take_the_rows_of_the_other_stream_with_it():
    run = run_tap(_beside(bad_main=True, bad_beside=False))
    assert {row["id"] for row in run.records("b")} >= set(range(30))


@pytest.mark.parametrize("bad", [{"bad_main": True, "bad_beside": False}, {"bad_main": False, "bad_beside": True}])
@pytest.mark.parametrize("page", [1, 7, 1000])
def test_the_bookmark_never_passes_a_row_that_is_not_out(bad: dict[str, bool], page: int):
    run = run_tap(_beside(**bad), {"page_max_rows": page})
    mark = run.states[-1].get("bookmarks", {}).get("a", {}).get("id")
    assert list(run.result.errors) == ["a"]
    for stream in ("a", "b"):
        assert {row["id"] for row in run.records(stream)} >= set(range(mark or 0)), (stream, mark)


def test_once_a_sink_has_failed_no_state_follows():
    """What was in the failed page is lost to the sink; a STATE after it would say it is not."""

    class Failing(MemorySink):
        def write(self, message):
            if isinstance(message, Records):
                raise StorageError("disk full")
            super().write(message)

    sink = Failing()
    tap = make(a=(lambda: iter([{"id": 1}, {"id": 2}]), {"bookmark_strategy": "every_n(1)"}))
    with pytest.raises(StorageError):
        run_into(tap, {}, sink)
    assert [message["type"] for message in sink.messages] == ["SCHEMA"]


def test_currently_syncing_can_be_switched_off():
    tap = make(a=lambda: iter([{"id": 1}]), b=lambda: iter([{"id": 2}]))
    run = run_tap(tap, {"currently_syncing": False}, state={"currently_syncing": "b"})
    assert all("currently_syncing" not in state for state in run.states) and run.states
