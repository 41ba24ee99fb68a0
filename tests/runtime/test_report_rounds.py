"""A report of a tail: rounds of a stream are added up, in as much memory as one of them."""

from __future__ import annotations

import time
import tracemalloc

import pytest
from reportruns import Clock, ended, new_report

from burler.errors import Failure, PartialError, StreamError
from support.internals import run_report

FAILURES = 1000
"""Kept in a report, at the most (docs/reports.md)."""


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def report(clock: Clock) -> run_report.Report:
    return new_report(clock)


def a_round(report: run_report.Report, clock: Clock, stream: str = "orders", **given: object) -> None:
    """A round of three rows, two pages, in two seconds."""
    report.stream_began(stream, method="INCREMENTAL", bookmark=given.get("bookmark_from"))
    clock.seconds += 1
    report.page(stream, 1, None)
    clock.seconds += 1
    report.page(stream, 3, given.get("bookmark_to"))
    told = {"rows": 3, "updated": 2, "skipped": 1, "seconds": 2.0, "counts": {"requests": 2}}
    ended(report, stream, **{**told, **given})


def only(report: run_report.Report) -> dict[str, object]:
    (one,) = report.to_json()["streams"]
    return one


def test_rounds_are_added_up(report: run_report.Report, clock: Clock):
    a_round(report, clock, bookmark_from=None, bookmark_to=5)
    clock.seconds += 60
    a_round(report, clock, bookmark_from=5, bookmark_to=8)
    clock.seconds += 60
    a_round(report, clock, bookmark_from=8, bookmark_to=9, rows=0, updated=0, skipped=0, counts={})
    found = only(report)
    assert {key: found[key] for key in found if key not in ("stream", "errors", "replication_method")} == {
        "status": "succeeded",
        "rows": 6,
        "updated": 4,
        "skipped": 2,
        "seconds": 6.0,
        "rounds": 3,
        "rows_per_second": 1.0,
        "bookmark_from": None,
        "bookmark_to": 9,
        "counts": {"requests": 4},
        "error_count": 0,
    }
    assert report.to_json()["totals"]["rows"] == 6


def test_a_round_that_is_under_way_counts(report: run_report.Report, clock: Clock):
    a_round(report, clock)
    report.stream_began("orders", method="INCREMENTAL", bookmark=5)
    report.page("orders", 2, 7)
    found = only(report)
    assert (found["rows"], found["rounds"], found["bookmark_to"]) == (5, 1, 7)


def test_a_stream_that_has_recovered_has_not_failed(report: run_report.Report, clock: Clock):
    report.stream_began("orders", method="INCREMENTAL", bookmark=None)
    error = StreamError("orders", "gone")
    report.failed("orders", None, error)
    ended(report, "orders", status="failed")
    report.failed("orders", None, error)
    assert report.to_json()["totals"]["streams_failed"] == 1
    a_round(report, clock)
    found = report.to_json()["totals"]
    assert (found["streams_failed"], found["errors"]) == (0, 1)
    assert (only(report)["status"], only(report)["error_count"]) == ("succeeded", 1)
    report.stream_began("orders", method="INCREMENTAL", bookmark=None)
    report.failed("orders", None, StreamError("orders", "gone again"))
    assert report.to_json()["totals"]["streams_failed"] == 1


def test_parts_that_fail_in_each_round_are_told_in_each(report: run_report.Report):
    for n in range(3):
        report.stream_began("orders", method="INCREMENTAL", bookmark=None)
        failure = Failure("orders", "partition b", ValueError(n))
        report.failed("orders", failure.where, failure.error)
        report.failed("orders", None, PartialError("orders", [failure]))
        ended(report, "orders", status="failed")
    assert [error["message"] for error in only(report)["errors"]] == ["0", "1", "2"]


def test_parts_that_only_a_partial_error_names_are_named_in_each_round(report: run_report.Report):
    for n in range(2):
        report.stream_began("orders", method="INCREMENTAL", bookmark=None)
        if n == 0:
            report.failed("orders", "partition a", ValueError("told alone"))
        else:
            parts = [Failure("orders", "partition b", ValueError("told together"))]
            report.failed("orders", None, PartialError("orders", parts))
        ended(report, "orders", status="failed")
    assert [error["message"] for error in only(report)["errors"]] == ["told alone", "told together"]


def test_of_many_errors_of_a_tail_the_newest_stay(report: run_report.Report):
    for n in range(FAILURES + 7):
        report.stream_began("orders", method="INCREMENTAL", bookmark=None)
        report.failed("orders", None, ValueError(n))
        ended(report, "orders", status="failed")
    found = only(report)
    assert found["error_count"] == FAILURES + 7
    assert [error["message"] for error in found["errors"]] == [str(n) for n in range(7, FAILURES + 7)]


def test_where_one_stream_fills_the_list_another_has_room(report: run_report.Report):
    for n in range(FAILURES):
        report.failed("orders", f"partition {n}", ValueError(n))
    ended(report, "users")
    report.stream_began("users", method="FULL_TABLE", bookmark=None)
    report.failed("users", None, ValueError("new"))
    by_name = {one["stream"]: one["errors"] for one in report.to_json()["streams"]}
    assert [len(by_name["orders"]), len(by_name["users"])] == [FAILURES - 1, 1]


def test_the_plot_of_a_tail_has_points_for_all_of_its_time(clock: Clock):
    report = new_report(clock, points=50)
    for n in range(5000):
        a_round(report, clock, bookmark_from=n, bookmark_to=n + 1)
    (series,) = report.to_json()["series"]
    assert 10 <= len(series["seconds"]) <= 51
    steps = [after - before for before, after in zip(series["seconds"], series["seconds"][1:], strict=False)]
    assert max(steps) < 10_000 / 8
    assert (series["rows"][-1], series["bookmark"][-1], series["seconds"][-1]) == (15_000, 5000, 10_000.0)


def test_the_plot_shows_where_a_bookmark_went_without_rows(report: run_report.Report, clock: Clock):
    a_round(report, clock, bookmark_from=1, bookmark_to=5)
    a_round(report, clock, bookmark_from=5, bookmark_to=6)
    report.stream_began("orders", method="INCREMENTAL", bookmark=6)
    clock.seconds += 1
    ended(report, "orders", bookmark_from=6, bookmark_to=7)
    (series,) = report.to_json()["series"]
    assert series["bookmark"][-1] == 7


@pytest.mark.parametrize("points", [0, 500])
def test_rounds_cost_no_memory_and_little_time(clock: Clock, points: int):
    report = new_report(clock, points=points)

    def rounds(count: int) -> None:
        for n in range(count):
            a_round(report, clock, bookmark_from=n, bookmark_to=n + 1)

    rounds(3000)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        rounds(10_000)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 100_000
    begun = time.process_time()
    rounds(20_000)
    assert (time.process_time() - begun) / 20_000 < 150e-6


@pytest.mark.parametrize(
    ("before", "more", "both"),
    [
        ({}, {"requests": 2}, {"requests": 2}),
        ({"requests": 2}, {}, {"requests": 2}),
        ({"requests": 2, "files": 1}, {"requests": 3}, {"files": 1, "requests": 5}),
        ({"retries": {"429": 1}}, {"retries": {"429": 2, "no answer": 1}}, {"retries": {"429": 3, "no answer": 1}}),
        ({"retries": 2}, {"retries": {"429": 1}}, {"retries": {"other": 2, "429": 1}}),
        ({"retries": {"429": 1}}, {"retries": 2}, {"retries": {"429": 1, "other": 2}}),
    ],
)
def test_counts_of_rounds_are_added_up(report: run_report.Report, clock: Clock, before: dict, more: dict, both: dict):
    a_round(report, clock, counts=before)
    a_round(report, clock, counts=more)
    assert only(report)["counts"] == both
