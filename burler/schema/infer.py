"""A schema inferred from records: in one go, or record by record in memory that does not grow with their number.

    infer_schema([{"id": 1}, {"id": 2.5, "tags": []}])
    # {"type": "object", "properties": {"id": {"type": "number"}, "tags": {"type": "array", "items": {}}}}

What is written is what loses nothing: every record that was seen fits the schema and comes out unchanged.
"""

from __future__ import annotations

import datetime as dt
import enum
import math
import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from burler.errors import DataError
from burler.times import is_date, strict

DEFAULT_FORMATS = ("date-time", "date")
DEFAULT_MAP_KEYS = 200

MAX_DEPTH = 100
MAX_FIELDS = 10_000
MAX_NODES = 200_000
_MOST_BITS = 13_000  # of an integer: Python writes no longer ones
_BIG = 1 << 62
_ORDER = ("null", "boolean", "integer", "number", "string", "array", "object")
_ARRAYS = (list, tuple, set, frozenset)
_TIME = re.compile(r"(\d\d:\d\d:\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_UUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}", re.ASCII)


class Inference:
    """Takes records, gives their schema.

    Args:
        map_keys: an object below the record with more different keys than this, over all records, is a map:
            ``additionalProperties`` with one schema for all values.
        formats: formats to look for in text: date-time, date, time, uuid. One is written only if every text
            in that place fits it.

    Raises:
        ValueError: ``map_keys`` below 1 or an unknown format.
    """

    def __init__(self, *, map_keys: int = DEFAULT_MAP_KEYS, formats: Iterable[str] = DEFAULT_FORMATS) -> None:
        chosen = tuple(dict.fromkeys((formats,) if isinstance(formats, str) else formats))
        unknown = [name for name in chosen if name not in FORMATS]
        if unknown:
            raise ValueError(f"format {unknown[0]!r} is not looked for. Known: {', '.join(FORMATS)}.")
        if map_keys < 1:
            raise ValueError(f"map_keys is {map_keys}; it must be 1 or more.")
        self._rules = Rules(map_keys, chosen)
        self._root = Node({"object"})
        self._observer = Observer(self._rules, self._root)
        self.records = 0

    def add(self, record: Mapping[str, Any]) -> None:
        """Widen the schema by one record, which is not changed.

        Raises:
            DataError: it is no object, or holds what JSON has no form for (NaN, an object of the author's, more
                than 100 levels). The inference must not be used any more.
        """
        if not isinstance(record, Mapping):
            raise DataError(f"a record is {_describe(record)}; it must be an object with named fields.")
        try:
            self._observer.see(self._root, record)
        except Unfit as unfit:
            raise _error(unfit) from None
        self.records += 1

    def add_all(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Widen the schema by many records; the error of one names its place in the order, from 1."""
        for record in records:
            try:
                self.add(record)
            except DataError as error:
                raise DataError(f"record {self.records + 1}: {error}") from None

    def merge(self, other: Inference) -> None:
        """Widen the schema by all that another inference saw; that one is not changed.

        Raises:
            ValueError: it went by other rules, so that the outcome would depend on the order.
            DataError: together they have too many fields.
        """
        if (other._rules.map_keys, set(other._rules.formats)) != (self._rules.map_keys, set(self._rules.formats)):
            raise ValueError("two inferences with different map_keys or formats can't be merged.")
        try:
            self._observer.merge(self._root, other._root)
        except Unfit as unfit:
            raise _error(unfit) from None
        self.records += other.records

    def schema(self, *, nullable: bool = False) -> dict[str, Any]:
        """The schema of all records so far: a new object at each call.

        Args:
            nullable: let every field be null, also those that never were: for a small sample of much data.

        Raises:
            DataError: a field holds bytes in some records and text in others.
        """
        try:
            return to_schema(self._root, nullable=nullable, top=True)
        except Unfit as unfit:
            raise _error(unfit) from None

    @property
    def untyped(self) -> list[str]:
        """Dotted paths of fields that were always null, and of arrays that were always empty (``tags[]``)."""
        return untyped(self._root)


def infer_schema(
    records: Iterable[Mapping[str, Any]],
    *,
    nullable: bool = False,
    map_keys: int = DEFAULT_MAP_KEYS,
    formats: Iterable[str] = DEFAULT_FORMATS,
) -> dict[str, Any]:
    """The JSON Schema that all records fit. For the arguments see ``Inference``.

    Raises:
        DataError: no record at all, or one that no schema can be made of.
    """
    inference = Inference(map_keys=map_keys, formats=formats)
    inference.add_all([records] if isinstance(records, Mapping) else records)
    if not inference.records:
        raise DataError("there is no record to infer a schema from.")
    return inference.schema(nullable=nullable)


def _error(unfit: Unfit) -> DataError:
    place = unfit.place
    return DataError(f"field '{place}': {unfit.fact}." if place else f"{unfit.fact}.")


def _describe(value: Any) -> str:
    """What stands where a record was expected."""
    for kind, words in (
        (bool, "true or false"),
        (str, "text"),
        (list, "an array"),
        (int | float | Decimal, "a number"),
    ):
        if isinstance(value, kind):
            return words
    return "null" if value is None else f"of the type {type(value).__name__}"


# ---- one place in the records: the types seen there, and what is below it --------------------------------------------


class Unfit(Exception):
    """A value that no schema can be made of. ``path`` grows from the inside out."""

    def __init__(self, fact: str) -> None:
        super().__init__(fact)
        self.fact = fact
        self.path: list[str | int] = []

    @property
    def place(self) -> str:
        """``address.lines[2]``; of a very deep place the beginning."""
        parts = [f"[{part}]" if isinstance(part, int) else f".{ascii(part)[1:-1]}" for part in reversed(self.path)]
        parts = ["[]" if part == ".[]" else part for part in parts]
        text = "".join(parts).removeprefix(".")
        return text if len(text) <= 80 else text[:77] + "..."


@dataclass(slots=True)
class Rules:
    """What an inference goes by, and how many nodes it holds."""

    map_keys: int
    formats: tuple[str, ...]
    nodes: int = 0


@dataclass(slots=True)
class Node:
    """One place. It only ever widens, and in any order: two nodes that saw different records merge into the one that
    saw both.

    ``kinds`` holds JSON types, and "bytes" for what is written as base64.

    ``formats`` are those that all text so far fits; None before the first text. ``properties`` are the
    fields of objects; if there are too many, ``values`` stands for all of them instead.
    """

    kinds: set[str] = field(default_factory=set)
    formats: frozenset[str] | None = None
    properties: dict[str, Node] = field(default_factory=dict)
    values: Node | None = None
    items: Node | None = None


class Observer:
    """Widens nodes by values.

    Args:
        root: the node of whole records: it never becomes a map, but has at most ``MAX_FIELDS`` fields.
    """

    def __init__(self, rules: Rules, root: Node) -> None:
        self._rules = rules
        self._root = root

    def see(self, node: Node, value: Any, depth: int = 0) -> None:
        """Widen ``node`` so that ``value`` fits.

        Raises:
            Unfit: JSON or burler has no form for it. The node may know part of the value by then.
        """
        kind = type(value)
        if kind is str:
            self._text(node, value)
        elif kind is int and -_BIG < value < _BIG:
            node.kinds.add("integer")
        elif value is None:
            node.kinds.add("null")
        elif kind is bool:
            node.kinds.add("boolean")
        elif kind is dict:
            self._object(node, value, depth)
        elif kind is list:
            self._array(node, value, depth)
        else:
            self._other(node, value, depth)

    def _text(self, node: Node, text: str) -> None:
        if not text.isascii():
            _check_utf8(text, "text")
        node.kinds.add("string")
        if node.formats is None:
            node.formats = frozenset(name for name in self._rules.formats if FORMATS[name](text))
        elif node.formats:
            fitting = [name for name in node.formats if FORMATS[name](text)]
            if len(fitting) < len(node.formats):
                node.formats = frozenset(fitting)

    def _object(self, node: Node, value: Mapping[Any, Any], depth: int) -> None:
        _check_depth(depth)
        node.kinds.add("object")
        properties = node.properties
        name: Any = None
        try:
            for name, part in value.items():
                child = properties.get(name)
                if child is None:
                    child = self._child(node, name)
                    properties = node.properties
                self.see(child, part, depth + 1)
        except Unfit as unfit:
            unfit.path.append(name if isinstance(name, str) else repr(name)[:40])
            raise

    def _child(self, node: Node, name: Any) -> Node:
        """The node of a field that was not seen before."""
        if not isinstance(name, str):
            raise Unfit(f"a field's name must be text, not {type(name).__name__}")
        _check_utf8(name, "a field's name")
        if node.values is not None:
            return node.values
        if node is self._root and len(node.properties) >= MAX_FIELDS:
            raise Unfit(f"records have more than {MAX_FIELDS:,} different fields: their names seem to be data")
        if node is not self._root and len(node.properties) >= self._rules.map_keys:
            return self._to_map(node)
        child = node.properties[str.__str__(name)] = self._new()
        return child

    def _to_map(self, node: Node) -> Node:
        values = self._new()
        children, node.properties = node.properties, {}
        node.values = values
        for child in children.values():
            self.merge(values, child)
        return values

    def _new(self) -> Node:
        self._rules.nodes += 1
        if self._rules.nodes > MAX_NODES:
            self._rules.nodes = _count(self._root)  # some went when objects became maps
            if self._rules.nodes > MAX_NODES:
                raise Unfit(f"records have more than {MAX_NODES:,} different places: field names seem to be data")
        return Node()

    def _array(self, node: Node, value: Any, depth: int) -> None:
        _check_depth(depth)
        node.kinds.add("array")
        if not value:
            return
        if node.items is None:
            node.items = self._new()
        items = node.items
        at = 0
        try:
            for part in value:
                self.see(items, part, depth + 1)
                at += 1
        except Unfit as unfit:
            unfit.path.append(at)
            raise

    def _other(self, node: Node, value: Any, depth: int) -> None:
        """What JSON text never gives: Python's own values and subclasses."""
        if isinstance(value, enum.Enum):
            self.see(node, value.value, depth)
        elif isinstance(value, str):
            self._text(node, value)
        elif isinstance(value, int):
            if value.bit_length() > _MOST_BITS:
                raise Unfit("an integer of more than 3,900 digits")
            node.kinds.add("integer")
        elif isinstance(value, float | Decimal):
            if not (value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)):
                raise Unfit(f"{value} is no number that JSON can write")
            node.kinds.add("number")
        elif isinstance(value, Mapping):
            self._object(node, value, depth)
        elif isinstance(value, _ARRAYS):
            self._array(node, value, depth)
        elif isinstance(value, bytes | bytearray | memoryview):
            node.kinds.add("bytes")
        else:
            self._formatted(node, value)

    def _formatted(self, node: Node, value: Any) -> None:
        """A date, a time or the like: text whose format is known, less those that were not asked for."""
        if isinstance(value, dt.datetime):
            names = {"date-time"} if value.utcoffset() is not None and is_date_time(iso_text(value)) else set()
        elif isinstance(value, dt.date):
            names = {"date"}
        elif isinstance(value, dt.time):
            names = {name for name in ("time",) if is_time(value.isoformat())}
        elif isinstance(value, uuid.UUID):
            names = {"uuid"}
        else:
            raise Unfit(f"a value of the type {type(value).__name__} has no JSON form")
        node.kinds.add("string")
        known = set(self._rules.formats if node.formats is None else node.formats)
        node.formats = frozenset(names & known)

    def merge(self, node: Node, other: Node) -> None:
        """Widen ``node`` by all that ``other`` saw; ``other`` is not changed."""
        node.kinds |= other.kinds
        if other.formats is not None:
            node.formats = other.formats if node.formats is None else node.formats & other.formats
        if other.items is not None:
            if node.items is None:
                node.items = self._new()
            self.merge(node.items, other.items)
        if other.values is not None and node.values is None:
            self._to_map(node)
        if other.values is not None and node.values is not None:
            self.merge(node.values, other.values)
        for name, child in other.properties.items():
            mine = node.properties.get(name) or self._child(node, name)
            self.merge(mine, child)


def to_schema(node: Node, *, nullable: bool = False, is_field: bool = False, top: bool = False) -> dict[str, Any]:
    """The JSON Schema of what a node saw. Where only null was seen it is ``{}``, which refuses nothing.

    Args:
        nullable: let every field be null; ``is_field`` says that this node is one.

    Raises:
        Unfit: bytes and text in one place.
    """
    kinds = set(node.kinds)
    if not kinds - {"null"}:
        return {}
    if {"bytes", "string"} <= kinds:
        raise Unfit("bytes in some records and text in others: one of them would be read wrongly")
    if "bytes" in kinds:
        kinds = kinds - {"bytes"} | {"string"}
    if "number" in kinds:
        kinds.discard("integer")
    if nullable and is_field:
        kinds.add("null")
    types = [name for name in _ORDER if name in kinds]
    out: dict[str, Any] = {"type": types[0] if len(types) == 1 else types}
    if "bytes" in node.kinds:
        out["contentEncoding"] = "base64"
    elif kinds <= {"string", "null"} and node.formats:
        out["format"] = min(node.formats)
    if "array" in kinds:
        out["items"] = _below("[]", node.items or Node(), nullable, is_field=False)
    if node.values is not None:
        out["additionalProperties"] = _below("*", node.values, nullable)
    elif node.properties or top:
        out["properties"] = {name: _below(name, child, nullable) for name, child in node.properties.items()}
    return out


def _below(name: str, node: Node, nullable: bool, *, is_field: bool = True) -> dict[str, Any]:
    try:
        return to_schema(node, nullable=nullable, is_field=is_field)
    except Unfit as unfit:
        unfit.path.append(name)
        raise


def untyped(node: Node, path: str = "") -> list[str]:
    """Dotted paths of the places where nothing but null, or nothing at all, was seen."""
    if not node.kinds - {"null"}:
        return [path] if path else []
    out = [
        found for name, child in node.properties.items() for found in untyped(child, f"{path}.{name}" if path else name)
    ]
    if node.values is not None:
        out += untyped(node.values, path + ".*")
    if "array" in node.kinds:
        out += untyped(node.items or Node(), path + "[]")
    return out


def _count(node: Node) -> int:
    below = [*node.properties.values(), *(part for part in (node.values, node.items) if part is not None)]
    return 1 + sum(map(_count, below))


def _check_depth(depth: int) -> None:
    if depth >= MAX_DEPTH:
        raise Unfit(f"nested deeper than {MAX_DEPTH} levels")


def _check_utf8(text: str, what: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Unfit(f"{what} that UTF-8 can't hold (half a surrogate pair)") from None


# ---- formats of text: only those that a text either has or has not ---------------------------------------------------


def is_date_time(text: str) -> bool:
    """Whether text is an RFC 3339 date-time with a zone, as shaping takes it."""
    return strict(text) is not None


def is_time(text: str) -> bool:
    """Whether text is an RFC 3339 time of day with a zone."""
    found = _TIME.fullmatch(text)
    return found is not None and is_date_time("2000-06-15T" + text)


FORMATS: dict[str, Callable[[str], bool]] = {
    "date-time": is_date_time,
    "date": is_date,
    "time": is_time,
    "uuid": lambda text: _UUID.fullmatch(text) is not None,
}


def iso_text(moment: dt.datetime) -> str:
    """An aware datetime as RFC 3339 text, its offset cut to minutes: only whether it stays in the calendar counts."""
    text = moment.isoformat()
    return text if len(text[text.rindex(":") :]) == 3 and text[-6] in "+-" else text[: text.rindex(":")]
