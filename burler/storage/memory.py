"""A store in the memory of this process, for tests and tries: ``memory://name``."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from burler.errors import StorageError
from burler.storage.base import Blob, Conflict, StoredFile, check_folder, check_path, is_hidden


@dataclass(frozen=True, slots=True)
class _Kept:
    data: bytes
    tag: str
    modified: float


@dataclass(slots=True)
class _Files:
    """What all stores of one name share."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    kept: dict[str, _Kept] = field(default_factory=dict)
    writes: int = 0


_NAMED: dict[str, _Files] = {}


class MemoryStore:
    """A store that ends with this process. Its conditions hold among threads; no tag comes twice.

    Args:
        name: stores of one name have the same files; without a name it is alone.
        now: seconds since 1970, for ``StoredFile.modified``.
    """

    def __init__(self, name: str = "", *, now: Callable[[], float] = time.time) -> None:
        self._name, self._now = name, now
        self._files = _NAMED.setdefault(name, _Files()) if name else _Files()

    @property
    def url(self) -> str:
        """``memory://name``."""
        return f"memory://{self._name}"

    @property
    def conditional(self) -> bool:
        """True."""
        return True

    def __repr__(self) -> str:
        return f"MemoryStore({self._name!r})"

    def __reduce__(self) -> str:
        raise TypeError(f"{self.url} can't be sent to another process: its files are in this one. Use a folder.")

    def read(self, path: str, /) -> Blob | None:
        """A whole small file with its tag; None when there is none."""
        kept = self._files.kept.get(self._checked(path))
        return None if kept is None else Blob(kept.data, kept.tag)

    def create(self, path: str, data: bytes, /) -> str:
        """Make a file with its content in one step, or raise FileExistsError."""
        path = self._checked(path)
        with self._files.lock:
            if path in self._files.kept:
                raise FileExistsError(self.locate(path))
            return self._put(path, data)

    def replace(self, path: str, data: bytes, /, *, tag: str) -> str:
        """Compare and swap; see ``Store.replace``."""
        path = self._checked(path)
        with self._files.lock:
            self._compare(path, tag)
            return self._put(path, data)

    def delete(self, path: str, /, *, tag: str) -> None:
        """Compare and delete; see ``Store.delete``."""
        path = self._checked(path)
        with self._files.lock:
            self._compare(path, tag)
            del self._files.kept[path]

    def remove(self, path: str, /) -> None:
        """Remove a file; fine if it is not there."""
        path = self._checked(path)
        with self._files.lock:
            self._files.kept.pop(path, None)

    def walk(self, folder: str, /) -> Iterator[str]:
        """Paths of all visible files below ``folder``, sorted."""
        for file in self.files(folder):
            yield file.path

    def files(self, folder: str, /, *, hidden: bool = False, unreadable: object = None) -> Iterator[StoredFile]:
        """The files below ``folder`` as they are now, sorted by path; see ``Store.files``."""
        begin = self._checked(folder) + "/" if folder else ""
        with self._files.lock:
            found = sorted((path, kept) for path, kept in self._files.kept.items() if path.startswith(begin))
        for path, kept in found:
            if hidden or not is_hidden(path[len(begin) :]):
                yield StoredFile(path, len(kept.data), kept.modified)

    def folders(self, folder: str, /) -> list[str]:
        """Names of the visible folders directly inside ``folder``, sorted."""
        begin = self._checked(folder) + "/" if folder else ""
        with self._files.lock:
            rests = [path[len(begin) :] for path in self._files.kept if path.startswith(begin)]
        return sorted({rest.partition("/")[0] for rest in rests if "/" in rest and not is_hidden(rest.split("/")[0])})

    def new_file(self, folder: str, /, name: str = "") -> NewMemoryFile:
        """Begin a data file."""
        check_folder(folder, self.url)
        return NewMemoryFile(self)

    def open(self, path: str, /) -> BinaryIO:
        """A file for reading; FileNotFoundError when there is none."""
        blob = self.read(path)
        if blob is None:
            raise FileNotFoundError(self.locate(path))
        return io.BytesIO(blob.data)

    def locate(self, path: str, /) -> str:
        """``memory://name/path``."""
        return f"{self.url}/{self._checked(path)}"

    def hold(self, path: str, /) -> None:
        """None: nothing here outlives the process."""
        self._checked(path)

    def look(self, folder: str, /) -> bool:
        """Whether anything is below ``folder``."""
        return next(self.files(folder), None) is not None

    def _checked(self, path: str) -> str:
        check_path(path, self.url)
        return path

    def _put(self, path: str, data: bytes) -> str:
        self._files.writes += 1
        kept = _Kept(bytes(data), str(self._files.writes), self._now())
        self._files.kept[path] = kept
        return kept.tag

    def _compare(self, path: str, tag: str) -> None:
        kept = self._files.kept.get(path)
        if kept is None or kept.tag != tag:
            raise Conflict(self.locate(path))


class NewMemoryFile:
    """See ``NewFile``."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._data: bytearray | None = bytearray()

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        """See ``NewFile.write``."""
        if self._data is None:
            raise StorageError(f"{self._store.url}: a file that is published or discarded can't be written.")
        self._data += data

    def publish(self, path: str, /) -> None:
        """See ``NewFile.publish``."""
        if self._data is None:
            raise StorageError(f"{self._store.url}: a file that is published or discarded can't be published.")
        self._store.create(path, bytes(self._data))
        self._data = None

    def discard(self) -> None:
        """See ``NewFile.discard``."""
        self._data = None
