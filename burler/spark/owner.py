"""A note of who is at work in a folder, so that what a killed process left is told from what a living one needs."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path

_LEFTOVER_HOURS = 24
"""How long the work of an export that may still run elsewhere is left alone."""


def write_owner(note: Path) -> None:
    """Note this process.

    Raises:
        OSError: the note can't be written.
    """
    note.write_text(json.dumps({"host": socket.gethostname(), "pid": os.getpid()}), encoding="utf-8")


def is_over(note: Path, work: Path) -> bool:
    """Whether the export that wrote the note has ended: its process is gone, or its work is older than a day.

    Args:
        work: what its age is told by: a folder, or the note itself. Where it is gone, its export has just ended.
    """
    try:
        owner = json.loads(note.read_text(encoding="utf-8"))
        here, pid = owner["host"] == socket.gethostname(), int(owner["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        here, pid = False, 0  # killed while it wrote the note
    if here and pid != os.getpid():
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass
    try:
        return (time.time() - work.stat().st_mtime) / 3600 > _LEFTOVER_HOURS
    except OSError:
        return False
