"""How far a stream of a lake has been replayed: what a bookmark says, and which files are left.

A position is a point in the order in which files were committed::

    {"bookmarks": {"users": {"generation": "5f1c...", "sequence": 12}}}

All files of commits 1 to 12 are out. A manifest that ``rebuild`` made from a readable one continues its generation:
positions in that one count. In the middle of a commit of several files ``"file"`` names the last one of it
that is out. ``"only"`` tells of a run that was narrowed, by schema version or time: it covers nothing else.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from burler.lake.layout import SortKey, sort_key
from burler.lake.reading.choice import Choice
from burler.lake.snapshot import DataFile, Snapshot

Point = tuple[int, SortKey]
"""Where a file was committed: its commit's sequence, then its place among the files of that commit."""


@dataclass(frozen=True, slots=True)
class Position:
    """All files up to here are out. ``file``: of commit ``sequence`` the last that is out, by its path below the
    stream's folder; None: all of them."""

    sequence: int = 0
    file: str | None = None

    def limit(self, folder: str) -> tuple[Any, ...]:
        """What the points of all files that are out are below, or equal to."""
        if self.file is None:
            return (self.sequence + 1,)
        return (self.sequence, sort_key(f"{folder}/{self.file}"))

    def to_wire(self, snapshot: Snapshot, only: Mapping[str, str]) -> dict[str, Any]:
        """The bookmark."""
        wire: dict[str, Any] = {"generation": snapshot.generation, "sequence": self.sequence}
        if self.file is not None:
            wire["file"] = self.file
        if only:
            wire["only"] = dict(only)
        return wire


START = Position()


def position_of(entry: Mapping[str, Any], snapshot: Snapshot, only: Mapping[str, str]) -> tuple[Position, str | None]:
    """Where to go on by a bookmark, and why not there, if it can't be used.

    Args:
        entry: the stream's entry of the state; empty if it has none.
        only: how this run is narrowed.
    """
    generation, sequence, file = entry.get("generation"), entry.get("sequence"), entry.get("file")
    if not entry:
        return START, None
    if not isinstance(sequence, int) or isinstance(sequence, bool) or not isinstance(file, str | None):
        return START, "the state says of it nothing that this lake's reader has written"
    if snapshot.generation is None:
        return START, "it has no manifest now. Make one: burler lake rebuild"
    continued = snapshot.continues.get(generation, -1) if isinstance(generation, str) else -1
    if generation != snapshot.generation and sequence > continued:
        return START, "its manifest was made anew since the state was written"
    if sequence > snapshot.sequence:
        return START, f"the state knows commit {sequence}, the lake only {snapshot.sequence}: it is an older copy"
    if (entry.get("only") or {}) != dict(only):
        return START, "the state is of a run with another --schema, --since or --until"
    return Position(sequence, file), None


@dataclass(frozen=True, slots=True)
class Part:
    """A file to read, and the points of the committed files that come out with it for the first time; none where that
    is not known."""

    file: DataFile
    order: Point
    origins: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """The files to read, in replay order, and the position after each of them; None where it stays where it was.

    ``again``: compacted files of which a part was out before, and comes again.
    """

    parts: tuple[Part, ...]
    after: tuple[Position | None, ...]
    end: Position
    again: tuple[str, ...] = ()


def plan(snapshot: Snapshot, choice: Choice, start: Position) -> Plan:
    """What is left behind ``start``, of the files that are wanted.

    Of a compacted file of which a part is new, the files that it replaced are read, if they are still there.
    """
    limit = start.limit(snapshot.folder)
    replaced = {file.path: file for file in snapshot.replaced}
    parts: list[Part] = []
    again: list[str] = []
    for file in choice.of(snapshot):
        order = file.order
        origins = _origins(snapshot, file, order)
        new = [one for one in origins if _is_behind(one[0], limit)]
        if origins and not new:
            continue
        if 0 < len(new) < len(origins) and all(path in replaced for _, path in new):
            single = [(point, replaced[path]) for point, path in new]
            parts += [Part(one, point, (point,)) for point, one in single if choice.wants(one)]
            continue
        if len(new) < len(origins):
            again.append(file.path)
        parts.append(Part(file, order, tuple(point for point, _ in new)))
    parts.sort(key=lambda part: part.order)
    return Plan(tuple(parts), tuple(_positions(snapshot, parts)), Position(snapshot.sequence), tuple(again))


def _is_behind(point: Point, limit: tuple[Any, ...]) -> bool:
    return point >= limit if len(limit) == 1 else point > limit


def _origins(snapshot: Snapshot, file: DataFile, order: Point) -> list[tuple[Point, str]]:
    """The committed files whose rows are in a file: itself, or those that it replaced. Nothing is known of a file
    without statistics: it may be new or old, and so always counts as new."""
    stats = file.stats
    if stats is None:
        return []
    if not stats.replaces:
        return [(order, file.path)]
    paths = ((f"{snapshot.folder}/{name}", sequence) for name, sequence in stats.replaces.items())
    # "/~": a part that is removed. It keeps its place; its path is no file's, so that none is taken for it.
    return sorted(((sequence, sort_key(path.replace("/~", "/"))), path) for path, sequence in paths)


def _positions(snapshot: Snapshot, parts: list[Part]) -> Iterable[Position | None]:
    """The position once each part is out: never beyond a row of a part that is not.

    A compacted file stands where the last of its files stood: what comes before it in replay order may have been
    committed after the first of them, and then the position waits for it.
    """
    below = len(snapshot.folder) + 1
    points = sorted(point for part in parts for point in part.origins)
    left: list[Point | None] = [None]
    for part in reversed(parts):
        left.append(min((one for one in (*part.origins, left[-1]) if one is not None), default=None))
    left.reverse()
    for at in range(len(parts)):
        first_left = left[at + 1]
        found = bisect_left(points, first_left) if first_left is not None else len(points)
        if not found:
            yield None
            continue
        (sequence, key) = points[found - 1]
        is_whole = first_left is None or first_left[0] > sequence
        yield Position(sequence, None if is_whole else key[3][below:])
