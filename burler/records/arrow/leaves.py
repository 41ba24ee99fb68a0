"""Scalars of Arrow: how each type goes under a node of a schema, as text and as a column of a file; plain types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from burler.records.arrow import kernels
from burler.records.arrow.kernels import Parts, Unsure, join

_READ_FORMATS = frozenset({"date-time", "date", "singer.decimal"})  # formats that change how a value is written
_LIST_TYPES = ("is_list", "is_large_list", "is_fixed_size_list", "is_list_view", "is_large_list_view")


# ---- the table -------------------------------------------------------------------------------------------------------


def _no_column(array: Any, wanted: Any) -> Any:
    raise Unsure


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """One way of scalars.

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
        return kernels.finite(array.cast(pa.string()).cast(wanted))  # Arrow's own cast makes another double of 0.47
    if pa.types.is_decimal(wanted):
        return kernels.rescaled(array, wanted)
    return array.cast(wanted)  # raises where something would be lost


def _moments(array: Any, wanted: Any) -> Any:
    return kernels.moments_us(array)


PLAIN = Leaf(
    kernels.cast_parts, _of(lambda kind: pa.types.is_boolean(kind) or _is_number(kind), _as_they_are), quoted=False
)
QUOTED = Leaf(kernels.quoted_cast_parts, casts=True)
FLOAT = Leaf(  # no decimal, which holds the digits that are written, not the value
    kernels.float_parts, _of(pa.types.is_floating, lambda array, wanted: kernels.finite(array)), quoted=False
)
WHOLE_FLOAT = Leaf(
    kernels.whole_float_parts,
    _of(_is_number, lambda array, wanted: kernels.whole_floats(array).cast(wanted)),
    quoted=False,
    casts=True,
)
WHOLE_DECIMAL = Leaf(
    kernels.whole_decimal_parts,
    _of(_is_number, lambda array, wanted: kernels.whole_decimals(array).cast(wanted)),
    quoted=False,
    casts=True,
)
STRING = Leaf(kernels.string_parts, plain=texts)
DATE_TIME_STRING = Leaf(
    kernels.date_time_string_parts,
    _of(pa.types.is_timestamp, _checked(kernels.date_time_string_parts, _moments)),
    plain=_checked(kernels.date_time_string_parts, texts),
)
DATE_STRING = Leaf(
    kernels.date_string_parts,
    _of(
        pa.types.is_date,
        _checked(kernels.date_string_parts, lambda array, wanted: array.cast(pa.date32())),
    ),
    plain=_checked(kernels.date_string_parts, texts),
)
TIMESTAMP = Leaf(kernels.timestamp_parts, _of(pa.types.is_timestamp, _moments))
DATE = Leaf(kernels.date_parts, _of(pa.types.is_date, lambda array, wanted: kernels.days(array)))
TIME = Leaf(kernels.time_parts)
BASE64 = Leaf(kernels.base64_parts, _of(pa.types.is_binary, lambda array, wanted: array.cast(wanted)))
UUID = Leaf(kernels.uuid_parts)


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


def leaf_for(kind: pa.DataType, wanted: tuple[str, ...], schema: Mapping[str, Any]) -> Leaf | None:
    """The leaf of scalars under a node that names types. A type of the union that takes the value as it stands
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
    return _text_leaf(kind, schema) if wanted == ("string",) else None


def _text_leaf(kind: pa.DataType, schema: Mapping[str, Any]) -> Leaf | None:
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


def free_leaf(kind: pa.DataType) -> Leaf | None:
    """The leaf of scalars that no schema describes."""
    if pa.types.is_timestamp(kind):
        return TIMESTAMP if kind.tz else None
    if pa.types.is_date(kind) or pa.types.is_time(kind):
        return DATE if pa.types.is_date(kind) else TIME
    if _is_uuid(kind):
        return UUID
    return leaf_for(kind, ("boolean", "number", "string"), {})


def is_list(kind: pa.DataType) -> bool:
    """Any of Arrow's list types, maps aside."""
    return any(getattr(pa.types, test)(kind) for test in _LIST_TYPES if hasattr(pa.types, test))


def settled_type(kind: pa.DataType) -> pa.DataType:
    """The type of ``settled`` arrays."""
    while True:
        if isinstance(kind, pa.BaseExtensionType):
            if kind.extension_name in ("arrow.uuid", "arrow.bool8"):  # their values are not those they are stored as
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
