"""What the system tells of processes and pipes; most of it only on Linux."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import Literal

Sigterm = Literal["ignored", "handled", "default", ""]
"""What a process does with SIGTERM; "" where nobody knows."""

USUAL_BYTES = 1 << 16
"""What a pipe holds, unless it was made smaller."""
_PIPE_BYTES = 4096


def shrink(fd: int) -> int:
    """Make a pipe as small as the system allows; its size."""
    try:
        import fcntl

        return fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    except (ImportError, AttributeError, OSError):
        return USUAL_BYTES


def disposition(pid: int) -> Sigterm:
    """What a process does with SIGTERM, where Linux tells it."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return ""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_IGN:
        return ""  # it has that from us
    bit = 1 << (signal.SIGTERM - 1)
    masks = {line[:6]: int(line.split()[1], 16) for line in text.splitlines() if line[:6] in ("SigIgn", "SigCgt")}
    if masks.get("SigIgn", 0) & bit:
        return "ignored"
    return "handled" if masks.get("SigCgt", 0) & bit else "default"


def members(group: int) -> tuple[str, ...]:
    """The names of the processes of a group, without those that have ended and that nobody has waited for."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return ()
    except PermissionError:  # it has members, of somebody else
        return ("a process of another user",)
    if not Path("/proc/self/stat").exists():
        return ("a process",)
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):
            name, _, rest = path.read_text().partition(" (")[2].rpartition(") ")
            state, _parent, its_group = rest.split()[:3]
            if int(its_group) == group and state not in "ZX":
                found.append(name)
    return tuple(sorted(found))
