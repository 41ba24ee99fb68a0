"""What lies in a lake, for check, vacuum and rebuild: one listing of it with hidden files; whether the holders of locks
live, judged from outside; data files read to their ends, several at a time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context

from burler import times
from burler.errors import BurlerError, UsageError
from burler.lake import layout, replaced
from burler.lake.datafile import DamagedFile, Measured, measure
from burler.lake.lake import StreamFolder
from burler.lake.locks import LockFile, this_machine
from burler.storage.base import Store, StoredFile, is_hidden
from burler.storage.local import LocalStore

_STREAM_DEPTH = 3


@dataclass(slots=True)
class StreamListing:
    """All files below a stream's folder, hidden ones too, sorted by path."""

    place: StreamFolder
    files: list[StoredFile] = field(default_factory=list)
    _by_path: dict[str, StoredFile] | None = None

    @property
    def data_files(self) -> list[StoredFile]:
        """Those that are data files, in a schema folder; replaced ones too."""
        wanted = set(replaced.all_data_files(self.place.folder, (file.path for file in self.visible)))
        return [file for file in self.files if file.path in wanted]

    @property
    def visible(self) -> list[StoredFile]:
        """Those that are not hidden, by their own name or a folder's."""
        return [file for file in self.files if not is_hidden(file.path)]

    def find(self, path: str) -> StoredFile | None:
        """The file at ``path``, if it is there."""
        if self._by_path is None:
            self._by_path = {file.path: file for file in self.files}
        return self._by_path.get(path)


@dataclass(frozen=True, slots=True)
class LakeListing:
    """``elsewhere``: files outside of all streams, if the whole lake was listed."""

    streams: tuple[StreamListing, ...]
    elsewhere: tuple[StoredFile, ...] = ()


def listed(store: Store, wanted: Sequence[StreamFolder], *, whole: bool) -> LakeListing:
    """List the folders of streams, or with ``whole`` the lake at once.

    Raises:
        StorageError: the store fails.
    """
    streams = {place.folder: StreamListing(place) for place in wanted}
    if not whole:
        for stream in streams.values():
            stream.files.extend(store.files(stream.place.folder, hidden=True))
        return LakeListing(tuple(streams.values()))
    elsewhere = []
    for file in store.files(layout.ROOT, hidden=True):
        parts = file.path.split("/")
        stream_of = streams.get("/".join(parts[:_STREAM_DEPTH])) if len(parts) > _STREAM_DEPTH else None
        if stream_of is None:
            elsewhere.append(file)
        else:
            stream_of.files.append(file)
    return LakeListing(tuple(streams.values()), tuple(elsewhere))


LOCK = "singerlake.lock"
_LEAST_SECONDS = 3600.0
_BEATS = 10
_SCHEMA_DEPTH = 4
"""Components of a schema's folder: ``raw/<tap_id>/<stream>/<hash>``."""
_SKEW_SECONDS = 60.0
"""How far the clocks of a writer and its store may differ."""


def holder_lives(store: Store, path: str, lock: LockFile) -> bool | None:
    """Whether the process that holds the lock at ``path`` lives; None where that can't be known.

    Only for a holder on this very system, whose sign of life the kernel drops. Changes nothing: the file of the sign
    is there where a lock names its machine.
    """
    if lock.machine is None or lock.machine != this_machine():
        return None
    try:
        hold = store.hold(path)
    except BurlerError:  # a folder that we may only read
        return None
    if hold is None:
        return None
    try:
        return not hold.taken
    finally:
        hold.release()


def dead_for(store: Store, path: str, data: bytes, *, age_seconds: float) -> str | None:
    """Why a lock is taken for dead, in words; None if its holder may live.

    Args:
        data: its content. age_seconds: since it last changed. A live holder changes it each tenth of its ``ttl-ms``.
    """
    lock = LockFile.from_bytes(data)
    lives = holder_lives(store, path, lock)
    if lives is not None:
        return None if lives else f"its holder {lock.writer_id} has ended"
    limit = max(_LEAST_SECONDS, _BEATS * (lock.ttl_ms or 0) / 1000)
    if age_seconds < limit:
        return None
    return f"its holder {lock.writer_id} has not renewed it for {age_seconds / 3600:,.1f} hours"


def guarded(store: Store, files: Iterable[StoredFile], *, now: float) -> dict[str, float]:
    """Folders with a lock whose holder may live -> since when it has it (seconds since 1970).

    What is hidden there may be a file that it is writing; what is in no manifest, and younger, one that it has not
    committed yet (workers make files for hours, and the driver commits them at the end).

    Args:
        now: seconds since 1970.
    """
    found = {}
    for file in files:
        if file.path.rpartition("/")[2] != LOCK:
            continue
        blob = store.read(file.path)
        if blob is not None and dead_for(store, file.path, blob.data, age_seconds=now - file.modified) is None:
            found[file.path.rpartition("/")[0]] = _since(LockFile.from_bytes(blob.data))
    return found


def awaits_commit(file: StoredFile, busy: Mapping[str, float]) -> bool:
    """Whether a data file that no manifest names may be one of a writer that lives (``busy``: see ``guarded``)."""
    folder = "/".join(file.path.split("/")[:_SCHEMA_DEPTH])
    return folder in busy and file.modified >= busy[folder] - _SKEW_SECONDS


def _since(lock: LockFile) -> float:
    try:
        return times.moment(lock.acquired).timestamp()
    except ValueError:
        return 0.0


_AT_ONCE = 512
_WORTH_PROCESSES_BYTES = 64 * 1024 * 1024
_THREADS = 8

Examined = Measured | DamagedFile


def examined(
    store: Store, files: Sequence[StoredFile], *, jobs: int | None = None, processes: bool = False
) -> Iterator[tuple[StoredFile, Examined]]:
    """Each file with what is in it, or what is wrong with it, in the order given.

    Args:
        jobs: how many are read at a time; None: as many as there are processors, and at least eight for a store that is
            reached over a network.
        processes: other processes may be started for it (a local disk, and more than 64 MiB). Python starts them by
            loading the main module again: only a program that is made for that may allow it.

    Raises:
        UsageError: ``jobs`` is below 1. StorageError: the store fails.
    """
    local = isinstance(store, LocalStore)
    count = jobs if jobs is not None else max(os.cpu_count() or 1, 1 if local else _THREADS)
    if count < 1:
        raise UsageError(f"{count} files can't be read at a time: 1 or more.")
    count = min(count, len(files))
    if count <= 1:
        for file in files:
            yield file, look(store, file.path)
        return
    worth = local and processes and sum(file.size_bytes for file in files) >= _WORTH_PROCESSES_BYTES
    pool: Executor = ProcessPoolExecutor(count, get_context("spawn")) if worth else ThreadPoolExecutor(count)
    try:
        for start in range(0, len(files), _AT_ONCE):
            some = files[start : start + _AT_ONCE]
            yield from zip(some, pool.map(look, [store] * len(some), [file.path for file in some]), strict=True)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def look(store: Store, path: str) -> Examined:
    """One file; a damage is an answer."""
    try:
        return measure(store, path)
    except DamagedFile as damage:
        return damage
