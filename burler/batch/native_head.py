"""The beginning of a source's file, unpacked as far as it is needed: the whole is never read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from burler.errors import BatchError, FileError
from burler.formats import FormatError
from burler.formats.compression import Decompressed
from burler.formats.names import kind_of, shown_kind
from burler.storage.location import local_path, shown

STEP_BYTES = 1 << 16
MOST_BYTES = 1 << 24
"""So much of a file is read to find the end of its first line."""


class Missing(FileError):
    """There is no such file."""


def open_file(url: str, options: Mapping[str, Any]) -> BinaryIO:
    """Open a file for reading.

    Raises:
        FileError: it is not there, or can't be read. MissingExtra: the library of its store is not installed.
    """
    path = local_path(url)
    if path is not None:
        return _open_local(path)
    from burler.batch.allowed import OWN
    from burler.batch.urls import open_url

    try:
        return open_url(url, options, allowed=OWN)
    except BatchError as error:
        raise FileError(str(error)) from None


def _open_local(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise Missing(
            f"file '{shown(str(path))}' is not there.\n  Was it written? A relative path counts from the folder that "
            "the tap was started in."
        ) from None
    except OSError as error:
        raise FileError(f"file '{shown(str(path))}' can't be read: {error.strerror}.") from None


def size_of(url: str, options: Mapping[str, Any]) -> int | None:
    """How many bytes a file has; None where its store does not say."""
    path = local_path(url)
    if path is not None:
        try:
            return path.stat().st_size
        except OSError:
            return None
    from burler.batch.allowed import OWN
    from burler.batch.urls import size_of_url

    return size_of_url(url, options, allowed=OWN)


class Head:
    """The first bytes of a file, unpacked as more of them are asked for.

    Parts that follow each other (gzip members, zstd frames) are one file, as for those who read all of it.

    Args:
        file: open, at its beginning.
        name: for errors.
    """

    def __init__(self, file: BinaryIO, compression: str | None, name: str) -> None:
        self._name = name
        self._compression = compression
        self._source = Decompressed(file, compression)
        self._begun = False
        self.text = b""
        """What was unpacked so far."""

    def more(self) -> bool:
        """Unpack a piece more; False at the end of the file.

        Raises:
            FileError: the file is not packed as it should be, or ends too early.
        """
        piece = self._piece(max(STEP_BYTES, len(self.text)))
        self.text += piece
        return bool(piece)

    def until_line(self) -> bytes:
        """The text until a line has ended that holds something, or the file has.

        Raises:
            FileError: as ``more`` does; or there is no such line within ``MOST_BYTES``.
        """
        while b"\n" not in self.text.lstrip():
            if len(self.text) >= MOST_BYTES:
                raise FileError(f"file '{self._name}': no line ends within its first {MOST_BYTES:,} bytes.")
            if not self.more():
                break
        return self.text

    def end_if_near(self) -> None:
        """Go on to the end of a file that is no longer than what was read at once; its text is not kept.

        Raises:
            FileError: as ``more`` does.
        """
        while self._source.stored_bytes < STEP_BYTES and self._piece(STEP_BYTES):
            pass

    def _piece(self, size: int) -> bytes:
        try:
            if not self._begun:
                self._check(self._source.head())
                self._begun = True
            return self._source.read1(size)
        except (FormatError, BatchError) as error:
            raise FileError(f"file '{self._name}': {error}") from None
        except OSError as error:
            raise FileError(f"file '{self._name}' can't be read: {shown(str(error))[:200]}.") from None

    def _check(self, first: bytes) -> None:
        """A file says itself how it is packed."""
        found = kind_of(first)
        if found in ("parquet", "arrow"):
            raise FileError(f"file '{self._name}' is {shown_kind(found)}, not text.")
        if first and found != self._compression:
            said = "packed with " + self._compression if self._compression else "not packed"
            fact = f"it is {found}" if found else "it is not"
            raise FileError(
                f"file '{self._name}' should be {said}, by its name or by compression=, and {fact}.\n"
                f"  Say it: burler.batch_files(..., compression='{found or 'none'}')."
            )
