"""A bookmark less a lookback, as a sync function gets it."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import burler
from burler.errors import StreamError
from burler.testing import run_tap

HOUR = dt.timedelta(hours=1)


def before(*cases, node=None):
    """For each pair of a bookmark and a lookback: what ``stream.bookmark`` is, or the error."""
    tap, seen, bookmarks = burler.tap("tap-x"), {}, {}
    for number, (value, lookback) in enumerate(cases):
        name = f"s{number}"

        def fn(stream):
            seen[stream.name] = stream.bookmark
            return []

        schema = {"type": "object", "properties": {"at": node or {}}}
        tap.sync(name, replication_key="at", lookback=lookback, schema=schema)(fn)
        bookmarks[name] = {} if value is None else {"at": value}
    out = run_tap(tap, state={"bookmarks": bookmarks})
    return [out.result.errors.get(name, seen.get(name)) for name in bookmarks]


CASES = [
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
    (None, 5, None),
    (None, HOUR, None),
]


def test_less_a_lookback():
    found = before(*[case[:2] for case in CASES])
    assert [(one, type(one)) for one in found] == [(case[2], type(case[2])) for case in CASES]


def test_numbers_written_as_text_stay_text():
    node = {"type": "string", "format": "singer.decimal"}
    assert before(("10.50", 0.25), ("1e3", 1), node=node) == ["10.25", "999"]


@pytest.mark.usefixtures("values_in_logs")
def test_what_has_no_before():
    cases = [
        ("abc", 5, "the bookmark 'abc' is text; a lookback needs a date-time, a date or a number. Leave it out."),
        ("10.5", 5, "the bookmark '10.5' is text"),
        ("2024-03-01T00:00:00", 5, "is text"),
        (True, 5, "is of type bool"),
        ([], 5, "is of type list"),
        (5, HOUR, "lookback is a timedelta, but the bookmark 5 is a number. Give a number"),
    ]
    for error, (*_, says) in zip(before(*[case[:2] for case in cases]), cases, strict=True):
        assert isinstance(error, StreamError), says
        assert says in str(error) and len(str(error).splitlines()) == 1


SECONDS = st.one_of(st.integers(0, 10**12), st.floats(0, 1e12))


@given(
    st.datetimes(min_value=dt.datetime(1900, 1, 1), timezones=st.just(dt.UTC)),  # noqa: DTZ001
    st.one_of(SECONDS, st.timedeltas(min_value=dt.timedelta(0))),
    st.one_of(st.integers(0, 10**6), st.floats(0, 1e6)),
    st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False)),
    st.one_of(st.integers(0, 10**30), st.floats(0, 1e30)),
)
def test_it_goes_back_by_so_much_or_a_little_more(moment, lookback, days, number, less):
    """Never by less: rows would be lost."""
    day = moment.date()
    text = moment.isoformat().replace("+00:00", "Z")
    got, got_day, got_number = before((text, lookback), (day.isoformat(), days), (number, less))

    micro, got = dt.timedelta(microseconds=1), dt.datetime.fromisoformat(got.replace("Z", "+00:00"))
    exact = Fraction(lookback // micro) if isinstance(lookback, dt.timedelta) else digits(lookback) * 10**6
    went = (moment - got) // micro
    assert 0 <= went - exact < 1 or (got.year == 1 and went <= exact)

    got_day = dt.date.fromisoformat(got_day)
    went = (day - got_day).days
    assert 0 <= went - digits(days) < 1 or (got_day == dt.date.min and went <= days)

    exact = digits(number) - digits(less)
    assert isinstance(got_number, int | float) and digits(got_number) <= exact
    assert exact - digits(got_number) <= abs(exact) / 10**15 + Fraction(1, 10**300)


def digits(number):
    """The digits that a state or a person writes, exactly."""
    return Fraction(repr(number)) if isinstance(number, float) else Fraction(number)
