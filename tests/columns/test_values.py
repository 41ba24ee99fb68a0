"""The exact path's values: from source text to what a column holds, or an error; never something else."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from decimal import Decimal

import pytest

from support.internals import column_kinds, column_values

NOON = dt.datetime(2024, 1, 2, 12, tzinfo=dt.UTC)


def held(kind, text):
    report = column_values.Report(Counter(), Counter())
    value = column_values.converter(kind, ("x",))(text.encode(), report)
    return value, dict(report.dropped), dict(report.truncated)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (column_kinds.BIGINT, "1.0", 1),
        (column_kinds.BIGINT, "1e3", 1000),
        (column_kinds.BIGINT, "-0", 0),
        (column_kinds.BIGINT, "9223372036854775807", 2**63 - 1),
        (column_kinds.BIGINT, "-9223372036854775808", -(2**63)),
        (column_kinds.DecimalOf(0), "18446744073709551615", Decimal(2**64 - 1)),
        (column_kinds.DecimalOf(9), "12345678901234567890.123456789", Decimal("12345678901234567890.123456789")),
        (column_kinds.DecimalOf(2), '"3.14"', Decimal("3.14")),
        (column_kinds.DecimalOf(2), "3.1400", Decimal("3.14")),
        (column_kinds.DecimalOf(2), '"+5"', Decimal(5)),
        (column_kinds.DecimalOf(2), '".5"', Decimal("0.5")),
        (column_kinds.DecimalOf(2), '"5."', Decimal(5)),
        (column_kinds.DecimalOf(2), '"-1.5e+1"', Decimal(-15)),
        (column_kinds.DOUBLE, "0.1", 0.1),
        (column_kinds.DOUBLE, "1", 1.0),
        (column_kinds.DOUBLE, "5e-324", 5e-324),
        (column_kinds.BOOLEAN, "true", True),
        (column_kinds.STRING, '"a\\u0000\\"b"', 'a\x00"b'),
        (column_kinds.STRING, "1.10", "1.10"),
        (column_kinds.STRING, '{"a": [1 ,2]}', '{"a": [1 ,2]}'),
        (column_kinds.TIMESTAMP, '"2024-01-02T12:00:00Z"', NOON),
        (column_kinds.TIMESTAMP, '"2024-01-02T14:00:00+02:00"', NOON),
        (column_kinds.TIMESTAMP, '"2024-01-02 14:00:00 +0200"', NOON),
        (column_kinds.TIMESTAMP, '"2024-01-02t12:00:00z"', NOON),
        (column_kinds.TIMESTAMP, '"20240102T120000Z"', NOON),
        (column_kinds.TIMESTAMP, '"2024-01-02T12:00Z"', NOON),
        (column_kinds.TIMESTAMP, '"2024-01-02T12:00:00"', NOON),
        (column_kinds.TIMESTAMP, '"2024-01-02T12:00:00.000000000Z"', NOON),
        (column_kinds.TIMESTAMP, '"2024-01-02"', NOON.replace(hour=0)),
        (column_kinds.TIMESTAMP, '"0001-01-01T00:00:00Z"', dt.datetime(1, 1, 1, tzinfo=dt.UTC)),
        (column_kinds.DATE, '"2024-01-02"', dt.date(2024, 1, 2)),
        (column_kinds.DATE, '"2024-01-02T00:00:00Z"', dt.date(2024, 1, 2)),
        (column_kinds.BINARY, '"AAEC"', b"\x00\x01\x02"),
        (column_kinds.ListOf(column_kinds.BIGINT), "[1.0, null, 2]", [1, None, 2]),
        (column_kinds.MapOf(column_kinds.DOUBLE), '{"a":1,"b":null}', [("a", 1.0), ("b", None)]),
        (
            column_kinds.StructOf((("a", column_kinds.BIGINT), ("b", column_kinds.STRING))),
            '{"b":"x","a":null}',
            {"b": "x"},
        ),
    ],
)
def test_a_value_that_fits_is_held_exactly(kind, text, value):
    assert held(kind, text) == (value, {}, {})


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (column_kinds.BIGINT, "1.5"),
        (column_kinds.BIGINT, '"5"'),
        (column_kinds.BIGINT, "true"),
        (column_kinds.BIGINT, "9223372036854775808"),
        (column_kinds.BIGINT, "1e999999999"),
        (column_kinds.BIGINT, "1e-999999999"),
        (column_kinds.DecimalOf(2), "3.141"),
        (column_kinds.DecimalOf(2), "1e37"),
        (column_kinds.DecimalOf(2), "1e999999999"),
        (column_kinds.DecimalOf(2), '"abc"'),
        (column_kinds.DecimalOf(2), '"NaN"'),
        (column_kinds.DecimalOf(2), '"Infinity"'),
        (column_kinds.DecimalOf(2), '"1_000"'),
        (column_kinds.DecimalOf(2), '" 7 "'),
        (column_kinds.DecimalOf(2), '"7\\n"'),
        (column_kinds.DecimalOf(2), '"\u0661"'),
        (column_kinds.DecimalOf(2), '"."'),
        (column_kinds.DecimalOf(2), '""'),
        (column_kinds.DecimalOf(2), "true"),
        (column_kinds.DOUBLE, "1e400"),
        (column_kinds.DOUBLE, '"1.5"'),
        (column_kinds.BOOLEAN, "1"),
        (column_kinds.BOOLEAN, '"true"'),
        (column_kinds.STRING, '"\\ud800"'),
        (column_kinds.TIMESTAMP, "1700000000000"),
        (column_kinds.TIMESTAMP, '""'),
        (column_kinds.TIMESTAMP, '"2024-01-02T24:00:00Z"'),
        (column_kinds.TIMESTAMP, '"2024-01-02T12:00:60Z"'),
        (column_kinds.TIMESTAMP, '"2024-02-30T12:00:00Z"'),
        (column_kinds.TIMESTAMP, '"Tue, 02 Jan 2024 12:00:00 GMT"'),
        (column_kinds.TIMESTAMP, '"0001-01-01T00:00:00+01:00"'),
        (column_kinds.TIMESTAMP, '"9999-12-31T23:59:59-01:00"'),
        (column_kinds.TIMESTAMP, '"2024-0102T12:00:00Z"'),
        (column_kinds.DATE, '"2024-01-02T12:00:00Z"'),
        (column_kinds.DATE, '"20240102"'),
        (column_kinds.BINARY, '"AAE"'),
        (column_kinds.BINARY, '"no base64!"'),
        (column_kinds.ListOf(column_kinds.BIGINT), "1"),
        (column_kinds.ListOf(column_kinds.BIGINT), '[1,"a"]'),
        (column_kinds.MapOf(column_kinds.DOUBLE), '{"a":"x"}'),
        (column_kinds.StructOf((("a", column_kinds.BIGINT),)), "[]"),
        (column_kinds.StructOf((("a", column_kinds.BIGINT),)), '{"a":{}}'),
    ],
)
def test_a_value_that_does_not_fit_is_an_error(kind, text):
    with pytest.raises(column_values.Misfit):
        held(kind, text)


@pytest.mark.parametrize(("text", "sign"), [("-0", 1), ("-0.0", -1), ("-0e0", -1), ("0", 1), ("-1e-400", -1)])
def test_only_a_number_with_a_fraction_or_an_exponent_is_a_negative_zero(text, sign):
    value, _, _ = held(column_kinds.DOUBLE, text)

    assert (value, math.copysign(1, value)) == (0.0, sign)


def test_json_is_kept_as_its_source_text():
    assert held(column_kinds.JSON, '"7"')[0] == '"7"'
    assert held(column_kinds.JSON, '{"a": 1.10}')[0] == '{"a": 1.10}'


def test_digits_beyond_microseconds_are_cut_and_counted():
    value, _, truncated = held(column_kinds.TIMESTAMP, '"2024-01-02T12:00:00.123456789Z"')

    assert value == NOON.replace(microsecond=123456)
    assert truncated == {"x": 1}


def test_undeclared_fields_are_dropped_and_counted_at_every_depth():
    kind = column_kinds.ListOf(column_kinds.StructOf((("a", column_kinds.StructOf((("b", column_kinds.BIGINT),))),)))

    value, dropped, _ = held(kind, '[{"a":{"b":1,"c":2}},{"a":{"c":3}},{"z":null}]')

    assert value == [{"a": {"b": 1}}, {"a": {}}, {}]
    assert dropped == {"x.[].a.c": 2, "x.[].z": 1}


@pytest.mark.parametrize(
    ("kind", "text", "odd"),
    [
        (column_kinds.BIGINT, "7", False),
        (column_kinds.BIGINT, "-7", False),
        (column_kinds.BIGINT, "7.0", True),
        (column_kinds.BIGINT, "7e0", True),
        (column_kinds.TIMESTAMP, '"2024-01-02T12:00:00Z"', False),
        (column_kinds.TIMESTAMP, '"2024-01-02T12:00:00.123456-02:00"', False),
        (column_kinds.TIMESTAMP, '"2024-01-02 12:00:00Z"', True),
        (column_kinds.TIMESTAMP, '"2024-01-02T12:00:00"', True),
        (column_kinds.TIMESTAMP, '"2024-01-02"', True),
        (column_kinds.DATE, '"2024-01-02"', False),
        (column_kinds.DATE, '"2024-01-02T00:00:00Z"', True),
        (column_kinds.ListOf(column_kinds.BIGINT), "[1,2.0]", True),
    ],
)
def test_odd_spellings_are_counted(kind, text, odd):
    report = column_values.Report(Counter(), Counter())

    column_values.converter(kind, ("x",))(text.encode(), report)

    assert report.repaired.total() == odd


@pytest.mark.parametrize("text", ["9007199254740993", "-9007199254740993", "1.5", '"1"', "9223372036854775808"])
def test_an_integer_that_no_double_holds_is_not_rounded(text):
    with pytest.raises(column_values.Misfit):
        held(column_kinds.WIDE, text)


@pytest.mark.parametrize("text", ["9007199254740992", "9007199254740994", "-1", "9223372036854774784"])
def test_an_integer_that_a_double_holds_is_one(text):
    value, _, _ = held(column_kinds.WIDE, text)

    assert isinstance(value, float)
    assert int(value) == int(text)


@pytest.mark.parametrize("text", ['{"a":[1.10,null,"x"]}', '"text"', "1e300", "9" * 38, "-0.5", "true"])
def test_a_variant_is_its_json_text(text):
    assert held(column_kinds.VARIANT, text) == (text, {}, {})


@pytest.mark.parametrize(
    "text",
    [
        "[" * 800 + "]" * 800,
        "[[]," + "[" * 799 + "]" * 800,
        "[" + "[{}]," * 1_000 + "1]",
        '["' + "[{" * 1_000 + '\\"[[[["]',
    ],
    ids=["deep", "deep-and-more", "wide", "brackets-in-text"],
)
def test_how_deep_a_variant_may_be(text):
    """As deep as Spark's parser goes, with room, and the same on each Python (3.12 reads any depth)."""
    assert held(column_kinds.VARIANT, text) == (text, {}, {})


@pytest.mark.parametrize(
    "text",
    [
        "9" * 39,
        "[1e999]",
        '{"a":1,"a":2}',
        '{"a":{"b":1,"b":1}}',
        '"' + "x" * 16_000_001 + '"',
        "[" * 2_000 + "]" * 2_000,
        '{"a":' * 801 + "1" + "}" * 801,
    ],
    ids=["39-digits", "overflow", "twice", "twice-inside", "too-big", "too-deep", "just-too-deep"],
)
def test_what_a_variant_would_bend_does_not_fit(text):
    with pytest.raises(column_values.Misfit):
        held(column_kinds.VARIANT, text)
