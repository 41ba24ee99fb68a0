"""A file whose rows wait until those of the files before it are written."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import BinaryIO

from burler.batch.expanding_worker import Task
from burler.errors import BurlerError
from burler.target.intake import BLOCK_BYTES


class Turn:
    """A file, and what of its rows waits for its turn."""

    def __init__(self, task: Task, *, last: bool) -> None:
        self.task = task
        self.is_last = last
        self.is_given = self.is_done = False
        self.error: BurlerError | None = None
        self.waiting_bytes = 0
        self._kept: list[bytes] = []
        self._spool: BinaryIO | None = None

    def keep(self, lines: bytes) -> None:
        """Rows that can't be written yet. Where there is no room on the disk they stay in memory: the worker is not
        listened to any more then, so that they are few."""
        self.waiting_bytes += len(lines)
        if self._kept:
            self._kept.append(lines)
            return
        try:
            if self._spool is None:
                self._spool = tempfile.TemporaryFile(prefix="burler-")  # noqa: SIM115  # closed in ``close``
            place = self._spool.tell()
            try:
                self._spool.write(lines)
                self._spool.flush()
            except OSError:
                self._spool.seek(place)
                self._spool.truncate()
                raise
        except OSError:
            self._kept.append(lines)

    @property
    def is_full(self) -> bool:
        """Whether rows stand in memory."""
        return bool(self._kept)

    def release(self, write: Callable[[bytes], object], check: Callable[[], object]) -> None:
        """Write all that waits, complete lines at a time; ``check`` is called between them alone."""
        if self._spool is not None:
            self._spool.seek(0)
            begun: list[bytes] = []  # of a line that goes on: a list, since it may be huge
            while block := self._spool.read(BLOCK_BYTES):
                cut = block.rfind(b"\n") + 1
                if cut:
                    write(b"".join((*begun, block[:cut])))
                    begun = []
                    check()
                begun.append(block[cut:])
        for lines in self._kept:
            write(lines)
        self.close()

    def close(self) -> None:
        """Nothing waits any more."""
        if self._spool is not None:
            self._spool.close()
        self._spool, self._kept, self.waiting_bytes = None, [], 0
