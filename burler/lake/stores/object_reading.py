"""An object as a stream: read in blocks, the next one fetched while the last is used, in bounded memory."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from typing import BinaryIO, cast

from burler.lake.stores.object_calls import Piece

FIRST_BYTES = 256 << 10
"""Of an object at first: line 1 of a data file, or a whole small file, is one request."""
MOST_BYTES = 4 << 20
"""Of an object at once. Two such blocks are held in memory."""
_BUFFER_BYTES = 64 << 10

Fetch = Callable[[int, int], Piece]
"""(start, stop) -> those bytes. Raises burler's errors."""


def stream(fetch: Fetch, changed: Callable[[], Exception]) -> BinaryIO:
    """The object that ``fetch`` reads, from its start. The first block is read at once.

    Args:
        changed: the error to raise if the object becomes another one meanwhile.

    Raises:
        FileNotFoundError: there is none. And what ``fetch`` raises, then and later.
    """
    return cast(BinaryIO, io.BufferedReader(_Blocks(fetch, changed), _BUFFER_BYTES))


class _Ahead(threading.Thread):
    """A block that is being fetched. A daemon: who stops reading waits for nothing."""

    def __init__(self, fetch: Fetch, start: int, stop: int) -> None:
        super().__init__(name="lake-read-ahead", daemon=True)
        self._range, self._fetch = (start, stop), fetch
        self._piece: Piece | None = None
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._piece = self._fetch(*self._range)
        except BaseException as error:
            self._error = error

    def result(self) -> Piece:
        self.join()
        if self._error is not None:
            raise self._error
        assert self._piece is not None
        return self._piece


class _Blocks(io.RawIOBase):
    def __init__(self, fetch: Fetch, changed: Callable[[], Exception]) -> None:
        super().__init__()
        self._fetch, self._changed = fetch, changed
        first = fetch(0, FIRST_BYTES)
        self._tag, self._size = first.tag, first.size_bytes
        self._block, self._at = memoryview(first.data), 0
        self._fetched, self._length = len(first.data), FIRST_BYTES
        self._ahead: _Ahead | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        if self._at == len(self._block) and not self._next():
            return 0
        size = min(len(buffer), len(self._block) - self._at)
        buffer[:size] = self._block[self._at : self._at + size]
        self._at += size
        return size

    def close(self) -> None:
        self._ahead = None
        self._block = memoryview(b"")
        self._at = 0
        super().close()

    def _next(self) -> bool:
        if self._fetched >= self._size:
            return False
        piece = (self._ahead or self._begin()).result()
        self._ahead = None
        if piece.tag != self._tag or not piece.data:
            raise self._changed()
        self._block, self._at = memoryview(piece.data), 0
        self._fetched += len(piece.data)
        if self._fetched < self._size:
            self._ahead = self._begin()
        return True

    def _begin(self) -> _Ahead:
        self._length = min(MOST_BYTES, 4 * self._length)
        return _Ahead(self._fetch, self._fetched, min(self._fetched + self._length, self._size))
