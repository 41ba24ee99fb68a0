"""A PostgreSQL of its own with a shop in it: ``python -m examples.tap_copy.server``.

It lies in a temporary folder and is gone when the command ends. PostgreSQL's programs are those of the machine (on
Debian: ``apt-get install postgresql``). Where root starts it, another user runs it: PostgreSQL refuses root.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

USER = "shop"
_START_SECONDS = 30.0


class Missing(Exception):
    """PostgreSQL's programs are not on this machine."""


class Server:
    """A server for a ``with`` block.

    Args:
        port: None: any that is free.
        password: of its superuser, ``shop``.

    Raises:
        Missing: PostgreSQL's programs are not here.
    """

    def __init__(self, *, port: int | None = None, password: str = "shop") -> None:
        self._programs, self._whom = programs(), _as_whom()
        self._folder = Path(tempfile.mkdtemp(prefix="burler-shop-"))
        self._process: subprocess.Popen[bytes] | None = None
        self._password = password
        self.port = port or free_port()

    def __enter__(self) -> Server:
        try:
            self._make()
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def url(self, database: str = "postgres", *, user: str = USER, password: str | None = None) -> str:
        """The URL of a database, for its superuser or another one."""
        return f"postgresql://{user}:{password or self._password}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start it, and wait until it answers.

        Raises:
            RuntimeError: it does not; with the end of its log.
        """
        said = {"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": self._folder}
        said |= {"fsync": "off", "timezone": "America/New_York"}
        options = [part for name, value in said.items() for part in ("-c", f"{name}={value}")]
        log = self._folder / "log"
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self._folder / "data", *options],
                stdout=out, stderr=out, stdin=subprocess.DEVNULL, cwd=self._folder, start_new_session=True,
                **self._whom,
            )  # fmt: skip
        until = time.monotonic() + _START_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > until:
                self.stop()
                raise RuntimeError(f"PostgreSQL does not start: {log.read_text()[-1000:]}")
            time.sleep(0.03)

    def stop(self) -> None:
        """End it: who is connected is sent away ("fast")."""
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGINT)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGQUIT)  # "immediate"; SIGKILL would leave its children
            process.wait(20)

    def _make(self) -> None:
        if self._whom:
            os.chown(self._folder, self._whom["user"], self._whom["group"])
        secret = self._folder / "password"
        secret.touch(0o600)
        secret.write_text(self._password)
        if self._whom:
            os.chown(secret, self._whom["user"], self._whom["group"])
        line = [self._programs / "initdb", "-D", self._folder / "data", "-U", USER, "-A", "scram-sha-256"]
        line += ["--pwfile", secret, "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"]
        subprocess.run(line, check=True, capture_output=True, cwd=self._folder, **self._whom)
        secret.unlink()

    def _answers(self) -> bool:
        import psycopg

        with contextlib.suppress(psycopg.OperationalError):
            psycopg.connect(self.url(), connect_timeout=2).close()
            return True
        return False


def programs() -> Path:
    """The folder of ``initdb`` and ``postgres``: the newest one."""
    on_path = shutil.which("initdb")
    folders = [Path(on_path).resolve().parent] if on_path else []
    folders += sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: int(folder.parent.name), reverse=True
    )
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise Missing("PostgreSQL's initdb is not here; on Debian: apt-get install postgresql")


def _as_whom() -> dict[str, int | list[int]]:
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            found = pwd.getpwnam(name)
            return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    raise Missing("root can't run PostgreSQL, and there is no user postgres or nobody")


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def main() -> None:
    """Serve until the process is ended."""
    from . import shop

    parser = argparse.ArgumentParser(prog="python -m examples.tap_copy.server", description=__doc__.split("\n")[0])
    parser.add_argument("--port", type=int, default=8773, help="of the server (8773)")
    parser.add_argument("--orders", type=int, default=100_000, help="how many (100000)")
    given = parser.parse_args()
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: ended.set())
    try:
        with Server(port=given.port) as server:
            shop.make(server.url(), orders=given.orders)
            sys.stdout.write(f"the shop is at postgresql://tap:tap@127.0.0.1:{server.port}/shop, Ctrl-C ends it\n")
            sys.stdout.flush()
            ended.wait()
    except (Missing, RuntimeError) as error:
        raise SystemExit(f"server: {error}") from None


if __name__ == "__main__":
    main()
