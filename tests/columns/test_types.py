"""The table of column types, row by row, for Arrow."""

from __future__ import annotations

from decimal import Decimal

import pytest

from burler.errors import DataError, ExportError
from support.internals import column_kinds, column_types

pytest.importorskip("pyarrow", reason="extra 'batch'")

DATE_TIME = {"type": "string", "format": "date-time"}

CASES = [
    # JSON Schema, Arrow
    ({"type": "integer"}, "int64"),
    ({"type": ["null", "integer"], "minimum": -(2**63), "maximum": 2**63 - 1}, "int64"),
    ({"type": "integer", "maximum": 2**64 - 1}, "decimal128(38, 0)"),
    ({"type": "integer", "minimum": -(2**63) - 1}, "decimal128(38, 0)"),
    ({"type": "integer", "exclusiveMaximum": 2**63}, "int64"),
    ({"type": "integer", "exclusiveMaximum": 2**63 + 1}, "decimal128(38, 0)"),
    ({"type": "number"}, "double"),
    ({"type": "number", "multipleOf": 0.01}, "decimal128(38, 2)"),
    ({"type": "number", "multipleOf": 1e-9}, "decimal128(38, 9)"),
    ({"type": "number", "multipleOf": Decimal("1E-38")}, "decimal128(38, 38)"),
    ({"type": "number", "multipleOf": 1}, "decimal128(38, 0)"),
    ({"type": "number", "multipleOf": 0.05}, "double"),
    ({"type": "number", "multipleOf": 10}, "double"),
    ({"type": ["null", "string"], "format": "singer.decimal"}, "decimal128(38, 18)"),
    ({"type": "string", "format": "singer.decimal", "scale": 4}, "decimal128(38, 4)"),
    ({"type": "boolean"}, "bool"),
    ({"type": ["null", "string"], "maxLength": 5}, "string"),
    (DATE_TIME, "timestamp[us, tz=UTC]"),
    ({"anyOf": [DATE_TIME, {"type": "null"}]}, "timestamp[us, tz=UTC]"),
    ({"type": "string", "format": "date"}, "date32[day]"),
    ({"type": "string", "format": "time"}, "string"),
    ({"type": "string", "format": "uuid"}, "string"),
    ({"type": "string", "contentEncoding": "base64"}, "binary"),
    ({"type": "array", "items": {"type": "integer"}}, "list<element: int64>"),
    ({"type": "array"}, "string"),
    ({"type": "array", "items": [{"type": "integer"}, {"type": "string"}]}, "string"),
    ({"type": "array", "prefixItems": [{"type": "integer"}]}, "string"),
    (
        {"type": "object", "properties": {"a": {"type": "integer"}, "b.c": {"type": "string"}}},
        "struct<a: int64, b.c: string>",
    ),
    (
        {"properties": {"a": {"type": "integer"}}, "additionalProperties": False},
        "struct<a: int64>",
    ),
    (
        {"type": "object", "additionalProperties": {"type": "number"}},
        "map<string, double>",
    ),
    ({"type": "object"}, "string"),
    ({"type": "object", "additionalProperties": True}, "string"),
    ({"type": "object", "properties": {}}, "string"),
    ({"type": "object", "properties": {"a": {}}, "additionalProperties": True}, "string"),
    ({"type": "object", "patternProperties": {"^x": {"type": "integer"}}}, "string"),
    ({"type": "object", "properties": {"a": {}}, "additionalProperties": None}, "string"),
    ({}, "string"),
    (True, "string"),
    ({"type": ["integer", "number"]}, "double"),
    ({"anyOf": [{"type": "integer"}, {"type": "number", "multipleOf": 0.1}]}, "decimal128(38, 1)"),
    ({"type": ["string", "integer"], "format": "date-time"}, "string"),
    ({"type": ["string", "object"], "properties": {"a": {"type": "integer"}}}, "string"),
    ({"type": ["boolean", "integer"]}, "string"),
    ({"oneOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "object"}]}, "string"),
    ({"type": "null"}, "string"),
    ({"enum": ["a", "b", None]}, "string"),
    ({"enum": [1, 2]}, "int64"),
    ({"allOf": [{"type": "string"}, {"format": "date"}]}, "date32[day]"),
]


@pytest.mark.parametrize(("schema", "arrow_type"), CASES)
def test_each_row_of_the_table(schema, arrow_type):
    made = column_types.arrow_schema(column_types.record_type({"properties": {"x": schema}})).field("x")

    assert made.nullable
    assert str(made.type) == arrow_type or str(made.type).startswith(arrow_type + " (")


def test_everything_is_nullable_at_every_depth():
    schema = {str(at): case[0] for at, case in enumerate(CASES)} | {
        "deep": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer"}}}}
    }

    made = column_types.arrow_schema(column_types.record_type({"properties": schema}))

    assert all(field.nullable for field in made)
    assert made.field("deep").type.value_field.nullable
    assert made.field("deep").type.value_type.field(0).nullable


def test_the_top_level_is_a_table_also_when_it_is_open():
    record = column_types.record_type(
        {"type": "object", "properties": {"b": {}, "a": {}}, "additionalProperties": True}
    )

    assert [name for name, _ in record.fields] == ["b", "a"]


def test_a_field_that_is_only_ever_null_has_no_type_of_its_own():
    assert column_types.record_type({"properties": {"x": {"type": "null"}}}) == column_kinds.StructOf(
        (("x", column_kinds.NULL),)
    )


def recursive():
    node = {"type": "object", "properties": {}}
    node["properties"]["child"] = node
    return node


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "object"}, "no properties"),
        ({"properties": {}}, "no properties"),
        ({"properties": {"a": {"properties": {"b": {"$ref": "#/definitions/x"}}}}}, "'a.b' holds a $ref"),
        ({"properties": {"a": {"type": "intger"}}}, "unknown type 'intger'"),
        ({"properties": {"a": {"type": "object", "properties": ["b"]}}}, "no object"),
        (recursive(), "recursive"),
    ],
)
def test_what_can_not_be_a_table_is_refused(schema, words):
    with pytest.raises(DataError, match="stream 'users'") as caught:
        column_types.record_type(schema, stream="users")

    assert words in str(caught.value)


def test_the_caller_may_name_the_error():
    with pytest.raises(ExportError, match="no properties"):
        column_types.record_type({}, error=ExportError)
