"""Bytes out of packed files, in pieces: flat memory, a limit, and one error for everything that is broken."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, BinaryIO

from burler.errors import FileError
from burler.extras import require
from burler.files.names import shown
from burler.files.store_errors import check_gone

PIECE_BYTES = 1 << 20
_PACKED_BYTES = 1 << 16


class Unpacked(io.RawIOBase):
    """A file's bytes as they are read: counted, limited, every error a FileError that names the file.

    Args:
        file: a file that is open; it is closed with this one, and so is ``below``, on which it stands.
        name: of the file, for errors.
        limit_bytes: more than this is an error.
        needs_bytes: ``below`` is packed, so that even a file without rows has a beginning and an end.
    """

    def __init__(self, file: Any, name: str, limit_bytes: int, below: Any = None, *, needs_bytes: bool = False) -> None:
        super().__init__()
        self._needs_bytes = needs_bytes
        self._file, self._name, self._limit, self._below = file, name, limit_bytes, below
        self.count_bytes = 0

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer as far as the file has bytes at hand."""
        piece = self.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def read(self, size: int = -1) -> bytes:
        """Up to ``size`` bytes; b"" at the end.

        Raises:
            FileError: the packing is broken or cut off, the file holds more than the limit, or the store failed.
        """
        if size < 0:
            return b"".join(iter(lambda: self.read(PIECE_BYTES), b""))
        with said(self._name):
            piece: bytes = self._file.read(size)
            if not piece and self._needs_bytes and not self.count_bytes and not self._below.tell():
                raise EOFError
        self._count(piece)
        return piece

    def _count(self, piece: bytes) -> None:
        self.count_bytes += len(piece)
        if self.count_bytes > self._limit:
            raise FileError(
                f"file '{self._name}' holds more than {self._limit:,} bytes once it is unpacked.\n"
                "  If that is right, raise max_unpacked_bytes."
            )

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            super().close()
            for file in (self._file, self._below):
                if file is not None:
                    file.close()


@contextmanager
def said(name: str) -> Iterator[None]:
    """Whatever goes wrong while a file is read becomes a FileError that names it; a file that is gone stays a
    ``FileNotFoundError``."""
    try:
        yield
    except FileError:
        raise
    except FileNotFoundError as error:
        check_gone(error, name)
        raise
    except EOFError:
        raise FileError(_cut_off(name)) from None
    except Exception as error:  # unpackers and stores have errors of many kinds
        fact = getattr(error, "strerror", None) or str(error) or type(error).__name__
        if "Truncated" in fact or "ended before" in fact:
            raise FileError(_cut_off(name)) from None
        raise FileError(f"file '{name}' can't be read: {shown(fact)[:300]}.") from None


def _cut_off(name: str) -> str:
    return (
        f"file '{name}' is cut off: its packed data ends before its end.\n"
        "  Is it still being written? settle_seconds leaves files alone that changed lately."
    )


def unpack(file: BinaryIO, packing: str | None) -> Any:
    """A file object of what a packed file holds. Zip files are another matter (``members``).

    Args:
        packing: gz, bz2, xz, zst; None or "none": as it is.
    """
    if packing == "gz":
        return _gzip(file)
    if packing in ("bz2", "xz"):
        return streams(file, packing)
    if packing == "zst":
        pyarrow = require("pyarrow", extra="files", needed_for="burler.files (zst)")
        return pyarrow.CompressedInputStream(pyarrow.PythonFile(file, mode="r"), "zstd")
    return file


def streams(file: Any, packing: str) -> io.BufferedReader:
    """What a file of bz2 or xz holds. Python's own readers leave out what follows a stream, where that is none: a file
    of several streams, as parallel packers write them, would end in silence where one of them is damaged."""
    import bz2
    import lzma

    begin: Callable[[], Any] = bz2.BZ2Decompressor if packing == "bz2" else lzma.LZMADecompressor
    return io.BufferedReader(_Streams(file, begin), PIECE_BYTES)


class _Streams(io.RawIOBase):
    """Streams one behind the other, and nothing else."""

    def __init__(self, file: Any, begin: Callable[[], Any]) -> None:
        super().__init__()
        self._file, self._begin = file, begin
        self._unpacker, self._rest = begin(), b""

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Some bytes; none at the end.

        Raises:
            EOFError: the file is cut off. OSError, LZMAError: it is damaged.
        """
        while True:
            if self._unpacker.eof:
                self._rest = self._unpacker.unused_data or self._file.read(_PACKED_BYTES)
                if not self._rest:
                    return 0
                self._unpacker = self._begin()
            data = b""
            if self._unpacker.needs_input:
                data, self._rest = self._rest or self._file.read(_PACKED_BYTES), b""
                if not data:
                    raise EOFError
            if piece := self._unpacker.decompress(data, len(buffer)):
                buffer[: len(piece)] = piece
                return len(piece)


def _gzip(file: BinaryIO) -> Any:
    """isal's reader where it is installed: three times as quick."""
    try:
        from isal import igzip
    except ImportError:
        import gzip

        return gzip.GzipFile(fileobj=file, mode="rb")
    return igzip.GzipFile(fileobj=file, mode="rb")


def seekable_copy(file: Unpacked) -> Any:
    """A nameless temporary copy of what a file holds, which can be read from any place.

    Raises:
        FileError: it is broken, or there is no room for the copy.
    """
    copy = _written(tempfile.TemporaryFile)
    try:
        while piece := file.read(PIECE_BYTES):
            _written(partial(copy.write, piece))
        _written(partial(copy.seek, 0))
    except BaseException:
        with suppress(OSError):  # what it could not write before, it can't now
            copy.close()
        raise
    return copy


def _written(act: Callable[[], Any]) -> Any:
    try:
        return act()
    except OSError as error:
        raise FileError(
            f"packed Parquet is copied into a temporary file before it is read, and that failed: {error.strerror}.\n"
            f"  The folder for temporary files is '{tempfile.gettempdir()}'; TMPDIR names another one."
        ) from error
