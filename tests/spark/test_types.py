"""The table of specs 12, row by row, for Spark and for Arrow."""

from __future__ import annotations

from decimal import Decimal

import pytest

from burler.errors import ExportError
from burler.spark.kinds import NULL, StructOf
from burler.spark.types import arrow_schema, record_type, spark_schema

pytestmark = pytest.mark.usefixtures("packages")

DATE_TIME = {"type": "string", "format": "date-time"}

CASES = [
    # JSON Schema, Spark, Arrow
    ({"type": "integer"}, "bigint", "int64"),
    ({"type": ["null", "integer"], "minimum": -(2**63), "maximum": 2**63 - 1}, "bigint", "int64"),
    ({"type": "integer", "maximum": 2**64 - 1}, "decimal(38,0)", "decimal128(38, 0)"),
    ({"type": "integer", "minimum": -(2**63) - 1}, "decimal(38,0)", "decimal128(38, 0)"),
    ({"type": "integer", "exclusiveMaximum": 2**63}, "bigint", "int64"),
    ({"type": "integer", "exclusiveMaximum": 2**63 + 1}, "decimal(38,0)", "decimal128(38, 0)"),
    ({"type": "number"}, "double", "double"),
    ({"type": "number", "multipleOf": 0.01}, "decimal(38,2)", "decimal128(38, 2)"),
    ({"type": "number", "multipleOf": 1e-9}, "decimal(38,9)", "decimal128(38, 9)"),
    ({"type": "number", "multipleOf": Decimal("1E-38")}, "decimal(38,38)", "decimal128(38, 38)"),
    ({"type": "number", "multipleOf": 1}, "decimal(38,0)", "decimal128(38, 0)"),
    ({"type": "number", "multipleOf": 0.05}, "double", "double"),
    ({"type": "number", "multipleOf": 10}, "double", "double"),
    ({"type": ["null", "string"], "format": "singer.decimal"}, "decimal(38,18)", "decimal128(38, 18)"),
    ({"type": "string", "format": "singer.decimal", "scale": 4}, "decimal(38,4)", "decimal128(38, 4)"),
    ({"type": "boolean"}, "boolean", "bool"),
    ({"type": ["null", "string"], "maxLength": 5}, "string", "string"),
    (DATE_TIME, "timestamp", "timestamp[us, tz=UTC]"),
    ({"anyOf": [DATE_TIME, {"type": "null"}]}, "timestamp", "timestamp[us, tz=UTC]"),
    ({"type": "string", "format": "date"}, "date", "date32[day]"),
    ({"type": "string", "format": "time"}, "string", "string"),
    ({"type": "string", "format": "uuid"}, "string", "string"),
    ({"type": "string", "contentEncoding": "base64"}, "binary", "binary"),
    ({"type": "array", "items": {"type": "integer"}}, "array<bigint>", "list<element: int64>"),
    ({"type": "array"}, "string", "string"),
    ({"type": "array", "items": [{"type": "integer"}, {"type": "string"}]}, "string", "string"),
    ({"type": "array", "prefixItems": [{"type": "integer"}]}, "string", "string"),
    (
        {"type": "object", "properties": {"a": {"type": "integer"}, "b.c": {"type": "string"}}},
        "struct<a:bigint,b.c:string>",
        "struct<a: int64, b.c: string>",
    ),
    (
        {"properties": {"a": {"type": "integer"}}, "additionalProperties": False},
        "struct<a:bigint>",
        "struct<a: int64>",
    ),
    (
        {"type": "object", "additionalProperties": {"type": "number"}},
        "map<string,double>",
        "map<string, double>",
    ),
    ({"type": "object"}, "string", "string"),
    ({"type": "object", "additionalProperties": True}, "string", "string"),
    ({"type": "object", "properties": {}}, "string", "string"),
    ({"type": "object", "properties": {"a": {}}, "additionalProperties": True}, "string", "string"),
    ({"type": "object", "patternProperties": {"^x": {"type": "integer"}}}, "string", "string"),
    ({"type": "object", "properties": {"a": {}}, "additionalProperties": None}, "string", "string"),
    ({}, "string", "string"),
    (True, "string", "string"),
    ({"type": ["integer", "number"]}, "double", "double"),
    ({"anyOf": [{"type": "integer"}, {"type": "number", "multipleOf": 0.1}]}, "decimal(38,1)", "decimal128(38, 1)"),
    ({"type": ["string", "integer"], "format": "date-time"}, "string", "string"),
    ({"type": ["string", "object"], "properties": {"a": {"type": "integer"}}}, "string", "string"),
    ({"type": ["boolean", "integer"]}, "string", "string"),
    ({"oneOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "object"}]}, "string", "string"),
    ({"type": "null"}, "string", "string"),
    ({"enum": ["a", "b", None]}, "string", "string"),
    ({"enum": [1, 2]}, "bigint", "int64"),
    ({"allOf": [{"type": "string"}, {"format": "date"}]}, "date", "date32[day]"),
]


@pytest.mark.parametrize(("schema", "spark_type", "arrow_type"), CASES)
def test_each_row_of_the_table(schema, spark_type, arrow_type):
    record = record_type({"properties": {"x": schema}})

    assert spark_schema(record)["x"].dataType.simpleString() == spark_type
    assert spark_schema(record)["x"].nullable
    made = arrow_schema(record).field("x")
    assert made.nullable
    assert str(made.type) == arrow_type or str(made.type).startswith(arrow_type + " (")


def test_everything_is_nullable_at_every_depth_and_equal_to_sparks_own_conversion():
    from pyspark.sql.pandas.types import to_arrow_schema

    record = record_type({"properties": {str(at): case[0] for at, case in enumerate(CASES)}})

    assert arrow_schema(record) == to_arrow_schema(spark_schema(record), timezone="UTC")


def test_the_top_level_is_a_table_also_when_it_is_open():
    record = record_type({"type": "object", "properties": {"b": {}, "a": {}}, "additionalProperties": True})

    assert [name for name, _ in record.fields] == ["b", "a"]


def test_a_field_that_is_only_ever_null_has_no_type_of_its_own():
    assert record_type({"properties": {"x": {"type": "null"}}}) == StructOf((("x", NULL),))


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
    with pytest.raises(ExportError, match="stream 'users'") as caught:
        record_type(schema, stream="users")

    assert words in str(caught.value)
