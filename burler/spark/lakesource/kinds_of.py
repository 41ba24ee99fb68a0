"""Spark's types as burler's column types: the way back from ``burler.spark.types.spark_schema``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burler.errors import UsageError
from burler.records.columns.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    STRING,
    TIMESTAMP,
    VARIANT,
    DecimalOf,
    FieldType,
    ListOf,
    MapOf,
    StructOf,
)

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_SAME: dict[str, FieldType] = {
    "byte": BIGINT,
    "short": BIGINT,
    "integer": BIGINT,
    "long": BIGINT,
    "float": DOUBLE,
    "double": DOUBLE,
    "boolean": BOOLEAN,
    "timestamp": TIMESTAMP,
    "date": DATE,
    "binary": BINARY,
    "variant": VARIANT,
}


def columns_of(schema: StructType) -> StructOf:
    """The columns that hold every value of a DataFrame: integers as bigint, floats as double, decimals with all digits.

    Raises:
        UsageError: a column has a type that tables do not hold; names it and the cure.
    """
    return StructOf(tuple((field.name, _kind(field.dataType, field.name)) for field in schema))


def _kind(kind: Any, column: str) -> FieldType:
    name: str = kind.typeName()
    if name in _SAME:
        return _SAME[name]
    if name == "string" or name.startswith(("char", "varchar")):
        return STRING
    if name == "decimal" and kind.scale >= 0:
        return DecimalOf(kind.scale)
    if name == "array":
        return ListOf(_kind(kind.elementType, column))
    if name == "map" and kind.keyType.typeName() == "string":
        return MapOf(_kind(kind.valueType, column))
    if name == "struct":
        return StructOf(tuple((field.name, _kind(field.dataType, column)) for field in kind))
    raise UsageError(
        f"column '{column}' is of type {kind.simpleString()[:60]}, which a table here does not hold. "
        f"Cast it before: df.withColumn('{column}', ...)"
    )
