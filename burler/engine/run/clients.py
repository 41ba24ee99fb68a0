"""The client of a tap, made once, and those that it has replaced.

Both making a client and closing one are the author's code, and may take as long as a source that is down: whoever waits
for that holds no lock that anybody else needs.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import Any

from burler.logs import short

logger = logging.getLogger(__name__)


class Clients:
    """Gives the client of now, with its number: how many there were before it.

    Args:
        make: the author's function, called by one thread at a time.
        tap: the tap's name, for the log.
    """

    def __init__(self, make: Callable[[], Any], *, tap: str) -> None:
        self._make = make
        self._tap = tap
        self._lock = threading.Lock()  # never held while code of the author's runs
        self._making = threading.RLock()
        self._made = False
        self._client: Any = None
        self._number = 0
        self._old: list[tuple[int, Any]] = []
        self._held: Counter[int] = Counter()

    def get(self) -> tuple[int, Any]:
        """The client and its number; made, if there is none.

        Raises:
            what the author's function raised.
        """
        while True:
            with self._lock:
                if self._made:
                    return self._number, self._client
                making, number = self._making, self._number
            with making:
                with self._lock:
                    if self._made or self._number != number:
                        continue
                client = self._make()
                with self._lock:
                    if self._number == number:
                        self._client, self._made = client, True
                    else:  # it was renewed meanwhile
                        self._old.append((number, client))

    def numbered(self, number: int) -> tuple[int, Any]:
        """The client with a number, if it is not closed; else the one of now. With its number."""
        with self._lock:
            for other, client in self._old:
                if other == number:
                    return other, client
        return self.get()

    @contextlib.contextmanager
    def held(self, number: int) -> Iterator[None]:
        """While somebody beside the rounds is at the client with this number, it is not closed."""
        with self._lock:
            self._held[number] += 1
        try:
            yield
        finally:
            with self._lock:
                self._held[number] -= 1

    def renew(self, *, only: Collection[int] | None = None) -> bool:
        """The next one who asks gets a new client; ``close_old`` closes the one before. One that is being made just now
        may never come back, so it is given up, too.

        Args:
            only: not where the client of now has none of these numbers.

        Returns:
            whether it was renewed.
        """
        with self._lock:
            if only is not None and (not self._made or self._number not in only):
                return False
            if self._made:
                self._old.append((self._number, self._client))
            self._client, self._made = None, False
            self._number += 1
            self._making = threading.RLock()
            return True

    def close_old(self, *, keep: Collection[int] = ()) -> threading.Thread | None:
        """Close clients that were replaced, but for those with the numbers in ``keep``, which somebody is at: in a
        thread of its own, which is given back. What one raises is no error of the run's."""
        with self._lock:
            kept = {*keep, *(number for number, count in self._held.items() if count > 0)}
            old = [client for number, client in self._old if number not in kept]
            self._old = [(number, client) for number, client in self._old if number in kept]
        if not old:
            return None
        thread = threading.Thread(target=self._close, args=(old,), name="burler-close", daemon=True)
        thread.start()
        return thread

    def _close(self, clients: list[Any]) -> None:
        for client in clients:
            try:
                close_client(client)
            except Exception as error:
                logger.warning("%s: its client raised when it was closed: %s", self._tap, short(error))

    def close(self) -> None:
        """Close the client, if one was made and it can be closed.

        Raises:
            what its ``close`` raises.
        """
        self.close_old()
        with self._lock:
            client = self._client
        close_client(client)


def close_client(client: Any) -> None:
    """Close a client that can be closed."""
    close = getattr(client, "close", None)
    if callable(close):
        close()
