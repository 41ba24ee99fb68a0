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
from burler.lake.rolling import check_compression
from burler.lake.snapshot import DataFile, FileStats, Snapshot
from burler.singer.lines import decode_head, decode_outermost
from burler.storage.base import OutcomeUnknown, Store

BELOW_BYTES = 64 * 1024 * 1024
_FILES_A_COMMIT = 20


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
    check_compression(compression)
    lake = Lake(store)
    lake.warn_if_alone("compact")
    found = []
    for place in lake.folders(taps=taps, streams=streams):
        before = now() - older_than_seconds
        done = _stream(place, below_bytes, before, (compression, compression_level), now=now, on_file=on_file)
        found.append(done)
        if on_progress is not None:
            on_progress(done)
    return Compaction(tuple(found))


def _stream(
    place: StreamFolder,
    below_bytes: int,
    before: float,
    compression: tuple[str | None, int],
    *,
    now: Callable[[], float],
    on_file: Callable[[int, int], object] | None,
) -> CompactedStream:
    """Compact one stream; what was committed after ``before`` stays as it is."""
    nothing = CompactedStream(*place.names, 0, 0)
    try:
        snapshot = place.read_manifest()
    except LakeError as error:
        return replace(nothing, problems=(str(error),))
    if snapshot is None:
        return nothing
    groups = _runs(snapshot, below_bytes, before)
    read, small = 0, sum(map(len, groups))
    done: list[CompactedFile] = []
    problems: list[str] = []
    merged: list[_Merged] = []
    for number, run in enumerate(groups, 1):
        written = times.format_time(dt.datetime.fromtimestamp(now(), dt.UTC))
        try:
            merged.append(_merge(place, run, compression, written))
        except LakeError as error:
            problems.append(str(error))
        read += len(run)
        if on_file is not None:
            on_file(read, small)
        if merged and (len(merged) == _FILES_A_COMMIT or number == len(groups)):
            done += _commit(place, snapshot, merged, now())
            merged = []
    count, gone = len(snapshot.files), sum(len(file.parts) - 1 for file in done)
    return replace(nothing, before=count, after=count - gone, files=tuple(done), problems=tuple(problems))


_Run = list[tuple[DataFile, FileStats]]
_OUTWEIGHS = 4
_NO_VERSION = -(2**63)


def _runs(snapshot: Snapshot, below_bytes: int, before: float) -> list[_Run]:
    """Groups of two files or more that are to become one each, in replay order.

    Rows must keep their place: only files that follow each other in replay order, of one schema version. And an
    ACTIVATE_VERSION drops rows by the files they stand in (rows without a version, and rows of later versions that came
    before it), so it can only be the last line that counts in a compacted file, and nothing before it may be of a
    later version.

    Args:
        below_bytes: the most that a group may have, uncompressed; files of half of it or more stay as they are.
        before: files of later commits stay, too.
    """
    found: list[_Run] = [[]]
    size, newest = 0, _NO_VERSION
    for file in snapshot.files:
        stats, run = file.stats, found[-1]
        if stats is None or stats.bytes >= below_bytes // 2 or not _is_old(stats, before):
            found.append([])
            continue
        activated = stats.activate_version
        if run:
            last, last_stats = run[-1]
            is_other = file.hash != last.hash or last_stats.activate_version is not None
            if is_other or size + stats.bytes > below_bytes or (activated is not None and newest > activated):
                found.append([])
        if not found[-1]:
            size, newest = 0, _NO_VERSION
        found[-1].append((file, stats))
        size, newest = size + stats.bytes, max(newest, *(stats.versions or (newest,)))
    return [run for run in map(_worthwhile, found) if len(run) > 1]


def _is_old(stats: FileStats, before: float) -> bool:
    try:
        return times.moment(stats.written or stats.last).timestamp() <= before
    except ValueError:
        return False


def _worthwhile(run: _Run) -> _Run:
    """Without files at its beginning that outweigh all the rest by far: else each compact writes these rows again."""
    rest = sum(stats.bytes for _, stats in run)
    for at, (_, stats) in enumerate(run):
        rest -= stats.bytes
        if stats.bytes <= _OUTWEIGHS * rest:
            return run[at:]
    return []


_Merged = tuple[CompactedFile, FileStats]
"""A compacted file that is published and not committed yet."""
_NUMBERS = 1_000_000_000 - replaced.FIRST_NUMBER


def _merge(place: StreamFolder, run: _Run, compression: tuple[str | None, int], written: str) -> _Merged:
    """Write and publish one file that holds all lines of ``run``'s files, with the note beside it.

    The note comes first: as soon as the file can be seen by listing, its parts are left out.

    Args:
        written: now, RFC 3339.

    Raises:
        LakeError: a part is damaged, or not as its manifest says: nothing is published. StorageError: the store fails.
    """
    store, folder = place.store, f"{place.folder}/{run[0][0].hash}"
    packer, size, stored = compressor(*compression), 0, 0
    new_file = store.new_file(folder)
    try:
        for block in _blocks(place, run):
            size += len(block)
            ready = packer.compress(block)
            stored += len(ready)
            if ready:
                new_file.write(ready)
        rest = packer.flush()
        new_file.write(rest)
        stats = replace(_merged_stats(place, run), bytes=size, stored_bytes=stored + len(rest))
        note = replaced.to_bytes(Replacement(tuple(stats.replaces or ()), _through(place, run), written))
        first, last = times.moment(stats.first), times.moment(stats.last)
        while True:
            number = replaced.FIRST_NUMBER + secrets.randbelow(_NUMBERS)
            path = f"{folder}/{layout.file_name(place.stream, first, last, number, compression=compression[0])}"
            with contextlib.suppress(FileExistsError):
                _create_note(store, replaced.note_path(path), note)
                new_file.publish(path)
                break
    finally:
        new_file.discard()
    parts = tuple(file.path for file, _ in run)
    return CompactedFile(path, parts, stats.records, size, stored + len(rest)), stats


def _merged_stats(place: StreamFolder, run: _Run) -> FileStats:
    """What the manifest will say about the file made of ``run``, less its size; the sequence is left 0."""
    parts = [stats for _, stats in run]
    timed = [stats for stats in parts if stats.records] or parts
    versions = {version for stats in parts for version in stats.versions or ()}
    replaces: dict[str, int] = {}
    for file, stats in run:
        replaces |= stats.replaces or {place.name(file.path): stats.sequence}
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


def _through(place: StreamFolder, run: _Run) -> tuple[str, ...]:
    """Compacted files among the parts, and those that these were made of."""
    found: dict[str, None] = {}
    for file, stats in run:
        if stats.replaces:
            note = replaced.read(place.store, file.path)
            found |= dict.fromkeys((*(note.through if note else ()), place.name(file.path)))
    return tuple(found)


def _create_note(store: Store, path: str, data: bytes) -> None:
    try:
        store.create(path, data)
    except OutcomeUnknown:
        blob = store.read(path)
        if blob is None or blob.data != data:
            raise


def _blocks(place: StreamFolder, run: _Run) -> Iterator[bytes]:
    """All lines of the files, line 1 once.

    Raises:
        LakeError: a file is damaged, is not what the manifest says, or has another line 1.
    """
    store, line_1 = place.store, b""
    for file, stats in run:
        where, see = store.locate(file.path), f"See: burler lake check {store.url}"
        blocks = read_blocks(store, file.path)
        first = next(blocks)
        if line_1 and first != line_1:
            raise LakeError(f"{where}: line 1 is not that of the file before it, {run[0][0].path}.")
        if not line_1:
            yield first
        line_1, records, length = first, 0, len(first)
        for block in blocks:
            try:
                records += _records(block)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise LakeError(f"{where} holds a line that is no Singer message ({error}). {see}") from None
            length += len(block)
            yield block
        if (records, length) != (stats.records, stats.bytes):
            raise LakeError(
                f"{where} holds {records:,} rows in {length:,} bytes, its manifest says {stats.records:,} in "
                f"{stats.bytes:,}. {see}"
            )


_RECORD = b'{"type":"RECORD",'


def _records(block: bytes) -> int:
    """How many of a block's lines are RECORDs.

    Where all begin as burler's own do, that is seen by counting. What stands behind it is then not looked at, as
    ``lake read`` does not; ``check`` does.
    """
    lines = block.count(b"\n")
    if block.startswith(_RECORD) and block.count(b"\n" + _RECORD) == lines - 1:
        return lines
    return sum(decode_outermost(decode_head, line).type.upper() == "RECORD" for line in block[:-1].split(b"\n"))


def _commit(place: StreamFolder, snapshot: Snapshot, merged: Sequence[_Merged], now: float) -> list[CompactedFile]:
    """Put new files into the manifest in the place of their parts; those that went in.

    Where somebody else replaced or dropped a part meanwhile, or made the manifest anew, the file is removed again.
    """
    mark = secrets.token_hex(16)
    taken: list[CompactedFile] = []

    def change(document: doc.Document) -> bool:
        listed, gone = set(document["files"]), set[str]()
        taken.clear()
        new: list[tuple[str, FileStats]] = []
        for file, stats in merged if document["generation"] == snapshot.generation else ():
            parts = set(map(place.name, file.parts))
            if listed >= parts:
                taken.append(file)
                new.append((place.name(file.path), stats))
                gone |= parts
        if not taken:
            return False
        sequence = doc.add_commit(document, mark)
        document["files"] = [name for name in document["files"] if name not in gone]
        doc.add_files(document, [(name, replace(stats, sequence=sequence)) for name, stats in new])
        return True

    place.change(change, mark=mark)
    unused = [place.name(file.path) for file, _ in merged if file not in taken]
    if unused:
        remove_unlisted(place, unused, now=now)
    return taken
