"""The beginning of a source's file, unpacked as far as it is needed: the whole is never read."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

from burler.batch.native import local_path
from burler.errors import BatchError, FileError
from burler.extras import require
from burler.files.names import shown

STEP_BYTES = 1 << 16
MOST_BYTES = 1 << 24
"""So much of a file is read to find the end of its first line."""

_MAGIC = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd", "bz2": b"BZh", "xz": b"\xfd7zXZ\x00"}
_COLUMNS_MAGIC = (b"PAR1", b"ARROW1")


class _Unpacker(Protocol):
    """A decompressor that takes pieces."""

    @property
    def eof(self) -> bool:
        """Whether its first frame has ended."""

    def decompress(self, data: bytes) -> bytes:
        """What a piece holds."""


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
    from burler.batch.urls import open_url

    try:
        return open_url(url, options)
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
    from burler.batch.urls import size_of_url

    return size_of_url(url, options)


class Head:
    """The first bytes of a file, unpacked as more of them are asked for.

    Args:
        file: open, at its beginning.
        name: for errors.
    """

    def __init__(self, file: BinaryIO, compression: str | None, name: str) -> None:
        self._file, self._name = file, name
        self._compression = compression
        self._unpacker: _Unpacker | None = None
        self._first = True
        self._ended = False
        self._count_bytes = 0
        self.text = b""
        """What was unpacked so far."""

    def more(self) -> bool:
        """Unpack a piece more; whether there was any.

        Raises:
            FileError: the file is not packed as it should be, or ends too early.
        """
        while not self._ended:
            raw = self._read()
            if self._first:
                self._first = False
                self._begin(raw)
            if not raw:
                self._ended = True
                if self._unpacker is not None and not self._unpacker.eof:
                    raise FileError(f"file '{self._name}' is cut off: its {self._compression} does not end.")
                return False
            piece = self._unpacked(raw)
            if piece:
                self.text += piece
                return True
        return False

    def until_line(self) -> bytes:
        """The text until a line has ended, or the file has; all of it is looked at again if more is needed.

        Raises:
            FileError: as ``more`` does; or no line ends within ``MOST_BYTES``.
        """
        seen = 0
        while b"\n" not in self.text[seen:]:
            seen = len(self.text)
            if seen >= MOST_BYTES:
                raise FileError(f"file '{self._name}': no line ends within its first {MOST_BYTES:,} bytes.")
            if not self.more():
                break
        return self.text

    def end_if_near(self) -> None:
        """Go on to the end of a file that is no longer than what was read at once.

        Raises:
            FileError: as ``more`` does.
        """
        while self._count_bytes < STEP_BYTES and self.more():
            pass

    def _read(self) -> bytes:
        try:
            raw = self._file.read(STEP_BYTES)
            self._count_bytes += len(raw)
            return raw
        except OSError as error:
            raise FileError(f"file '{self._name}' can't be read: {shown(str(error))[:200]}.") from None

    def _begin(self, raw: bytes) -> None:
        """Look at the first bytes: a file says itself how it is packed."""
        found = next((kind for kind, magic in _MAGIC.items() if raw.startswith(magic)), None)
        if raw.startswith(_COLUMNS_MAGIC):
            raise FileError(f"file '{self._name}' is {'Parquet' if raw[:1] == b'P' else 'Arrow'}, not text.")
        if found == self._compression or not raw:
            if self._compression is not None and raw:
                self._unpacker = _unpacker(self._compression)
            return
        said = "packed with " + self._compression if self._compression else "not packed"
        fact = f"it is {found}" if found else "it is not"
        raise FileError(
            f"file '{self._name}' should be {said}, by its name or by compression=, and {fact}.\n"
            f"  Say it: burler.batch_files(..., compression='{found or 'none'}')."
        )

    def _unpacked(self, raw: bytes) -> bytes:
        if self._unpacker is None:
            return raw
        if self._unpacker.eof:  # another frame follows: its rows are no matter here
            self._ended = True
            return b""
        try:
            return self._unpacker.decompress(raw)
        except Exception as error:  # each library has errors of its own
            raise FileError(
                f"file '{self._name}': its {self._compression} is broken near its beginning: {str(error)[:100]}."
            ) from None


def _unpacker(compression: str) -> _Unpacker:
    if compression == "gzip":
        return cast(_Unpacker, zlib.decompressobj(31))
    if compression == "bz2":
        import bz2

        return bz2.BZ2Decompressor()
    if compression == "xz":
        import lzma

        return lzma.LZMADecompressor()
    zstandard = require("zstandard", extra="batch", needed_for="burler.batch_files (zstd)")
    return cast(_Unpacker, zstandard.ZstdDecompressor().decompressobj())
