"""Where a lake's bytes live: the interface every store fulfils, and the local one (specs 3).

What a lake needs of a store is little, and all of its safety rests on it:

* ``create`` makes a file with its whole content, or fails because there is one;
* ``replace`` is compare-and-swap: it succeeds only if the file still has the tag that was read;
* a data file is written under a name no reader sees, and published under a name that was free.

Paths are relative to the lake, with ``/`` between components (see ``burler.lake.layout``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol
from urllib.parse import unquote, urlsplit

from burler.errors import StorageError, UsageError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


class Conflict(Exception):
    """A conditional ``replace`` or ``delete`` came too late: the file has another tag by now."""


class OutcomeUnknown(StorageError):
    """A write may or may not have happened (lost reply, failed sync): read again before judging."""


@dataclass(frozen=True, slots=True)
class Blob:
    """A small file as it was read: its bytes, and the tag that ``replace`` and ``delete`` compare."""

    data: bytes
    tag: str


class NewFile(Protocol):
    """A data file while it is written; nobody sees it before ``publish``."""

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        """Append bytes.

        Raises:
            StorageError: the store is full or gone.
        """

    def publish(self, path: str, /) -> None:
        """Make the file durable and visible under ``path``. After FileExistsError another name may be tried.

        Raises:
            FileExistsError: there is a file of that name; it is untouched.
        """

    def discard(self) -> None:
        """Remove what was written. Safe to call at any time, and again; never touches a published file."""


class Store(Protocol):
    """A place for lakes.

    Every method may raise ``StorageError``, or ``UsageError`` if the place itself is wrong.
    """

    @property
    def url(self) -> str:
        """What a person would type to open this store again."""

    def read(self, path: str, /) -> Blob | None:
        """A whole small file with its tag; None when there is none."""

    def create(self, path: str, data: bytes, /) -> str:
        """Make a file with its content in one step; the new tag.

        Raises:
            FileExistsError: there is one already.
        """

    def replace(self, path: str, data: bytes, /, *, tag: str) -> str:
        """Replace a file if it still has ``tag``; the new tag.

        Raises:
            Conflict: it has another tag, or is gone.
            OutcomeUnknown: the store can't tell whether it happened.
        """

    def delete(self, path: str, /, *, tag: str) -> None:
        """Remove a file if it still has ``tag``.

        Raises:
            Conflict: it has another tag, or is gone.
        """

    def walk(self, folder: str, /) -> Iterator[str]:
        """Paths of all files below ``folder`` at any depth, sorted; hidden ones (``.``) left out.

        A folder that does not exist has no files.
        """

    def folders(self, folder: str, /) -> list[str]:
        """Names of the folders directly inside ``folder``, sorted; hidden ones left out."""

    def new_file(self, folder: str, /) -> NewFile:
        """Begin a data file that will be published inside ``folder``."""

    def open(self, path: str, /) -> BinaryIO:
        """A file for reading from its start.

        Raises:
            FileNotFoundError: there is none.
        """

    def locate(self, path: str, /) -> str:
        """The name under which other programs (Spark, DuckDB, zcat) find the file."""


def open_store(url: str, *, must_exist: bool = False, options: Mapping[str, Any] | None = None) -> Store:
    """The store at ``url``: a local path or a ``file://`` URL.

    Raises:
        UsageError: another kind of URL, a path that is a file, or, with ``must_exist``, nothing there.
    """
    from burler.lake.local import LocalStore

    path = _local_path(url)
    if path.exists() and not path.is_dir():
        raise UsageError(f"{url} is a file, and a lake is a folder. Give the folder that holds 'raw', or a new one.")
    if must_exist and not path.is_dir():
        raise UsageError(f"there is no lake at {url}: no such folder. Make one: some-tap | burler lake write {url}")
    return LocalStore(path)


def _local_path(url: str) -> Path:
    if not url or "\0" in url:
        raise UsageError("the lake's path is empty or no path. Give a folder, such as ./lake.")
    if not _SCHEME.match(url):
        return Path(url)
    parts = urlsplit(url)
    if parts.scheme.lower() != "file" or parts.netloc not in ("", "localhost"):
        raise UsageError(f"{url}: only local paths work so far. Give a folder, such as ./lake, or a file:///... URL.")
    if parts.query or parts.fragment:
        raise UsageError(f"{url}: '?' and '#' must be written as %3F and %23 in a file URL; or give the plain path.")
    return Path(unquote(parts.path))
