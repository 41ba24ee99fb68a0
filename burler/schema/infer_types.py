"""What inference knows of one place in the records: the types seen there, and what is below it.

A ``Node`` only ever widens, and widening is associative and commutative: the order of the records does not
matter, and two nodes that saw different records merge into the one that saw both.
"""

from __future__ import annotations

import datetime as dt
import enum
import math
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from burler.schema.infer_formats import FORMATS, is_date_time, is_time, iso_text

MAX_DEPTH = 100
MAX_FIELDS = 10_000
MAX_NODES = 200_000
_MOST_BITS = 13_000  # of an integer: Python writes no longer ones
_BIG = 1 << 62
_ORDER = ("null", "boolean", "integer", "number", "string", "array", "object")
_ARRAYS = (list, tuple, set, frozenset)


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
    """One place. ``kinds`` holds JSON types, and "bytes" for what is written as base64.

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
