"""A source over HTTP that takes its time: each reply is sent so many seconds after its request, however many wait.

Run as: source.py ROWS SECONDS. It prints its address, and ends when its stdin is closed.
"""

from __future__ import annotations

import asyncio
import sys

import replies


class Slow(asyncio.Protocol):
    """One connection; requests follow each other."""

    def __init__(self, prepared: list[bytes], seconds: float) -> None:
        self._prepared = prepared
        self._seconds = seconds
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
            number = int(self._got.split(b" ", 2)[1][1:])
            self._got = self._got[end + 4 :]
            asyncio.get_running_loop().call_later(self._seconds, self._reply, number)

    def _reply(self, number: int) -> None:
        if self._transport is not None:
            self._transport.write(self._prepared[number])

    def connection_lost(self, exc: Exception | None) -> None:
        """They have gone."""
        self._transport = None


async def serve(count: int, seconds: float) -> None:
    """Serve until stdin ends."""
    accounts, of_each = replies.accounts(count)
    head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n"
    bodies = [replies.body(number, of_each) for number in range(accounts * of_each)]
    prepared = [head.format(len(body)).encode() + body for body in bodies]
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Slow(prepared, seconds), "127.0.0.1", 0, backlog=64)
    host, port = server.sockets[0].getsockname()
    print(f"{host}:{port}", flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), float(sys.argv[2])))
