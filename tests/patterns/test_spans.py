"""Spans of time cover what they should exactly once, whatever clocks and calendars do."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.internals import spans

# Clocks that skip midnight (Sao Paulo, Havana), show it twice (Azores), jump over it by minutes (St Johns, until 2011)
# or over a whole day (Apia), and half hours (Lord Howe).
ZONES = (
    "UTC", "Europe/Berlin", "America/Sao_Paulo", "America/Havana", "Atlantic/Azores", "America/St_Johns",
    "Pacific/Apia", "Australia/Lord_Howe", "Asia/Kathmandu",
)  # fmt: skip
UTC = spans.Calendar(dt.UTC, dates=False)
DATES = spans.Calendar(dt.UTC, dates=True)

NAIVE = dt.datetime(2024, 5, 1)  # noqa: DTZ001
moments = st.integers(0, 50 * 365 * 86400).map(
    lambda s: dt.datetime(1980, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=s)
)
days = st.dates(dt.date(1980, 1, 1), dt.date(2030, 1, 1))


def covered_once(parts, begin, end):
    """Whether parts follow each other without a gap from begin to end, none of them empty."""
    if begin >= end:
        return parts == []
    edges = [begin, *(to for _start, to in parts)]
    return all(start < to for start, to in parts) and edges[-1] == end and [a for a, _ in parts] == edges[:-1]


@given(
    moments,
    st.timedeltas(dt.timedelta(0), dt.timedelta(days=400)),
    st.sampled_from(spans.UNITS),
    st.sampled_from(ZONES),
)
def test_calendar_units_cover_time_once_in_any_zone(begin, length, unit, zone):
    calendar = spans.Calendar(ZoneInfo(zone), dates=False)
    parts = list(spans.spans(begin, begin + length, calendar.ends(unit)))
    assert covered_once(parts, begin, begin + length)
    for _start, end in parts[:-1]:
        before, after = (calendar.local(moment).date() for moment in (end - dt.timedelta(microseconds=1), end))
        assert after > before or before - after <= dt.timedelta(days=1), "a unit ends where the day changes"


@given(moments, st.timedeltas(dt.timedelta(0), dt.timedelta(days=99)), st.timedeltas(dt.timedelta(hours=1)))
def test_lengths_cover_time_once(begin, length, size):
    parts = list(spans.spans(begin, begin + length, UTC.ends(size)))
    assert covered_once(parts, begin, begin + length)
    assert all(to - start == size for start, to in parts[:-1])


@given(days, st.integers(0, 900), st.sampled_from(spans.UNITS) | st.integers(1, 50).map(lambda n: dt.timedelta(days=n)))
def test_days_are_covered_once(begin, length, size):
    end = begin + dt.timedelta(days=length)
    assert covered_once(list(spans.spans(begin, end, DATES.ends(size))), begin, end)


@given(
    moments, st.lists(st.tuples(st.timedeltas(dt.timedelta(hours=1), dt.timedelta(days=9)), st.booleans()), min_size=1)
)
@settings(deadline=None, max_examples=50)
def test_a_function_may_choose_each_length(begin, lengths):
    left = lengths * 800
    end = begin + dt.timedelta(days=30)

    def size(start):
        length, as_end = left.pop()
        return start + length if as_end else length

    assert covered_once(list(spans.spans(begin, end, UTC.ends(size))), begin, end)


def text(parts, calendar):
    return [(calendar.text(start), calendar.text(end)) for start, end in parts]


def test_a_day_is_as_long_as_the_clocks_make_it():
    berlin = spans.Calendar(ZoneInfo("Europe/Berlin"), dates=False)
    begin, end = berlin.moment("2024-03-30", ""), berlin.moment("2024-04-01", "")
    assert text(spans.spans(begin, end, berlin.ends("day")), berlin) == [
        ("2024-03-29T23:00:00Z", "2024-03-30T23:00:00Z"),
        ("2024-03-30T23:00:00Z", "2024-03-31T22:00:00Z"),  # 23 hours
    ]
    exact = list(spans.spans(begin, end, berlin.ends(dt.timedelta(days=1))))
    assert [to - start for start, to in exact] == [dt.timedelta(days=1), dt.timedelta(hours=23)]


@pytest.mark.parametrize(
    ("zone", "day", "begins"),
    [
        ("America/Sao_Paulo", "2018-11-04", "2018-11-04T03:00:00Z"),  # no midnight: clocks go from 0:00 to 1:00
        ("Atlantic/Azores", "2024-10-27", "2024-10-27T00:00:00Z"),  # midnight comes twice: the first one
        ("Pacific/Apia", "2011-12-30", "2011-12-30T10:00:00Z"),  # a day that never was
        ("America/St_Johns", "2006-10-29", "2006-10-29T02:30:00Z"),  # midnight, and a minute later it is 23:01 again
    ],
)
def test_a_day_begins_even_where_midnight_is_odd(zone, day, begins):
    calendar = spans.Calendar(ZoneInfo(zone), dates=False)
    midnight = calendar.moment(day, "")
    assert calendar.text(midnight) == begins
    assert calendar.ends("day")(midnight - dt.timedelta(hours=5)) == midnight


def test_the_minutes_between_two_midnights_are_no_endless_loop():
    """St Johns: at 0:01 the clocks went back to 23:01; what begins in the second 23:30 ends at the second midnight."""
    calendar = spans.Calendar(ZoneInfo("America/St_Johns"), dates=False)
    begin = calendar.moment("2006-10-29T03:00:00Z", "")
    assert calendar.local(begin).strftime("%d %H:%M") == "28 23:30"
    end = calendar.moment("2006-10-30T12:00:00Z", "")
    assert text(spans.spans(begin, end, calendar.ends("day")), calendar) == [
        ("2006-10-29T03:00:00Z", "2006-10-29T03:30:00Z"),
        ("2006-10-29T03:30:00Z", "2006-10-30T03:30:00Z"),
        ("2006-10-30T03:30:00Z", "2006-10-30T12:00:00Z"),
    ]


@pytest.mark.parametrize(
    ("unit", "start", "end"),
    [
        ("day", "2024-02-28", "2024-02-29"),
        ("week", "2024-05-08", "2024-05-13"),
        ("week", "2024-05-13", "2024-05-20"),
        ("month", "2024-01-31", "2024-02-01"),
        ("month", "2024-12-01", "2025-01-01"),
        ("month", "2024-02-01", "2024-03-01"),
        ("quarter", "2024-02-29", "2024-04-01"),
        ("quarter", "2024-10-01", "2025-01-01"),
        ("year", "2024-02-29", "2025-01-01"),
    ],
)
def test_units_end_where_the_calendar_has_it(unit, start, end):
    ends = DATES.ends(unit)
    assert ends(dt.date.fromisoformat(start)) == dt.date.fromisoformat(end)


@pytest.mark.parametrize("size", [*spans.UNITS, dt.timedelta(days=7), dt.timedelta(days=999_999_999)])
@pytest.mark.parametrize("calendar", [UTC, DATES], ids=["moments", "days"])
def test_the_ends_of_the_calendar_are_reached_and_not_passed(size, calendar):
    first, last = calendar.moment("0001-01-01", ""), calendar.moment("9999-12-31", "")
    assert calendar.before(first, dt.timedelta.max) == first
    assert calendar.after(last, dt.timedelta.max) == calendar.after(last, dt.timedelta(days=1))
    if size != "day" and size != dt.timedelta(days=7) and size != "week":
        assert covered_once(list(spans.spans(first, last, calendar.ends(size))), first, last)
    begin = calendar.before(last, dt.timedelta(days=40))
    end = calendar.after(last, dt.timedelta(days=1))
    assert covered_once(list(spans.spans(begin, end, calendar.ends(size))), begin, end)


@pytest.mark.parametrize(
    ("given", "moment", "day"),
    [
        ("2024-05-01T00:30:00+02:00", "2024-04-30T22:30:00Z", "2024-04-30"),
        ("2024-05-01T00:30:00.1234567891Z", "2024-05-01T00:30:00.123456Z", "2024-05-01"),
        ("2024-05-01T00:00:00.5Z", "2024-05-01T00:00:00.500000Z", "2024-05-01"),
        ("2024-05-01", "2024-05-01T00:00:00Z", "2024-05-01"),
        (dt.date(2024, 5, 1), "2024-05-01T00:00:00Z", "2024-05-01"),
        (dt.datetime(2024, 5, 1, 7, tzinfo=dt.UTC), "2024-05-01T07:00:00Z", "2024-05-01"),
    ],
)
def test_what_a_moment_may_be(given, moment, day):
    assert UTC.text(UTC.moment(given, "")) == moment
    assert DATES.text(DATES.moment(given, "")) == day


def test_a_day_is_that_of_the_zone():
    berlin = spans.Calendar(ZoneInfo("Europe/Berlin"), dates=True)
    assert berlin.moment("2024-05-01T23:00:00Z", "") == dt.date(2024, 5, 2)


def test_parts_of_a_day_count_as_a_whole_one_on_the_way_back_only():
    day = dt.date(2024, 5, 2)
    assert DATES.before(day, dt.timedelta(minutes=10)) == dt.date(2024, 5, 1)
    assert DATES.before(day, dt.timedelta(days=1)) == dt.date(2024, 5, 1)
    assert DATES.after(day, dt.timedelta(hours=30)) == dt.date(2024, 5, 3)


def test_a_zone_may_lead_out_of_the_calendar():
    assert spans.Calendar(ZoneInfo("Asia/Tokyo"), dates=False).moment("0001-01-01", "").year == 1
    last = spans.Calendar(dt.timezone(-dt.timedelta(hours=12)), dates=False, zone_said=True).moment(
        "9999-12-31T23:00:00", ""
    )
    assert last == dt.datetime.max.replace(tzinfo=dt.UTC)


NO_MOMENTS = ["yesterday", "2024-02-30", "2024-05-01T25:00:00Z", "2024-05-01T07:00:00", "", 5, True, None, 1.5, []]


@pytest.mark.parametrize("given", [*NO_MOMENTS, NAIVE])
def test_what_no_moment_is_says_so(given):
    for calendar in (UTC, DATES):
        with pytest.raises(spans.BadTime, match=r"the bookmark is .*date-time with a zone .* or a date"):
            calendar.moment(given, "the bookmark")


def test_a_time_without_a_zone_is_in_the_zone_that_was_named():
    calendar = spans.Calendar(ZoneInfo("Asia/Kathmandu"), dates=False, zone_said=True)
    assert calendar.text(calendar.moment("2024-05-01T00:00:00", "")) == "2024-04-30T18:15:00Z"
    assert calendar.text(calendar.moment(NAIVE, "")) == "2024-04-30T18:15:00Z"


@pytest.mark.parametrize(
    ("calendar", "size", "says"),
    [
        (UTC, "fortnight", "size 'fortnight' is unknown. Known: a timedelta, a function, day, week"),
        (UTC, 7, "size is 7"),
        (UTC, dt.timedelta(0), "must be 0:00:00.000001 or more"),
        (UTC, -dt.timedelta(days=1), "or more"),
        (DATES, dt.timedelta(hours=36), "whole days"),
        (DATES, dt.timedelta(hours=1), "1 day"),
    ],
)
def test_a_size_that_is_none_says_so(calendar, size, says):
    with pytest.raises(spans.BadTime, match=says):
        calendar.ends(size)


def test_a_function_that_does_not_go_forward_is_an_error():
    begin = UTC.moment("2024-05-01T00:00:00Z", "")
    for end in (begin, dt.timedelta(0), "2024-04-30", -dt.timedelta(days=1)):
        with pytest.raises(spans.BadTime, match=r"size gave|what size gives"):
            UTC.ends(lambda _start, end=end: end)(begin)


def test_zones_have_names():
    assert spans.zone_of(None) is dt.UTC and spans.zone_of(dt.UTC) is dt.UTC
    assert str(spans.zone_of("Europe/Berlin")) == "Europe/Berlin"
    for name in ("Europe/Nowhere", "", "../etc/passwd", 5, "a\0b"):
        with pytest.raises(spans.BadTime, match="unknown"):
            spans.zone_of(name)
