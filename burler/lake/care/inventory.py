"""What lies in a lake, for check, vacuum and rebuild: one listing of it with hidden files; whether the holders of locks
live, judged from outside; data files read to their ends, several at a time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from multiprocessing import get_context

from burler import times
from burler.errors import BurlerError, LakeError, UsageError
from burler.lake import layout, replaced
from burler.lake.datafile import DamagedFile, Measured, measure
from burler.lake.lake import StreamFolder
from burler.lake.locks import LockFile, this_machine
from burler.lake.replaced import Replacement
from burler.lake.snapshot import Snapshot
from burler.localfile import TEMPORARY
from burler.storage.base import Blob, Store, StoredFile, is_hidden
from burler.storage.local import LocalStore

_LEAST_SECONDS = 3600.0
_BEATS = 10
_STREAM_DEPTH, _SCHEMA_DEPTH = 3, 4
"""Components of a stream's folder and of a schema's: ``raw/<tap_id>/<stream>/<hash>``."""
_SKEW_SECONDS = 60.0
"""How far the clocks of a writer and its store may differ."""


@dataclass(frozen=True, slots=True)
class FoundLock:
    """A lock that was found. ``lives``: whether the process that holds it does; None where that can't be known.
    ``age``: seconds since it last changed."""

    file: StoredFile
    blob: Blob
    holder: LockFile
    lives: bool | None
    age: float

    @property
    def dead(self) -> str | None:
        """Why its holder is taken for dead, in words; None if that may live. A live one changes its lock each tenth of
        the ``ttl-ms``."""
        if self.lives is not None:
            return None if self.lives else f"its holder {self.holder.writer_id} has ended"
        if self.age < max(_LEAST_SECONDS, _BEATS * (self.holder.ttl_ms or 0) / 1000):
            return None
        return f"its holder {self.holder.writer_id} has not renewed it for {self.age / 3600:,.1f} hours"


class Listing:
    """Files of a part of a lake.

    Attributes:
        files: by their paths, in the order of these; hidden ones, too.
        now: when they were listed, in seconds since 1970 by the store's clock.
    """

    def __init__(self, store: Store, files: Iterable[StoredFile], *, now: float) -> None:
        self.store, self.now = store, now
        self.files = {file.path: file for file in files}

    def age(self, file: StoredFile) -> float:
        """Seconds since it last changed."""
        return self.now - file.modified

    @cached_property
    def locks(self) -> list[FoundLock]:
        """The locks among them that are still there."""
        found = []
        for file in self.files.values():
            if file.path.rpartition("/")[2] == layout.LOCK and (blob := self.store.read(file.path)) is not None:
                holder = LockFile.from_bytes(blob.data)
                lives = _lives(self.store, file.path, holder)
                found.append(FoundLock(file, blob, holder, lives, self.age(file)))
        return found

    @cached_property
    def busy(self) -> dict[str, float]:
        """Folders with a lock whose holder may live -> since when it has it (seconds since 1970).

        What is hidden there may be a file that it is writing; what is in no manifest, and younger, one that it has not
        committed yet (workers make files for hours, and the driver commits them at the end).
        """
        return {lock.file.path.rpartition("/")[0]: _since(lock.holder) for lock in self.locks if lock.dead is None}

    def unfinished(self) -> Iterator[StoredFile]:
        """Hidden files that a process was writing; not where one may be at work."""
        for path, file in self.files.items():
            folder, _, name = path.rpartition("/")
            if name.startswith(TEMPORARY) and folder not in self.busy:
                yield file


class StreamListing(Listing):
    """All files below a stream's folder.

    Attributes:
        data: those that are data files, in a schema folder; replaced ones, too.
    """

    def __init__(self, place: StreamFolder, files: Iterable[StoredFile], *, now: float) -> None:
        super().__init__(place.store, files, now=now)
        self.place = place
        paths = replaced.all_data_files(place.folder, (path for path in self.files if not is_hidden(path)))
        self.data = {path: self.files[path] for path in paths}

    @cached_property
    def notes(self) -> Notes:
        """The notes beside its compacted files."""
        return Notes.read(self.store, self.data)

    def awaits_commit(self, file: StoredFile) -> bool:
        """Whether a data file that no manifest names may be one of a writer that lives."""
        since = self.busy.get("/".join(file.path.split("/")[:_SCHEMA_DEPTH]))
        return since is not None and file.modified >= since - _SKEW_SECONDS

    def replaced(self, snapshot: Snapshot) -> dict[str, float]:
        """Paths of which a compacted file that the manifest lists holds the rows -> since when: as old as the first
        note that names them. What the manifest lists, a note may name for an older file of the same name."""
        since: dict[str, float] = {}
        listed = {file.path: file.stats for file in snapshot.files}
        for path, stats in listed.items():
            parts = (stats.replaces if stats is not None else None) or ()
            since |= dict.fromkeys(map(self.place.path, parts), self._written(path))  # known without the note, too
            note = self.notes.good.get(path)
            for one in () if note is None else (path, *map(self.place.path, note.through)):
                inner = self.notes.good.get(one)
                for name in () if inner is None else (*inner.replaces, *inner.through):
                    part, written = self.place.path(name), self._written(replaced.note_path(one))
                    if not parts or part not in listed:
                        since[part] = min(written, since.get(part, written))
        return since

    def _written(self, path: str) -> float:
        """A file that is not there was written after the files were listed."""
        file = self.files.get(path)
        return self.now if file is None else file.modified


@dataclass(frozen=True, slots=True)
class Notes:
    """What compacted files stand for, by their paths; and of which of them nobody can tell, and why."""

    good: dict[str, Replacement]
    broken: dict[str, LakeError]

    @classmethod
    def read(cls, store: Store, paths: Iterable[str]) -> Notes:
        """Those of data files at ``paths``, of which few may be compacted."""
        notes = cls({}, {})
        for path in paths:
            try:
                note = replaced.read(store, path) if replaced.is_compacted(path) else None
            except LakeError as error:
                notes.broken[path] = error
                continue
            if note is not None:
                notes.good[path] = note
        return notes


def listed(
    store: Store, wanted: Sequence[StreamFolder], *, whole: bool, now: float
) -> tuple[list[StreamListing], Listing]:
    """The files of streams; with ``whole``, of the lake at once, and those outside of all streams.

    Raises:
        StorageError: the store fails.
    """
    if not whole:
        found = [StreamListing(place, store.files(place.folder, hidden=True), now=now) for place in wanted]
        return found, Listing(store, (), now=now)
    by_folder: dict[str, list[StoredFile]] = {place.folder: [] for place in wanted}
    elsewhere: list[StoredFile] = []
    for file in store.files(layout.ROOT, hidden=True):
        parts = file.path.split("/")
        by_folder.get("/".join(parts[:_STREAM_DEPTH]) if len(parts) > _STREAM_DEPTH else "", elsewhere).append(file)
    streams = [StreamListing(place, by_folder[place.folder], now=now) for place in wanted]
    return streams, Listing(store, elsewhere, now=now)


def _lives(store: Store, path: str, lock: LockFile) -> bool | None:
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
