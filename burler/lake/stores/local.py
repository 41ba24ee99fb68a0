"""The store on a local disk: flock, temporary files, fsync, link and rename.

POSIX has no conditional replace, so one is made: under a lock on a hidden file beside the
target its content is compared, and a synced temporary file is renamed over it. Everything a reader
can see is complete at any moment, also after SIGKILL or a power cut. flock does not work reliably over NFS.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from burler.lake.store import Blob, Conflict, OutcomeUnknown, StoredFile, check_path, is_hidden
from burler.lake.stores.local_hold import LocalHold
from burler.lake.stores.local_lock import flocked
from burler.target.local_file import Cures, HiddenFile, errors, make_folder, sync_folder

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
