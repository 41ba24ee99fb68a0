"""Whatever else fsspec reaches (SFTP, WebDAV, HDFS, ...): no conditions, so for a single writer.

A file is written under a hidden name and moved to its own, so that readers see it whole. Tags are made from contents.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import threading
from collections.abc import Callable
from typing import Any, BinaryIO, TypeVar, cast

from burler.errors import UsageError
from burler.localfile import hidden_name
from burler.storage.base import UNKNOWN_TIME, StoredFile
from burler.storage.bucket import FilesystemBucket, ObjectInfo, ObjectPart, Verdict
from burler.storage.faults import is_gone, open_filesystem
from burler.storage.find import below
from burler.storage.location import Location
from burler.storage.times import modified_seconds

_BLOCK_BYTES = 4 << 20
Call = TypeVar("Call", bound=Callable[..., Any])
_LOST = (ConnectionError, TimeoutError, EOFError)


def _one_at_a_time(call: Call) -> Call:
    """Such stores often have one connection, on which answers to two threads would be mixed up."""

    @functools.wraps(call)
    def in_turn(self: FsspecBucket, *given: Any, **named: Any) -> Any:
        with self.turn:
            return call(self, *given, **named)

    return cast(Call, in_turn)


class FsspecBucket(FilesystemBucket):
    """See ``Bucket``: a folder of any store of fsspec's. Keys are paths."""

    keeps_conditions = False
    wrong_tag = "none"
    in_order = False

    def __init__(self, filesystem: Any) -> None:
        super().__init__(filesystem, "")
        self.turn = threading.RLock()

    def verdict(self, error: BaseException) -> Verdict:
        """See ``Bucket.verdict``."""
        if isinstance(error, FileNotFoundError):
            return Verdict.MISSING
        if isinstance(error, _LOST) or getattr(error, "errno", None) in (errno.ECONNRESET, errno.ETIMEDOUT):
            return Verdict.LOST
        return Verdict.WRONG

    @_one_at_a_time
    def get(self, key: str, start: int, stop: int | None) -> ObjectPart:
        """See ``Bucket.get``."""
        size = int(self._fs.info(key)["size"])
        data = self._fs.cat_file(key, start=start, end=size if stop is None else min(stop, size)) if size else b""
        # Parts have no tag of their own: a file that is read in parts is a data file, and never changes.
        return ObjectPart(bytes(data), _tag(data) if stop is None else "", size)

    @_one_at_a_time
    def head(self, key: str) -> ObjectInfo:
        """See ``Bucket.head``."""
        tag, size = hashlib.sha256(), 0
        with self._fs.open(key, "rb") as file:
            while block := file.read(_BLOCK_BYTES):
                tag.update(block)
                size += len(block)
        return ObjectInfo(tag.hexdigest(), size, "")

    @_one_at_a_time
    def put(self, key: str, body: BinaryIO, size_bytes: int, *, mark: str, condition: str | None) -> str:
        """See ``Bucket.put``."""
        folder, _, name = key.rpartition("/")
        hidden, tag = f"{folder}/{hidden_name(name)}", hashlib.sha256()
        body.seek(0)
        try:
            self._fs.makedirs(folder, exist_ok=True)
            with self._fs.open(hidden, "wb") as file:
                while block := body.read(_BLOCK_BYTES):
                    file.write(block)
                    tag.update(block)
            self._move(hidden, key)
        except NotImplementedError:
            raise UsageError(f"this store can't be written to ({name}). Give another one, or a folder.") from None
        except BaseException:
            with contextlib.suppress(Exception):
                self._fs.rm_file(hidden)
            raise
        return tag.hexdigest()

    @_one_at_a_time
    def delete(self, key: str, *, condition: str | None) -> None:
        """See ``Bucket.delete``."""
        try:
            self._fs.rm_file(key)
        except FileNotFoundError:
            raise
        except Exception:  # each store says in its own way that there is nothing
            self._fs.invalidate_cache()
            if self._fs.exists(key):
                raise
            raise FileNotFoundError(key) from None

    @_one_at_a_time
    def list(self, prefix: str, after: str, most: int | None = None) -> tuple[list[StoredFile], str]:
        """See ``Bucket.list``: one page, since such stores have no others."""
        self._fs.invalidate_cache()
        plain = prefix.strip("/")
        files = []
        try:
            found = list(below(self._fs, prefix.rstrip("/"), None if most is None else 1))
        except FileNotFoundError as error:
            if is_gone(error):
                return [], ""
            raise
        for about in found:
            name = about["name"]
            inside = name[name.index(plain) + len(plain) :].strip("/")  # some lead with a slash of their own
            if inside and (about["type"] != "directory" or most is not None):
                modified = modified_seconds(self._fs, about)
                moment = UNKNOWN_TIME if modified is None else modified
                files.append(StoredFile(prefix + inside, int(about.get("size") or 0), moment))
        return files, ""

    @_one_at_a_time
    def folders(self, prefix: str) -> set[str]:
        """See ``Bucket.folders``."""
        self._fs.invalidate_cache()
        try:
            found = self._fs.ls(prefix.rstrip("/"), detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return set()
        return {about["name"].rstrip("/").rpartition("/")[2] for about in found if about["type"] == "directory"}

    def _move(self, hidden: str, key: str) -> None:
        """Some stores rename over what is there, others only where nothing is."""
        try:
            self._fs.mv(hidden, key)
        except (OSError, ValueError):
            if not self._fs.exists(key) or not self._fs.exists(hidden):
                raise
            self._fs.rm_file(key)
            self._fs.mv(hidden, key)
        self._fs.invalidate_cache()


def connect(location: Location) -> tuple[FsspecBucket, str]:
    """The store of a URL, and the path in it. See ``objects.Connect``."""
    opened, path = open_filesystem(location.url, location.options, location.words, own=True)
    return FsspecBucket(opened), path.rstrip("/")


def _tag(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
