"""Column types as Arrow's; Arrow's types (what a Parquet file's footer says) as JSON Schema, and held against ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from burler.errors import DataError
from burler.records.arrow.walk import is_binary, is_list
from burler.records.columns.nodes import SchemaNode, fields_of, record_type
from burler.records.columns.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DIGITS,
    DOUBLE,
    INT64_DIGITS,
    STRING,
    TIMESTAMP,
    DecimalOf,
    FieldType,
    ListOf,
    MapOf,
    Scalar,
    StructOf,
)


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


def properties_of(schema: pa.Schema, *, nullable: bool) -> dict[str, Any]:
    """The schema of each column.

    Args:
        nullable: let every column be null, also those that the file declares as required.
    """
    return {field.name: _field(field, nullable) for field in schema}


def _field(field: pa.Field, nullable: bool) -> dict[str, Any]:
    node = schema_of(field.type, nullable=nullable)
    if (field.nullable or nullable) and isinstance(node.get("type"), str):
        node["type"] = ["null", node["type"]]
    return node


def schema_of(kind: pa.DataType, *, nullable: bool = False) -> dict[str, Any]:
    """The schema of values of an Arrow type that are not null."""
    if isinstance(kind, pa.BaseExtensionType):
        return (
            {"type": "string", "format": "uuid"}
            if kind.extension_name == "arrow.uuid"
            else schema_of(kind.storage_type)
        )
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return schema_of(kind.value_type, nullable=nullable)
    for test, node in _PLAIN:
        if getattr(pa.types, test)(kind):
            return dict(node)
    if pa.types.is_decimal(kind):
        return _decimal(kind.scale)
    if is_binary(kind):
        return {"type": "string", "contentEncoding": "base64"}
    if pa.types.is_struct(kind):
        return {"type": "object", "properties": {one.name: _field(one, nullable) for one in kind}}
    if pa.types.is_map(kind):
        return {"type": "object", "additionalProperties": _field(kind.item_field, nullable)}
    if is_list(kind):
        return {"type": "array", "items": _field(kind.value_field, nullable)}
    return {"type": "string"}  # text, durations


def _decimal(scale: int) -> dict[str, Any]:
    if scale <= 0:
        return {"type": "integer"}
    return {"type": "number", "multipleOf": float(f"1e-{scale}")}


# ---- what a column of ours holds of another program's ----------------------------------------------------------------


def mismatch(found: pa.Schema, schema: Mapping[str, Any], stream: str) -> str | None:
    """What of a file's types is not what the stream's schema asks for; None if all is. Not the same types: types whose
    every value a column of ours holds exactly, so that whoever reads the file gets what the schema promises.

    Args:
        found: with the names of the schema's properties, in any order.
    """
    try:
        record = record_type(schema, stream=stream)
    except DataError as error:
        return str(error)
    fields = fields_of(schema)
    return _first(
        _mismatch(found.field(name).type, kind, fields[name], f"column '{name}'") for name, kind in record.fields
    )


def _mismatch(found: Any, wanted: FieldType, node: SchemaNode, path: str) -> str | None:
    of = pa.types
    match wanted:
        case StructOf(fields):
            if not of.is_struct(found):
                return _differs(path, found, "a struct")
            names = {field.name: field.type for field in found}
            if names.keys() != dict(fields).keys():
                ours = ", ".join(sorted(name for name, _ in fields))
                return f"{path} has the fields {', '.join(sorted(names))}, and the schema {ours}"
            return _first(
                _mismatch(names[name], kind, node.properties[name], f"{path}, field '{name}'") for name, kind in fields
            )
        case ListOf(item):
            if of.is_list(found) or of.is_large_list(found) or of.is_fixed_size_list(found):
                return _mismatch(found.value_type, item, node.items, f"{path}, its items")
            return _differs(path, found, "a list")
        case MapOf(value):
            if of.is_map(found) and _holds(found.key_type, STRING):
                return _mismatch(found.item_type, value, node.values, f"{path}, its values")
            return _differs(path, found, "a map with keys of text")
        case Scalar("string") if node.names - {"null"} != {"string"}:
            return (
                f"{path} holds {found}, and the schema lets it hold anything: nobody knows whether that is plain text "
                "or JSON's text"
            )
        case DecimalOf(scale):
            return None if _holds(found, wanted) else _differs(path, found, f"decimal({DIGITS}, {scale})")
        case Scalar(name):
            return None if _holds(found, wanted) else _differs(path, found, _SHOWN[name])


_SHOWN = {
    "bigint": "integers of at most 64 bits",
    "double": "double",
    "boolean": "bool",
    "string": "text",
    "timestamp": "timestamps in UTC of at most microseconds",
    "date": "dates",
    "binary": "bytes",
    "null": "nothing but null",
}
_TESTS: dict[FieldType, tuple[str, ...]] = {
    BOOLEAN: ("is_boolean",),
    STRING: ("is_string", "is_large_string", "is_string_view"),
    DATE: ("is_date32",),
}


def _differs(path: str, found: Any, wanted: str) -> str:
    return f"{path} is {found}, where the schema asks for {wanted}"


def _holds(found: Any, wanted: Scalar | DecimalOf) -> Any:
    """Whether a column of ours holds each value of another one as it is."""
    of = pa.types
    while of.is_dictionary(found):
        found = found.value_type
    if of.is_null(found):
        return True
    signed_bits = 0 if not of.is_integer(found) else found.bit_width + of.is_unsigned_integer(found)
    if isinstance(wanted, DecimalOf):
        if signed_bits:
            return wanted.has_room(INT64_DIGITS if signed_bits <= 64 else INT64_DIGITS + 1)
        return (
            of.is_decimal(found) and 0 <= found.scale <= wanted.scale and wanted.has_room(found.precision - found.scale)
        )
    if wanted == BIGINT:
        return 0 < signed_bits <= 64
    if wanted == DOUBLE:
        return of.is_floating(found) or (of.is_integer(found) and found.bit_width < 64)
    if wanted == BINARY:
        return is_binary(found)
    if wanted == TIMESTAMP:
        return of.is_timestamp(found) and found.unit in ("s", "ms", "us") and found.tz in ("UTC", "Etc/UTC", "+00:00")
    return any(getattr(of, test)(found) for test in _TESTS.get(wanted, ()) if hasattr(of, test))


def _first(found: Iterable[str | None]) -> str | None:
    return next((one for one in found if one), None)
