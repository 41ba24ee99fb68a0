"""Rows as the columns of a file, without lines of JSON in between: for BATCH files in Parquet and Arrow.

Two kinds of rows have one builder. Shaping has made structs of rows, whose fields hold what the lines would show: a
field's values become an array where that is surely what a reader of the lines would make of them. Dicts as user code
gave them become columns where shaping would surely leave them as they are: of schemas of nothing but plain fields,
whose values have exactly the types that these say. Whatever is otherwise (a field that nobody declared, a null where
none may be, a number as text, a date-time in another form) is shaped, which repairs, counts or refuses it.
"""

from __future__ import annotations

import base64
import contextlib
import datetime as dt
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from itertools import chain
from operator import itemgetter
from typing import Any, Union

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from burler.records.arrow.json_text import Unsure, offsets
from burler.records.shape import constraints, proof
from burler.records.shape.leaves import column, fixed_times, value_of
from burler.records.shape.values import types_of
from burler.records.tries import Tries
from burler.singer.bookmark_values import KeyValues

Values = list[Any]
"""Of one field, one a row; None where it is null or not there."""
Kinds = set[type]
"""The types of all of them."""
Make = Callable[[Values, Kinds], Any]
"""Makes an array. Raises one of ``_UNCERTAIN`` where a value is not surely right."""
_Fields = Union["StructFields", "_DictFields"]

_UNCERTAIN = (Unsure, ArithmeticError, ValueError, TypeError, AttributeError, pa.lib.ArrowException)
_NULL = type(None)
_NULLS = frozenset({_NULL})
_NUMBERS = {int, Decimal, _NULL}
_OWN = {int, str, bool, float, _NULL, msgspec.UnsetType}
"""Types that a struct holds its scalars to by itself."""
_SCALARS = {"string", "integer", "number", "boolean", "null"}
_SAYING = {"enum", "const", "properties", "items", "allOf", "$ref"}
"""Keywords that name types without ``type``."""
_PLAIN: dict[str, tuple[Kinds, str]] = {
    "text": ({str}, "is_string"),
    "whole": ({int}, "is_int64"),
    "number": ({int, float}, "is_float64"),
    "truth": ({bool}, "is_boolean"),
}
"""Of plain fields of dicts: the types of values, and the test of the column's type."""
_MINUS_ZERO = re.compile(rb"-0[,\]]")  # the decoder of integers takes the sign off
_encoder = msgspec.json.Encoder(decimal_format="number")  # as the lines are made
_floats = msgspec.json.Decoder(list[float | None])


class RowColumns:
    """Makes columns of one stream's pages.

    Args:
        form: the stream's schema as ``shape.form`` makes it, keys required.
        arrow_schema: the columns wanted.
        key: the field whose values a bookmark follows.
        checks: whether bounds, lengths and the like are held: fields that have some are shaped.
    """

    def __init__(self, form: Mapping[str, Any], arrow_schema: pa.Schema, *, key: str | None, checks: bool) -> None:
        self._schema = arrow_schema
        self._key = key
        self._structs = _fields_of(form, list(arrow_schema))
        try:
            self._dicts: _DictFields | None = _DictFields(form, list(arrow_schema), checks, key)
        except Unsure:
            self._dicts = None
        self._tries = Tries(), Tries()

    def of_structs(self, structs: list[Any]) -> pa.RecordBatch | None:
        """A page of shaped rows; None where they must become lines."""
        return self._made(self._structs, self._tries[0], structs)

    def of_dicts(self, rows: list[dict[str, Any]]) -> tuple[pa.RecordBatch, list[Any]] | None:
        """A page of rows, and the key's values as shaping gives them; None where they must be shaped."""
        made = self._made(self._dicts, self._tries[1], rows) if self._dicts is not None else None
        if made is None or self._dicts is None or self._key is None:
            return None if made is None else (made, [])
        given, moments = [row.get(self._key) for row in rows], self._dicts.moments
        return made, given if moments is None else KeyValues(moments, given)

    def _made(self, fields: _Fields, tries: Tries, rows: list[Any]) -> pa.RecordBatch | None:
        if not rows or not tries:
            return None
        made = None
        with contextlib.suppress(*_UNCERTAIN):  # shaping, or the lines, say what is wrong
            made = pa.RecordBatch.from_arrays(fields.arrays(rows), schema=self._schema)
        tries.ended(well=made is not None)
        return made


# ---- shaped rows -----------------------------------------------------------------------------------------------------


class StructFields:
    """The fields of objects that are structs of one type at a time.

    Args:
        makes: what makes a field's array, by its name.
        wanted: the columns.
    """

    def __init__(self, makes: Mapping[str, Make], wanted: list[pa.Field]) -> None:
        self._makes, self._wanted = makes, wanted
        self._kind: type | None = None
        self._attributes: dict[str, str] = {}
        self._sure: set[str] = set()

    def arrays(self, rows: list[Any]) -> list[Any]:
        """The fields' arrays, in the order of the columns wanted."""
        if not rows:
            return [pa.nulls(0, field.type) for field in self._wanted]
        if type(rows[0]) is not self._kind:
            self._look_at(type(rows[0]))
        made = []
        for field in self._wanted:
            attribute = self._attributes.get(field.name)
            if attribute is None:
                made.append(pa.nulls(len(rows), field.type))
                continue
            values = column(attribute)(rows)
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
        tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_string)
        plain = {field.name for field in self._wanted if any(test(field.type) for test in tests)}
        self._sure = {
            field.name
            for field in msgspec.structs.fields(kind)
            if field.encode_name in plain and set(getattr(field.type, "__args__", (field.type,))) <= _OWN
        }
        self._kind = kind


def _fields_of(schema: Mapping[str, Any], wanted: list[pa.Field]) -> StructFields:
    nodes: Mapping[str, Any] = schema.get("properties") or {}
    return StructFields({field.name: _maker(nodes.get(field.name), field.type) for field in wanted}, wanted)


def _maker(node: Any, kind: pa.DataType) -> Make:
    """What makes the arrays of a field of an Arrow type, under a node of the form."""
    if not isinstance(node, Mapping) or "anyOf" in node or "oneOf" in node:
        return _unsure
    wanted = set(types_of(node)) - {"null"}
    if pa.types.is_string(kind):
        if wanted and wanted <= _SCALARS:
            return plain(kind)
        return json_texts(kind) if "type" in node or _SAYING.isdisjoint(node) else _unsure
    if len(wanted) != 1 and not wanted <= {"integer", "number"}:
        return _unsure
    if pa.types.is_integer(kind):
        return _only({int, _NULL}, plain(kind))  # of floats it would cut the fraction off
    if pa.types.is_floating(kind):
        return _numbers(kind)
    if pa.types.is_boolean(kind):
        return plain(kind)
    if pa.types.is_decimal(kind):
        return _decimals(kind)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return _times(kind, dt.datetime if pa.types.is_timestamp(kind) else dt.date)
    if pa.types.is_binary(kind):
        return _bytes(kind)
    if pa.types.is_struct(kind):
        own = structs(_fields_of(node, list(kind)), kind)
        return lambda values, kinds: own(values, kinds) if _is_of_one_struct(kinds) else _unsure(values, kinds)
    if pa.types.is_map(kind):
        return maps(_maker(node.get("additionalProperties"), kind.item_type), kind)
    return lists(_maker(node.get("items"), kind.value_type), kind) if pa.types.is_list(kind) else _unsure


def _is_of_one_struct(kinds: Kinds) -> bool:
    own = list(kinds - {_NULL})
    return not own or (len(own) == 1 and issubclass(own[0], msgspec.Struct))


# ---- rows as they came -----------------------------------------------------------------------------------------------


class _DictFields:
    """Of objects that are dicts, as user code gave them.

    Args:
        checks: whether constraints are held.
        key: the field that a bookmark follows.

    Raises:
        Unsure: they are not plain.

    Attributes:
        moments: of the objects that came last: the key's values, if these are date-times.
    """

    def __init__(self, node: Mapping[str, Any], wanted: list[pa.Field], checks: bool, key: str | None = None) -> None:
        properties = node.get("properties")
        required = set(node.get("required") or ())
        if not isinstance(properties, Mapping) or node.get("patternProperties"):
            raise Unsure
        if not required <= {field.name for field in wanted}:
            raise Unsure
        self.moments: list[Any] | None = None
        self._known = frozenset(properties)
        self._checks = checks
        self._columns = []
        for field in wanted:
            is_required, is_key = field.name in required, field.name == key
            make = self._maker(properties.get(field.name), field.type, required=is_required, is_key=is_key)
            self._columns.append((field.name, itemgetter(field.name), make))

    def arrays(self, rows: list[Any]) -> list[Any]:
        """The fields' arrays, in the order of the columns wanted."""
        self.moments = None
        made, count = [], 0
        for name, get, make in self._columns:
            try:
                values = list(map(get, rows))
            except KeyError:
                values = [row.get(name) for row in rows]
            kinds = set(map(type, values))
            count += len(values) - (values.count(None) if _NULL in kinds else 0)
            made.append(make(values, kinds))
        if count != sum(map(len, rows)) and not set().union(*rows) <= self._known:
            raise Unsure
        return made

    def _maker(self, node: Any, kind: pa.DataType, *, required: bool = False, is_key: bool = False) -> Make:
        found = proof.plain(node)
        if found is None or (self._checks and constraints.constrained(node)):
            raise Unsure
        name, may_be_null, *_ = found
        # One null is as good as another: of a field that may be absent but not null, none is let through.
        nulls = {_NULL} if may_be_null and not required else set()
        if name == "time":
            return _only({str, dt.datetime} | nulls, self._times(kind, is_key))
        if name in _PLAIN and getattr(pa.types, _PLAIN[name][1])(kind):
            return _only(_PLAIN[name][0] | nulls, _finite(plain(kind)) if name == "number" else plain(kind))
        if name == "object" and pa.types.is_struct(kind):
            return _only({dict} | nulls, structs(_DictFields(node, list(kind), self._checks), kind))
        if name == "array" and pa.types.is_list(kind):
            return _only({list} | nulls, lists(self._maker(node["items"], kind.value_type), kind))
        raise Unsure

    def _times(self, kind: pa.DataType, is_key: bool) -> Make:
        """Date-times as shaping would write them."""
        of_fixed = _times(kind, dt.datetime)

        def make(values: Values, kinds: Kinds) -> Any:
            fixed = fixed_times(values, _NULLS) if values else ([], [])
            if fixed is None:
                raise Unsure
            if is_key:
                self.moments = fixed[1]
            return of_fixed(fixed[0], set(map(type, fixed[0])))

        return make


def _finite(make: Make) -> Make:
    def finite(values: Values, kinds: Kinds) -> Any:
        array = make(values, kinds)
        if pc.all(pc.is_finite(array)).as_py() is False:
            raise Unsure
        return array

    return finite


# ---- arrays ----------------------------------------------------------------------------------------------------------


def _unsure(values: Values, kinds: Kinds) -> Any:
    raise Unsure


def _only(allowed: Kinds, make: Make) -> Make:
    """For values of some types only."""

    def checked(values: Values, kinds: Kinds) -> Any:
        if not kinds <= allowed:
            raise Unsure
        return make(values, kinds)

    return checked


def plain(kind: pa.DataType) -> Make:
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


def json_texts(kind: pa.DataType) -> Make:
    """Anything as the JSON that stands in the lines."""

    def make(values: Values, kinds: Kinds) -> Any:
        texts = _encoder.encode_lines(values).split(b"\n")[:-1]
        if len(texts) != len(values):
            raise Unsure
        return pa.array([None if text == b"null" else text for text in texts], pa.binary()).cast(kind)

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
        return pa.array([None if v is None else base64.b64decode(v, validate=True) for v in values], kind)

    return _only({str, _NULL}, make)


def structs(fields: _Fields, kind: pa.DataType, nothing: Any = None) -> Make:
    """Objects. ``nothing``: stands where none is, unseen behind the mask; None: any of them."""
    wanted = list(kind)

    def make(values: Values, kinds: Kinds) -> Any:
        if not kinds - {_NULL}:
            return pa.nulls(len(values), kind)
        if _NULL not in kinds:
            return pa.StructArray.from_arrays(fields.arrays(values), fields=wanted)
        absent = [value is None for value in values]
        some = nothing if nothing is not None else next(value for value in values if value is not None)
        there = [some if value is None else value for value in values]
        return pa.StructArray.from_arrays(fields.arrays(there), fields=wanted, mask=pa.array(absent))

    return make


def lists(items: Make, kind: pa.DataType) -> Make:
    """Lists of what ``items`` makes."""

    def make(values: Values, kinds: Kinds) -> Any:
        there = [value for value in values if value is not None] if _NULL in kinds else values
        below = list(chain.from_iterable(there))
        return pa.ListArray.from_arrays(offsets(values), items(below, set(map(type, below))), kind)

    return _only({list, _NULL}, make)


def maps(items: Make, kind: pa.DataType) -> Make:
    """Dicts whose values are what ``items`` makes."""

    def make(values: Values, kinds: Kinds) -> Any:
        there = [value for value in values if value is not None] if _NULL in kinds else values
        keys = pa.array(list(chain.from_iterable(there)), pa.string())
        below = list(chain.from_iterable(map(dict.values, there)))
        return pa.MapArray.from_arrays(offsets(values), keys, items(below, set(map(type, below))), kind)

    return _only({dict, _NULL}, make)
