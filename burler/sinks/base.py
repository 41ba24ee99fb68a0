"""What a sink is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from burler.singer.messages import Message


class Sink(Protocol):
    """Takes messages in sequence. Before it hands a STATE on, everything before it must be durable."""

    def write(self, message: Message) -> None:
        """Take one message. A ``Records`` page's buffer is free to be reused once this returns."""

    def flush(self) -> None:
        """Hand on what is buffered, where that needs no new file."""

    def settle(self) -> None:
        """Make all that was written durable now and hand the STATEs of it on, also where a file is closed for that."""

    def tick(self) -> None:
        """Called about once a second from the engine's timer, under its lock: do what is due by age."""

    def tell_states(self, told: Callable[[dict[str, Any]], None]) -> None:
        """Call ``told`` with the whole state of each STATE whose line has been written."""

    def close(self, *, complete: bool) -> None:
        """The end. ``complete`` is False where an error ends the run: what can be kept is kept."""
