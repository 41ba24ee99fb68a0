"""The summary: a table that fits, and shows what failed."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reportruns import Clock, ended, new_report

from support.internals import run_report


@pytest.fixture
def report() -> run_report.Report:
    return new_report(Clock())


def three_streams(report: run_report.Report) -> None:
    first, last = "2024-01-01T00:00:00.000000Z", "2024-03-01T12:30:00.250000Z"
    report.stream_began("contacts", method="INCREMENTAL", bookmark=first)
    ended(
        report, "contacts", rows=12345, updated=12344, skipped=2, seconds=61.26, bookmark_from=first, bookmark_to=last
    )
    ended(report, "notes", rows=7, seconds=0.04)
    ended(report, "tags", rows=0, updated=0, bookmark_from=5, bookmark_to=5)


def test_the_table_of_a_run(report: run_report.Report):
    three_streams(report)
    assert report.summary().splitlines() == [
        "stream      rows  updated  skipped  seconds  errors  bookmark",
        "-" * 97,
        "contacts  12,345   12,344        2     61.3       0  2024-01-01T00:00:00Z -> 2024-03-01T12:30:00Z",
        "notes          7        -        0      0.0       0  -",
        "tags           0        0        0      1.0       0  5",
        "total     12,352   12,344        2                0",
    ]


def test_a_run_of_one_stream_has_no_total(report: run_report.Report):
    ended(report, "notes", rows=7, bookmark_to=9)
    assert report.summary().splitlines() == [
        "stream  rows  updated  skipped  seconds  errors  bookmark",
        "-" * 58,
        "notes      7        -        0      1.0       0  none -> 9",
    ]


def test_how_a_stream_ended_is_said_where_its_errors_do_not_say_it(report: run_report.Report):
    ended(report, "a")
    report.failed("b", None, ValueError("x"))
    ended(report, "b", status="failed")
    assert "status" not in report.summary()
    ended(report, "a", status="stopped")
    report.stream_began("c", method=None, bookmark=None)
    lines = report.summary().splitlines()
    assert "status" in lines[0]
    assert [line.split()[0:7:6] for line in lines[2:5]] == [["a", "stopped"], ["b", "failed"], ["c", "unfinished"]]


def names_in(text: str) -> list[str]:
    return [line.split("  ")[0] for line in text.splitlines()[2:]]


def test_of_many_streams_forty_are_shown_and_the_rest_is_summed(report: run_report.Report):
    for i in range(100):
        ended(report, f"s{i:02}", rows=i)
    shown = names_in(report.summary())
    assert shown == [*(f"s{i:02}" for i in range(60, 100)), "and 60 more", "total"]
    (rest,) = [line for line in report.summary().splitlines() if line.startswith("and 60 more")]
    assert rest.split() == ["and", "60", "more", f"{sum(range(60)):,}", "-", "0", "0"]
    assert f"{sum(range(100)):,}" in report.summary().splitlines()[-1]


def test_streams_that_failed_are_always_shown(report: run_report.Report):
    for i in range(100):
        if i < 50:
            report.failed(f"s{i:02}", None, ValueError(i))
        ended(report, f"s{i:02}", rows=i, status="failed" if i < 50 else "succeeded")
    assert names_in(report.summary()) == [*(f"s{i:02}" for i in range(50)), "and 50 more", "total"]
    assert report.summary().count("\n") == 1 + 50 + 2
    other = new_report(Clock())
    for i in range(50):
        ended(other, f"s{i:02}", rows=100 - i, status="failed" if i == 49 else "succeeded")
    assert names_in(other.summary())[-3:] == ["s49", "and 10 more", "total"]


@pytest.mark.parametrize("width", [0, 1, 10, 20, 40, 60, 80, 100, 120, 200])
def test_no_line_is_longer_than_the_terminal_is_wide(report: run_report.Report, width: int):
    three_streams(report)
    ended(
        report, "a_stream_with_a_very_long_name_" * 5 + "1", rows=10**12, bookmark_from="x" * 500, bookmark_to="y" * 90
    )
    lines = report.summary(width).splitlines()
    assert max(map(len, lines), default=0) <= width
    if width >= 40:
        assert lines[2].startswith("contacts") and "12,345" in lines[2]


def test_what_there_is_no_room_for_goes_in_order(report: run_report.Report):
    three_streams(report)
    headers = [report.summary(width).split("\n")[0].split() for width in (98, 77, 70, 62, 53, 28)]
    assert headers[0] == headers[1] == ["stream", "rows", "updated", "skipped", "seconds", "errors", "bookmark"]
    assert headers[2:] == [
        ["stream", "rows", "updated", "seconds", "errors", "bookmark"],
        ["stream", "rows", "seconds", "errors", "bookmark"],
        ["stream", "rows", "errors", "bookmark"],
        ["stream", "rows", "errors"],
    ]


def test_long_names_keep_both_ends_and_bookmarks_both_values(report: run_report.Report):
    ended(report, "crm_accounts_of_the_northern_region_2024", bookmark_from="2024-01-01T00:00:00Z")
    ended(report, "crm_accounts_of_the_northern_region_2025", bookmark_from="a" * 100, bookmark_to="b" * 100)
    first, second = report.summary(90).splitlines()[2:4]
    assert first.startswith("crm_ac") and "2024  " in first
    assert "2025  " in second
    assert re.search(r"a{5,}\.\.a{5,} -> b{5,}\.\.b{5,}$", second)


def test_names_and_bookmarks_get_the_room_there_is(report: run_report.Report):
    name = "crm_accounts_of_the_northern_region_2024"
    ended(report, name, bookmark_to=9)
    assert report.summary().splitlines()[2].startswith(f"{name}  ")
    ended(report, name, bookmark_from="a" * 10, bookmark_to="b" * 100)
    assert report.summary(96).splitlines()[2].endswith(f"  {'a' * 10} -> {'b' * 10}..{'b' * 10}")
    ended(report, name, bookmark_from="a" * 100, bookmark_to="b" * 10)
    assert report.summary(96).splitlines()[2].endswith(f"  {'a' * 10}..{'a' * 10} -> {'b' * 10}")
    ended(report, name, bookmark_from="a" * 100, bookmark_to="b" * 100)
    assert report.summary(96).splitlines()[2].endswith(f"  {'a' * 7}..{'a' * 7} -> {'b' * 7}..{'b' * 7}")


def test_what_is_cut_off_a_bookmark_is_told(report: run_report.Report):
    name = "crm_accounts_of_the_northern_region_2024"
    ended(report, name, bookmark_from=9876543210123001, bookmark_to=9876543210123458)
    assert report.summary(84).splitlines()[2].endswith("  9876..3001 -> 98765..3458")
    ended(report, name, bookmark_from="2024-01-01T00:00:00Z", bookmark_to="2024-01-01T09:00:00Z")
    assert report.summary(96).splitlines()[2].endswith("  2024-01-01T00:.. -> 2024-01-01T09:..")


def test_what_is_not_ascii_is_spelled_out(report: run_report.Report):
    ended(report, "caf\u00e9\n", bookmark_to="\u5ba2")
    assert report.summary().splitlines()[2].startswith("caf\\xe9\\x0a  ")
    assert report.summary().endswith("  none -> \\u5ba2")


@pytest.mark.parametrize("name", ["a\nINFO METRIC: {}", "\x1b[31mred", "a\tb", "é", "客户", "\ud800", "\x7f", "\x85"])
def test_a_name_can_not_break_the_table(report: run_report.Report, name: str):
    ended(report, name, bookmark_to=name)
    text = report.summary()
    assert len(text.split("\n")) == 3
    assert re.fullmatch(r"[ -~\n]*", text)


@given(
    st.lists(st.tuples(st.text(max_size=60), st.integers(0, 10**15), st.none() | st.text(max_size=60)), max_size=60),
    st.integers(0, 150),
)
def test_any_table_fits_and_is_ascii(streams: list[tuple[str, int, str | None]], width: int):
    report = new_report(Clock())
    for name, rows, bookmark in streams:
        ended(report, name, rows=rows, bookmark_to=bookmark)
    text = report.summary(width)
    assert re.fullmatch(r"[ -~\n]*", text)
    assert all(len(line) <= width for line in text.split("\n"))


def test_what_was_counted_stands_below_the_table():
    report = run_report.Report(points=0)
    counts = {"bytes": 5, "requests": 31, "retries": {"429": 3, "no answer": 1}, "refreshes": 1, "queries": 1}
    ended = {"status": "succeeded", "rows": 0, "updated": None, "skipped": 0, "seconds": 0.0}
    report.stream_ended("rates", **ended, bookmark_from=None, bookmark_to=None, counts=counts)
    report.stream_ended("others", **ended, bookmark_from=None, bookmark_to=None, counts={"bytes": 1})
    (line,) = [line for line in report.summary().splitlines() if ": " in line]
    assert line == "rates: 31 requests, 4 retries (429: 3, no answer: 1), 1 refresh, 1 query"
