"""Windows of time cover what they should exactly once, whatever clocks and calendars do."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burler.errors import BurlerError
from burler.patterns import windows

UNITS = ("day", "week", "month", "quarter", "year")
# Clocks that skip midnight (Sao Paulo, Havana), show it twice (Azores), jump over it by minutes (St Johns, until 2011)
# or over a whole day (Apia), and half hours (Lord Howe).
ZONES = (
    "UTC", "Europe/Berlin", "America/Sao_Paulo", "America/Havana", "Atlantic/Azores", "America/St_Johns",
    "Pacific/Apia", "Australia/Lord_Howe", "Asia/Kathmandu",
)  # fmt: skip

NAIVE = dt.datetime(2024, 5, 1)  # noqa: DTZ001
moments = st.integers(0, 50 * 365 * 86400).map(
    lambda s: dt.datetime(1980, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=s)
)
days = st.dates(dt.date(1980, 1, 1), dt.date(2030, 1, 1))


def parts(size, start, end, **more):
    """From where to where the windows go, as they are written."""
    return [(one.start, one.end) for one in windows(None, size, start=start, end=end, **more)]


def covered_once(found, begin, end):
    """Whether windows follow each other without a gap from begin to end, none of them empty."""
    if begin >= end:
        return found == []
    moments = [(one.start_at, one.end_at) for one in found]
    edges = [begin, *(to for _start, to in moments)]
    return all(start < to for start, to in moments) and edges[-1] == end and [a for a, _ in moments] == edges[:-1]


@given(moments, st.timedeltas(dt.timedelta(0), dt.timedelta(days=400)), st.sampled_from(UNITS), st.sampled_from(ZONES))
def test_calendar_units_cover_time_once_in_any_zone(begin, length, unit, zone):
    end = (begin + length).replace(microsecond=0)
    found = list(windows(None, unit, start=begin, end=end, zone=zone))
    assert covered_once(found, begin, end)
    for one in found[:-1]:
        after = one.end_at.date()
        before = (one.end_at.astimezone(dt.UTC) - dt.timedelta(microseconds=1)).astimezone(one.end_at.tzinfo).date()
        assert after > before or before - after <= dt.timedelta(days=1), "a unit ends where the day changes"


@given(moments, st.timedeltas(dt.timedelta(0), dt.timedelta(days=99)), st.timedeltas(dt.timedelta(hours=1)))
def test_lengths_cover_time_once(begin, length, size):
    found = list(windows(None, size, start=begin, end=begin + length))
    assert covered_once(found, begin, begin + length)
    assert all(one.end_at - one.start_at == size for one in found[:-1])


@given(days, st.integers(0, 900), st.sampled_from(UNITS) | st.integers(1, 50).map(lambda n: dt.timedelta(days=n)))
def test_days_are_covered_once(begin, length, size):
    end = begin + dt.timedelta(days=length)
    assert covered_once(list(windows(None, size, start=begin, end=end, dates=True)), begin, end)


@given(
    moments, st.lists(st.tuples(st.timedeltas(dt.timedelta(hours=1), dt.timedelta(days=9)), st.booleans()), min_size=1)
)
def test_a_function_may_choose_each_length(begin, lengths):
    left = lengths * 800
    end = begin + dt.timedelta(days=30)

    def size(start):
        length, as_end = left.pop()
        return start + length if as_end else length

    assert covered_once(list(windows(None, size, start=begin, end=end)), begin, end)


def test_a_day_is_as_long_as_the_clocks_make_it():
    berlin = {"start": "2024-03-30", "end": "2024-04-01", "zone": "Europe/Berlin"}
    assert parts("day", **berlin) == [
        ("2024-03-29T23:00:00Z", "2024-03-30T23:00:00Z"),
        ("2024-03-30T23:00:00Z", "2024-03-31T22:00:00Z"),  # 23 hours
    ]
    assert parts(dt.timedelta(days=1), **berlin) == parts("day", **berlin)  # the second is cut at the end


def test_a_day_begins_even_where_midnight_is_odd():
    for zone, day, begins in (
        ("America/Sao_Paulo", "2018-11-04", "2018-11-04T03:00:00Z"),  # no midnight: clocks go from 0:00 to 1:00
        ("Atlantic/Azores", "2024-10-27", "2024-10-27T00:00:00Z"),  # midnight comes twice: the first one
        ("Pacific/Apia", "2011-12-30", "2011-12-30T10:00:00Z"),  # a day that never was
        ("America/St_Johns", "2006-10-29", "2006-10-29T02:30:00Z"),  # and a minute later it is 23:01 again
    ):
        before = dt.datetime.fromisoformat(begins) - dt.timedelta(hours=5)
        assert parts("day", day, dt.datetime.fromisoformat(begins) + dt.timedelta(hours=1), zone=zone)[0][0] == begins
        assert parts("day", before, dt.datetime.fromisoformat(begins), zone=zone)[-1][1] == begins


def test_the_minutes_between_two_midnights_are_no_endless_loop():
    """St Johns: at 0:01 the clocks went back to 23:01; what begins in the second 23:30 ends at the second midnight."""
    assert parts("day", "2006-10-29T03:00:00Z", "2006-10-30T12:00:00Z", zone="America/St_Johns") == [
        ("2006-10-29T03:00:00Z", "2006-10-29T03:30:00Z"),
        ("2006-10-29T03:30:00Z", "2006-10-30T03:30:00Z"),
        ("2006-10-30T03:30:00Z", "2006-10-30T12:00:00Z"),
    ]


def test_units_end_where_the_calendar_has_it():
    for unit, start, end in (
        ("day", "2024-02-28", "2024-02-29"),
        ("week", "2024-05-08", "2024-05-13"),
        ("week", "2024-05-13", "2024-05-20"),
        ("month", "2024-01-31", "2024-02-01"),
        ("month", "2024-12-01", "2025-01-01"),
        ("month", "2024-02-01", "2024-03-01"),
        ("quarter", "2024-02-29", "2024-04-01"),
        ("quarter", "2024-10-01", "2025-01-01"),
        ("year", "2024-02-29", "2025-01-01"),
    ):
        assert parts(unit, start, "2026-01-01", dates=True)[0] == (start, end)


@pytest.mark.parametrize("size", ["month", "quarter", "year", dt.timedelta(days=999_999_999)])
@pytest.mark.parametrize("dates", [False, True], ids=["moments", "days"])
def test_the_ends_of_the_calendar_are_reached_and_not_passed(size, dates):
    found = parts(size, "0001-01-01", "9999-12-31", dates=dates)
    assert found[0][0].startswith("0001-01-01") and found[-1][1].startswith("9999-12-31")
    assert all(before[1] == after[0] for before, after in pairwise(found))


def test_what_a_moment_may_be():
    for given_, moment, day in (
        ("2024-05-01T00:30:00+02:00", "2024-04-30T22:30:00Z", "2024-04-30"),
        ("2024-05-01T00:30:00.1234567891Z", "2024-05-01T00:30:00.123456Z", "2024-05-01"),
        ("2024-05-01T00:00:00.5Z", "2024-05-01T00:00:00.500000Z", "2024-05-01"),
        ("2024-05-01", "2024-05-01T00:00:00Z", "2024-05-01"),
        (dt.date(2024, 5, 1), "2024-05-01T00:00:00Z", "2024-05-01"),
        (dt.datetime(2024, 5, 1, 7, tzinfo=dt.UTC), "2024-05-01T07:00:00Z", "2024-05-01"),
    ):
        assert parts("day", given_, "2024-05-09")[0][0] == moment
        assert parts("day", given_, "2024-05-09", dates=True)[0][0] == day
    berlin = {"dates": True, "zone": "Europe/Berlin"}
    assert parts("day", "2024-05-01T23:00:00Z", "2024-05-09", **berlin)[0][0] == "2024-05-02"


def test_a_zone_may_lead_out_of_the_calendar():
    assert parts("year", "0001-01-01", "0002-01-01", zone="Asia/Tokyo")[0][0].startswith("0001-01-01")
    west = dt.timezone(-dt.timedelta(hours=12))
    assert parts("year", "9998-12-31T23:00:00", "9999-12-31T23:00:00", zone=west)[-1][1].startswith("9999-12-31T23:59")


NO_MOMENTS = ["yesterday", "2024-02-30", "2024-05-01T25:00:00Z", "2024-05-01T07:00:00", "", 5, True, 1.5, [], NAIVE]


def test_what_no_moment_is_says_so():
    for given_ in NO_MOMENTS:
        for dates in (False, True):
            with pytest.raises(BurlerError, match=r"start is .*date-time with a zone .* or a date"):
                parts("day", given_, "2024-06-01", dates=dates)


def test_a_time_without_a_zone_is_in_the_zone_that_was_named():
    for given_ in ("2024-05-01T00:00:00", NAIVE):
        assert parts("day", given_, "2024-05-09", zone="Asia/Kathmandu")[0][0] == "2024-04-30T18:15:00Z"


def test_a_size_that_is_none_says_so():
    for dates, size, says in (
        (False, "fortnight", "size 'fortnight' is unknown. Known: a timedelta, a function, day, week"),
        (False, 7, "size is 7"),
        (False, dt.timedelta(0), "must be 0:00:00.000001 or more"),
        (False, -dt.timedelta(days=1), "or more"),
        (True, dt.timedelta(hours=36), "whole days"),
        (True, dt.timedelta(hours=1), "1 day"),
    ):
        with pytest.raises(BurlerError, match=says):
            parts(size, "2024-05-01", "2024-06-01", dates=dates)


def test_a_function_that_does_not_go_forward_is_an_error():
    begin = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
    for end in (begin, dt.timedelta(0), "2024-04-30", -dt.timedelta(days=1)):
        with pytest.raises(BurlerError, match=r"size gave|what size gives"):
            parts(lambda _start, end=end: end, begin, "2024-06-01")


def test_zones_have_names():
    assert parts("day", "2024-05-01", "2024-05-02", zone=dt.UTC) == parts("day", "2024-05-01", "2024-05-02")
    for name in ("Europe/Nowhere", "", "../etc/passwd", 5, "a\0b"):
        with pytest.raises(BurlerError, match="unknown"):
            parts("day", "2024-05-01", "2024-05-02", zone=name)
