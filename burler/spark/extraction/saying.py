"""STATE of an extraction: after each commit, spaced where its line is big."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from burler.singer.messages import encode

_SMALL_BYTES = 1024
_TIMES = 4
_SOON_SECONDS = 5.0


class Saying:
    """Hands each state on that says something new.

    Args:
        emit: takes the value of a STATE whose data is committed.
        given: the state that the run began with.
    """

    def __init__(self, emit: Callable[[dict[str, Any]], object], given: Mapping[str, Any]) -> None:
        self._emit = emit
        self._last: bytes | None = None
        self._size = len(encode(dict(given)))
        self._bytes = 0
        self._at = time.monotonic()

    def committed(self, size: int) -> None:
        """So many bytes of rows count now."""
        self._bytes += size

    def say(self, state: Mapping[str, Any], *, now: bool = False) -> None:
        """A state that holds. A big one may be put off until the rows since the last one outweigh it or some seconds
        have passed; ``now``: not this one."""
        due = self._size <= _SMALL_BYTES or self._bytes >= _TIMES * self._size
        if not (now or due or time.monotonic() - self._at >= _SOON_SECONDS):
            return
        encoded = encode(dict(state))
        if encoded == self._last:
            return
        import msgspec

        self._emit(msgspec.json.decode(encoded))
        self._last, self._size, self._bytes, self._at = encoded, len(encoded), 0, time.monotonic()
