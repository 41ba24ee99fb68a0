"""The lock of one file on a local disk while it is compared and replaced: held for milliseconds, waited for a while."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
from collections.abc import Iterator
from pathlib import Path

from burler.errors import StorageError
from burler.lake.pace import Pace
from burler.target.local_file import make_folder

_log = logging.getLogger("burler.lake")

GIVE_UP_SECONDS = 60.0
_WORD_SECONDS = 5.0
_LONGEST_PAUSE_SECONDS = 0.05


@contextlib.contextmanager
def flocked(target: Path, *, pace: Pace | None = None) -> Iterator[None]:
    """Hold the lock of ``target``: a hidden empty file beside it, which is never removed.

    A holder that is stopped in between (SIGSTOP, a frozen container) keeps it, and nobody can tell what it is about to
    do when it goes on: so it is waited for, with a word after 5 seconds, and given up after 60.

    Args:
        pace: time and chance; the system's by default.

    Raises:
        StorageError: it was not to be had. OSError: the folder can't be written.
    """
    make_folder(target.parent)
    path = target.with_name(f".{target.name}.lock")
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        _wait(fd, target, path, pace or Pace())
        yield
    finally:
        os.close(fd)


def _wait(fd: int, target: Path, path: Path, pace: Pace) -> None:
    begun, said, pause = pace.monotonic(), False, 0.0005
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            pass
        waited = pace.monotonic() - begun
        if waited > GIVE_UP_SECONDS:
            raise StorageError(
                f"{target}: another process has been in the middle of replacing it for {GIVE_UP_SECONDS:g} seconds. It "
                f"must be stopped (SIGSTOP, a frozen container): let it go on, or end it. `fuser {path}` names it."
            )
        if waited > _WORD_SECONDS and not said:
            said = True
            _log.warning("%s: another process is in the middle of replacing it; waiting for it.", target)
        pace.sleep(pace.uniform(0, pause))
        pause = min(_LONGEST_PAUSE_SECONDS, pause * 2)
