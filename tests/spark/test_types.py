"""The table of column types, row by row, for Spark; what can't be a table is an export's error."""

from __future__ import annotations

from decimal import Decimal

import pytest

from burler.errors import ExportError
from burler.spark import arrow_schema, record_type, spark_schema

pytestmark = pytest.mark.usefixtures("packages")

DATE_TIME = {"type": "string", "format": "date-time"}

# One schema of each column type; which type a schema has is told in tests/records/test_types.py.
CASES = [
    # JSON Schema, Spark
    ({"type": "integer"}, "bigint"),
    ({"type": "number"}, "double"),
    ({"type": "number", "multipleOf": Decimal("1E-38")}, "decimal(38,38)"),
    ({"type": "boolean"}, "boolean"),
    ({"type": "string"}, "string"),
    (DATE_TIME, "timestamp"),
    ({"type": "string", "format": "date"}, "date"),
    ({"type": "string", "contentEncoding": "base64"}, "binary"),
    ({"type": "array", "items": {"type": "integer"}}, "array<bigint>"),
    (
        {"type": "object", "properties": {"a": {"type": "integer"}, "b.c": {"type": "string"}}},
        "struct<a:bigint,b.c:string>",
    ),
    ({"type": "object", "additionalProperties": {"type": "number"}}, "map<string,double>"),
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
