"""The store on a local disk: flock, temporary files, fsync, link and rename.

POSIX has no conditional replace, so one is made: under a lock on a hidden file beside the
target its content is compared, and a synced temporary file is renamed over it. Everything a reader
can see is complete at any moment, also after SIGKILL or a power cut. flock does not work reliably over NFS.

While a process writes a new file it holds a flock on it, which the kernel takes away when the process ends, however it
ends: so others can tell what a killed one has left from what is being written just now.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from burler.errors import StorageError, UsageError
from burler.localfile import (
    FileLock,
    HiddenFile,
    create_file,
    errors,
    hidden_file,
    hidden_name,
    locked_beside,
    make_folder,
    sync_path,
    take_name,
    try_lock,
)
from burler.storage.base import (
    Blob,
    Conflict,
    FileStore,
    OutcomeUnknown,
    StoredFile,
    check_folder,
    check_path,
    is_hidden,
)
from burler.storage.location import Words


class LocalStore(FileStore):
    """A folder of this machine as a store. It is made on the first write."""

    def __init__(self, root: Path, words: Words) -> None:
        self._root, self._words = root, words

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
        with self._errors(target, "read"):
            data = _read(target)
        return None if data is None else Blob(data, _tag(data))

    def create(self, path: str, data: bytes, /) -> str:
        """Make a file with its content in one step, or raise FileExistsError."""
        target = self._resolve(path)
        with self._errors(target, "created"):
            make_folder(target.parent)
            create_file(target, data, name=hidden_name())
            _sync_after(target, self._words.cures.other)
        return _tag(data)

    def replace(self, path: str, data: bytes, /, *, tag: str) -> str:
        """Compare and swap; see ``Store.replace``."""
        target = self._resolve(path)
        with self._errors(target, "written"):
            make_folder(target.parent)
            with hidden_file(target, name=hidden_name()) as temporary:
                temporary.append(data)
                temporary.sync()  # before the lock is taken: it is held for a look and a rename
                with locked_beside(target):
                    _compare(target, tag)
                    temporary.path.replace(target)
            _sync_after(target, self._words.cures.other)
        return _tag(data)

    def delete(self, path: str, /, *, tag: str) -> None:
        """Compare and delete; see ``Store.delete``."""
        target = self._resolve(path)
        with self._errors(target, "removed"):
            with locked_beside(target):
                _compare(target, tag)
                target.unlink()
            sync_path(target.parent)

    def remove(self, path: str, /) -> None:
        """Remove a file; fine if it is not there."""
        target = self._resolve(path)
        with self._errors(target, "removed"), contextlib.suppress(FileNotFoundError):
            target.unlink()
            sync_path(target.parent)

    def files(
        self, folder: str, /, *, hidden: bool = False, unreadable: Callable[[str, OSError], object] | None = None
    ) -> Iterator[StoredFile]:
        """The files below ``folder`` with size and time, sorted by path. One that goes meanwhile is left out."""
        found = sorted(self._entries(folder, hidden=hidden, unreadable=unreadable))
        for path, full in found:
            with self._errors(Path(full), "looked at"):
                try:
                    seen = os.stat(full)  # noqa: PTH116  # 100,000 of them
                except FileNotFoundError:
                    continue
            yield StoredFile(path, seen.st_size, seen.st_mtime)

    def folders(self, folder: str, /) -> list[str]:
        """Names of the visible folders directly inside ``folder``, sorted."""
        base = self._root.joinpath(*check_folder(folder, self.url))
        with self._errors(base, "listed"):
            try:
                with os.scandir(base) as entries:
                    return sorted(e.name for e in entries if e.is_dir() and not e.name.startswith("."))
            except FileNotFoundError:
                return []

    def new_file(self, folder: str, /, name: str = "") -> NewLocalFile:
        """Begin a data file under a hidden name inside ``folder``."""
        return NewLocalFile(self, self._root.joinpath(*check_folder(folder, self.url)), name)

    def open(self, path: str, /) -> BinaryIO:
        """A file for reading; FileNotFoundError when there is none."""
        target = self._resolve(path)
        with self._errors(target, "read", missing_is_an_answer=True):
            return target.open("rb")

    def locate(self, path: str, /) -> str:
        """The absolute path of the file."""
        return str(self._resolve(path).absolute())

    def hold(self, path: str, /) -> FileLock:
        """See ``Store.hold``: an flock on a hidden file beside ``path``, which is never removed."""
        target = self._resolve(path)
        with self._errors(target, "held"):
            make_folder(target.parent)
            return FileLock(target.with_name(f".{target.name}.hold"))

    def look(self, folder: str, /) -> bool:
        """See ``Store.look``."""
        return next(self.files(folder), None) is not None

    def try_writing(self, folder: str, /) -> None:
        """See ``Store.try_writing``. Something is made, and removed: rights alone do not tell (``/proc`` takes no
        files, not even root's)."""
        place = self._root.joinpath(*check_folder(folder, self.url))
        with self._errors(place, "used"):
            while not _exists(place):
                place = place.parent
            is_folder = place.is_dir()
        if not is_folder:
            raise UsageError(f"{place} can't be used: it is no folder. {self._words.cures.wrong_kind}")
        if not os.access(place, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
            raise UsageError(f"{place} can't be written to by this user. {self._words.cures.refused}")
        made = place / hidden_name()
        with self._errors(place, "written to"):
            made.mkdir()
            made.rmdir()

    def leftovers(self, folder: str, /) -> list[str]:
        """Hidden files directly inside ``folder`` whose process has ended, sorted."""
        base = self._root.joinpath(*check_folder(folder, self.url))
        with contextlib.suppress(OSError), os.scandir(base) as entries:
            found = [entry.name for entry in entries if is_hidden(entry.name) and not entry.is_dir()]
            return sorted(f"{folder}/{name}".lstrip("/") for name in found if _if_dead(base / name) is not None)
        return []

    def remove_left(self, path: str, /, *, old: bool, dry_run: bool = False) -> bool:
        """See ``Store.remove_left``."""
        return _if_dead(self._resolve(path), old=old, remove=not dry_run) is not None

    def sign(self, path: str, seconds: int, /) -> str:
        """See ``Store.sign``."""
        raise NotImplementedError("files of a folder have no signed URLs")

    def _entries(
        self, folder: str, *, hidden: bool, unreadable: Callable[[str, OSError], object] | None = None
    ) -> Iterator[tuple[str, str]]:
        """(path in the store, path of this machine) of the files below a folder, in no order."""
        base = self._root.joinpath(*check_folder(folder, self.url))

        def failed(error: OSError) -> None:
            if isinstance(error, FileNotFoundError):
                return
            if unreadable is None or Path(error.filename) == base:
                raise error
            unreadable(Path(error.filename).relative_to(self._root).as_posix(), error)

        with self._errors(base, "listed"):
            for where, folders, names in os.walk(base, onerror=failed):
                if not hidden:
                    folders[:] = [name for name in folders if not is_hidden(name)]
                inside = Path(where).relative_to(self._root).as_posix()
                for name in names:
                    if hidden or not is_hidden(name):
                        yield name if inside == "." else f"{inside}/{name}", f"{where}/{name}"

    def _resolve(self, path: str) -> Path:
        """A path of the store as a path of this machine; never one outside of the store."""
        return self._root.joinpath(*check_path(path, self.url))

    def _errors(
        self, target: Path, doing: str, *, missing_is_an_answer: bool = False
    ) -> contextlib.AbstractContextManager[None]:
        return errors(target, doing, self._words.cures, missing_is_an_answer=missing_is_an_answer)


class NewLocalFile:
    """See ``NewFile``. One that is dropped is discarded."""

    def __init__(self, store: LocalStore, folder: Path, name: str) -> None:
        self._store, self._place = store, folder / name
        with store._errors(self._place, "written"):
            make_folder(folder)
            self._file: HiddenFile | None = _locked(folder, name)
        self._dropped = weakref.finalize(self, _throw_away, self._file, os.getpid())

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        """See ``NewFile.write``."""
        file = self._open()
        with self._store._errors(self._place, "written"):
            file.append(data)

    def publish(self, path: str, /) -> None:
        """See ``NewFile.publish``."""
        file = self._open()
        target = self._store._resolve(path)
        with self._store._errors(target, "written"):
            file.sync()
            take_name(file.path, target)
            self.discard()
            _sync_after(target, self._store._words.cures.other)

    def discard(self) -> None:
        """See ``NewFile.discard``."""
        self._file = None
        self._dropped()

    def _open(self) -> HiddenFile:
        if self._file is None:
            raise StorageError(f"{self._place} was given up, or is finished: nothing can be written to it.")
        return self._file


def _locked(folder: Path, name: str) -> HiddenFile:
    """A new hidden file whose lock this process has."""
    while True:
        file = HiddenFile(folder / hidden_name(name))
        try:
            try_lock(file.fd, wait=True)
            if os.fstat(file.fd).st_nlink:
                return file
        except BaseException:
            file.discard()
            raise
        file.discard()  # another process took it for a dead one, before it had its lock


def _throw_away(file: HiddenFile, pid: int) -> None:
    """Remove a file that nobody will finish; in a forked process it is its parent's."""
    if os.getpid() == pid:
        file.discard()


def _if_dead(path: Path, *, old: bool = False, remove: bool = False) -> int | None:
    """The bytes of a hidden file whose process has ended; else None.

    Args:
        old: where the file system has no locks, so that nobody knows of the process, age decides.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        locked = try_lock(fd)
        if locked is False or (locked is None and not old):
            return None
        if remove:
            path.unlink(missing_ok=True)
        return os.fstat(fd).st_size
    except OSError:
        return None
    finally:
        os.close(fd)


def _exists(path: Path) -> bool:
    """Whether there is something, also a link to nowhere. Rights that hide it are an error."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


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


def _sync_after(target: Path, cure: str) -> None:
    """Make a visible name durable; if that fails, nobody knows what a power cut would leave."""
    try:
        sync_path(target.parent)
    except OSError as error:
        raise OutcomeUnknown(f"{target}: written, but not known to be on disk: {error.strerror}. {cure}") from error
