"""Values in columns: from source text to what a column holds, or an error; never something else."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal

import pytest

from support.cli import burler

pa = pytest.importorskip("pyarrow", reason="extra 'batch'")

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


def columns_of(folder, schema, row):
    """The rows in the file that is made of a tap's messages, and what went wrong."""
    said = {"type": "SCHEMA", "stream": "users", "schema": schema, "key_properties": []}
    record = f'{{"type":"RECORD","stream":"users","record":{row}}}'
    packed = burler("batch", "pack", "--format", "arrow", cwd=folder, stdin=f"{json.dumps(said)}\n{record}\n".encode())
    files = [name for message in packed.messages if message["type"] == "BATCH" for name in message["manifest"]]
    rows = [row for name in files for row in pa.ipc.open_file(name.removeprefix("file://")).read_all().to_pylist()]
    return rows, packed.stderr


def test_values_that_fit_are_held_exactly(tmp_path):
    schema = {"properties": {f"f{at}": node for at, (node, _, _) in enumerate(FITS)}}
    row = ",".join(f'"f{at}":{text}' for at, (_, text, _) in enumerate(FITS))
    (found,), error = columns_of(tmp_path, schema, f"{{{row}}}")
    assert list(found.values()) == [value for _, _, value in FITS], error


def test_a_value_that_does_not_fit_is_an_error_and_no_row(tmp_path):
    for node, text in MISFITS:
        rows, error = columns_of(tmp_path, {"properties": {"x": node}}, f'{{"x":{text}}}')
        assert rows == [] and "field 'x" in error, (node, text, rows, error)


def test_only_a_number_with_a_fraction_or_an_exponent_is_a_negative_zero(tmp_path):
    for text, sign in (("-0", 1), ("-0.0", -1), ("-0e0", -1), ("0", 1), ("-1e-400", -1)):
        (found,), _ = columns_of(tmp_path, {"properties": {"x": REAL}}, f'{{"x":{text}}}')
        assert (found["x"], math.copysign(1, found["x"])) == (0.0, sign), text


def test_fields_of_all_parts_are_columns(tmp_path):
    """Of a tap that others made: its SCHEMA has ``properties`` beside ``allOf`` whose parts add to them."""
    person = {"type": "object", "properties": {"a": WHOLE}, "allOf": [{"properties": {"b": TEXT}}]}
    parts = [{"properties": {"name": TEXT, "person": person}}, {"allOf": [{"properties": {"at": DAY, "name": WHOLE}}]}]
    schema = {"type": "object", "properties": {"id": WHOLE}, "allOf": [*parts, {"required": ["id"]}]}
    row = '{"id":1,"name":2,"person":{"b":"x","a":3},"at":"2024-01-02"}'
    (found,), error = columns_of(tmp_path, schema, row)
    assert found == {"id": 1, "name": 2, "person": {"a": 3, "b": "x"}, "at": dt.date(2024, 1, 2)}, error
