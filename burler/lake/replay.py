"""A lake as a Singer tap: its files out as messages again, from where the last run ended.

The one promise: a STATE covers only what has gone out before it. It comes after a file that is out as a whole, never in
one; a stream whose file is broken keeps the position before it, whatever the other streams do.

A position is a point in the order in which files were committed::

    {"bookmarks": {"users": {"generation": "5f1c...", "sequence": 12}}}

All files of commits 1 to 12 are out. A manifest that ``rebuild`` made from a readable one continues its generation:
positions in that one count. In the middle of a commit of several files ``"file"`` names the last one of it
that is out. ``"only"`` tells of a run that was narrowed, by schema version or time: it covers nothing else.

A stream's id in catalogs and states is its name; where another tap of those that are read has a stream of that name,
``<tap_id>-<stream>``.
"""

from __future__ import annotations

import contextlib
import copy
import logging
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from burler.errors import BurlerError, CatalogError, DataError, LakeError, StorageError, UsageError
from burler.lake import layout
from burler.lake.catalogue import read_catalogue
from burler.lake.choice import ALL_TIMES, Choice, Cut, Window, cut_of, no_such_version, refuse_unknown_fields
from burler.lake.datafile import Head, head_by_hash
from burler.lake.lake import Lake, NoSuchStream, StreamFolder
from burler.lake.layout import SortKey, sort_key
from burler.lake.reading import FileLines, Wanted
from burler.lake.snapshot import DataFile, Snapshot
from burler.singer import metadata as md
from burler.singer.catalog import Catalog, CatalogEntry, catalog_from_wire
from burler.singer.messages import Schema, State, to_line
from burler.singer.selection import deselected, prune, stream_selected, with_booleans
from burler.singer.state import entry_of
from burler.storage.base import Store
from burler.suggest import did_you_mean
from burler.words import counted, some

_log = logging.getLogger("burler.lake")
STATE_SECONDS = 1.0
_UNREADABLE = (DataError, StorageError, UsageError)
"""What a file that can't be read raises; the last where we have no right to."""

_NAMELESS = (
    "its name was cut, and nothing in the lake says it whole. A stream's: burler lake rebuild reads it from its files; "
    "a tap's: give it whole (--tap NAME)"
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the options ask for; empty means everything. ``schema``: see ``Snapshot.versions_asked``."""

    taps: tuple[str, ...] = ()
    streams: tuple[str, ...] = ()
    schema: str | None = None
    times: Window = ALL_TIMES
    columns: tuple[str, ...] | None = None


Broken = dict[str, BurlerError]
"""Why streams can't be read, by their ids."""


def _find(lake: Lake, asked: Asked) -> dict[str, StreamFolder]:
    """The streams that the options name by their ids, tap by tap, in the order of each tap's catalog. No manifest is
    read.

    Raises:
        UsageError: a tap or stream that was asked for is not there, or the lake is empty.
    """
    folders = lake.folders(taps=asked.taps or None)
    for folder in dict.fromkeys(path for one in folders if (path := _nameless(one))):
        _log.warning("%s is left out: %s", folder, _NAMELESS)
    there = [one for one in folders if _nameless(one) is None]
    if not there:
        raise lake.is_empty()
    lake.narrowed(there, asked.streams)
    times = Counter(one.stream for one in there)
    found: dict[str, StreamFolder] = {}
    for tap_id, group in groupby(there, lambda one: one.tap_id):
        some = list(group)
        entries = _catalogue(lake.store, tap_id) if len(some) > 1 else ()
        order = {entry["stream"]: at for at, entry in enumerate(entries) if isinstance(entry.get("stream"), str)}
        for one in sorted(some, key=lambda one: (order.get(one.stream, len(order)), one.stream)):
            id = f"{tap_id}-{one.stream}" if times[one.stream] > 1 else one.stream
            if id in found:  # a stream whose own name begins with another tap's
                raise UsageError(
                    f"{lake.store.url}: two streams would both have the id '{id}'. Read one tap at a time: --tap"
                )
            found[id] = one
    return {id: one for id, one in found.items() if not asked.streams or one.stream in asked.streams}


def _nameless(one: StreamFolder) -> str | None:
    """The folder whose name nothing says, the tap's or the stream's; None where both are known."""
    path, *folders = one.folder.split("/")
    for folder, name in zip(folders, one.names, strict=True):
        path += f"/{folder}"
        if name == folder and layout.name_of(folder) is None:
            return path
    return None


def _catalogue(store: Store, tap_id: str) -> Sequence[dict[str, Any]]:
    """The entries of a tap's ``catalogue.json``; it can be spared, so a broken one is only told of."""
    try:
        return (read_catalogue(store, tap_id) or {}).get("streams") or ()
    except LakeError as error:
        _log.warning("%s", error)
        return ()


@dataclass(frozen=True, slots=True)
class ReplayStream:
    """A stream to replay: one snapshot of it, and what of it comes out.

    ``name``: the stream's name on the wire; None for the one in its files. ``metadata``: what the catalog says of it.
    ``only``: how the run is narrowed, as the state notes it.
    """

    id: str
    snapshot: Snapshot
    choice: Choice
    columns: tuple[str, ...] | None = None
    name: str | None = None
    metadata: md.MetadataMap = field(default_factory=dict)
    only: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_part(self) -> bool:
        """Whether some rows are left out: then no table is whole, and none may be activated."""
        return bool(self.only)

    def shaped(self, head: Head) -> tuple[bytes, Cut]:
        """The SCHEMA line that goes out for a file's, and what is taken out of the rows behind it."""
        message = head.message
        always = [*message.key_properties, *message.bookmark_properties]
        metadata = {crumb: dict(values) for crumb, values in self.metadata.items()}
        for name in always:
            metadata.setdefault(("properties", name), {})["inclusion"] = md.AUTOMATIC
        keep = None
        if self.columns is not None:
            keep = list(dict.fromkeys((*always, *self.columns)))
            for name in head.properties:
                if name not in keep:
                    metadata.setdefault(("properties", name), {}).update(inclusion=md.UNSUPPORTED)
        off = deselected(metadata, stream=self.id)
        cut = cut_of(off, keep)
        if not cut and self.name in (None, message.stream):
            return head.line_out(), cut
        schema = prune(message.schema, metadata, stream=self.id) if cut else message.schema
        pruned = Schema(self.name or message.stream, schema, message.key_properties, message.bookmark_properties)
        return Head(b"", pruned, is_plain=False).line_out(), cut

    def newest(self, store: Store) -> Head | None:
        """The newest SCHEMA of those that are wanted; None where the lake knows none."""
        digest = self.snapshot.newest(self.choice.hashes)
        return None if digest is None else head_by_hash(store, self.snapshot, digest)


def choose(store: Store, asked: Asked, catalog: Catalog | None, broken: Broken) -> list[ReplayStream]:
    """The streams to replay: each with the one snapshot of its manifest that the run uses.

    Args:
        broken: streams whose manifest can't be read are put here, and left out.

    Raises:
        UsageError: what was asked for is not there. CatalogError: the catalog selects a stream that the lake does not
            have, or two streams would go out under one name. StorageError: the store fails.
    """
    made = _load(store, asked, catalog, broken)
    if not broken:  # else the column may be in a stream that can't be looked at
        refuse_unknown_fields(asked.columns or (), [(one.choice, one.snapshot) for one in made])
    _refuse_one_name_twice(made)
    return made


def _load(store: Store, asked: Asked, catalog: Catalog | None, broken: Broken) -> list[ReplayStream]:
    """As ``choose``, without the question of whether they can go out together."""
    lake = Lake(store)
    found = _find(lake, asked)
    if catalog is not None:
        found = _selected(found, catalog)
    snapshots: list[Snapshot] = []
    made: list[ReplayStream] = []
    for id, place in found.items():
        try:
            snapshot = lake.snapshot(*place.names)
        except NoSuchStream:  # a folder of somebody else, or of a writer that has just begun
            if place.stream in asked.streams:
                raise
            continue
        except (LakeError, UsageError) as error:  # broken; or we have no right to read it
            broken[id] = error
            continue
        snapshots.append(snapshot)
        hashes = snapshot.versions_asked(asked.schema)
        if asked.schema is not None and not hashes:
            _log.info("stream '%s' has no schema version '%s'; it is left out", id, asked.schema)
            continue
        entry = None if catalog is None else catalog.entries[id]
        made.append(
            ReplayStream(
                id=id,
                snapshot=snapshot,
                choice=Choice(hashes, asked.times),
                columns=asked.columns,
                name=None if entry is None or entry.emitted_name == place.stream else entry.emitted_name,
                metadata={} if entry is None else with_booleans(entry.metadata, stream=id),
                only=_only(snapshot, hashes, asked),
            )
        )
    if not made and snapshots and asked.schema is not None and not broken:
        raise no_such_version(asked.schema, snapshots)
    return made


def _only(snapshot: Snapshot, hashes: frozenset[str] | None, asked: Asked) -> dict[str, str]:
    only = {"since": asked.times.since, "until": asked.times.until}
    if hashes is not None and asked.schema is not None:
        first = next(name for digest, name in snapshot.version_names.items() if digest in hashes)
        only["schema"] = first + (".." if asked.schema.endswith("..") else "")
    return {key: value for key, value in only.items() if value is not None}


def _selected(found: dict[str, StreamFolder], catalog: Catalog) -> dict[str, StreamFolder]:
    """Those that the catalog selects, in the lake's own order."""
    wanted = [id for id, entry in catalog.entries.items() if stream_selected(entry.metadata, stream=id)]
    for id in wanted:
        if id not in found:
            raise CatalogError(
                f"the catalog selects stream '{id}', which is not among those that are read.{did_you_mean(id, found)} "
                f"There are: {some(list(found))}. Make the catalog anew: burler lake read LAKE --discover"
            )
    return {id: one for id, one in found.items() if id in wanted}


def _refuse_one_name_twice(streams: list[ReplayStream]) -> None:
    """Two streams under one name on the wire would be one table to a target."""
    seen: dict[str, ReplayStream] = {}
    for one in streams:
        name = one.name or one.snapshot.stream
        other = seen.setdefault(name, one)
        if other is not one:
            raise CatalogError(
                f"taps '{other.snapshot.tap_id}' and '{one.snapshot.tap_id}' both have a stream '{name}', which would "
                f"be one table to a target. Read one tap: --tap {other.snapshot.tap_id}\nOr give one of them another "
                "'stream_alias' in a catalog: burler lake read LAKE --discover"
            )


def discover(store: Store, asked: Asked, broken: Broken) -> Catalog:
    """Every stream that the options name, with its newest schema among those that they name.

    What stands in a tap's ``catalogue.json`` beside the schema is kept: metadata, further keys. Streams are selected
    unless it says otherwise.

    Args:
        broken: streams whose manifest, or the file that a schema is read from, is broken are put here, and left out.

    Raises:
        UsageError: what was asked for is not there. StorageError: the store fails.
    """
    entries: dict[str, CatalogEntry] = {}
    known: dict[str, dict[str, CatalogEntry]] = {}
    for stream in _load(store, asked, None, broken):
        try:
            head = stream.newest(store)
        except (LakeError, UsageError) as error:
            broken[stream.id] = error
            continue
        if head is None:
            continue
        tap_id = stream.snapshot.tap_id
        if tap_id not in known:
            known[tap_id] = _noted(store, tap_id)
        entries[stream.id] = _entry(stream, head, known[tap_id].get(head.message.stream))
    return Catalog(entries)


def _noted(store: Store, tap_id: str) -> dict[str, CatalogEntry]:
    """What a tap's ``catalogue.json`` says, by stream."""
    try:
        noted = catalog_from_wire({"streams": list(_catalogue(store, tap_id))})
        return {one.stream: one for one in noted.entries.values()}
    except CatalogError as error:
        _log.warning("%s", error)
        return {}


def _entry(stream: ReplayStream, head: Head, noted: CatalogEntry | None) -> CatalogEntry:
    message = head.message
    compiled = md.standard_metadata(
        message.schema,
        key_properties=message.key_properties,
        replication_method=None,
        replication_key=message.bookmark_properties[0] if len(message.bookmark_properties) == 1 else None,
    )
    compiled[()]["selected"] = True
    for crumb, values in (noted.metadata if noted else {}).items():
        if crumb in compiled:
            compiled[crumb] = {**copy.deepcopy(values), **compiled[crumb]} if crumb else {**compiled[()], **values}
    for name in message.bookmark_properties:
        compiled.get(("properties", name), {})["inclusion"] = md.AUTOMATIC
    compiled[()]["table-key-properties"] = list(message.key_properties)
    return CatalogEntry(
        tap_stream_id=stream.id,
        stream=message.stream,
        schema=message.schema,
        key_properties=message.key_properties,
        metadata=compiled,
        extra=dict(noted.extra) if noted else {},
    )


# ---- what is left of a stream ----------------------------------------------------------------------------------------

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


# ---- the run ---------------------------------------------------------------------------------------------------------


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


@contextlib.contextmanager
def _reading() -> Iterator[None]:
    """What a store or a file raises here ends its stream, and not the run."""
    try:
        yield
    except _UNREADABLE as error:
        raise _Broken(error) from error


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
                _log.info("stream '%s': %s of %s", stream.id, counted(rows, "row"), counted(files, "file"))
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
            with _reading():
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
        with _reading():
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
                with _reading():
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
