"""Calls of substreams that fail: the others go on, no bookmark passes what is missing, and the next run brings it."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest
from failing import (
    COUNT,
    FORMS,
    Fails,
    assert_going_on_brings_all,
    bad_row_for,
    call_for,
    everything,
    family,
    healthy,
    rows_of,
    uid_of,
)
from families import CHILD, PARENT, failures_of

import burler
from burler.testing import run_tap
from support.pairs import pairs

BUFFERS = [1, 2, 100]


def lacks(stream: str, **fields: int) -> set[Any]:
    """The rows below one parent: those that can't be there when its call fails."""
    i = fields.get("parent", fields["id"])
    if stream == "siblings":
        return {("siblings", (i, 0))}
    if stream == "grandchildren":
        return {("grandchildren", (i, fields["id"], g)) for g in (0, 1)}
    return {one for one in everything() if one[1][0] == i and one[0] in ("children", "grandchildren")}


CALLS = [
    ("children", {"id": 0}),
    ("children", {"id": 2}),
    ("children", {"id": COUNT - 1}),
    ("siblings", {"id": 3}),
    ("grandchildren", {"parent": 0, "id": 0}),
    ("grandchildren", {"parent": 2, "id": 1}),
    ("grandchildren", {"parent": COUNT - 1, "id": 1}),
]


@pytest.mark.parametrize(("call", "form", "buffer", "keyed"), pairs(CALLS, FORMS, BUFFERS, [False, True]), ids=str)
def test_a_call_that_fails_stops_no_other_and_holds_the_bookmarks_above(
    call: tuple[str, dict[str, int]], form: str, buffer: int, keyed: bool
):
    stream, fields = call
    config = {"parent_buffer_rows": buffer, "page_max_rows": 1}
    run = run_tap(family(form, call_for(stream, **fields), keyed=keyed), config)
    assert list(run.result.errors) == [stream]
    [failure] = failures_of(run, stream)
    above = "children" if stream == "grandchildren" else "parents"
    assert failure.where.startswith(f"parent {above} ")
    assert str(failure.error) == f"no {stream} of {fields}"
    assert rows_of(run) == everything() - lacks(stream, **fields)
    last = run.states[-1].get("bookmarks", {}).get("parents", {})
    failed = fields.get("parent", fields["id"])
    lot = failed // buffer * buffer  # the first parent of those that were read ahead together
    if form == "function":
        assert last == {"bookmark": failed}
    elif form == "children":
        assert last == ({"key": lot - 1} if lot else {}), "what the function says depends on what is missing"
    elif form == "position":
        assert lot - 1 <= last.get("stream_state", {}).get("next", 0) <= failed
    else:
        assert last.get("key") == failed, "as far as it can go, and no further"
    assert_going_on_brings_all(run, form, keyed=keyed)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("buffer", BUFFERS)
def test_of_several_failures_the_foremost_counts(form: str, buffer: int):
    def fails(stream: str, parent: Any) -> None:
        for one, fields in (
            ("children", {"id": 4}),
            ("grandchildren", {"parent": 1, "id": 0}),
            ("siblings", {"id": 2}),
        ):
            call_for(one, **fields)(stream, parent)

    run = run_tap(family(form, fails), {"parent_buffer_rows": buffer})
    assert sorted(run.result.errors) == ["children", "grandchildren", "siblings"]
    for stream in run.result.errors:
        assert len(failures_of(run, stream)) == 1
    if form in ("asc", "none", "every row"):
        assert run.states[-1]["bookmarks"]["parents"] == {"key": 1}
    assert_going_on_brings_all(run, form)


@pytest.mark.parametrize("form", FORMS)
def test_while_a_call_goes_on_failing_what_is_new_comes_and_nothing_is_given_up(form: str):
    """Three runs of a growing source in which the children of one parent can't be had; then they can."""
    state: dict[str, Any] | None = None
    got: set[Any] = set()
    for count in (3, 5, 6):
        run = run_tap(family(form, call_for("children", id=1), count=count), state=state)
        assert list(run.result.errors) == ["children"]
        got |= rows_of(run)
        assert got >= everything(count) - lacks("children", id=1)
        state = run.states[-1]
    last = run_tap(family(form), state=state)
    assert got | rows_of(last) == everything()
    assert not last.result.errors
    again = run_tap(family(form), state=last.states[-1])
    assert len(rows_of(again)) < len(everything()), "the bookmark is free again"


@pytest.mark.parametrize("form", ["asc", "position", "position and key"])
def test_a_failure_of_a_later_run_leaves_what_was_saved_before(form: str):
    first = run_tap(family(form, count=3))
    run = run_tap(family(form, call_for("children", id=4)), {"parent_buffer_rows": 1}, state=first.states[-1])
    assert_going_on = run_tap(family(form), state=run.states[-1])
    assert rows_of(first) | rows_of(run) | rows_of(assert_going_on) == everything()
    entry, before = (one.states[-1]["bookmarks"]["parents"] for one in (run, first))
    if "key" in entry:
        assert before["key"] <= entry["key"] <= 4
    if "stream_state" in entry:
        assert before["stream_state"]["next"] <= entry["stream_state"]["next"] <= 4


def test_a_call_that_fails_again_when_the_bookmark_is_at_its_parent_keeps_it_there():
    state = {"bookmarks": {"parents": {"key": 2}, **{one: {"parent_bookmark": {"key": 2}} for one in SUBSTREAMS}}}
    run = run_tap(family("asc", call_for("children", id=2)), state=state)
    assert [row["id"] for row in run.records("parents")] == [2, 3, 4, 5]
    assert run.states[-1]["bookmarks"]["parents"] == {"key": 2}


SUBSTREAMS = ("children", "siblings", "grandchildren")


@pytest.mark.parametrize(
    "error",
    [
        ValueError("x"),
        SystemExit(1),
        StopIteration(),
        KeyError("parent"),
        RecursionError(),
        AssertionError(),
        asyncio.CancelledError(),
        OSError(5),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_a_child_raises_is_its_own_failure(error: BaseException):
    def fails(stream: str, parent: Any) -> None:
        if stream == "siblings":
            raise error

    run = run_tap(family("asc", fails))
    assert list(run.result.errors) == ["siblings"]
    assert [failure.where for failure in failures_of(run, "siblings")] == [
        f"parent parents id={i}" for i in range(COUNT)
    ]
    assert rows_of(run) == {one for one in everything() if one[0] != "siblings"}


def test_rows_that_came_before_the_failure_are_out():
    tap = burler.tap("tap-family")
    tap.sync("parents", key_properties="id", schema=PARENT)(lambda: [{"id": i} for i in range(3)])

    @tap.sync("children", parent="parents", schema=CHILD)
    def children(parent):
        for k in range(4):
            if (parent["id"], k) == (1, 3):
                raise TimeoutError("slow")
            yield {"id": k, "parent": parent["id"]}

    run = run_tap(tap)
    assert [uid_of("children", row)[1] for row in run.records("children")] == [
        *((0, k) for k in range(4)),
        *((1, k) for k in range(3)),
        *((2, k) for k in range(4)),
    ]


def test_the_run_of_other_streams_is_no_matter_of_a_childs_failure():
    tap = family("asc", lambda stream, parent: sys.exit("all of them"))
    tap.sync("other", key_properties="id", schema=PARENT)(lambda: [{"id": 1}])
    run = run_tap(tap)
    assert sorted(run.result.errors) == ["children", "siblings"]
    assert run.records("other") == [{"id": 1}]
    assert run.result.exit_code == 1
    assert len(run.records("parents")) == COUNT


def test_full_tables_below_which_something_is_missing_are_not_activated():
    """Targets would drop the rows that could not be had this time."""

    def activated(fails: Fails) -> set[str]:
        names = ("parents", "children", "siblings", "grandchildren")
        run = run_tap(family("position", fails), state={"bookmarks": {name: {"version": 1} for name in names}})
        return {m["stream"] for m in run.messages if m["type"] == "ACTIVATE_VERSION"}

    assert activated(healthy) == {"parents", "children", "siblings", "grandchildren"}
    assert activated(call_for("children", id=2)) == {"parents", "siblings"}
    assert activated(call_for("grandchildren", parent=2)) == {"parents", "children", "siblings"}
    assert activated(call_for("siblings", id=2)) == {"parents", "children", "grandchildren"}
    assert activated(bad_row_for("children", id=2)) == {"parents", "siblings"}
