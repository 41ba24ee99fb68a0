"""Clocks for tests, beside ``burler.testing.FakeClock``, and the one way to wait for what others do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from burler.testing import FakeClock
from support.internals import clocks

_LONGEST_SECONDS = 60
"""Only a test that fails waits so long."""


class MovedClock(FakeClock):
    """A clock that only the test moves, with ``advance``: whoever waits looks at it again a moment later. For what
    goes on in threads beside each other, where a ``FakeClock`` that moves by itself would run ahead of them."""

    ticking = clocks.Clock.ticking

    @property
    def beside(self) -> MovedClock:
        """All go by this one."""
        return self

    def wait(self, changed: threading.Condition, seconds: float | None) -> None:
        """A moment."""
        changed.wait(0.005)


def until(condition: Callable[[], Any], what: str = "it is so", said: Callable[[], str] = str) -> Any:
    """Wait until something is so, and give it; a test that waits in vain says what for, and what was said meanwhile."""
    limit = time.monotonic() + _LONGEST_SECONDS
    while not (found := condition()):
        assert time.monotonic() < limit, f"waited in vain until {what}\n{said()}"
        time.sleep(0.01)
    return found
