"""SIGHUP while a run begins: until it is known whether the run is a tail, which SIGHUP does not end, it waits.

Light, and the first thing that ``burler`` imports: so ``burler run`` holds it from there on, a tap's own command from
``tap.cli()`` on. What comes before that is Python's own start, and what such a command imports itself.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

_came = [False]


def _hold(_number: int, _frame: FrameType | None) -> None:
    _came[0] = True


def hold() -> None:
    """From here on a SIGHUP waits. Where it is ignored (``nohup``) or somebody else handles it, all stays as it is."""
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        with contextlib.suppress(ValueError):  # not in the main thread
            signal.signal(signal.SIGHUP, _hold)


def release(tail: Callable[[int, FrameType | None], None] | None) -> None:
    """It is known. In a tail this handles SIGHUP from here on; else (None) it ends the process, as it does by default.
    One that has come meanwhile does so now."""
    if signal.getsignal(signal.SIGHUP) is not _hold:
        return
    signal.signal(signal.SIGHUP, signal.SIG_DFL if tail is None else tail)
    came, _came[0] = _came[0], False
    if came:
        os.kill(os.getpid(), signal.SIGHUP)


def _is_burler_run() -> bool:
    """Whether this process is the command, and no other program that imports burler."""
    words = sys.orig_argv[-len(sys.argv) :]
    return words[1:2] == ["run"] and words[0].rpartition("/")[2] == "burler"


if _is_burler_run():
    hold()
