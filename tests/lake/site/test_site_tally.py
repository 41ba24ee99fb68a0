"""What came when: units of time, gaps, and the tables behind plots."""

from __future__ import annotations

import datetime as dt
import re

import pytest
from site_reading import describe, make_site

from burler.lake import FileStats, open_store
from burler.singer.messages import format_time

BEGIN = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
MIDNIGHT = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
DAY, HOUR = dt.timedelta(days=1), dt.timedelta(hours=1)


def file(records: int, first: dt.datetime, last: dt.datetime | None = None) -> FileStats:
    return FileStats(records, records * 100, format_time(first), format_time(last or first))


UNITS = [
    (5 * HOUR, "hour", "2024-01-01 17:00"),
    (48 * HOUR, "day", "2024-01-03"),
    (90 * DAY, "day", "2024-03-31"),
    (200 * DAY, "week", "2024-07-15"),
    (900 * DAY, "month", "2026-06"),
    (365 * 20 * DAY, "year", "2043"),
    (365 * 500 * DAY, "decade", "2520"),
    (365 * 7900 * DAY, "century", "9900"),
]
SPANS = [0.05, 0.5, 1.5, 3, 90, 91, 92, 200, 700, 2000, 20_000, 200_000, 2_900_000]
FILES = {
    **{f"unit-{n}": [file(50, BEGIN), file(100, BEGIN + span)] for n, (span, *_) in enumerate(UNITS)},
    **{
        f"span-{n}": [
            file(1_000_003, BEGIN, BEGIN + days * DAY),
            file(17, BEGIN + days / 3 * DAY, BEGIN + days * DAY),
            file(5, BEGIN + days * DAY),
        ]
        for n, days in enumerate(SPANS)
    },
    "short": [file(1, BEGIN), file(1, BEGIN + HOUR / 2)],
    "ever": [file(1, dt.datetime(1, 1, 1, tzinfo=dt.UTC)), file(1, dt.datetime(9999, 12, 31, 23, tzinfo=dt.UTC))],
    "compacted": [file(8401, MIDNIGHT, MIDNIGHT + 84 * DAY - HOUR / 3600)],
    "by-hours": [file(36, BEGIN, BEGIN + 35 * HOUR), file(1, BEGIN - 3 * DAY)],
    "turned-round": [file(4, BEGIN + 3 * HOUR, BEGIN)],
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A stream for each of these sets of files."""
    base = tmp_path_factory.mktemp("tally")
    for name, files in FILES.items():
        describe(base / "lake", name, [{"properties": {}}], files, tap="tap-x")
    made = make_site(open_store(str(base / "lake")), base / "site")
    assert made.problems == []
    return made


def bars(site, stream: str) -> list[tuple[str, int]]:
    """(label, rows) of each bar; where nothing came is none."""
    row = r"(\d{4}(?:-\d\d)*(?: \d\d:\d\d)?): ([\d,]+) rows?\b"
    return [(label, int(rows.replace(",", ""))) for label, rows in re.findall(row, site.text(site.page_of(stream)))]


def test_the_unit_fits_the_time_that_is_covered(site):
    for n, (_, unit, last) in enumerate(UNITS):
        (first, fifty), found = bars(site, f"unit-{n}")
        assert f"Rows per {unit}" in site.text(site.page_of(f"unit-{n}"))
        assert found == (last, 100), unit
        assert (first[:3], fifty) == ("202" if unit != "century" else "200", 50), unit


def test_what_came_within_an_hour_is_no_series(site):
    assert "Rows per" not in site.text(site.page_of("short"))


def test_the_first_and_the_last_year_there_is_do_no_harm(site):
    assert bars(site, "ever") == [("0001", 1), ("9900", 1)]


def test_the_rows_of_a_file_that_spans_many_days_count_evenly(site):
    """As of one that was compacted of the files of a quarter: two bars would say that nothing came for months."""
    found = bars(site, "compacted")
    assert (len(found), {rows for _, rows in found}) == (84, {100, 101})
    assert sum(rows for _, rows in found) == 8401


def test_no_row_is_lost_or_counted_twice_whatever_the_unit(site):
    for n, days in enumerate(SPANS):
        assert sum(rows for _, rows in bars(site, f"span-{n}")) == 1_000_025, days


def test_a_span_that_begins_and_ends_within_a_day_shares_its_rows_by_hours(site):
    assert bars(site, "by-hours") == [("2023-12-29", 1), ("2024-01-01", 12), ("2024-01-02", 24)]


def test_statistics_that_end_before_they_begin_are_read_the_right_way_round(site):
    assert [rows for _, rows in bars(site, "turned-round")] == [1, 1, 1, 1]


def test_a_plot_says_in_words_what_it_is(site):
    source = site.source(site.page_of("unit-0"))
    assert "Rows per hour from 2024-01-01 12:00 to 2024-01-01 17:00: 150 in all, most at" in source
    text = site.text(site.page_of("unit-0"))
    assert "2024-01-01 12:00: 50 rows 2024-01-01 17:00: 100 rows" in text
    assert "2024-01-01 12:00: 4.9 KiB 2024-01-01 17:00: 9.8 KiB" in text
    assert "2024-01-01 12:00: 1 row " in site.text(site.page_of("turned-round"))
