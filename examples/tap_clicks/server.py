"""A Redis server with a stream of clicks and a table of campaigns, until it is told to stop.

``python -m examples.tap_clicks.server`` starts one in a folder that goes with it, on a port of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PAGES = ("/", "/books", "/books/17", "/cart", "/café")
CAMPAIGNS = {
    "c1": {"name": "Spring", "budget_cents": 150_000, "ends": "2027-05-31"},
    "c2": {"name": "Café readers", "budget_cents": 40_000, "ends": None},
    "c3": {"name": "Letters", "budget_cents": None, "ends": "2027-12-31"},
}
_START_SECONDS = 20


class MissingError(Exception):
    """The program redis-server is not on this machine."""


def click(number: int) -> dict[str, str]:
    """The fields of a click: always the same for a number."""
    return {
        "user": f"u{number % 97}",
        "page": PAGES[number % len(PAGES)],
        "campaign_id": f"c{number % 3 + 1}",
        "took_ms": str(number * 7919 % 1500),
    }


class Server:
    """A Redis server on 127.0.0.1 that writes everything down before it answers. It may be stopped and started again.

    Args:
        folder: for its files; made if need be.
        port: 0 takes one that is free, and keeps it.
        password: what it asks for, if anything.

    Raises:
        MissingError: redis-server is not here.
    """

    def __init__(self, folder: Path, *, port: int = 0, password: str | None = None) -> None:
        found = shutil.which("redis-server")
        if found is None:
            raise MissingError("redis-server is not here; on Debian: apt-get install redis-server")
        self._program, self.folder, self.port, self._password = found, folder, port, password
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """With the password, if there is one."""
        return f"redis://{f':{self._password}@' if self._password else ''}127.0.0.1:{self.port}/0"

    def client(self) -> Any:
        """A connection of one's own."""
        import redis

        return redis.Redis.from_url(self.url, protocol=2, decode_responses=True, socket_timeout=20)

    def start(self) -> None:
        """Start it, and wait until it answers.

        Raises:
            RuntimeError: it does not; the text says what it wrote.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        for _ in range(1 if self.port else 5):  # somebody else may take a port that was free
            port = self.port or _free_port()
            if self._is_up(port):
                self.port = port
                return
        said = (self.folder / "log").read_text(encoding="utf-8", errors="replace")[-1000:]
        raise RuntimeError(f"redis-server does not start on port {port}:\n{said}")

    def stop(self, *, kill: bool = False) -> None:
        """End it; with ``kill`` at once, as a crash does."""
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def _is_up(self, port: int) -> bool:
        import redis

        options = {"bind": "127.0.0.1", "port": port, "dir": f'"{self.folder}"', "appendonly": "yes", "save": '""'}
        options |= {"daemonize": "no", "requirepass": self._password} if self._password else {"daemonize": "no"}
        with open(self.folder / "log", "wb") as log:
            process = subprocess.Popen([self._program, "-"], stdin=subprocess.PIPE, stdout=log, stderr=log)
        assert process.stdin is not None
        with process.stdin as config:  # not as arguments: everybody may read those
            config.write("".join(f"{name} {value}\n" for name, value in options.items()).encode())
        self._process = process
        asking = redis.Redis(port=port, password=self._password, socket_timeout=2)
        until = time.monotonic() + _START_SECONDS
        while time.monotonic() < until and process.poll() is None:
            with contextlib.suppress(redis.exceptions.ConnectionError, redis.exceptions.TimeoutError):
                # It may be that another server has this port.
                if asking.info("server")["process_id"] == process.pid:
                    asking.close()
                    return True
            time.sleep(0.02)
        self.stop(kill=True)
        return False


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def fill(client: Any) -> None:
    """The campaigns."""
    client.hset("campaigns", mapping={name: json.dumps(values) for name, values in CAMPAIGNS.items()})


def add_clicks(client: Any, first: int, count: int) -> list[str]:
    """Clicks number ``first`` and so on; their ids."""
    pipe = client.pipeline(transaction=False)
    for number in range(first, first + count):
        pipe.xadd("clicks", click(number))
    return list(pipe.execute())


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="tap_clicks.server", description=__doc__)
    parser.add_argument("--port", type=int, default=8770)
    parser.add_argument("--clicks-per-second", type=float, default=20)
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # so that Redis ends as well
    with tempfile.TemporaryDirectory(prefix="tap-clicks-") as folder:
        try:
            with Server(Path(folder), port=options.port) as server, contextlib.suppress(KeyboardInterrupt):
                client = server.client()
                fill(client)
                sys.stderr.write(f"{server.url}: {options.clicks_per_second:g} clicks a second\n")
                for number in range(sys.maxsize):
                    add_clicks(client, number, 1)
                    time.sleep(1 / options.clicks_per_second)
        except (MissingError, RuntimeError) as error:
            sys.stderr.write(f"{error}\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
