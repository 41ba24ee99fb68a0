"""What came when: units of time, gaps, and the bars of plots."""

from __future__ import annotations

import datetime as dt

import pytest

from burler.lake import DataFile, FileStats
from support.internals import layout, site_plot, site_tally, site_words

BEGIN = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)


def data_file(at, records=None, n=1, until=None):
    until = until or at
    stats = None if records is None else FileStats(records, records * 100, at.isoformat(), until.isoformat())
    return DataFile(f"raw/t/s/H/{layout.file_name('s', at, until, n)}", stats)


def tally_of(files):
    tally = site_tally.Tally()
    for file in files:
        tally.add(file)
    return tally


def series(*moments, records=1):
    return site_tally.series_of(tally_of(data_file(moment, records) for moment in moments))


@pytest.mark.parametrize(
    ("span", "unit", "count", "last"),
    [
        (dt.timedelta(hours=5), "hour", 6, "2024-01-01 17:00"),
        (dt.timedelta(hours=48), "day", 3, "2024-01-03"),
        (dt.timedelta(days=90), "day", 91, "2024-03-31"),
        (dt.timedelta(days=200), "week", 29, "2024-07-15"),
        (dt.timedelta(days=900), "month", 30, "2026-06"),
        (dt.timedelta(days=365 * 20), "year", 20, "2043"),
        (dt.timedelta(days=365 * 500), "decade", 51, "2520"),
        (dt.timedelta(days=365 * 7900), "century", 80, "9900"),
    ],
)
def test_the_unit_fits_the_time_that_is_covered(span, unit, count, last):
    found = series(BEGIN, BEGIN + span)
    assert (found.unit, len(found.buckets), found.buckets[-1].label) == (unit, count, last)
    assert [bucket.files for bucket in (found.buckets[0], found.buckets[1], found.buckets[-1])] == [1, 0, 1]
    assert found.place(BEGIN + span) == count - 1


def test_what_came_within_an_hour_is_no_series():
    assert series(BEGIN, BEGIN + dt.timedelta(minutes=30)) is None
    assert site_tally.series_of(site_tally.Tally()) is None


def test_the_first_and_the_last_year_there_is_do_no_harm():
    low, high = dt.datetime(1, 1, 1, tzinfo=dt.UTC), dt.datetime(9999, 12, 31, 23, tzinfo=dt.UTC)
    found = series(low, high)
    assert (found.unit, len(found.buckets)) == ("century", 100)
    assert site_plot.rows_plot(found) is not None


def test_counts_add_up_and_merge():
    one = tally_of([data_file(BEGIN, 3), data_file(BEGIN + dt.timedelta(hours=2), 4)])
    two = tally_of([data_file(BEGIN, None), data_file(BEGIN - dt.timedelta(days=1), 5)])
    one.merge(two)
    assert (one.files, one.counted, one.records, one.bytes, one.complete) == (4, 3, 12, 1200, False)
    assert (one.first, one.last) == (BEGIN - dt.timedelta(days=1), BEGIN + dt.timedelta(hours=2))
    found = site_tally.series_of(one)
    assert sum(bucket.records for bucket in found.buckets) == 12
    assert sum(bucket.files for bucket in found.buckets) == 4


def test_the_rows_of_a_file_that_spans_many_days_count_evenly():
    """As of one that was compacted of the files of a quarter: two bars would say that nothing came for months."""
    begin = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    found = site_tally.series_of(tally_of([data_file(begin, 8401, until=begin + dt.timedelta(days=84, seconds=-1))]))
    assert (found.unit, len(found.buckets)) == ("day", 84)
    assert {bucket.records for bucket in found.buckets} == {100, 101}
    assert sum(bucket.records for bucket in found.buckets) == 8401
    assert sum(bucket.bytes for bucket in found.buckets) == 840_100
    assert [at for at, bucket in enumerate(found.buckets) if bucket.files] == [83]


@pytest.mark.parametrize("days", [0.05, 0.5, 1.5, 3, 90, 91, 92, 200, 700, 2000, 20_000, 200_000, 2_900_000])
def test_no_row_is_lost_or_counted_twice_whatever_the_unit(days):
    until = BEGIN + dt.timedelta(days=days)
    middle = BEGIN + dt.timedelta(days=days / 3)
    tally = tally_of(
        [data_file(BEGIN, 1_000_003, until=until), data_file(middle, 17, until=until), data_file(until, 5)]
    )
    found = site_tally.series_of(tally)
    assert sum(bucket.records for bucket in found.buckets) == tally.records == 1_000_025
    assert sum(bucket.bytes for bucket in found.buckets) == tally.bytes
    assert sum(bucket.files for bucket in found.buckets) == found.buckets[-1].files == 3
    assert all(bucket.records >= 0 for bucket in found.buckets)


def test_a_span_that_begins_and_ends_within_a_day_shares_its_rows_by_hours():
    found = site_tally.series_of(
        tally_of(
            [data_file(BEGIN, 36, until=BEGIN + dt.timedelta(hours=35)), data_file(BEGIN - dt.timedelta(days=3), 1)]
        )
    )
    assert [(bucket.label, bucket.records) for bucket in found.buckets] == [
        ("2023-12-29", 1),
        ("2023-12-30", 0),
        ("2023-12-31", 0),
        ("2024-01-01", 12),
        ("2024-01-02", 24),
    ]


def test_statistics_that_end_before_they_begin_are_read_the_right_way_round():
    first, last = BEGIN, BEGIN + dt.timedelta(hours=3)
    stats = FileStats(4, 4, last.isoformat(), first.isoformat())
    tally = tally_of([DataFile("raw/t/s/H/x.singer.gz", stats)])
    assert (tally.first, tally.last) == (first, last)
    assert [bucket.records for bucket in site_tally.series_of(tally).buckets] == [1, 1, 1, 1]


def test_a_file_that_is_not_named_as_one_counts_without_a_time():
    tally = tally_of([DataFile("raw/t/s/H/strange.singer.gz", FileStats(2, 2, "yesterday", "today"))])
    assert (tally.records, tally.last) == (2, None)


def test_bars_stand_in_proportion_and_say_what_they_are():
    found = site_tally.series_of(tally_of([data_file(BEGIN, 50), data_file(BEGIN + dt.timedelta(hours=1), 100)]))
    plot = site_plot.rows_plot(found, [(1, "v2"), (1, "v3")])
    low, high = (float(bar.height.rstrip("%")) for bar in plot.bars)
    assert high / low == pytest.approx(2, rel=0.01)
    assert high <= 100
    assert plot.bars[0].title == "2024-01-01 12:00: 50 rows"
    assert [text for _, text in plot.ticks] == ["0", "50", "100"]
    assert plot.marks == (("50%", "start", "v2, v3"),)
    assert plot.summary.startswith("Rows per hour from 2024-01-01 12:00 to 2024-01-01 13:00: 150 in all, most at")
    assert [text for _, text in site_plot.bytes_plot(found).ticks] == ["0 bytes", "4 KiB", "8 KiB"]
    assert site_plot.files_plot(found).title == "Files per hour"


def test_where_nothing_was_counted_there_is_no_plot_of_it():
    found = site_tally.series_of(tally_of([data_file(BEGIN), data_file(BEGIN + dt.timedelta(hours=1))]))
    assert site_plot.rows_plot(found) is None
    assert site_plot.files_plot(found) is not None


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1023 bytes"),
        (1001 * 1024, "1 MiB"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (10 * 2**20, "10 MiB"),
        (2**70, "1,024 EiB"),
    ],
)
def test_sizes(number, text):
    assert site_words.size(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "just now"),
        (60, "1 minute ago"),
        (7200, "2 hours ago"),
        (86400 * 45, "1 month ago"),
        (-86400 * 2, "2 days in the future"),
    ],
)
def test_ages(seconds, text):
    assert site_words.age(BEGIN - dt.timedelta(seconds=seconds), BEGIN) == text
    assert site_words.clock(dt.datetime(5, 1, 1, tzinfo=dt.UTC)) == "0005-01-01 00:00 UTC"
