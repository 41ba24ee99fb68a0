"""STATEs that carry only what has changed since the last one (``state_scope: touched``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burler.singer.messages import Message, State
from burler.singer.state import state_diff
from burler.sinks.base import Sink


class TouchedStates:
    """Stands before the sink that prints: what counts as the last STATE is the last one that went there.

    The first STATE of a run carries everything, so that nothing rests on what somebody else has kept, and null for what
    was in the state that the run was ``given`` and is gone.
    """

    def __init__(self, sink: Sink, given: dict[str, Any] | None = None) -> None:
        self._sink = sink
        self._given = given or {}
        self._last: dict[str, Any] | None = None

    def write(self, message: Message) -> None:
        """Take a message; a STATE shrinks to what has changed."""
        if isinstance(message, State):
            whole = message.whole
            change = _everything(self._given, whole) if self._last is None else state_diff(self._last, whole)
            message, self._last = State(change, whole), whole
        self._sink.write(message)

    def flush(self) -> None:
        """See ``Sink.flush``."""
        self._sink.flush()

    def settle(self) -> None:
        """See ``Sink.settle``."""
        self._sink.settle()

    def tick(self) -> None:
        """See ``Sink.tick``."""
        self._sink.tick()

    def tell_states(self, told: Callable[[dict[str, Any]], None]) -> None:
        """See ``Sink.tell_states``."""
        self._sink.tell_states(told)

    def close(self, *, complete: bool) -> None:
        """See ``Sink.close``."""
        self._sink.close(complete=complete)


def _everything(given: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    """A whole state, with null for what it lacks of the one before it."""
    return _with_nulls(state_diff({}, whole), state_diff(given, whole), levels=4)


def _with_nulls(into: dict[str, Any], change: dict[str, Any], *, levels: int) -> dict[str, Any]:
    """At most so many levels down: top, streams, their keys, partitions. Nulls of an author's own, deeper, are data."""
    for key, value in change.items():
        if value is None:
            into.setdefault(key, None)
        elif isinstance(value, dict) and levels > 1:
            inner = into.setdefault(key, {})
            if isinstance(inner, dict) and (levels != 2 or key == "partitions"):
                _with_nulls(inner, value, levels=levels - 1)
    return into
