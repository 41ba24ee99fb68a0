"""A source for the measurements of a tail: rows over HTTP (keep-alive, buffered writes) and over a socket, in threads
of the process that measures; and the taps that read it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from support.servers import Asked, Connection, serving

JSON = {"Content-Type": "application/json"}
ROW = '{"properties": {"id": {"type": "integer"}}}'

POLLED = f"""
import os
import burler, burler.http

tap = burler.tap("tap-polled")
tap.client(lambda: burler.http.Client(os.environ["SOURCE"]))


def polled(name):
    @tap.sync(name, key_properties="id", replication_key="id", order="asc", schema={ROW})
    def rows(client, stream):
        yield from client.pages("/rows", params={{"since": stream.bookmark}})


for number in range(int(os.environ["STREAMS"])):
    polled(f"rows{{number}}")
"""

EMPTY = f"""
import os
import burler

tap = burler.tap("tap-empty")


def polled(name):
    tap.sync(name, key_properties="id", replication_key="id", order="asc", schema={ROW})(lambda: [])


for number in range(int(os.environ["STREAMS"])):
    polled(f"rows{{number}}")
"""

PUSHED = f"""
import os, socket
import burler

tap = burler.tap("tap-pushed")


@tap.tail("rows", key_properties="id", replication_key="id", order="asc", schema={ROW})
def rows():
    host, _, port = os.environ["SOURCE"].rpartition(":")
    with socket.create_connection((host, int(port))) as connection, connection.makefile("rb") as lines:
        for line in lines:
            yield {{"id": int(line)}}
"""

PLAIN = """
import os, time
import requests

streams, seconds, url = int(os.environ["STREAMS"]), float(os.environ["SECONDS"]), os.environ["SOURCE"] + "/rows"
with requests.Session() as session:
    while True:
        for _ in range(streams):
            assert session.get(url, params={"since": 0}, timeout=30).json() == []
            time.sleep(seconds / streams)
"""


PLAIN_POLLED = """
import os, sys, time
import requests

url, seconds, since = os.environ["SOURCE"] + "/rows", float(os.environ["SECONDS"]), 0
with requests.Session() as session:
    while True:
        for row in session.get(url, params={"since": since}, timeout=30).json():
            since = row["id"]
            sys.stdout.write('{"type":"RECORD","stream":"rows","record":{"id":%d}}\\n' % since)
        sys.stdout.flush()
        time.sleep(seconds)
"""

PLAIN_PUSHED = """
import os, socket, sys

host, _, port = os.environ["SOURCE"].rpartition(":")
with socket.create_connection((host, int(port))) as connection, connection.makefile("rb") as lines:
    for line in lines:
        sys.stdout.write('{"type":"RECORD","stream":"rows","record":{"id":%d}}\\n' % int(line))
        sys.stdout.flush()
"""


class Source:
    """Rows 1 to ``count``, each added by ``add``. A context manager: its servers run inside."""

    def __init__(self) -> None:
        self.count = 0
        self.requests = 0
        self.url = ""
        """Where the rows are: ``/rows?since=3``."""
        self._serving = serving(self._rows)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._connections: list[socket.socket] = []

    def __enter__(self) -> Source:
        self.url = self._serving.__enter__().url
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._serving.__exit__(*error)
        for one in (self._listener, *self._connections):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    @property
    def address(self) -> str:
        """Where rows are pushed, a line each: ``host:port``."""
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    @property
    def connected(self) -> int:
        """How many listen to the pushed rows."""
        return len(self._connections)

    def add(self) -> float:
        """One row more; the monotonic time at which it was there."""
        added = time.monotonic()
        self.count += 1
        for one in self._connections:
            one.sendall(b"%d\n" % self.count)
        return added

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self._connections.append(self._listener.accept()[0])

    def _rows(self, asked: Asked) -> Callable[[Connection], None]:
        self.requests += 1
        since = int(asked.query.get("since", "0"))
        body = json.dumps([{"id": i} for i in range(since + 1, self.count + 1)]).encode()
        # By the connection itself: what was asked for need not be kept for hours.
        return lambda connection: (connection.state.asked.clear(), connection.send(200, body, JSON))


@contextlib.contextmanager
def tail(folder: Path, text: str, *flags: str, **env: object) -> Iterator[subprocess.Popen]:
    """A tap's text as a process in a tail; its log is beside it. It is told to end, and must end well."""
    path = folder / f"tap_{len(list(folder.iterdir()))}.py"
    path.write_text(text)
    command = [sys.executable, "-m", "burler", "run", str(path), "--tail", *flags]
    with path.with_suffix(".log").open("wb") as log, program(command, log, **env) as child:
        yield child
        child.terminate()
        if child.wait(30):
            raise SystemExit(path.with_suffix(".log").read_text())


@contextlib.contextmanager
def program(command: list[str], log: IO[bytes] | None = None, **env: object) -> Iterator[subprocess.Popen]:
    """A program; it is killed at the end, if it has not ended."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("TAP_", "BURLER_"))}
    given = kept | {key: str(value) for key, value in env.items()}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env=given) as child:
        try:
            yield child
        finally:
            child.kill()


def load() -> str:
    """How busy the machine is, for whoever reads the figures."""
    return f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, Python {sys.version.split()[0]}"
