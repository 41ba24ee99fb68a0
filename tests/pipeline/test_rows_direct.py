"""Rows as columns of a file: the same values as by way of lines, or lines."""

from __future__ import annotations

import contextlib
import datetime as dt
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from burler import JsonPage
from burler.errors import DataError
from support.internals import (
    arrow_rows,
    column_types,
    column_values,
    columnar_nodes,
    rows_direct,
    shape,
    shape_json,
    shape_lines,
    shape_rules,
)

pytest.importorskip("pyarrow")
sys.path.append(str(Path(__file__).resolve().parent))
import pyarrow as pa
from arrow_pages import pages

SLOW = settings(suppress_health_check=list(HealthCheck))
UTC = dt.UTC


def record_of(schema):
    """The columns of batch files."""
    return columnar_nodes.with_json(column_types.record_type(schema), schema)


def shaped(parts, schema, *, columns, **options):
    """What comes out for pages of rows (lists, or JSON): tables and lists of lines in order, and what else is told."""
    came = []
    shaper = shape.Shaper("s", schema, **options)

    def spill(buffer, count):
        lines = bytes(buffer).split(b"\n")[:-1]
        assert len(lines) == count
        came.append(lines)

    output = shape_lines.Output(bytearray(), b"", b"\n", spill)
    if columns:
        direct = rows_direct.RowsDirect(shaper.schema, column_types.arrow_schema(record_of(schema)))
        output = rows_direct.ColumnsOutput(bytearray(), spill, direct=direct, give=came.append)
    told = []
    decoder = shape_json.JsonDecoder(shaper.schema, shaper.rules)
    for rows in parts:
        if isinstance(rows, bytes):
            structs = decoder.decode(JsonPage(rows))
            done, keys = (0, []) if structs is None else shaper.write(decoder.compiled, structs, None, output)
            told.append((done, repr(keys)))
            output.flush()
            continue
        page = shaper.shape_to(rows, output)
        told.append((page.count, repr(page.keys), page.skipped, str(page.error)))
        output.flush()
    return came, told, shaper.unknown.counts


def compare(parts, schema, **options):
    """Hold what comes out against lines, read value by value; gives how many rows were columns."""
    lines, told, unknown = shaped(parts, schema, columns=False, **options)
    came, told_of_columns, unknown_of_columns = shaped(parts, schema, columns=True, **options)
    assert (told, unknown) == (told_of_columns, unknown_of_columns)
    record = record_of(schema)
    convert, wanted = column_values.converter(record, ()), column_types.arrow_schema(record)
    left = [line for some in lines for line in some]
    rows = 0
    for one in came:
        if isinstance(one, list):
            assert one == left[: len(one)]
            del left[: len(one)]
            continue
        report = column_values.Report(Counter(), Counter())
        expected = [convert(line, report) for line in left[: one.num_rows]]
        del left[: one.num_rows]
        assert not report.dropped and not report.truncated
        table = pa.RecordBatch.from_pylist(expected, schema=wanted)
        assert one.equals(table), (one.to_pylist(), expected)
        one.validate(full=True)
        rows += one.num_rows
    assert not left
    return rows


@SLOW
@given(page=pages(), data=st.data())
def test_columns_hold_what_lines_say(page, data):
    batch, schema = page
    rows = arrow_rows.batch_to_rows(batch)
    for row in rows:
        for name in list(row):
            if data.draw(st.integers(0, 9)) == 0:
                del row[name]
    rules = shape_rules.Rules(on_bad_record=data.draw(st.sampled_from(["error", "skip", "null"])))
    key = data.draw(st.sampled_from([None, *batch.schema.names]))
    with contextlib.suppress(DataError):
        compare([rows], schema, key=key, rules=rules)
        try:
            page = msgspec.json.Encoder(enc_hook=str, decimal_format="number").encode(rows)
        except (TypeError, ValueError):  # it has no form in JSON
            return
        compare([page], schema, key=key, rules=rules)


INTEGER, NUMBER, TEXT = ({"type": ["null", name]} for name in ("integer", "number", "string"))
MOMENT, DAY = {**TEXT, "format": "date-time"}, {**TEXT, "format": "date"}
CENTS = {**NUMBER, "multipleOf": 0.01}
EXACT = {**TEXT, "format": "singer.decimal", "scale": 3}
BASE64 = {**TEXT, "contentEncoding": "base64"}
POINT = {"type": ["null", "object"], "properties": {"x": {"type": "integer"}, "y": TEXT, "p": MOMENT}}
MAP = {"type": ["null", "object"], "additionalProperties": NUMBER}
NOON = dt.datetime(2024, 1, 2, 12, tzinfo=UTC)
BERLIN = dt.timezone(dt.timedelta(hours=1))

SURE = {
    "integers": (INTEGER, [1, None, -(2**63), 2**63 - 1]),
    "integers as text": (INTEGER, ["12", 3]),
    "whole floats": (INTEGER, [1.0, 2]),
    "wide integers": ({"type": "integer", "maximum": 10**30}, [10**30, -1]),
    "numbers": (NUMBER, [1.5, 2, None, -0.0, 5e-324]),
    "cents": (CENTS, [0.1, Decimal("1.10"), 3, None, -12.34]),
    "exact numbers in text": (EXACT, ["1.5", Decimal("2.125"), 7, None]),
    "booleans": ({"type": ["null", "boolean"]}, [True, None, False]),
    "text": (TEXT, ["", None, 'a"\\\n\0', "é😀"]),
    "text or integers": ({"type": ["null", "string", "integer"]}, ["a", None]),
    "moments": (MOMENT, ["2024-01-02T03:04:05Z", "2024-01-02T03:04:05.123456Z", None]),
    "moments elsewhere": (MOMENT, ["2024-01-02T03:04:05+02:00", NOON.astimezone(BERLIN)]),
    "datetimes": (MOMENT, [NOON, None]),
    "the first and the last moment": (MOMENT, ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"]),
    "days": (DAY, ["2024-02-29", dt.date(1, 1, 1), None]),
    "bytes": (BASE64, [b"\0\xff", "AAE=", None]),
    "objects": (POINT, [{"x": 1, "y": "a", "p": "2024-01-02T03:04:05Z"}, None, {"x": 2}]),
    "lists": ({"type": ["null", "array"], "items": INTEGER}, [[1, None], None, [], [3]]),
    "lists of objects": ({"type": "array", "items": POINT}, [[{"x": 1}, None], [], [{"x": 2, "y": "b"}]]),
    "maps": (MAP, [{"a": 1, "b": None}, None, {}, {"a": 0.5}]),
    "anything": ({}, ["7", 7, None, {"a": [1.50, Decimal("1.50")]}, 'a"\n']),
    "text or objects": ({"type": ["null", "string", "object"]}, ["7", {"x": 1}, None]),
    "open objects": ({"type": ["null", "object"]}, [{"x": 1}, None]),
    "lists of anything": ({"type": ["null", "array"]}, [[1, "a"], None, []]),
    "only nulls": (POINT, [None, None]),
}


@pytest.mark.parametrize("name", SURE)
def test_ordinary_fields_go_as_columns(name):
    node, values = SURE[name]
    schema = {"type": "object", "properties": {"id": INTEGER, "v": node}}
    rows = [{"id": i, "v": value} for i, value in enumerate(values)]
    if "null" in node.get("type", "null"):
        rows.append({"id": -1})  # the field is not there at all
    assert compare([rows], schema, key="v") == len(rows)
    assert compare([[row] for row in rows], schema, key="id") == len(rows)


TEXTS = {
    "numbers": (NUMBER, b"[1.5,-0.0,null,2,1e3,0.1]"),
    "integers": (INTEGER, b"[1,null,-5,1.0]"),
    "cents": (CENTS, b"[1.50,0.1,null,7,-12.34]"),
    "anything": ({}, b'[1.50,"7",null,{"a" : 1.0},[1e5]]'),
    "open objects": ({"type": "object"}, b'[{"a":1.10},{}]'),
    "moments": (MOMENT, b'["2024-01-02T03:04:05Z",null,"2024-01-02T03:04:05+02:00"]'),
    "objects": (POINT, b'[{"x":1,"y":"a"},null]'),
    "maps": ({**MAP, "additionalProperties": INTEGER}, b'[{"a":1,"b":null},null]'),
    "text": (TEXT, b'["a\\n",null]'),
}


@pytest.mark.parametrize("name", TEXTS)
def test_pages_of_json_go_as_columns(name):
    node, values = TEXTS[name]
    schema = {"type": "object", "properties": {"v": node}}
    items = msgspec.json.decode(values, type=list[msgspec.Raw])
    page = b"[" + b",".join(b'{"v":' + item + b"}" for item in items) + b"]"
    assert compare([page, page], schema, key="v") == 2 * len(items)


def test_a_minus_zero_in_json_keeps_its_sign():
    schema = {"type": "object", "properties": {"v": NUMBER}}
    assert compare([b'[{"v":-0}]'], schema) == 0


UNSURE = {
    "an integer beyond 64 bits": (INTEGER, [1, 2**63]),
    "an integer that no double holds": (NUMBER, [2**53 + 1]),
    "a number exact beyond doubles": (NUMBER, [Decimal("0.1")]),
    "a digit that six do not hold": (MOMENT, ["2024-01-02T03:04:05.1234567Z"]),
    "more digits than the column has": (EXACT, ["1.23456"]),
    "a number of 39 digits": (
        {"type": "number", "format": "singer.decimal", "scale": 17},
        [Decimal("-531635121326743168753.238713099067704212")],
    ),
    "text that is no base64": (BASE64, ["a"]),
    "integers among text": ({"type": ["string", "integer"]}, ["a", 1]),
}


@pytest.mark.parametrize("name", UNSURE)
def test_what_is_not_sure_goes_as_lines(name):
    node, values = UNSURE[name]
    schema = {"type": "object", "properties": {"v": node}}
    rows = [{"v": value} for value in values]
    assert compare([rows], schema) == 0


def test_a_page_that_went_as_lines_is_followed_by_columns_in_order():
    schema = {"type": "object", "properties": {"v": MOMENT}}
    usual, odd = [{"v": NOON}], [{"v": "2024-01-02T03:04:05.1234567Z"}]
    assert compare([usual, odd, usual, odd, odd, usual], schema) == 3


def test_after_many_pages_that_had_to_be_lines_no_more_are_tried():
    schema = {"type": "object", "properties": {"v": EXACT}}
    odd = [[{"v": "1.23456"}] for _ in range(20)]
    assert compare([*odd[1:], [{"v": "1"}], *odd[1:], [{"v": "1"}]], schema) == 2
    assert compare([*odd, [{"v": "1"}]], schema) == 0


def test_fields_that_an_open_row_brings_go_as_lines():
    schema = {"type": "object", "properties": {"v": INTEGER}, "additionalProperties": True}
    assert compare([[{"v": 1}], [{"v": 1, "more": 2}]], schema) == 1


def test_unknown_fields_are_dropped_and_counted():
    schema = {"type": "object", "properties": {"v": INTEGER, "p": POINT}}
    rows = [{"v": 1, "new": 1}, {"v": 2, "p": {"x": 1, "deep": 2}}]
    assert compare([rows, rows], schema) == 4
    assert shaped([rows], schema, columns=True)[2] == {"new": 1, "p.deep": 1}


def test_fields_that_are_not_selected_stay_out():
    schema = {"type": "object", "properties": {"v": INTEGER}}
    deselected = [("properties", "secret")]
    assert compare([[{"v": 1, "secret": "s"}]], schema, deselected=deselected) == 1


def test_a_row_that_does_not_fit_ends_the_page_where_it_stands():
    schema = {"type": "object", "properties": {"v": {"type": "integer"}}}
    rows = [{"v": i} for i in range(200)]
    rows[150] = {"v": "no"}
    assert 0 < compare([rows], schema) <= 150
    assert 150 < compare([rows], schema, rules=shape_rules.Rules(on_bad_record="skip")) < 200


def test_text_that_utf8_has_no_form_for_is_an_error_as_ever():
    schema = {"type": "object", "properties": {"v": TEXT}}
    _, told, _ = shaped([[{"v": "a"}, {"v": "\ud800"}]], schema, columns=True)
    assert told[0][0] == 1 and "field 'v' is a string" in told[0][3]
    compare([[{"v": "a"}, {"v": "\ud800"}]], schema)
