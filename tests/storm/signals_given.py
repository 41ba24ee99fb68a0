"""The source of the storm of signals, as taps see it: the files of a ``Source``, and connections to it.

The environment says where: STORM_PLAN holds the plan as JSON, with ``folder``, ``port`` and ``rest`` (true:
nothing blocks).
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LINE_BYTES = 10
PLAN: dict[str, Any] = json.loads(os.environ["STORM_PLAN"])


def connect(kind: str) -> socket.socket:
    """A connection to the source, which then knows of it."""
    made = socket.create_connection(("127.0.0.1", PLAN["port"]))
    made.sendall(f"{kind} {os.getpid()}\n".encode())
    return made


class Client:
    """A client of the source. ``number``: how many this process has made."""

    def __init__(self) -> None:
        self._socket = connect("client")
        self.number = int(self._socket.recv(100))
        self.others: list[socket.socket] = []
        """Connections that are closed with this one."""

    def close(self) -> None:
        """Close it. Whoever waits at one of the others gets nothing, and goes on."""
        self._socket.close()
        for other in self.others:
            with contextlib.suppress(OSError):
                other.shutdown(socket.SHUT_RDWR)


def numbers(place: str, start: int) -> Iterator[int]:
    """The rows that a place holds, from ``start`` on."""
    with (Path(PLAN["folder"]) / f"{place}.txt").open("rb") as file:
        file.seek(start * LINE_BYTES)
        while whole := file.read(LINE_BYTES * 100):
            for at in range(0, len(whole) - LINE_BYTES + 1, LINE_BYTES):
                yield int(whole[at : at + LINE_BYTES])


def held(place: str) -> int:
    """How many rows a place holds."""
    return (Path(PLAN["folder"]) / f"{place}.txt").stat().st_size // LINE_BYTES


def block(client: Client) -> None:
    """Block, or be busy, for ever; or until the client is closed."""
    if PLAN["rest"]:
        return
    with connect("stuck") as other:
        other.recv(100)  # its answer
        if PLAN["loose"]:
            client.others.append(other)
        if PLAN["inner"] == "recv":
            other.recv(1)  # there never is one
            if PLAN["loose"]:
                return
        elif PLAN["inner"] == "sleep":
            time.sleep(600)
        elif PLAN["inner"] == "lock":
            lock = threading.Lock()
            lock.acquire()
            lock.acquire()
        while True:
            sum(range(100))


def given(client: Client, place: str, start: int) -> Iterator[dict[str, Any]]:
    """Rows of a place from ``start`` on; gets stuck, while the first client is there."""
    found: Any = numbers(place, start)
    if PLAN["order"] == "none":
        found = list(found)
        random.Random(place).shuffle(found)
    times = max(1, PLAN["size"] // 9)
    for number in found:
        if number == PLAN["stuck"] and client.number == 1:
            block(client)
        if not PLAN["rest"]:
            sum(range(PLAN["work"]))
        text = f"{number:09}" * times
        yield {"id": number, "text": text}
