"""The exact path's values: from source text to what a column holds, or an error; never something else."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from decimal import Decimal

import pytest

from burler.columns.kinds import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    JSON,
    STRING,
    TIMESTAMP,
    DecimalOf,
    ListOf,
    MapOf,
    StructOf,
)
from burler.columns.values import Misfit, Report, converter

NOON = dt.datetime(2024, 1, 2, 12, tzinfo=dt.UTC)


def held(kind, text):
    report = Report(Counter(), Counter())
    value = converter(kind, ("x",))(text.encode(), report)
    return value, dict(report.dropped), dict(report.truncated)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (BIGINT, "1.0", 1),
        (BIGINT, "1e3", 1000),
        (BIGINT, "-0", 0),
        (BIGINT, "9223372036854775807", 2**63 - 1),
        (BIGINT, "-9223372036854775808", -(2**63)),
        (DecimalOf(0), "18446744073709551615", Decimal(2**64 - 1)),
        (DecimalOf(9), "12345678901234567890.123456789", Decimal("12345678901234567890.123456789")),
        (DecimalOf(2), '"3.14"', Decimal("3.14")),
        (DecimalOf(2), "3.1400", Decimal("3.14")),
        (DecimalOf(2), '"+5"', Decimal(5)),
        (DecimalOf(2), '".5"', Decimal("0.5")),
        (DecimalOf(2), '"5."', Decimal(5)),
        (DecimalOf(2), '"-1.5e+1"', Decimal(-15)),
        (DOUBLE, "0.1", 0.1),
        (DOUBLE, "1", 1.0),
        (DOUBLE, "5e-324", 5e-324),
        (BOOLEAN, "true", True),
        (STRING, '"a\\u0000\\"b"', 'a\x00"b'),
        (STRING, "1.10", "1.10"),
        (STRING, '{"a": [1 ,2]}', '{"a": [1 ,2]}'),
        (TIMESTAMP, '"2024-01-02T12:00:00Z"', NOON),
        (TIMESTAMP, '"2024-01-02T14:00:00+02:00"', NOON),
        (TIMESTAMP, '"2024-01-02 14:00:00 +0200"', NOON),
        (TIMESTAMP, '"2024-01-02t12:00:00z"', NOON),
        (TIMESTAMP, '"20240102T120000Z"', NOON),
        (TIMESTAMP, '"2024-01-02T12:00Z"', NOON),
        (TIMESTAMP, '"2024-01-02T12:00:00"', NOON),
        (TIMESTAMP, '"2024-01-02T12:00:00.000000000Z"', NOON),
        (TIMESTAMP, '"2024-01-02"', NOON.replace(hour=0)),
        (TIMESTAMP, '"0001-01-01T00:00:00Z"', dt.datetime(1, 1, 1, tzinfo=dt.UTC)),
        (DATE, '"2024-01-02"', dt.date(2024, 1, 2)),
        (DATE, '"2024-01-02T00:00:00Z"', dt.date(2024, 1, 2)),
        (BINARY, '"AAEC"', b"\x00\x01\x02"),
        (ListOf(BIGINT), "[1.0, null, 2]", [1, None, 2]),
        (MapOf(DOUBLE), '{"a":1,"b":null}', [("a", 1.0), ("b", None)]),
        (StructOf((("a", BIGINT), ("b", STRING))), '{"b":"x","a":null}', {"b": "x"}),
    ],
)
def test_a_value_that_fits_is_held_exactly(kind, text, value):
    assert held(kind, text) == (value, {}, {})


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (BIGINT, "1.5"),
        (BIGINT, '"5"'),
        (BIGINT, "true"),
        (BIGINT, "9223372036854775808"),
        (BIGINT, "1e999999999"),
        (BIGINT, "1e-999999999"),
        (DecimalOf(2), "3.141"),
        (DecimalOf(2), "1e37"),
        (DecimalOf(2), "1e999999999"),
        (DecimalOf(2), '"abc"'),
        (DecimalOf(2), '"NaN"'),
        (DecimalOf(2), '"Infinity"'),
        (DecimalOf(2), '"1_000"'),
        (DecimalOf(2), '" 7 "'),
        (DecimalOf(2), '"7\\n"'),
        (DecimalOf(2), '"\u0661"'),
        (DecimalOf(2), '"."'),
        (DecimalOf(2), '""'),
        (DecimalOf(2), "true"),
        (DOUBLE, "1e400"),
        (DOUBLE, '"1.5"'),
        (BOOLEAN, "1"),
        (BOOLEAN, '"true"'),
        (STRING, '"\\ud800"'),
        (TIMESTAMP, "1700000000000"),
        (TIMESTAMP, '""'),
        (TIMESTAMP, '"2024-01-02T24:00:00Z"'),
        (TIMESTAMP, '"2024-01-02T12:00:60Z"'),
        (TIMESTAMP, '"2024-02-30T12:00:00Z"'),
        (TIMESTAMP, '"Tue, 02 Jan 2024 12:00:00 GMT"'),
        (TIMESTAMP, '"0001-01-01T00:00:00+01:00"'),
        (TIMESTAMP, '"9999-12-31T23:59:59-01:00"'),
        (TIMESTAMP, '"2024-0102T12:00:00Z"'),
        (DATE, '"2024-01-02T12:00:00Z"'),
        (DATE, '"20240102"'),
        (BINARY, '"AAE"'),
        (BINARY, '"no base64!"'),
        (ListOf(BIGINT), "1"),
        (ListOf(BIGINT), '[1,"a"]'),
        (MapOf(DOUBLE), '{"a":"x"}'),
        (StructOf((("a", BIGINT),)), "[]"),
        (StructOf((("a", BIGINT),)), '{"a":{}}'),
    ],
)
def test_a_value_that_does_not_fit_is_an_error(kind, text):
    with pytest.raises(Misfit):
        held(kind, text)


@pytest.mark.parametrize(("text", "sign"), [("-0", 1), ("-0.0", -1), ("-0e0", -1), ("0", 1), ("-1e-400", -1)])
def test_only_a_number_with_a_fraction_or_an_exponent_is_a_negative_zero(text, sign):
    value, _, _ = held(DOUBLE, text)

    assert (value, math.copysign(1, value)) == (0.0, sign)


def test_json_is_kept_as_its_source_text():
    assert held(JSON, '"7"')[0] == '"7"'
    assert held(JSON, '{"a": 1.10}')[0] == '{"a": 1.10}'


def test_digits_beyond_microseconds_are_cut_and_counted():
    value, _, truncated = held(TIMESTAMP, '"2024-01-02T12:00:00.123456789Z"')

    assert value == NOON.replace(microsecond=123456)
    assert truncated == {"x": 1}


def test_undeclared_fields_are_dropped_and_counted_at_every_depth():
    kind = ListOf(StructOf((("a", StructOf((("b", BIGINT),))),)))

    value, dropped, _ = held(kind, '[{"a":{"b":1,"c":2}},{"a":{"c":3}},{"z":null}]')

    assert value == [{"a": {"b": 1}}, {"a": {}}, {}]
    assert dropped == {"x.[].a.c": 2, "x.[].z": 1}
