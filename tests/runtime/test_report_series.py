"""Points over time: enough for a plot, and never more."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from reportruns import Clock, ended, new_report

from support.internals import run_report

POINTS = 500
"""Of one stream, at the most (docs/reports.md)."""


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def report(clock: Clock) -> run_report.Report:
    return new_report(clock)


def test_an_endless_run_keeps_few_points_from_all_of_its_time(report: run_report.Report, clock: Clock):
    """Fast for a while, then slow for hours: both show."""
    report.stream_began("a", method="INCREMENTAL", bookmark=0)
    for i in range(100_000):
        clock.seconds += 0.01 if i < 90_000 else 60
        report.page("a", i, i)
    (series,) = report.to_json()["series"]
    seconds = series["seconds"]
    assert POINTS // 5 < len(seconds) <= POINTS + 1
    assert len(seconds) == len(series["rows"]) == len(series["bookmark"])
    assert (seconds[0], series["rows"][-1], series["bookmark"][-1]) == (0.0, 99_999, 99_999)
    assert seconds == sorted(seconds)
    assert max(after - before for before, after in pairwise(seconds)) < seconds[-1] / 50


def test_a_short_run_keeps_every_point(report: run_report.Report, clock: Clock):
    report.stream_began("a", method="INCREMENTAL", bookmark=0)
    for i in range(1, POINTS - 1):
        clock.seconds += 0.5
        report.page("a", i, i)
    assert report.to_json()["series"][0]["rows"] == list(range(POINTS - 1))


def test_a_clock_that_stands_still_makes_no_points_for_ever(report: run_report.Report):
    report.stream_began("a", method="INCREMENTAL", bookmark=0)
    for i in range(10_000):
        report.page("a", i, i)
    assert len(report.to_json()["series"][0]["rows"]) <= POINTS + 1


def test_many_streams_share_the_room_for_points(report: run_report.Report, clock: Clock):
    """300 of them in room for 100,000 points: fewer each; what has come to its end is thinned as well."""
    for number in range(300):
        report.stream_began(f"s{number}", method="INCREMENTAL", bookmark=0)
        for i in range(POINTS - 10):
            clock.seconds += 1
            report.page(f"s{number}", i, i)
    found = [len(one["seconds"]) for one in report.to_json()["series"]]
    assert 20_000 < sum(found) <= 100_600
    assert min(found) >= 4


def test_points_that_are_kept_lie_evenly(report: run_report.Report, clock: Clock):
    report.stream_began("a", method="INCREMENTAL", bookmark=0)
    for i in range(50_000):
        clock.seconds += 1
        report.page("a", i, i)
    seconds = report.to_json()["series"][0]["seconds"]
    gaps = [after - before for before, after in pairwise(seconds[:-1])]
    assert POINTS * 0.45 <= len(gaps) <= POINTS
    assert max(gaps) <= 2.1 * min(gaps)


def test_a_bookmark_of_a_megabyte_is_kept_once(report: run_report.Report, clock: Clock):
    report.stream_began("a", method="INCREMENTAL", bookmark=None)
    for i in range(POINTS + 1):
        clock.seconds += 1
        report.page("a", i, f"{i}" + "x" * 1_000_000)
    report.page("a", i + 1, "y" * 1_000_000)
    series = report.to_json()["series"][0]
    assert series["bookmark"][-1][0] == "y"
    assert max(map(len, filter(None, series["bookmark"]))) <= 204


def test_without_points_nothing_is_kept_over_time(clock: Clock):
    report = new_report(clock, points=0)
    report.stream_began("a", method="INCREMENTAL", bookmark=0)
    report.page("a", 5, 5)
    ended(report, "a", rows=5)
    assert report.to_json()["series"] == []
    assert report.to_json()["streams"][0]["rows"] == 5


def test_a_page_costs_next_to_nothing():
    """Under a microsecond a page in a quiet moment; held to ten here, since tests run beside others."""
    report = run_report.Report()
    report.stream_began("a", method="INCREMENTAL", bookmark=0)
    best = 1.0
    for _ in range(5):
        begun = time.perf_counter()
        for i in range(20_000):
            report.page("a", i, i)
        best = min(best, (time.perf_counter() - begun) / 20_000)
    assert best < 10e-6
