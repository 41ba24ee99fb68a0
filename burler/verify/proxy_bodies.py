"""Bodies on their way through the proxy, piece by piece."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

PIECE = 64 * 1024


def chunks(file: Any) -> Iterator[bytes]:
    """The pieces of a chunked body."""
    while size := int(file.readline(100).partition(b";")[0], 16):
        yield file.read(size)
        file.readline(3)
    while file.readline(PIECE).strip():
        pass  # trailers


def chunked(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """A body of pieces, chunked."""
    for piece in pieces:
        yield b"%x\r\n%b\r\n" % (len(piece), piece)
    yield b"0\r\n\r\n"


def of_length(file: Any, length: int) -> Iterator[bytes]:
    """The pieces of a body of so many bytes."""
    while length > 0 and (piece := file.read(min(length, PIECE))):
        length -= len(piece)
        yield piece
