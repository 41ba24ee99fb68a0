"""Fields of shaped rows as Arrow arrays: see ``from_structs``."""

from __future__ import annotations

import base64
import datetime as dt
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from itertools import accumulate, chain
from typing import Any

import msgspec
import pyarrow as pa

from burler.records.arrow.kernels import Unsure
from burler.records.shape.raw import value_of
from burler.records.shape.tree import column
from burler.records.shape.values import types_of

Values = list[Any]  # what the structs hold of one field; None where it is null or not there
Kinds = set[type]
"""The types of all of them."""
Make = Callable[[Values, Kinds], Any]

_NULL = type(None)
_NUMBERS = {int, Decimal, _NULL}
_OWN = {int, str, bool, float, _NULL, msgspec.UnsetType}
"""Types that a struct holds its scalars to by itself."""
_SCALARS = {"string", "integer", "number", "boolean", "null"}
_SAYING = {"enum", "const", "properties", "items", "allOf", "$ref"}
"""Keywords that name types without ``type``."""
_MINUS_ZERO = re.compile(rb"-0[,\]]")  # the decoder of integers takes the sign off
_encoder = msgspec.json.Encoder(decimal_format="number")  # as the lines are made
_floats = msgspec.json.Decoder(list[float | None])


class Fields:
    """The fields of objects that are structs of one type at a time."""

    def __init__(self, schema: Mapping[str, Any], wanted: list[pa.Field]) -> None:
        nodes: Mapping[str, Any] = schema.get("properties") or {}
        self._wanted = wanted
        self._makes = {field.name: _maker(nodes.get(field.name), field.type) for field in wanted}
        self._kind: type | None = None
        self._attributes: dict[str, str] = {}
        self._sure: set[str] = set()

    def arrays(self, structs: list[Any]) -> list[Any]:
        """The fields' arrays.

        Raises:
            Unsure, and what pyarrow raises: a value is not surely right.
        """
        if type(structs[0]) is not self._kind:
            self._look_at(type(structs[0]))
        made = []
        for field in self._wanted:
            attribute = self._attributes.get(field.name)
            if attribute is None:
                made.append(pa.nulls(len(structs), field.type))
                continue
            values = column(attribute)(structs)
            if attribute in self._sure:
                try:
                    made.append(pa.array(values, field.type))
                    continue
                except (pa.ArrowInvalid, pa.ArrowTypeError):  # mostly: it is not there in some row
                    self._sure.remove(attribute)
            kinds = set(map(type, values))
            if msgspec.UnsetType in kinds:
                values = [None if value is msgspec.UNSET else value for value in values]
                kinds = (kinds - {msgspec.UnsetType}) | {_NULL}
            made.append(self._makes[field.name](values, kinds))
        return made

    def _look_at(self, kind: Any) -> None:
        """Take in how structs of a type hold the fields.

        Raises:
            Unsure: one has no column.
        """
        self._kind = None
        self._attributes = dict(zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True))
        if not self._attributes.keys() <= self._makes.keys():
            raise Unsure
        plain = {field.name for field in self._wanted if _is_plain(field.type)}
        self._sure = {
            field.name
            for field in msgspec.structs.fields(kind)
            if field.encode_name in plain and set(getattr(field.type, "__args__", (field.type,))) <= _OWN
        }
        self._kind = kind


def _is_plain(kind: pa.DataType) -> bool:
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_string)
    return any(test(kind) for test in tests)


def _maker(node: Any, kind: pa.DataType) -> Make:
    """What makes the arrays of a field of an Arrow type, under a node of the form."""
    if not isinstance(node, Mapping) or "anyOf" in node or "oneOf" in node:
        return _unsure
    wanted = set(types_of(node)) - {"null"}
    if pa.types.is_string(kind):
        if wanted and wanted <= _SCALARS:
            return _plain(kind)
        return _json(kind) if "type" in node or _SAYING.isdisjoint(node) else _unsure
    if len(wanted) != 1 and not wanted <= {"integer", "number"}:
        return _unsure
    if pa.types.is_integer(kind):
        return _integers(kind)
    if pa.types.is_floating(kind):
        return _numbers(kind)
    if pa.types.is_boolean(kind):
        return _plain(kind)
    if pa.types.is_decimal(kind):
        return _decimals(kind)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return _times(kind, dt.datetime if pa.types.is_timestamp(kind) else dt.date)
    if pa.types.is_binary(kind):
        return _bytes(kind)
    if pa.types.is_struct(kind):
        return _structs(node, kind)
    if pa.types.is_map(kind):
        return _maps(_maker(node.get("additionalProperties"), kind.item_type), kind)
    return _lists(node.get("items"), kind) if pa.types.is_list(kind) else _unsure


def _unsure(values: Values, kinds: Kinds) -> Any:
    raise Unsure


def _plain(kind: pa.DataType) -> Make:
    """Values of types that pyarrow takes for this one and no other."""
    return lambda values, kinds: pa.array(values, kind)


def _numbers(kind: pa.DataType) -> Make:
    """Floats; of pages of JSON the source text of numbers."""

    def make(values: Values, kinds: Kinds) -> Any:
        if msgspec.Raw in kinds:
            text = b"[" + b",".join([b"null" if value is None else value for value in values]) + b"]"
            if not kinds <= {msgspec.Raw, _NULL} or _MINUS_ZERO.search(text):
                raise Unsure
            values = _floats.decode(text)
        return pa.array(values, kind)

    return make


def _json(kind: pa.DataType) -> Make:
    """Anything as the JSON that stands in the lines."""

    def make(values: Values, kinds: Kinds) -> Any:
        texts = _encoder.encode_lines(values).split(b"\n")[:-1]
        if len(texts) != len(values):
            raise Unsure
        return pa.array([None if text == b"null" else text for text in texts], pa.binary()).cast(kind)

    return make


def _integers(kind: pa.DataType) -> Make:
    def make(values: Values, kinds: Kinds) -> Any:
        if not kinds <= {int, _NULL}:  # of floats it would cut the fraction off
            raise Unsure
        return pa.array(values, kind)

    return make


def _decimals(kind: pa.DataType) -> Make:
    """Numbers by the digits they are written with; text that spells one."""

    def make(values: Values, kinds: Kinds) -> Any:
        if msgspec.Raw in kinds:
            values = [None if value is None else value_of(value) for value in values]
            kinds = set(map(type, values))
        if not kinds <= _NUMBERS:
            if not kinds <= _NUMBERS | {float, str}:
                raise Unsure
            values = [
                Decimal(repr(value)) if type(value) is float else Decimal(value) if type(value) is str else value
                for value in values
            ]
        made = pa.array(values, kind)
        if made.to_pylist() != values:  # of more than 38 digits Arrow makes other numbers, without a word
            raise Unsure
        return made

    return make


def _times(kind: pa.DataType, own: type) -> Make:
    """Moments, days, or texts of them: the texts are as burler writes them."""

    def make(values: Values, kinds: Kinds) -> Any:
        if str in kinds and kinds <= {str, _NULL}:
            return pa.array(values, pa.string()).cast(kind)  # raises where a digit would be lost
        if not kinds <= {own, _NULL}:
            raise Unsure
        return pa.array(values, kind)

    return make


def _bytes(kind: pa.DataType) -> Make:
    def make(values: Values, kinds: Kinds) -> Any:
        if not kinds <= {str, _NULL}:
            raise Unsure
        return pa.array([None if v is None else base64.b64decode(v, validate=True) for v in values], kind)

    return make


def _structs(node: Mapping[str, Any], kind: pa.DataType) -> Make:
    wanted = [kind.field(i) for i in range(kind.num_fields)]
    fields = Fields(node, wanted)

    def make(values: Values, kinds: Kinds) -> Any:
        own = kinds - {_NULL}
        if not own:
            return pa.nulls(len(values), kind)
        if len(own) > 1 or not issubclass(next(iter(own)), msgspec.Struct):
            raise Unsure
        if _NULL not in kinds:
            return pa.StructArray.from_arrays(fields.arrays(values), fields=wanted)
        absent = [value is None for value in values]
        empty = next(value for value in values if value is not None)  # stands where none is, unseen behind the mask
        there = [empty if value is None else value for value in values]
        return pa.StructArray.from_arrays(fields.arrays(there), fields=wanted, mask=pa.array(absent))

    return make


def _lists(node: Any, kind: pa.DataType) -> Make:
    items = _maker(node, kind.value_type)

    def make(values: Values, kinds: Kinds) -> Any:
        there = _those(values, kinds, list)
        below = list(chain.from_iterable(there))
        offsets = _offsets(values, nulls=_NULL in kinds)
        return pa.ListArray.from_arrays(offsets, items(below, set(map(type, below))), kind)

    return make


def _maps(items: Make, kind: pa.DataType) -> Make:
    def make(values: Values, kinds: Kinds) -> Any:
        there = _those(values, kinds, dict)
        keys = pa.array(list(chain.from_iterable(there)), pa.string())
        below = list(chain.from_iterable(map(dict.values, there)))
        offsets = _offsets(values, nulls=_NULL in kinds)
        return pa.MapArray.from_arrays(offsets, keys, items(below, set(map(type, below))), kind)

    return make


def _those(values: Values, kinds: Kinds, wanted: type) -> Values:
    """The lists (or dicts) among values that may be null."""
    if not kinds <= {wanted, _NULL}:
        raise Unsure
    return [value for value in values if value is not None] if _NULL in kinds else values


def _offsets(values: Values, *, nulls: bool) -> Any:
    """Where each list begins; null where there is none."""
    lengths = map(len, values) if not nulls else (0 if value is None else len(value) for value in values)
    ends: list[int | None] = list(accumulate(lengths, initial=0))
    if nulls:
        ends[:-1] = [None if value is None else at for at, value in zip(ends, values, strict=False)]
    return pa.array(ends, pa.int32())
