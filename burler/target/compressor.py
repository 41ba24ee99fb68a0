"""Compressors for files that are written a piece at a time."""

from __future__ import annotations

import bz2
import zlib
from typing import Protocol, cast

_GZIP_WINDOW = 31  # zlib's way to say: 32 KiB window, gzip header and CRC
_ISAL_LEVELS = range(4)


class Compressor(Protocol):
    """What zlib's, isal's and bz2's compressors have in common."""

    def compress(self, data: bytes | bytearray | memoryview, /) -> bytes:
        """Take bytes in, give what is ready."""

    def flush(self) -> bytes:
        """The end: give the rest."""


class _Plain:
    """No compression."""

    def compress(self, data: bytes | bytearray | memoryview, /) -> bytes:
        return bytes(data)

    def flush(self) -> bytes:
        return b""


def compressor(compression: str | None, level: int) -> Compressor:
    """A new compressor for one file: ``gz``, ``bz2`` or None.

    ``level`` 0 to 3 is isal's scale where isal is installed; other levels, and any level without it, are
    zlib's 0 to 9.
    """
    if compression is None:
        return _Plain()
    if compression == "bz2":
        return bz2.BZ2Compressor(max(1, level))
    if level in _ISAL_LEVELS:
        try:
            from isal import isal_zlib
        except ModuleNotFoundError:
            pass
        else:
            return cast(Compressor, isal_zlib.compressobj(level=level, wbits=_GZIP_WINDOW))
    return cast(Compressor, zlib.compressobj(level, zlib.DEFLATED, _GZIP_WINDOW))
