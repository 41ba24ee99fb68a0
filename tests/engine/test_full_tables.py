"""``with stream.full_table()`` and ``stream.not_modified()``: what targets may drop, and what they may not."""

from __future__ import annotations

import contextlib
import logging
from typing import Any

import pytest
from taps import FIELDS, ids

import burler
from burler.testing import run_tap, without_times
from support.internals import signals

OLD = {"bookmarks": {"t": {"version": 5}}}


def table(fn: Any, **options: Any) -> burler.Tap:
    tap = burler.tap("tap-t")
    tap.sync("t", **{"key_properties": "id", "schema": FIELDS, **options})(fn)
    return tap


def wire(run: Any) -> list[Any]:
    """``(id, version)`` of rows, ``version`` of ACTIVATE_VERSION, with versions counted from 1."""
    out: list[Any] = []
    for message in without_times(run.messages):
        if message["type"] == "RECORD":
            out.append((message["record"]["id"], message.get("version")))
        if message["type"] == "ACTIVATE_VERSION":
            out.append(message["version"])
    return out


def activated(run: Any) -> list[int]:
    return [m["version"] for m in run.messages if m["type"] == "ACTIVATE_VERSION"]


# ---- the block --------------------------------------------------------------------------------------------


def block(*numbers: int, behind: Any = (), before: Any = ()) -> Any:
    def rows(stream):
        yield from ids(*before)
        with stream.full_table():
            yield from ids(*numbers)
        yield from ids(*behind)

    return rows


@pytest.mark.parametrize("page", [1, 1000])
def test_a_block_in_an_incremental_stream(page: int):
    """Only rows inside belong to the table; the first version is told before its rows, too."""
    tap = table(block(1, 2, before=[0], behind=[3]), replication_key="id", order="asc")
    run = run_tap(tap, {"page_max_rows": page})
    assert wire(run) == [(0, None), 1, (1, 1), (2, 1), 1, (3, None)]
    assert run.states[-1]["bookmarks"]["t"] == {"id": 3, "version": activated(run)[-1]}


def test_a_later_block_is_told_behind_its_rows_alone():
    run = run_tap(table(block(1, 2), replication_key="id"), state=OLD)
    versions = activated(run)
    assert len(versions) == 1
    assert versions[0] > 5
    assert run.types == ["SCHEMA", "RECORD", "RECORD", "ACTIVATE_VERSION", "STATE"]
    assert {m["version"] for m in run.messages if m["type"] == "RECORD"} == set(versions)


def test_two_blocks_have_two_versions():
    def rows(stream):
        for number in (1, 2):
            with stream.full_table():
                yield from ids(number)

    run = run_tap(table(rows, replication_key="id"), state=OLD)
    assert wire(run) == [(1, 1), 1, (2, 2), 2]
    assert activated(run) == sorted(set(activated(run)))


def test_the_block_takes_over_where_versions_are_automatic():
    run = run_tap(table(block(1, 2)))
    assert wire(run) == [1, (1, 1), (2, 1), 1]
    again = run_tap(table(block(1, 2)), state=run.states[-1])
    assert wire(again) == [(1, 1), (2, 1), 1]
    assert activated(again)[0] > activated(run)[0]


def test_rows_before_the_block_of_a_full_table_survive_it():
    """What stands outside has the version that is activated, or none: a target must not drop it at once."""
    run = run_tap(table(block(1, before=[0], behind=[2])), state=OLD)
    last = activated(run)[-1]
    kept = [m["record"]["id"] for m in run.messages if m["type"] == "RECORD" and m.get("version") in (None, last)]
    assert 1 in kept
    assert 2 in kept


@pytest.mark.parametrize("error", [ConnectionError, SystemExit])
@pytest.mark.parametrize("method", [{}, {"replication_key": "id", "order": "asc"}])
def test_a_block_that_breaks_off_activates_nothing(error: Any, method: dict[str, Any]):
    def rows(stream):
        with stream.full_table():
            yield from ids(1)
            raise error

    run = run_tap(table(rows, **method), state=OLD)
    assert activated(run) == []
    assert run.states[-1]["bookmarks"]["t"]["version"] == 5
    assert "t" in run.result.errors


def test_a_block_that_is_left_by_return_has_come_to_its_end():
    """Python tells a block no difference; who breaks off raises."""

    def rows(stream):
        with stream.full_table():
            yield from ids(1)
            return

    run = run_tap(table(rows, replication_key="id"), state=OLD)
    assert wire(run) == [(1, 1), 1]


def test_an_error_that_the_function_catches_around_its_block():
    def rows(stream):
        try:
            with stream.full_table():
                yield from ids(1)
                raise ConnectionError
        except ConnectionError:
            yield from ids(2)

    run = run_tap(table(rows, replication_key="id"), state=OLD)
    assert not run.result.errors
    assert activated(run) == []
    assert [row["id"] for row in run.records("t")] == [1, 2]
    assert run.states[-1]["bookmarks"]["t"] == {"id": 2, "version": 5}


def test_an_error_behind_the_block_does_not_take_the_table_back():
    def rows(stream):
        with stream.full_table():
            yield from ids(1, 2)
        yield from ids(3)
        raise ConnectionError

    run = run_tap(table(rows, replication_key="id", order="asc"), state=OLD)
    assert len(activated(run)) == 1
    assert run.states[-1]["bookmarks"]["t"] == {"id": 3, "version": activated(run)[0]}


def test_a_bad_row_inside_activates_nothing():
    def rows(stream):
        with stream.full_table():
            yield from ids(1)
            yield {"id": "x"}
            yield from ids(2)

    run = run_tap(table(rows, replication_key="id"), state=OLD)
    assert activated(run) == []
    assert run.states[-1]["bookmarks"]["t"]["version"] == 5


def test_a_stop_inside_activates_nothing():
    stopper = signals.Stopper()

    def rows(stream):
        with stream.full_table():
            yield from ids(1)
            stopper.handle(15, None)
            yield from ids(2)

    run = run_tap(table(rows, replication_key="id"), state=OLD, stopper=stopper)
    assert activated(run) == []
    assert run.states[-1]["bookmarks"]["t"]["version"] == 5


def test_a_stop_that_the_function_eats_inside_activates_nothing():
    stopper = signals.Stopper()

    def rows(stream):
        with stream.full_table():
            yield from ids(1)
            with contextlib.suppress(BaseException):
                stopper.handle(15, None)
            yield from ids(2)

    run = run_tap(table(rows, replication_key="id"), state=OLD, stopper=stopper)
    assert activated(run) == []


def test_a_limit_activates_nothing():
    run = run_tap(table(block(1, 2, 3), replication_key="id"), limit=3)
    assert activated(run) == []
    assert [row["id"] for row in run.records("t")] == [1, 2, 3]


def test_an_operator_who_wants_no_versions_gets_none():
    run = run_tap(table(block(1, 2)), {"full_table_versions": False})
    assert run.types == ["SCHEMA", "RECORD", "RECORD", "STATE"]
    assert wire(run) == [(1, None), (2, None)]


def test_a_block_that_is_entered_while_another_is_open_is_refused_or_one_table():
    """Targets must never drop rows of the outer one behind the inner one's end."""

    def rows(stream):
        with stream.full_table():
            yield from ids(1)
            with stream.full_table():
                yield from ids(2)
            yield from ids(3)

    run = run_tap(table(rows, replication_key="id"), state=OLD)
    held: dict[int, int | None] = {}
    for message in run.messages:
        if message["type"] == "RECORD":
            held[message["record"]["id"]] = message.get("version")
        if message["type"] == "ACTIVATE_VERSION":
            held = {one: version for one, version in held.items() if version in (None, message["version"])}
    assert "t" in run.result.errors or {1, 2, 3} <= set(held)


# ---- nothing has changed ------------------------------------------------------------------------------------


def unchanged(stream: Any) -> Any:
    stream.not_modified()
    return []


def test_not_modified_keeps_the_table_and_its_version():
    run = run_tap(table(unchanged), state=OLD)
    assert run.types == ["SCHEMA", "STATE"]
    assert run.states == [OLD]
    assert not run.result.errors


def test_not_modified_in_a_first_run_activates_nothing_behind_it():
    """There was no table; none is made of nothing."""
    run = run_tap(table(unchanged))
    assert run.states[-1].get("bookmarks", {}) == {}
    whole = run_tap(table(lambda: ids(1)), state=run.states[-1])
    assert activated(whole)[-1] == whole.states[-1]["bookmarks"]["t"]["version"]


def test_without_a_word_an_empty_table_is_empty():
    run = run_tap(table(lambda: []), state=OLD)
    assert run.types == ["SCHEMA", "ACTIVATE_VERSION", "STATE"]


def test_a_position_is_saved_with_it():
    def rows(stream):
        stream.state["etag"] = "v2"
        stream.not_modified()
        return []

    run = run_tap(table(rows), state=OLD)
    assert run.states[-1]["bookmarks"]["t"] == {"version": 5, "stream_state": {"etag": "v2"}}


def test_not_modified_speaks_of_one_run_only():
    turns = iter([True, False])

    def rows(stream):
        if next(turns):
            stream.not_modified()
        else:
            yield from ids(1)

    tap = table(rows)
    first = run_tap(tap, state=OLD)
    second = run_tap(tap, state=first.states[-1])
    assert activated(first) == []
    assert len(activated(second)) == 1


def test_not_modified_of_an_emitting_stream_speaks_of_itself_alone():
    def rows(stream):
        stream.not_modified()
        yield "u", {"id": 7}

    tap = table(rows)
    tap.stream("u", emitted_by="t", schema=FIELDS)
    run = run_tap(tap, state={"bookmarks": {"t": {"version": 5}, "u": {"version": 6}}})
    assert [m["stream"] for m in run.messages if m["type"] == "ACTIVATE_VERSION"] == ["u"]
    assert run.states[-1]["bookmarks"]["t"] == {"version": 5}


def test_rows_that_were_said_to_be_none_are_no_table(caplog: pytest.LogCaptureFixture):
    """A function that says 304 and yields rows all the same: they come, nothing is dropped for them."""

    def rows(stream):
        stream.not_modified()
        yield from ids(1)

    with caplog.at_level(logging.WARNING):
        run = run_tap(table(rows), state=OLD)
    assert run.records("t") == ids(1)
    assert activated(run) == []


def test_not_modified_and_an_incremental_stream():
    run = run_tap(table(unchanged, replication_key="id"), state={"bookmarks": {"t": {"id": 5}}})
    assert run.states == [{"bookmarks": {"t": {"id": 5}}}]
