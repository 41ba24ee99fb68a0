"""Column types as Arrow's, and Arrow's types (what a Parquet file's footer says) as JSON Schema."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from burler.records.columns.types import DIGITS, DecimalOf, FieldType, ListOf, MapOf, Scalar, StructOf


def arrow_schema(record: StructOf) -> pa.Schema:
    """The same as an Arrow schema; equal to what Spark's own conversion of ``burler.spark.spark_schema`` gives."""
    return pa.schema([pa.field(name, arrow_type(kind)) for name, kind in record.fields])


def arrow_type(kind: FieldType) -> pa.DataType:
    """One type as Arrow's."""
    match kind:
        case DecimalOf(scale):
            return pa.decimal128(DIGITS, scale)
        case ListOf(item):
            return pa.list_(pa.field("element", arrow_type(item)))
        case MapOf(value):
            return pa.map_(pa.string(), arrow_type(value))
        case StructOf(fields):
            return pa.struct([pa.field(name, arrow_type(inner)) for name, inner in fields])
        case Scalar(name):
            return _SCALARS.get(name, pa.string())


_SCALARS = {
    "bigint": pa.int64(),
    "double": pa.float64(),
    "wide": pa.float64(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "date": pa.date32(),
    "binary": pa.binary(),
}
"""Scalar columns, and Arrow's types for them. All others are text."""


# ---- Arrow to JSON Schema --------------------------------------------------------------------------------------------

_PLAIN: tuple[tuple[str, dict[str, Any]], ...] = (
    ("is_boolean", {"type": "boolean"}),
    ("is_integer", {"type": "integer"}),
    ("is_floating", {"type": "number"}),
    ("is_timestamp", {"type": "string", "format": "date-time"}),
    ("is_date", {"type": "string", "format": "date"}),
    ("is_time", {"type": "string", "format": "time"}),
    ("is_null", {}),
)
_BINARY = ("is_binary", "is_large_binary", "is_fixed_size_binary", "is_binary_view")
_LISTS = ("is_list", "is_large_list", "is_fixed_size_list", "is_list_view", "is_large_list_view")


def properties_of(schema: pa.Schema, *, nullable: bool) -> dict[str, Any]:
    """The schema of each column.

    Args:
        nullable: let every column be null, also those that the file declares as required.
    """
    return {field.name: _field(field, nullable) for field in schema}


def _field(field: pa.Field, nullable: bool) -> dict[str, Any]:
    node = node_of(field.type, nullable=nullable)
    if (field.nullable or nullable) and isinstance(node.get("type"), str):
        node["type"] = ["null", node["type"]]
    return node


def node_of(kind: pa.DataType, *, nullable: bool = False) -> dict[str, Any]:
    """The schema of values of an Arrow type that are not null."""
    if isinstance(kind, pa.BaseExtensionType):
        return {"type": "string", "format": "uuid"} if _name(kind) == "arrow.uuid" else node_of(kind.storage_type)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return node_of(kind.value_type, nullable=nullable)
    for test, node in _PLAIN:
        if getattr(pa.types, test)(kind):
            return dict(node)
    if pa.types.is_decimal(kind):
        return _decimal(kind.scale)
    if _is(kind, _BINARY):
        return {"type": "string", "contentEncoding": "base64"}
    if pa.types.is_struct(kind):
        return {"type": "object", "properties": {one.name: _field(one, nullable) for one in kind}}
    if pa.types.is_map(kind):
        return {"type": "object", "additionalProperties": _field(kind.item_field, nullable)}
    if _is(kind, _LISTS):
        return {"type": "array", "items": _field(kind.value_field, nullable)}
    return {"type": "string"}  # text, durations


def _decimal(scale: int) -> dict[str, Any]:
    if scale <= 0:
        return {"type": "integer"}
    return {"type": "number", "multipleOf": float(f"1e-{scale}")}


def _name(kind: Any) -> str:
    return getattr(kind, "extension_name", "")


def _is(kind: pa.DataType, tests: tuple[str, ...]) -> bool:
    return any(getattr(pa.types, test)(kind) for test in tests if hasattr(pa.types, test))
