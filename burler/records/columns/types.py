"""Column types as plain data: what Spark's and Arrow's types are made from, and how two become one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

DIGITS = 38
"""Decimal digits of both Spark's and Arrow's exact numbers."""
INT64_DIGITS = 19


@dataclass(frozen=True, slots=True)
class Scalar:
    """One of bigint, double, boolean, string, timestamp, date, binary; ``null`` for a field that holds no more.

    ``string`` also stands for everything without a narrower type: a JSON string is kept as its text,
    any other value as its JSON source text. ``json`` is text as well, of any value its JSON source text, so that
    nothing is lost; ``record_type`` never gives it. ``open`` stands for any JSON value while types are made, and
    becomes ``string`` or ``variant`` (Spark's type for any JSON value; text to Arrow). ``wide`` is a double whose
    values are integers in one version of the schema: one that no double holds exactly does not fit.
    """

    name: str


@dataclass(frozen=True, slots=True)
class DecimalOf:
    """decimal(38, scale)."""

    scale: int

    def has_room(self, digits: int) -> bool:
        """Whether it holds every number of so many digits before the point."""
        return DIGITS - self.scale >= digits


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of items of one type."""

    item: FieldType


@dataclass(frozen=True, slots=True)
class MapOf:
    """Text keys, values of one type."""

    value: FieldType


@dataclass(frozen=True, slots=True)
class StructOf:
    """Named fields in order."""

    fields: tuple[tuple[str, FieldType], ...]

    def get(self, name: str) -> FieldType | None:
        """The type of a field, None when there is none of that name."""
        return next((kind for field, kind in self.fields if field == name), None)


FieldType = Scalar | DecimalOf | ListOf | MapOf | StructOf

BIGINT, DOUBLE, BOOLEAN, STRING, TIMESTAMP, DATE, BINARY, NULL, JSON = map(
    Scalar, ("bigint", "double", "boolean", "string", "timestamp", "date", "binary", "null", "json")
)
OPEN, VARIANT, WIDE = Scalar("open"), Scalar("variant"), Scalar("wide")


def widest(kinds: Iterable[FieldType]) -> FieldType | None:
    """The type that holds every value of all of these exactly (numbers: by the number rule); None if there is none."""
    different = {kind for kind in kinds if kind != NULL}
    rest = different - {STRING}
    if len(rest) < 2:
        found = next(iter(rest), NULL)
    elif rest == {BIGINT, DOUBLE}:
        found = DOUBLE
    else:
        scales = [kind.scale for kind in rest if isinstance(kind, DecimalOf)]
        if not scales or len(scales) + (BIGINT in rest) < len(rest):
            return None
        found = DecimalOf(max(scales))
        if BIGINT in rest and not found.has_room(INT64_DIGITS):
            return None
    return STRING if STRING in different else found  # source text is kept, so nothing is lost


def replaced(kind: FieldType, old: FieldType, new: FieldType) -> FieldType:
    """``kind`` with ``new`` wherever it has ``old``, at any depth."""
    if kind == old:
        return new
    match kind:
        case StructOf(fields):
            return StructOf(tuple((name, replaced(inner, old, new)) for name, inner in fields))
        case ListOf(item):
            return ListOf(replaced(item, old, new))
        case MapOf(value):
            return MapOf(replaced(value, old, new))
    return kind


def names_in(kind: FieldType) -> Iterator[str]:
    """The names of all fields, at any depth."""
    match kind:
        case StructOf(fields):
            for name, inner in fields:
                yield name
                yield from names_in(inner)
        case ListOf(inner) | MapOf(inner):
            yield from names_in(inner)


def holds(kind: FieldType, wanted: FieldType) -> bool:
    """Whether ``wanted`` stands anywhere in ``kind``."""
    match kind:
        case StructOf(fields):
            return any(holds(inner, wanted) for _, inner in fields)
        case ListOf(inner) | MapOf(inner):
            return holds(inner, wanted)
    return kind == wanted
