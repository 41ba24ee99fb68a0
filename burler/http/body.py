"""Reading the body of a reply: never more than allowed, and never half of it."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import requests

CHUNK_BYTES = 256 * 1024
_PLAIN_BYTES = 1024 * 1024  # most pages come in one piece, which then need not be joined
_PACKED_BYTES = 64 * 1024  # older versions of urllib3 unpack all of a piece at once
_GZIP = 31  # zlib's word for gzip with its header
_GZIP_BEGINS = b"\x1f\x8b"


class TooBig(Exception):
    """A body is bigger than allowed."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__(f"its body has more than {most_bytes:,} bytes")


class BrokenBody(Exception):
    """A body breaks off, or is not what its headers say."""


def read_body(response: requests.Response, most_bytes: int) -> int:
    """Read the whole body, so that ``response.content`` has it, and give the connection back; gives its length.

    Bytes are counted as they are after decompression, while they come: a small body that unpacks to a huge one ends
    early. gzip and deflate are unpacked here: elsewhere a body that ends early passes unnoticed.

    Raises:
        TooBig, BrokenBody, and what urllib3 raises while it reads.
    """
    reply: Any = response  # whose private parts requests gives no other way to
    if reply._content is not False:  # a hook of the author's has read it
        if len(response.content) > most_bytes:
            raise TooBig(most_bytes)
        return len(response.content)
    reply._content = b""  # what is broken is not read once more by whoever asks for it
    with closing_what_is_left(response):
        reply._content = b"".join(chunks(response, most_bytes))
    return len(reply._content)


@contextlib.contextmanager
def closing_what_is_left(response: requests.Response) -> Iterator[None]:
    """Give the connection back; close it where something of the reply is left in it."""
    done = False
    try:
        yield
        done = True
    finally:
        if not done:
            response.raw.close()
        response.__dict__["_content_consumed"] = True
        response.close()


def chunks(response: requests.Response, most_bytes: int) -> Iterator[bytes]:
    """The body, unpacked, piece by piece; see ``read_body``."""
    declared = response.headers.get("Content-Length", "")
    encoding = response.headers.get("Content-Encoding", "").strip().lower()
    if declared.isdigit() and int(declared) > most_bytes and response.request.method != "HEAD":
        raise TooBig(most_bytes)
    size = 0
    encoding = encoding.removeprefix("x-")
    packed = encoding in ("gzip", "deflate") and hasattr(response.raw, "stream")
    for chunk in _unpacked(response.raw, encoding, most_bytes) if packed else _as_sent(response):
        size += len(chunk)
        if size > most_bytes:
            raise TooBig(most_bytes)
        yield chunk
    missing = getattr(response.raw, "length_remaining", None)
    if missing:
        raise BrokenBody(f"it broke off, {missing:,} bytes are missing")


def _as_sent(response: requests.Response) -> Iterator[bytes]:
    if hasattr(response.raw, "stream"):
        packed = response.headers.get("Content-Encoding", "identity").strip().lower() != "identity"
        yield from response.raw.stream(_PACKED_BYTES if packed else _PLAIN_BYTES, decode_content=packed)
    else:
        yield from response.iter_content(CHUNK_BYTES)


def _unpacked(raw: Any, encoding: str, most_bytes: int) -> Iterator[bytes]:
    """gzip or deflate, unpacked. A gzip body may have several members, and zeros behind the last one.

    Raises:
        BrokenBody: it is none, or ends early; something else stands behind it. TooBig: endless zeros do.
    """
    name = "gzip" if encoding == "gzip" else "deflate"
    unpacker: Any = None
    ended, padding, held = False, 0, b""
    try:
        for data in raw.stream(CHUNK_BYTES, decode_content=False):
            data, held = held + data, b""
            more = False
            while data or more:
                if ended:  # what a finished unpacker is given, it keeps: none is given any more
                    left = data.lstrip(b"\0")
                    padding += len(data) - len(left)
                    data = left
                    if padding > most_bytes:
                        raise TooBig(most_bytes)
                    if not data:
                        break
                if ended or unpacker is None:
                    if len(data) < 2:
                        held = data
                        break
                    if ended and (name != "gzip" or not data.startswith(_GZIP_BEGINS)):
                        raise BrokenBody(f"something else stands behind its {name}")
                    unpacker, ended = zlib.decompressobj(_window(name, data)), False
                piece = unpacker.decompress(data, CHUNK_BYTES)
                if piece:
                    yield piece
                more, ended = len(piece) == CHUNK_BYTES, unpacker.eof
                data = unpacker.unused_data if ended else unpacker.unconsumed_tail
    except zlib.error as error:
        raise BrokenBody(f"it is not {name} as its headers say ({error})") from None
    if held or (unpacker is not None and not ended):
        raise BrokenBody(f"its {name} breaks off")


def _window(name: str, data: bytes) -> int:
    """zlib's word for a form. Some servers send deflate without the header of zlib, which RFC 9110 wants."""
    if name == "gzip":
        return _GZIP
    has_header = data[0] & 0x0F == 8 and int.from_bytes(data[:2]) % 31 == 0
    return zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS
