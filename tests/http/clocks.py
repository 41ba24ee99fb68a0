"""Time that passes only when somebody waits."""

from __future__ import annotations

import threading

START = 1_700_000_000.0  # 2023-11-14T22:13:20Z


class Clock:
    """What a Client takes as ``sleep``, ``now`` and ``monotonic``; ``waits`` are those above zero, in order."""

    def __init__(self) -> None:
        self.passed = 0.0
        self.waits: list[float] = []
        self._lock = threading.Lock()

    def sleep(self, seconds: float) -> None:
        with self._lock:
            self.passed += seconds
            self.waits.append(seconds)

    def now(self) -> float:
        return START + self.passed

    def monotonic(self) -> float:
        return 50.0 + self.passed

    @property
    def options(self):
        """The clock's part of a Client's arguments."""
        return {"sleep": self.sleep, "now": self.now, "monotonic": self.monotonic}
