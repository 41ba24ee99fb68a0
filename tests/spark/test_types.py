"""The table of column types, row by row, for Spark; what can't be a table is an export's error."""

from __future__ import annotations

from decimal import Decimal

import pytest

from burler.errors import ExportError
from burler.spark import arrow_schema, record_type, spark_schema

pytestmark = pytest.mark.usefixtures("packages")

DATE_TIME = {"type": "string", "format": "date-time"}

CASES = [
    # JSON Schema, Spark
    ({"type": "integer"}, "bigint"),
    ({"type": ["null", "integer"], "minimum": -(2**63), "maximum": 2**63 - 1}, "bigint"),
    ({"type": "integer", "maximum": 2**64 - 1}, "decimal(38,0)"),
    ({"type": "integer", "minimum": -(2**63) - 1}, "decimal(38,0)"),
    ({"type": "integer", "exclusiveMaximum": 2**63}, "bigint"),
    ({"type": "integer", "exclusiveMaximum": 2**63 + 1}, "decimal(38,0)"),
    ({"type": "number"}, "double"),
    ({"type": "number", "multipleOf": 0.01}, "decimal(38,2)"),
    ({"type": "number", "multipleOf": 1e-9}, "decimal(38,9)"),
    ({"type": "number", "multipleOf": Decimal("1E-38")}, "decimal(38,38)"),
    ({"type": "number", "multipleOf": 1}, "decimal(38,0)"),
    ({"type": "number", "multipleOf": 0.05}, "double"),
    ({"type": "number", "multipleOf": 10}, "double"),
    ({"type": ["null", "string"], "format": "singer.decimal"}, "decimal(38,18)"),
    ({"type": "string", "format": "singer.decimal", "scale": 4}, "decimal(38,4)"),
    ({"type": "boolean"}, "boolean"),
    ({"type": ["null", "string"], "maxLength": 5}, "string"),
    (DATE_TIME, "timestamp"),
    ({"anyOf": [DATE_TIME, {"type": "null"}]}, "timestamp"),
    ({"type": "string", "format": "date"}, "date"),
    ({"type": "string", "format": "time"}, "string"),
    ({"type": "string", "format": "uuid"}, "string"),
    ({"type": "string", "contentEncoding": "base64"}, "binary"),
    ({"type": "array", "items": {"type": "integer"}}, "array<bigint>"),
    ({"type": "array"}, "string"),
    ({"type": "array", "items": [{"type": "integer"}, {"type": "string"}]}, "string"),
    ({"type": "array", "prefixItems": [{"type": "integer"}]}, "string"),
    (
        {"type": "object", "properties": {"a": {"type": "integer"}, "b.c": {"type": "string"}}},
        "struct<a:bigint,b.c:string>",
    ),
    (
        {"properties": {"a": {"type": "integer"}}, "additionalProperties": False},
        "struct<a:bigint>",
    ),
    (
        {"type": "object", "additionalProperties": {"type": "number"}},
        "map<string,double>",
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
    ({"anyOf": [{"type": "integer"}, {"type": "number", "multipleOf": 0.1}]}, "decimal(38,1)"),
    ({"type": ["string", "integer"], "format": "date-time"}, "string"),
    ({"type": ["string", "object"], "properties": {"a": {"type": "integer"}}}, "string"),
    ({"type": ["boolean", "integer"]}, "string"),
    ({"oneOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "object"}]}, "string"),
    ({"type": "null"}, "string"),
    ({"enum": ["a", "b", None]}, "string"),
    ({"enum": [1, 2]}, "bigint"),
    ({"allOf": [{"type": "string"}, {"format": "date"}]}, "date"),
]


@pytest.mark.parametrize(("schema", "spark_type"), CASES)
def test_each_row_of_the_table(schema, spark_type):
    record = record_type({"properties": {"x": schema}})

    assert spark_schema(record)["x"].dataType.simpleString() == spark_type
    assert spark_schema(record)["x"].nullable


def test_everything_is_nullable_at_every_depth_and_equal_to_sparks_own_conversion():
    from pyspark.sql.pandas.types import to_arrow_schema

    record = record_type({"properties": {str(at): case[0] for at, case in enumerate(CASES)}})

    assert arrow_schema(record) == to_arrow_schema(spark_schema(record), timezone="UTC")


def test_what_can_not_be_a_table_is_refused():
    with pytest.raises(ExportError, match=r"stream 'users': .*no properties"):
        record_type({"type": "object"}, stream="users")
