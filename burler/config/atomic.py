"""Putting a file in the place of another, so that whoever reads sees the one or the other whole."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from pathlib import Path

_LOCK_SECONDS = 5.0  # longer than any honest writer holds a file; a stopped one must not hold us up for ever

_LEFTOVER_SECONDS = 60.0  # a writer that takes longer is none of ours


def replace_file(path: str | Path, content: bytes) -> None:
    """Write a file anew: a temporary one beside it is filled, made durable, and takes its name.

    Mode bits stay, and owner and group where we may set them; where the group can't be kept its rights are left
    out. At no moment may anybody read the new content who could not read the old one. A symbolic link stays: what
    it points to is replaced. A file that is not there yet gets the usual rights of a new one.

    Raises:
        OSError: no right to, no room, a file that is itself a mount point (EBUSY). The old file is untouched.
    """
    target = Path(os.path.realpath(path))
    try:
        old = target.stat()
    except FileNotFoundError:
        old = None
    temporary = target.with_name(f".{target.name[:200]}.{secrets.token_hex(6)}.tmp")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666 if old is None else 0o600)
    try:
        with open(fd, "wb") as file:
            file.write(content)
            file.flush()
            if old is not None:
                os.fchmod(file.fileno(), _take_over(file.fileno(), old))
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    _make_durable(target.parent)


def remove_leftovers(path: str | Path) -> None:
    """Remove temporary files that killed writers of this file left beside it: they may hold secrets.

    Call it while the file is locked. Only files that are named as ours and older than a minute go.
    """
    target = Path(os.path.realpath(path))
    ours = re.compile(re.escape(f".{target.name[:200]}.") + r"[0-9a-f]{12}\.tmp")
    with contextlib.suppress(OSError):
        for item in target.parent.iterdir():
            if ours.fullmatch(item.name):
                with contextlib.suppress(OSError):
                    old = item.lstat()
                    if stat.S_ISREG(old.st_mode) and time.time() - old.st_mtime > _LEFTOVER_SECONDS:
                        item.unlink()


def _take_over(fd: int, old: os.stat_result) -> int:
    """Give an open file the owner of another; the mode that it may have then."""
    mine = os.fstat(fd)
    mode = stat.S_IMODE(old.st_mode)
    if mine.st_uid != old.st_uid:
        with contextlib.suppress(OSError):
            os.fchown(fd, old.st_uid, -1)
    if mine.st_gid != old.st_gid:
        try:
            os.fchown(fd, -1, old.st_gid)
        except OSError:
            mode &= ~0o070
    return mode


def _make_durable(folder: Path) -> None:
    """The rename itself must outlive a power cut. Some file systems know no fsync of folders."""
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


@contextlib.contextmanager
def locked(path: str | Path, *, seconds: float = _LOCK_SECONDS) -> Iterator[int]:
    """Hold a file against others that replace it through this function too; gives a descriptor to read it from.

    Where the file system knows no locks, or another process holds one for longer than ``seconds``, we go on
    without: the lock guards against lost updates, never against half-written files.

    Raises:
        OSError: the file can't be opened.
    """
    limit = time.monotonic() + seconds
    while True:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            _lock(fd, limit)
            if _is_same(fd, path) or time.monotonic() > limit:
                yield fd
                return
        finally:
            os.close(fd)


def _lock(fd: int, limit: float) -> None:
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > limit:
                return
            time.sleep(0.005)
        except OSError:
            return
        else:
            return


def _is_same(fd: int, path: str | Path) -> bool:
    """Whether the file was not replaced while we waited for it."""
    held, there = os.fstat(fd), os.stat(path)  # noqa: PTH116
    return (held.st_dev, held.st_ino) == (there.st_dev, there.st_ino)
