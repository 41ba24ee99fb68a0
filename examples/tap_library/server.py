"""The library's HTTP API, to try the tap on: `python -m examples.tap_library.server`.

It is datasette (`pip install datasette`) over a SQLite file, with `plugins/library_api.py` in front of it. Every table
and view is at `/library/NAME.json`, a row at `/library/NAME/KEY.json`.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import IO

from .data import Library, Size

HERE = Path(__file__).resolve().parent
SAMPLE_TOKEN = "let-me-read"  # of the README's server, which holds nothing worth hiding
START_SECONDS = 60.0


def command(database: Path, port: int) -> list[str]:
    """What starts datasette on this machine's own address; with port 0 the system chooses one."""
    line = [sys.executable, "-m", "datasette", "serve", str(database), "--host", "127.0.0.1", "--port", str(port)]
    line += ["--plugins-dir", str(HERE / "plugins")]
    for name, value in {"suggest_facets": "off", "default_page_size": "100", "max_returned_rows": "1000"}.items():
        line += ["--setting", name, value]
    return line


class Server:
    """datasette in a process of its own, for as long as a `with` block lasts.

    Args:
        library: what it serves; its file must be called library.db.
        token: what clients must say.
        requests, seconds: so many requests are allowed in so many seconds; 0: any number.
    """

    def __init__(self, library: Library, token: str = SAMPLE_TOKEN, *, requests: int = 0, seconds: float = 1.0) -> None:
        self.library = library
        self.token = token
        self.log_path = library.path.with_suffix(".requests.jsonl")
        limit = {"LIBRARY_RATE_LIMIT": str(requests), "LIBRARY_RATE_SECONDS": str(seconds)}
        self._environment = {**os.environ, "LIBRARY_TOKEN": token, "LIBRARY_LOG": str(self.log_path), **limit}
        self._process: subprocess.Popen[str] | None = None
        self._said: _Said | None = None
        self.port = 0

    @property
    def url(self) -> str:
        """Where it is reached, once it has been started."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it answers. Started again it has the port that it had before.

        Raises:
            RuntimeError: it ended, or said nothing for a minute; with what it said.
        """
        line = command(self.library.path, self.port)
        self._process = subprocess.Popen(
            line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=self._environment
        )
        assert self._process.stderr is not None
        said = self._said = _Said(self._process.stderr)
        if not said.address.wait(START_SECONDS) or not said.port:
            self.stop()
            raise RuntimeError("datasette did not start:\n" + "".join(said.lines[-20:]))
        self.port = said.port

    def stop(self) -> None:
        """End it at once, replies that are under way with it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        if self._said is not None:
            self._said.thread.join()
            self._said = None

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class _Said:
    """Reads what datasette says as long as it lives, so that it never waits for a reader; `port` is where it is."""

    def __init__(self, stream: IO[str]) -> None:
        self.lines: list[str] = []
        self.port = 0
        self.address = threading.Event()
        self.thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self.thread.start()

    def _read(self, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                self.lines = [*self.lines[-99:], line]
                if match := re.search(r"running on http://127\.0\.0\.1:(\d+)", line):
                    self.port = int(match[1])
                    self.address.set()
        self.address.set()


def main() -> None:
    """Make the file if there is none, and become a server of it."""
    parser = argparse.ArgumentParser(prog="python -m examples.tap_library.server", description=__doc__.split("\n")[0])
    parser.add_argument("--port", type=int, default=8001, help="0: any that is free")
    parser.add_argument("--database", type=Path, default=Path("library.db"), help="made if it is not there")
    parser.add_argument("--token", default=SAMPLE_TOKEN, help="what clients must say (default: %(default)s)")
    parser.add_argument("--requests-per-second", type=int, default=0, help="more are answered with 429; 0: any number")
    for name, default in vars(Size()).items():
        parser.add_argument(f"--{name}", type=int, default=default, help="how many, where the file is made")
    given = parser.parse_args()
    if given.database.name != "library.db":
        parser.error("the file must be called library.db: its name is in every address")
    if not given.database.exists():
        Library.make(given.database, Size(**{name: getattr(given, name) for name in vars(Size())}))
    limit = {"LIBRARY_RATE_LIMIT": str(given.requests_per_second)}
    line = command(given.database, given.port)
    os.dup2(
        os.open(os.devnull, os.O_WRONLY), 1
    )  # a line for each request; where it is and what is wrong goes to stderr
    os.execve(line[0], line, {**os.environ, "LIBRARY_TOKEN": given.token, **limit})  # Ctrl-C and kill reach it


if __name__ == "__main__":
    main()
