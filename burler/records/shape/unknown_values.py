"""What the values of one unknown field were like: its types for a schema, and a few examples, cut short.

In a file of its own since it needs the inference of schemas, which most runs never load.
"""

from __future__ import annotations

import datetime as dt
import enum
import numbers
import uuid
from collections.abc import Mapping
from decimal import Decimal
from itertools import islice
from typing import Any

from burler.schema.infer import DEFAULT_FORMATS, Node, Observer, Rules, Unfit, to_schema

_PLACES = 300  # below one path
_EXAMPLES = 3
_ITEMS = 20  # of an array that are looked at
_DEPTH = 10
_TEXT = 200  # characters; no date is longer


class Field:
    """One path: how often it came, what its values were like."""

    __slots__ = ("_observer", "_rules", "count", "due", "examples", "is_open", "looked", "node", "strange")

    def __init__(self) -> None:
        self.count = 0
        self.looked = 0
        self.due = 0  # the count from which on values are looked at again
        self.examples: list[Any] = []
        """Glimpses of up to three different values, with what is long or deep cut off."""
        self.node = Node()
        self.is_open = False
        """Its values are too big to be described: objects are taken as they come."""
        self.strange = False
        """Some value has no JSON form that inference knows."""
        self._rules = Rules(_PLACES, DEFAULT_FORMATS)
        self._observer = Observer(self._rules, Node())

    @property
    def places(self) -> int:
        """So many places below it are known."""
        return 0 if self.is_open else self._rules.nodes

    def look(self, value: Any) -> None:
        """Take in what a value is like."""
        self.looked += 1
        if len(self.examples) < _EXAMPLES:
            self._keep(_glimpse(value, [_TEXT], 0))
        try:
            self._observer.see(self.node, _sample(value, [_PLACES], 0))
        except (_TooBig, Unfit):
            kind = _kind(value)
            self.strange |= kind is None
            self.node.kinds |= {kind} if kind else set()
            if kind in ("object", "array"):
                self.open()
        if self.is_open or self._rules.nodes > _PLACES:
            self.open()

    def merge(self, other: Field) -> None:
        """Take in what another one saw of the same path, but for its count."""
        self.looked += other.looked
        self.strange |= other.strange
        for example in other.examples:
            self._keep(example)
        try:
            self._observer.merge(self.node, other.node)
        except Unfit:
            self.open()
        if self.is_open or other.is_open or self._rules.nodes > _PLACES:
            self.open()

    def open(self) -> None:
        """Describe no more than the types."""
        self.is_open = True
        self.node.properties, self.node.values, self.node.items = {}, None, None

    def schema(self) -> dict[str, Any]:
        """A JSON Schema for the values, which may all be null; ``{}`` where nothing is known for sure."""
        try:
            return {} if self.strange else to_schema(self.node, nullable=True, is_field=True)
        except Unfit:  # bytes here, text there
            return {}

    def _keep(self, example: Any) -> None:
        if len(self.examples) < _EXAMPLES and not any(
            type(known) is type(example) and known == example for known in self.examples
        ):
            self.examples.append(example)


class _TooBig(Exception):
    """A value with more fields, or deeper, than a field's description goes."""


def _sample(value: Any, left: list[int], depth: int) -> Any:
    """A copy for the inference: long text cut, of arrays the first items.

    Args:
        left: so many more places may be looked at, in a box.

    Raises:
        _TooBig: it has more, or is too deep.
    """
    if isinstance(value, str):
        return value[:_TEXT] if len(value) > _TEXT else value
    if isinstance(value, bytes | bytearray | memoryview):
        return b""
    if not isinstance(value, Mapping | list | tuple | set | frozenset):
        return value
    left[0] -= min(len(value), _ITEMS) if not isinstance(value, Mapping) else len(value)
    if left[0] < 0 or depth >= _DEPTH:
        raise _TooBig
    if isinstance(value, Mapping):
        return {name: _sample(part, left, depth + 1) for name, part in value.items()}
    return [_sample(part, left, depth + 1) for part in islice(value, _ITEMS)]


def _kind(value: Any) -> str | None:
    """The JSON type of what inference refuses; None if burler knows none."""
    if isinstance(value, Mapping):
        return "object"
    if isinstance(value, list | tuple | set | frozenset):
        return "array"
    if isinstance(value, numbers.Integral):
        return "integer"
    if isinstance(value, numbers.Real | Decimal):  # NaN, NumPy's numbers
        return "number"
    return "string" if isinstance(value, str | dt.timedelta) else None


def _glimpse(value: Any, left: list[int], depth: int) -> Any:
    """A small copy of a value that JSON can write; ``left`` are the characters it may still have, in a box."""
    if isinstance(value, enum.Enum):
        value = value.value
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return value if not isinstance(value, int) or value.bit_length() < 1000 else "an integer of hundreds of digits"
    if isinstance(value, Decimal):
        return float(value) if value.is_finite() and abs(value.adjusted()) < 300 else str(value)[:_TEXT]
    if isinstance(value, dt.date | dt.time | dt.timedelta | uuid.UUID):
        value = str(value)
    if isinstance(value, str):
        text = str(value[: max(0, left[0])])
        left[0] -= len(text)
        return text
    if isinstance(value, Mapping | list | tuple | set | frozenset) and depth < 3:
        left[0] -= 2
        if not isinstance(value, Mapping):
            return [_glimpse(part, left, depth + 1) for part in islice(value, 3) if left[0] > 0]
        parts = islice(value.items(), 5)
        return {str(name)[:40]: _glimpse(part, left, depth + 1) for name, part in parts if left[0] > 0}
    return f"({type(value).__name__})"
