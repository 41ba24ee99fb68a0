"""Many data files read to their ends, several at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

from burler.errors import UsageError
from burler.lake.measure import DamagedFile, Measured, examine
from burler.storage.base import Store, StoredFile
from burler.storage.local import LocalStore

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
        return examine(store, path)
    except DamagedFile as damage:
        return damage
