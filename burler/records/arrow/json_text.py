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
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from burler import times
from burler.records.shape.leaves import goes_as_it_is

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
    data = text.encode()
    ends = struct.pack("=qq" if large else "=ii", 0, len(data))
    kind = pa.large_string() if large else pa.string()
    return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(ends), pa.py_buffer(data)])


def join(parts: Parts, count: int, *, keep_nulls: bool = False) -> Any:
    """The parts of ``count`` rows as one string array.

    Args:
        keep_nulls: a row of which an array is null is null; else the array's part of it reads ``null``.
    """
    merged = _merged(parts)
    arrays = [part for part in merged if not isinstance(part, str)]
    if not arrays:
        return pa.repeat(_constant(merged[0] if merged else "", False), count)
    constant = sum(len(part) for part in merged if isinstance(part, str))
    large = any(pa.types.is_large_string(array.type) for array in arrays)
    large = large or sum(len(bytes_of(array)) for array in arrays) + constant * count > _HUGE
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
    """Strings, escaped where one needs it. One that all rows have is constant text: each array less is a twentieth of
    what it takes to join a page."""
    if not array.null_count and len(array) and array[0] == array[-1] and pc.all(pc.equal(array, array[0])).as_py():
        array = array[:1]
        return [join(quoted(escaped(array)), 1)[0].as_py()]
    return quoted(escaped(array))


def escaped(array: Any) -> Any:
    """Strings as they stand between the quotes of JSON.

    Most columns need no escapes, which one look at all their bytes tells: orjson writes text without them as long
    as it is.

    Raises:
        Unsure: some text is no UTF-8.
    """
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


def json_parts(array: Any) -> Parts:
    """Texts that are JSON, of ``to_rows.JSON_TEXT``, as they are, if none has half of a surrogate pair."""
    data = bytes(bytes_of(array.storage))
    if b"\\ud" in data or b"\\uD" in data or not goes_as_it_is(data):
        raise Unsure
    return [array.storage]


def json_column(array: Any) -> Any:
    """The same for a column of text, in which JSON's null is one."""
    (texts,) = json_parts(array)
    nulls = pc.equal(texts, one_text("null")[0])
    return pc.if_else(nulls, pa.nulls(1, pa.string())[0], texts) if pc.any(nulls).as_py() else texts


def base64_parts(array: Any) -> Parts:
    """Bytes as base64: the one leaf that Arrow has no kernel for."""
    texts = [None if value is None else base64.b64encode(value) for value in array.to_pylist()]
    large = array.nbytes > _LARGE
    made = pa.array(texts, pa.large_binary() if large else pa.binary())
    return quoted(made.view(pa.large_string() if large else pa.string()))


def uuid_parts(array: Any) -> Parts:
    """UUIDs in their usual form."""
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
    return [array.cast(pa.string())]


def quoted_cast_parts(array: Any) -> Parts:
    """The same as text in quotes."""
    return quoted(*cast_parts(array))


def float_parts(array: Any) -> Parts:
    """Floats as the shortest text that reads back equal; halves and singles as the doubles they equal."""
    doubles = array if array.type == pa.float64() else array.cast(pa.float64())
    text = doubles.cast(pa.string())
    data = bytes(bytes_of(text))
    if b"n" in data:  # nan, inf
        raise Unsure
    if b"-" in data and b"-0" in data:
        text = pc.if_else(pc.equal(text, "-0"), "-0.0", text)  # many readers take -0 for an integer and lose the sign
    return [text]


def whole_float_parts(array: Any) -> Parts:
    """Floats that are whole numbers, as integers."""
    return cast_parts(whole_floats(array))


def whole_floats(array: Any) -> Any:
    """The same as integers of 64 bits."""
    array = finite(array)
    bounds = pc.min_max(array).as_py()
    if bounds["min"] < -(2.0**63) or bounds["max"] >= 2.0**63:
        raise Unsure
    return array.cast(pa.int64())  # raises where a fraction would be lost


def finite(array: Any) -> Any:
    """Floats as doubles, if none is NaN or infinite."""
    array = array if array.type == pa.float64() else array.cast(pa.float64())
    if not pc.all(pc.is_finite(array)).as_py():
        raise Unsure
    return array


def whole_decimal_parts(array: Any) -> Parts:
    """Decimals that are whole numbers, as integers."""
    return cast_parts(whole_decimals(array))


def whole_decimals(array: Any) -> Any:
    """The same as decimals without digits behind the point."""
    wide = pa.types.is_decimal256(array.type)
    return rescaled(array, pa.decimal256(76, 0) if wide else pa.decimal128(38, 0))


def rescaled(array: Any, kind: Any) -> Any:
    """Integers or decimals as decimals of another type. Arrow's own cast gives wrong numbers, without a word, where a
    value has no room for as many digits behind the point."""
    if kind.scale > (array.type.scale if pa.types.is_decimal(array.type) else 0):
        room = Decimal(10) ** (kind.precision - kind.scale)
        if any(Decimal(end).copy_abs() >= room for end in pc.min_max(array).as_py().values() if end is not None):
            raise Unsure
    return array.cast(kind)  # raises where a digit would be lost


# ---- dates and times: RFC 3339, UTC, no digit lost ---------------------------------------------------

PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
FIRST_DAY, LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31


def date_parts(array: Any) -> Parts:
    """Dates of the years 1 to 9999."""
    return quoted(days(array).cast(pa.string()))


def days(array: Any) -> Any:
    """The same as dates of 32 bits."""
    if pa.types.is_date64(array.type):
        array = array.view(pa.timestamp("ms")).cast(pa.date32(), safe=False)
    check_bounds(array.view(pa.int32()), FIRST_DAY, LAST_DAY)
    return array


def moments_us(array: Any) -> Any:
    """Timestamps with a zone, of the years 1 to 9999, as microseconds in UTC; none of them loses a digit."""
    made = array.cast(pa.timestamp("us", "UTC"))
    check_bounds(made.view(pa.int64()), FIRST_DAY * 86_400_000_000, (LAST_DAY + 1) * 86_400_000_000 - 1)
    return made


def timestamp_parts(array: Any) -> Parts:
    """Timestamps with a zone in UTC with ``Z``; a fraction of six digits, or nine where six lose some, or none."""
    unit = array.type.unit
    moments = array.view(pa.int64()).view(pa.timestamp(unit))
    if unit == "ms":
        moments = moments.cast(pa.timestamp("us"))
    text = moments.cast(pa.string())
    valid, ends, _ = text.buffers()
    width, count = len("2024-01-02T03:04:05") + _FRACTION[unit], len(text) - text.null_count
    written = bytearray(bytes_of(text))
    # Years beyond 9999 and before 0 are longer.
    if len(written) != width * count or (b"0" in written[::width] and b"0000-" in written):
        raise Unsure
    written[len("2024-01-02") :: width] = b"T" * count
    text = pa.Array.from_buffers(pa.string(), len(text), [valid, ends, pa.py_buffer(written)], text.null_count)
    return quoted(_less_zeros(text, unit), "Z")


def time_parts(array: Any) -> Parts:
    """Times of day as Python writes them: six digits of a second or none, nine where six lose some."""
    unit = array.type.unit
    counts = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    check_bounds(counts, 0, 86_400 * PER_SECOND[unit] - 1)
    if unit == "ms":
        array = array.cast(pa.time64("us"))
    return quoted(_less_zeros(array.cast(pa.string()), unit))


_FRACTION = {"s": 0, "ms": 7, "us": 7, "ns": 10}  # of a second, as it is written, with its point


def _less_zeros(text: Any, unit: str) -> Any:
    """Without those digits of a second that say nothing."""
    for zeros in {"s": (), "ns": ("000", ".000000")}.get(unit, (".000000",)):
        ending = pc.ends_with(text, zeros)
        if pc.any(ending).as_py():
            shorter = pc.binary_slice(text.view(pa.binary()), 0, -len(zeros)).view(pa.string())
            text = pc.if_else(ending, shorter, text)
    return text


def check_bounds(counts: Any, least: int, most: int) -> None:
    """Raise ``Unsure`` for counts that are not all between the bounds."""
    bounds = pc.min_max(counts).as_py()
    if bounds["min"] is not None and (bounds["min"] < least or bounds["max"] > most):
        raise Unsure


# ---- texts of dates and times ----------------------------------------------------------------------------------------
# Arrow's parser takes date-times that RFC 3339 has not (an hour without minutes), so their form is looked at first.

_RFC3339 = rf"^\d{{4}}-\d\d-\d\dT{times.CLOCK}(?:\.\d{{1,6}})?(?:Z|{times.OFFSET})$"


def read_moments(texts: Any) -> Any:
    """Texts with a zone and at most six digits of a second as microseconds in UTC."""
    are_there = len(texts) > texts.null_count
    if are_there and not _of_one_form(texts) and not pc.all(pc.match_substring_regex(texts, _RFC3339)).as_py():
        raise Unsure
    return moments_us(texts)


def read_days(texts: Any) -> Any:
    """Texts as dates of 32 bits."""
    return days(texts.cast(pa.date32()))


def date_time_string_parts(array: Any) -> Parts:
    """Texts that are date-times exactly as burler writes them."""
    given, moments = quoted(array), moments_us(array)
    if _of_one_form(array) and b".000000Z" not in bytes(bytes_of(array)):
        return given
    if not pc.all(pc.equal(join(given, len(array)), join(timestamp_parts(moments), len(array)))).as_py():
        raise Unsure
    return given


def date_string_parts(array: Any) -> Parts:
    """Texts that are dates as RFC 3339 has them."""
    read_days(array)
    return quoted(array)


def _of_one_form(texts: Any) -> bool:
    """Whether all surely are as long as one another, with the same signs: see ``times.have_one_form``."""
    width, count = pc.min(pc.binary_length(texts)).as_py(), len(texts) - texts.null_count
    data = bytes_of(texts)
    return len(data) == width * count and times.have_one_form(str(data, "latin-1"), width)


# ---- lists and maps: taken apart, so that what is in them is text of one array, and put together again -----


def offsets(parts: Sequence[Any]) -> Any:
    """Where each of some lists (or dicts) of Python's begins in the items of all; null where there is none."""
    nulls = None in parts
    lengths = (0 if part is None else len(part) for part in parts) if nulls else map(len, parts)
    begins: list[int | None] = list(itertools.accumulate(lengths, initial=0))
    if nulls:
        begins[:-1] = [None if part is None else at for at, part in zip(begins, parts, strict=False)]
    return pa.array(begins, pa.int32())


def flattened(array: Any) -> tuple[Any, Any]:
    """The items of lists (none of them null) in one array, and where each list begins and ends in it."""
    flat = pc.list_flatten(array)
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        return flat, _from_zero(array.offsets)
    ends = pc.cumulative_sum(pc.list_value_length(array).cast(pa.int64()))
    return flat, pa.concat_arrays([pa.array([0], pa.int64()), ends])


def entries(array: Any) -> tuple[Any, Any, Any]:
    """The keys and the values of maps (none of them null), and where each map begins and ends in them."""
    offsets = array.offsets
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    return array.keys.slice(first, last - first), array.items.slice(first, last - first), _from_zero(offsets)


def _from_zero(offsets: Any) -> Any:
    return pc.subtract(offsets, offsets[0]) if offsets[0].as_py() else offsets


def _lists(values: Any, offsets: Any) -> Any:
    return (pa.LargeListArray if offsets.type == pa.int64() else pa.ListArray).from_arrays(offsets, values)


def joined_lists(text: Any, offsets: Any) -> Any:
    """The text of all items as the text of each list, with commas between."""
    text = text if text.type == pa.string() else text.cast(pa.string())  # the kernel knows no other
    return pc.binary_join(_lists(text, offsets), ",")


def check_distinct(keys: Any, offsets: Any) -> None:
    """Raise ``Unsure`` if a map has a key twice."""
    owners = pc.list_parent_indices(_lists(keys, offsets)).cast(pa.string())
    if pc.count_distinct(join([owners, ":", keys], len(keys))).as_py() != len(keys):
        raise Unsure
