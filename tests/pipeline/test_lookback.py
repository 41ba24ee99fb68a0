"""A bookmark less a lookback, in the form in which it stands in the state."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burler.errors import StreamError
from support import internals
from support.internals import bookmark

HOUR = dt.timedelta(hours=1)


@pytest.mark.parametrize(
    ("value", "lookback", "gives"),
    [
        ("2024-03-01T00:00:00Z", HOUR, "2024-02-29T23:00:00Z"),
        ("2024-03-01T00:00:00Z", 3600, "2024-02-29T23:00:00Z"),
        ("2024-03-01T02:00:00+02:00", HOUR, "2024-03-01T01:00:00+02:00"),
        ("2024-03-01T00:00:00.500000Z", 0.25, "2024-03-01T00:00:00.250000Z"),
        ("2024-03-01T00:00:00.5Z", 0.25, "2024-03-01T00:00:00.2Z"),
        ("2024-03-01T00:00:00.25Z", 0.25, "2024-03-01T00:00:00.00Z"),
        ("2024-03-01 00:00:00.000z", 0.25, "2024-02-29 23:59:59.750z"),
        ("2024-03-01T00:00:00.000-05:30", HOUR, "2024-02-29T23:00:00.000-05:30"),
        ("0001-01-01T01:00:30+01:00", HOUR, "0001-01-01T01:00:00+01:00"),
        ("2024-03-01T00:00:00.123456789Z", 1, "2024-02-29T23:59:59.123456789Z"),
        ("2024-03-01T00:00:00Z", 1e-9, "2024-02-29T23:59:59.999999Z"),
        ("0001-01-01T00:00:30Z", 31, "0001-01-01T00:00:00Z"),
        ("2024-03-01T00:00:00Z", 1e300, "0001-01-01T00:00:00Z"),
        ("2024-03-01T00:00:00Z", dt.timedelta.max, "0001-01-01T00:00:00Z"),
        ("2024-03-01", 1, "2024-02-29"),
        ("2024-03-01", 0.5, "2024-02-29"),
        ("2024-03-01", HOUR, "2024-02-29"),
        ("2024-03-01", dt.timedelta(days=2), "2024-02-28"),
        ("2024-03-01", 10**40, "0001-01-01"),
        ("0001-01-01", 1, "0001-01-01"),
        (100, 30, 70),
        (10**40, 1, 10**40 - 1),
        (5, 0.5, 4.5),
        (5.5, 0.5, 5),
        (0.3, 0.1, 0.2),
        (Decimal("1.05"), 0.1, Decimal("0.95")),
        (Decimal("0.1234567890123456789012345678901"), 1, Decimal("-0.8765432109876543210987654321099")),
        (None, 5, None),
        (None, HOUR, None),
    ],
)
def test_less_a_lookback(value, lookback, gives):
    got = internals.lookback.before(value, lookback, stream="a")
    assert (got, type(got)) == (gives, type(gives))


def test_numbers_written_as_text_stay_text():
    assert internals.lookback.before("10.50", 0.25, textual="decimal") == "10.25"
    assert internals.lookback.before("1e3", 1, textual="decimal") == "999"


@pytest.mark.parametrize(
    ("value", "lookback", "says"),
    [
        ("abc", 5, r"the bookmark 'abc' is text; a lookback needs a date-time, a date or a number\. Leave it out\."),
        ("10.5", 5, "the bookmark '10.5' is text"),
        ("2024-03-01T00:00:00", 5, "is text"),
        (True, 5, "is of type bool"),
        ([], 5, "is of type list"),
        (5, HOUR, "lookback is a timedelta, but the bookmark 5 is a number. Give a number"),
        (float("nan"), 5, "is no finite number"),
    ],
)
def test_what_has_no_before(value, lookback, says):
    with pytest.raises(StreamError, match=f"^stream 'a': .*{says}") as caught:
        internals.lookback.before(value, lookback, stream="a")
    assert caught.value.stream == "a" and len(str(caught.value).splitlines()) == 1


seconds = st.one_of(st.integers(0, 10**12), st.floats(0, 1e12))


@given(
    st.datetimes(min_value=dt.datetime(1900, 1, 1), timezones=st.just(dt.UTC)),  # noqa: DTZ001
    st.one_of(seconds, st.timedeltas(min_value=dt.timedelta(0))),
)
def test_a_moment_goes_back_by_so_much_and_less_than_a_microsecond_more(moment, lookback):
    text = moment.isoformat().replace("+00:00", "Z")
    got = dt.datetime.fromisoformat(internals.lookback.before(text, lookback).replace("Z", "+00:00"))
    micro = dt.timedelta(microseconds=1)
    exact = Fraction(lookback // micro) if isinstance(lookback, dt.timedelta) else _digits(lookback) * 10**6
    went = (moment - got) // micro
    assert 0 <= went - exact < 1 or (got.year == 1 and went <= exact)


@given(st.dates(min_value=dt.date(1900, 1, 1)), st.one_of(st.integers(0, 10**6), st.floats(0, 1e6)))
def test_a_day_goes_back_by_whole_days(day, lookback):
    got = dt.date.fromisoformat(internals.lookback.before(day.isoformat(), lookback))
    went = (day - got).days
    assert 0 <= went - _digits(lookback) < 1 or (got == dt.date.min and went <= lookback)


@given(
    st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False)),
    st.one_of(st.integers(0, 10**30), st.floats(0, 1e30)),
)
def test_a_number_goes_back_by_as_much_or_a_little_more(value, lookback):
    got = internals.lookback.before(value, lookback)
    exact = _digits(value) - _digits(lookback)
    assert bookmark.comparable(got)[0] == "a number"
    assert _digits(got) <= exact
    assert exact - _digits(got) <= abs(exact) / 10**15 + Fraction(1, 10**300)


def _digits(number):
    """The digits that a state or a person writes, exactly."""
    return Fraction(repr(number)) if isinstance(number, float) else Fraction(number)
