"""A source over HTTP: the standard rows as JSON arrays of 1,000, ready bytes, sent by a process of its own.

``/std?page=N`` gives page N from 0 on; a ``Link`` header leads to the next one, and behind the last there are empty
ones. The process is started before the clock is, and its work counts for nobody.

Run as: http_source.py ROWS. It prints its address, and ends when its stdin is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from typing import TYPE_CHECKING

import standard

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def serving(count: int) -> Iterator[str]:
    """A source of so many rows; its URL.

    Raises:
        RuntimeError: it does not start.
    """
    command = [sys.executable, __file__, str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as source:
        assert source.stdin is not None and source.stdout is not None
        try:
            address = source.stdout.readline().strip()
            if not address:
                raise RuntimeError("the source over HTTP did not start")
            yield f"http://{address}"
        finally:
            source.stdin.close()  # which ends it


def reply(number: int, pages: list[bytes]) -> bytes:
    """What is sent for a page, headers and all."""
    body = pages[number] if number < len(pages) else b"[]"
    link = f'Link: </std?page={number + 1}>; rel="next"\r\n' if number + 1 < len(pages) else ""
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n{link}\r\n"
    return head.encode() + body


class Source(asyncio.Protocol):
    """One connection; requests follow each other."""

    def __init__(self, pages: list[bytes]) -> None:
        self._pages = pages
        self._transport: asyncio.Transport | None = None
        self._got = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody has connected."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """A request, or a part of it."""
        self._got += data
        while (end := self._got.find(b"\r\n\r\n")) >= 0:
            target = self._got.split(b" ", 2)[1].decode()
            self._got = self._got[end + 4 :]
            page = target.partition("page=")[2].partition("&")[0]
            if self._transport is not None:
                self._transport.write(reply(int(page or 0), self._pages))


async def serve(count: int) -> None:
    """Serve until stdin ends."""
    # Each page is one of its own, with its own ids: what comes out is compared with the reference.
    pages = [standard._json(page) for page in standard.pages(count)]
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Source(pages), "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    print(f"{host}:{port}", flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
