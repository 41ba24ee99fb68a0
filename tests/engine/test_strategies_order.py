"""What a bookmark may say: order that breaks, exclusive sources, lookback, signposts."""

from __future__ import annotations

import datetime as dt
import logging
from decimal import Decimal
from typing import Any

import pytest
from taps import ids, make

import burler
from burler.errors import StreamError, UnsortedStreamError
from burler.testing import FakeClock, run_tap

STRATEGIES = ["every_n(2)", "every_seconds(0.001)", "on_page"]


def one(fn: Any, **options: Any) -> burler.Tap:
    return make(a=(fn, {"order": None, **options}))


def said(run: Any) -> list[Any]:
    return [state.get("bookmarks", {}).get("a", {}).get("id") for state in run.states]


def slow(*numbers: int) -> Any:
    """Pages of one row, so that STATEs are due between them."""

    def rows():
        for number in numbers:
            yield ids(number)

    return rows


# ---- order that breaks ---------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("start", [None, 5])
def test_order_that_breaks_is_an_error_and_the_bookmark_is_where_the_run_began(strategy: str, start: int | None):
    state = {"bookmarks": {"a": {"id": start}}} if start else None
    run = run_tap(one(slow(10, 11, 12, 7, 13), bookmark_strategy=strategy), state=state)
    assert isinstance(run.result.errors["a"], UnsortedStreamError)
    assert said(run)[-1] == start
    error = str(run.result.errors["a"])
    assert "12" in error
    assert "7" in error


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("start", [None, 5])
def test_order_that_breaks_can_fall_back_to_the_end(strategy: str, start: int | None, caplog: pytest.LogCaptureFixture):
    state = {"bookmarks": {"a": {"id": start}}} if start else None
    with caplog.at_level(logging.WARNING):
        run = run_tap(
            one(slow(10, 11, 12, 7, 13, 6), bookmark_strategy=strategy, on_unsorted="end_of_sync"), state=state
        )
    assert not run.result.errors
    assert len([one for one in caplog.records if "order 'asc' is declared, but" in one.getMessage()]) == 1
    assert [row["id"] for row in run.records("a")] == [10, 11, 12, 7, 13, 6]
    out = 0
    broken = False
    for message in run.messages:
        if message["type"] == "RECORD":
            broken = broken or message["record"]["id"] < out
            out = message["record"]["id"]
        elif message["type"] == "STATE" and broken and message is not run.messages[-1]:
            assert message["value"].get("bookmarks", {}).get("a", {}).get("id") in (start, 13)
    assert said(run)[-1] == 13


def test_a_fallen_back_stream_that_fails_keeps_the_bookmark_it_had():
    def rows():
        yield from slow(10, 11, 7, 13)()
        raise ConnectionError("gone")

    run = run_tap(
        one(rows, bookmark_strategy="every_n(1)", on_unsorted="end_of_sync"), state={"bookmarks": {"a": {"id": 5}}}
    )
    assert said(run)[-1] == 5


# ---- exclusive sources ------------------------------------------------------------------------------------


def test_an_exclusive_sources_value_is_safe_once_a_greater_one_followed():
    run = run_tap(one(slow(1, 2, 2, 3, 3), bookmark_strategy="every_n(1)", resume="exclusive"))
    assert said(run) == [None, 1, 2, 3]  # a STATE that says what the one before said is not written again
    out: list[int] = []
    for message in run.messages[:-1]:
        if message["type"] == "RECORD":
            out.append(message["record"]["id"])
        mark = message.get("value", {}).get("bookmarks", {}).get("a", {}).get("id")
        assert mark is None or mark < out[-1]


def test_an_exclusive_source_that_breaks_off_goes_on_before_the_last_value():
    def rows(stream):
        for number in (1, 2, 2, 3, 3, 3, 4):
            if number > (stream.bookmark or 0):
                if number == 4 and broken:
                    raise ConnectionError("gone")
                yield ids(number)

    broken = [True]
    tap = one(rows, bookmark_strategy="every_n(1)", resume="exclusive")
    first = run_tap(tap)
    assert said(first)[-1] == 2
    broken.clear()
    second = run_tap(tap, state=first.states[-1])
    assert [row["id"] for row in second.records("a")] == [3, 3, 3, 4]
    assert said(second)[-1] == 4


# ---- lookback -----------------------------------------------------------------------------------------------

DATE_TIME: dict[str, Any] = {"type": "string", "format": "date-time"}
DATE: dict[str, Any] = {"type": "string", "format": "date"}


@pytest.mark.parametrize(
    ("node", "saved", "lookback", "told"),
    [
        (DATE_TIME, "2024-05-01T00:10:00Z", dt.timedelta(minutes=10), "2024-05-01T00:00:00Z"),
        (DATE_TIME, "2024-05-01T00:10:00Z", 600, "2024-05-01T00:00:00Z"),
        (DATE_TIME, "2024-05-01T02:10:00+02:00", 0.5, "2024-05-01T02:09:59.500000+02:00"),
        (DATE, "2024-03-01", 1, "2024-02-29"),
        (DATE, "2024-03-01", dt.timedelta(hours=36), "2024-02-28"),
        ({"type": "integer"}, 100, 30, 70),
        ({"type": "number"}, 1.5, 0.25, 1.25),
        ({"type": "string", "format": "singer.decimal"}, "10.5", 0.25, "10.25"),
    ],
)
def test_a_lookback_is_what_the_function_sees_and_not_what_is_saved(node: Any, saved: Any, lookback: Any, told: Any):
    seen = []
    tap = burler.tap("tap-t")
    schema = {"properties": {"k": node}}
    tap.sync("a", replication_key="k", lookback=lookback, schema=schema)(
        lambda stream: seen.append(stream.bookmark) or []
    )
    run = run_tap(tap, state={"bookmarks": {"a": {"k": saved}}})
    assert not run.result.errors
    assert seen == [told]
    assert run.states[-1] == {"bookmarks": {"a": {"k": saved}}}


def test_rows_of_the_lookback_never_set_the_bookmark_back():
    run = run_tap(
        one(slow(70, 80, 101), lookback=30, bookmark_strategy="every_n(1)"), state={"bookmarks": {"a": {"id": 100}}}
    )
    assert not run.result.errors
    assert said(run) == [100, 101, 101]


@pytest.mark.parametrize(("saved", "lookback"), [("abc", 5), (100, dt.timedelta(days=1))])
def test_a_lookback_that_a_bookmark_has_no_room_for_is_an_error_of_that_stream(saved: Any, lookback: Any):
    tap = burler.tap("tap-t")
    schema = {"properties": {"k": {"type": ["string", "integer"]}}}
    tap.sync("a", replication_key="k", lookback=lookback, schema=schema)(lambda stream: [{"k": saved}])
    tap.sync("b", replication_key="k", schema=schema)(lambda: [{"k": 1}])
    state = {"bookmarks": {"a": {"k": saved}}}
    run = run_tap(tap, state=state)
    assert isinstance(run.result.errors["a"], StreamError)
    assert "lookback" in str(run.result.errors["a"])
    assert run.states[-1]["bookmarks"]["a"] == {"k": saved}
    assert run.records("b") == [{"k": 1}]


def test_without_a_bookmark_there_is_nothing_to_look_back_from():
    seen = []
    when = {"properties": {"at": {"type": "string", "format": "date-time"}}}
    tap = burler.tap("tap-t")
    tap.sync("a", replication_key="at", lookback=5, schema=when)(lambda stream: seen.append(stream.bookmark) or [])
    run_tap(tap)
    run_tap(tap, {"start_date": "2024-01-01T00:00:00Z"})
    assert seen == [None, "2024-01-01T00:00:00Z"]


def test_a_lookback_holds_in_each_partition():
    seen = []
    tap = one(lambda stream: seen.append(stream.bookmark) or [], lookback=5)
    tap.partitions("a", key="n")(lambda: [{"n": 1}, {"n": 2}])
    run_tap(tap, state={"bookmarks": {"a": {"id": 100, "partitions": {"1": {"id": 50}}}}})
    assert seen == [45, 95]


# ---- signposts ----------------------------------------------------------------------------------------------

NOON = dt.datetime(2024, 5, 1, 12, tzinfo=dt.UTC)


def at_noon(tap: burler.Tap, state: Any = None) -> list[dict[str, Any]]:
    """The messages of a run that begins at noon."""
    return run_tap(tap, state=state, clock=FakeClock(NOON)).messages


def timed(*values: Any, node: Any = None, **options: Any) -> burler.Tap:
    tap = burler.tap("tap-t")
    schema = {"properties": {"at": node or DATE_TIME}}
    tap.sync("a", replication_key="at", signpost=True, schema=schema, **options)(lambda: ([{"at": v}] for v in values))
    return tap


def saved(messages: list[dict[str, Any]]) -> list[Any]:
    return [m["value"].get("bookmarks", {}).get("a", {}).get("at") for m in messages if m["type"] == "STATE"]


@pytest.mark.parametrize("strategy", ["end_of_sync", *STRATEGIES, "manual"])
def test_a_bookmark_never_passes_the_time_the_sync_began(strategy: str):
    before, after = "2024-05-01T11:00:00Z", "2024-05-01T13:00:00Z"
    tap = timed(before, after, bookmark_strategy=strategy)
    if strategy == "manual":
        tap = burler.tap("tap-t")

        @tap.sync(
            "a",
            replication_key="at",
            signpost=True,
            bookmark_strategy="manual",
            schema={"properties": {"at": DATE_TIME}},
        )
        def rows(stream):
            yield {"at": after}
            stream.save_bookmark()

    marks = saved(at_noon(tap))
    assert marks[-1] == "2024-05-01T12:00:00Z"
    assert all(mark is None or mark <= "2024-05-01T12:00:00Z" for mark in marks)


def test_a_bookmark_before_it_is_as_ever_and_one_beyond_it_in_the_state_stays():
    assert saved(at_noon(timed("2024-05-01T11:59:59Z")))[-1] == "2024-05-01T11:59:59Z"
    state = {"bookmarks": {"a": {"at": "2024-05-01T15:00:00Z"}}}
    assert saved(at_noon(timed("2024-05-01T16:00:00Z"), state))[-1] == "2024-05-01T15:00:00Z"


def test_dates_pass_no_further_than_the_day_the_sync_began():
    assert saved(at_noon(timed("2024-04-30", "2024-05-02", node=DATE)))[-1] == "2024-05-01"
    exclusive = timed("2024-04-29", "2024-05-02", node=DATE, resume="exclusive", bookmark_strategy="every_n(1)")
    assert saved(at_noon(exclusive))[-1] == "2024-04-30"


@pytest.mark.parametrize("value", [5, "text", Decimal("1.5")])
def test_a_signpost_is_for_times_alone(value: Any):
    tap = timed(value, node={"type": ["string", "number"]})
    run = run_tap(tap)
    assert "signpost=True needs date-times or dates" in str(run.result.errors["a"])
    assert saved(run.messages)[-1] is None


def test_without_a_signpost_the_future_counts():
    tap = burler.tap("tap-t")
    tap.sync("a", replication_key="at", schema={"properties": {"at": DATE_TIME}})(
        lambda: [{"at": "2999-01-01T00:00:00Z"}]
    )
    assert saved(at_noon(tap))[-1] == "2999-01-01T00:00:00Z"
