"""Record batches to JSON lines, a column at a time: exact, by the columns' own types and the stream's schema.

The kernels are those that write RECORD lines of Arrow pages (``burler.records.arrow.json_text``). What
they are not certain of is written value by value.
"""

from __future__ import annotations

import base64
import datetime as dt
import math
from collections.abc import Mapping
from decimal import Decimal
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from burler.errors import BatchError
from burler.records.arrow import json_text, walk
from burler.records.arrow.json_text import Parts, Unsure, bytes_of, join, quoted
from burler.records.arrow.to_rows import column_values
from burler.records.arrow.walk import (
    Field,
    Lists,
    Maps,
    Objects,
    Plan,
    Scalars,
    ScalarWriter,
    is_binary,
    is_list,
    is_text,
    settled_type,
)
from burler.records.columns.types import SchemaNode

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
        self._rows: Objects | None = None

    def lines(self, batch: pa.RecordBatch) -> bytes:
        """One line a row.

        Raises:
            BatchError: a value that JSON has no form for.
        """
        if not batch.num_rows:
            return b""
        if self._rows is None:
            self._rows = _objects(list(batch.schema), self._node, "", "")
        return bytes(bytes_of(join([*self._rows.text_of(batch.column), "\n"], batch.num_rows)))


def _plan(kind: pa.DataType, node: SchemaNode, place: str) -> Plan:
    """How arrays of a type go under a node. ``place`` stands in errors."""
    kind = settled_type(kind)
    by_value = partial(_by_value, node, place)
    if pa.types.is_struct(kind):
        return _objects(list(kind), node, place, f"{place}.")
    if pa.types.is_map(kind) and is_text(settled_type(kind.key_type)):
        values = _plan(kind.item_type, node.values, f"{place}.{{}}")
        return Maps(by_value=by_value, values=values, distinct=False)
    if is_list(kind):
        return Lists(by_value=by_value, items=_plan(kind.value_type, node.items, f"{place}.[]"))
    writer = _writer(kind, node)
    return Scalars(by_value=by_value, writer=writer) if writer is not None else Plan(by_value=by_value)


def _objects(given: list[pa.Field], node: SchemaNode, place: str, start: str) -> Objects:
    """Objects: what the schema declares, in its order, then the rest. ``start``: of the places of fields."""
    places = {field.name: i for i, field in enumerate(given)}
    if len(places) < len(given):
        raise BatchError("two of its columns have one name, and a row has one field of a name")
    declared = node.properties
    names = [*declared, *(name for name in places if name not in declared and not (declared and node.is_closed))]
    fields = [
        Field(name, places[name], _plan(given[places[name]].type, declared.get(name, _NOTHING), f"{start}{name}"))
        if name in places
        else Field(name)
        for name in names
    ]
    return Objects(by_value=partial(_by_value, node, place), fields=tuple(fields))


# ---- scalars -------------------------------------------------------------------------------------


def _writer(kind: pa.DataType, node: SchemaNode) -> ScalarWriter | None:
    """None: each value is looked at."""
    of = pa.types
    if is_text(kind):
        return walk.STRING if node.texts == "text" else None
    if of.is_null(kind) or of.is_boolean(kind) or of.is_integer(kind):
        return walk.QUOTED if node.wants_text else walk.PLAIN
    if of.is_decimal(kind):
        return ScalarWriter(partial(_decimals, node))
    if of.is_floating(kind):
        return walk.WHOLE_FLOAT if node.is_whole else ScalarWriter(_quoted_floats) if node.wants_text else walk.FLOAT
    if of.is_timestamp(kind):
        return walk.TIMESTAMP
    if of.is_date(kind):
        return walk.DATE
    if of.is_time(kind):
        return walk.TIME
    return walk.BASE64 if is_binary(kind) and node.says("contentEncoding", "base64") else None


def _quoted_floats(array: Any) -> Parts:
    return quoted(*json_text.float_parts(array))


def _decimals(node: SchemaNode, array: Any) -> Parts:
    text = array.cast(pa.string())
    if b"E" in bytes(bytes_of(text)):  # 1E-7: only Python writes it out
        raise Unsure
    if array.type.scale > 0 and (node.trims or node.is_whole):
        text = pc.utf8_rtrim(pc.utf8_rtrim(text, "0"), ".")
    return quoted(text) if node.wants_text else [text]


# ---- value by value ------------------------------------------------------------------------------


def _by_value(node: SchemaNode, place: str, array: Any) -> Parts:
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
