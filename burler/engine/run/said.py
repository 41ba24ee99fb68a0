"""What the STATEs of a run have said of streams, in order: so that a file can confirm it much later."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from typing import Any

import msgspec

from burler.singer import state as st

Value = tuple[Any, dict[str, Any]]
"""A bookmark and a position (``stream_state``)."""

_MOST = 100_000
_LEAST_EACH = 16


def values_of(state: Mapping[str, Any], stream: str, key: str | None) -> dict[str | None, Value]:
    """What a state says of a stream (under None) and of each of its partitions; ``key``: where bookmarks stand."""
    found: dict[str | None, Any] = {None: st.entry_of(state, stream, None)}
    found.update(st.partitions_of(state, stream))
    return {
        partition: (entry.get(key) if key else None, entry.get(st.POSITION) or {})
        for partition, entry in found.items()
        if isinstance(entry, dict)
    }


class Said:
    """Digests only, since positions can be big. Of many, the oldest are forgotten.

    One thread may add while another one confirms.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._last: dict[str, dict[str | None, Value]] = {}
        self._digests: dict[tuple[str, str | None], dict[bytes, None]] = {}

    def add(self, stream: str, now: dict[str | None, Value], before: dict[str | None, Value]) -> None:
        """A STATE that says this is out. ``before``: what was so already when the run began."""
        last = self._last.get(stream, before)
        self._last[stream] = now
        with self._lock:
            for partition, value in now.items():
                if value != last.get(partition, (None, {})):
                    own = self._digests.setdefault((stream, partition), {})
                    digest = _digest(value)
                    own.pop(digest, None)
                    own[digest] = None  # said again: it counts as the newest
                    while len(own) > max(_LEAST_EACH, self._most // len(self._digests)):
                        del own[next(iter(own))]

    def has(self, stream: str, partition: str | None, value: Value) -> bool:
        """Whether this was said, and nothing after it was confirmed."""
        with self._lock:
            return _digest(value) in self._digests.get((stream, partition), {})

    def confirmed(self, stream: str, partition: str | None, value: Value) -> None:
        """This need not be known any more, nor what was said before it."""
        digest = _digest(value)
        with self._lock:
            own = self._digests.get((stream, partition), {})
            if digest in own:
                for one in list(own):
                    del own[one]
                    if one == digest:
                        break

    def waits(self, stream: str) -> bool:
        """Whether there is something of a stream that was not confirmed."""
        with self._lock:
            return any(own for (name, _partition), own in self._digests.items() if name == stream)


def _digest(value: Value) -> bytes:
    return hashlib.blake2b(msgspec.json.encode(_plain(value), order="sorted"), digest_size=16).digest()


def _plain(value: Any) -> Any:
    """With whole floats as integers: what others write of a state may hold 5 for 5.0."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value
