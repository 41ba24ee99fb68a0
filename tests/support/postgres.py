"""A PostgreSQL server for a run of tests: in a folder that goes with it, on a port that the system chose.

``shared()`` is one for all processes that run tests (see ``support.shared``). ``running()`` is a server for one block.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from burler.testing import canary
from support import shared as shared_server

PASSWORD = ""
"""Of the superuser ``burler``, once this process has a server."""
_START_SECONDS = 30
_NUMBERS = itertools.count(1)


class Missing(Exception):
    """PostgreSQL's programs are not on this machine."""


class Server:
    """A running server: ``url(database)`` for a superuser with a password over TCP."""

    def __init__(self, port: int, password: str) -> None:
        global PASSWORD
        self.port = port
        self.password = PASSWORD = password

    def url(self, database: str = "postgres", *, user: str = "burler", password: str | None = None) -> str:
        """The URL of a database."""
        return f"postgresql://{user}:{password or self.password}@127.0.0.1:{self.port}/{database}"

    def execute(self, *statements: str, database: str = "postgres") -> None:
        """Run statements, each for itself."""
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    def ask(self, statement: str, database: str = "postgres") -> list[tuple]:
        """The rows of a statement."""
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            connection.execute("set timezone = 'UTC'")
            return connection.execute(statement).fetchall()

    def new_database(self) -> str:
        """The name of an empty database."""
        name = f"t{os.getpid()}_{next(_NUMBERS)}"
        self.execute(f"create database {name} template template0")
        return name


def programs() -> Path:
    """The folder of ``initdb`` and ``postgres``.

    Raises:
        Missing: there is none.
    """
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise Missing("PostgreSQL's initdb is not here; on Debian: apt-get install postgresql")


def _as_whom() -> dict[str, str | int | list[int]]:
    """initdb refuses root: then another user runs it."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            found = pwd.getpwnam(name)
            return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    raise Missing("root can't run PostgreSQL, and there is no user postgres or nobody")


@contextlib.contextmanager
def shared() -> Iterator[Server]:
    """The server of this run of tests, kept by a process of its own: it ends with its users, however they ended.

    Raises:
        Missing: PostgreSQL's programs are not here.
    """
    programs(), _as_whom()
    canary("postgres-password")  # what this process writes is searched for secrets from now on
    with shared_server.joined("postgres", "support.postgres") as where:
        yield Server(**where)


def keep(folder: Path) -> None:
    """Run a server until nobody uses it any more, however its users ended."""
    with running() as server:
        shared_server.keep(folder, {"port": server.port, "password": server.password})


@contextlib.contextmanager
def running() -> Iterator[Server]:
    """A server that ends with the block.

    Raises:
        Missing: PostgreSQL's programs are not here.
    """
    bin_folder, whom = programs(), _as_whom()
    folder = Path(tempfile.mkdtemp(prefix="burler-pg-"))
    try:
        if whom:
            os.chown(folder, whom["user"], whom["group"])
        secret, password = folder / "password", canary("postgres-password")
        secret.write_text(password)
        secret.chmod(0o644)
        data, log = folder / "data", folder / "log"
        made = [bin_folder / "initdb", "-D", data, "-U", "burler", "-A", "scram-sha-256", "--pwfile", secret]
        more = ["-E", "UTF8", "--locale=C.UTF-8", "--no-sync"]
        environment = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8"}
        subprocess.run([*made, *more], check=True, capture_output=True, cwd=folder, env=environment, **whom)
        for _ in range(5):
            port = _free_port()
            options = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": folder}
            options |= {"fsync": "off", "shared_buffers": "64MB", "timezone": "America/New_York"}
            options["max_connections"] = 200  # of all processes that run tests
            said = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
            with log.open("wb") as out:
                process = subprocess.Popen(
                    [bin_folder / "postgres", "-D", data, *said],
                    stdout=out, stderr=out, cwd=folder, env=environment, **whom,
                )  # fmt: skip
            server = Server(port, password)
            try:
                if _is_up(server, process):
                    yield server
                    return
            finally:
                _end(process)
        raise RuntimeError(f"PostgreSQL does not start: {log.read_text()[-1000:]}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def _is_up(server: Server, process: subprocess.Popen) -> bool:
    import psycopg

    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(psycopg.OperationalError):
            psycopg.connect(server.url(), connect_timeout=2).close()
            return True
        time.sleep(0.05)
    return False


def _end(process: subprocess.Popen) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGINT)  # "fast": who is connected is sent away
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


if __name__ == "__main__":
    keep(Path(sys.argv[1]))
