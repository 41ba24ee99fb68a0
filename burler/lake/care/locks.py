"""Whether whoever holds a lock of the lake still lives, judged from outside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from burler import times
from burler.errors import BurlerError
from burler.lake.locking.lock_file import LockFile, this_machine
from burler.storage.base import Store, StoredFile

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
