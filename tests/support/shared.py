"""A server for all processes that run tests (pytest-xdist): the first that needs it starts a keeper, a process of its
own, which ends with the last one that uses it, however that one ends.

    with shared.joined("postgres", "support.postgres") as where: ...   # what the keeper has said of its server

The keeper is ``python -m MODULE FOLDER``: it runs the server around ``shared.keep(folder, where)``.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

RUN = "PYTEST_XDIST_TESTRUNUID"
_START_SECONDS = 60


@contextlib.contextmanager
def joined(name: str, module: str) -> Iterator[dict[str, Any]]:
    """Use the server of this run of tests; a process that runs them alone has one of its own.

    Raises:
        RuntimeError: it does not start.
    """
    run = os.environ.get(RUN) or f"alone-{os.getpid()}"
    folder = Path(tempfile.gettempdir()) / f"burler-{name}-{os.getuid()}-{run}"
    while True:
        folder.mkdir(mode=0o700, exist_ok=True)
        with contextlib.ExitStack() as stack:
            try:
                one_at_a_time = stack.enter_context(open(folder / "starting", "a"))
                users = stack.enter_context(open(folder / "users", "a"))
            except FileNotFoundError:
                continue
            fcntl.flock(one_at_a_time, fcntl.LOCK_EX)
            fcntl.flock(users, fcntl.LOCK_SH)  # for as long as it is used
            if not _is_at(folder / "users", users.fileno()):
                continue  # it ended just now
            if not (folder / "server.json").exists():
                _start_keeper(folder, module)
            fcntl.flock(one_at_a_time, fcntl.LOCK_UN)
            yield json.loads((folder / "server.json").read_text())
            return


def _is_at(path: Path, fd: int) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_ino == os.fstat(fd).st_ino
    return False


def _start_keeper(folder: Path, module: str) -> None:
    log = folder / "log"
    opened = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
    opened += [(os.POSIX_SPAWN_OPEN, fd, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600) for fd in (1, 2)]
    path = os.pathsep.join(filter(None, (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", ""))))
    environment = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, "-m", module, str(folder)]
    keeper = os.posix_spawn(sys.executable, command, environment, file_actions=opened, setsid=True)
    until = time.monotonic() + _START_SECONDS
    while not (folder / "server.json").exists():
        if os.waitpid(keeper, os.WNOHANG)[0] or time.monotonic() > until:
            raise RuntimeError(f"{module} does not start its server: {log.read_text()[-1000:]}")
        time.sleep(0.05)


def keep(folder: Path, where: Mapping[str, Any]) -> None:
    """Say where a server is, and return once nobody uses it any more."""
    with open(folder / "users", "a") as users:
        made = folder / "server.json.new"
        made.touch(mode=0o600)
        made.write_text(json.dumps(where))
        made.rename(folder / "server.json")
        fcntl.flock(users, fcntl.LOCK_EX)
        shutil.rmtree(folder)
