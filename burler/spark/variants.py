"""JSON text to Spark's VARIANT, wherever it stands in a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burler.records.columns.types import VARIANT, FieldType, ListOf, MapOf, StructOf, holds
from burler.spark.columns import named

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def with_variants(rows: DataFrame, record: StructOf) -> DataFrame:
    """``rows`` with VARIANT in the columns of ``record`` that have it, where the rows hold JSON text."""
    columns = {name: _parsed(named(name), kind) for name, kind in record.fields if holds(kind, VARIANT)}
    return rows.select(*(columns.get(name, named(name)).alias(name) for name in rows.columns)) if columns else rows


def _parsed(column: Column, kind: FieldType) -> Column:
    from pyspark.sql import functions as f

    if kind == VARIANT:
        return f.parse_json(column)
    if not holds(kind, VARIANT):
        return column
    match kind:
        case ListOf(item):
            return f.transform(column, lambda one: _parsed(one, item))
        case MapOf(value):
            return f.transform_values(column, lambda _, one: _parsed(one, value))
        case StructOf(fields):
            inner = f.struct(*(_parsed(column.getField(name), one).alias(name) for name, one in fields))
            return f.when(column.isNotNull(), inner)
    return column
