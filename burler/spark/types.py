"""Column types (``burler.records.columns``) as Spark's, and the same for callers that want tables.

Nothing here needs pyspark or pyarrow until ``spark_schema`` or ``arrow_schema`` is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from burler.errors import ExportError, UsageError
from burler.extras import require
from burler.records.columns import types
from burler.records.columns.types import (
    DIGITS,
    STRING,
    TIMESTAMP,
    VARIANT,
    DecimalOf,
    FieldType,
    ListOf,
    MapOf,
    Scalar,
    StructOf,
    replaced,
)

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql.types import StructType


def record_type(schema: Mapping[str, Any], *, stream: str = "") -> StructOf:
    """The columns of a stream's rows.

    The top level is always a struct of the declared properties, also where ``additionalProperties`` is
    open: a table has columns (undeclared fields are dropped and counted by who reads the rows).

    Raises:
        ExportError: no properties, a recursive schema or a ``$ref`` (resolve references first).
    """
    return types.record_type(schema, stream=stream, error=ExportError)


def read_type(
    schema: Mapping[str, Any], *, stream: str = "", timestamps: str = "micros", open_types: str = "text"
) -> StructOf:
    """The same by a user's options (``burler.spark.readoptions``).

    Raises:
        ExportError: as ``record_type``.
    """
    open_as = VARIANT if open_types == "variant" else STRING
    record: FieldType = types.record_type(schema, stream=stream, error=ExportError, open_as=open_as)
    if timestamps == "text":
        record = replaced(record, TIMESTAMP, STRING)
    assert isinstance(record, StructOf)
    return record


def arrow_schema(record: StructOf) -> pyarrow.Schema:
    """The same as an Arrow schema; equal to what Spark's own conversion of ``spark_schema`` gives."""
    require("pyarrow", extra="spark", needed_for="burler.spark")
    return types.arrow_schema(record)


def spark_schema(record: StructOf) -> StructType:
    """The same as a Spark StructType.

    Raises:
        UsageError: a VARIANT, and this Spark has none.
    """
    spark = require("pyspark.sql.types", extra="spark", needed_for="burler.spark")

    def convert(kind: FieldType) -> Any:
        match kind:
            case DecimalOf(scale):
                return spark.DecimalType(DIGITS, scale)
            case ListOf(item):
                return spark.ArrayType(convert(item), True)
            case MapOf(value):
                return spark.MapType(spark.StringType(), convert(value), True)
            case StructOf(fields):
                return spark.StructType([spark.StructField(name, convert(inner), True) for name, inner in fields])
            case Scalar(name):
                return _spark_scalar(spark, name)

    return convert(record)


_SCALARS = {
    "bigint": "LongType",
    "double": "DoubleType",
    "boolean": "BooleanType",
    "timestamp": "TimestampType",
    "date": "DateType",
    "binary": "BinaryType",
}
"""Scalar columns, and Spark's classes for them. All others are text."""


def _spark_scalar(spark: Any, name: str) -> Any:
    if name == "variant":
        if not hasattr(spark, "VariantType"):
            raise UsageError("open types as VARIANT need Spark 4.0 or later. Leave --open-types at text")
        return spark.VariantType()
    return getattr(spark, _SCALARS.get(name, "StringType"))()
