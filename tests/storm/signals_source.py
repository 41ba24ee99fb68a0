"""The source of the storm of signals: files that grow, and a server that counts connections and tells of new rows.

A stream, or a partition of one, is a *place*: a file that holds a line of ten bytes for each row. So what the source
holds is known at any time. The tap connects to say what it does (``client``, ``stuck``), or to be told that a file has
grown (``push``).
"""

from __future__ import annotations

import contextlib
import random
import socket
import threading
from collections import Counter
from collections.abc import Iterable
from pathlib import Path


class Source:
    """Files in a folder, one for each place, and who has connected to its ``port``. A context manager."""

    def __init__(self, folder: Path, places: Iterable[str], rows: int) -> None:
        self.folder = folder
        self.rows = dict.fromkeys(places, 0)
        """How many rows each place holds."""
        self.stuck = threading.Event()
        """Some function of the tap is where it blocks."""
        self._server = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self._server.getsockname()[1]
        self._open: set[socket.socket] = set()
        self._pushed: set[socket.socket] = set()
        self._came: Counter[tuple[str, int]] = Counter()
        self._lock = threading.Lock()
        self._grower: threading.Thread | None = None
        self._full = threading.Event()
        for place in self.rows:
            self.grow(place, rows)

    def __enter__(self) -> Source:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop_growing()
        with self._lock:
            for one in (self._server, *self._open):
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                met = self._server.accept()[0]
                threading.Thread(target=self._serve, args=(met,), daemon=True).start()

    def _serve(self, met: socket.socket) -> None:
        with met, contextlib.suppress(OSError, ValueError):
            self._open.add(met)
            try:
                kind, pid = met.recv(100).decode().split()
                with self._lock:
                    self._came[kind, int(pid)] += 1
                    number = self._came[kind, int(pid)]
                    if kind == "push":
                        self._pushed.add(met)
                if kind == "stuck":
                    self.stuck.set()
                met.sendall(f"{number}\n".encode())
                while met.recv(4096):
                    pass
            finally:
                with self._lock:
                    self._pushed.discard(met)
                    self._open.discard(met)

    def connections(self, kind: str, pid: int) -> int:
        """How many connections of a kind a process has made."""
        with self._lock:
            return self._came[kind, pid]

    def grow(self, place: str, rows: int) -> None:
        """So many rows more at a place."""
        first = self.rows[place]
        with (self.folder / f"{place}.txt").open("ab") as file:
            file.write(b"".join(b"%09d\n" % n for n in range(first, first + rows)))
        self.rows[place] = first + rows
        with self._lock:
            for one in self._pushed:
                with contextlib.suppress(OSError):
                    one.send(b".", socket.MSG_DONTWAIT)

    def keep_growing(self, rng: random.Random, rows: int, most: int) -> None:
        """Until told to stop, rows come at random: ``rows`` at a time, ``most`` in all."""

        def grow() -> None:
            left = most
            while left > 0 and not self._full.wait(rng.random() * 0.04):
                new = min(left, rng.randint(1, rows))
                self.grow(rng.choice(sorted(self.rows)), new)
                left -= new

        self._full.clear()
        self._grower = threading.Thread(target=grow, name="storm-grower", daemon=True)
        self._grower.start()

    def stop_growing(self) -> None:
        """From now on the source holds what it holds."""
        self._full.set()
        if self._grower is not None:
            self._grower.join()
            self._grower = None
