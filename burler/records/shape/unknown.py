"""Fields that no schema knows: counted per path, with examples, and what a schema that keeps them looks like.

Shaping drops such fields and notes them here, once a page and path, so a stream whose rows are as declared pays
nothing. What is kept is small whatever the rows hold: at most ``MOST_PATHS`` paths and ``MOST_PLACES`` places below
them, and of a few values a glimpse. Nothing of a row itself is kept: it may be changed, or be a megabyte.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

from burler.events import DroppedField

if TYPE_CHECKING:
    from burler.records.shape.unknown_values import Field

Template = tuple[str | None, ...]
"""A path for any row: names, and None for the items of an array."""

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
        self._fields: dict[Template, Field] = {}
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

    def _field(self, path: Template) -> Field | None:
        field = self._fields.get(path)
        if field is None and len(self._fields) < MOST_PATHS:
            from burler.records.shape.unknown_values import Field  # loads the inference

            field = self._fields[path] = Field()
        return field

    def _settle(self, field: Field, before: int) -> None:
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


def show(path: Template) -> str:
    """``address.lines[].text``."""
    text = ""
    for part in path:
        if part is None:
            text += "[]"
        else:
            text += f".{part}" if text else part
    return text
