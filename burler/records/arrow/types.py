"""Which kernel writes the values of an Arrow type under a JSON Schema node; types in their plain form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from burler.records.arrow import kernels
from burler.records.arrow.kernels import Parts

Leaf = Callable[[Any], Parts]
"""Makes the text of an array of scalars."""

CASTS = (kernels.quoted_cast_parts, kernels.whole_float_parts, kernels.whole_decimal_parts)
"""Leaves that write a value as one of another JSON type."""

_READ_FORMATS = frozenset({"date-time", "date", "singer.decimal"})  # formats that change how a value is written
_LIST_TYPES = ("is_list", "is_large_list", "is_fixed_size_list", "is_list_view", "is_large_list_view")


def is_text(kind: pa.DataType) -> bool:
    """Strings that the kernels take."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_binary(kind: pa.DataType) -> bool:
    """Bytes of any kind."""
    tests = ("is_binary", "is_large_binary", "is_fixed_size_binary", "is_binary_view")
    return any(getattr(pa.types, test)(kind) for test in tests if hasattr(pa.types, test))


def _is_uuid(kind: pa.DataType) -> bool:
    return getattr(kind, "extension_name", "") == "arrow.uuid"


def own_types(kind: pa.DataType) -> frozenset[str]:
    """The JSON types that take an Arrow type's values as they stand; none where it is not a matter of type."""
    if is_text(kind):
        return frozenset({"string"})
    if pa.types.is_boolean(kind):
        return frozenset({"boolean"})
    if pa.types.is_integer(kind):
        return frozenset({"integer", "number"})
    return frozenset({"number"} if pa.types.is_floating(kind) or pa.types.is_decimal(kind) else ())


def leaf_for(kind: pa.DataType, wanted: tuple[str, ...], schema: Mapping[str, Any]) -> Leaf | None:
    """The kernel for scalars under a node that names types. A type of the union that takes the value as it stands
    comes first, as on the exact path; a cast needs a node of that type alone."""
    form = schema.get("format")
    number = "number" in wanted or "integer" in wanted
    if pa.types.is_boolean(kind):
        return kernels.cast_parts if "boolean" in wanted else None
    if pa.types.is_integer(kind) and number:
        return kernels.cast_parts
    if pa.types.is_floating(kind):
        if "number" in wanted:
            return kernels.float_parts
        return kernels.whole_float_parts if wanted == ("integer",) else None
    if pa.types.is_decimal(kind) and number:
        if "number" in wanted:
            return kernels.cast_parts
        return kernels.whole_decimal_parts if wanted == ("integer",) else None
    if is_text(kind) and "string" in wanted:
        special = {"date-time": kernels.date_time_string_parts, "date": kernels.date_string_parts}
        return special.get(form) if form in _READ_FORMATS else kernels.string_parts
    return _text_leaf(kind, schema) if wanted == ("string",) else None


def _text_leaf(kind: pa.DataType, schema: Mapping[str, Any]) -> Leaf | None:
    """Values that are no text under a node that wants text."""
    form = schema.get("format")
    if pa.types.is_timestamp(kind):
        return kernels.timestamp_parts if form == "date-time" and kind.tz else None
    if pa.types.is_date(kind):
        return kernels.date_parts if form == "date" or form not in _READ_FORMATS else None
    if form in _READ_FORMATS:
        return None
    if pa.types.is_time(kind):
        return kernels.time_parts
    if is_binary(kind):
        return kernels.base64_parts if schema.get("contentEncoding") == "base64" else None
    if _is_uuid(kind):
        return kernels.uuid_parts
    if pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and 0 <= kind.scale <= 6):  # beyond: 1E-7
        return kernels.quoted_cast_parts
    return None


def free_leaf(kind: pa.DataType) -> Leaf | None:
    """The kernel for scalars that no schema describes."""
    if pa.types.is_timestamp(kind):
        return kernels.timestamp_parts if kind.tz else None
    if pa.types.is_date(kind) or pa.types.is_time(kind):
        return kernels.date_parts if pa.types.is_date(kind) else kernels.time_parts
    if _is_uuid(kind):
        return kernels.uuid_parts
    return leaf_for(kind, ("boolean", "number", "string"), {})


def is_list(kind: pa.DataType) -> bool:
    """Any of Arrow's list types, maps aside."""
    return any(getattr(pa.types, test)(kind) for test in _LIST_TYPES if hasattr(pa.types, test))


def settled_type(kind: pa.DataType) -> pa.DataType:
    """The type of ``settled`` arrays."""
    while True:
        if isinstance(kind, pa.BaseExtensionType):
            if kind.extension_name in ("arrow.uuid", "arrow.bool8"):  # their values are not those they are stored as
                return kind
            kind = kind.storage_type
        elif pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
            kind = kind.value_type
        else:
            return pa.string() if str(kind) == "string_view" else kind  # older pyarrow does not know the type


def settled(array: Any) -> Any:
    """An array without the ways to store it that the kernels need not know: dictionaries, runs, views, storage."""
    while True:
        kind = array.type
        if isinstance(kind, pa.BaseExtensionType):
            if settled_type(kind) is kind:
                return array
            array = array.storage
        elif pa.types.is_dictionary(kind):
            array = array.dictionary_decode()
        elif pa.types.is_run_end_encoded(kind):
            array = pc.run_end_decode(array)
        else:
            return array if settled_type(kind) is kind else array.cast(pa.string())
