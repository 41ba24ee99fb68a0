"""``burler lake compact``: many small files into few, in one commit that fences nobody out.

A compacted file is published, with a note of what it replaces beside it, and then the manifest is changed by
compare-and-swap: the new file in, its parts out, if all of them are still listed. No claim is taken: a writer's
commit only adds files, so each of the two can come first. The parts stay in place for readers of older snapshots,
until ``vacuum``.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import msgspec

from burler import times
from burler.errors import LakeError, UsageError
from burler.formats.compression import compressor
from burler.lake import layout, replaced
from burler.lake import manifest as doc
from burler.lake.care.vacuuming import remove_unlisted
from burler.lake.datafile import read_blocks
from burler.lake.lake import Lake, StreamFolder
from burler.lake.replaced import Replacement
from burler.lake.snapshot import DataFile, FileStats, Snapshot
from burler.singer.lines import decode_head, decode_outermost
from burler.storage.base import NewFile, OutcomeUnknown, Store

BELOW_BYTES = 64 * 1024 * 1024
_FILES_A_COMMIT = 20
_COMPRESSIONS = ("gz", "bz2", None)


@dataclass(frozen=True, slots=True)
class CompactedFile:
    """A file that ``compact`` made. Paths are relative to the lake.

    ``bytes`` are those before compression, ``stored_bytes`` those after.
    """

    path: str
    parts: tuple[str, ...]
    records: int
    bytes: int
    stored_bytes: int


@dataclass(frozen=True, slots=True)
class CompactedStream:
    """What ``compact`` did for a stream: files listed before and after it, the new ones, and what it could not read."""

    tap_id: str
    stream: str
    before: int
    after: int
    files: tuple[CompactedFile, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Compaction:
    """What ``compact`` did, stream by stream."""

    streams: tuple[CompactedStream, ...]


def compact(
    store: Store,
    *,
    taps: Sequence[str] | None = None,
    streams: Sequence[str] | None = None,
    below_bytes: int = BELOW_BYTES,
    older_than_seconds: float = 0.0,
    compression: str | None = "gz",
    compression_level: int = 1,
    now: Callable[[], float] = time.time,
    on_progress: Callable[[CompactedStream], object] | None = None,
    on_file: Callable[[int, int], object] | None = None,
) -> Compaction:
    """Put small neighbours in replay order together. Safe while others write and read.

    Streams without a manifest are left as they are: nothing says in which order their files were committed.

    Args:
        below_bytes: the most that a new file may have before compression; files of half of it or more stay.
        older_than_seconds: files whose rows were committed later than that stay.
        compression, compression_level: of the new files; see ``burler.formats.compression``.
        now: seconds since 1970.
        on_progress: called as each stream is done.
        on_file: gets how many small files of the stream have been read, and of how many, as a new one is written.

    Raises:
        UsageError: no such tap or stream; a size or compression that can't be. StorageError: the store fails; what
            was committed until then stays so.
    """
    if below_bytes < 1 or not older_than_seconds >= 0:
        raise UsageError("compact needs a size of 1 byte or more, and an age of 0 seconds or more.")
    if compression not in _COMPRESSIONS:
        raise UsageError(f"compression {compression!r} is unknown. Known: gz, bz2, none.")
    Lake(store).warn_if_alone("compact")
    found = []
    for place in Lake(store).folders(taps=taps, streams=streams):
        before = now() - older_than_seconds
        work = _Work(store, place, below_bytes, before, compression, compression_level, now, on_file)
        found.append(work.run())
        if on_progress is not None:
            on_progress(found[-1])
    return Compaction(tuple(found))


@dataclass(slots=True)
class _Work:
    """The compaction of one stream. ``before``: seconds since 1970; what was committed later stays."""

    store: Store
    place: StreamFolder
    below_bytes: int
    before: float
    compression: str | None
    level: int
    now: Callable[[], float]
    on_file: Callable[[int, int], object] | None

    def run(self) -> CompactedStream:
        nothing = CompactedStream(self.place.tap_id, self.place.stream, 0, 0)
        try:
            snapshot = self.place.read_manifest()
        except LakeError as error:
            return replace(nothing, problems=(str(error),))
        if snapshot is None:
            return nothing
        groups = runs(snapshot, below_bytes=self.below_bytes, is_old=self._is_old)
        done: list[CompactedFile] = []
        problems: list[str] = []
        merging = self._merge(groups, problems)
        while merged := list(islice(merging, _FILES_A_COMMIT)):
            done += self._commit(snapshot, merged)
        count = len(snapshot.files)
        gone = sum(len(file.parts) - 1 for file in done)
        return replace(nothing, before=count, after=count - gone, files=tuple(done), problems=tuple(problems))

    def _is_old(self, file: DataFile) -> bool:
        written = file.stats.written if file.stats else ""
        try:
            moment = times.moment(written or (file.stats.last if file.stats else ""))
        except ValueError:
            return False
        return moment.timestamp() <= self.before

    def _merge(self, groups: Sequence[Run], problems: list[str]) -> Iterator[Merged]:
        read, small = 0, sum(map(len, groups))
        for run in groups:
            written = times.format_time(dt.datetime.fromtimestamp(self.now(), dt.UTC))
            try:
                yield merge(
                    self.store, self.place, run, compression=self.compression, level=self.level, written=written
                )
            except LakeError as error:
                problems.append(str(error))
            read += len(run)
            if self.on_file is not None:
                self.on_file(read, small)

    def _commit(self, snapshot: Snapshot, merged: list[Merged]) -> list[CompactedFile]:
        """Put the new files into the manifest in the place of their parts; those that went in.

        Where somebody else replaced or dropped a part meanwhile, or made the manifest anew, the file is removed again.
        """
        mark = secrets.token_hex(16)
        taken: list[Merged] = []

        def change(document: doc.Document) -> bool:
            taken.clear()
            listed = set(document["files"])
            if document["generation"] == snapshot.generation:
                taken.extend(one for one in merged if listed.issuperset(one.parts))
            if not taken:
                return False
            sequence = doc.add_commit(document, mark)
            gone = {part for one in taken for part in one.parts}
            document["files"] = [name for name in document["files"] if name not in gone]
            doc.add_files(document, [(one.name, replace(one.stats, sequence=sequence)) for one in taken])
            return True

        self.place.change(change, mark=mark)
        unused = [one.name for one in merged if one not in taken]
        if unused:
            remove_unlisted(self.place, unused, now=self.now())
        return [self._told(one) for one in taken]

    def _told(self, one: Merged) -> CompactedFile:
        return CompactedFile(
            path=f"{self.place.folder}/{one.name}",
            parts=tuple(f"{self.place.folder}/{part}" for part in one.parts),
            records=one.stats.records,
            bytes=one.stats.bytes,
            stored_bytes=one.stats.stored_bytes or 0,
        )


Run = tuple[tuple[DataFile, FileStats], ...]

_OUTWEIGHS = 4


def runs(snapshot: Snapshot, *, below_bytes: int, is_old: Callable[[DataFile], bool]) -> list[Run]:
    """Groups of two files or more that are to become one each, in replay order.

    Rows must keep their place: only files that follow each other in replay order, of one schema version. And an
    ACTIVATE_VERSION drops rows by the files they stand in (rows without a version, and rows of later versions that came
    before it), so it can only be the last line that counts in a compacted file, and nothing before it may be of a
    later version.

    Args:
        below_bytes: the most that a group may have, uncompressed; files of half of it or more stay as they are.
        is_old: whether a file may be touched at all.
    """
    found = []
    for stretch in _stretches(snapshot, below_bytes // 2, is_old):
        for run in _cut(stretch, below_bytes):
            kept = _worthwhile(run)
            if len(kept) > 1:
                found.append(tuple(kept))
    return found


def _stretches(
    snapshot: Snapshot, big_bytes: int, is_old: Callable[[DataFile], bool]
) -> Iterator[list[tuple[DataFile, FileStats]]]:
    """Neighbours that may be put together as far as schema and size go."""
    stretch: list[tuple[DataFile, FileStats]] = []
    for file in snapshot.files:
        stats = file.stats
        fits = stats is not None and stats.bytes < big_bytes and is_old(file)
        if stretch and (not fits or file.hash != stretch[-1][0].hash):
            yield stretch
            stretch = []
        if fits and stats is not None:
            stretch.append((file, stats))
    if stretch:
        yield stretch


def _cut(stretch: list[tuple[DataFile, FileStats]], below_bytes: int) -> Iterator[list[tuple[DataFile, FileStats]]]:
    """A stretch in pieces: by size, and where an activation stands."""
    run: list[tuple[DataFile, FileStats]] = []
    size = 0
    newest: int | None = None
    for file, stats in stretch:
        drops = stats.activate_version is not None and newest is not None and newest > stats.activate_version
        if run and (size + stats.bytes > below_bytes or drops):
            yield run
            run, size, newest = [], 0, None
        run.append((file, stats))
        size += stats.bytes
        newest = max((version for version in (newest, *(stats.versions or ())) if version is not None), default=None)
        if stats.activate_version is not None:
            yield run
            run, size, newest = [], 0, None
    if run:
        yield run


def _worthwhile(run: list[tuple[DataFile, FileStats]]) -> list[tuple[DataFile, FileStats]]:
    """Without files at its beginning that outweigh all the rest by far: else each compact writes these rows again."""
    rest = sum(stats.bytes for _, stats in run)
    for at, (_, stats) in enumerate(run):
        rest -= stats.bytes
        if stats.bytes <= _OUTWEIGHS * rest:
            return run[at:]
    return []


_NUMBERS = 1_000_000_000 - replaced.FIRST_NUMBER


@dataclass(frozen=True, slots=True)
class Merged:
    """A compacted file that is published and not committed yet. Names are relative to the stream's folder."""

    name: str
    parts: tuple[str, ...]
    stats: FileStats


_RECORD = b'{"type":"RECORD",'


def merge(store: Store, place: StreamFolder, run: Run, *, compression: str | None, level: int, written: str) -> Merged:
    """Write and publish one file that holds all lines of ``run``'s files, with the note beside it.

    The note comes first: as soon as the file can be seen by listing, its parts are left out.

    Args:
        written: now, RFC 3339.

    Raises:
        LakeError: a part is damaged, or not as its manifest says: nothing is published. StorageError: the store fails.
    """
    below = len(place.folder) + 1
    folder = f"{place.folder}/{run[0][0].hash}"
    new_file = store.new_file(folder)
    try:
        size, stored = _write(store, run, new_file, compression, level)
        stats = replace(merged_stats(run, below), bytes=size, stored_bytes=stored)
        first, last = times.moment(stats.first), times.moment(stats.last)
        note = Replacement(tuple(stats.replaces or ()), _through(store, run, below), written)
        while True:
            number = replaced.FIRST_NUMBER + secrets.randbelow(_NUMBERS)
            path = f"{folder}/{layout.file_name(place.stream, first, last, number, compression=compression)}"
            with contextlib.suppress(FileExistsError):
                _create_note(store, replaced.note_path(path), replaced.to_bytes(note))
                new_file.publish(path)
                break
    finally:
        new_file.discard()
    return Merged(path[below:], tuple(file.path[below:] for file, _ in run), stats)


def merged_stats(run: Run, below: int) -> FileStats:
    """What the manifest will say about the file made of ``run``, less its size; the sequence is left 0.

    Args:
        below: characters of the stream's folder and the slash, to be cut from paths.
    """
    parts = [stats for _, stats in run]
    timed = [stats for stats in parts if stats.records] or parts
    versions = {version for stats in parts for version in stats.versions or ()}
    replaces: dict[str, int] = {}
    for file, stats in run:
        replaces |= stats.replaces or {file.path[below:]: stats.sequence}
    return FileStats(
        records=sum(stats.records for stats in parts),
        bytes=0,
        first=min(stats.first for stats in timed),
        last=max(stats.last for stats in timed),
        clean=all(stats.clean for stats in parts),
        activate_version=parts[-1].activate_version,
        versions=tuple(sorted(versions)) or None,
        rank=run[-1][0].order[0],
        replaces=replaces,
        written=max(stats.written for stats in parts),
    )


def _through(store: Store, run: Run, below: int) -> tuple[str, ...]:
    """Compacted files among the parts, and those that these were made of."""
    found: dict[str, None] = {}
    for file, stats in run:
        if stats.replaces:
            note = replaced.read(store, file.path)
            found |= dict.fromkeys((*(note.through if note else ()), file.path[below:]))
    return tuple(found)


def _create_note(store: Store, path: str, data: bytes) -> None:
    try:
        store.create(path, data)
    except OutcomeUnknown:
        blob = store.read(path)
        if blob is None or blob.data != data:
            raise


def _write(store: Store, run: Run, new_file: NewFile, compression: str | None, level: int) -> tuple[int, int]:
    """All lines of the files, compressed; (bytes before compression, bytes stored)."""
    packer = compressor(compression, level)
    size = stored = 0
    line_1: bytes | None = None

    def put(data: bytes) -> None:
        nonlocal size, stored
        size += len(data)
        ready = packer.compress(data)
        if ready:
            stored += len(ready)
            new_file.write(ready)

    for file, stats in run:
        blocks = read_blocks(store, file.path)
        first = next(blocks)
        if line_1 is None:
            line_1 = first
            put(first)
        elif first != line_1:
            raise LakeError(f"{store.locate(file.path)}: line 1 is not that of the file before it, {run[0][0].path}.")
        records, length = 0, len(first)
        for block in blocks:
            records += _records(store, file, block)
            length += len(block)
            put(block)
        if (records, length) != (stats.records, stats.bytes):
            raise LakeError(
                f"{store.locate(file.path)} holds {records:,} rows in {length:,} bytes, its manifest says "
                f"{stats.records:,} in {stats.bytes:,}. See: burler lake check {store.url}"
            )
    rest = packer.flush()
    new_file.write(rest)
    return size, stored + len(rest)


def _records(store: Store, file: DataFile, block: bytes) -> int:
    """How many of a block's lines are RECORDs.

    Where all begin as burler's own do, that is seen by counting. What stands behind it is then not looked at, as
    ``lake read`` does not; ``check`` does.
    """
    lines = block.count(b"\n")
    if block.startswith(_RECORD) and block.count(b"\n" + _RECORD) == lines - 1:
        return lines
    return _decoded_records(store, file, block)


def _decoded_records(store: Store, file: DataFile, block: bytes) -> int:
    """The same of any lines.

    Raises:
        LakeError: one is no message.
    """
    try:
        return sum(decode_outermost(decode_head, line).type.upper() == "RECORD" for line in block[:-1].split(b"\n"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise LakeError(
            f"{store.locate(file.path)} holds a line that is no Singer message ({error}). "
            f"See: burler lake check {store.url}"
        ) from None
