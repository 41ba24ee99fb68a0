"""Bookmarks, stream.state and currently_syncing: what a STATE says."""

from __future__ import annotations

from typing import Any

import pytest
from taps import AT, FIELDS, ids, make

import burler
from burler.errors import StreamError, UnsortedStreamError
from burler.testing import run_tap

# ---- bookmarks ----------------------------------------------------------------------------------


def test_an_exception_after_9000_sorted_rows():
    def rows():
        yield from ids(*range(9000))
        raise RuntimeError("boom")

    run = run_tap(make(a=rows, b=lambda: ids(1)))
    assert [row["id"] for row in run.records("a")] == list(range(9000))
    last = run.types.index("STATE")
    assert run.types[:last].count("RECORD") == 9000
    assert run.states[0]["bookmarks"]["a"] == {"id": 8999}
    assert run.records("b") == ids(1)
    assert run.states[-1] == {"bookmarks": {"a": {"id": 8999}, "b": {"id": 1}}}
    assert list(run.result.errors) == ["a"]
    assert run.result.exit_code == 1


def test_an_exception_in_an_unsorted_stream_leaves_the_bookmark():
    def rows():
        yield from ids(7, 9, 8)
        raise RuntimeError("boom")

    run = run_tap(make(a=(rows, {"order": None})), state={"bookmarks": {"a": {"id": 5}}})
    assert run.records("a") == ids(7, 9, 8)
    assert run.states[-1] == {"bookmarks": {"a": {"id": 5}}}


def test_an_unsorted_stream_moves_at_its_end_and_never_back():
    run = run_tap(make(a=(lambda: ids(3, 9, 4), {"order": None})), state={"bookmarks": {"a": {"id": 2}}})
    assert run.states == [{"bookmarks": {"a": {"id": 9}}}]
    run = run_tap(make(a=(lambda: ids(3), {"order": None})), state={"bookmarks": {"a": {"id": 50}}})
    assert run.states == [{"bookmarks": {"a": {"id": 50}}}]


@pytest.mark.parametrize("start", [None, 5])
def test_broken_order_puts_the_bookmark_back_to_where_the_run_began(start: int | None):
    def rows():
        yield from ids(*range(10, 110))
        yield from ids(3)

    state = {"bookmarks": {"a": {"id": start}}} if start else None
    run = run_tap(make(a=(rows, {"bookmark_strategy": "every_n(10)"})), state=state)
    assert run.states[9]["bookmarks"]["a"]["id"] == 109
    assert run.states[-1].get("bookmarks", {}) == ({"a": {"id": start}} if start else {})
    error = run.result.errors["a"]
    assert isinstance(error, UnsortedStreamError)
    assert "109" in str(error)
    assert "3" in str(error)


def test_bookmark_function_gives_the_value():
    tap = burler.tap("tap-t")

    @tap.sync("a", order="asc", bookmark_strategy="every_n(1)")
    def rows(stream):
        assert stream.bookmark == "2024-01-01T00:00:00Z"
        yield {"id": 1, "at": "2024-01-02T00:00:00Z"}
        yield {"id": 2, "at": "2024-01-03T00:00:00Z"}

    @tap.bookmark("a")
    def of(record, state, stream):
        assert stream.name == "a"
        return record["at"]

    tap.schema("a", FIELDS)
    run = run_tap(tap, state={"bookmarks": {"a": {"bookmark": "2024-01-01T00:00:00Z"}}})
    assert [state["bookmarks"]["a"]["bookmark"][:10] for state in run.states[:2]] == ["2024-01-02", "2024-01-03"]


def test_a_bookmark_function_that_fails_keeps_rows_and_a_safe_bookmark():
    tap = make(a=lambda: ids(1, 2, 3, 4))

    @tap.bookmark("a")
    def of(record):
        return 10 // (3 - record["id"]) and record["id"]

    run = run_tap(tap)
    assert [row["id"] for row in run.records("a")][:2] == [1, 2]
    assert run.states[-1] == {"bookmarks": {"a": {"id": 2}}}
    assert "ZeroDivisionError" in str(run.result.errors["a"])


FIRST = "2024-01-01T00:00:00Z"


def test_start_date_is_the_first_bookmark_and_the_state_wins():
    seen = []

    def rows(stream):
        seen.append(stream.bookmark)
        return []

    later = "2024-02-01T00:00:00Z"
    config = {"start_date": FIRST}
    run_tap(make(a=(rows, AT)), config)
    run_tap(make(a=(rows, AT)), config, state={"bookmarks": {"a": {"at": later}}})
    run_tap(make(a=(rows, {"replication_key": None, "order": None})), config)
    assert seen == [FIRST, later, None]


@pytest.mark.parametrize(
    ("types", "first"),
    [("integer", None), (["null", "number"], None), (["integer", "string"], FIRST), ("string", FIRST), (None, FIRST)],
)
def test_start_date_says_nothing_of_a_key_that_is_a_number(types: Any, first: str | None):
    seen = []
    tap = burler.tap("tap-t")
    schema = {"properties": {"seq": {} if types is None else {"type": types}}}
    tap.sync("events", replication_key="seq", schema=schema)(lambda stream: seen.append(stream.bookmark) or [])
    run_tap(tap, {"start_date": FIRST})
    assert seen == [first]


def test_start_date_alone_is_no_bookmark_in_the_state():
    run = run_tap(make(a=lambda: []), {"start_date": "2024-01-01T00:00:00Z"})
    assert run.states[-1].get("bookmarks", {}) == {}


def test_a_bookmark_in_the_state_of_another_kind_is_one_error_of_that_stream():
    run = run_tap(make(a=lambda: ids(1), b=lambda: ids(1)), state={"bookmarks": {"a": {"id": "x"}}})
    assert isinstance(run.result.errors["a"], StreamError)
    assert run.records("b") == ids(1)
    assert run.states[-1]["bookmarks"]["a"] == {"id": "x"}


# ---- stream.state -------------------------------------------------------------------------------


def test_stream_state_comes_back_and_is_saved():
    def rows(stream):
        assert stream.state == {"page": 3}
        yield {"id": 1}
        stream.state["page"] = 4
        yield {"id": 2}
        stream.state = {"page": 5}

    start = {"bookmarks": {"a": {"stream_state": {"page": 3}}}}
    run = run_tap(make(a=rows), state=start)
    assert run.states[-1]["bookmarks"]["a"] == {"stream_state": {"page": 5}, "id": 2}
    assert start == {"bookmarks": {"a": {"stream_state": {"page": 3}}}}


@pytest.mark.parametrize("value", [object(), {1: object()}, "self"])
def test_stream_state_that_is_no_json(value: Any):
    def rows(stream):
        yield {"id": 1}
        stream.state["x"] = stream.state if value == "self" else value
        yield {"id": 2}

    run = run_tap(make(a=rows, b=lambda: ids(1)))
    assert "stream.state must hold JSON values only" in str(run.result.errors["a"])
    assert "test_bookmarks.py:" in str(run.result.errors["a"])
    assert run.records("a") == ids(1, 2)
    assert "stream_state" not in run.states[0]["bookmarks"]["a"]
    assert run.records("b") == ids(1)


def test_what_an_author_writes_into_the_state_parameter_stays_out_of_the_output():
    def rows(state):
        state.setdefault("bookmarks", {})["a"] = {"id": 1000, "mine": 1}
        yield {"id": 1}

    run = run_tap(make(a=(rows, {"order": None})))
    assert run.states == [{"bookmarks": {"a": {"id": 1}}}]


def test_unknown_keys_of_the_state_are_carried():
    start = {"bookmarks": {"a": {"id": 1, "other": [1]}, "gone": {"x": 1}}, "more": 1}
    run = run_tap(make(a=lambda: ids(2)), state=start)
    assert run.states[-1] == {"bookmarks": {"a": {"id": 2, "other": [1]}, "gone": {"x": 1}}, "more": 1}


# ---- currently_syncing --------------------------------------------------------------------------


def test_currently_syncing_names_the_stream_then_the_next_then_nothing():
    def rows():
        yield from ids(1, 2)

    options = {"bookmark_strategy": "every_n(1)"}
    run = run_tap(make(a=(rows, options), b=(rows, options)))
    assert [state.get("currently_syncing") for state in run.states] == ["a", "a", "b", "b", "b", None]
    assert "currently_syncing" not in run.states[-1]


def test_a_run_goes_on_with_the_stream_that_the_last_one_was_in():
    streams = {name: (lambda: ids(1)) for name in "abc"}
    order = [
        m["stream"]
        for m in run_tap(make(**streams), state={"currently_syncing": "b"}).messages
        if m["type"] == "SCHEMA"
    ]
    assert order == ["b", "c", "a"]
    assert [
        m["stream"]
        for m in run_tap(make(**streams), state={"currently_syncing": "x"}).messages
        if m["type"] == "SCHEMA"
    ] == ["a", "b", "c"]
