"""A substream that was left out for a while gets what came meanwhile: its entry says how far its parent had come."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from families import CHILD, PARENT

import burler
from burler.testing import run_tap
from support.internals import signals


def test_a_child_that_is_selected_later_gets_its_past():
    """The bookmark of the parent speaks of the parent alone as long as the child was not selected."""
    first = run_tap(three_incremental(), select="parents")
    assert first.states[-1]["bookmarks"]["parents"] == {"key": 4}
    second = run_tap(three_incremental(), select="parents,children", state=first.states[-1])
    assert {row["parent"] for row in second.records("children")} == {0, 1, 2, 3, 4}


def test_the_log_says_for_whom_a_parent_begins_before_its_bookmark(caplog):
    caplog.set_level("INFO", logger="burler")
    first = run_tap(three_incremental(), select="parents")
    second = run_tap(three_incremental(), state=first.states[-1])
    said = "stream 'parents': begins before its bookmark 4, since 'children' has not had what lies before it"
    assert [one.getMessage() for one in caplog.records].count(said) == 1
    caplog.clear()
    run_tap(three_incremental(), state=second.states[-1])
    assert said not in caplog.text


def test_the_log_names_those_alone_that_have_missed_something(caplog):
    caplog.set_level("INFO", logger="burler")

    def two() -> burler.Tap:
        tap = three_incremental()
        tap.sync("notes", parent="parents", schema=CHILD)(lambda parent: [{"id": 2, "parent": parent["id"]}])
        return tap

    first = run_tap(two(), select="parents,children")
    run_tap(two(), state=first.states[-1])
    said = [one.getMessage() for one in caplog.records if "begins before its bookmark" in one.getMessage()]
    assert said == ["stream 'parents': begins before its bookmark 4, since 'notes' has not had what lies before it"]


def test_a_child_that_was_left_out_for_a_while_gets_what_it_missed():
    whole = run_tap(three_incremental(3))
    without = run_tap(three_incremental(5), select="parents", state=whole.states[-1])
    assert [row["id"] for row in without.records("parents")] == [2, 3, 4]
    again = run_tap(three_incremental(6), state=without.states[-1])
    assert [row["parent"] for row in again.records("children")] == [2, 3, 4, 5]
    after = run_tap(three_incremental(6), state=again.states[-1])
    assert [row["parent"] for row in after.records("children")] == [5]


def three_incremental(count: int = 5) -> burler.Tap:
    tap = burler.tap("tap-family")
    parents = tap.stream("parents", key_properties="id", replication_key="key", order="asc", schema=PARENT)
    parents.sync(lambda stream: [{"id": i, "key": i} for i in range(stream.bookmark or 0, count)])
    parents.substream("children", schema=CHILD).sync(lambda parent: [{"id": 1, "parent": parent["id"]}])
    return tap


def keyed(rows: list[dict[str, Any]], *, own_position: bool = False, key: str | None = "key") -> burler.Tap:
    """A parent that reads on from its bookmark, or from a position of its own, and one substream."""
    tap = burler.tap("tap-family")
    schema = {"type": "object", "properties": {name: {"type": "integer"} for name in ("id", "key", "seq")}}

    @tap.sync("parents", key_properties="id", replication_key=key, order="asc" if key else "none", schema=schema)
    def parents(stream):
        start = stream.state.get("at", -1) if own_position else (stream.bookmark if stream.bookmark is not None else -1)
        name = stream.replication_key or "key"
        for row in sorted(rows, key=lambda row: row[name]):
            if row[name] >= start:
                yield dict(row)
                if own_position:
                    stream.state["at"] = row[name] + 1

    tap.sync("children", parent="parents", schema=CHILD)(lambda parent: [{"id": 1, "parent": parent["id"]}])
    return tap


def three(n: int) -> list[dict[str, Any]]:
    return [{"id": i, "key": i, "seq": 100 - i} for i in range(n)]


@pytest.mark.parametrize("key", ["key", None])
def test_a_position_of_the_parents_own_does_not_hide_a_substreams_past(key: str | None):
    first = run_tap(keyed(three(5), own_position=True, key=key), select="parents")
    second = run_tap(keyed(three(7), own_position=True, key=key), state=first.states[-1])
    assert {row["parent"] for row in second.records("children")} == set(range(7))
    third = run_tap(keyed(three(9), own_position=True, key=key), select="parents", state=second.states[-1])
    assert [row["id"] for row in third.records("parents")] == [7, 8]
    fourth = run_tap(keyed(three(11), own_position=True, key=key), state=third.states[-1])
    assert {row["parent"] for row in fourth.records("children")} >= {7, 8, 9, 10}
    fifth = run_tap(keyed(three(11), own_position=True, key=key), state=fourth.states[-1])
    assert fifth.records("children") == [] or key is None


def test_a_bookmark_of_another_key_is_no_position():
    """7 of 'key' and 7 of 'seq' have nothing to do with each other."""
    tap = keyed(three(5))
    state = run_tap(tap).states[-1]
    assert state["bookmarks"]["children"] == {"parent_bookmark": {"key": 4}}
    state["bookmarks"]["children"] = {"parent_bookmark": {"seq": 4}}
    again = run_tap(keyed(three(6)), state=state)
    assert {row["parent"] for row in again.records("children")} == set(range(6))


def test_a_mark_of_another_kind_is_no_position():
    state = run_tap(keyed(three(5))).states[-1]
    state["bookmarks"]["children"] = {"parent_bookmark": {"key": "2024-01-01T00:00:00Z"}}
    again = run_tap(keyed(three(6)), state=state)
    assert not again.result.errors
    assert {row["parent"] for row in again.records("children")} == set(range(6))


def test_a_substream_alone_moves_on_and_the_parent_stays_where_it_was():
    state = run_tap(keyed(three(3)), select="parents").states[-1]
    alone = run_tap(keyed(three(6)), select="children", state=state)
    assert {row["parent"] for row in alone.records("children")} == set(range(6)) and not alone.records("parents")
    assert alone.states[-1]["bookmarks"] == {"parents": {"key": 2}, "children": {"parent_bookmark": {"key": 5}}}
    more = run_tap(keyed(three(8)), select="children", state=alone.states[-1])
    assert {row["parent"] for row in more.records("children")} == {5, 6, 7}
    both = run_tap(keyed(three(9)), state=more.states[-1])
    assert [row["id"] for row in both.records("parents")] == list(range(2, 9))


@pytest.mark.parametrize("order", ["none", "asc"])
def test_a_call_that_ends_since_it_was_told_to_is_not_whole(order: str):
    """It runs in a thread, where no signal interrupts it, and looks whether it is to end, as docs/tail.md advises."""
    stopper, integer = signals.Stopper(), {"type": "integer"}
    tap = burler.tap("tap-family")
    schema = {"properties": {"part": integer, "key": integer, "n": integer}}
    tap.partitions("parents")(lambda: [{"part": 0}, {"part": 1}])

    @tap.sync("parents", key_properties=["part", "key"], replication_key="key", order=order, workers=2, schema=schema)
    def parents(partition, stream):
        keys = (1, 2, 3) if order == "asc" else (3, 2, 1)
        yield from ({**partition, "key": key} for key in keys if stream.bookmark is None or key >= stream.bookmark)

    @tap.sync("children", parent="parents", key_properties=["part", "key", "n"], schema=schema)
    def children(parent, stream):
        yield {**parent, "n": 0}
        if parent["key"] == (3 if order == "asc" else 1) and waits:
            if parent["part"] == 0:
                threading.Timer(0.2, lambda: stopper.handle(15, None)).start()
            if stream.wait(60):
                return
        yield {**parent, "n": 1}

    waits = [True]
    first = run_tap(tap, stopper=stopper)
    waits.clear()
    second = run_tap(tap, state=first.states[-1] if first.states else None)
    got = {(row["part"], row["key"], row["n"]) for run in (first, second) for row in run.records("children")}
    assert got == {(part, key, n) for part in (0, 1) for key in (1, 2, 3) for n in (0, 1)}
