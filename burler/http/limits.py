"""How often a source is asked: limits that all threads of a client share."""

from __future__ import annotations

import collections
import threading

from burler.http.waits import Clock


class TooLong(Exception):
    """The source takes no more requests for longer than this one may wait."""

    def __init__(self, seconds: float, why: str) -> None:
        super().__init__(why)
        self.seconds = seconds
        self.why = why


class Limiter:
    """Says when the next request may begin.

    ``per_second`` spaces requests evenly; ``per_minute`` lets them go as they come, but never more than so many in any
    60 seconds. ``pause`` is what the source itself asks for. The lock is held for arithmetic alone, not while waiting.
    """

    def __init__(self, per_second: float | None = None, per_minute: float | None = None) -> None:
        self._lock = threading.Lock()
        self._gap = 1 / per_second if per_second else 0.0
        if per_minute is not None and per_minute < 1:
            self._gap, per_minute = max(self._gap, 60 / per_minute), None
        self._next = float("-inf")
        self._begun: collections.deque[float] | None = (
            collections.deque(maxlen=int(per_minute)) if per_minute is not None else None
        )
        self._paused_until = float("-inf")
        self._why = ""

    def pause(self, seconds: float, why: str, clock: Clock) -> float:
        """No request of any thread begins for so long; a pause that ends later stays. Gives the time of its end, for
        ``wait``."""
        until = clock.monotonic() + seconds
        with self._lock:
            if until > self._paused_until:
                self._paused_until, self._why = until, why
        return until

    def wait(self, clock: Clock, most_seconds: float, passed: float = float("-inf")) -> float:
        """Wait until a request may begin; gives the seconds that the source's own pauses took.

        Args:
            most_seconds: so long it may wait for the source's pauses; the author's own limits are not counted.
            passed: pauses that end up to this time have been waited for already.

        Raises:
            TooLong: the source asks for more.
        """
        paused = 0.0
        begin: float | None = None
        while True:
            now = clock.monotonic()
            with self._lock:
                until, why = self._paused_until, self._why
                free = until <= max(now, passed)
                if free and begin is not None:  # it has waited for its turn, and no pause has come meanwhile
                    return paused
                if free:
                    begin = self._reserve(now)
            if free and begin is not None:
                if begin <= now:
                    return paused
                clock.wait(begin - now)
                continue
            if paused + until - now > most_seconds:
                raise TooLong(until - now, why)
            clock.wait(until - now)
            paused += until - now
            passed = until

    def _reserve(self, now: float) -> float:
        """The time at which the next request may begin, which is taken by that; under the lock."""
        at = max(now, self._next)
        if self._begun is not None and len(self._begun) == self._begun.maxlen:
            at = max(at, self._begun[0] + 60)
        self._next = at + self._gap
        if self._begun is not None:
            self._begun.append(at)
        return at
