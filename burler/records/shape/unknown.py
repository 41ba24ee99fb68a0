"""Fields that no schema knows: counted per path, with examples, and what a schema that keeps them looks like.

Shaping drops such fields and notes them here, once a page and path, so a stream whose rows are as declared pays
nothing. What is kept is small whatever the rows hold: at most ``MOST_PATHS`` paths and ``MOST_PLACES`` places below
them, and of a few values a glimpse. Nothing of a row itself is kept: it may be changed, or be a megabyte.
"""

from __future__ import annotations

import datetime as dt
import enum
import numbers
import uuid
from collections.abc import Iterable, Mapping
from decimal import Decimal
from itertools import islice
from typing import Any

from burler.events import DroppedField
from burler.records.shape.values import Template, show

FURTHER = "(further fields)"
MOST_PATHS = 1000  # names beyond that are data
MOST_PLACES = 10_000  # below all paths together: some megabytes
_AT_FIRST, _LATER = 20, 2  # values looked at in one note
_EARLY = 200  # values of a path that are looked at before it gets rare
_RARE = 1000  # objects between two looks from then on


class Unknown:
    """Fields that were dropped.

    Args:
        onto: notes of a page that may yet be thrown away; they are merged into that one once the page is done.
            Values that it needs no more are not looked at.
    """

    __slots__ = ("_fields", "_further", "_onto", "_places")

    def __init__(self, onto: Unknown | None = None) -> None:
        self._fields: dict[Template, _Field] = {}
        self._further = 0
        self._places = 0
        self._onto = onto

    def note(self, path: Template, count: int, examples: Iterable[Any] = ()) -> None:
        """Count objects in which a field was found.

        Args:
            path: names from the row on down; None stands for "items of an array".
            count: so many objects hold it.
            examples: its values, of which the first few are read, and later on few or none.
        """
        field = self._field(path)
        if field is None:
            self._further += count
            return
        field.count += count
        known = (self._onto and self._onto._fields.get(path)) or field
        if known.count < known.due:
            return
        before = field.places
        try:
            for value in islice(examples, _AT_FIRST if known.looked < _EARLY else _LATER):
                field.look(value)
        except Exception:
            field.strange = True
        self._settle(field, before)

    def merge(self, other: Unknown) -> None:
        """Take in all that another one knows; that one is not changed."""
        self._further += other._further
        for path, theirs in other._fields.items():
            field = self._field(path)
            if field is None:
                self._further += theirs.count
                continue
            field.count += theirs.count
            if theirs.looked or theirs.strange:
                before = field.places
                field.merge(theirs)
                self._settle(field, before)

    @property
    def fields(self) -> tuple[DroppedField, ...]:
        """All paths, the most frequent first; without what stands under "(further fields)"."""
        found = sorted(self._fields.items(), key=lambda item: (-item[1].count, show(item[0])))
        return tuple(DroppedField(path, one.count, tuple(one.examples), one.schema()) for path, one in found)

    @property
    def further(self) -> int:
        """How often fields beyond the first ``MOST_PATHS`` came."""
        return self._further

    @property
    def total(self) -> int:
        """The sum of all counts."""
        return self._further + sum(field.count for field in self._fields.values())

    def __bool__(self) -> bool:
        return bool(self._fields)

    def _field(self, path: Template) -> _Field | None:
        field = self._fields.get(path)
        if field is None and len(self._fields) < MOST_PATHS:
            field = self._fields[path] = _Field()
        return field

    def _settle(self, field: _Field, before: int) -> None:
        """After a look: see to it that all fields together stay small, and say when to look again."""
        if self._places + field.places - before > MOST_PLACES:
            field.open()
        self._places += field.places - before
        if field.looked >= _EARLY:
            field.due = field.count + min(field.count // 8, _RARE)


def kept_schema(fields: Iterable[DroppedField]) -> dict[str, Any]:
    """The part of a JSON Schema that would have kept the fields: it is to be merged into the stream's own.

    Made of samples of the values, so each field may be null::

        {"properties": {"address": {"properties": {"floor": {"type": ["null", "integer"]}}}}}
    """
    out: dict[str, Any] = {}
    # The short paths first: in a union a field may be unknown to one branch, and hold unknown fields in another.
    for field in sorted(fields, key=lambda one: len(one.path)):
        node = out
        for part in field.path:
            types, wanted = node.get("type"), "array" if part is None else "object"
            if isinstance(types, list) and wanted not in types:
                node["type"] = [*types, wanted]
            node = node.setdefault("items" if part is None else "properties", {})
            if part is not None:
                node = node.setdefault(part, {})
        node.update(field.schema)
    return out


# ---- what the values of one field were like --------------------------------------------------------------------------

_PLACES = 300  # below one path
_EXAMPLES = 3
_ITEMS = 20  # of an array that are looked at
_DEPTH = 10
_TEXT = 200  # characters; no date is longer


class _Field:
    """One path: how often it came, what its values were like."""

    __slots__ = ("_infer", "_observer", "_rules", "count", "due", "examples", "is_open", "looked", "node", "strange")

    def __init__(self) -> None:
        self.count = 0
        self.looked = 0
        self.due = 0  # the count from which on values are looked at again
        self.examples: list[Any] = []
        """Glimpses of up to three different values, with what is long or deep cut off."""
        from burler.schema import infer  # most runs never load it

        self._infer = infer
        self.node = infer.Node()
        self.is_open = False
        """Its values are too big to be described: objects are taken as they come."""
        self.strange = False
        """Some value has no JSON form that inference knows."""
        self._rules = infer.Rules(_PLACES, infer.DEFAULT_FORMATS)
        self._observer = infer.Observer(self._rules, infer.Node())

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
        except (_TooBig, self._infer.Unfit):
            kind = _kind(value)
            self.strange |= kind is None
            self.node.kinds |= {kind} if kind else set()
            if kind in ("object", "array"):
                self.open()
        if self.is_open or self._rules.nodes > _PLACES:
            self.open()

    def merge(self, other: _Field) -> None:
        """Take in what another one saw of the same path, but for its count."""
        self.looked += other.looked
        self.strange |= other.strange
        for example in other.examples:
            self._keep(example)
        try:
            self._observer.merge(self.node, other.node)
        except self._infer.Unfit:
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
            return {} if self.strange else self._infer.to_schema(self.node, nullable=True, is_field=True)
        except self._infer.Unfit:  # bytes here, text there
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
