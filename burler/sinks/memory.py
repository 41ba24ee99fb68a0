"""Messages as plain dicts in a list: for tests."""

from __future__ import annotations

import copy
from typing import Any

from burler.singer.messages import ArrowPage, Message, Records, State, parse_line
from burler.sinks.base import Sink


class MemorySink(Sink):
    """Keeps every message in ``messages``, one dict each, as they would stand on the wire."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.closed = False

    def write(self, message: Message) -> None:
        """Keep a message; a page becomes its RECORDs."""
        if isinstance(message, Records):
            self.messages += [parse_line(line) for line in bytes(message.lines).splitlines()]
        else:
            assert not isinstance(message, ArrowPage)  # nobody makes one for this sink
            self.messages.append(copy.deepcopy(message.to_wire()))
        if isinstance(message, State) and self._told is not None:
            self._told(message.whole)

    def close(self, *, complete: bool) -> None:
        """Note the end."""
        self.closed = True
