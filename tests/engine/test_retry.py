"""``retry_sync_on``: the sync is begun anew; no STATE says at any moment what is not true."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from parts import key_of, marks, partitioned, row
from retries import Expired, failing, one, out_of
from taps import AT, FIELDS, ids, make

import burler
from burler.errors import StreamError, UnsortedStreamError
from burler.testing import run_tap

# ---- tries ------------------------------------------------------------------------------------------------


def test_a_stream_is_begun_anew():
    fn = failing(2, before=ids(1))
    run = run_tap(one(fn))
    assert not run.result.errors
    assert out_of(run) == [1, 1, 1, 2, 3]
    assert run.result.rows == {"a": 5}
    assert run.states[-1] == {"bookmarks": {"a": {"id": 3}}}
    assert len(fn.seen) == 3


@pytest.mark.parametrize("most", [0, 1, 3])
def test_after_so_many_tries_the_error_counts(most: int):
    fn = failing(99, before=ids(1))
    run = run_tap(one(fn, max_retries=most))
    assert isinstance(run.result.errors["a"], Expired) or isinstance(run.result.errors["a"].__cause__, Expired)
    assert len(fn.seen) == most + 1
    assert out_of(run) == [1] * (most + 1)


def test_three_times_is_the_default():
    fn = failing(99)
    run_tap(one(fn))
    assert len(fn.seen) == 4


def test_other_exceptions_are_not_retried():
    fn = failing(9, error=ValueError)
    run = run_tap(one(fn))
    assert len(fn.seen) == 1
    assert "a" in run.result.errors


@pytest.mark.parametrize("error", [Expired, ConnectionResetError])
def test_several_exceptions_and_those_derived_from_them(error: Any):
    fn = failing(1, error=error)
    run = run_tap(one(fn, retry_sync_on=(OSError, Expired)))
    assert not run.result.errors
    assert len(fn.seen) == 2


def test_each_try_is_told_in_the_log(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING):
        run_tap(one(failing(2)))
    told = [one.getMessage() for one in caplog.records if "begins anew" in one.getMessage()]
    assert [text[text.index("retry ") :] for text in told] == ["retry 1 of 3", "retry 2 of 3"]
    assert all("stream 'a'" in text and "Expired" in text for text in told)


def test_an_error_raised_at_once_and_one_of_a_function_that_returns():
    tries = []

    def rows():
        tries.append(1)
        if len(tries) == 1:
            raise Expired
        return ids(1)

    assert out_of(run_tap(one(rows))) == [1]


def test_a_bad_row_is_no_error_of_the_functions():
    """It would not fit the next time either."""
    fn = failing(0, then=[{"id": "x"}])
    run = run_tap(one(fn, retry_sync_on=Exception))
    assert len(fn.seen) == 1
    assert isinstance(run.result.errors["a"], StreamError)


def test_order_that_breaks_is_not_retried():
    fn = failing(0, then=ids(2, 1))
    run = run_tap(one(fn, retry_sync_on=Exception))
    assert len(fn.seen) == 1
    assert isinstance(run.result.errors["a"], UnsortedStreamError)


# ---- where it begins ------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [None, 3])
def test_a_retry_begins_at_the_original_bookmark(start: int | None):
    fn = failing(2, before=ids(5, 6), then=ids(5, 6, 7))
    state = {"bookmarks": {"a": {"id": start}}} if start else None
    run = run_tap(one(fn, setup_retry=lambda error: None, bookmark_strategy="every_n(1)"), state=state)
    assert fn.seen == [start] * 3
    assert run.states[-1] == {"bookmarks": {"a": {"id": 7}}}
    plain = failing(1, then=ids(7))
    run_tap(one(plain), state=state)
    assert plain.seen == [start] * 2


def test_a_retry_begins_less_lookback_and_at_start_date():
    fn = failing(1)
    run_tap(one(fn, lookback=2), state={"bookmarks": {"a": {"id": 9}}})
    assert fn.seen == [7, 7]
    fn = failing(1)
    run_tap(one(fn, **AT), {"start_date": "2024-01-01T00:00:00Z"})
    assert fn.seen == ["2024-01-01T00:00:00Z"] * 2


def test_setup_retry_may_give_another_bookmark():
    fn = failing(2, before=ids(5, 6), then=ids(6, 7))
    given_by = iter([4, None])
    run = run_tap(one(fn, setup_retry=lambda: next(given_by)), state={"bookmarks": {"a": {"id": 3}}})
    assert fn.seen == [3, 4, 3]
    assert run.states[-1] == {"bookmarks": {"a": {"id": 7}}}


def test_what_setup_retry_is_told():
    told: list[Any] = []

    def again(client, config, stream, error, retry, state, partition):
        told.append((client, config["x"], stream.name, type(error), retry, state["bookmarks"], partition))

    tap = one(failing(2), setup_retry=again)
    tap.client(lambda: "the client")
    run = run_tap(tap, {"x": 5}, state={"bookmarks": {"a": {"id": 1}}})
    assert not run.result.errors
    assert told == [("the client", 5, "a", Expired, n, {"a": {"id": 1}}, None) for n in (1, 2)]


def test_a_class_has_it_as_a_method():
    tap = burler.tap("tap-t")

    @tap.stream
    class Rows(burler.Stream):
        replication_key = "id"
        retry_sync_on = Expired
        schema = FIELDS
        tries = 0

        def setup_retry(self, retry):
            self.tries = retry

        def sync(self):
            if self.tries < 2:
                raise Expired
            yield {"id": self.tries}

    assert run_tap(tap).records("rows") == [{"id": 2}]


def test_a_setup_that_fails_ends_the_stream():
    def again():
        raise ValueError("no session")

    tap = make(a=(failing(9), {"retry_sync_on": Expired, "setup_retry": again}), b=lambda: ids(1))
    run = run_tap(tap)
    error = run.result.errors["a"]
    assert isinstance(error, StreamError)
    assert "its setup_retry" in str(error)
    assert "no session" in str(error)
    assert isinstance(error.__cause__, ValueError)
    assert run.records("b") == ids(1)


def test_a_setup_that_fails_ends_its_partition_alone():
    def again(partition):
        raise ValueError("no session")

    def rows(partition):
        yield row(partition["account"], 1)
        if partition["account"] == "b":
            raise Expired

    run = run_tap(partitioned("abc", rows, retry_sync_on=Expired, setup_retry=again))
    failures = run.result.errors["rows"].failures
    assert [one.where for one in failures] == [f"partition {key_of('b')}"]
    assert "no session" in str(failures[0].error)
    assert set(marks(run.states[-1])) == set("ac")
