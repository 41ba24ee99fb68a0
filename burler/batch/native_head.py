"""The beginning of a source's file, unpacked as far as it is needed: the whole is never read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

from burler.batch.packing import ZSTD_MARKS, unpacked
from burler.errors import BatchError, BurlerError, FileError
from burler.files.names import shown
from burler.files.unpacking import streams
from burler.storage.location import local_path

STEP_BYTES = 1 << 16
MOST_BYTES = 1 << 24
"""So much of a file is read to find the end of its first line."""

_MAGIC = {"gzip": (b"\x1f\x8b",), "zstd": ZSTD_MARKS, "bz2": (b"BZh",), "xz": (b"\xfd7zXZ\x00",)}
_COLUMNS_MAGIC = (b"PAR1", b"ARROW1")


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
        self._raw = _Raw(file)
        self._name = name
        self._compression = compression
        self._source: Any = None
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
        while self._raw.count_bytes < STEP_BYTES and self._piece(STEP_BYTES):
            pass

    def _piece(self, size: int) -> bytes:
        try:
            if self._source is None:
                self._source = self._opened(self._raw.peek())
            piece: bytes = self._source.read1(size)
            return piece
        except BatchError as error:
            raise FileError(f"file '{self._name}': {error}") from None
        except BurlerError:
            raise
        except EOFError:
            raise FileError(
                f"file '{self._name}': it is cut off: its {self._compression} data ends before its end."
            ) from None
        except OSError as error:
            fact = shown(str(error))[:200]
            raise FileError(f"file '{self._name}' can't be read: {fact}.") from None
        except Exception as error:  # lzma has errors of its own
            raise FileError(
                f"file '{self._name}': it is damaged: its {self._compression} data can't be unpacked ({error})."
            ) from None

    def _opened(self, first: bytes) -> Any:
        """The file unpacked, after a look at its first bytes: a file says itself how it is packed."""
        if first.startswith(_COLUMNS_MAGIC):
            raise FileError(f"file '{self._name}' is {'Parquet' if first[:1] == b'P' else 'Arrow'}, not text.")
        found = next((kind for kind, marks in _MAGIC.items() if first.startswith(marks)), None)
        if first and found != self._compression:
            said = "packed with " + self._compression if self._compression else "not packed"
            fact = f"it is {found}" if found else "it is not"
            raise FileError(
                f"file '{self._name}' should be {said}, by its name or by compression=, and {fact}.\n"
                f"  Say it: burler.batch_files(..., compression='{found or 'none'}')."
            )
        return opened_as(cast(BinaryIO, self._raw), self._compression)


class _Raw:
    """A file as it is stored, with a look at its beginning; counts what was read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._ahead = b""
        self.count_bytes = 0

    def peek(self) -> bytes:
        """The first bytes, which will be read again."""
        self._ahead = self._file.read(STEP_BYTES)
        self.count_bytes = len(self._ahead)
        return self._ahead

    def read1(self, size: int) -> bytes:
        """As ``read``."""
        return self.read(size)

    def read(self, size: int) -> bytes:
        """At most so many bytes; b"" at the end."""
        if self._ahead:
            given, self._ahead = self._ahead[:size], self._ahead[size:]
            return given
        given = self._file.read(size)
        self.count_bytes += len(given)
        return given

    def readable(self) -> bool:
        """True."""
        return True

    def close(self) -> None:
        """Who opened the file closes it."""


def opened_as(raw: BinaryIO, compression: str | None) -> Any:
    """What a packed file holds, to be read with ``read`` and ``read1``.

    Raises:
        MissingExtra: zstd without zstandard.
    """
    if compression in ("bz2", "xz"):
        return streams(raw, compression)
    return unpacked(raw, compression)
