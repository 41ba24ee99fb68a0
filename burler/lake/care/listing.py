"""``burler lake ls``: what is in a lake, from its manifests; from listings where there are none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from burler import times
from burler.errors import LakeError, StateError
from burler.lake import catalogue, replaced
from burler.lake.care.taps import notes_of
from burler.lake.lake import Lake, StreamFolder
from burler.lake.layout import STATE, parse_file_name
from burler.lake.snapshot import DataFile
from burler.lake.state import StoredState
from burler.storage.base import Store


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A data file. ``records``, ``bytes`` (before compression) and ``sequence`` are None where no manifest knows them.

    ``first`` and ``last``: of ``time_extracted``, RFC 3339; from the file's name if nothing else says them.
    """

    path: str
    hash: str
    records: int | None
    bytes: int | None
    stored_bytes: int | None
    first: str
    last: str
    written: str | None
    sequence: int | None
    clean: bool


@dataclass(frozen=True, slots=True)
class Totals:
    """Of some files. What one of them lacks is None for all; without files the times are None."""

    files: int
    records: int | None
    bytes: int | None
    stored_bytes: int | None
    first: str | None
    last: str | None
    written: str | None


@dataclass(frozen=True, slots=True)
class VersionInfo(Totals):
    """One schema version of a stream. ``version`` is ``v1``, ... ; None where there is no manifest."""

    hash: str
    version: str | None


@dataclass(frozen=True, slots=True)
class StreamInfo(Totals):
    """One stream. ``manifest``: there is one that can be read; ``problem`` says why not if it can't.

    ``all_files`` are in replay order.
    """

    stream: str
    folder: str
    manifest: bool
    generation: str | None
    sequence: int
    versions: tuple[VersionInfo, ...]
    all_files: tuple[FileInfo, ...]
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class TapInfo:
    """One tap, with what ``singerlake.json`` says of it (``status`` is an object, or None). ``state``: when the state
    was written that its next run goes on from; None if there is none, ``unreadable`` if it is broken."""

    tap_id: str
    owner: str | None
    description: str | None
    documentation: str | None
    status: Any
    streams: tuple[StreamInfo, ...]
    state: str | None = None


@dataclass(frozen=True, slots=True)
class LakeInfo:
    """A lake. ``problem``: why ``singerlake.json`` can't be read, if so."""

    url: str
    taps: tuple[TapInfo, ...]
    problem: str | None = None


def ls(store: Store, *, taps: Sequence[str] | None = None, streams: Sequence[str] | None = None) -> LakeInfo:
    """Taps, streams, schema versions and files. Opens no data file.

    Raises:
        UsageError: no such tap or stream. StorageError: the store fails.
    """
    problem = None
    try:
        notes = catalogue.taps_of(catalogue.read_singerlake(store))
    except LakeError as error:
        notes, problem = {}, str(error)
    by_tap: dict[tuple[str, str], list[StreamInfo]] = {}
    for place in Lake(store).folders(taps=taps, streams=streams):
        found = _stream(place)
        if found is not None:
            by_tap.setdefault((place.tap_id, place.tap_folder), []).append(found)
    told = (_tap(store, tap_id, folder, notes.get(tap_id), some) for (tap_id, folder), some in by_tap.items())
    return LakeInfo(store.url, tuple(told), problem)


def _tap(store: Store, tap_id: str, folder: str, notes: Any, streams: Sequence[StreamInfo]) -> TapInfo:
    path, state = f"{folder}/{STATE}", None
    blob = store.read(path)
    try:
        stored = None if blob is None else StoredState.from_bytes(blob.data, store.locate(path))
        state = stored.written if stored is not None and stored.value else None
    except StateError:
        state = "unreadable"
    said, status = notes_of(tap_id, notes), notes.get("status") if isinstance(notes, dict) else None
    return TapInfo(tap_id, said.owner, said.description, said.documentation, status, tuple(streams), state)


def _stream(place: StreamFolder) -> StreamInfo | None:
    """One stream; None: an empty folder."""
    snapshot, problem, sizes = None, None, dict[str, int]()
    try:
        snapshot = place.read_manifest()
    except LakeError as error:
        problem = str(error)
    has_manifest = snapshot is not None
    if snapshot is None:
        sizes = {file.path: file.size_bytes for file in place.store.files(place.folder)}
        paths = replaced.all_data_files(place.folder, sizes)
        if not paths and problem is None:
            return None
        try:
            paths = replaced.standing(place.store, place.folder, paths)
        except LakeError as error:
            problem = problem or str(error)
        snapshot = place.without_manifest(paths)
    infos = tuple(_file(file, sizes.get(file.path)) for file in snapshot.files)
    versions = tuple(
        VersionInfo(*_totals(one for one in infos if one.hash == digest), digest, snapshot.versions.get(digest))
        for digest in snapshot.hashes
    )
    return StreamInfo(
        *_totals(infos),
        stream=place.stream,
        folder=place.folder,
        manifest=has_manifest,
        generation=snapshot.generation,
        sequence=snapshot.sequence,
        versions=versions,
        all_files=infos,
        problem=problem,
    )


def _file(file: DataFile, size: int | None) -> FileInfo:
    stats = file.stats
    if stats is not None:
        return FileInfo(
            path=file.path,
            hash=file.hash,
            records=stats.records,
            bytes=stats.bytes,
            stored_bytes=stats.stored_bytes,
            first=stats.first,
            last=stats.last,
            written=stats.written or None,
            sequence=stats.sequence,
            clean=stats.clean,
        )
    named = parse_file_name(file.path.rpartition("/")[2])
    first, last = (times.format_time(named.first), times.format_time(named.last)) if named else ("", "")
    return FileInfo(file.path, file.hash, None, None, size, first, last, None, None, clean=False)


def _totals(
    files: Iterable[FileInfo],
) -> tuple[int, int | None, int | None, int | None, str | None, str | None, str | None]:
    files = list(files)
    return (
        len(files),
        _sum(file.records for file in files),
        _sum(file.bytes for file in files),
        _sum(file.stored_bytes for file in files),
        min((file.first for file in files), default=None),
        max((file.last for file in files), default=None),
        max((file.written for file in files if file.written), default=None),
    )


def _sum(numbers: Iterable[int | None]) -> int | None:
    known = list(numbers)
    return None if None in known else sum(number for number in known if number is not None)
