"""Whose a spool is: one process has it, and one that is about to end is waited for."""

from __future__ import annotations

import time

from burler.errors import UsageError
from burler.storage.base import Hold, Store

_WAIT_SECONDS = 0.1


def held(store: Store, name: str, *, seconds: float, otherwise: str) -> Hold | None:
    """A sign that this process has the spool; None where the store knows no such signs.

    Args:
        name: the sign's own: a query may have a spool that another process fills.
        seconds: how long the process that has it is waited for.
        otherwise: what is said of the spool where that one goes on.

    Raises:
        UsageError: it goes on.
    """
    end = time.monotonic() + seconds
    while True:
        hold = store.hold(name)
        if hold is None or hold.taken:
            return hold
        if time.monotonic() > end:
            raise UsageError(
                f'the spool {store.url} {otherwise}. Give each query a folder of its own: option("spool", ...).'
            )
        time.sleep(_WAIT_SECONDS)
