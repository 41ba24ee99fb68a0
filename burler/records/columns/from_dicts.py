"""Pages of dicts as columns, without shaping in between, where a page surely is what shaping would make of it.

For schemas of nothing but plain fields, and pages whose values have exactly the types that these say: then the values
go into Arrow's arrays as they are. Whatever is otherwise (a field that nobody declared, a null where none may be, a
number as text, a date-time in another form) takes the usual way, which repairs, counts or refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import accumulate, chain
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from burler.records.arrow.kernels import Unsure
from burler.records.shape import constraints
from burler.records.shape.fixes import fixed_times, is_times
from burler.records.shape.values import types_of
from burler.singer.bookmark_values import KeyValues

Values = list[Any]
Kinds = set[type]
"""The types of all of them."""
Make = Callable[[Values, Kinds], Any]
"""Makes the array of a column's values."""

_NULL = type(None)
_PLAIN: dict[str, frozenset[type]] = {
    "string": frozenset({str}),
    "integer": frozenset({int}),
    "number": frozenset({int, float}),
    "boolean": frozenset({bool}),
}
_ARROW = {"string": "string", "integer": "int64", "number": "float64", "boolean": "boolean"}
_MOST_MISSES = 3  # pages one after another that took the usual way: then it is not tried again


class DictsDirect:
    """Of one stream.

    Args:
        form: the stream's schema as ``shape.form`` makes it, keys required.
        arrow_schema: the columns wanted. key: the field whose values a bookmark follows.
        check_constraints: whether bounds, lengths and the like are held; fields that have some are not plain then.

    Attributes:
        is_of_use: whether the schema is plain, and pages are.
    """

    def __init__(
        self, form: Mapping[str, Any], arrow_schema: pa.Schema, *, key: str | None, check_constraints: bool
    ) -> None:
        self._schema = arrow_schema
        self._key = key
        self._misses = 0
        self._moments: list[Any] | None = None
        self._held = check_constraints
        try:
            self._fields: _Fields | None = _Fields(form, list(arrow_schema), self._maker, key=key)
        except Unsure:
            self._fields = None

    @property
    def is_of_use(self) -> bool:
        """See the class."""
        return self._fields is not None and self._misses < _MOST_MISSES

    def page(self, rows: list[dict[str, Any]]) -> tuple[pa.RecordBatch, list[Any]] | None:
        """A page as columns, and the key's values as shaping gives them; None where it takes the usual way."""
        if not self.is_of_use or self._fields is None or not rows:
            return None
        self._moments = None
        try:
            made = pa.RecordBatch.from_arrays(self._fields.arrays(rows), schema=self._schema)
        except (Unsure, ArithmeticError, ValueError, TypeError, AttributeError, pa.lib.ArrowException):
            self._misses += 1
            return None
        self._misses = 0
        if self._key is None:
            return made, []
        given = [row.get(self._key) for row in rows]
        return made, given if self._moments is None else KeyValues(self._moments, given)

    def _maker(self, node: Any, kind: pa.DataType, *, is_key: bool = False) -> Make:
        """What makes the array of one node.

        Raises:
            Unsure: the node is not plain.
        """
        if not isinstance(node, Mapping) or (self._held and constraints.constrained(node)):
            raise Unsure
        if not {"anyOf", "oneOf", "contentEncoding", "multipleOf"}.isdisjoint(node):
            raise Unsure
        if is_times(node):
            return self._times(kind, is_key=is_key)
        names = set(types_of(node)) - {"null"}
        if len(names) != 1 or "format" in node:
            raise Unsure
        (name,) = names
        if name in _PLAIN and _is(kind, _ARROW[name]):
            return _scalars(kind, _PLAIN[name])
        if name == "object" and _is(kind, "struct"):
            return _structs(_Fields(node, [kind.field(i) for i in range(kind.num_fields)], self._maker), kind)
        items = node.get("items")
        if name == "array" and _is(kind, "list") and isinstance(items, Mapping):
            return _lists(self._maker(items, kind.value_type), kind, takes_null="null" in types_of(items))
        raise Unsure

    def _times(self, kind: pa.DataType, *, is_key: bool) -> Make:
        def make(values: Values, kinds: Kinds) -> Any:
            nulls = _NULL in kinds
            there = [value for value in values if value is not None] if nulls else values
            fixed = fixed_times(there) if there else ([], [])
            if fixed is None:
                raise Unsure
            texts, moments = (_around(values, part) for part in fixed) if nulls else fixed
            if is_key:
                self._moments = moments
            if there and type(fixed[0][0]) is str:
                return pa.array(texts, pa.string()).cast(kind)
            return pa.array(texts, kind)

        return make


class _Fields:
    """The fields of objects. ``key``: one of which more is noted."""

    def __init__(
        self, node: Mapping[str, Any], wanted: list[pa.Field], maker: Callable[..., Make], *, key: str | None = None
    ) -> None:
        properties = node.get("properties")
        required = set(node.get("required") or ())
        if not isinstance(properties, Mapping) or node.get("patternProperties"):
            raise Unsure
        if not required <= {field.name for field in wanted}:
            raise Unsure
        self._known = frozenset(properties)
        self._columns = []
        for field in wanted:
            sub = properties.get(field.name)
            make = maker(sub, field.type, is_key=field.name == key)
            takes_null = "null" in types_of(sub or {})
            # One null is as good as another: of a field that may be absent but not null, none is let through.
            may_be_none = takes_null and field.name not in required
            self._columns.append((field.name, itemgetter(field.name), may_be_none, make))

    def arrays(self, rows: Values) -> list[Any]:
        """The fields' arrays.

        Raises:
            Unsure: a value, or a field, that the schema does not take as it is.
        """
        made, count = [], 0
        for name, get, takes_null, make in self._columns:
            try:
                values = list(map(get, rows))
            except KeyError:
                values = [row.get(name) for row in rows]
            kinds = set(map(type, values))
            count += len(values)
            if _NULL in kinds:
                if not takes_null:
                    raise Unsure
                count -= values.count(None)
            made.append(make(values, kinds))
        if count != sum(map(len, rows)) and not set().union(*rows) <= self._known:
            raise Unsure
        return made


def _is(kind: pa.DataType, name: str) -> bool:
    return bool(getattr(pa.types, f"is_{name}")(kind))


def _scalars(kind: pa.DataType, types: frozenset[type]) -> Make:
    is_number, types = _is(kind, "float64"), types | {_NULL}

    def make(values: Values, kinds: Kinds) -> Any:
        if not kinds <= types:
            raise Unsure
        array = pa.array(values, kind)
        if is_number and pc.all(pc.is_finite(array)).as_py() is False:
            raise Unsure
        return array

    return make


def _structs(fields: _Fields, kind: pa.DataType) -> Make:
    wanted = [kind.field(i) for i in range(kind.num_fields)]

    def make(values: Values, kinds: Kinds) -> Any:
        if not kinds <= {dict, _NULL}:
            raise Unsure
        if _NULL not in kinds:
            return pa.StructArray.from_arrays(fields.arrays(values), fields=wanted)
        there = [value for value in values if value is not None]
        if not there:
            return pa.nulls(len(values), kind)
        absent = [value is None for value in values]
        filled = [there[0] if value is None else value for value in values]  # unseen behind the mask
        return pa.StructArray.from_arrays(fields.arrays(filled), fields=wanted, mask=pa.array(absent))

    return make


def _lists(items: Make, kind: pa.DataType, *, takes_null: bool) -> Make:
    def make(values: Values, kinds: Kinds) -> Any:
        if not kinds <= {list, _NULL}:
            raise Unsure
        nulls = _NULL in kinds
        there = [value for value in values if value is not None] if nulls else values
        below = list(chain.from_iterable(there))
        within = set(map(type, below))
        if _NULL in within and not takes_null:
            raise Unsure
        lengths = map(len, values) if not nulls else (0 if value is None else len(value) for value in values)
        ends: list[int | None] = list(accumulate(lengths, initial=0))
        if nulls:
            ends[:-1] = [None if value is None else at for at, value in zip(ends, values, strict=False)]
        return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), items(below, within), kind)

    return make


def _around(values: Values, there: Values) -> Values:
    """What was made of those that are there, with None where none is."""
    each = iter(there)
    return [None if value is None else next(each) for value in values]
