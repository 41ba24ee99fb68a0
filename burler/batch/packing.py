"""Files packed as a whole: gzip and zstd, written and read as streams (BATCH proposal: ``compression``).

Reading never ends early in silence: whatever is cut off, damaged, followed by something else or packed in another
way is an error.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Mapping
from typing import Any, BinaryIO, Protocol, cast

from burler.errors import BatchError, ConfigError
from burler.extras import require
from burler.target.compressor import Compressor, compressor

_GZIP_LEVELS = range(10)
_ZSTD_LEVELS = range(-7, 23)
_GZIP_WINDOW = 31  # zlib's way to say: 32 KiB window, gzip header and CRC
_PIECE_BYTES = 1 << 20
_READ_BYTES = 1 << 16
_ZSTD_BYTES = 1 << 10  # zstd's unpacker has no limit to what it gives: 32,768 times as much as it takes, at the worst
ZSTD_MARKS = (b"\x28\xb5\x2f\xfd", *(bytes((number, 0x2A, 0x4D, 0x18)) for number in range(0x50, 0x60)))
"""What a frame of zstd begins with: one with data, or one to be skipped."""
_BEGINNINGS = (
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ", "xz"),
    (b"PK\x03\x04", "a zip file"),
    (b"PAR1", "Parquet"),
    (b"ARROW1", "Arrow"),
)


def packer(compression: str | None, options: Mapping[str, Any]) -> Compressor:
    """What packs one file.

    Args:
        compression: None, ``gzip`` or ``zstd``.
        options: ``level``: for gzip 0 to 9 (1 if not said; 0 to 3 are isal's where it is installed, several times
            faster), for zstd -7 to 22 (3).

    Raises:
        ConfigError: another compression or level.
        MissingExtra: zstd without the package zstandard.
    """
    if compression is None:
        return cast(Compressor, _AsItIs())
    if compression == "gzip":
        return compressor("gz", _level(compression, options, 1, _GZIP_LEVELS))
    if compression == "zstd":
        level = _level(compression, options, 3, _ZSTD_LEVELS)
        zstandard = require("zstandard", extra="batch", needed_for="packing BATCH files with zstd")
        return cast(Compressor, zstandard.ZstdCompressor(level=level, write_checksum=True).compressobj())
    raise ConfigError(f"compression '{compression:.60}' is unknown. Known: none, gzip, zstd.")


class _AsItIs:
    """Not packed: what comes in goes on, without a copy of it. Whoever writes it does so before more comes in."""

    def compress(self, data: bytes | bytearray | memoryview, /) -> bytes | bytearray | memoryview:
        return data

    def flush(self) -> bytes:
        return b""


def _level(compression: str, options: Mapping[str, Any], default: int, known: range) -> int:
    level = options.get("level")
    if level is None:
        return default
    if isinstance(level, bool) or not isinstance(level, int) or level not in known:
        raise ConfigError(
            f"batch_config.encoding.compression_options.level must be a whole number from {known[0]} to {known[-1]} "
            f"for {compression}, not {level!r:.60}."
        )
    return level


def unpacked(raw: BinaryIO, compression: str | None) -> BinaryIO:
    """What a packed file holds, to be read piece by piece; None gives ``raw`` itself. Closing it closes ``raw``.

    Files of several parts (gzip members, zstd frames) one after another are one file. Reading raises BatchError for
    everything that is wrong with the bytes: the caller knows stream and URL, and adds them.

    Raises:
        BatchError: the compression is unknown.
        MissingExtra: zstd without the package zstandard.
    """
    if compression is None:
        return raw
    if compression not in ("gzip", "zstd"):
        raise BatchError(f"compression '{compression:.60}' is unknown. Known: none, gzip, zstd.")
    parts = _Gzip() if compression == "gzip" else _Zstd()
    return io.BufferedReader(_Unpacked(raw, compression, parts), _PIECE_BYTES)


def looks_like(beginning: bytes) -> str | None:
    """What a file is that begins so, if it is no text: ``gzip``, ``Parquet``; None for anything else."""
    return next((name for mark, name in _BEGINNINGS if beginning.startswith(mark)), None)


class _Parts(Protocol):
    """One kind of packing."""

    @property
    def marks(self) -> tuple[bytes, ...]:
        """What a part begins with."""

    @property
    def broken(self) -> tuple[type[Exception], ...]:
        """What damaged data raises."""

    def begin(self) -> None:
        """Go to the next part."""

    def unpack(self, data: bytes) -> tuple[bytes, bytes, bool]:
        """What comes out, what is left of the input, and whether the part has ended."""


class _Gzip:
    """Members of gzip, by isal where it is installed."""

    marks = (b"\x1f\x8b\x08",)

    def __init__(self) -> None:
        self._maker: Any = zlib
        self.broken: tuple[type[Exception], ...] = (zlib.error,)
        try:
            from isal import isal_zlib
        except ModuleNotFoundError:
            return
        self._maker = isal_zlib
        self.broken = (zlib.error, cast(type[Exception], isal_zlib.error))

    def begin(self) -> None:
        self._one = self._maker.decompressobj(wbits=_GZIP_WINDOW)

    def unpack(self, data: bytes) -> tuple[bytes, bytes, bool]:
        given = self._one.decompress(data, _PIECE_BYTES)
        return given, self._one.unused_data if self._one.eof else self._one.unconsumed_tail, self._one.eof


class _Zstd:
    """Frames of zstd: with data, or to be skipped."""

    marks = ZSTD_MARKS

    def __init__(self) -> None:
        self._package = require("zstandard", extra="batch", needed_for="reading BATCH files packed with zstd")
        self.broken: tuple[type[Exception], ...] = (self._package.ZstdError,)

    def begin(self) -> None:
        self._one = self._package.ZstdDecompressor().decompressobj()

    def unpack(self, data: bytes) -> tuple[bytes, bytes, bool]:
        given: list[bytes] = []
        at = size = 0
        while at < len(data) and size < _PIECE_BYTES and not self._one.eof:
            given.append(self._one.decompress(data[at : at + _ZSTD_BYTES]))
            at += _ZSTD_BYTES
            size += len(given[-1])
        rest = data[at:]
        return b"".join(given), self._one.unused_data + rest if self._one.eof else rest, self._one.eof


class _Unpacked(io.RawIOBase):
    """The bytes out of a packed file, in order."""

    def __init__(self, raw: BinaryIO, compression: str, parts: _Parts) -> None:
        super().__init__()
        self._raw, self._compression, self._parts = raw, compression, parts
        self._input = b""
        self._ready = memoryview(b"")
        self._inside = False  # of a part
        self._count = 0  # of parts that ended

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            piece = self._next()
            if piece is None:
                return 0
            self._ready = memoryview(piece)
        view = memoryview(buffer).cast("B")
        count = min(len(view), len(self._ready))
        view[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._raw.close()

    def _next(self) -> bytes | None:
        """Some more bytes, maybe none yet; None at the end."""
        if not self._inside and not self._begin():
            return None
        is_last = not self._input and not self._more()  # what was read last may not have come out in full
        try:
            given, self._input, ended = self._parts.unpack(self._input)
        except self._parts.broken as error:
            raise BatchError(f"it is damaged: its {self._compression} data can't be unpacked ({error}).") from None
        if is_last and not given and not ended:
            raise BatchError(f"it is cut off: its {self._compression} data ends before its end.")
        if ended:
            self._inside = False
            self._count += 1
        return given

    def _begin(self) -> bool:
        """Go to the next part; False at the end of the file."""
        if self._count:
            self._skip_zeros()
        begins = self._is_begin()
        while begins is None and self._more():
            begins = self._is_begin()
        if begins:
            self._parts.begin()
            self._inside = True
            return True
        if not self._input and self._count:
            return False
        raise BatchError(self._wrong(begins))

    def _is_begin(self) -> bool | None:
        """Whether a part begins here; None if that takes more bytes to tell."""
        if self._input.startswith(self._parts.marks):
            return True
        return None if any(mark.startswith(self._input) for mark in self._parts.marks) else False

    def _skip_zeros(self) -> None:
        """Some tapes and tools fill files up with zeros, which all unpackers of gzip pass over."""
        if self._compression == "gzip":
            self._input = self._input.lstrip(b"\0")
            while not self._input and self._more():
                self._input = self._input.lstrip(b"\0")

    def _wrong(self, begins: bool | None) -> str:
        """Why no part begins here."""
        name, seen = self._compression, self._input[:16]
        if not seen:
            return f"it is empty, and so no {name} file: even one without rows has a beginning and an end."
        if begins is None:
            return f"it is cut off: its {name} data ends before its end."
        if self._count:
            return f"there is something else behind the end of its {name} data."
        other = looks_like(seen)
        return f"it is no {name} file" + (f": it is {other}." if other else ".")

    def _more(self) -> bool:
        piece = self._raw.read(_READ_BYTES)
        self._input += piece
        return bool(piece)
