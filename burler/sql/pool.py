"""Connections that wait to be used again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from burler.errors import SqlError
from burler.sql.postgres_links import Link

L = TypeVar("L", bound=Link)

_IDLE_SECONDS = 1.0  # one that has waited longer is asked first whether it still lives


class Pool(Generic[L]):
    """Links of one kind; any thread may take one and give it back.

    Args:
        make: opens a new one.
    """

    def __init__(self, make: Callable[[], L], monotonic: Callable[[], float]) -> None:
        self._make = make
        self._monotonic = monotonic
        self._idle: list[tuple[L, float]] = []
        self._lock = threading.Lock()
        self._closed = False

    def take(self) -> L:
        """A link that lives, as far as one can tell.

        Raises:
            SqlError: the pool was closed.
        """
        while True:
            with self._lock:
                if self._closed:
                    raise SqlError("the database was closed.")
                link, since = self._idle.pop() if self._idle else (None, 0.0)
            if link is None:
                return self._make()
            if self._monotonic() - since < _IDLE_SECONDS or _lives(link):
                return link
            link.close()

    def give_back(self, link: L, *, whole: bool) -> None:
        """``whole``: nothing went wrong with it; else it is closed."""
        with self._lock:
            keep = whole and not self._closed
            if keep:
                self._idle.append((link, self._monotonic()))
        if not keep:
            link.close()

    def close(self) -> None:
        """Close all that wait; those in use are closed when they are given back."""
        with self._lock:
            self._closed = True
        self.empty()

    def empty(self) -> None:
        """Close all that wait."""
        with self._lock:
            idle, self._idle = self._idle, []
        for link, _since in idle:
            link.close()


def _lives(link: Link) -> bool:
    try:
        link.ask("select 1")
        link.end()
    except Exception:
        return False
    return True
