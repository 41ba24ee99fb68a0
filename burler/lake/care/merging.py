"""One data file made of several: the same lines, in the same order, under one SCHEMA line."""

from __future__ import annotations

import contextlib
import secrets
from dataclasses import dataclass, replace

import msgspec

from burler import times
from burler.errors import LakeError
from burler.formats.compression import compressor
from burler.lake import layout
from burler.lake.care.places import Place
from burler.lake.care.runs import Run
from burler.lake.datafile import read_blocks
from burler.lake.manifests import replaced
from burler.lake.manifests.replaced import Replacement
from burler.lake.snapshot import DataFile, FileStats
from burler.singer.lines import decode_head, decode_outermost
from burler.storage.base import NewFile, OutcomeUnknown, Store

_NUMBERS = 1_000_000_000 - replaced.FIRST_NUMBER


@dataclass(frozen=True, slots=True)
class Merged:
    """A compacted file that is published and not committed yet. Names are relative to the stream's folder."""

    name: str
    parts: tuple[str, ...]
    stats: FileStats


_RECORD = b'{"type":"RECORD",'


def merge(store: Store, place: Place, run: Run, *, compression: str | None, level: int, written: str) -> Merged:
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
