"""Values in columns: from source text to what a column holds, or an error; never something else."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from decimal import Decimal

import pytest

from burler.errors import BatchError
from support.internals import column_kinds, column_values, columnar

NOON = dt.datetime(2024, 1, 2, 12, tzinfo=dt.UTC)
WHOLE, REAL, TRUTH, TEXT, EITHER = (
    {"type": kind} for kind in ("integer", "number", "boolean", "string", ["string", "number"])
)
BIG, NINTHS = {"type": "integer", "maximum": 10**30}, {"type": "number", "multipleOf": 1e-9}
CENTS = {"type": ["string", "number"], "format": "singer.decimal", "scale": 2}
MOMENT, DAY = ({"type": "string", "format": form} for form in ("date-time", "date"))
BYTES, OPEN = {"type": "string", "contentEncoding": "base64"}, {"type": "object"}
LIST = {"type": "array", "items": WHOLE}
MAP = {"type": "object", "additionalProperties": REAL}
STRUCT = {"type": "object", "properties": {"a": WHOLE, "b": TEXT}}
FITS = [
    (WHOLE, "1.0", 1),
    (WHOLE, "1e3", 1000),
    (WHOLE, "-0", 0),
    (WHOLE, "9223372036854775807", 2**63 - 1),
    (WHOLE, "-9223372036854775808", -(2**63)),
    (BIG, "18446744073709551615", Decimal(2**64 - 1)),
    (NINTHS, "12345678901234567890.123456789", Decimal("12345678901234567890.123456789")),
    (CENTS, '"3.14"', Decimal("3.14")),
    (CENTS, "3.1400", Decimal("3.14")),
    (CENTS, '"+5"', Decimal(5)),
    (CENTS, '".5"', Decimal("0.5")),
    (CENTS, '"5."', Decimal(5)),
    (CENTS, '"-1.5e+1"', Decimal(-15)),
    (REAL, "0.1", 0.1),
    (REAL, "1", 1.0),
    (REAL, "5e-324", 5e-324),
    (TRUTH, "true", True),
    (TEXT, '"a\\u0000\\"b"', 'a\x00"b'),
    (EITHER, "1.10", "1.10"),
    (OPEN, '{"a": [1 ,2]}', '{"a": [1 ,2]}'),
    (MOMENT, '"2024-01-02T12:00:00Z"', NOON),
    (MOMENT, '"2024-01-02T14:00:00+02:00"', NOON),
    (MOMENT, '"2024-01-02 14:00:00 +0200"', NOON),
    (MOMENT, '"2024-01-02t12:00:00z"', NOON),
    (MOMENT, '"20240102T120000Z"', NOON),
    (MOMENT, '"2024-01-02T12:00Z"', NOON),
    (MOMENT, '"2024-01-02T12:00:00"', NOON),
    (MOMENT, '"2024-01-02T12:00:00.000000000Z"', NOON),
    (MOMENT, '"2024-01-02"', NOON.replace(hour=0)),
    (MOMENT, '"0001-01-01T00:00:00Z"', dt.datetime(1, 1, 1, tzinfo=dt.UTC)),
    (DAY, '"2024-01-02"', dt.date(2024, 1, 2)),
    (DAY, '"2024-01-02T00:00:00Z"', dt.date(2024, 1, 2)),
    (BYTES, '"AAEC"', b"\x00\x01\x02"),
    (LIST, "[1.0, null, 2]", [1, None, 2]),
    (MAP, '{"a":1,"b":null}', [("a", 1.0), ("b", None)]),
    (
        STRUCT,
        '{"b":"x","a":null}',
        {"a": None, "b": "x"},
    ),
]

MISFITS = [
    (WHOLE, "1.5"),
    (WHOLE, '"5"'),
    (WHOLE, "true"),
    (WHOLE, "9223372036854775808"),
    (WHOLE, "1e999999999"),
    (WHOLE, "1e-999999999"),
    (CENTS, "3.141"),
    (CENTS, "1e37"),
    (CENTS, "1e999999999"),
    (CENTS, '"abc"'),
    (CENTS, '"NaN"'),
    (CENTS, '"Infinity"'),
    (CENTS, '"1_000"'),
    (CENTS, '" 7 "'),
    (CENTS, '"7\\n"'),
    (CENTS, '"\u0661"'),
    (CENTS, '"."'),
    (CENTS, '""'),
    (CENTS, "true"),
    (REAL, "1e400"),
    (REAL, '"1.5"'),
    (TRUTH, "1"),
    (TRUTH, '"true"'),
    (TEXT, '"\\ud800"'),
    (MOMENT, "1700000000000"),
    (MOMENT, '""'),
    (MOMENT, '"2024-01-02T24:00:00Z"'),
    (MOMENT, '"2024-01-02T12:00:60Z"'),
    (MOMENT, '"2024-02-30T12:00:00Z"'),
    (MOMENT, '"Tue, 02 Jan 2024 12:00:00 GMT"'),
    (MOMENT, '"0001-01-01T00:00:00+01:00"'),
    (MOMENT, '"9999-12-31T23:59:59-01:00"'),
    (MOMENT, '"2024-0102T12:00:00Z"'),
    (DAY, '"2024-01-02T12:00:00Z"'),
    (DAY, '"20240102"'),
    (BYTES, '"AAE"'),
    (BYTES, '"no base64!"'),
    (LIST, "1"),
    (LIST, '[1,"a"]'),
    (MAP, '{"a":"x"}'),
    (STRUCT, "[]"),
    (STRUCT, '{"a":{}}'),
]


def columns_of(schema, row):
    """The row that a batch file in columns has, and what was remarked."""
    layout = columnar.ColumnarLayout(schema, "users")
    (batch,) = layout.batches(row.encode() + b"\n", 1)
    return batch.to_pylist()[0], layout.remarks()


def test_values_that_fit_are_held_exactly():
    schema = {"properties": {f"f{at}": node for at, (node, _, _) in enumerate(FITS)}}
    row = ",".join(f'"f{at}":{text}' for at, (_, text, _) in enumerate(FITS))
    found, remarks = columns_of(schema, f"{{{row}}}")
    assert list(found.values()) == [value for _, _, value in FITS] and remarks == []


def test_a_value_that_does_not_fit_is_an_error():
    for node, text in MISFITS:
        with pytest.raises(BatchError, match="field 'x"):
            columns_of({"properties": {"x": node}}, f'{{"x":{text}}}')


def test_only_a_number_with_a_fraction_or_an_exponent_is_a_negative_zero():
    for text, sign in (("-0", 1), ("-0.0", -1), ("-0e0", -1), ("0", 1), ("-1e-400", -1)):
        found, _ = columns_of({"properties": {"x": REAL}}, f'{{"x":{text}}}')
        assert (found["x"], math.copysign(1, found["x"])) == (0.0, sign), text


# ---- what only tables of Spark's formats have ----------------------------------------------------------------------


def held(kind, text):
    """What the converter makes of a value."""
    return column_values.converter(kind, ("x",))(text.encode(), column_values.Report(Counter(), Counter()))


@pytest.mark.parametrize("text", ["9007199254740993", "-9007199254740993", "1.5", '"1"', "9223372036854775808"])
def test_an_integer_that_no_double_holds_is_not_rounded(text):
    with pytest.raises(column_values.Misfit):
        held(column_kinds.WIDE, text)


@pytest.mark.parametrize("text", ["9007199254740992", "9007199254740994", "-1", "9223372036854774784"])
def test_an_integer_that_a_double_holds_is_one(text):
    value = held(column_kinds.WIDE, text)

    assert isinstance(value, float)
    assert int(value) == int(text)


@pytest.mark.parametrize("text", ['{"a":[1.10,null,"x"]}', '"text"', "1e300", "9" * 38, "-0.5", "true"])
def test_a_variant_is_its_json_text(text):
    assert held(column_kinds.VARIANT, text) == text


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
    assert held(column_kinds.VARIANT, text) == text


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
