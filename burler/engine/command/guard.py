"""A program between a Spark worker and the tap that it runs: it outlives the worker, and ends the tap then.

Spark ends a worker whose task was cancelled with SIGKILL, of which the worker hears nothing, and a tap that waits for
a slow API would go on for hours. So the worker starts this program, and this one the tap: when standard input closes,
whatever the reason, the tap's process group gets SIGTERM, some seconds later SIGKILL, and the folder with its config is
removed.

    python guard.py FOLDER PROGRAM ARGUMENT...

Output and errors of the tap go straight to where ours go; its exit code is ours (128 and more: by a signal). It imports
little, and nothing of burler: a start costs some milliseconds.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from pathlib import Path

GRACE_SECONDS = float(os.environ.get("BURLER_GRACE_SECONDS", "5"))
"""How long a tap has after SIGTERM."""
_LOOK_SECONDS = 0.02


def main(folder: str, command: list[str]) -> int:
    """Run the command until it ends or standard input does; its exit code."""
    news, note = os.pipe()
    os.set_blocking(note, False)
    os.set_blocking(news, False)
    signal.set_wakeup_fd(note)
    told: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _frame: told.append(number))
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    child = os.fork()
    if not child:
        _become(command)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)  # else whoever reads the tap's output waits for ours to end
    status = _waited(child, news, told)
    with contextlib.suppress(OSError):
        os.killpg(child, signal.SIGTERM)  # what the tap has left behind
    _remove(folder)
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


def _become(command: list[str]) -> None:
    """The child: a process group of its own, no standard input, signals as any program expects them."""
    try:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number in (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        os.execv(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]} can't be started: {error.strerror}\n".encode())
    finally:
        os._exit(126)


def _waited(child: int, news: int, told: list[int]) -> int:
    """The child's status at its end, which is brought about where nobody wants it any more."""
    while True:
        ready, _, _ = select.select([0, news], [], [])
        with contextlib.suppress(BlockingIOError):
            os.read(news, 4096)
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        if told or (0 in ready and not os.read(0, 4096)):
            return _ended(child)


def _ended(child: int) -> int:
    for number, seconds in ((signal.SIGTERM, GRACE_SECONDS), (signal.SIGKILL, 3600.0)):
        with contextlib.suppress(OSError):
            os.killpg(child, number)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return status
            time.sleep(_LOOK_SECONDS)
    return signal.SIGKILL


def _remove(folder: str) -> None:
    with contextlib.suppress(OSError):
        for file in Path(folder).iterdir():
            file.unlink()
        Path(folder).rmdir()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
