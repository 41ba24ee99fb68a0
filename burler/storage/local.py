"""The store on a local disk: flock, temporary files, fsync, link and rename.

POSIX has no conditional replace, so one is made: under a lock on a hidden file beside the
target its content is compared, and a synced temporary file is renamed over it. Everything a reader
can see is complete at any moment, also after SIGKILL or a power cut. flock does not work reliably over NFS.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import logging
import os
import secrets
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from burler.clock import Pace
from burler.errors import StorageError
from burler.localfile import Cures, HiddenFile, errors, make_folder, sync_folder
from burler.storage.base import Blob, Conflict, OutcomeUnknown, StoredFile, check_path, is_hidden

Resolve = Callable[[str], Path]

_CURES = Cures(refused="Check the owner and the rights of the lake's folder.")


class LocalStore:
    """A folder of this machine as a store. It is made on the first write."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def url(self) -> str:
        """The folder, as it was given."""
        return str(self._root)

    def __repr__(self) -> str:
        return f"LocalStore({str(self._root)!r})"

    @property
    def conditional(self) -> bool:
        """True: flock, link and rename see to it."""
        return True

    def read(self, path: str, /) -> Blob | None:
        """A whole small file with its tag; None when there is none."""
        target = self._resolve(path)
        with _errors(target, "read"):
            data = _read(target)
        return None if data is None else Blob(data, _tag(data))

    def create(self, path: str, data: bytes, /) -> str:
        """Make a file with its content in one step, or raise FileExistsError."""
        target = self._resolve(path)
        with _errors(target, "created"), _temporary(target.parent) as temporary:
            temporary.write(data)
            temporary.link_to(target)
        return _tag(data)

    def replace(self, path: str, data: bytes, /, *, tag: str) -> str:
        """Compare and swap; see ``Store.replace``."""
        target = self._resolve(path)
        with _errors(target, "written"), _temporary(target.parent) as temporary:
            temporary.write(data)
            temporary.sync()  # before the lock is taken: it is held for a look and a rename
            with flocked(target):
                _compare(target, tag)
                temporary.rename_to(target)
            _sync_after(target)
        return _tag(data)

    def delete(self, path: str, /, *, tag: str) -> None:
        """Compare and delete; see ``Store.delete``."""
        target = self._resolve(path)
        with _errors(target, "removed"):
            with flocked(target):
                _compare(target, tag)
                target.unlink()
            sync_folder(target.parent)

    def remove(self, path: str, /) -> None:
        """Remove a file; fine if it is not there."""
        target = self._resolve(path)
        with _errors(target, "removed"), contextlib.suppress(FileNotFoundError):
            target.unlink()
            sync_folder(target.parent)

    def walk(self, folder: str, /) -> Iterator[str]:
        """Paths of all visible files below ``folder``, sorted."""
        yield from sorted(path for path, _ in self._entries(folder, hidden=False))

    def files(self, folder: str, /, *, hidden: bool = False) -> Iterator[StoredFile]:
        """The files below ``folder`` with size and time, sorted by path. One that goes meanwhile is left out."""
        found = sorted(self._entries(folder, hidden=hidden))
        for path, full in found:
            with _errors(Path(full), "looked at"):
                try:
                    seen = os.stat(full)  # noqa: PTH116  # 100,000 of them
                except FileNotFoundError:
                    continue
            yield StoredFile(path, seen.st_size, seen.st_mtime)

    def folders(self, folder: str, /) -> list[str]:
        """Names of the visible folders directly inside ``folder``, sorted."""
        base = self._resolve(folder)
        with _errors(base, "listed"):
            try:
                with os.scandir(base) as entries:
                    return sorted(e.name for e in entries if e.is_dir() and not e.name.startswith("."))
            except FileNotFoundError:
                return []

    def new_file(self, folder: str, /) -> _Temporary:
        """Begin a data file under a hidden name inside ``folder``."""
        target = self._resolve(folder)
        with _errors(target, "written"):
            return _Temporary(target, resolve=self._resolve)

    def open(self, path: str, /) -> BinaryIO:
        """A file for reading; FileNotFoundError when there is none."""
        target = self._resolve(path)
        with _errors(target, "read", missing_is_an_answer=True):
            return target.open("rb")

    def locate(self, path: str, /) -> str:
        """The absolute path of the file."""
        return str(self._resolve(path).absolute())

    def hold(self, path: str, /) -> LocalHold:
        """See ``Store.hold``: an flock on a hidden file beside ``path``, which is never removed."""
        target = self._resolve(path)
        with _errors(target, "held"):
            make_folder(target.parent)
            return LocalHold(target.with_name(f".{target.name}.hold"))

    def _entries(self, folder: str, *, hidden: bool) -> Iterator[tuple[str, str]]:
        """(path in the lake, path of this machine) of the files below a folder, in no order."""
        base = self._resolve(folder)
        with _errors(base, "listed"):
            for where, folders, names in os.walk(base, onerror=_raise_unless_missing):
                if not hidden:
                    folders[:] = [name for name in folders if not is_hidden(name)]
                inside = Path(where).relative_to(self._root).as_posix()
                for name in names:
                    if hidden or not is_hidden(name):
                        yield f"{inside}/{name}", f"{where}/{name}"

    def _resolve(self, path: str) -> Path:
        """A path of the lake as a path of this machine; never one outside of the lake."""
        return self._root.joinpath(*check_path(path, str(self._root)))


class _Temporary:
    """A file under a hidden name, until it gets its real one. All errors are burler's own."""

    def __init__(self, folder: Path, *, resolve: Resolve | None = None) -> None:
        make_folder(folder)
        self._resolve = resolve
        self._file = HiddenFile(folder / f".tmp-{secrets.token_hex(12)}")

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        """Append all of ``data``."""
        with _errors(self._file.path, "written"):
            self._file.append(data)

    def publish(self, path: str, /) -> None:
        """See ``NewFile.publish``."""
        assert self._resolve is not None
        target = self._resolve(path)
        with _errors(target, "created"):
            self.link_to(target)

    def link_to(self, target: Path) -> None:
        """Sync, and take the name ``target`` if it is free."""
        self._file.sync()
        os.link(self._file.path, target)
        self.discard()
        _sync_after(target)

    def sync(self) -> None:
        """Have the content on disk."""
        self._file.sync()

    def rename_to(self, target: Path) -> None:
        """Take the name ``target`` from whatever has it."""
        self._file.path.replace(target)

    def discard(self) -> None:
        """Close, and remove the hidden name."""
        self._file.discard()


@contextlib.contextmanager
def _temporary(folder: Path) -> Iterator[_Temporary]:
    temporary = _Temporary(folder)
    try:
        yield temporary
    finally:
        temporary.discard()


def _compare(target: Path, tag: str) -> None:
    data = _read(target)
    if data is None or _tag(data) != tag:
        raise Conflict(str(target))


def _read(target: Path) -> bytes | None:
    try:
        return target.read_bytes()
    except FileNotFoundError:
        return None


def _tag(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _sync_after(target: Path) -> None:
    """Make a visible name durable; if that fails, nobody knows what a power cut would leave."""
    try:
        sync_folder(target.parent)
    except OSError as error:
        raise OutcomeUnknown(f"{target}: written, but not known to be on disk: {error.strerror}.") from error


def _raise_unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _errors(target: Path, doing: str, *, missing_is_an_answer: bool = False) -> contextlib.AbstractContextManager[None]:
    return errors(target, doing, _CURES, missing_is_an_answer=missing_is_an_answer)


_BUSY = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES}


class LocalHold:
    """Tries to take the flock of a file, which is made if need be, without waiting. See ``Hold``.

    Raises:
        OSError: the file can't be opened, or its file system has no flock.
    """

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.release()
            if error.errno not in _BUSY:
                raise
        else:
            _HELD.add(self)

    @property
    def taken(self) -> bool:
        """See ``Hold.taken``."""
        return self._fd >= 0

    def release(self) -> None:
        """See ``Hold.release``."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)


_HELD: weakref.WeakSet[LocalHold] = weakref.WeakSet()


def _let_go_in_child() -> None:
    """A forked child shares the flock, and would keep it alive when its parent is dead."""
    for hold in list(_HELD):
        hold.release()


os.register_at_fork(after_in_child=_let_go_in_child)


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
