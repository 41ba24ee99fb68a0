"""Retries of a sync: no STATE says at any moment what is not true, whichever try it is; partitions and full tables."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from parts import given, key_of, marks, never_ahead, numbers, partitioned, row
from retries import Expired, failing, one
from taps import ids

from burler.errors import PartialError, UnsortedStreamError
from burler.testing import run_tap


def honest(run: Any, source: list[int], begun: int | None = None) -> None:
    """Each STATE's bookmark: every row of the source from the beginning up to it stands before it."""
    out: set[int] = set()
    for message in run.messages:
        if message["type"] == "RECORD":
            out.add(message["record"]["id"])
        if message["type"] == "STATE":
            mark = message["value"].get("bookmarks", {}).get("a", {}).get("id")
            if mark is not None:
                assert {n for n in source if n <= mark and (begun is None or n >= begun)} <= out, message


# ---- what the state says ----------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["end_of_sync", "every_n(1)", "on_page", "every_seconds(0.001)"])
@pytest.mark.parametrize("order", ["asc", "none"])
@pytest.mark.parametrize("page", [1, 1000])
def test_no_state_lies_at_any_moment(strategy: str, order: str, page: int):
    """The failed try came further than the next one has come so far."""
    fn = failing(2, before=ids(1, 2, 3, 4, 5), then=ids(*range(1, 9)))
    run = run_tap(one(fn, bookmark_strategy=strategy, order=order), {"page_max_rows": page})
    assert not run.result.errors
    honest(run, list(range(1, 9)))
    assert run.states[-1] == {"bookmarks": {"a": {"id": 8}}}


def test_no_state_lies_when_the_last_try_fails_sooner():
    tries: list[int] = []

    def rows():
        tries.append(1)
        yield from ids(*([1, 2, 3, 4] if len(tries) == 1 else [1]))
        raise Expired

    for order in ("asc", "none"):
        tries.clear()
        run = run_tap(one(rows, bookmark_strategy="every_n(1)", order=order, max_retries=1), {"page_max_rows": 1})
        honest(run, [1, 2, 3, 4])
        mark = run.states[-1].get("bookmarks", {}).get("a", {}).get("id")
        assert mark == (4 if order == "asc" else None)


def test_an_unsorted_retry_from_a_later_place_does_not_make_the_first_try_whole():
    """The author gives 100: he vouches for nothing before it but for what a whole run would bring from there."""
    fn = failing(1, before=ids(5, 120), then=ids(150, 110))
    run = run_tap(one(fn, order="none", setup_retry=lambda: 100), state={"bookmarks": {"a": {"id": 1}}})
    assert run.states[-1] == {"bookmarks": {"a": {"id": 150}}}
    assert all(state["bookmarks"]["a"]["id"] in (1, 150) for state in run.states)


def test_an_exclusive_source_is_read_from_where_a_value_was_whole():
    source = [1, 2, 2, 3, 3]
    seen: list[Any] = []

    def rows(stream):
        seen.append(stream.bookmark)
        for at, number in enumerate(n for n in source if n > (stream.bookmark or 0)):
            if len(seen) == 1 and at == 4:
                raise Expired
            yield {"id": number}

    run = run_tap(one(rows, resume="exclusive", bookmark_strategy="every_n(1)"), {"page_max_rows": 1})
    assert seen == [None, None]
    out: list[int] = []
    for message in run.messages[:-1]:
        if message["type"] == "RECORD":
            out.append(message["record"]["id"])
        mark = message.get("value", {}).get("bookmarks", {}).get("a", {}).get("id")
        assert mark is None or out.count(mark) >= source.count(mark)


def test_order_is_checked_anew_in_each_try():
    run = run_tap(one(failing(1, before=ids(5, 6), then=ids(1, 2, 7))))
    assert not run.result.errors
    fn = failing(1, before=ids(5, 6), then=ids(1, 3, 2))
    broken = run_tap(one(fn, bookmark_strategy="every_n(1)"))
    assert isinstance(broken.result.errors["a"], UnsortedStreamError)
    assert "3" in str(broken.result.errors["a"])


def test_the_functions_own_state_is_as_it_was_at_the_beginning():
    seen: list[Any] = []

    def rows(stream):
        seen.append(dict(stream.state))
        yield {"id": len(seen)}
        stream.state["page"] = len(seen)
        stream.state.pop("old", None)
        if len(seen) < 3:
            raise Expired

    run = run_tap(one(rows), {"page_max_rows": 1}, state={"bookmarks": {"a": {"stream_state": {"old": True}}}})
    assert seen == [{"old": True}] * 3
    assert run.states[-1]["bookmarks"]["a"]["stream_state"] == {"page": 3}


def test_a_failed_trys_own_state_is_in_no_state_once_the_next_has_begun():
    """What it spoke of is read again from the beginning."""
    tries: list[int] = []

    def rows(stream):
        tries.append(1)
        for number in range(1, 6):
            yield {"id": number}
            stream.state["at"] = number
            if len(tries) == 1 and number == 4:
                raise Expired

    run = run_tap(one(rows, order="none", bookmark_strategy="every_n(1)"), {"page_max_rows": 1})
    out: list[int] = []
    for message in run.messages:
        if message["type"] == "RECORD":
            out.append(message["record"]["id"])
        if message["type"] == "STATE":
            at = message["value"].get("bookmarks", {}).get("a", {}).get("stream_state", {}).get("at", 0)
            assert set(range(1, at + 1)) <= set(out)
    assert run.states[-1]["bookmarks"]["a"]["stream_state"] == {"at": 5}


# ---- partitions ---------------------------------------------------------------------------------------------

SOURCE = {name: range(10) for name in "abcdef"}


@pytest.mark.parametrize("workers", [1, 3])
def test_a_partition_is_begun_anew_alone(workers: int):
    lock, tries = threading.Lock(), dict.fromkeys(SOURCE, 0)
    told: list[Any] = []

    def rows(stream, partition):
        account = partition["account"]
        with lock:
            tries[account] += 1
        for item in given(SOURCE)(stream, partition):
            if item["id"] == 7 and account in "be" and tries[account] <= 2:
                raise Expired
            yield item

    def again(partition, retry, stream):
        told.append((partition["account"], retry, stream.partition["account"]))

    options = {"retry_sync_on": Expired, "setup_retry": again, "bookmark_strategy": "every_n(2)"}
    state = {"bookmarks": {"rows": {"partitions": {key_of("b"): {"id": 2}}}}}
    run = run_tap(partitioned(SOURCE, rows, workers=workers, **options), {"page_max_rows": 3}, state=state)
    assert not run.result.errors
    assert tries == {"a": 1, "b": 3, "c": 1, "d": 1, "e": 3, "f": 1}
    assert sorted(told) == [("b", 1, "b"), ("b", 2, "b"), ("e", 1, "e"), ("e", 2, "e")]
    assert numbers(run, "b") == [2, 3, 4, 5, 6, 2, 3, 4, 5, 6, 2, 3, 4, 5, 6, 7, 8, 9]
    assert numbers(run, "a") == list(range(10))
    assert marks(run.states[-1]) == dict.fromkeys(SOURCE, 9)
    assert never_ahead(run, SOURCE, state)


@pytest.mark.parametrize("workers", [1, 3])
def test_a_partition_that_fails_each_time_stops_no_other(workers: int):
    def rows(partition):
        yield row(partition["account"], 1)
        if partition["account"] == "c":
            raise Expired

    run = run_tap(partitioned(SOURCE, rows, workers=workers, retry_sync_on=Expired, max_retries=2))
    assert isinstance(run.result.errors["rows"], PartialError)
    assert [one.where for one in run.result.errors["rows"].failures] == [f"partition {key_of('c')}"]
    assert numbers(run, "c") == [1, 1, 1]
    assert set(marks(run.states[-1])) == set("abdef")


@pytest.mark.parametrize("workers", [1, 3])
def test_rising_partitions_with_retries_collapse_as_ever(workers: int):
    source = {name: range(at * 10, at * 10 + 10) for at, name in enumerate("abcdef")}
    failed: set[str] = set()

    def rows(stream, partition):
        for item in given(source)(stream, partition):
            if item["id"] % 10 == 5 and partition["account"] not in failed:
                failed.add(partition["account"])
                raise Expired
            yield item

    tap = partitioned(source, rows, order="asc", workers=workers, retry_sync_on=Expired, bookmark_strategy="every_n(3)")
    run = run_tap(tap, {"page_max_rows": 2})
    assert not run.result.errors
    assert never_ahead(run, source)
    assert run.states[-1] == {"bookmarks": {"rows": {"id": 59}}}


def test_rows_of_other_partitions_that_wait_in_the_page_are_not_lost():
    """A lane that fails still has rows of partitions that were finished before."""
    tried: list[str] = []

    def rows(partition):
        tried.append(partition["account"])
        yield row(partition["account"], 1)
        if partition["account"] == "b" and tried.count("b") == 1:
            raise Expired

    run = run_tap(partitioned("abc", rows, retry_sync_on=Expired))
    assert run.records("rows") == [row("a", 1), row("b", 1), row("b", 1), row("c", 1)]
    assert tried == ["a", "b", "b", "c"]


# ---- full tables ----------------------------------------------------------------------------------------------


def test_a_full_table_is_tried_under_a_new_version():
    """So that targets drop the rows of the failed try."""
    fn = failing(2, before=ids(1, 99), then=ids(1, 2))
    run = run_tap(one(fn, replication_key=None, order=None), state={"bookmarks": {"a": {"version": 5}}})
    assert not run.result.errors
    rows = [(m["record"]["id"], m["version"]) for m in run.messages if m["type"] == "RECORD"]
    versions = list(dict.fromkeys(version for _id, version in rows))
    assert len(versions) == 3
    assert versions == sorted(versions)
    assert versions[0] > 5
    activated = [m["version"] for m in run.messages if m["type"] == "ACTIVATE_VERSION"]
    assert activated == [versions[-1]]
    assert [one for one, version in rows if version == versions[-1]] == [1, 2]
    assert run.states[-1] == {"bookmarks": {"a": {"version": versions[-1]}}}


def test_a_full_table_whose_tries_all_fail_activates_nothing():
    run = run_tap(
        one(failing(9, before=ids(1)), replication_key=None, order=None), state={"bookmarks": {"a": {"version": 5}}}
    )
    assert "ACTIVATE_VERSION" not in run.types
    assert run.states[-1] == {"bookmarks": {"a": {"version": 5}}}


# ---- the partitions function ------------------------------------------------------------------------------------


def listing(fail_after: int, times: int) -> tuple[Any, list[int]]:
    """A partitions function that breaks off, so many times; and which tries there were."""
    tries: list[int] = []

    def accounts():
        tries.append(1)
        for at, name in enumerate("abcd"):
            if at == fail_after and len(tries) <= times:
                raise Expired
            yield {"account": name}

    return accounts, tries


@pytest.mark.parametrize("workers", [1, 3])
def test_a_list_of_partitions_that_breaks_off_is_asked_for_again(workers: int):
    """Those that it gave before are not synced twice."""
    accounts, tries = listing(2, times=2)
    tap = partitioned(
        accounts, lambda partition: [row(partition["account"], 1)], workers=workers, retry_sync_on=Expired
    )
    run = run_tap(tap)
    assert not run.result.errors
    assert sorted(one["account"] for one in run.records("rows")) == list("abcd")
    assert len(tries) == 3


def test_a_list_that_breaks_off_each_time_is_an_error():
    accounts, tries = listing(2, times=99)
    told: list[int] = []
    tap = partitioned(
        accounts,
        lambda partition: [row(partition["account"], 1)],
        retry_sync_on=Expired,
        max_retries=2,
        setup_retry=lambda retry, error: told.append(retry),
    )
    run = run_tap(tap)
    assert "its partitions function" in str(run.result.errors["rows"])
    assert [one["account"] for one in run.records("rows")] == ["a", "b"]
    assert len(tries) == 3
    assert told == [1, 2]
