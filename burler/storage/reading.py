"""One file by its URL: of this machine, of web servers (see ``web``), and of every store that fsspec reaches.

A connection that breaks off is an error: no file is ever taken to end where it was only cut.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

from burler.config.secrets import hide
from burler.storage.faults import (
    is_about_credentials,
    is_about_options,
    is_forbidden,
    is_gone,
    open_filesystem,
    said,
)
from burler.storage.location import Words, hide_options, local_path
from burler.storage.web import Gate, ReadFault, Refused, WebFile

_WEB = ("http", "https")
_PIECE_BYTES = 1 << 20
_BLOCK_BYTES = 4 << 20
"""Asked of a store at once; about twice as much is held."""


class CountedFile(io.RawIOBase):
    """A file as its store gives it. Fewer bytes than it is known to have are an error."""

    def __init__(self, file: Any, size_bytes: int | None) -> None:
        super().__init__()
        self._file, self._size = file, size_bytes

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """Whether the file says so."""
        return bool(self._file.seekable())

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        """The place."""
        return int(self._file.tell())

    def read(self, size: int = -1, /) -> bytes:
        """At most so many bytes; b"" at the end."""
        piece: bytes = self._file.read(size)
        if not piece and size and self._size is not None and self.tell() < self._size:
            raise ReadFault(f"ends after {self.tell():,} of {self._size:,} bytes", "Was it changed while it was read?")
        return piece

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer as far as there are bytes."""
        piece = self.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            super().close()
            self._file.close()


def open_file(
    url: str, options: Mapping[str, Any], gate: Gate, words: Words, *, piece_bytes: int = _PIECE_BYTES
) -> tuple[BinaryIO, int | None]:
    """A file for reading its bytes as they are stored, from the beginning, and how many these are; None where nobody
    says. Close it after use.

    Files of this machine and of stores can be read from any place (``seek``), those of web servers once, in order.

    Args:
        url: ``file:``, ``http:``, ``https:``, any that fsspec knows, or an absolute path. The path of a ``file:`` URL
            is taken as it is written, and percent-decoded where there is no such file: readers and writers disagree.
        options: for the store's library: keys, endpoints. Of web servers ``headers`` alone, and these for one origin
            (see ``Gate.is_home``).
        piece_bytes: so much is read at once, at the least.

    Raises:
        ReadFault: it may not be read, or its server does not give it. MissingExtra: the store's package is not
        installed. And what the store raises; reading later on does so as well.
    """
    scheme = _scheme(url, options)
    file: Any
    size: int | None
    if scheme == "file":
        path, found = _local(url, gate)
        file, size = open(path, "rb", buffering=0), found.st_size  # noqa: SIM115
    elif scheme in _WEB:
        file = WebFile(url, _headers(options), gate)
        size = file.size_bytes
    else:
        store, place, size = _stored(url, options, gate, words)
        file = store.open(place, "rb", block_size=_BLOCK_BYTES)
    return cast(BinaryIO, io.BufferedReader(CountedFile(file, size), piece_bytes)), size


def unread(error: Exception, options: str) -> tuple[str, str]:
    """What is said of an error while a file is read, behind the file's name, and the cure; "" where none is known.

    Args:
        options: what the options of the store's library are called.
    """
    if isinstance(error, ReadFault):
        return f"is not read: {error}" if isinstance(error, Refused) else str(error), error.cure
    if isinstance(error, FileNotFoundError) and is_gone(error):
        return "is not there", ""
    cure = ""
    if is_forbidden(error) or is_about_credentials(error):
        cure = f"Check the rights of who reads it; credentials come from {options}, or the environment."
    elif is_about_options(error):
        cure = f"Are the URL and {options} right?"
    return f"can't be read: {said(error)}", cure


def _scheme(url: str, options: Mapping[str, Any]) -> str:
    """That of a URL; ``file`` of a path. Secrets of both are kept out of logs from then on."""
    hide_options(options)
    head, mark, _ = url.partition(":")
    scheme = head.lower() if mark and len(head) > 1 and head.replace("+", "").replace("-", "").isalnum() else "file"
    if scheme in _WEB:
        hide(url.partition("?")[2])
    return scheme


def _headers(options: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): str(value) for name, value in (options.get("headers") or {}).items()}


def _local(url: str, gate: Gate) -> tuple[Path, os.stat_result]:
    path = local_path(url) or Path(url)
    if not path.is_absolute():
        raise ReadFault("is no absolute path", "A manifest has whole URLs, such as file:///data/x.jsonl.")
    path = gate.path(path)
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):  # a pipe would be waited for
        raise ReadFault("is no file, but a folder, pipe or device")
    return path, found


def _stored(url: str, options: Mapping[str, Any], gate: Gate, words: Words) -> tuple[Any, str, int | None]:
    """fsspec's store of a URL, the path in it, and the size of the file."""
    gate.store(url, options)
    store, path = open_filesystem(url, options, words)
    gate.opened_store(store)
    store.invalidate_cache(store._parent(path))
    info = store.info(path)
    if info.get("type") == "directory":
        raise ReadFault("is no file, but a folder")
    size = info.get("size")
    return store, path, size if isinstance(size, int) else None
