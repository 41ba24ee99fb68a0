"""Rising partitions (``order="asc"``): those that are finished collapse into the stream's bookmark."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest
from parts import entry_of, given, key_of, marks, never_ahead, numbers, partitioned, row

from burler.errors import PartialError, StreamError, UnsortedStreamError
from burler.testing import run_tap

MONTHS = {"a": [1, 2, 3], "b": [4, 5], "c": [6, 7]}


def rising(source: Any, fn: Any = None, **options: Any) -> Any:
    return partitioned(source, fn, order="asc", **options)


def from_flat(source: dict[str, Any]) -> Callable[..., Any]:
    """A partitions function as authors write one: those that are done are not given again."""

    def months(stream):
        for name, ids in source.items():
            if stream.bookmark is None or (ids and max(ids) >= stream.bookmark):
                yield {"account": name}

    return months


# ---- collapsing ---------------------------------------------------------------------------------------


def test_all_finished_leave_the_streams_bookmark_alone():
    run = run_tap(rising(MONTHS))
    assert run.states[-1] == {"bookmarks": {"rows": {"id": 7}}}
    assert numbers(run) == [1, 2, 3, 4, 5, 6, 7]


def test_no_entry_is_kept_on_the_way_with_one_worker():
    run = run_tap(rising(MONTHS, bookmark_strategy="every_n(1)"))
    assert [entry_of(state) for state in run.states] == [{"id": n} for n in (1, 2, 3, 4, 5, 6, 7, 7)]
    assert never_ahead(run, MONTHS)


def test_the_next_run_goes_on_in_the_last_partition():
    first = run_tap(rising(from_flat(MONTHS), given(MONTHS)))
    more = {**MONTHS, "c": [6, 7, 8], "d": [9]}
    second = run_tap(rising(from_flat(more), given(more)), state=first.states[-1])
    assert numbers(second) == [7, 8, 9]
    assert second.states[-1] == {"bookmarks": {"rows": {"id": 9}}}


def test_empty_partitions_are_no_hole():
    run = run_tap(rising({"a": [1], "b": [], "c": [], "d": [2], "e": []}))
    assert run.states[-1] == {"bookmarks": {"rows": {"id": 2}}}


def test_values_that_meet_at_the_edge_are_in_order():
    source = {"a": [1, 5], "b": [5, 6], "c": [6]}
    run = run_tap(rising(source, bookmark_strategy="every_n(1)"))
    assert not run.result.errors
    assert run.states[-1] == {"bookmarks": {"rows": {"id": 6}}}


def test_many_finished_partitions_leave_a_small_state():
    """With workers some are finished out of turn; how many is up to the threads, but never most of them."""
    source = {f"month-{i}": [2 * i, 2 * i + 1] for i in range(3000)}
    run = run_tap(rising(source, workers=4), {"page_max_rows": 2})
    assert max(len(marks(state)) for state in run.states) < 2000
    assert run.states[-1] == {"bookmarks": {"rows": {"id": 5999}}}
    assert never_ahead(run, source)
    run = run_tap(rising(source), {"page_max_rows": 2})
    assert max(len(marks(state)) for state in run.states) <= 1


def test_an_older_state_with_entries_collapses():
    """As it was saved before the author said that partitions rise, or by a run that broke off."""
    state = {"bookmarks": {"rows": {"id": 3, "partitions": {key_of("c"): {"id": 6}}}}}
    run = run_tap(rising(MONTHS), state=state)
    assert numbers(run) == [3, 4, 5, 6, 7]
    assert run.states[-1] == {"bookmarks": {"rows": {"id": 7}}}


def test_a_partitions_own_state_goes_with_its_entry():
    def rows(stream, partition):
        for one in given(MONTHS)(stream, partition):
            yield one
            stream.state["at"] = one["id"]

    run = run_tap(rising(MONTHS, rows, bookmark_strategy="every_n(1)"), {"page_max_rows": 1})
    between = [entry_of(state)["partitions"] for state in run.states if "partitions" in entry_of(state)]
    assert between
    assert all(len(parts) == 1 for parts in between)
    assert run.states[-1] == {"bookmarks": {"rows": {"id": 7}}}


def test_a_lookback_reads_the_last_partitions_again():
    first = run_tap(rising(from_flat(MONTHS), given(MONTHS), lookback=2))
    told = []

    def rows(stream, partition):
        told.append((partition["account"], stream.bookmark))
        yield from given(MONTHS)(stream, partition)

    second = run_tap(rising(MONTHS, rows, lookback=2), state=first.states[-1])
    assert not second.result.errors
    assert told == [(name, 5) for name in "abc"]
    assert numbers(second) == [5, 6, 7]
    assert second.states[-1] == {"bookmarks": {"rows": {"id": 7}}}


def test_what_its_author_takes_back_of_the_last_partition_is_not_in_the_bookmark_that_is_left():
    def rows(stream, partition):
        yield from given(MONTHS)(stream, partition)
        if partition["account"] == "c":
            stream.save_bookmark(7)
            stream.save_bookmark(6)  # of 7 there may be more
        else:
            stream.save_bookmark()

    run = run_tap(rising(MONTHS, rows, bookmark_strategy="manual"))
    assert [entry_of(state)["id"] for state in run.states] == [3, 5, 7, 6, 6]
    assert run.states[-1] == {"bookmarks": {"rows": {"id": 6}}}


# ---- out of turn --------------------------------------------------------------------------------------


def test_one_that_is_finished_out_of_turn_waits_for_those_before_it():
    last_is_out = threading.Event()

    def rows(stream, partition):
        if partition["account"] == "a":
            yield row("a", 1)
            assert last_is_out.wait(10)
            yield from (row("a", 2), row("a", 3))
        else:
            yield from given(MONTHS)(stream, partition)
            if partition["account"] == "c":
                yield row("c", 8)
                stream.save_bookmark()
                threading.Timer(0.2, last_is_out.set).start()

    run = run_tap(rising(MONTHS, rows, workers=2), {"page_max_age_seconds": 0.05, "page_max_rows": 1})
    source = {**MONTHS, "c": [6, 7, 8]}
    assert never_ahead(run, source)
    between = [entry_of(state) for state in run.states if "partitions" in entry_of(state)]
    assert any(entry.get("id") in (None, 1) and key_of("b") in entry["partitions"] for entry in between), run.states
    assert run.states[-1] == {"bookmarks": {"rows": {"id": 8}}}


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("failing", ["a", "b", "c"])
@pytest.mark.parametrize("after", [0, 1])
def test_a_failing_one_blocks_what_comes_after_it(workers: int, failing: str, after: int):
    def rows(stream, partition):
        ids = iter(given(MONTHS)(stream, partition))
        if partition["account"] == failing:
            yield from (next(ids) for _ in range(after))
            raise ConnectionError("gone")
        yield from ids

    tap = rising(MONTHS, rows, workers=workers, bookmark_strategy="every_n(1)")
    run = run_tap(tap)
    assert isinstance(run.result.errors["rows"], PartialError)
    assert never_ahead(run, MONTHS)
    flat = entry_of(run.states[-1]).get("id")
    assert flat is None or flat <= MONTHS[failing][0]
    assert {name: marks(run.states[-1])[name] for name in "abc" if name > failing} == {
        name: MONTHS[name][-1] for name in "abc" if name > failing
    }
    healed = run_tap(rising(from_flat(MONTHS), given(MONTHS)), state=run.states[-1])
    assert set(numbers(run)) | set(numbers(healed)) == set(range(1, 8))
    assert healed.states[-1] == {"bookmarks": {"rows": {"id": 7}}}


def test_one_that_fails_before_an_earlier_one_has_ended_leaves_the_state_it_would_leave_in_turn():
    b_failed = threading.Event()

    def rows(partition):
        if partition["account"] == "a":
            yield row("a", 1)
            assert workers == 1 or b_failed.wait(10)
            yield row("a", 2)
        elif partition["account"] == "b":
            yield row("b", 4)
            threading.Timer(0.2, b_failed.set).start()
            raise ConnectionError("gone")
        else:
            yield row("c", 6)

    left = []
    for workers in (1, 2):
        tap = rising(MONTHS, rows, workers=workers, bookmark_strategy="every_n(1)")
        left.append(run_tap(tap, {"page_max_rows": 1}).states[-1])
    assert left[0] == left[1]
    assert entry_of(left[0]) == {"id": 4, "partitions": {key_of("c"): {"id": 6}}}


def test_a_list_that_breaks_off_keeps_what_is_finished():
    def months():
        yield {"account": "a"}
        yield {"account": "b"}
        raise ConnectionError("gone")

    run = run_tap(rising(months, given(MONTHS)))
    assert type(run.result.errors["rows"]) is StreamError
    assert run.states[-1] == {"bookmarks": {"rows": {"id": 5}}}


# ---- not in order -------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["end_of_sync", "every_n(1)"])
def test_partitions_that_do_not_rise_are_an_error_that_names_both_values(strategy: str):
    source = {"a": [5, 6], "b": [3, 4], "c": [7]}
    run = run_tap(rising(source, bookmark_strategy=strategy))
    error = run.result.errors["rows"]
    assert isinstance(error, UnsortedStreamError)
    assert "order='asc' of its partitions is declared" in str(error)
    assert key_of("b") in str(error)
    assert "3" in str(error)
    assert "6" in str(error)
    assert entry_of(run.states[-1]).get("id") is None  # where the run began


@pytest.mark.parametrize("strategy", ["end_of_sync", "every_n(1)"])
def test_partitions_that_do_not_rise_can_fall_back_to_the_end(strategy: str, caplog: pytest.LogCaptureFixture):
    source = {"a": [5, 6], "b": [3, 4], "c": [7]}
    state = {"bookmarks": {"rows": {"id": 2}}}
    with caplog.at_level(logging.WARNING):
        run = run_tap(rising(source, on_unsorted="end_of_sync", bookmark_strategy=strategy), state=state)
    assert not run.result.errors
    told = [one.getMessage() for one in caplog.records if "order='asc' of its partitions" in one.getMessage()]
    assert len(told) == 1
    assert sorted(numbers(run)) == [3, 4, 5, 6, 7]
    assert run.states[-1] == {"bookmarks": {"rows": {"id": 7}}}
    last = next(at for at, message in enumerate(run.messages) if message.get("record") == row("c", 7))
    after = [message["value"] for message in run.messages[last:] if message["type"] == "STATE"]
    assert all(entry_of(state).get("id") in (2, 7) for state in after)


def test_partitions_that_do_not_rise_and_one_that_fails_after_that():
    """Nothing that was said on the way holds: the next run brings what is missing."""
    source = {"a": [5, 6], "b": [3, 4], "c": [1, 7]}

    def rows(stream, partition):
        ids = list(given(source)(stream, partition))
        if partition["account"] == "c":
            raise ConnectionError("gone")
        yield from ids

    run = run_tap(rising(source, rows, on_unsorted="end_of_sync", bookmark_strategy="every_n(1)"))
    assert entry_of(run.states[-1]).get("id") is None
    healed = run_tap(rising(from_flat(source), given(source), on_unsorted="end_of_sync"), state=run.states[-1])
    assert set(numbers(run)) | set(numbers(healed)) == {1, 3, 4, 5, 6, 7}


def test_a_row_within_a_partition_may_not_lie_before_the_partitions_before_it():
    """Not only the first one: an unsorted partition may hide it further on."""
    run = run_tap(rising({"a": [1, 5], "b": []}, lambda partition: hidden(partition["account"])))
    assert isinstance(run.result.errors["rows"], UnsortedStreamError)


def hidden(account: str) -> list[dict[str, Any]]:
    return [row("a", 1), row("a", 5)] if account == "a" else [row("b", 6), row("b", 3), row("b", 7)]


# ---- what is safe ---------------------------------------------------------------------------------------


def test_unsorted_rows_of_a_partition_move_the_bookmark_at_its_end():
    def rows(partition):
        yield from (row("a", n) for n in ((3, 1, 2) if partition["account"] == "a" else (5, 4, 6)))
        if partition["account"] == "b":
            raise ConnectionError("gone")

    run = run_tap(rising({"a": [], "b": []}, rows), {"page_max_rows": 1})
    assert run.states[-1]["bookmarks"]["rows"]["id"] == 3


@pytest.mark.parametrize("before", [{"a": [1, 5]}, {"a": [1, 5], "b": [5]}])
def test_an_exclusive_source_loses_no_rows_of_one_value_in_several_partitions(before):
    """While the last partition has not come to its end, more rows of the value before it may follow."""
    source, broken = {**before, "z": [5, 6]}, [True]

    def rows(stream, partition):
        if partition["account"] == "z" and broken:
            raise ConnectionError("gone")
        yield from (row(partition["account"], n) for n in source[partition["account"]] if n > (stream.bookmark or 0))

    first = run_tap(rising(source, rows, resume="exclusive"))
    broken.clear()
    second = run_tap(rising(source, rows, resume="exclusive"), state=first.states[-1])
    assert numbers(second, "z") == [5, 6]


def test_an_exclusive_source_that_failed_gives_what_is_out_no_second_time():
    """While partition c has not come, b's own entry says more than the stream's bookmark, and stays."""
    source = {"a": [1, 2], "b": [3, 4], "c": [5]}

    def rows(stream, partition):
        if partition["account"] == "c":
            raise ConnectionError("gone")
        yield from (row(partition["account"], n) for n in source[partition["account"]] if n > (stream.bookmark or 0))

    first = run_tap(rising(source, rows, resume="exclusive"))
    assert first.states[-1]["bookmarks"]["rows"] == {"id": 2, "partitions": {key_of("b"): {"id": 4}}}
    assert numbers(run_tap(rising(source, rows, resume="exclusive"), state=first.states[-1])) == []


def test_an_exclusive_source_in_one_whole_run():
    source = {"a": [1, 5], "b": [5], "c": [5, 6]}

    def rows(stream, partition):
        yield from (row(partition["account"], n) for n in source[partition["account"]] if n > (stream.bookmark or 0))

    run = run_tap(rising(source, rows, resume="exclusive", bookmark_strategy="every_n(1)"))
    assert numbers(run) == [1, 5, 5, 5, 6]
    assert run.states[-1] == {"bookmarks": {"rows": {"id": 6}}}


def test_a_signpost_holds_for_the_collapsed_bookmark():
    fields = {"properties": {"at": {"type": "string", "format": "date-time"}}}
    tap = rising(
        {"a": [], "b": []},
        lambda partition: [{"at": "2999-01-01T00:00:00Z" if partition["account"] == "b" else "2020-01-01T00:00:00Z"}],
        replication_key="at",
        key_properties=[],
        schema=fields,
        signpost=True,
    )
    run = run_tap(tap)
    assert not run.result.errors
    assert "2020-01-01T00:00:00Z" < run.states[-1]["bookmarks"]["rows"]["at"] < "2100"
    assert "partitions" not in run.states[-1]["bookmarks"]["rows"]
