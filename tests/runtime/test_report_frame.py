"""The live table of a tail as lines: what it shows, and that it fits any terminal."""

from __future__ import annotations

import dataclasses
import datetime as dt
import logging
from pathlib import Path
from typing import Any

import pytest

from burler.testing import FakeClock
from support.internals import report_frame, tail_watch

WATCH = tail_watch.TailWatch(FakeClock(), [("orders", "poll")])
"""Of a tail that has not begun: what it shows is replaced by what a test wants to see."""
RUN = dataclasses.replace(
    WATCH.totals(),
    seconds=3600.0,
    rows=12_345,
    rows_per_second=45.2,
    states=7,
    state_bytes=700,
    last_state_seconds_ago=12.0,
    last_state_at=1767225588.0,
)


def view(name: str = "orders", **given: Any) -> Any:
    """A stream that waits for its next round."""
    told: dict[str, Any] = {
        "kind": "poll",
        "status": "waiting",
        "rows": 12_000,
        "repeated": 3,
        "rows_per_second": 40.0,
        "bookmark": "2026-01-01T00:00:00Z",
        "lag_seconds": 3.2,
        "last_poll_seconds_ago": 1.5,
        "last_poll_at": 1767225600.0,
        "next_poll_in_seconds": 8.0,
        "polls": 30,
        "poll_seconds": 0.2,
        "polls_seconds": 6.0,
    }
    [starting] = WATCH.snapshot()
    return dataclasses.replace(starting, name=name, **{**told, **given})


def shown(streams: list[Any], width: int = 120, height: int = 24) -> list[str]:
    return [line.text for line in report_frame.frame("tap-crm", streams, RUN, width=width, height=height)]


def test_a_table_of_streams():
    failing = view("users", status="retrying", failures=2, errors=5, error="HTTPError: 500", bookmark=None)
    quiet = view("events", kind="push", status="connected", lag_seconds=None, bookmark=17, next_poll_in_seconds=None)
    assert shown([view(), failing, quiet]) == [
        "tap-crm: 3 streams, 1 failing, 12,345 rows, 45/s, last STATE 12 s ago, 3.2 s behind (users)",
        "stream  status       rows  rows/s    lag  last poll   next  failures  errors  bookmark",
        "--------------------------------------------------------------------------------------------------",
        "orders  waiting    12,000      40  3.2 s      1.5 s  8.0 s         0       0  2026-01-01T00:00:00Z",
        "users   retrying   12,000      40  3.2 s      1.5 s  8.0 s         2       5  -",
        "events  connected  12,000      40      -      1.5 s      -         0       0  17",
        "users: HTTPError: 500",
    ]
    styles = [line.style for line in report_frame.frame("tap-crm", [view(), failing], RUN, width=120, height=24)]
    assert styles == ["bold", "bold", "dim", "", "red", "red"]


def test_before_the_first_stream_and_the_first_state():
    assert [line.text for line in report_frame.frame("tap-crm", [], WATCH.totals(), width=100, height=20)] == [
        "tap-crm: 0 streams, 0 rows, 0/s, no STATE yet"
    ]


def test_where_there_is_no_room_the_worst_streams_come_first():
    streams = [view(f"s{n}", lag_seconds=float(n)) for n in range(30)]
    streams[7] = view("s7", failures=1, error="x")
    streams[9] = view("s9", status="failed", error="y")
    lines = shown(streams, height=10)
    assert [line.split()[0] for line in lines[3:]] == ["s9", "s7", "s29", "s28", "...", "s9:", "s7:"]
    assert lines[7] == "... and 26 more"


def test_all_streams_in_their_order_where_there_is_room():
    lines = shown([view(f"s{n}", failures=n) for n in range(5)], height=8)
    assert [line.split()[0] for line in lines[3:]] == ["s0", "s1", "s2", "s3", "s4"]


@pytest.mark.parametrize("width", [1, 9, 20, 40, 60, 80, 100, 200])
@pytest.mark.parametrize("height", [1, 2, 4, 5, 6, 9, 24])
def test_it_fits_the_terminal(width: int, height: int):
    streams = [
        view(f"a_long_name_{'x' * n}", errors=n % 3, error="e" * 300 if n % 3 else None, failures=n % 2, rows=10**n)
        for n in range(15)
    ]
    for count in (1, 2, 15):
        lines = shown(streams[:count], width, height)
        assert 1 <= len(lines) <= height
        assert max(map(len, lines)) <= width


@pytest.mark.parametrize(
    ("width", "columns"),
    [
        (120, "stream status rows rows/s lag last poll next failures errors bookmark"),
        (105, "stream status rows rows/s lag last poll failures errors bookmark"),
        (80, "stream status rows rows/s lag last poll failures errors"),
        (60, "stream status rows rows/s lag failures"),
        (45, "stream status rows lag"),
        (30, "stream rows"),
    ],
)
def test_where_there_is_no_room_columns_go(width: int, columns: str):
    assert shown([view("orders_of_a_year", failures=1, errors=2)], width)[1].split() == columns.split()


def test_columns_that_say_nothing_are_left_out():
    lines = shown([view(lag_seconds=None, bookmark=None, next_poll_in_seconds=None)] * 2)
    assert lines[1].split() == ["stream", "status", "rows", "rows/s", "last", "poll"]


def test_nothing_from_outside_can_move_the_cursor():
    bad = "\x1b[2J\r\nZürich\u202e"
    lines = shown([view(bad, error=bad, errors=1, bookmark=bad)], 300)
    assert all(line.isascii() and line.isprintable() for line in lines)
    assert "\\x1b[2J" in lines[3]


def test_the_docs_show_what_is_shown():
    """docs/reports.md."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "reports.md").read_text(encoding="utf-8")
    streams = [
        view(),
        view(
            "users",
            status="retrying",
            rows=345,
            rows_per_second=1.2,
            lag_seconds=None,
            bookmark=17,
            last_poll_seconds_ago=190.0,
            next_poll_in_seconds=2.0,
            failures=2,
            errors=5,
            error="HTTPError: 500 Server Error",
        ),
        view(
            "events",
            kind="push",
            status="connected",
            rows=0,
            rows_per_second=0.0,
            lag_seconds=None,
            bookmark=None,
            last_poll_seconds_ago=None,
            next_poll_in_seconds=None,
        ),
    ]
    lines = [line.text for line in report_frame.frame("tap-desk", streams, RUN, width=120, height=24)]
    assert "\n".join(f"    {line}" for line in lines) in page, "\n".join(lines)


def test_the_docs_show_the_lines_of_the_log(caplog: pytest.LogCaptureFixture):
    page = (Path(__file__).resolve().parents[2] / "docs" / "reports.md").read_text(encoding="utf-8")
    clock = FakeClock(dt.datetime(2025, 12, 31, 23, 59, 3, 200_000, tzinfo=dt.UTC))
    watch = tail_watch.TailWatch(clock, [("orders", "poll"), ("users", "poll")])
    with caplog.at_level(logging.INFO, logger="burler"):
        for number in range(6):
            watch.round_began("orders")
            watch.rows("orders", 20, "2026-01-01T00:00:00Z")
            told: dict[str, Any] = {"seconds": 0.2, "status": "succeeded", "next_at": None}
            watch.round_ended("orders", rows={"orders": 20}, repeated=2, **told)
            if number < 4:
                watch.round_began("users")
                error = HTTPError("500 Server Error")
                watch.failed("users", error, failures=number + 1, wait_seconds=1.0)
                watch.round_ended("users", rows={}, repeated=0, **{**told, "status": "failed"})
        clock.advance(60)
        watch.tick()
    for name in ("orders", "users"):
        [line] = [one.getMessage() for one in caplog.records if one.getMessage().startswith(f"stream '{name}': ")]
        assert f"Z INFO {line}\n" in page, line


class HTTPError(Exception):
    pass
