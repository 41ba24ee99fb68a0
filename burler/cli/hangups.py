"""SIGHUP while a run begins: until it is known whether the run is a tail, which SIGHUP does not end, it waits.

Light: the first thing that a command imports. What comes before that is Python's own start, and what a tap's own script
imports before it calls ``tap.cli()``.
"""

from __future__ import annotations

import contextlib
import os
import signal
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from burler.runtime.signals import Stopper

_came = [False]


def _hold(_number: int, _frame: FrameType | None) -> None:
    _came[0] = True


def hold() -> None:
    """From here on a SIGHUP waits. Where it is ignored (``nohup``) or somebody else handles it, all stays as it is."""
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        with contextlib.suppress(ValueError):  # not in the main thread
            signal.signal(signal.SIGHUP, _hold)


def release(tail: Stopper | None) -> None:
    """It is known. In a tail SIGHUP goes to its stopper; else (None) it ends the process, as it does by default. One
    that has come meanwhile does so now."""
    if signal.getsignal(signal.SIGHUP) is not _hold:
        return
    signal.signal(signal.SIGHUP, signal.SIG_DFL if tail is None else tail.note_hangup)
    came, _came[0] = _came[0], False
    if came:
        os.kill(os.getpid(), signal.SIGHUP)
