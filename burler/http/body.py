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
    early. gzip is unpacked here because a gzip body that ends early passes unnoticed elsewhere.

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
    for chunk in _gunzipped(response.raw) if encoding in ("gzip", "x-gzip") else _as_sent(response):
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


def _gunzipped(raw: Any) -> Iterator[bytes]:
    unpacker = zlib.decompressobj(_GZIP)
    begun = False
    try:
        for data in raw.stream(CHUNK_BYTES, decode_content=False):
            while True:
                begun = begun or bool(data)
                piece = unpacker.decompress(data, CHUNK_BYTES)
                if piece:
                    yield piece
                if unpacker.eof:
                    data = unpacker.unused_data
                    if not data.startswith(_GZIP_BEGINS):  # padding, which gunzip passes over as well
                        break
                    unpacker = zlib.decompressobj(_GZIP)
                    continue
                data = unpacker.unconsumed_tail
                if not data and len(piece) < CHUNK_BYTES:
                    break
    except zlib.error as error:
        raise BrokenBody(f"it is not gzip as its headers say ({error})") from None
    if begun and not unpacker.eof:
        raise BrokenBody("its gzip breaks off")
