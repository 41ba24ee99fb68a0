"""Clocks for tests, beside ``burler.testing.FakeClock``."""

from __future__ import annotations

import threading

from burler.testing import FakeClock


class MovedClock(FakeClock):
    """A clock that only the test moves, with ``advance``: whoever waits looks at it again a moment later. For what
    goes on in threads beside each other, where a ``FakeClock`` that moves by itself would run ahead of them."""

    def __init__(self) -> None:
        super().__init__()
        self.is_fake = False

    def wait(self, changed: threading.Condition, seconds: float | None) -> None:
        """A moment."""
        changed.wait(0.005)
