"""Time and chance as the protocols of a lake need them: arguments, so that tests can step them."""

from __future__ import annotations

import contextlib
import datetime as dt
import math
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

LAST_SECONDS = 10.0
"""How long a run that has failed tries each of its last calls."""


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


@dataclass(frozen=True, slots=True)
class Pace:
    """What waits and is timed while a lake's shared files change.

    ``now``: the moment, aware; it is only written down, never compared. ``monotonic``: seconds that only grow.
    ``sleep``: waits so many seconds. ``uniform``: a random number between two, for waits of several writers to differ.
    """

    now: Callable[[], dt.datetime] = _now
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    uniform: Callable[[float, float], float] = random.uniform


_here = threading.local()


@contextlib.contextmanager
def briefly(seconds: float) -> Iterator[None]:
    """Calls of a store that this thread makes meanwhile are tried no longer than that: what comes of them matters
    little."""
    before, _here.seconds = patience_left(), seconds
    try:
        yield
    finally:
        _here.seconds = before


def patience_left() -> float:
    """The longest that a call of this thread may be tried, in seconds; infinite unless ``briefly`` says otherwise."""
    return float(getattr(_here, "seconds", math.inf))
