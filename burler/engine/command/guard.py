"""A program between a process and the tap that it runs: it outlives the process, and ends the tap then.

A process may be killed (Spark does that to the worker of a cancelled task) and hears nothing of it, and a tap that
waits for a slow API would go on for hours. So the process starts this program, and this one the tap. When standard
input closes, whatever the reason, the tap's process group gets SIGTERM, some seconds later SIGKILL. Whatever the tap
leaves behind in its group ends with it, and the folder with its config is removed.

    python guard.py NEWS SECONDS FOLDER PROGRAM ARGUMENT...

What happens is written to the descriptor NEWS, a line each: ``started PID``, ``refused REASON``, ``ended CODE``
(negative: by that signal), ``left NAMES`` (of processes that live on, a NUL between them). Output and errors of the tap
go straight to where ours go. It imports little, not even pathlib, and nothing of burler: a start costs some
milliseconds.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time

_LOOK_SECONDS = 0.02
_LEAVE_SECONDS = 0.5
"""So long what the tap has started may take to end by itself."""
_KILLED_SECONDS = 2.0


def main(news: int, grace_seconds: float, folder: str, command: list[str]) -> None:
    """Run the command until it ends or standard input does."""
    os.set_inheritable(news, False)
    heard, note = os.pipe()
    os.set_blocking(heard, False)
    os.set_blocking(note, False)
    signal.set_wakeup_fd(note)
    told: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _frame: told.append(number))
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    child = os.fork()
    if not child:
        _become(command, news)
    _say(news, f"started {child}")
    nothing = os.open(os.devnull, os.O_WRONLY)
    for fd in (1, 2):
        os.dup2(nothing, fd)  # else whoever reads the tap's output waits for ours to end
    status = _waited(child, heard, told)
    if status is None:
        _signal(child, signal.SIGTERM)
        status = _reaped(child, grace_seconds)
    if status is None:
        _signal(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
    _say(news, f"ended {os.waitstatus_to_exitcode(status)}")
    _say(news, "left " + "\0".join(_within(_LEAVE_SECONDS, child)).replace("\n", " "))
    for number, seconds in ((signal.SIGTERM, grace_seconds), (signal.SIGKILL, _KILLED_SECONDS)):
        if _members(child):
            _signal(child, number)
            _within(seconds, child)
    _remove(folder)


def _become(command: list[str], news: int) -> None:
    """The child: a process group of its own, no standard input, signals as any program expects them."""
    try:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number in (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        os.execv(command[0], command)
    except OSError as error:
        _say(news, f"refused {error.strerror}")
    finally:
        os._exit(126)


def _waited(child: int, heard: int, told: list[int]) -> int | None:
    """The child's status at its end; None once nobody wants it any more."""
    while True:
        ready, _, _ = select.select([0, heard], [], [])
        with contextlib.suppress(BlockingIOError):
            os.read(heard, 4096)
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        if told or (0 in ready and not os.read(0, 4096)):
            return None


def _reaped(child: int, seconds: float) -> int | None:
    """The child's status, if it ends within that time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        time.sleep(_LOOK_SECONDS)
    return None


def _within(seconds: float, group: int) -> list[str]:
    """What of a group lives on, once it had that time to end."""
    end = time.monotonic() + seconds
    while (names := _members(group)) and time.monotonic() < end:
        time.sleep(_LOOK_SECONDS)
    return names


def _members(group: int) -> list[str]:
    """The names of the processes of a group, without those that have ended and that nobody has waited for."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return []
    except PermissionError:  # it has members, of somebody else
        return ["a process of another user"]
    if not os.path.exists("/proc/self/stat"):
        return ["a process"]
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/stat", errors="replace") as file:
            name, _, rest = file.read().partition(" (")[2].rpartition(") ")
            state, _parent, its_group = rest.split()[:3]
            if int(its_group) == group and state not in "ZX":
                found.append(name)
    return sorted(found)


def _signal(group: int, number: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(group, number)


def _say(news: int, text: str) -> None:
    with contextlib.suppress(OSError):  # nobody listens any more
        os.write(news, text.encode(errors="replace") + b"\n")


def _remove(folder: str) -> None:
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        os.rmdir(folder)


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3], sys.argv[4:])
