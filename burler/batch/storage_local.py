"""Batch files in a folder of this machine: hidden while written, durable before they have a name.

While a process writes a file it holds a flock on it, which the kernel takes away when the process ends, however it
ends: so a later run can tell what a killed one has left from what another is writing just now.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import secrets
import weakref
from collections.abc import Iterator
from pathlib import Path

from burler.batch.naming import hidden_name, is_hidden, is_plain
from burler.errors import StorageError, UsageError
from burler.localfile import Bytes, Cures, HiddenFile, errors, make_folder, sync_folder

logger = logging.getLogger("burler")

CURES = Cures(
    refused="Check the owner and the rights of the folder for batch files (batch_config.storage.root).",
    full="Make room and run again: no message names this file. 'burler batch clean' removes old batch files.",
    no_links="The file system can't do what batch files need: use another for batch_config.storage.root.",
    too_long="Use a shorter batch_config.storage.prefix.",
    other="Check the disk and run again: no message names this file.",
)
_NO_LINKS = {errno.EOPNOTSUPP, errno.ENOTSUP, errno.EPERM, errno.ENOSYS, errno.EMLINK}
_CLAIM = "0" * 16


class LocalStorage:
    """A folder for batch files, made with the first one.

    Args:
        folder: an absolute path.
        prefix: put before each name; what stands before its last ``/`` are folders.

    Raises:
        UsageError: it can't be a folder, or not be written to.
    """

    def __init__(self, folder: Path, prefix: str) -> None:
        self._folder = folder
        self._prefix = prefix
        self._check()

    @property
    def root(self) -> str:
        """The folder as a ``file:`` URL."""
        return f"file://{self._folder}"

    def new_file(self, name: str) -> NewLocalFile:
        """See ``Storage.new_file``."""
        return NewLocalFile(self._folder, self._prefix, name)

    def presign(self, url: str, seconds: int) -> str:
        """Not for folders: ``open_storage`` has refused it."""
        raise StorageError(f"{url}: files of a folder have no signed URLs.")

    def leftovers(self) -> list[str]:
        """See ``Storage.leftovers``."""
        return [f"file://{path}" for path in self._hidden() if remove_if_dead(path, dry_run=True) is not None]

    def remove_leftovers(self) -> int:
        """See ``Storage.remove_leftovers``. One line in the log, if there were any."""
        count = size_bytes = 0
        for path in self._hidden():
            removed = remove_if_dead(path)
            if removed is not None:
                count, size_bytes = count + 1, size_bytes + removed
        if count:
            logger.info(
                "batch files: %d temporary %s of killed runs (%s bytes) removed from %s.",
                count,
                "file" if count == 1 else "files",
                f"{size_bytes:,}",
                self._place,
            )
        return count

    @property
    def _place(self) -> Path:
        """The folder that files go to."""
        return (self._folder / f"{self._prefix}x").parent

    def _hidden(self) -> Iterator[Path]:
        own = self._prefix.rpartition("/")[2]
        with contextlib.suppress(OSError), os.scandir(self._place) as entries:
            for entry in entries:
                if is_hidden(entry.name, own):
                    yield Path(entry.path)

    def _check(self) -> None:
        place = self._place
        with errors(place, "used", CURES):
            while not _exists(place):
                place = place.parent
            is_folder = place.is_dir()
        if not is_folder:
            raise UsageError(f"{place} can't be used: it is no folder. {CURES.wrong_kind}")
        self._try(place)

    def _try(self, place: Path) -> None:
        """Make something in a folder, and remove it: rights alone do not tell (``/proc`` takes no files, not even
        root's)."""
        if not os.access(place, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
            raise UsageError(f"{place} can't be written to by this user. {CURES.refused}")
        made = place / f".tmp-{secrets.token_hex(8)}"
        with errors(place, "written to", CURES):
            made.mkdir()
            made.rmdir()


class NewLocalFile:
    """See ``NewBatchFile``."""

    def __init__(self, folder: Path, prefix: str, name: str) -> None:
        self._base, self._prefix = folder, prefix
        self._target = self._named(name)
        with errors(self._target, "written", CURES):
            make_folder(self._target.parent)
            if os.path.lexists(self._target):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(self._target))
            self._file: HiddenFile | None = _locked(self._target)
        self._published = False
        self._dropped = weakref.finalize(self, _throw_away, self._file, os.getpid())

    def write(self, data: Bytes, /) -> None:
        """See ``NewBatchFile.write``."""
        file = self._open_file()
        with self._discarding(), errors(self._target, "written", CURES):
            file.append(data)

    def publish(self, name: str | None = None) -> str:
        """See ``NewBatchFile.publish``."""
        file = self._open_file()
        target = self._target if name is None else self._named(name)
        with self._discarding(), errors(target, "written", CURES):
            file.sync()
            _take_name(file.path, target)
            try:
                file.path.unlink(missing_ok=True)
                sync_folder(target.parent)
                file.close()
            except BaseException:
                with contextlib.suppress(OSError):
                    target.unlink()
                raise
        self._target, self._published, self._file = target, True, None
        self._dropped.detach()
        return f"file://{target}"

    def discard(self) -> None:
        """See ``NewBatchFile.discard``."""
        self._file = None
        self._dropped()

    def withdraw(self) -> None:
        """See ``NewBatchFile.withdraw``."""
        self.discard()
        if not self._published:
            return
        self._published = False
        try:
            self._target.unlink(missing_ok=True)
            sync_folder(self._target.parent)
        except OSError as error:
            logger.warning("batch file %s, whose message did not go out, can't be removed: %s", self._target, error)

    def _named(self, name: str) -> Path:
        if not is_plain(name) or "/" in name or name.startswith("."):
            raise ValueError(f"a batch file can't be named {name!r}")
        return self._base / f"{self._prefix}{name}"

    def _open_file(self) -> HiddenFile:
        if self._file is None:
            raise StorageError(f"{self._target} was given up, or is finished: nothing can be written to it.")
        return self._file

    @contextlib.contextmanager
    def _discarding(self) -> Iterator[None]:
        """Whatever goes wrong, nothing of the file stays. A name that is taken is an answer."""
        try:
            yield
        except FileExistsError:
            raise
        except BaseException:
            self.discard()
            raise


def _exists(path: Path) -> bool:
    """Whether there is something, also a link to nowhere. Rights that hide it are an error."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _throw_away(file: HiddenFile, pid: int) -> None:
    """Remove a file that nobody will finish; in a forked process it is its parent's."""
    if os.getpid() == pid:
        file.discard()


def _locked(target: Path) -> HiddenFile:
    """A new hidden file beside ``target`` whose lock this process has."""
    while True:
        file = HiddenFile(target.with_name(hidden_name(target.name, secrets.token_hex(8))))
        try:
            _lock(file.fd, fcntl.LOCK_EX)
            if os.fstat(file.fd).st_nlink:
                return file
        except BaseException:
            file.discard()
            raise
        file.discard()  # another process took it for a dead one, before it had its lock


def _lock(fd: int, how: int) -> bool | None:
    """Whether this process has the lock now; None on file systems that have no locks (there nothing is ever dead)."""
    try:
        fcntl.flock(fd, how)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _take_name(hidden: Path, target: Path) -> None:
    """Give a file its name in one step, if that is free.

    Where there are no hard links it is renamed, under a claim: nobody but burler makes such names, and of two burlers
    one gets the claim.
    """
    try:
        os.link(hidden, target)
        return
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
    claim = HiddenFile(target.with_name(hidden_name(target.name, _CLAIM)))
    try:
        _lock(claim.fd, fcntl.LOCK_EX)
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
        hidden.rename(target)
    finally:
        claim.discard()


def remove_if_dead(path: Path, *, old: bool = False, dry_run: bool = False) -> int | None:
    """Remove a hidden file whose process has ended; its bytes, or None if it stays.

    Args:
        old: where the file system has no locks, so that nobody knows of the process, age decides.
        dry_run: only say.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        locked = _lock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if locked is False or (locked is None and not old):
            return None
        size_bytes = os.fstat(fd).st_size
        if not dry_run:
            path.unlink(missing_ok=True)
        return size_bytes
    except OSError:
        return None
    finally:
        os.close(fd)
