"""Substreams below partitions: each partition's entry says which streams it is true of (``covers``)."""

from __future__ import annotations

from typing import Any

import pytest
from parts import entry_of, given, key_of, marks, numbers, partitioned, row

import burler
from burler.testing import run_tap

SOURCE = {"a": [1, 2], "b": [3, 4]}
NOTE: dict[str, Any] = {
    "type": "object",
    "properties": {"account": {"type": "string"}, "of": {"type": "integer"}, "id": {"type": "integer"}},
}


def family(source: Any = SOURCE, broken: Any = (), seen: list[Any] | None = None, **options: Any) -> burler.Tap:
    """Rows in partitions; each has two notes, and each note a like. Notes fail for the rows in ``broken``."""
    tap = partitioned(source, **{"bookmark_strategy": "every_n(1)", **options})

    @tap.sync("notes", parent="rows", key_properties=["account", "of", "id"], schema=NOTE)
    def notes(parent, partition, stream):
        assert partition == stream.partition == {"account": parent["account"]}
        if seen is not None:
            seen.append((parent["account"], parent["id"]))
        if parent["id"] in broken:
            raise ConnectionError("gone")
        for number in (1, 2):
            yield {"account": parent["account"], "of": parent["id"], "id": number}

    @tap.sync("likes", parent="notes", schema=NOTE)
    def likes(parent):
        yield {"account": parent["account"], "of": parent["of"], "id": parent["id"] * 10}

    return tap


def noted(run: Any, stream: str = "notes") -> set[tuple[str, int]]:
    return {(one["account"], one["of"]) for one in run.records(stream)}


ALL = {("a", 1), ("a", 2), ("b", 3), ("b", 4)}


@pytest.mark.parametrize("workers", [1, 2])
def test_substreams_come_for_each_row_of_each_partition(workers: int):
    run = run_tap(family(workers=workers))
    assert not run.result.errors
    assert noted(run) == noted(run, "likes") == ALL
    assert len(run.records("notes")) == len(run.records("likes")) == 8
    assert marks(run.states[-1]) == {"a": 2, "b": 4}


def test_entries_say_which_streams_they_are_true_of():
    def covers(select: str) -> Any:
        entry = entry_of(run_tap(family(), select=select).states[-1])["partitions"][key_of("a")]
        return entry.get("covers")

    assert covers("rows,notes,likes") == ["likes", "notes", "rows"]
    assert covers("rows,notes") == ["notes", "rows"]
    assert covers("rows") is None
    assert covers("notes") == ["notes"]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("first", "then"), [("rows", "rows,notes"), ("rows,notes", "rows,notes,likes"), ("notes", "*")]
)
def test_a_substream_that_is_selected_later_misses_nothing(first: str, then: str, workers: int):
    before = run_tap(family(workers=workers), select=first)
    after = run_tap(family(workers=workers), select=then, state=before.states[-1])
    late = {"rows,notes": "notes"}.get(then, "likes")
    assert noted(after, late) == ALL


def test_the_same_streams_go_on_where_they_were():
    first = run_tap(family())
    more = {"a": [1, 2, 9], "b": [3, 4]}
    second = run_tap(family(more), state=first.states[-1])
    assert second.records("rows") == [row("a", 2), row("a", 9), row("b", 4)]
    assert noted(second) == {("a", 2), ("a", 9), ("b", 4)}
    fewer = run_tap(family(more), state=first.states[-1], select="rows,notes")
    assert fewer.records("rows") == second.records("rows")


def test_a_substream_alone_goes_on_in_each_partition():
    first = run_tap(family(), select="notes")
    assert noted(first) == ALL
    second = run_tap(family({"a": [1, 2, 9], "b": [3, 4]}), select="notes", state=first.states[-1])
    assert noted(second) == {("a", 2), ("a", 9), ("b", 4)}
    assert "id" not in entry_of(second.states[-1])
    both = run_tap(family(), state=second.states[-1])
    assert sorted(numbers(both)) == [1, 2, 3, 4]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_call_that_fails_holds_the_bookmark_of_its_partition_alone(workers: int):
    run = run_tap(family(broken=[1], workers=workers))
    assert numbers(run, "a") == [1, 2]
    assert noted(run) == ALL - {("a", 1)}
    failure = run.result.errors["notes"].failures[0]
    assert failure.where == f"partition {key_of('a')}, parent rows account=a, id=1"
    assert marks(run.states[-1]) == {"a": 1, "b": 4}
    healed = run_tap(family(), state=run.states[-1])
    assert noted(healed) == {("a", 1), ("a", 2), ("b", 4)}
    assert marks(healed.states[-1]) == {"a": 2, "b": 4}


def test_no_state_is_ahead_of_the_notes():
    run = run_tap(family(workers=2), {"parent_buffer_rows": 1, "page_max_rows": 1})
    out: set[tuple[str, int]] = set()
    for message in run.messages:
        if message["type"] == "RECORD" and message["stream"] == "likes":
            out.add((message["record"]["account"], message["record"]["of"]))
        if message["type"] == "STATE":
            for account, mark in marks(message["value"]).items():
                assert {(account, n) for n in SOURCE[account] if mark is not None and n <= mark} <= out


def test_an_old_flat_bookmark_does_not_speak_of_a_substream_that_is_new():
    """It was saved by a stream that had none."""
    run = run_tap(family(), state={"bookmarks": {"rows": {"id": 2}}})
    assert noted(run) == ALL


def test_an_old_flat_bookmark_speaks_of_substreams_that_were_there():
    state = {"bookmarks": {"rows": {"id": 2}, "notes": {"parent_bookmark": {"id": 2}}}}
    run = run_tap(family(), state=state, select="rows,notes")
    assert {("a", 2), ("b", 3), ("b", 4)} <= noted(run)


@pytest.mark.parametrize("workers", [1, 2])
def test_rising_partitions_with_a_substream_that_is_selected_later(workers: int):
    """What has collapsed says nothing of streams that were not there."""
    first = run_tap(family(order="asc", workers=workers), select="rows")
    assert entry_of(first.states[-1])["id"] == 4
    second = run_tap(family(order="asc", workers=workers), state=first.states[-1])
    assert noted(second) == noted(second, "likes") == ALL
    third = run_tap(family(order="asc", workers=workers), state=second.states[-1])
    assert noted(third) <= {("a", 2), ("b", 4), ("b", 3)}


@pytest.mark.parametrize("workers", [1, 2])
def test_rising_partitions_with_a_call_that_fails(workers: int):
    run = run_tap(family(order="asc", broken=[3], workers=workers))
    assert run.states[-1]["bookmarks"]["rows"].get("id", 0) <= 3
    healed = run_tap(family(order="asc"), state=run.states[-1])
    assert ("b", 3) in noted(healed)
    assert healed.states[-1]["bookmarks"]["rows"]["id"] == 4


def test_a_substreams_own_bookmark_stands_in_each_partition():
    tap = partitioned(SOURCE)
    seen: list[Any] = []

    @tap.sync("notes", parent="rows", replication_key="id", schema=NOTE)
    def notes(parent, stream):
        seen.append((parent["account"], stream.bookmark))
        yield {"account": parent["account"], "of": parent["id"], "id": parent["id"] * 100}

    first = run_tap(tap)
    assert marks(first.states[-1], "notes") == {"a": 200, "b": 400}
    seen.clear()
    run_tap(tap, state=first.states[-1])
    assert seen == [("a", 200), ("b", 400)]


def test_a_bookmark_function_that_asks_for_children():
    tap = partitioned(SOURCE, given(SOURCE), replication_key=None)
    tap.sync("notes", parent="rows", schema=NOTE)(lambda parent: [{"of": parent["id"], "id": 1}] * 0)
    asked: list[Any] = []

    @tap.bookmark("rows")
    def bookmark(record, children, partition):
        asked.append((partition["account"], children["notes"].count))
        return record["id"]

    run = run_tap(tap)
    assert not run.result.errors
    assert asked == [("a", 0), ("a", 0), ("b", 0), ("b", 0)]
    parts = entry_of(run.states[-1])["partitions"]
    assert [parts[key_of(name)]["bookmark"] for name in "ab"] == [2, 4]


def test_a_limit_shows_rows_of_each_stream():
    run = run_tap(family(), limit=2)
    assert [len(run.records(name)) for name in ("rows", "notes", "likes")] == [2, 2, 2]
    assert run.states == []
