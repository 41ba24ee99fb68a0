"""What a tail run tells while it goes on: numbers a stream, METRIC lines, and one line a stream now and then."""

from __future__ import annotations

import datetime as dt
import json
import logging
import threading
import time
import tracemalloc
from typing import Any

import pytest

import burler
from burler.testing import FakeClock, canary, run_tap
from support.internals import tail_watch

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(NOW)


@pytest.fixture
def watch(clock: FakeClock) -> tail_watch.TailWatch:
    return tail_watch.TailWatch(clock, [("orders", "poll"), ("events", "push"), ("users", "full")])


@pytest.fixture
def secret():
    password = canary("password")
    tap = burler.tap("tap-secret", config_spec=["password"])
    tap.sync("rows", schema={"properties": {"id": {}}})(lambda: [])
    run_tap(tap, {"password": password})  # from now on it is known
    yield password
    run_tap(tap, {"password": "of nobody"})


def view(watch: tail_watch.TailWatch, name: str) -> Any:
    (found,) = [one for one in watch.snapshot() if one.name == name]
    return found


def ended(watch: tail_watch.TailWatch, name: str, own: int = 0, **given: Any) -> None:
    """The end of a round, with so many rows of the stream itself."""
    told = {"repeated": 0, "seconds": 0.5, "status": "succeeded", "next_at": None, "rows": {name: own}}
    watch.round_ended(name, **{**told, **given})


# ---- what it knows -------------------------------------------------------------------------------


def test_before_anything_has_happened(watch: tail_watch.TailWatch):
    assert [(one.name, one.kind, one.status, one.rows) for one in watch.snapshot()] == [
        ("orders", "poll", "starting", 0),
        ("events", "push", "starting", 0),
        ("users", "full", "starting", 0),
    ]
    one = view(watch, "orders")
    assert (one.bookmark, one.lag_seconds, one.last_poll_seconds_ago, one.next_poll_in_seconds) == (None,) * 4
    assert watch.totals().last_state_seconds_ago is None


def test_rows_of_rounds_add_up(watch: tail_watch.TailWatch, clock: FakeClock):
    for rows in (3, 3, 0, 5):
        watch.round_began("orders")
        watch.rows("orders", 1, "2025-12-31T23:59:00Z") if rows else None
        watch.rows("orders", rows, "2025-12-31T23:59:50Z") if rows else None
        assert view(watch, "orders").status == "polling"
        clock.advance(2)
        ended(watch, "orders", rows, repeated=2, seconds=2.0, next_at=clock.monotonic() + 10)
        clock.advance(4)
    one = view(watch, "orders")
    assert (one.rows, one.repeated, one.polls, one.poll_seconds, one.polls_seconds) == (11, 8, 4, 2.0, 8.0)
    assert (one.status, one.last_poll_seconds_ago, one.next_poll_in_seconds) == ("waiting", 4.0, 6.0)
    assert one.last_poll_at == (clock.now() - dt.timedelta(seconds=4)).timestamp()
    assert (one.bookmark, one.lag_seconds) == ("2025-12-31T23:59:50Z", 34.0)


def test_streams_that_come_with_another_are_added_up_too(watch: tail_watch.TailWatch):
    for _ in range(2):
        watch.round_began("orders")
        watch.rows("orders", 2, None)
        watch.rows("lines", 7, None)
        ended(watch, "orders", rows={"orders": 2, "lines": 7}, repeated=1)
    assert (view(watch, "lines").rows, view(watch, "lines").polls, view(watch, "lines").kind) == (14, 2, "poll")
    assert (view(watch, "orders").repeated, view(watch, "lines").repeated) == (1 + 1, 0)


def test_a_round_whose_end_nobody_told_counts(watch: tail_watch.TailWatch):
    """SIGHUP: blocked threads are left behind, and the stream begins anew."""
    watch.round_began("orders")
    watch.rows("orders", 5, None)
    watch.round_began("orders")
    watch.rows("orders", 5, None)
    watch.rows("orders", 2, None)
    assert view(watch, "orders").rows == 12


def test_a_function_that_pushes_has_polled_when_rows_came(watch: tail_watch.TailWatch, clock: FakeClock):
    watch.round_began("events")
    clock.advance(5)
    watch.rows("events", 1, "2026-01-01T00:00:04Z")
    clock.advance(2)
    one = view(watch, "events")
    assert (one.status, one.last_poll_seconds_ago, one.lag_seconds) == ("connected", 2.0, 3.0)


def test_the_plan_says_what_kind_a_stream_is(watch: tail_watch.TailWatch):
    watch.plan([("orders", "push"), ("more", "full")])
    assert [(one.name, one.kind) for one in watch.snapshot()] == [
        ("orders", "push"),
        ("events", "push"),
        ("users", "full"),
        ("more", "full"),
    ]


@pytest.mark.parametrize("first", ["failed", "ended"])
def test_failures_in_a_row_and_in_all(watch: tail_watch.TailWatch, clock: FakeClock, first: str):
    ended(watch, "orders", next_at=1.0)
    clock.advance(10)
    for failures in (1, 2):
        watch.round_began("orders")
        steps = [
            lambda n=failures: watch.failed("orders", ValueError(f"no {n}"), failures=n, wait_seconds=4.0),
            lambda: ended(watch, "orders", status="failed", next_at=clock.monotonic() + 4),
        ]
        for step in steps if first == "failed" else reversed(steps):
            step()
    one = view(watch, "orders")
    assert (one.status, one.failures, one.errors, one.error) == ("retrying", 2, 2, "ValueError: no 2")
    assert (one.next_poll_in_seconds, one.last_poll_seconds_ago) == (4.0, 10.0)
    watch.recovered("orders")
    watch.round_began("orders")
    ended(watch, "orders", next_at=clock.monotonic() + 60)
    one = view(watch, "orders")
    assert (one.status, one.failures, one.errors, one.last_poll_seconds_ago) == ("waiting", 0, 2, 0.0)


def test_failed_for_good(watch: tail_watch.TailWatch):
    watch.round_began("orders")
    watch.failed("orders", ValueError("gone"), failures=11, wait_seconds=None)
    ended(watch, "orders", status="failed", next_at=None)
    one = view(watch, "orders")
    assert (one.status, one.next_poll_in_seconds, one.failures) == ("failed", None, 11)


def test_parts_that_failed_are_errors_and_no_failure_of_the_stream(watch: tail_watch.TailWatch):
    watch.parts_failed("orders", ValueError("partition b"), 3)
    ended(watch, "orders", status="failed", next_at=60.0)
    one = view(watch, "orders")
    assert (one.errors, one.failures, one.status, one.error) == (3, 0, "waiting", "ValueError: partition b")
    assert one.last_poll_seconds_ago == 0


def test_a_round_that_was_told_to_stop_is_no_poll(watch: tail_watch.TailWatch):
    watch.round_began("orders")
    ended(watch, "orders", status="stopped")
    assert view(watch, "orders").last_poll_seconds_ago is None


def test_rows_per_second_is_a_mean_of_the_last_half_minute(watch: tail_watch.TailWatch, clock: FakeClock):
    for second in range(1, 301):
        clock.advance(1)
        watch.rows("events", second * 50, None)
        if second in (3, 30, 300):
            assert view(watch, "events").rows_per_second == pytest.approx(50, rel=0.02)
    clock.advance(30)
    assert view(watch, "events").rows_per_second == pytest.approx(50 / 2.718, rel=0.02)
    clock.advance(3600)
    assert view(watch, "events").rows_per_second == 0


def test_states_and_clients(watch: tail_watch.TailWatch, clock: FakeClock):
    clock.advance(5)
    watch.state_written(100)
    watch.state_written(120)
    watch.client_renewed()
    clock.advance(3)
    run = watch.totals()
    assert (run.seconds, run.states, run.state_bytes, run.last_state_seconds_ago) == (8.0, 2, 220, 3.0)
    assert (run.last_state_at, run.clients_renewed) == ((NOW + dt.timedelta(seconds=5)).timestamp(), 1)


# ---- lag -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bookmark", "lag"),
    [
        ("2025-12-31T23:59:00Z", 60.0),
        ("2025-12-31T23:59:00.250000Z", 59.75),
        ("2025-12-31T23:59:00.2500001Z", pytest.approx(59.7499999)),
        ("2026-01-01T01:59:00+02:00", 60.0),
        ("2025-12-31", 86400.0),
        ("2026-01-01T00:00:09Z", 0.0),
        (dt.datetime(2025, 12, 31, 23, 59, tzinfo=dt.UTC), 60.0),
        (dt.date(2025, 12, 31), 86400.0),
        (dt.datetime(2025, 12, 31, 23, 59), None),  # noqa: DTZ001  a zone is what it lacks
        ("2025-12-31T23:59:00", None),
        ("2025-13-31", None),
        ("2025-W52-3", None),
        ("20251231", None),
        ("", None),
        (1767225600, None),
        (1.5, None),
        (True, None),
        (None, None),
        ({"at": "2025-12-31"}, None),
    ],
)
def test_the_lag_of_a_bookmark_that_is_a_time(watch: tail_watch.TailWatch, bookmark: Any, lag: float | None):
    watch.rows("orders", 1, bookmark)
    assert view(watch, "orders").lag_seconds == lag


def test_the_lag_grows_with_the_clock(watch: tail_watch.TailWatch, clock: FakeClock):
    watch.rows("orders", 1, "2026-01-01")
    clock.advance(90)
    assert view(watch, "orders").lag_seconds == 90
    clock.advance(10)
    assert view(watch, "orders").lag_seconds == 100


# ---- lines in the log ----------------------------------------------------------------------------


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [record.getMessage() for record in caplog.records]
    caplog.clear()
    return found


def test_lines_every_interval_for_what_came(
    watch: tail_watch.TailWatch, clock: FakeClock, caplog: pytest.LogCaptureFixture
):
    with caplog.at_level(logging.INFO, logger="burler"):
        watch.rows("orders", 12, "2025-12-31T23:59:00Z")
        ended(watch, "orders", 12, repeated=1, next_at=99.0)
        watch.round_began("users")
        watch.failed("users", ValueError("no luck"), failures=2, wait_seconds=1.0)
        clock.advance(59)
        watch.tick()
        assert lines(caplog) == []
        clock.advance(1)
        watch.tick()
        assert lines(caplog) == [
            'METRIC: {"type":"counter","metric":"record_count","value":12,"tags":{"endpoint":"orders"}}',
            "stream 'orders': 12 rows in 60 s, 1 row repeated, 1 poll, bookmark 2025-12-31T23:59:00Z (2 min behind)",
            "stream 'users': 0 rows in 60 s, 0 polls, 1 error, 2 in a row, the last: ValueError: no luck",
            "tail: 12 rows in 60 s, 3 streams, 1 of them failing, no STATE yet",
        ]
        clock.advance(60)
        watch.state_written(10)
        ended(watch, "orders")
        watch.tick()
        assert lines(caplog) == ["tail: 0 rows in 60 s, 3 streams, 1 of them failing, last STATE 0 s ago"]


def test_the_last_lines_come_at_the_end_and_each_stream_was_counted(
    watch: tail_watch.TailWatch, clock: FakeClock, caplog: pytest.LogCaptureFixture
):
    with caplog.at_level(logging.INFO, logger="burler"):
        watch.rows("orders", 2, None)
        clock.advance(60)
        watch.tick()
        watch.rows("orders", 3, None)
        watch.close()
    points = [json.loads(one.removeprefix("METRIC: ")) for one in lines(caplog) if one.startswith("METRIC: ")]
    assert [(one["tags"]["endpoint"], one["value"]) for one in points] == [
        ("orders", 2),
        ("orders", 1),
        ("events", 0),
        ("users", 0),
    ]


def test_a_pause_makes_one_line_and_no_burst(
    watch: tail_watch.TailWatch, clock: FakeClock, caplog: pytest.LogCaptureFixture
):
    with caplog.at_level(logging.INFO, logger="burler"):
        clock.advance(3600)
        for rows in range(1, 20):
            watch.rows("orders", rows, None)
            watch.tick()
    assert lines(caplog)[1:] == [
        "stream 'orders': 1 row in 60 min, 0 polls",
        "tail: 1 row in 3600 s, 3 streams, 0 of them failing, no STATE yet",
    ]


# ---- secrets -------------------------------------------------------------------------------------


def test_no_secret_is_in_a_snapshot_or_a_line(clock: FakeClock, secret: str, caplog: pytest.LogCaptureFixture):
    watch = tail_watch.TailWatch(clock, [(f"s-{secret}", "poll")])
    watch.rows(f"s-{secret}", 3, f"after {secret}")
    watch.failed(f"s-{secret}", ValueError(f"token {secret}\nrefused"), failures=1, wait_seconds=1.0)
    (one,) = watch.snapshot()
    assert (one.name, one.bookmark, one.error) == ("s-***", "after ***", "ValueError: token *** refused")
    with caplog.at_level(logging.INFO, logger="burler"):
        watch.close()
    texts = lines(caplog)
    assert len(texts) == 2
    assert all("s-***" in one and secret not in one for one in texts)


def test_an_error_that_goes_on_and_on_is_cut(watch: tail_watch.TailWatch):
    watch.failed("orders", ValueError("x" * 100_000), failures=1, wait_seconds=1.0)
    watch.rows("orders", 1, "y" * 100_000)
    one = view(watch, "orders")
    assert len(one.error or "") < 400
    assert len(one.bookmark) < 400


# ---- cost ----------------------------------------------------------------------------------------


def rounds(watch: tail_watch.TailWatch, clock: FakeClock, count: int) -> None:
    for i in range(count):
        name = f"s{i % 3}"
        clock.advance(0.1)
        watch.round_began(name)
        watch.rows(name, 3, "2026-01-01T00:00:00Z")
        if i % 1000 == 0:
            watch.failed(name, ValueError(str(i)), failures=1, wait_seconds=1.0)
        watch.state_written(100)
        watch.round_ended(name, rows={name: 3}, repeated=1, seconds=0.05, status="succeeded", next_at=None)
        watch.tick()


def test_a_hundred_thousand_rounds_take_no_more_memory_than_one_and_some_microseconds_each(
    clock: FakeClock, caplog: pytest.LogCaptureFixture
):
    """At ten rounds a second that is what a tail does in three hours."""
    caplog.set_level(logging.WARNING, logger="burler")  # lines that are kept for the test are memory, too
    watch = tail_watch.TailWatch(clock)
    rounds(watch, clock, 2000)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        rounds(watch, clock, 20_000)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 50_000
    begun = time.process_time()
    rounds(watch, clock, 80_000)
    assert (time.process_time() - begun) / 80_000 < 100e-6
    assert sum(one.rows for one in watch.snapshot()) == 3 * 102_000


def test_threads_may_tell_and_ask_at_once(watch: tail_watch.TailWatch):
    done = threading.Event()
    wrong: list[BaseException] = []

    def ask() -> None:
        try:
            while not done.is_set():
                watch.snapshot()
                watch.totals()
        except BaseException as error:
            wrong.append(error)

    def tell(name: str) -> None:
        for n in range(1, 3001):
            watch.rows(name, n, n)
            watch.rows(f"{name}{n % 50}", n, n)

    asking = threading.Thread(target=ask)
    telling = [threading.Thread(target=tell, args=(name,)) for name in ("orders", "events", "users")]
    for one in (asking, *telling):
        one.start()
    for one in telling:
        one.join()
    done.set()
    asking.join()
    assert wrong == []
    assert [view(watch, name).rows for name in ("orders", "events", "users")] == [3000] * 3
    assert len(watch.snapshot()) == 3 + 3 * 50


def test_streams_of_one_round_are_read_together(clock: FakeClock):
    watch = tail_watch.TailWatch(clock)
    watch.plan([("orders", "poll"), ("lines", "poll")], {"orders": ("orders", "lines")})
    watch.round_began("orders")
    assert [one.status for one in watch.snapshot()] == ["polling", "polling"]
