"""Record batches to JSON lines, a column at a time: exact, by the columns' own types and the stream's schema.

The kernels are those that write RECORD lines of Arrow pages (``burler.records.arrow.kernels``). What
they are not certain of is written value by value.
"""

from __future__ import annotations

import base64
import datetime as dt
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from burler.errors import BatchError
from burler.records.arrow import kernels
from burler.records.arrow.kernels import (
    Parts,
    Unsure,
    around_nulls,
    bytes_of,
    entries,
    flattened,
    join,
    joined_lists,
    quoted,
)
from burler.records.arrow.types import is_binary, is_list, is_text, settled, settled_type
from burler.records.arrow.values import column_values
from burler.records.columns.nodes import SchemaNode

Text = Callable[[Any], Parts]
"""Makes the JSON text of an array that ``settled`` has seen; a null in it is ``null``."""

_LARGE = 1 << 30
_NUMBERS = ("integer", "number")
_BEGINS = {'"': ("string",), "{": ("object",), "[": ("array",), "t": ("boolean",), "f": ("boolean",), "n": ()}
_NOTHING, _PLAIN_TEXT = SchemaNode({}), SchemaNode({"type": "string"})
_encode = msgspec.json.Encoder(decimal_format="number").encode
_skip = msgspec.json.Decoder(msgspec.Raw).decode


class RowText:
    """JSON lines of the batches of one file.

    Every field that the schema declares is in every row, null where it has no value; then the columns that it does
    not declare, unless it allows no others.

    Args:
        schema: the stream's JSON Schema; None: columns are written as they are.
    """

    def __init__(self, schema: Mapping[str, Any] | None) -> None:
        self._node = SchemaNode(schema)
        self._text: Text | None = None

    def lines(self, batch: pa.RecordBatch) -> bytes:
        """One line a row.

        Raises:
            BatchError: a value that JSON has no form for.
        """
        if not batch.num_rows:
            return b""
        if self._text is None:
            self._text = _fields(list(batch.schema), self._node, "")
        record = pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema)) if batch.num_columns else None
        parts = self._text(record) if record is not None else ["{}"]
        return bytes(bytes_of(join([*parts, "\n"], batch.num_rows)))


def text_of(kind: pa.DataType, node: SchemaNode, place: str) -> Text:
    """What makes the text of arrays of a type under a node. ``place`` stands in errors."""
    kind = settled_type(kind)
    quick = _quick(kind, node, place)

    def make(array: Any) -> Parts:
        plain = settled(array)
        if plain.null_count == len(plain):
            return ["null"]
        try:
            return quick(plain)
        except (Unsure, pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, UnicodeDecodeError):
            return _by_value(plain, node, place)

    return make


def _quick(kind: pa.DataType, node: SchemaNode, place: str) -> Text:
    if pa.types.is_struct(kind):
        fields = _fields([kind.field(i) for i in range(kind.num_fields)], node, f"{place}.")
        return lambda array: around_nulls(array, fields)
    if pa.types.is_map(kind) and is_text(settled_type(kind.key_type)):
        values = text_of(kind.item_type, node.values, f"{place}.{{}}")
        return lambda array: around_nulls(array, partial(_map, values))
    if is_list(kind):
        items = text_of(kind.value_type, node.items, f"{place}.[]")
        return lambda array: around_nulls(array, partial(_list, items))
    return _leaf(kind, node)


def _fields(given: list[pa.Field], node: SchemaNode, place: str) -> Text:
    """Objects: what the schema declares, in its order, then the rest. No array given is null."""
    places = {field.name: i for i, field in enumerate(given)}
    if len(places) < len(given):
        raise BatchError("two of its columns have one name, and a row has one field of a name")
    declared = node.properties
    names = [*declared, *(name for name in places if name not in declared and not (declared and node.is_closed))]
    texts = {
        name: text_of(given[at].type, declared.get(name, _NOTHING), f"{place}{name}")
        for name, at in places.items()
        if name in names
    }
    heads = {name: _encode(name).decode() + ":" for name in names}

    def present(array: Any) -> Parts:
        parts: Parts = ["{"]
        for name, head in heads.items():
            text = texts[name](array.field(places[name])) if name in texts else ["null"]
            parts += ["," if len(parts) > 1 else "", head, *text]
        return [*parts, "}"]

    return present


def _list(items: Text, array: Any) -> Parts:
    flat, offsets = flattened(array)
    if not len(flat):
        return ["[]"]
    return ["[", joined_lists(join(items(flat), len(flat)), offsets), "]"]


def _map(values: Text, array: Any) -> Parts:
    keys, items, offsets = entries(array)
    if not len(keys):
        return ["{}"]
    text = join([*kernels.string_parts(settled(keys)), ":", *values(items)], len(keys))
    return ["{", joined_lists(text, offsets), "}"]


# ---- scalars -------------------------------------------------------------------------------------


def _leaf(kind: pa.DataType, node: SchemaNode) -> Text:
    of = pa.types
    if of.is_null(kind):
        return lambda array: ["null"]
    if is_text(kind):
        return kernels.string_parts if node.texts == "text" else _unsure
    if of.is_boolean(kind) or of.is_integer(kind):
        return kernels.quoted_cast_parts if node.wants_text else kernels.cast_parts
    if of.is_decimal(kind):
        return partial(_decimals, node)
    if of.is_floating(kind):
        return partial(_floats, node)
    if of.is_timestamp(kind):
        return kernels.timestamp_parts
    if of.is_date(kind):
        return kernels.date_parts
    if of.is_time(kind):
        return kernels.time_parts
    if is_binary(kind):
        return kernels.base64_parts if node.says("contentEncoding", "base64") else _unsure
    return _unsure


def _unsure(array: Any) -> Parts:
    raise Unsure


def _floats(node: SchemaNode, array: Any) -> Parts:
    if node.is_whole:
        return kernels.whole_float_parts(array)
    text = kernels.float_parts(array)
    return quoted(*text) if node.wants_text else text


def _decimals(node: SchemaNode, array: Any) -> Parts:
    text = array.cast(pa.string())
    if b"E" in bytes(bytes_of(text)):  # 1E-7: only Python writes it out
        raise Unsure
    if array.type.scale > 0 and (node.trims or node.is_whole):
        text = pc.utf8_rtrim(pc.utf8_rtrim(text, "0"), ".")
    return quoted(text) if node.wants_text else [text]


# ---- value by value ------------------------------------------------------------------------------


def _by_value(array: Any, node: SchemaNode, place: str) -> Parts:
    texts = [b"null" if value is None else _value(value, node, place) for value in column_values(array)]
    if sum(map(len, texts)) > _LARGE:
        return [pa.array(texts, pa.large_binary()).view(pa.large_string())]
    return [pa.array(texts, pa.binary()).view(pa.string())]


def _value(value: Any, node: SchemaNode, place: str) -> bytes:
    """The JSON of one value that is not null."""
    if isinstance(value, str):
        return _text(value, node, place)
    if isinstance(value, bytes):
        if b"\0" not in value and not node.says("contentEncoding", "base64"):  # old writers mark text as bytes
            try:
                return _text(value.decode(), node, place)
            except UnicodeDecodeError:
                pass
        return b'"' + base64.b64encode(value) + b'"'
    if isinstance(value, float) and not math.isfinite(value):
        raise BatchError(f"field '{place}': {value} is no number of JSON. Write null for it, or text")
    if isinstance(value, Decimal):
        made = format(value, "f")
        if "." in made and (node.trims or node.is_whole):
            made = made.rstrip("0").rstrip(".")
        return f'"{made}"'.encode() if node.wants_text else made.encode()
    if isinstance(value, dt.datetime) and value.tzinfo is None:
        value = value.replace(tzinfo=dt.UTC)
    if isinstance(value, dict | list | tuple):
        return _nested(value, place)
    try:
        return _encode(value)
    except (TypeError, ValueError):
        raise BatchError(f"field '{place}': {type(value).__name__} has no form in JSON") from None


def _nested(value: Any, place: str) -> bytes:
    """What only columns of odd types have in them: nothing below is described."""

    def inner(one: Any) -> bytes:
        return b"null" if one is None else _value(one, _PLAIN_TEXT, place)

    if isinstance(value, dict):
        return b"{" + b",".join(_encode(str(name)) + b":" + inner(one) for name, one in value.items()) + b"}"
    return b"[" + b",".join(map(inner, value)) + b"]"


def _on_one_line(text: str) -> bytes:
    made: bytes = msgspec.json.format(text.encode(), indent=-1)
    return made


def _text(value: str, node: SchemaNode, place: str) -> bytes:
    """Text, or the JSON that it is where the schema has something else in mind."""
    meant = node.texts
    if meant == "json" or (meant == "either" and not node.names.isdisjoint(_BEGINS.get(value[:1], _NUMBERS))):
        try:
            _skip(value)
            return value.encode() if "\n" not in value else _on_one_line(value)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            pass  # of another writer, who means the text itself
    try:
        return _encode(value)
    except UnicodeEncodeError:
        raise BatchError(f"field '{place}': text that is no UTF-8") from None
