"""Arrow arrays to JSON text, a column at a time, in Arrow's own kernels.

The text of a column is a list of parts, which stand side by side in each row: constant text, and string arrays in
which null stands for JSON's ``null``. So quotes and names cost no pass of their own: ``join`` puts the parts of a
whole page together in one.

A kernel here answers only where its text is certain to be what the exact path writes; else it raises ``Unsure``
(or pyarrow raises ``ArrowInvalid``), and the column goes value by value.
"""

from __future__ import annotations

import base64
import functools
import itertools
import struct
from decimal import Decimal
from typing import Any

import orjson

Parts = list[Any]
"""Constant text (``str``) and string arrays, side by side."""

_LARGE = 1 << 28  # bytes of a text column that may outgrow 32 bit offsets once it is escaped
_HUGE = 1 << 30


class Unsure(Exception):
    """These values have no text that is certain: look at each."""


@functools.lru_cache(maxsize=4096)
def _constant(text: str, large: bool) -> Any:
    return one_text(text, large=large)[0]


def one_text(text: str, *, large: bool = False) -> Any:
    """An array of one text. ``pa.array`` and ``pa.scalar`` would import pandas where it is installed, which takes as
    long as to write 100,000 rows."""
    import pyarrow as pa

    data = text.encode()
    ends = struct.pack("=qq" if large else "=ii", 0, len(data))
    kind = pa.large_string() if large else pa.string()
    return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(ends), pa.py_buffer(data)])


@functools.lru_cache(maxsize=16)
def one_number(value: int) -> Any:
    """An integer of 64 bits as a scalar."""
    import pyarrow as pa

    return pa.Array.from_buffers(pa.int64(), 1, [None, pa.py_buffer(struct.pack("=q", value))])[0]


def join(parts: Parts, count: int, *, keep_nulls: bool = False) -> Any:
    """The parts of ``count`` rows as one string array.

    Args:
        keep_nulls: a row of which an array is null is null; else the array's part of it reads ``null``.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    merged = _merged(parts)
    arrays = [part for part in merged if not isinstance(part, str)]
    if not arrays:
        return pa.repeat(_constant(merged[0] if merged else "", False), count)
    constant = sum(len(part) for part in merged if isinstance(part, str))
    large = any(pa.types.is_large_string(array.type) for array in arrays)
    large = large or sum(array.nbytes for array in arrays) + 4 * constant * count > _HUGE
    if len(merged) == 1 and not arrays[0].null_count:
        return arrays[0]
    kind = pa.large_string() if large else pa.string()
    given = [
        _constant(part, large) if isinstance(part, str) else part if part.type == kind else part.cast(kind)
        for part in merged
    ]
    nulls = "emit_null" if keep_nulls else "replace"
    return pc.binary_join_element_wise(*given, _constant("", large), null_handling=nulls, null_replacement="null")


def _merged(parts: Parts) -> Parts:
    """The parts with constants that stand side by side made one."""
    merged: Parts = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        elif not isinstance(part, str) or part:
            merged.append(part)
    return merged


def bytes_of(array: Any) -> memoryview:
    """The bytes of a string array's values, one after another (null values may have bytes too)."""
    _, offsets, data = array.buffers()
    if not len(array) or data is None:
        return memoryview(b"")
    places = memoryview(offsets).cast("q" if "large" in str(array.type) else "i")
    return memoryview(data)[places[array.offset] : places[array.offset + len(array)]]


def quoted(*parts: Any) -> Parts:
    """Text in quotes; where some values are null, as one array, since a null has no quotes."""
    whole = ['"', *parts, '"']
    nulls = next((part.null_count for part in parts if not isinstance(part, str)), 0)
    if not nulls:
        return whole
    array = next(part for part in parts if not isinstance(part, str))
    return [join(whole, len(array), keep_nulls=True)]


# ---- text ----------------------------------------------------------------------------------------


def string_parts(array: Any) -> Parts:
    """Strings, escaped where one needs it."""
    return quoted(escaped(array))


def escaped(array: Any) -> Any:
    """Strings as they stand between the quotes of JSON.

    Most columns need no escapes, which one look at all their bytes tells: orjson writes text without them as long
    as it is.

    Raises:
        Unsure: some text is no UTF-8.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    data = bytes_of(array)
    try:
        text = str(data, "utf-8")
    except UnicodeDecodeError:
        raise Unsure from None
    if not text.isascii():
        array.validate(full=True)  # that each value is UTF-8 on its own
    if len(orjson.dumps(text)) == len(data) + 2:
        return array
    if len(data) > _LARGE:
        array = array.cast(pa.large_string())
    if "\\" in text:
        array = pc.replace_substring(array, "\\", "\\\\")
    if '"' in text:
        array = pc.replace_substring(array, '"', '\\"')
    for code in range(32):
        if chr(code) in text:
            array = pc.replace_substring(array, chr(code), f"\\u{code:04x}")
    return array


def base64_parts(array: Any) -> Parts:
    """Bytes as base64: the one leaf that Arrow has no kernel for."""
    import pyarrow as pa

    texts = [None if value is None else base64.b64encode(value) for value in array.to_pylist()]
    large = array.nbytes > _LARGE
    made = pa.array(texts, pa.large_binary() if large else pa.binary())
    return quoted(made.view(pa.large_string() if large else pa.string()))


def uuid_parts(array: Any) -> Parts:
    """UUIDs in their usual form."""
    import pyarrow as pa
    import pyarrow.compute as pc

    stored = array.storage
    data = memoryview(stored.buffers()[1])[16 * stored.offset : 16 * (stored.offset + len(stored))]
    digits = pa.py_buffer(data.hex().encode())
    text = pa.Array.from_buffers(pa.binary(32), len(stored), [None, digits]).cast(pa.binary()).view(pa.string())
    if stored.null_count:
        text = pc.if_else(stored.is_valid(), text, pa.nulls(1, pa.string())[0])
    cuts = (0, 8, 12, 16, 20, 32)
    groups = [pc.utf8_slice_codeunits(text, start, stop) for start, stop in itertools.pairwise(cuts)]
    return quoted(*[part for group in groups for part in (group, "-")][:-1])


# ---- numbers -------------------------------------------------------------------------------------


def cast_parts(array: Any) -> Parts:
    """Integers, booleans and decimals: Arrow's text is JSON."""
    import pyarrow as pa

    return [array.cast(pa.string())]


def quoted_cast_parts(array: Any) -> Parts:
    """The same as text in quotes."""
    return quoted(*cast_parts(array))


def float_parts(array: Any) -> Parts:
    """Floats as the shortest text that reads back equal; halves and singles as the doubles they equal."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array = finite(array)
    text = array.cast(pa.string())
    if pc.min(array).as_py() <= 0 and pc.index(text, _constant("-0", False)).as_py() >= 0:
        text = pc.if_else(pc.equal(text, "-0"), "-0.0", text)  # many readers take -0 for an integer and lose the sign
    return [text]


def whole_float_parts(array: Any) -> Parts:
    """Floats that are whole numbers, as integers."""
    return cast_parts(whole_floats(array))


def whole_floats(array: Any) -> Any:
    """The same as integers of 64 bits."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array = finite(array)
    bounds = pc.min_max(array).as_py()
    if bounds["min"] < -(2.0**63) or bounds["max"] >= 2.0**63:
        raise Unsure
    return array.cast(pa.int64())  # raises where a fraction would be lost


def finite(array: Any) -> Any:
    """Floats as doubles, if none is NaN or infinite."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array = array if array.type == pa.float64() else array.cast(pa.float64())
    if not pc.all(pc.is_finite(array)).as_py():
        raise Unsure
    return array


def whole_decimal_parts(array: Any) -> Parts:
    """Decimals that are whole numbers, as integers."""
    return cast_parts(whole_decimals(array))


def whole_decimals(array: Any) -> Any:
    """The same as decimals without digits behind the point."""
    import pyarrow as pa

    wide = pa.types.is_decimal256(array.type)
    return rescaled(array, pa.decimal256(76, 0) if wide else pa.decimal128(38, 0))


def rescaled(array: Any, kind: Any) -> Any:
    """Integers or decimals as decimals of another type. Arrow's own cast gives wrong numbers, without a word, where a
    value has no room for as many digits behind the point."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if kind.scale > (array.type.scale if pa.types.is_decimal(array.type) else 0):
        room = Decimal(10) ** (kind.precision - kind.scale)
        if any(Decimal(end).copy_abs() >= room for end in pc.min_max(array).as_py().values() if end is not None):
            raise Unsure
    return array.cast(kind)  # raises where a digit would be lost
