"""One walk of Arrow arrays, by plans that are made once for each type: a column as JSON text, or as a column of a file.

What a plan is not certain of it leaves: text is made value by value then, that column alone; for a column of a file
the page as a whole goes through lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from burler.records.arrow.kernels import (
    Parts,
    Unsure,
    check_distinct,
    entries,
    flattened,
    join,
    joined_lists,
    string_parts,
)
from burler.records.arrow.leaves import Leaf, is_list, settled, texts, where_valid
from burler.records.arrow.values import column_values

UNCERTAIN = (
    Unsure, ArithmeticError, UnicodeDecodeError, pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError,
    pa.lib.ArrowCapacityError,
)  # fmt: skip
"""What says that the values must be looked at one by one; the last: more text than 32 bits count."""

_encode = msgspec.json.encode
_LOOKED_AT = 20  # values of an unknown field


class NeedsRows(Exception):
    """Some value does not fit: the page's rows must be looked at one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How the arrays of one place go; this one looks at each value.

    Attributes:
        by_value: makes the text where nothing else is certain; it may raise ``NeedsRows``.
    """

    by_value: Callable[[Any], Parts]

    def text(self, array: Any) -> Parts:
        """The JSON text of an array's values.

        Raises:
            NeedsRows: some value does not fit.
        """
        return self.by_value(array)

    def column(self, array: Any, wanted: pa.DataType) -> Any:
        """An array as one of the type wanted.

        Raises:
            one of ``UNCERTAIN``: a value may go over otherwise than by way of lines, or has no column (who writes the
                file tells that).
        """
        raise Unsure


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fitting(Plan):
    """Where the type surely fits.

    Attributes:
        nullable: whether nulls do.
        holds: says whether values surely keep what more is asked of them.
    """

    nullable: bool = True
    holds: Callable[[Any], bool] | None = None

    def text(self, array: Any) -> Parts:
        """See ``Plan``."""
        try:
            plain = settled(array)
            if plain.null_count and not self.nullable:
                raise NeedsRows
            if self.holds is None or self.holds(plain):
                return ["null"] if plain.null_count == len(plain) else self._text(plain)
        except UNCERTAIN:
            pass
        return self.by_value(array)

    def column(self, array: Any, wanted: pa.DataType) -> Any:
        """See ``Plan``."""
        plain = settled(array)
        if (plain.null_count and not self.nullable) or not (self.holds is None or self.holds(plain)):
            raise Unsure
        return pa.nulls(len(plain), wanted) if plain.null_count == len(plain) else self._column(plain, wanted)

    def _text(self, array: Any) -> Parts:
        raise NotImplementedError

    def _column(self, array: Any, wanted: pa.DataType) -> Any:
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalars(_Fitting):
    """``is_open``: other values than scalars might stand here, too: text in a column of text is JSON text then."""

    leaf: Leaf
    is_open: bool = False

    def _text(self, array: Any) -> Parts:
        return self.leaf.text(array)

    def _column(self, array: Any, wanted: pa.DataType) -> Any:
        if not pa.types.is_string(wanted):
            return self.leaf.column(array, wanted)
        if self.leaf.quoted and self.is_open:
            raise Unsure
        return self.leaf.as_text(array)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Nested(_Fitting):
    """What has values below it. What lies below a null must not be looked at."""

    def _text(self, array: Any) -> Parts:
        if not array.null_count:
            return self._present_text(array)
        return [_around_nulls(array, lambda there: join(self._present_text(there), len(there)))]

    def _column(self, array: Any, wanted: pa.DataType) -> Any:
        if pa.types.is_string(wanted):  # an open type: the JSON that stands in the line
            return where_valid(array, join(self._text(array), len(array)))
        return _around_nulls(array, lambda there: self._present_column(there, wanted))

    def _present_text(self, array: Any) -> Parts:
        raise NotImplementedError

    def _present_column(self, array: Any, wanted: pa.DataType) -> Any:
        raise NotImplementedError


def _around_nulls(array: Any, present: Callable[[Any], Any]) -> Any:
    """The array that is made of those that are there, and null where none is."""
    if not array.null_count:
        return present(array)
    valid = array.is_valid()
    places = pc.if_else(valid, pc.subtract(pc.cumulative_sum(valid.cast(pa.int32())), 1), pa.nulls(1, pa.int32())[0])
    return present(array.drop_null()).take(places)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lists(_Nested):
    """Lists of any kind."""

    items: Plan

    def _present_text(self, array: Any) -> Parts:
        flat, offsets = flattened(array)
        if not len(flat):
            return ["[]"]
        return ["[", joined_lists(join(self.items.text(flat), len(flat)), offsets), "]"]

    def _present_column(self, array: Any, wanted: pa.DataType) -> Any:
        if not is_list(wanted):
            raise Unsure
        flat, offsets = flattened(array)
        made = self.items.column(flat, wanted.value_type)
        return pa.ListArray.from_arrays(offsets.cast(pa.int32()), made, wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Maps(_Nested):
    """Maps whose keys are text. ``distinct``: no key may come twice in one."""

    values: Plan
    distinct: bool = True

    def _present_text(self, array: Any) -> Parts:
        names, items, offsets = self._parts(array)
        if not len(names):
            return ["{}"]
        text = join([*string_parts(names), ":", *self.values.text(items)], len(names))
        return ["{", joined_lists(text, offsets), "}"]

    def _present_column(self, array: Any, wanted: pa.DataType) -> Any:
        if not pa.types.is_map(wanted):
            raise Unsure
        names, items, offsets = self._parts(array)
        made = self.values.column(items, wanted.item_type)
        return pa.MapArray.from_arrays(offsets.cast(pa.int32()), texts(names), made, wanted)

    def _parts(self, array: Any) -> tuple[Any, Any, Any]:
        keys, items, offsets = entries(array)
        names = settled(keys)
        if self.distinct and len(names):
            check_distinct(names, offsets)
        return names, items, offsets


Note = Callable[[int, Iterator[Any]], None]
"""Counts objects that have a value in a field; the values, made only if somebody looks."""


class Field(NamedTuple):
    """A field of objects, by its place among those that are given; without one it is null in each."""

    name: str
    place: int = -1
    plan: Plan | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Objects(_Nested):
    """Structs, and the rows of a page.

    Attributes:
        fields: in the order in which they go out.
        unknown: places of those that are left out, and who wants to know.
    """

    fields: tuple[Field, ...]
    unknown: tuple[tuple[int, Note], ...] = ()

    def _present_text(self, array: Any) -> Parts:
        return self.text_of(array.field)

    def _present_column(self, array: Any, wanted: pa.DataType) -> Any:
        if not pa.types.is_struct(wanted):
            raise Unsure
        made = self.columns_of(array.field, wanted, len(array))
        return pa.StructArray.from_arrays(made, fields=list(wanted))

    def text_of(self, given: Callable[[int], Any], keep: dict[str, Parts] | None = None) -> Parts:
        """The text of objects whose fields' arrays ``given`` has; each field's own text goes into ``keep``, too."""
        parts: Parts = ["{"]
        for name, place, plan in self.fields:
            text = ["null"] if plan is None else plan.text(given(place))
            parts += ["," if len(parts) > 1 else "", f"{_encode(name).decode()}:", *text]
            if keep is not None:
                keep[name] = text
        self._note(given)
        return [*parts, "}"]

    def columns_of(self, given: Callable[[int], Any], wanted: Iterable[pa.Field], count: int) -> list[Any]:
        """The arrays of the fields wanted; what there is no value for is null. See ``Plan.column``."""
        plans = {name: (place, plan) for name, place, plan in self.fields}
        made = []
        for field in wanted:
            place, plan = plans.pop(field.name, (-1, None))
            made.append(pa.nulls(count, field.type) if plan is None else plan.column(given(place), field.type))
        if plans:
            raise Unsure
        self._note(given)
        return made

    def _note(self, given: Callable[[int], Any]) -> None:
        for place, note in self.unknown:
            array = given(place)
            count = len(array) - array.null_count
            if count:
                note(count, (value for value in column_values(array[:_LOOKED_AT]) if value is not None))
