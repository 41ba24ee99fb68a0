"""Where an export puts what is only on its way: beside the tables, hidden, and gone when the export has ended.

Spark's executors write there too, so it lies under OUT where OUT is a folder: on a cluster that is a place that all of
them see. What a killed export has left is removed by the next one.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from burler.errors import ExportError

_PREFIX = "_staging-"
_OWNER = "_owner.json"
_LEFTOVER_HOURS = 24
"""How long the staging of an export that may still run elsewhere is left alone."""


class Staging:
    """One export's staging. Nothing is made before somebody asks for a folder in it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def folder(self, *names: str) -> Path:
        """A folder inside, made if missing; with a note of the export's process, which is there before all else.

        Raises:
            ExportError: it can't be made.
        """
        folder = self.root.joinpath(*names)
        try:
            if not self.root.exists():
                self.root.mkdir(parents=True)
                owner = {"host": socket.gethostname(), "pid": os.getpid()}
                (self.root / _OWNER).write_text(json.dumps(owner), encoding="utf-8")
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ExportError(
                f"{folder} can't be written: {error.strerror}. Nothing was published. "
                "Make room, or give an OUT that can be written"
            ) from None
        return folder


@contextlib.contextmanager
def staging(out: Path | None) -> Iterator[Staging]:
    """The staging of one export, gone at the end of the block. ``out``: None where OUT is no folder."""
    if out is None:
        with tempfile.TemporaryDirectory(prefix="burler-export-") as made:
            yield Staging(Path(made))
        return
    _remove_leftovers(out)
    there = out.exists()
    folder = out / f"{_PREFIX}{secrets.token_hex(8)}"
    try:
        yield Staging(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if not there:
            with contextlib.suppress(OSError):
                out.rmdir()  # an export that came to nothing leaves nothing


def _remove_leftovers(out: Path) -> None:
    for folder in out.glob(f"{_PREFIX}*"):
        if _is_over(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _is_over(folder: Path) -> bool:
    """Whether the export that made the folder has ended: its process is gone, or it is older than a day."""
    try:
        age_hours = (time.time() - folder.stat().st_mtime) / 3600
    except OSError:
        return False
    try:
        owner = json.loads((folder / _OWNER).read_text(encoding="utf-8"))
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
    return age_hours > _LEFTOVER_HOURS
