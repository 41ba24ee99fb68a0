"""The interface that every store fulfils.

What lake and BATCH need of a store is little, and all of their safety rests on it:

* ``create`` makes a file with its whole content, or fails because there is one;
* ``replace`` is compare-and-swap: it succeeds only if the file still has the tag that was read;
* a data file is written under a name no reader sees, and published under a name that was free.

Paths are relative to the store's folder, with ``/`` between components.

The stores: ``local`` (a folder), ``memory`` (this process), ``s3``, ``gcs``, ``azure`` (objects, by conditional
requests; what they share stands in ``objects``), ``fsspec_store`` (whatever else fsspec reaches, for a single writer).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
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
        path: relative to the store's folder.
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
    """A place for files: a lake, or a folder of batch files.

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
        """Paths of all files below ``folder``, as ``files`` finds them."""
        return (file.path for file in self.files(folder))

    def files(
        self, folder: str, /, *, hidden: bool = False, unreadable: Callable[[str, OSError], object] | None = None
    ) -> Iterator[StoredFile]:
        """All files below ``folder`` at any depth, sorted by path; hidden ones (``.``) left out. A folder that does not
        exist has none. One paged listing on object stores, however deep.

        Args:
            hidden: also names and folders that begin with ``.``: temporary files (``.tmp-...``), sidecars of locks.
            unreadable: takes (path, error) of each folder below that this user may not list; None: it is an error.
        """

    def folders(self, folder: str, /) -> list[str]:
        """Names of the folders directly inside ``folder``, sorted; hidden ones left out."""

    def new_file(self, folder: str, /, name: str = "") -> NewFile:
        """Begin a data file that will be published inside ``folder``.

        Args:
            name: stands in the hidden name that the file has on a disk while it is written.
        """

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

    def look(self, folder: str, /) -> bool:
        """Whether anything is below ``folder``: asked before anything else is done.

        Raises:
            UsageError: no such bucket, no rights. StorageError: no answer within a short time.
        """


class FileStore(Store, Protocol):
    """A store whose files others read by their URLs: what BATCH needs beside the rest."""

    def try_writing(self, folder: str, /) -> None:
        """Ask for something, so that it shows now if nothing can be written to ``folder``. Who may only write may not
        look: that is no error.

        Raises:
            UsageError, StorageError: as ``look``.
        """

    def sign(self, path: str, seconds: int, /) -> str:
        """A URL with which anybody can read a file for so long.

        Raises:
            NotImplementedError: there is no such thing here. And what the store's library raises.
        """

    def leftovers(self, folder: str, /) -> list[str]:
        """Hidden files directly inside ``folder`` that a process was writing which has ended, as far as one can know:
        on disks."""
        return []

    def remove_left(self, path: str, /, *, old: bool, dry_run: bool = False) -> bool:
        """Remove a hidden file if the process that was writing it has ended; whether it has. Where nobody knows,
        ``old`` decides."""

    def abort_uploads(
        self, folder: str, wanted: Callable[[str], bool], /, *, before: float, dry_run: bool = False
    ) -> Iterator[StoredFile]:
        """Abort uploads of files below ``folder`` that were begun before a time (seconds since 1970) and never ended.
        S3 keeps their parts, and bills them, for ever; on other stores there are none.

        Args:
            wanted: whether an upload is meant, by the path of its file in ``folder``.
        """
        return iter(())


def check_path(path: str, url: str) -> list[str]:
    """The components of a path of the store.

    Raises:
        LakeError: it leads out of the store, or nowhere. ``url`` is what the error calls the store.
    """
    parts = path.split("/")
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise LakeError(f"{url}: the path {path!r} leads out of it, or nowhere.")
    return parts


def check_folder(path: str, url: str) -> list[str]:
    """``check_path`` of a folder; the store itself is the folder ``""``."""
    return check_path(path, url) if path else []


def is_hidden(path: str) -> bool:
    """Whether a path, or a folder in it, begins with ``.``; readers never see it."""
    return path.startswith(".") or "/." in path
