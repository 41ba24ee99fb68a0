"""Waiting for something that somebody else makes: asked again and again, less and less often, for so long."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from burler.errors import DeclarationError, FileError
from burler.http.waits import Clock


@dataclass(frozen=True, slots=True)
class Polling:
    """How to wait for a job.

    Attributes:
        poll_seconds: before the second look; the first one is at once.
        backoff: each wait is so many times as long as the one before.
        longest_poll_seconds: no wait is longer.
        limit_seconds: from the first look on; then it is an error.
        sleep, monotonic: the clock, in seconds.
    """

    poll_seconds: float
    backoff: float
    longest_poll_seconds: float
    limit_seconds: float
    sleep: Callable[[float], Any]
    monotonic: Callable[[], float]

    def __post_init__(self) -> None:
        for name in ("poll_seconds", "longest_poll_seconds", "limit_seconds"):
            if not getattr(self, name) > 0:
                raise DeclarationError(f"burler.files.export: {name}={getattr(self, name)!r}; it is more than 0.")
        if not self.backoff >= 1:
            raise DeclarationError(f"burler.files.export: backoff={self.backoff!r}; it is 1 or more.")

    def until(self, ready: Callable[[], Any], what: str) -> Any:
        """What ``ready`` gives, once it is not None.

        Raises:
            TooLong: it is None for longer than ``limit_seconds``. And whatever ``ready`` raises.
        """
        begun, wait, looks = self.monotonic(), self.poll_seconds, 0
        while True:
            found = ready()
            looks += 1
            if found is not None:
                return found
            left = self.limit_seconds - (self.monotonic() - begun)
            if left <= 0:
                times = "once" if looks == 1 else f"{looks} times"
                raise TooLong(
                    f"{what} was not ready after {self.monotonic() - begun:,.0f} seconds; it was looked at {times}.\n"
                    "  Ask for less at a time, or raise limit_seconds."
                )
            Clock(self.sleep, time.time, self.monotonic).wait(min(wait, left))
            wait = min(wait * self.backoff, self.longest_poll_seconds)


class TooLong(FileError):
    """A job was not ready in time."""
