"""The interface that every store fulfils.

What a lake needs of a store is little, and all of its safety rests on it:

* ``create`` makes a file with its whole content, or fails because there is one;
* ``replace`` is compare-and-swap: it succeeds only if the file still has the tag that was read;
* a data file is written under a name no reader sees, and published under a name that was free.

Paths are relative to the lake, with ``/`` between components (see ``burler.lake.layout``).

The stores: ``local`` (a folder), ``memory`` (this process), ``s3``, ``gcs``, ``azure`` (objects, by conditional
requests; what they share stands in ``objects``), ``fsspec_store`` (whatever else fsspec reaches, for a single writer).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from burler.errors import LakeError, StorageError


class Conflict(Exception):
    """A conditional ``replace`` or ``delete`` came too late: the file has another tag by now."""


class OutcomeUnknown(StorageError):
    """A write may or may not have happened (lost reply, failed sync): read again before judging."""


@dataclass(frozen=True, slots=True)
class Blob:
    """A small file as it was read: its bytes, and the tag that ``replace`` and ``delete`` compare."""

    data: bytes
    tag: str


UNKNOWN_TIME = math.inf
"""Of a file of which its store does not say when it was written: behind all times, so that it is never old."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """What a listing knows of a file.

    Attributes:
        path: relative to the lake.
        size_bytes: as stored (compressed).
        modified: when it was written, in seconds since 1970 by the store's clock; ``UNKNOWN_TIME`` where that does not
            say.
    """

    path: str
    size_bytes: int
    modified: float


class Hold(Protocol):
    """A sign that a process of this machine lives, which ends with the process however that ends."""

    @property
    def taken(self) -> bool:
        """False: another living process of this machine (or another hold of this one) has it."""

    def release(self) -> None:
        """Give it back. Safe to call again, and where it was not taken."""


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

    @property
    def conditional(self) -> bool:
        """Whether ``create`` and ``replace`` keep their conditions among processes (see ``probe``). If not, one writer
        alone may use the lake. Object stores are asked once, by writing, when this is first needed."""

    def read(self, path: str, /) -> Blob | None:
        """A whole small file with its tag; None when there is none."""

    def create(self, path: str, data: bytes, /) -> str:
        """Make a file with its content in one step; the new tag.

        Raises:
            FileExistsError: there is one already.
            OutcomeUnknown: the store can't tell whether it happened.
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
            OutcomeUnknown: the store can't tell whether it happened.
        """

    def remove(self, path: str, /) -> None:
        """Remove a file whatever it is; fine if it is not there. Only for what nobody refers to any more."""

    def walk(self, folder: str, /) -> Iterator[str]:
        """Paths of all files below ``folder`` at any depth, sorted; hidden ones (``.``) left out.

        A folder that does not exist has no files.
        """

    def files(self, folder: str, /, *, hidden: bool = False) -> Iterator[StoredFile]:
        """As ``walk``, with what a listing knows of each file. One paged listing on object stores, however deep.

        Args:
            hidden: also names and folders that begin with ``.``: temporary files (``.tmp-...``), sidecars of locks.
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

    def hold(self, path: str, /) -> Hold | None:
        """Try, without waiting, to hold a sign of life beside ``path`` that the kernel drops when this process ends.
        None: this store knows no such thing."""


def check_path(path: str, url: str) -> list[str]:
    """The components of a path of the lake.

    Raises:
        LakeError: it leads out of the lake, or nowhere. ``url`` is what the error calls the lake.
    """
    parts = path.split("/")
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise LakeError(f"{url}: the lake refers to the path {path!r}, which leads out of it or nowhere.")
    return parts


def is_hidden(path: str) -> bool:
    """Whether a path, or a folder in it, begins with ``.``; readers never see it."""
    return path.startswith(".") or "/." in path
