"""Markers: what stands among the rows of a page and is no row.

They are put there while user code runs, so their place says which rows were yielded before them. None of them goes
out; whoever writes the page acts on them in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

GREATEST: Any = object()
"""In place of a value: the greatest that is out."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What authors keep beside their rows, as it stood when everything before it was in the page.

    Attributes:
        positions: each ``stream.state``, as JSON.
        sources: the entries of each ``stream.source_state``; streams without any are left out.
    """

    positions: bytes
    sources: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)


class Marker:
    """Base of all markers."""

    __slots__ = ()


@dataclass(slots=True)
class UnitBegins(Marker):
    """What follows was yielded by another call of the sync function: for the next partition, or a further try."""

    unit: Any


@dataclass(slots=True)
class UnitEnds(Marker):
    """The function has come to its end. ``states``: what its authors keep at that moment."""

    unit: Any
    states: Snapshot


@dataclass(slots=True)
class UnitBroken(Marker):
    """A partition that can't begin: what the state says of it is no bookmark."""

    number: int
    where: str
    error: BaseException


@dataclass(slots=True)
class Released(Marker):
    """What belongs to all parents so far is in the page. ``asked``: the parents' rows with what came for each, for
    bookmark functions that want to know."""

    states: Snapshot
    asked: list[tuple[str, Mapping[str, Any], dict[str, Any]]] = field(default_factory=list)


@dataclass(slots=True)
class Asked(Marker):
    """The same of parents that are substreams themselves, for their bookmark functions."""

    asked: list[tuple[str, Mapping[str, Any], dict[str, Any]]]


@dataclass(slots=True)
class CallFailed(Marker):
    """A substream's function failed for one row of its parent. ``above``: that row, its parent's, and so on."""

    stream: str
    where: str
    error: BaseException
    above: Mapping[str, Mapping[str, Any]]


@dataclass(slots=True)
class CallIncomplete(Marker):
    """A substream's function has ended for one row of its parent, and its source said that there is more: ``why``."""

    stream: str
    why: str
    above: Mapping[str, Mapping[str, Any]]


@dataclass(slots=True)
class Skipped(Marker):
    """A substream that has ended was not called for rows of this unit."""

    stream: str


@dataclass(slots=True)
class SaveHere(Marker):
    """``stream.save_bookmark(value)``: the value, ``GREATEST`` of rows that are out, or UNSET where the bookmark
    follows its strategy. ``states``: where it is safe to say, what its authors keep at that moment."""

    stream: str
    value: Any = msgspec.UNSET
    states: Snapshot | None = None


@dataclass(slots=True)
class Kept(Marker):
    """What authors keep beside their rows, as it is true of all rows before this place."""

    states: Snapshot


@dataclass(slots=True)
class CaughtUp(Marker):
    """A tail function has handed on all that its sync function gave."""

    stream: str


@dataclass(slots=True)
class VersionBegins(Marker):
    """A ``with stream.full_table()`` block begins."""

    stream: str


@dataclass(slots=True)
class VersionEnds(Marker):
    """The block has ended; ``whole`` says that it did so without an error."""

    stream: str
    whole: bool


@dataclass(slots=True)
class SourceDropped(Marker):
    """What was saved of a source no longer counts. ``left``: the entries that still do."""

    stream: str
    left: tuple[Any, ...]


@dataclass(slots=True)
class NotModified(Marker):
    """The source says that nothing has changed."""

    stream: str


def cut(items: Sequence[Any]) -> Iterator[tuple[Sequence[Any], Marker | None]]:
    """Items cut at their markers: ``(rows and pages, the marker behind them)``, None behind the last."""
    if not any(issubclass(kind, Marker) for kind in set(map(type, items))):
        yield items, None
        return
    begun = 0
    for at, item in enumerate(items):
        if isinstance(item, Marker):
            yield items[begun:at], item
            begun = at + 1
    if begun < len(items):
        yield items[begun:], None
