"""Time, as an argument: a run that never ends is tested with a clock that a test moves."""

from __future__ import annotations

import datetime as dt
import threading
import time


class Clock:
    """The machine's own clocks: the time of day, and one that nobody sets back (monotonic timers).

    ``is_fake``: nothing happens beside whoever waits, so he looks himself at what is due.
    """

    is_fake = False

    def now(self) -> dt.datetime:
        """The time of day, in UTC."""
        return dt.datetime.now(dt.UTC)

    def monotonic(self) -> float:
        """Seconds of a clock that never goes back and stands still with the machine."""
        return time.monotonic()

    def wait(self, changed: threading.Condition, seconds: float | None) -> None:
        """Wait until somebody notifies, or so many seconds have passed; None: no limit. The condition is held."""
        changed.wait(seconds)


class FakeClock(Clock):
    """A clock that moves when somebody waits for it, and then at once: a day passes in seconds.

    Args:
        start: the time of day it begins at; with a zone.
    """

    def __init__(self, start: dt.datetime = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)) -> None:
        self.is_fake = True
        self._start = start
        self._seconds = 0.0
        self.waits: list[float] = []
        """How long each wait was, in seconds."""

    def now(self) -> dt.datetime:
        """The time of day."""
        return self._start + dt.timedelta(seconds=self._seconds)

    def monotonic(self) -> float:
        """Seconds since it began."""
        return self._seconds

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._seconds += seconds

    def wait(self, changed: threading.Condition, seconds: float | None) -> None:
        """Time passes at once. Without a limit there is nothing to wait for: nobody else moves this clock.

        Raises:
            RuntimeError: no limit.
        """
        if seconds is None:
            raise RuntimeError("a FakeClock can't wait without a limit: nothing would ever happen")
        self.waits.append(seconds)
        self._seconds += seconds
