"""What a lake has of its taps: ``burler lake ls``, from its manifests, or from listings where there are none. What
people say of them, and set: ``burler lake describe`` (notes in ``singerlake.json``, as Singerlake Pt2, 2, has them),
``burler state`` (where the next run of a tap begins).
"""

from __future__ import annotations

import copy
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from burler import times
from burler.errors import LakeError, LockLost, StateError, UsageError
from burler.lake import catalogue, layout, replaced
from burler.lake.care.inventory import Listing
from burler.lake.lake import Lake, StreamFolder, not_there
from burler.lake.layout import STATE, parse_file_name
from burler.lake.snapshot import DataFile
from burler.lake.state import LakeState, StoredState
from burler.storage.base import Store

_TTL_SECONDS = 300.0


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
    lake, problem = Lake(store), None
    try:
        notes = lake.notes()
    except LakeError as error:
        notes, problem = {}, str(error)
    by_tap: dict[tuple[str, str], list[StreamInfo]] = {}
    if streams is None:  # a tap whose streams were removed by hand may have its state still
        by_tap = {(tap_id, f"{layout.ROOT}/{folder}"): [] for folder, tap_id in lake.wanted_taps(taps).items()}
    for place in lake.folders(taps=taps, streams=streams):
        found = _stream(place)
        if found is not None:
            by_tap.setdefault((place.tap_id, place.tap_folder), []).append(found)
    told = (_tap(store, tap_id, folder, notes.get(tap_id), some) for (tap_id, folder), some in by_tap.items())
    return LakeInfo(store.url, tuple(tap for tap in told if tap.streams or tap.state), problem)


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


@dataclass(frozen=True, slots=True)
class TapNotes:
    """What a lake says of a tap. None where it says nothing.

    ``state``, ``started``, ``ended`` and ``writer_id`` are of its last run, kept up by the writer; ``link`` leads to
    the job's log.
    """

    tap_id: str
    owner: str | None = None
    description: str | None = None
    documentation: str | None = None
    state: str | None = None
    started: str | None = None
    ended: str | None = None
    writer_id: str | None = None
    link: str | None = None


def describe(
    store: Store,
    tap_id: str,
    *,
    owner: str | None = None,
    description: str | None = None,
    documentation: str | None = None,
    status_link: str | None = None,
) -> TapNotes:
    """Change what a lake says of a tap, by compare-and-swap; what it says now.

    Args:
        owner, description, documentation: new texts; None leaves them as they are, an empty one removes them.
        status_link: where the log of the tap's job is.

    Raises:
        UsageError: an address that is none; the lake has no such tap (names those it has). LakeError:
            ``singerlake.json`` is broken.
    """
    for name, url in (("--documentation", documentation), ("--status-link", status_link)):
        if url and not re.fullmatch(r"https?://[^\s/]\S*", url):  # pages show these as links
            raise UsageError(
                f"{name} {url!r} is no address of a page. Write it whole, as https://wiki.example.com/crm."
            )
    lake = Lake(store)
    known, there = lake.notes(), lake.taps()
    if tap_id not in known and (not tap_id or layout.component(tap_id) not in there):
        raise UsageError(not_there(store.url, "tap", tap_id, {*known, *there.values()}))
    wanted = {"owner": owner, "description": description, "documentation": documentation}
    new = {key: value or None for key, value in wanted.items() if value is not None}
    if new or status_link is not None:
        catalogue.note_tap(store, tap_id, new, link=status_link)
    return notes_of(tap_id, lake.notes().get(tap_id))


def notes_of(tap_id: str, notes: Any) -> TapNotes:
    """A tap's entry in ``singerlake.json`` as a dataclass. A status that is plain text is its state."""
    notes = notes if isinstance(notes, dict) else {}
    status = notes.get("status")
    status = status if isinstance(status, dict) else {"state": status}
    return TapNotes(
        tap_id=tap_id,
        owner=text_of(notes, "owner"),
        description=text_of(notes, "description"),
        documentation=text_of(notes, "documentation"),
        state=text_of(status, "state"),
        started=text_of(status, "started"),
        ended=text_of(status, "ended"),
        writer_id=text_of(status, "writer-id"),
        link=text_of(status, "link"),
    )


def text_of(notes: Mapping[str, Any], key: str) -> str | None:
    """A note as text; None where there is none."""
    value = notes.get(key)
    return None if value in (None, "") else str(value)


def state_of(store: Store, tap_id: str | None) -> LakeState:
    """The state of a tap.

    Args:
        tap_id: None: of the only tap that the lake has.

    Raises:
        UsageError: there is no such tap, or there are several.
    """
    there = Lake(store).taps()
    if tap_id is None:
        if not there:
            raise UsageError(f"{store.url}: there is no tap in this lake yet: a run begins anew.")
        if len(there) != 1:
            raise UsageError(f"{store.url}: say which tap: --tap-id ID. It has: {', '.join(sorted(there.values()))}.")
        (tap_id,) = there.values()
    if layout.component(tap_id) not in there:
        raise UsageError(not_there(store.url, "tap", tap_id, there.values()))
    return LakeState(store, tap_id)


def set_state(state: LakeState, change: Callable[[dict[str, Any]], Mapping[str, Any]]) -> None:
    """Change the value of a state by hand. A run that goes on from it later is held to the same config as before,
    unless nothing is left of it.

    Args:
        change: gets the value.

    Raises:
        LockLost: a run writes this tap.
        StateError: what is there can't be read, and nothing of it is to stay. StorageError: the store fails.
    """
    _refuse_while_written(state)

    def changed(there: StoredState | None, _again: bool) -> StoredState:
        there = there or StoredState()
        value = dict(change(copy.deepcopy(there.value)))
        return replace(there, value=value, config=there.config if value else None)

    state.change(changed, mend=True)


def accept_config(state: LakeState) -> bool:
    """Let the next run go on from a state with whatever config it has; False: there is no state.

    Raises:
        LockLost: a run writes this tap. StateError: the state can't be read. StorageError: the store fails.
    """
    _refuse_while_written(state)
    if state.read() is None:
        return False
    state.change(lambda there, _again: replace(there or StoredState(), config=None), previous=False)
    return True


def _refuse_while_written(state: LakeState) -> None:
    """A lock of one of the tap's streams that its holder keeps up: a run is at work."""
    for lock in Listing(state.store, state.store.files(layout.tap_folder(state.tap_id)), now=time.time()).locks:
        ttl = _TTL_SECONDS if lock.holder.ttl_ms is None else lock.holder.ttl_ms / 1000
        if lock.lives or (lock.lives is None and lock.age < ttl):
            raise LockLost(
                f"{state.store.url}: a run writes '{state.tap_id}' just now ({lock.holder.writer_id} holds "
                f"{state.store.locate(lock.file.path)}). Nothing was changed. Wait for its end, or stop it."
            )
