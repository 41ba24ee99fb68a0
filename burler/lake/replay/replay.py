"""A lake as a Singer tap: its files out as messages again, from where the last run ended.

The one promise: a STATE covers only what has gone out before it. It comes after a file that is out as a whole, never in
one; a stream whose file is broken keeps the position before it, whatever the other streams do.

A position is a point in the order in which files were committed::

    {"bookmarks": {"users": {"generation": "5f1c...", "sequence": 12}}}

All files of commits 1 to 12 are out. A manifest that ``rebuild`` made from a readable one continues its generation:
positions in that one count. In the middle of a commit of several files ``"file"`` names the last one of it
that is out. ``"only"`` tells of a run that was narrowed, by schema version or time: it covers nothing else.
"""

from __future__ import annotations

import copy
import logging
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from burler.errors import BurlerError, DataError, StorageError, UsageError
from burler.lake.choice import Choice
from burler.lake.layout import SortKey, sort_key
from burler.lake.reading import FileLines, Wanted
from burler.lake.replay.streams import ReplayStream
from burler.lake.snapshot import DataFile, Snapshot
from burler.singer.messages import State, to_line
from burler.singer.state import entry_of
from burler.storage.base import Store

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
        origins = origins_of(snapshot, file)
        new = [one for one in origins if is_behind(one[0], limit)]
        if origins and not new:
            continue
        if 0 < len(new) < len(origins) and all(path in replaced for _, path in new):
            single = [(point, replaced[path]) for point, path in new]
            parts += [Part(one, point, (point,)) for point, one in single if choice.wants(one)]
            continue
        if len(new) < len(origins):
            again.append(file.path)
        parts.append(Part(file, file.order, tuple(point for point, _ in new)))
    parts.sort(key=lambda part: part.order)
    return Plan(tuple(parts), tuple(_positions(snapshot, parts)), Position(snapshot.sequence), tuple(again))


def is_behind(point: Point, limit: tuple[Any, ...]) -> bool:
    """Whether a point lies behind what ``Position.limit`` says."""
    return point >= limit if len(limit) == 1 else point > limit


def origins_of(snapshot: Snapshot, file: DataFile) -> list[tuple[Point, str]]:
    """The committed files whose rows are in a file: itself, or those that it replaced. Nothing is known of a file
    without statistics: it may be new or old, and so always counts as new."""
    stats = file.stats
    if stats is None:
        return []
    if not stats.replaces:
        return [(file.order, file.path)]
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


_log = logging.getLogger("burler.lake")
STATE_SECONDS = 1.0
_UNREADABLE = (DataError, StorageError, UsageError)
"""What a file that can't be read raises; the last where we have no right to."""


@dataclass(slots=True)
class Replayed:
    """What came out: RECORDs and files of each stream; ``errors``: of the streams that could not be read to their end.
    ``stopped``: told to, before the end."""

    records: dict[str, int] = field(default_factory=dict)
    files: dict[str, int] = field(default_factory=dict)
    errors: dict[str, BurlerError] = field(default_factory=dict)
    stopped: bool = False


class _Broken(Exception):
    """A file can't be read. ``reason``: why."""

    def __init__(self, reason: BurlerError) -> None:
        super().__init__()
        self.reason = reason


class _Stopped(Exception):
    pass


class _Reading:
    """What a store or a file raises here ends its stream, and not the run."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        if isinstance(error, _UNREADABLE):
            raise _Broken(error) from error


_READING = _Reading()


class Replay:
    """One run.

    Args:
        streams: in the order in which they go out.
        state: of an earlier run; what it says of other streams is handed on.
        write: gets complete lines. Its errors end the run.
        flush: called behind each STATE.
        monotonic: seconds of a clock that never goes back; for the time between two STATEs.
        should_stop: asked between blocks of about a MiB.
    """

    def __init__(
        self,
        store: Store,
        streams: Sequence[ReplayStream],
        *,
        write: Callable[[bytes], object],
        monotonic: Callable[[], float],
        state: Mapping[str, Any] | None = None,
        flush: Callable[[], object] = lambda: None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._store = store
        self._streams = streams
        self._write = write
        self._flush = flush
        self._monotonic = monotonic
        self._should_stop = should_stop
        self._state: dict[str, Any] = copy.deepcopy(dict(state or {}))
        self._state["bookmarks"] = self._state.get("bookmarks") or {}
        self._written: bytes | None = None
        self._due = monotonic() + STATE_SECONDS
        self.done = Replayed()

    def run(self) -> Replayed:
        """Write everything that is new. A stream that can't be read ends there, and the others go on.

        Raises:
            OutputClosed, StorageError: what ``write`` raises.
        """
        plans = [(one, self._plan(one)) for one in self._streams]
        try:
            for stream, its_plan in plans:
                try:
                    self._stream(stream, its_plan)
                except _Broken as broken:
                    self.done.errors[stream.id] = broken.reason
                rows, files = self.done.records[stream.id], self.done.files[stream.id]
                _log.info("stream '%s': %s row(s) of %s file(s)", stream.id, rows, files)
        except _Stopped:
            self.done.stopped = True
        self._emit_state(last=True)
        return self.done

    def _plan(self, stream: ReplayStream) -> Plan:
        """What is left of a stream; said aloud where it is more than what is new."""
        snapshot = stream.snapshot
        start, why_not = position_of(entry_of(self._state, stream.id), snapshot, stream.only)
        if why_not is not None:
            _log.warning("stream '%s' is read from the start: %s", stream.id, why_not)
            self._state["bookmarks"].pop(stream.id, None)
        elif snapshot.generation is None:
            _log.warning(
                "stream '%s' has no manifest with commits to count, so each run reads it from the start. "
                "Make one: burler lake rebuild",
                stream.id,
            )
        made = plan(snapshot, stream.choice, start)
        for path in made.again:
            _log.warning("stream '%s': %s was compacted of old and new rows; the old ones come again", stream.id, path)
        return made

    def _stream(self, stream: ReplayStream, its_plan: Plan) -> None:
        self.done.records[stream.id] = self.done.files[stream.id] = 0
        if not its_plan.parts:
            with _READING:
                head = stream.newest(self._store)
            if head is not None:
                self._write(stream.shaped(head)[0])
        before: bytes | None = None
        for part, position in zip(its_plan.parts, its_plan.after, strict=True):
            before = self._part(stream, part, before)
            self.done.files[stream.id] += 1
            self._move(stream, position)
            self._emit_state()
        self._move(stream, its_plan.end)
        self._emit_state()

    def _part(self, stream: ReplayStream, part: Part, before: bytes | None) -> bytes:
        """One file. ``before``: line 1 of the file before it; gives that of this one."""
        if self._should_stop():
            raise _Stopped
        with _READING:
            opened = FileLines(self._store, part.file)
        with opened:
            line, cut = stream.shaped(opened.head)
            if opened.head.line != before:
                self._write(line)
            wanted = Wanted(
                times=stream.choice.times, cut=cut or None, name=stream.name, activations=not stream.is_part
            )
            pages = opened.lines(wanted)
            while True:
                with _READING:
                    page = next(pages, None)
                if page is None:
                    break
                self._write(page[0])
                self.done.records[stream.id] += page[1]
                if self._should_stop():
                    raise _Stopped
        for kind, number in opened.skipped.items():
            _log.warning("%s, line %d: %s does not belong there and is left out", part.file.path, number, kind)
        return opened.head.line

    def _move(self, stream: ReplayStream, position: Position | None) -> None:
        if position is not None and stream.snapshot.generation is not None:
            self._state["bookmarks"][stream.id] = position.to_wire(stream.snapshot, stream.only)

    def _emit_state(self, *, last: bool = False) -> None:
        """A STATE, if one is due and says something new; the last one comes in any case."""
        if not last and self._monotonic() < self._due:
            return
        line = to_line(State(self._state))
        if line != self._written:
            self._write(line)
            self._written = line
        self._flush()
        self._due = self._monotonic() + STATE_SECONDS
