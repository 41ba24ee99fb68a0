"""Parquet and Arrow files back as JSON lines: burler's own, and those of others."""

from __future__ import annotations

import datetime as dt
import io
import json
from decimal import Decimal
from typing import Any

import piped
import pytest
from hypothesis import given
from hypothesis import strategies as st

from burler.errors import BatchError

pa = pytest.importorskip("pyarrow", reason="extra 'batch'")
pq = pytest.importorskip("pyarrow.parquet", reason="extra 'batch'")

FORMATS = ["parquet", "arrow"]


def schema(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields}


def written(format: str, given: dict[str, Any], *rows: str) -> bytes:
    """burler's own file of these rows."""
    return piped.written(format, given, *rows, compression="zstd")


def read(data: bytes, format: str, given: dict[str, Any] | None = None) -> list[str]:
    """The lines of a file."""
    return piped.lines_of(data, format, given).decode().split("\n")[:-1]


def foreign(table: Any, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def one_batch(table: Any) -> bytes:
    """An Arrow file with one batch."""
    out = io.BytesIO()
    with pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


OWN = [
    # JSON Schema, a value's source text, what comes back (None: the same)
    ({"type": "integer"}, "9223372036854775807", None),
    ({"type": "integer"}, "1.0", "1"),
    ({"type": "integer", "maximum": 10**38}, "99999999999999999999999999999999999999", None),
    ({"type": "number"}, "0.1", None),
    ({"type": "number"}, "-0.0", None),
    ({"type": "number"}, "1e300", "1e+300"),
    ({"type": "number", "multipleOf": 0.01}, "3.10", None),
    ({"type": "number", "multipleOf": 0.000000001}, "0.000000001", None),
    ({"type": "number", "multipleOf": 0.000000001}, "0", "0.000000000"),
    ({"type": "number", "format": "singer.decimal"}, "3.1", None),
    ({"type": "string", "format": "singer.decimal"}, '"3.1"', None),
    ({"type": "string", "format": "singer.decimal"}, '"0.000000000000000001"', None),
    ({"type": "string", "format": "singer.decimal"}, '"100"', None),
    ({"type": "string", "format": "singer.decimal", "scale": 2}, '"3.10"', None),
    ({"type": "string", "format": "singer.decimal"}, '"-12345678901234567890.123456789"', None),
    ({"type": "boolean"}, "true", None),
    ({"type": "string"}, '"a\\"b\\\\c\\u000a\\u0000 ä😀"', None),
    ({"type": "string"}, '"{}"', None),
    ({"type": "string"}, '""', None),
    ({"type": "string", "format": "date-time"}, '"2024-01-02T03:04:05.678901Z"', None),
    ({"type": "string", "format": "date-time"}, '"2024-01-02T03:04:05Z"', None),
    ({"type": "string", "format": "date-time"}, '"2024-01-02T05:04:05.1+02:00"', '"2024-01-02T03:04:05.100000Z"'),
    ({"type": "string", "format": "date-time"}, '"0001-01-01T00:00:00Z"', None),
    ({"type": "string", "format": "date-time"}, '"9999-12-31T23:59:59.999999Z"', None),
    ({"type": "string", "format": "date"}, '"0001-01-01"', None),
    ({"type": "string", "format": "time"}, '"03:04:05"', None),
    ({"type": "string", "contentEncoding": "base64"}, '"AAEC/w=="', None),
    ({"type": "array", "items": {"type": "integer"}}, "[1,null,3]", None),
    ({"type": "array", "items": {"type": "integer"}}, "[]", None),
    ({"type": "array", "items": {"type": "array", "items": {"type": "string"}}}, '[["a"],null,[]]', None),
    ({"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}}, '{"b":7}', '{"a":null,"b":7}'),
    ({"type": "object", "additionalProperties": {"type": "number"}}, '{"x":1.5,"":null}', None),
    ({"type": "object", "additionalProperties": {"type": "array", "items": {}}}, '{"x":["1",1,{}]}', None),
    ({"type": "object"}, '{"a": [1 ,"x"]}', None),
    ({"type": "array"}, "[1.10]", None),
    ({}, '"7"', None),
    ({}, "7.10", None),
    ({}, '"null"', None),
    ({}, '"{}"', None),
    (True, "false", None),
    ({"type": ["string", "object"]}, '"{}"', None),
    ({"type": ["string", "object"]}, '{"a":1}', None),
    ({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}}]}, "[1]", None),
    ({"anyOf": [{"type": "object", "properties": {"a": {}}}, {"type": "null"}]}, '{"a":"7"}', None),
    (
        {"anyOf": [{"properties": {"a": {}}}, {"properties": {"a": {"type": "string"}}}]},
        '{"a":7}',
        None,
    ),
    ({"anyOf": [{"type": "array", "items": {}}, {"type": "array", "items": {"type": "string"}}]}, '["7",7]', None),
    ({"type": ["boolean", "integer"]}, "1", None),
    ({"type": ["string", "integer"]}, "7", '"7"'),
    ({"type": ["string", "number"], "format": "date-time"}, "1.10", '"1.10"'),
    ({"type": "null"}, "null", None),
    ({"type": "integer"}, "null", None),
    ({}, "null", None),
]


@pytest.mark.parametrize("format", FORMATS)
def test_what_comes_back_of_all_in_one_file(format):
    given = schema(**{f"f{i}": node for i, (node, _, _) in enumerate(OWN)})
    row = ",".join(f'"f{i}":{text}' for i, (_, text, _) in enumerate(OWN))
    back = ",".join(f'"f{i}":{back or text}' for i, (_, text, back) in enumerate(OWN))
    empty = ",".join(f'"f{i}":null' for i in range(len(OWN)))

    made = read(written(format, given, f"{{{row}}}", "{}", f"{{{row}}}"), format, given)

    assert made == [f"{{{back}}}", f"{{{empty}}}", f"{{{back}}}"]


@pytest.mark.parametrize("format", FORMATS)
def test_names_of_all_kinds_come_back(format):
    names = ["a.b", "a", "A", "ä", "", 'q"\\', "nul\x00", "x" * 300]
    given = schema(**{name: {"type": "integer"} for name in names})
    row = {name: i for i, name in enumerate(names)}

    (line,) = read(written(format, given, json.dumps(row)), format, given)

    assert list(json.loads(line).items()) == list(row.items())


any_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=3), below, max_size=3),
    max_leaves=6,
)
FIELDS: dict[str, tuple[dict[str, Any], Any]] = {
    "whole": ({"type": "integer"}, st.integers(-(2**63), 2**63 - 1)),
    "real": ({"type": "number"}, st.floats(allow_nan=False, allow_infinity=False)),
    "exact": (
        {"type": "string", "format": "singer.decimal"},
        st.decimals(-(10**19), 10**19, places=18).map(lambda number: format(number.normalize(), "f")),
    ),
    "flag": ({"type": "boolean"}, st.booleans()),
    "text": ({"type": "string"}, st.text(st.characters(exclude_categories=["Cs"]))),
    "at": (
        {"type": "string", "format": "date-time"},
        st.datetimes().map(lambda moment: moment.isoformat().rjust(19, "0") + "Z"),
    ),
    "any": ({}, any_json),
    "many": (
        {"type": "array", "items": {"type": ["null", "string"]}},
        st.lists(st.none() | st.text('ab\n"', max_size=3)),
    ),
    "map": (
        {"type": "object", "additionalProperties": {}},
        st.dictionaries(st.text("a.", max_size=3), any_json, max_size=3),
    ),
    "in": (
        {"type": "object", "properties": {"x": {"type": "array", "items": {}}, "y": {"type": "integer"}}},
        st.fixed_dictionaries({"x": st.none() | st.lists(any_json, max_size=3), "y": st.none() | st.integers(0, 9)}),
    ),
}
EVERYTHING = schema(**{name: node for name, (node, _) in FIELDS.items()})
rows_of_everything = st.lists(
    st.fixed_dictionaries({}, optional={name: st.none() | values for name, (_, values) in FIELDS.items()}),
    min_size=1,
    max_size=6,
)


@given(rows_of_everything, st.sampled_from(FORMATS))
def test_any_rows_come_back_as_they_were(rows, format):
    data = written(format, EVERYTHING, *(json.dumps(row) for row in rows))

    back = [json.loads(line) for line in read(data, format, EVERYTHING)]

    assert back == [{name: row.get(name) for name in FIELDS} for row in rows]


@pytest.mark.parametrize("format", FORMATS)
def test_large_files_come_in_pages_of_about_a_megabyte(format):
    given = schema(id={"type": "integer"}, text={"type": "string"})
    rows = [json.dumps({"id": i, "text": f"{i:0100d}"}) for i in range(40_000)]
    table = pa.table({"id": range(40_000), "text": [f"{i:0100d}" for i in range(40_000)]})
    data = foreign(table) if format == "parquet" else one_batch(table)

    found = list(piped.pages_of(data, format, given))

    assert sum(count for _, count in found) == 40_000
    assert max(len(lines) for lines, _ in found) < 3_000_000
    assert (
        b"".join(lines for lines, _ in found)
        == "".join(row.replace(": ", ":").replace(", ", ",") + "\n" for row in rows).encode()
    )


# ---- other writers' files -------------------------------------------------------------------------

MOMENT = dt.datetime(2024, 1, 2, 3, 4, 5, 678901, dt.UTC)
DATE_TIME = {"type": "string", "format": "date-time"}
FOREIGN = [
    (pa.uint64(), 2**64 - 1, None, "18446744073709551615"),
    (pa.int8(), -5, {"type": "string"}, '"-5"'),
    (pa.float32(), 0.5, None, "0.5"),
    (pa.float64(), 3.0, {"type": "integer"}, "3"),
    (pa.float64(), 1.5, {"type": "string"}, '"1.5"'),
    (pa.large_string(), 'a"b', {"type": "string"}, '"a\\"b"'),
    (pa.string(), "12", {"type": "integer"}, "12"),
    (pa.string(), "plain", {}, '"plain"'),
    (pa.string(), '{\n "a": 1\n}', {"type": "object"}, '{"a":1}'),
    (pa.string(), "7", {"type": ["string", "object"]}, '"7"'),
    (pa.string(), "null", {}, '"null"'),
    (pa.binary(), b"text", {"type": "string"}, '"text"'),
    (pa.binary(), b"\xff", {"type": "string"}, '"/w=="'),
    (pa.binary(), b"text", {"type": "string", "contentEncoding": "base64"}, '"dGV4dA=="'),
    (pa.binary(2), b"\x00\x01", {"type": "string", "contentEncoding": "base64"}, '"AAE="'),
    (pa.timestamp("us"), MOMENT, DATE_TIME, '"2024-01-02T03:04:05.678901Z"'),
    (pa.timestamp("ms", "Europe/Berlin"), MOMENT.replace(microsecond=0), DATE_TIME, '"2024-01-02T03:04:05Z"'),
    (pa.timestamp("ns"), 1704164645678901234, DATE_TIME, '"2024-01-02T03:04:05.678901234Z"'),
    (pa.date64(), dt.date(2024, 1, 2), None, '"2024-01-02"'),
    (pa.time32("ms"), dt.time(3, 4, 5), None, '"03:04:05"'),
    (pa.time64("us"), dt.time(3, 4, 5, 6), {"type": "string", "format": "time"}, '"03:04:05.000006"'),
    (pa.decimal128(10, 2), Decimal("3.10"), {"type": "number"}, "3.10"),
    (pa.decimal128(10, 2), Decimal("3.00"), {"type": "integer"}, "3"),
    (pa.decimal256(60, 20), Decimal("1E-20"), None, "0.00000000000000000001"),
    (pa.dictionary(pa.int32(), pa.string()), "red", {"type": "string"}, '"red"'),
    (pa.struct([("b", pa.int64())]), {"b": 1}, schema(a={}, b={}), '{"a":null,"b":1}'),
    (pa.large_list(pa.string()), ["x"], None, '["x"]'),
    (pa.map_(pa.string(), pa.float64()), [("k", 1.5)], None, '{"k":1.5}'),
    (pa.map_(pa.int64(), pa.string()), [(1, "a")], None, '{"1":"a"}'),
    (pa.null(), None, {"type": "string"}, "null"),
]


def test_columns_of_other_writers():
    arrays = {f"f{at}": pa.array([value], kind) for at, (kind, value, _, _) in enumerate(FOREIGN)}
    given = schema(**{f"f{at}": True if node is None else node for at, (_, _, node, _) in enumerate(FOREIGN)})
    (line,) = read(foreign(pa.table(arrays)), "parquet", given)
    found = [line.partition(f'"f{at}":')[2].partition(f',"f{at + 1}":')[0] for at in range(len(FOREIGN))]
    assert found[-1] == "null}"
    assert found[:-1] == [text for _, _, _, text in FOREIGN[:-1]]


def test_numbers_that_json_does_not_know_are_an_error():
    data = foreign(pa.table({"a": [{"x": float("nan")}]}))

    with pytest.raises(BatchError, match=r"field 'a.x': nan is no number of JSON"):
        read(data, "parquet")


def test_bytes_are_text_only_where_they_are():
    """DuckDB writes intervals as 12 bytes of numbers."""
    for kind in (pa.binary(), pa.binary(12)):
        table = pa.table({"iv": pa.array([b"\0\0\0\0\x01\0\0\0\0\0\0\0", b"twelve bytes"], kind)})
        assert read(foreign(table), "parquet", schema(iv={"type": "string"})) == [
            '{"iv":"AAAAAAEAAAAAAAAA"}',
            '{"iv":"twelve bytes"}',
        ]


def test_two_columns_of_one_name_are_an_error():
    data = foreign(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]))

    with pytest.raises(BatchError, match="two of its columns have one name"):
        read(data, "parquet")


def test_a_table_as_pandas_writes_it():
    """Integers with nulls as floating numbers, nanoseconds, categories, and pandas' own words about them."""
    at = pa.array([1_704_153_600_000_000_000, None], pa.timestamp("ns"))
    kind = pa.array(["a", "b"]).dictionary_encode()
    table = pa.table({"id": [1, 2], "count": [1.0, None], "at": at, "kind": kind})
    words = {b"pandas": b'{"index_columns": [], "columns": [], "pandas_version": "2.2.0"}'}
    given = schema(id={"type": "integer"}, count={"type": ["null", "integer"]}, at=DATE_TIME, kind={"type": "string"})

    assert read(foreign(table.replace_schema_metadata(words)), "parquet", given) == [
        '{"id":1,"count":1,"at":"2024-01-02T00:00:00Z","kind":"a"}',
        '{"id":2,"count":null,"at":null,"kind":"b"}',
    ]
