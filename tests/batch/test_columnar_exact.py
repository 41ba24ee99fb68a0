"""The quick way to columns gives what the converter gives for each value by itself; or both refuse the row."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from burler.errors import BatchError
from support.internals import from_json

pa = pytest.importorskip("pyarrow", reason="extra 'batch'")

LEAVES: list[dict[str, Any]] = [
    {"type": "integer"},
    {"type": ["null", "integer"], "maximum": 10**30},
    {"type": "number"},
    {"type": "number", "multipleOf": 0.01},
    {"type": "string", "format": "singer.decimal"},
    {"type": "number", "multipleOf": 1e-38},
    {"type": "boolean"},
    {"type": "string"},
    {"type": "string", "format": "date-time"},
    {"type": "string", "format": "date"},
    {"type": "string", "contentEncoding": "base64"},
    {"type": "object"},
    {},
    {"type": "array"},
    {"type": ["string", "integer"]},
    {"type": ["boolean", "integer"]},
    {"type": "null"},
]
NAMES = ["id", "a.b", "a", "A", "ä", "", "with space", 'q"\\', "nul\x00", "x" * 70, "\U0001f600"]

TOKENS = [
    # numbers, as they may stand in a line
    "0", "-0", "-0.0", "-0e0", "0e0", "-0E+5",
    "0.0", "1.0", "1e3", "1E+2", "1e-2", "1.5", "0.1", "1e400", "-1e400", "1e-400", "5e-324",
    "9007199254740993", "9007199254740993.0", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "-9223372036854775809", "18446744073709551616", "1e18", "1e19", "3.1400", "3.141", "0e99", "0e-99", "1e37", "1e38",
    "99999999999999999999999999999999999999", "999999999999999999999999999999999999999", "9" * 60, "9" * 76 + ".0",
    "411376139330301510538742295639337626245683966408394965837152256",  # 2^208: what wraps to nothing when shifted
    "0.12345678901234567890123456789012345678", "0." + "0" * 100, "0." + "0" * 50 + "1", "2.2250738585072011e-308",
    # what wraps around in 128 bits if nobody looks
    "0." + "9" * 38 + "6", "0." + "9" * 38 + "0", "9223372036854775808e30", "12345678901234567890e25", "1e36", "-1e35",
    "13.86582928765605282371591718790964209650000", "9.23007999635536783218649761543415941178608",
    # texts
    '""', '"a"', '"null"', '"1"', '"1.5"', '" 1"', '"1_000"', '"+5"', '".5"', '"5."', '"NaN"', '"Infinity"', '"1e5"',
    '"\\u0000"', '"\\ud800"', '"\\ud83d\\ude00"', '"ä€😀"', '"\\"\\\\\\n"', '"\\u0031"', '"٣"',
    '"{\\"a\\":1}"', '"[1]"',
    '"AAEC"', '"AAE="', '"AAE"', '"AA=="', '"AB=="', '"no base64!"', '"AA EC"',
    # dates and times
    '"2024-01-02T03:04:05Z"', '"2024-01-02T03:04:05.123456Z"', '"2024-01-02T03:04:05.1234567Z"',
    '"2024-01-02T03:04:05.000000000Z"', '"2024-01-02T03:04:05.1Z"', '"2024-01-02T03:04:05+02:00"',
    '"2024-01-02T03:04:05-23:59"', '"2024-01-02T03:04:05+24:00"', '"2024-01-02T03:04:05+01:60"', '"2024-01-02T12Z"',
    '"2024-01-02T12+02:00"', '"2024-01-02 03:04:05"', '"2024-01-02t03:04:05z"', '"20240102T030405Z"', '"2024-01-02"',
    '"2024-01-02T24:00:00Z"', '"2024-01-02T23:59:60Z"', '"2023-02-29T00:00:00Z"', '"0000-01-01T00:00:00Z"',
    '"0001-01-01T00:00:00Z"', '"0001-01-01T00:00:00+01:00"', '"9999-12-31T23:59:59.999999Z"',
    '"9999-12-31T23:59:59-01:00"', '"2024-01-02T03:04:05.Z"', '"2024-01-02T03:04Z"', '"1969-12-31T23:59:59.9999999Z"',
    '"9999-12-31T23:00:00-01:00"', '"0001-01-01T01:00:00+01:00"', '"0001-01-01T00:59:59+01:00"',
    '"0000-01-01"', '"0001-01-01"', '"9999-12-31"', '"20240102"', '"2024-01-02T00:00:00Z"', '"2024-13-01"',
    '"10000-01-01"',
    # the rest
    "true", "false", "null", "{}", "[]", "[null]", "[1,2,null]", '{"a":null}', '{"a":1,"a":2}', '{"z":1}',
    '{"a":{"b":[{}]},"b":"\\ud800"}', '["a",1]', "[[1],[]]", "[ 1 , 2 ]", '{ "a" : 1 }',
]  # fmt: skip

nodes = st.recursive(
    st.sampled_from(LEAVES),
    lambda below: st.one_of(
        st.builds(lambda item: {"type": ["null", "array"], "items": item}, below),
        st.builds(lambda value: {"type": "object", "additionalProperties": value}, below),
        st.dictionaries(st.sampled_from(NAMES), below, min_size=1, max_size=3).map(
            lambda fields: {"type": ["null", "object"], "properties": fields}
        ),
    ),
    max_leaves=5,
)


def fitting(node: dict[str, Any], draw: Any) -> str:
    """The text of a value that has the node's form, with hostile leaves."""
    if "properties" in node:
        names = draw(st.lists(st.sampled_from([*node["properties"], "unknown"]), max_size=4))
        parts = [f"{json.dumps(name)}:{value(node['properties'].get(name, {}), draw)}" for name in names]
        return "{" + ",".join(parts) + "}"
    if "items" in node:
        return "[" + ",".join(value(node["items"], draw) for _ in range(draw(st.integers(0, 3)))) + "]"
    if "additionalProperties" in node:
        keys = draw(st.lists(st.sampled_from(NAMES), max_size=3))
        return "{" + ",".join(f"{json.dumps(key)}:{value(node['additionalProperties'], draw)}" for key in keys) + "}"
    return draw(st.sampled_from(TOKENS))


def value(node: dict[str, Any], draw: Any) -> str:
    if draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from(TOKENS))
    return fitting(node, draw)


@st.composite
def tables(draw: Any) -> tuple[dict[str, Any], list[bytes]]:
    fields = draw(st.dictionaries(st.sampled_from(NAMES), nodes, min_size=1, max_size=4))
    schema = {"type": "object", "properties": fields}
    return schema, [fitting(schema, draw).encode() for _ in range(draw(st.integers(1, 5)))]


def one_by_one(layout: from_json.ColumnarLayout, rows: list[bytes]) -> tuple[Any, from_json.Report] | None:
    """What the converter makes of the rows; None if it refuses one."""
    convert, report = from_json.converter(layout.record, ()), from_json.Report()
    try:
        made = [convert(row, report) for row in rows]
    except from_json.ColumnMisfit:
        return None
    return pa.RecordBatch.from_pylist(made, schema=layout.arrow_schema), report


def same(left: Any, right: Any) -> bool:
    """Equal, with -0.0 and 0.0 told apart, and dicts by the order of their keys."""
    return left.equals(right) and repr(left.to_pylist()) == repr(right.to_pylist())


def check(schema: dict[str, Any], rows: list[bytes]) -> None:
    layout = from_json.layout_of(schema, "users")
    expected = one_by_one(layout, rows)
    lines = b"".join(row + b"\n" for row in rows)
    if expected is None:
        with pytest.raises(BatchError, match="stream 'users'"):
            layout.batches(lines, len(rows))
        assert layout.remarks() == []
        return
    (made,) = layout.batches(lines, len(rows))
    made.validate(full=True)
    assert same(made, expected[0])
    assert layout.report == expected[1]


@given(tables())
@example(({"properties": {"a": {"type": "number", "multipleOf": 1e-38}}}, [b'{"a":%d}' % 2**218]))
@example(({"properties": {"a": {"type": "string", "format": "date-time"}}}, [b'{"a":null}', b"{}"]))
def test_the_quick_way_gives_what_the_converter_gives(table):
    check(*table)


@pytest.mark.parametrize("leaf", LEAVES, ids=json.dumps)
def test_each_value_in_each_type_by_itself_and_all_in_one_column(leaf):
    schema = {"properties": {"x": leaf}}
    rows = [b'{"x":%s}' % token.encode() for token in TOKENS]
    for row in rows:
        check(schema, [row])
    layout = from_json.layout_of(schema, "users")
    check(schema, [row for row in rows if one_by_one(layout, [row]) is not None])
