"""Compressed files, written and read as streams in flat memory: gzip, bz2, xz and zstd.

Reading never ends early in silence: whatever is cut off, damaged, followed by something else or compressed in another
way is an error. Files of several parts (members, streams, frames) one after another are one file.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import partial
from typing import Any, BinaryIO, Protocol, cast

from burler.extras import require
from burler.formats import FormatError
from burler.formats.names import COMPRESSIONS, HEAD_BYTES, kind_of, may_become, shown_kind
from burler.formats.source import Source

PIECE_BYTES = 1 << 20
_READ_BYTES = 1 << 16
_GZIP_WINDOW = 31  # zlib's way to say: 32 KiB window, gzip header and CRC
_ISAL_LEVELS = range(4)
_LEVELS = {"gzip": (1, range(10)), "zstd": (3, range(-7, 23)), "bz2": (1, range(10))}


# ---- writing -----------------------------------------------------------------------------------------------


class Compressor(Protocol):
    """Compresses one file, a piece at a time."""

    def compress(self, data: bytes | bytearray | memoryview, /) -> bytes | bytearray | memoryview:
        """Take bytes in, give what is ready: the same bytes where nothing is compressed."""

    def flush(self) -> bytes:
        """The end: give the rest."""


class _AsItIs:
    def compress(self, data: bytes | bytearray | memoryview, /) -> bytes | bytearray | memoryview:
        return data

    def flush(self) -> bytes:
        return b""


def compressor(compression: str | None, level: int | None = None) -> Compressor:
    """A new compressor for one file: ``gzip``, ``zstd``, ``bz2``, or None.

    Args:
        level: for gzip 0 to 9 (1 if not said; 0 to 3 are isal's where it is installed, several times faster), for zstd
            -7 to 22 (3).

    Raises:
        FormatError: another compression or level.
        MissingExtra: zstd without the package zstandard.
    """
    if compression is None:
        return _AsItIs()
    name = COMPRESSIONS.get(compression, compression)
    if name not in _LEVELS:
        raise FormatError(f"compression '{compression:.60}' is unknown. Known: none, gzip, zstd, bz2")
    default, levels = _LEVELS[name]
    level = default if level is None else level
    if isinstance(level, bool) or not isinstance(level, int) or level not in levels:
        raise FormatError(
            f"level must be a whole number from {levels[0]} to {levels[-1]} for {name}, not {level!r:.60}", kind="level"
        )
    if name == "zstd":
        zstandard = require("zstandard", extra="batch", needed_for="writing files with zstd")
        return cast(Compressor, zstandard.ZstdCompressor(level=level, write_checksum=True).compressobj())
    if name == "bz2":
        import bz2

        return bz2.BZ2Compressor(max(1, level))
    if level in _ISAL_LEVELS:
        try:
            from isal import isal_zlib
        except ModuleNotFoundError:
            pass
        else:
            return cast(Compressor, isal_zlib.compressobj(level=level, wbits=_GZIP_WINDOW))
    return cast(Compressor, zlib.compressobj(level, zlib.DEFLATED, _GZIP_WINDOW))


# ---- reading -----------------------------------------------------------------------------------------------


class Decompressed:
    """The bytes of a file as they are read.

    Args:
        raw: the file as it is stored: an object with ``read(size)``. It is closed with this one.
        compression: ``gzip``, ``bz2``, ``xz``, ``zstd``, or None.
        limit_bytes: more than this is an error; None: any number.

    Attributes:
        count_bytes: how many bytes were given.

    Raises:
        FormatError: an unknown compression.
        MissingExtra: zstd without pyarrow.
    """

    def __init__(self, raw: Any, compression: str | None, *, limit_bytes: int | None = None) -> None:
        if compression is not None and compression not in _OPEN:
            raise FormatError(f"compression '{compression:.60}' is unknown. Known: none, {', '.join(_OPEN)}")
        self._compression, self._limit = compression, limit_bytes
        self._stored = raw
        self._raw = Source(raw)
        self._file: Any = None
        if compression == "zstd":
            require("pyarrow", extra="batch", needed_for="reading files compressed with zstd")
        self.count_bytes = 0

    @property
    def stored_bytes(self) -> int:
        """How many bytes of the file as it is stored were read."""
        return self._raw.count_bytes

    def head(self) -> bytes:
        """The first bytes of the file as it is stored; nothing may have been read before."""
        return self._raw.head()

    def read(self, size: int = -1) -> bytes:
        """Up to ``size`` bytes; b"" at the end.

        Raises:
            FormatError: what is stored is damaged, or more than the limit. Errors of ``raw`` go through.
        """
        return self._read(size, "read")

    def read1(self, size: int = PIECE_BYTES) -> bytes:
        """At least one byte, and at most ``size``, as soon as they are there; b"" at the end."""
        return self._read(size, "read1")

    def _read(self, size: int, how: str) -> bytes:
        if size < 0:
            return b"".join(iter(lambda: self._read(PIECE_BYTES, how), b""))
        if self._compression is None:
            piece = self._raw.read(size)
        else:
            piece = self._decompressed(size, how)
        self.count_bytes += len(piece)
        if self._limit is not None and self.count_bytes > self._limit:
            raise FormatError(f"it holds more than {self._limit:,} bytes once it is unpacked", kind="limit")
        return piece

    def _decompressed(self, size: int, how: str) -> bytes:
        name = self._compression or ""
        try:
            if self._file is None:
                self._check_head(name)
                self._file = _OPEN[name](self._raw)
            piece: bytes = getattr(self._file, how)(size)
            return piece
        except FormatError:
            raise
        except Exception as error:  # each library has errors of its own
            if self._raw.error is not None:
                raise self._raw.error from None
            raise damage(error, name) from None

    def _check_head(self, name: str) -> None:
        head = self.head()
        if not head:
            raise FormatError(
                f"it is empty, and so no {name} file: even one without rows has a beginning and an end", kind="cut"
            )
        found = kind_of(head)
        if found != name:
            if may_become(head, name):
                raise FormatError(f"it is cut off: its {name} data ends before its end", kind="cut")
            what = f": it is {shown_kind(found)}" if found else ""
            raise FormatError(f"it is no {name} file{what}", kind="other")

    def seekable(self) -> bool:
        """False: it is read once, in order."""
        return False

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
        self._stored.close()

    def __enter__(self) -> Decompressed:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def damage(error: Exception, name: str) -> FormatError:
    """What a library says of damaged data, as an error of ours."""
    fact = " ".join(str(error).split())
    if isinstance(error, EOFError) or "Truncated" in fact:
        return FormatError(f"it is cut off: its {name} data ends before its end", kind="cut")
    if "Not a gzipped" in fact or "Unknown frame" in fact:
        return _behind(name)
    return FormatError(f"it is damaged: its {name} data can't be unpacked ({fact[:200]})", kind="damaged")


def _behind(name: str) -> FormatError:
    return FormatError(f"there is something else behind the end of its {name} data", kind="damaged")


class _Streams:
    """Streams of one compression, one behind the other, and nothing else. Python's own readers leave out what follows a
    stream of bz2 or xz, where that is none, and isal's takes a few letters behind a member of gzip for one that is cut.

    Args:
        padding: what may stand behind a stream.
    """

    def __init__(self, file: BinaryIO, name: str, begin: Callable[[], Any], padding: bytes = b"") -> None:
        self._file, self._name, self._begin, self._padding = file, name, begin, padding
        self._stream, self._rest = begin(), b""

    def read(self, size: int) -> bytes:
        """So many bytes; fewer at the end."""
        piece = self.read1(size)
        if len(piece) == size or not piece:
            return piece
        pieces, left = [piece], size - len(piece)
        while left and (piece := self.read1(left)):
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces)

    def read1(self, size: int) -> bytes:
        """At least one byte, and at most so many; b"" at the end."""
        while size and (not self._stream.eof or self._has_next()):
            data = b""
            if self._stream.needs_input:
                data, self._rest = self._rest or self._file.read(_READ_BYTES), b""
                if not data:
                    raise EOFError
            if piece := self._stream.decompress(data, size):
                return bytes(piece)
        return b""

    def close(self) -> None:
        """Let go of what is unpacked."""
        self._stream, self._rest = self._begin(), b""

    def _has_next(self) -> bool:
        """Whether another stream begins; it is the next one then."""
        rest = self._stream.unused_data
        while len(rest := rest.lstrip(self._padding)) < HEAD_BYTES and (more := self._file.read(_READ_BYTES)):
            rest += more
        if rest and kind_of(rest) != self._name and not may_become(rest, self._name):
            raise _behind(self._name)
        self._rest = rest
        if rest:
            self._stream = self._begin()
        return bool(rest)


def _gzip(file: Any) -> Any:
    """isal's reader where it is installed: three times as quick."""
    try:
        from isal import igzip_lib
    except ModuleNotFoundError:
        import gzip

        return gzip.GzipFile(fileobj=file, mode="rb")
    begin = partial(igzip_lib.IgzipDecompressor, igzip_lib.DECOMP_GZIP)
    return _Streams(file, "gzip", begin, b"\0")


def _bz2(file: Any) -> Any:
    import bz2

    return _Streams(file, "bz2", bz2.BZ2Decompressor)


def _xz(file: Any) -> Any:
    import lzma

    return _Streams(file, "xz", lzma.LZMADecompressor)


def _zstd(file: Any) -> Any:
    import pyarrow

    return pyarrow.CompressedInputStream(pyarrow.PythonFile(file, mode="r"), "zstd")


_OPEN: dict[str, Callable[[Any], Any]] = {"gzip": _gzip, "bz2": _bz2, "xz": _xz, "zstd": _zstd}
