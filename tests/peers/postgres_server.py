"""A real PostgreSQL server, for as long as it is needed. PostgreSQL refuses to run as root."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class NoServer(Exception):
    """There is none to be started; the text says why."""


def _programs() -> Path | None:
    found = shutil.which("initdb")
    folders = (
        [Path(found).resolve().parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    )
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


@contextlib.contextmanager
def running() -> Iterator[dict[str, Any]]:
    """Start one, and end it; gives how to connect.

    Raises:
        NoServer: see there.
    """
    programs = _programs()
    if programs is None:
        raise NoServer("no PostgreSQL server is installed. On Debian: apt-get install postgresql")
    as_user: dict[str, Any] = {}
    if os.geteuid() == 0:
        try:
            user = pwd.getpwnam("postgres")
        except KeyError:
            raise NoServer("there is no user 'postgres' to run the server as") from None
        as_user = {"user": "postgres", "group": user.pw_gid, "extra_groups": []}
    folder = Path(tempfile.mkdtemp(prefix="burler-postgres-"))  # short, and nobody else's to clean up
    if as_user:
        os.chown(folder, user.pw_uid, user.pw_gid)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    def call(*command: Any) -> None:
        subprocess.run(command, check=True, capture_output=True, cwd=folder, **as_user)

    call(programs / "initdb", "-D", folder / "data", "-A", "trust", "-U", "postgres", "-N", "-E", "UTF8")
    options = f"-p {port} -k {folder} -c fsync=off -c listen_addresses=127.0.0.1"
    call(programs / "pg_ctl", "-D", folder / "data", "-l", folder / "log", "-o", options, "-w", "start")
    try:
        yield {
            "host": "127.0.0.1",
            "port": port,
            "user": "postgres",
            "database": "postgres",
            "psql": programs / "psql",
        }
    finally:
        call(programs / "pg_ctl", "-D", folder / "data", "-m", "immediate", "-w", "stop")
        shutil.rmtree(folder, ignore_errors=True)
