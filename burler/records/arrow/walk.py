"""One walk of Arrow arrays, by plans that are made once for each type: a column as JSON text, or as a column of a file.

Scalars go by a table of writers, each with its text and its column. What a plan is not certain of it leaves: text is
made value by value then, that column alone; for a column of a file the page as a whole goes through lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from burler.records.arrow import json_text
from burler.records.arrow.json_text import (
    Parts,
    Unsure,
    check_distinct,
    entries,
    flattened,
    join,
    joined_lists,
    string_parts,
)
from burler.records.arrow.to_rows import JSON_TEXT, column_values

_READ_FORMATS = frozenset({"date-time", "date", "singer.decimal"})  # formats that change how a value is written
_LIST_TYPES = ("is_list", "is_large_list", "is_fixed_size_list", "is_list_view", "is_large_list_view")


# ---- the table -------------------------------------------------------------------------------------------------------


def _no_column(array: Any, wanted: Any) -> Any:
    raise Unsure


@dataclass(frozen=True, slots=True, eq=False)
class ScalarWriter:
    """How scalars of one type are written.

    Attributes:
        text: the JSON text of an array.
        column: the array as one of another type, which is not text, if the text surely reads back as the same values;
            else it raises ``Unsure`` (or pyarrow raises).
        plain: the array as what stands between the quotes; None: it is cut out of the text.
        quoted: whether the text is a string of JSON.
        casts: whether it is of another JSON type than the values are.
    """

    text: Callable[[Any], Parts]
    column: Callable[[Any, Any], Any] = _no_column
    plain: Callable[[Any], Any] | None = None
    quoted: bool = True
    casts: bool = False

    def as_text(self, array: Any) -> Any:
        """Text as it is; other values as they are written, less the quotes."""
        if self.plain is not None:
            return self.plain(array)
        text = join(self.text(array), len(array))
        return where_valid(array, pc.utf8_slice_codeunits(text, 1, -1) if self.quoted else text)


def texts(array: Any) -> Any:
    """Strings of any kind, if all are UTF-8."""
    array.validate(full=True)
    return array.cast(pa.string())


def where_valid(array: Any, text: Any) -> Any:
    """Texts of an array's values, null where they are."""
    text = text.cast(pa.string())
    return pc.if_else(array.is_valid(), text, pa.nulls(1, pa.string())[0]) if array.null_count else text


def _of(test: Callable[[Any], bool], make: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """For columns of some types only."""

    def column(array: Any, wanted: Any) -> Any:
        if not test(wanted):
            raise Unsure
        return make(array, wanted)

    return column


def _checked(check: Callable[[Any], Parts], make: Callable[..., Any]) -> Callable[..., Any]:
    """Of texts that all are as burler writes them: the check raises where one is not."""

    def made(array: Any, *wanted: Any) -> Any:
        check(array)
        return make(array, *wanted)

    return made


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _as_they_are(array: Any, wanted: Any) -> Any:
    """Booleans; integers and decimals in a column of numbers, exactly; decimals as the doubles next to them, as readers
    of JSON take them."""
    if pa.types.is_boolean(array.type) != pa.types.is_boolean(wanted):
        raise Unsure
    if pa.types.is_decimal(array.type) and pa.types.is_floating(wanted):
        return json_text.finite(array.cast(pa.string()).cast(wanted))  # Arrow's own cast makes another double of 0.47
    if pa.types.is_decimal(wanted):
        return json_text.rescaled(array, wanted)
    return array.cast(wanted)  # raises where something would be lost


def _moments(array: Any, wanted: Any) -> Any:
    return json_text.moments_us(array)


PLAIN = ScalarWriter(
    json_text.cast_parts, _of(lambda kind: pa.types.is_boolean(kind) or _is_number(kind), _as_they_are), quoted=False
)
QUOTED = ScalarWriter(json_text.quoted_cast_parts, casts=True)
FLOAT = ScalarWriter(  # no decimal, which holds the digits that are written, not the value
    json_text.float_parts, _of(pa.types.is_floating, lambda array, wanted: json_text.finite(array)), quoted=False
)
WHOLE_FLOAT = ScalarWriter(
    json_text.whole_float_parts,
    _of(_is_number, lambda array, wanted: json_text.whole_floats(array).cast(wanted)),
    quoted=False,
    casts=True,
)
WHOLE_DECIMAL = ScalarWriter(
    json_text.whole_decimal_parts,
    _of(_is_number, lambda array, wanted: json_text.whole_decimals(array).cast(wanted)),
    quoted=False,
    casts=True,
)
STRING = ScalarWriter(json_text.string_parts, plain=texts)
DATE_TIME_STRING = ScalarWriter(
    json_text.date_time_string_parts,
    _of(pa.types.is_timestamp, _checked(json_text.date_time_string_parts, _moments)),
    plain=_checked(json_text.date_time_string_parts, texts),
)
DATE_STRING = ScalarWriter(
    json_text.date_string_parts,
    _of(pa.types.is_date, lambda array, wanted: json_text.read_days(array)),
    plain=_checked(json_text.date_string_parts, texts),
)
TIMESTAMP = ScalarWriter(json_text.timestamp_parts, _of(pa.types.is_timestamp, _moments))
DATE = ScalarWriter(json_text.date_parts, _of(pa.types.is_date, lambda array, wanted: json_text.days(array)))
TIME = ScalarWriter(json_text.time_parts)
BASE64 = ScalarWriter(json_text.base64_parts, _of(pa.types.is_binary, lambda array, wanted: array.cast(wanted)))
UUID = ScalarWriter(json_text.uuid_parts)
JSON = ScalarWriter(json_text.json_parts, plain=json_text.json_column, quoted=False)


# ---- which type goes which way ---------------------------------------------------------------------------------------


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


def writer_for(kind: pa.DataType, wanted: tuple[str, ...], schema: Mapping[str, Any]) -> ScalarWriter | None:
    """The writer of scalars under a node that names types. A type of the union that takes the value as it stands
    comes first, as on the exact path; a cast needs a node of that type alone."""
    form = schema.get("format")
    number = "number" in wanted or "integer" in wanted
    if pa.types.is_boolean(kind):
        return PLAIN if "boolean" in wanted else None
    if pa.types.is_integer(kind) and number:
        return PLAIN
    if pa.types.is_floating(kind):
        if "number" in wanted:
            return FLOAT
        return WHOLE_FLOAT if wanted == ("integer",) else None
    if pa.types.is_decimal(kind) and number:
        if "number" in wanted:
            return PLAIN
        return WHOLE_DECIMAL if wanted == ("integer",) else None
    if is_text(kind) and "string" in wanted:
        special = {"date-time": DATE_TIME_STRING, "date": DATE_STRING}
        return special.get(form) if form in _READ_FORMATS else STRING
    return _text_writer(kind, schema) if wanted == ("string",) else None


def _text_writer(kind: pa.DataType, schema: Mapping[str, Any]) -> ScalarWriter | None:
    """Values that are no text under a node that wants text."""
    form = schema.get("format")
    if pa.types.is_timestamp(kind):
        return TIMESTAMP if form == "date-time" and kind.tz else None
    if pa.types.is_date(kind):
        return DATE if form == "date" or form not in _READ_FORMATS else None
    if form in _READ_FORMATS:
        return None
    if pa.types.is_time(kind):
        return TIME
    if is_binary(kind):
        return BASE64 if schema.get("contentEncoding") == "base64" else None
    if _is_uuid(kind):
        return UUID
    if pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and 0 <= kind.scale <= 6):  # beyond: 1E-7
        return QUOTED
    return None


def free_writer(kind: pa.DataType) -> ScalarWriter | None:
    """The writer of scalars that no schema describes."""
    if pa.types.is_timestamp(kind):
        return TIMESTAMP if kind.tz else None
    if pa.types.is_date(kind) or pa.types.is_time(kind):
        return DATE if pa.types.is_date(kind) else TIME
    if _is_uuid(kind):
        return UUID
    if kind == JSON_TEXT:
        return JSON
    return writer_for(kind, ("boolean", "number", "string"), {})


def is_list(kind: pa.DataType) -> bool:
    """Any of Arrow's list types, maps aside."""
    return any(getattr(pa.types, test)(kind) for test in _LIST_TYPES if hasattr(pa.types, test))


def settled_type(kind: pa.DataType) -> pa.DataType:
    """The type of ``settled`` arrays."""
    while True:
        if isinstance(kind, pa.BaseExtensionType):
            if kind.extension_name in (
                "arrow.uuid",
                "arrow.bool8",
                JSON_TEXT.extension_name,
            ):  # their values are not those they are stored as
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


# ---- the walk --------------------------------------------------------------------------------------------------------

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

    writer: ScalarWriter
    is_open: bool = False

    def _text(self, array: Any) -> Parts:
        return self.writer.text(array)

    def _column(self, array: Any, wanted: pa.DataType) -> Any:
        if not pa.types.is_string(wanted):
            return self.writer.column(array, wanted)
        if self.writer.quoted and self.is_open:
            raise Unsure
        return self.writer.as_text(array)


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
