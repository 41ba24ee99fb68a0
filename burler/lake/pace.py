"""Time and chance as the protocols of a lake need them: arguments, so that tests can step them."""

from __future__ import annotations

import datetime as dt
import random
import time
from collections.abc import Callable
from dataclasses import dataclass


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
