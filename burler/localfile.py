"""Files on a local disk that are there whole or not at all: hidden names, fsync, link, and what OSErrors mean.

The lake's store and the storage of batch files stand on this. Everything a reader can see is complete at any moment,
also after SIGKILL or a power cut.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from burler.errors import BurlerError, StorageError, UsageError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT}  # ENOENT: /proc and the like take no folders
_WRONG_KIND = {errno.ENOTDIR, errno.EISDIR, errno.ELOOP}
_TOO_MANY_OPEN = {errno.EMFILE, errno.ENFILE}
_NO_LINKS = {errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}

Bytes = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class Cures:
    """What to do about each kind of OSError, as people read it behind the fact."""

    refused: str
    full: str = "Make room and run again: nothing is half written."
    too_many_open: str = "Let fewer files be open (--max-open-files, max_open_files), or allow more (ulimit -n)."
    wrong_kind: str = "A file stands where a folder must be, or the reverse: move it away."
    no_links: str = "The file system must offer hard links and flock: use another."
    too_long: str = "Use shorter names."
    other: str = "Check the disk and run again: nothing is half written."


class HiddenFile:
    """A file under a hidden name, until it gets its real one. Raises OSErrors as they come.

    Args:
        path: must not exist; its folder must.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._fd = os.open(path, flags, 0o666)
        self._synced = False

    @property
    def fd(self) -> int:
        """The descriptor; -1 once it is closed."""
        return self._fd

    def append(self, data: Bytes) -> None:
        """Write all of ``data`` at the end."""
        done = 0
        with memoryview(data) as given, given.cast("B") as view:  # an error must leave no view of the caller's buffer
            while done < len(view):
                with view[done:] as rest:
                    done += os.write(self._fd, rest)

    def sync(self) -> None:
        """Have the content on disk, once."""
        if not self._synced:
            os.fsync(self._fd)
            self._synced = True

    def close(self) -> None:
        """Close the descriptor; a file system may say only now that it could not write."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def discard(self) -> None:
        """Close, and remove the hidden name. Never fails."""
        with contextlib.suppress(OSError):
            self.close()
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, each durable before something is put into it."""
    if folder.is_dir():
        return
    if folder.parent != folder:
        make_folder(folder.parent)
    try:
        folder.mkdir(exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder)) from None
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on disk."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextlib.contextmanager
def errors(target: Path, doing: str, cures: Cures, *, missing_is_an_answer: bool = False) -> Iterator[None]:
    """OSErrors as burler's errors. "The name is taken" goes through: it is an answer, not a failure.

    Args:
        doing: what could not be done to ``target``: "read", "written".

    Raises:
        UsageError: the place is wrong. StorageError: the disk is full, or failed.
    """
    try:
        yield
    except (BurlerError, FileExistsError):
        raise
    except OSError as error:
        if missing_is_an_answer and isinstance(error, FileNotFoundError):
            raise
        raise _translated(target, doing, error, cures) from error


def _translated(target: Path, doing: str, error: OSError, cures: Cures) -> BurlerError:
    fact = f"{target} can't be {doing}: {error.strerror or error}."
    if error.errno in _WRONG_KIND:
        return UsageError(f"{fact} {cures.wrong_kind}")
    if error.errno == errno.ENAMETOOLONG:
        return UsageError(f"{fact} {cures.too_long}")
    if error.errno in _REFUSED:
        return UsageError(f"{fact} {cures.refused}")
    if error.errno in _FULL:
        return StorageError(f"{fact} {cures.full}")
    if error.errno in _TOO_MANY_OPEN:
        return StorageError(f"{fact} {cures.too_many_open}")
    if error.errno in _NO_LINKS:
        return StorageError(f"{fact} {cures.no_links}")
    return StorageError(f"{fact} {cures.other}")
