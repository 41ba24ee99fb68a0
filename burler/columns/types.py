"""JSON Schema to column types: one neutral description, and Arrow's types of it.

All fields are nullable: Singer rows may lack any field. Nothing here needs pyarrow until
``arrow_schema`` is called; Spark's types of the same description are in ``burler.spark.types``.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from burler.columns.kinds import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DIGITS,
    DOUBLE,
    NULL,
    OPEN,
    STRING,
    TIMESTAMP,
    DecimalOf,
    FieldType,
    ListOf,
    MapOf,
    Scalar,
    StructOf,
    replaced,
    widen,
)
from burler.errors import BurlerError, DataError
from burler.extras import require

if TYPE_CHECKING:
    import pyarrow

_INT64 = (-(2**63), 2**63 - 1)
_SINGER_DECIMAL_SCALE = 18
_NEEDED_FOR = "a file with columns (Parquet, Arrow)"


def record_type(
    schema: Mapping[str, Any],
    *,
    stream: str = "",
    error: type[BurlerError] = DataError,
    open_as: Scalar = STRING,
) -> StructOf:
    """The columns of a stream's rows.

    The top level is always a struct of the declared properties, also where ``additionalProperties`` is
    open: a table has columns (undeclared fields are dropped and counted by who reads the rows).

    Args:
        error: what to raise.
        open_as: the type of a value that may be any JSON, or one of types that no other type holds.

    Raises:
        error: no properties, a recursive schema or a ``$ref`` (resolve references first).
    """
    properties = merged(schema).get("properties")
    if not isinstance(properties, Mapping) or not properties:
        raise error(f"stream '{stream}': its schema declares no properties, so there are no columns to make")
    try:
        described = ((name, _describe(node, (name,))) for name, node in properties.items())
        return StructOf(tuple((name, replaced(kind, OPEN, open_as)) for name, kind in described))
    except RecursionError:
        raise error(f"stream '{stream}': its schema is recursive; a table can't be") from None
    except _Refused as refused:
        raise error(f"stream '{stream}': {refused}") from None


def arrow_schema(record: StructOf) -> pyarrow.Schema:
    """The same as an Arrow schema; equal to what Spark's own conversion of ``burler.spark.spark_schema`` gives.

    Raises:
        MissingExtra: pyarrow is not installed.
    """
    arrow = require("pyarrow", extra="batch", needed_for=_NEEDED_FOR)
    return arrow.schema([arrow.field(name, arrow_type(kind)) for name, kind in record.fields])


def arrow_type(kind: FieldType) -> pyarrow.DataType:
    """One type as Arrow's.

    Raises:
        MissingExtra: pyarrow is not installed.
    """
    arrow = require("pyarrow", extra="batch", needed_for=_NEEDED_FOR)
    match kind:
        case DecimalOf(scale):
            return arrow.decimal128(DIGITS, scale)
        case ListOf(item):
            return arrow.list_(arrow.field("element", arrow_type(item)))
        case MapOf(value):
            return arrow.map_(arrow.string(), arrow_type(value))
        case StructOf(fields):
            return arrow.struct([arrow.field(name, arrow_type(inner)) for name, inner in fields])
        case Scalar(name):
            return _arrow_scalar(arrow, name)


def _arrow_scalar(arrow: Any, name: str) -> Any:
    return {
        "bigint": arrow.int64(),
        "double": arrow.float64(),
        "wide": arrow.float64(),
        "boolean": arrow.bool_(),
        "timestamp": arrow.timestamp("us", tz="UTC"),
        "date": arrow.date32(),
        "binary": arrow.binary(),
    }.get(name, arrow.string())


class _Refused(Exception):
    """A schema node that can't become a type; its text says where."""


def _describe(node: Any, path: tuple[str, ...]) -> FieldType:
    """The type of one schema node."""
    if not isinstance(node, Mapping):
        return OPEN  # true: anything
    if "$ref" in node:
        raise _Refused(f"field '{'.'.join(path)}' holds a $ref; resolve references first")
    if len(path) > 200:
        raise RecursionError
    node = merged(node)
    parts = branches(node)
    if parts is not None:
        return _union([_describe({**without_branches(node), **part}, path) for part in parts])
    names = type_names(node)
    if not names:
        return OPEN
    if "number" in names:
        names = names - {"integer"}  # every integer is a number: the number rule holds
    return _union([_one(name, node, path, alone=names <= {name, "null"}) for name in sorted(names)])


def _one(name: str, node: Mapping[str, Any], path: tuple[str, ...], *, alone: bool) -> FieldType:
    """The type of a node seen as one JSON type. ``alone``: it may be nothing else (null apart)."""
    if name == "null":
        return NULL
    if name == "integer":
        return _integer(node)
    if name == "number":
        return _number(node)
    if name == "boolean":
        return BOOLEAN
    if name == "string":
        return _text(node) if alone else (_singer_decimal(node) or STRING)
    if name == "array":
        items = node.get("items")
        if "prefixItems" in node or not isinstance(items, Mapping):
            return OPEN
        return ListOf(_describe(items, (*path, "[]")))
    if name == "object":
        return _object(node, path)
    raise _Refused(f"field '{'.'.join(path)}' has the unknown type '{name}'")


def _integer(node: Mapping[str, Any]) -> FieldType:
    low, high = _INT64
    # An exclusive bound may stand one beyond the last value.
    bounds = {
        "minimum": (low, high),
        "maximum": (low, high),
        "exclusiveMinimum": (low - 1, high + 1),
        "exclusiveMaximum": (low - 1, high + 1),
    }
    wide = any(_is_number(node.get(key)) and not least <= node[key] <= most for key, (least, most) in bounds.items())
    return _singer_decimal(node) or (DecimalOf(0) if wide else BIGINT)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _number(node: Mapping[str, Any]) -> FieldType:
    named = _singer_decimal(node)
    if named is not None:
        return named
    step = node.get("multipleOf")
    if _is_number(step):
        _, digits, exponent = Decimal(str(step)).normalize().as_tuple()
        if digits == (1,) and isinstance(exponent, int) and -DIGITS <= exponent <= 0:
            return DecimalOf(-exponent)
    return DOUBLE


def _singer_decimal(node: Mapping[str, Any]) -> DecimalOf | None:
    if node.get("format") != "singer.decimal":
        return None
    try:
        scale = int(Decimal(str(node.get("scale", _SINGER_DECIMAL_SCALE))))
    except (InvalidOperation, ValueError, OverflowError):
        scale = _SINGER_DECIMAL_SCALE
    return DecimalOf(min(max(scale, 0), DIGITS))


def _text(node: Mapping[str, Any]) -> FieldType:
    if node.get("contentEncoding") == "base64":
        return BINARY
    return {"date-time": TIMESTAMP, "date": DATE}.get(node.get("format", ""), _singer_decimal(node) or STRING)


def _object(node: Mapping[str, Any], path: tuple[str, ...]) -> FieldType:
    properties, more = node.get("properties"), node.get("additionalProperties", False)
    if properties is not None and not isinstance(properties, Mapping):
        raise _Refused(f"field '{'.'.join(path)}' has 'properties' that are no object")
    if "patternProperties" in node or (properties and more is not False):
        return OPEN  # open, or open beside named fields
    if properties:
        return StructOf(tuple((name, _describe(inner, (*path, name))) for name, inner in properties.items()))
    if isinstance(more, Mapping) and more:
        return MapOf(_describe(more, (*path, "{}")))
    return OPEN


def _union(kinds: list[FieldType]) -> FieldType:
    """What holds all of a node's types; any JSON where they do not widen."""
    united: FieldType = NULL
    for kind in kinds:
        nested = any(not isinstance(one, Scalar | DecimalOf) or one == OPEN for one in (united, kind))
        wider = None if nested and NULL not in (united, kind) and united != kind else widen(united, kind)
        if wider is None:
            return OPEN
        united = wider
    return united


def type_names(node: Mapping[str, Any]) -> set[str]:
    """JSON type names of a node; from its values or keywords where ``type`` is absent."""
    given = node.get("type")
    if isinstance(given, str):
        return {given}
    if isinstance(given, list):
        return {str(name) for name in given}
    values = node.get("enum") if isinstance(node.get("enum"), list) else [node["const"]] if "const" in node else []
    if values:
        return {_json_type(value) for value in values or []}
    return {"object"} if "properties" in node else {"array"} if "items" in node else set()


def _json_type(value: Any) -> str:
    for kind, name in ((bool, "boolean"), (int, "integer"), (str, "string"), (list, "array"), (dict, "object")):
        if isinstance(value, kind):
            return name
    return "null" if value is None else "number"


def branches(node: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """The alternatives of a node; None where it has none."""
    for key in ("anyOf", "oneOf"):
        given = node.get(key)
        if isinstance(given, list) and given:
            return [branch if isinstance(branch, Mapping) else {"type": []} for branch in given]
    return None


def without_branches(node: Mapping[str, Any]) -> dict[str, Any]:
    """What a node says beside its alternatives, for each of them."""
    # "type" too: a branch that names none then takes the node's, one that does narrows it.
    return {key: value for key, value in node.items() if key not in ("anyOf", "oneOf")}


def merged(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """``allOf`` laid into its node: keywords of later parts win, properties are joined."""
    parts = node.get("allOf")
    if not isinstance(parts, list):
        return node
    out: dict[str, Any] = {key: value for key, value in node.items() if key != "allOf"}
    for part in parts:
        if isinstance(part, Mapping):
            inner = merged(part)
            properties = {**out.get("properties", {}), **inner.get("properties", {})}
            out |= dict(inner)
            if properties:
                out["properties"] = properties
    return out
