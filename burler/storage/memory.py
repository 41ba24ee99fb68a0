"""A bucket in the memory of this process, for tests and tries: ``memory://name``."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from burler.storage.base import StoredFile
from burler.storage.bucket import ABSENT, Bucket, ObjectInfo, ObjectPart, Verdict
from burler.storage.location import Location


@dataclass(frozen=True, slots=True)
class _Kept:
    data: bytes
    tag: str
    mark: str
    modified: float


@dataclass(slots=True)
class _Files:
    """What all stores of one name share."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    kept: dict[str, _Kept] = field(default_factory=dict)
    writes: int = 0


_NAMED: dict[str, _Files] = {}


class MemoryBucket(Bucket):
    """See ``Bucket``. It ends with this process; its conditions hold among threads; no tag comes twice."""

    keeps_conditions = True
    wrong_tag = "0"
    in_order = True

    def __init__(self, files: _Files) -> None:
        self._files = files

    def verdict(self, error: BaseException) -> Verdict:
        """See ``Bucket.verdict``."""
        if isinstance(error, FileExistsError):
            return Verdict.REFUSED
        return Verdict.MISSING if isinstance(error, FileNotFoundError) else Verdict.WRONG

    def get(self, key: str, start: int, stop: int | None) -> ObjectPart:
        """See ``Bucket.get``."""
        kept = self._found(key)
        return ObjectPart(kept.data[start:stop], kept.tag, len(kept.data))

    def head(self, key: str) -> ObjectInfo:
        """See ``Bucket.head``."""
        kept = self._found(key)
        return ObjectInfo(kept.tag, len(kept.data), kept.mark)

    def put(self, key: str, body: BinaryIO, size_bytes: int, *, mark: str, condition: str | None) -> str:
        """See ``Bucket.put``."""
        body.seek(0)
        data = body.read()
        with self._files.lock:
            self._compare(key, condition)
            self._files.writes += 1
            self._files.kept[key] = kept = _Kept(data, str(self._files.writes), mark, time.time())
            return kept.tag

    def delete(self, key: str, *, condition: str | None) -> None:
        """See ``Bucket.delete``."""
        with self._files.lock:
            self._compare(key, condition)
            self._files.kept.pop(key, None)

    def list(self, prefix: str, after: str, most: int | None = None) -> tuple[list[StoredFile], str]:
        """See ``Bucket.list``: one page."""
        with self._files.lock:
            found = sorted((key, kept) for key, kept in self._files.kept.items() if key.startswith(prefix))
        return [StoredFile(key, len(kept.data), kept.modified) for key, kept in found], ""

    def folders(self, prefix: str) -> set[str]:
        """See ``Bucket.folders``."""
        rests = [file.path[len(prefix) :] for file in self.list(prefix, "")[0]]
        return {rest.partition("/")[0] for rest in rests if "/" in rest}

    def sign(self, key: str, seconds: int) -> str:
        """See ``Bucket.sign``."""
        raise NotImplementedError("there is nobody else who could read it")

    def _found(self, key: str) -> _Kept:
        kept = self._files.kept.get(key)
        if kept is None:
            raise FileNotFoundError(key)
        return kept

    def _compare(self, key: str, condition: str | None) -> None:
        kept = self._files.kept.get(key)
        if condition is not None and condition != (ABSENT if kept is None else kept.tag):
            raise FileExistsError(key)


class ConnectMemory:
    """Finds the bucket of a name. See ``objects.Connect``."""

    def __call__(self, location: Location) -> tuple[MemoryBucket, str]:
        """Stores of one name have the same files."""
        return MemoryBucket(_NAMED.setdefault(location.url, _Files())), ""

    def __reduce__(self) -> Any:
        raise TypeError("a store in memory can't be sent to another process: its files are in this one. Use a folder.")
