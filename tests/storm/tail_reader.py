"""Whoever reads the pipe of a tap in a storm: fast, slow, or stopped on the way."""

from __future__ import annotations

import os
import threading
import time

_FAST_BYTES = 1 << 16
_SLOW_BYTES = 1 << 14


class Reader(threading.Thread):
    """Reads a pipe to its end.

    Args:
        pipe: the file descriptor to read from; whoever made it closes it.
        bytes_per_second: how slow a slow reader is, until it is told to ``hurry``; None: as fast as it can.
        stop_at: after so many bytes it reads nothing more, until it is told to ``go_on``; None: it never stops.
    """

    def __init__(self, pipe: int, *, bytes_per_second: float | None = None, stop_at: int | None = None) -> None:
        super().__init__(name="storm-reader", daemon=True)
        self._pipe = pipe
        self._rate = bytes_per_second
        self._stop_at = stop_at
        self._going_on = threading.Event()
        self._fast = threading.Event()
        self.got = bytearray()
        self.seconds = 0.0
        """How long it has been at other things than waiting for bytes: because it is slow, or its machine busy."""
        self.begun = threading.Event()
        """Something has come."""
        self.stopped = threading.Event()
        """It has stopped reading."""

    def run(self) -> None:
        """Read to the end."""
        while True:
            most = _FAST_BYTES if self._rate is None else _SLOW_BYTES
            if self._stop_at is not None and not self._going_on.is_set():
                if len(self.got) >= self._stop_at:
                    self.stopped.set()
                    self._going_on.wait()
                most = min(most, max(1, self._stop_at - len(self.got)))
            chunk = os.read(self._pipe, most)
            if not chunk:
                return
            begun = time.monotonic()
            self.got += chunk
            self.begun.set()
            if self._rate is not None and not self._fast.is_set():
                self._fast.wait(len(chunk) / self._rate)
            self.seconds += time.monotonic() - begun

    def hurry(self) -> None:
        """Be slow no longer."""
        self._fast.set()

    def go_on(self) -> None:
        """Be stopped no longer."""
        self._going_on.set()

    def whole(self) -> bytes:
        """What has come so far, up to the end of the last whole line."""
        so_far = bytes(self.got)
        return so_far[: so_far.rfind(b"\n") + 1]
