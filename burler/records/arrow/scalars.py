"""Scalars of Arrow pages as values of a column: see ``columns``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from burler.records.arrow import kernels
from burler.records.arrow.kernels import Unsure, join
from burler.records.arrow.types import Leaf, is_binary
from burler.records.shape.values import types_of


def scalars(leaf: Leaf, node: Any, array: Any, wanted: pa.DataType) -> Any:
    """Scalars that ``leaf`` would write, as values of a column.

    Args:
        node: what the schema says of them.

    Raises:
        Unsure, and what pyarrow raises: they may be others on the way through lines.
    """
    if pa.types.is_string(wanted):
        if leaf not in _BARE and not _is_scalar(node):
            raise Unsure  # text in a column for anything: JSON text in some files
        return _texts_by(leaf, array)
    if pa.types.is_timestamp(wanted):
        return _moments(leaf, array)
    if pa.types.is_date(wanted):
        return _dates(leaf, array)
    if pa.types.is_binary(wanted):
        if leaf is kernels.base64_parts and is_binary(array.type):
            return array.cast(wanted)
    elif pa.types.is_boolean(wanted):
        if leaf is kernels.cast_parts and pa.types.is_boolean(array.type):
            return array
    elif leaf in _NUMBERS and not pa.types.is_boolean(array.type):
        return _NUMBERS[leaf](array, wanted)
    raise Unsure


def _numbers(array: Any, wanted: pa.DataType) -> Any:
    """Integers and decimals in a column of numbers, exactly; decimals as the doubles next to them, as readers of JSON
    take them."""
    if pa.types.is_decimal(array.type) and pa.types.is_floating(wanted):
        return kernels.finite(array.cast(pa.string()).cast(wanted))  # Arrow's own cast makes another double of 0.47
    if pa.types.is_decimal(wanted):
        return kernels.rescaled(array, wanted)
    return array.cast(wanted)  # raises where something would be lost


def _floats(array: Any, wanted: pa.DataType) -> Any:
    if not pa.types.is_floating(wanted):  # a decimal holds the digits that are written, not the value
        raise Unsure
    return kernels.finite(array)


_NUMBERS: dict[Leaf, Callable[[Any, Any], Any]] = {
    kernels.cast_parts: _numbers,
    kernels.float_parts: _floats,
    kernels.whole_float_parts: lambda array, wanted: kernels.whole_floats(array).cast(wanted),
    kernels.whole_decimal_parts: lambda array, wanted: kernels.whole_decimals(array).cast(wanted),
}


def _moments(leaf: Leaf, array: Any) -> Any:
    if leaf is kernels.date_time_string_parts:
        leaf(array)  # raises where one is not written as burler writes it
    elif leaf is not kernels.timestamp_parts:
        raise Unsure
    return kernels.moments_us(array)


def _dates(leaf: Leaf, array: Any) -> Any:
    if leaf is kernels.date_parts:
        return kernels.days(array)
    if leaf is kernels.date_string_parts:
        leaf(array)
        return array.cast(pa.date32())
    raise Unsure


def _is_scalar(node: Any) -> bool:
    """Whether a node of the form takes nothing but scalars of named types."""
    if not isinstance(node, Mapping):
        return False
    if "anyOf" in node or "oneOf" in node:
        return all(map(_is_scalar, node["anyOf"] if "anyOf" in node else node["oneOf"]))
    return bool(types_of(node)) and set(types_of(node)) <= _SCALARS


def _texts_by(leaf: Leaf, array: Any) -> Any:
    """Text as it is; other values as they are written, less the quotes."""
    if leaf in _AS_THEY_ARE:
        if leaf is not kernels.string_parts:
            leaf(array)
        return texts(array)
    text = join(leaf(array), len(array))
    if leaf not in _BARE:
        text = pc.utf8_slice_codeunits(text, 1, -1)
    return where_valid(array, text)


_AS_THEY_ARE = (kernels.string_parts, kernels.date_time_string_parts, kernels.date_string_parts)
_BARE = frozenset(_NUMBERS)  # written without quotes
_SCALARS = frozenset({"string", "integer", "number", "boolean", "null"})


def texts(array: Any) -> Any:
    """Strings of any kind, if all are UTF-8."""
    array.validate(full=True)
    return array.cast(pa.string())


def where_valid(array: Any, text: Any) -> Any:
    """Texts of an array's values, null where they are."""
    text = text.cast(pa.string())
    return pc.if_else(array.is_valid(), text, pa.nulls(1, pa.string())[0]) if array.null_count else text
