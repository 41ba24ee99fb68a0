"""A file as libraries read it, whose errors stay its own."""

from __future__ import annotations

import io
from typing import Any

from burler.formats.names import HEAD_BYTES

_READ_BYTES = 1 << 16


class Source(io.RawIOBase):
    """A file as it is stored, with a look at its beginning. A library may close this one: the file stays open.

    Args:
        file: an object with ``read(size)``; with ``seek`` and ``tell`` for those that need them.

    Attributes:
        error: that the file raised: libraries turn it into one of theirs.
        count_bytes: how many bytes were read.
    """

    def __init__(self, file: Any) -> None:
        super().__init__()
        self._file = file
        self._ahead = b""
        self.count_bytes = 0
        self.error: BaseException | None = None

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """Whether the file says so."""
        return hasattr(self._file, "seekable") and bool(self._file.seekable())

    def head(self) -> bytes:
        """The first bytes of the file; nothing may have been read before."""
        while len(self._ahead) < HEAD_BYTES and (piece := self._stored(_READ_BYTES)):
            self._ahead += piece
        return self._ahead

    def read(self, size: int = -1) -> bytes:
        """At most so many bytes; b"" at the end."""
        if not self._ahead:
            return self._stored(size)
        given, self._ahead = self._ahead[:size], self._ahead[size:]
        return given

    read1 = read

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer as far as there are bytes."""
        piece = self.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        self._ahead = b""
        return int(self._do("seek", offset, whence))

    def tell(self) -> int:
        """The place."""
        return int(self._do("tell"))

    def release(self) -> None:
        """The file is its owner's again, whatever a library still holds."""
        self._file = None

    def _stored(self, size: int) -> bytes:
        piece: bytes = self._do("read", size)
        self.count_bytes += len(piece)
        return piece

    def _do(self, method: str, *given: Any) -> Any:
        try:
            return getattr(self._file, method)(*given)
        except BaseException as error:
            self.error = error
            raise
