"""A tap run into a sink of the test's own; ``burler.testing.run_tap`` runs it into memory."""

from __future__ import annotations

import json
import resource
from typing import Any

from burler import Tap, testing
from burler.singer.messages import Message
from burler.testing import MemorySink


def run_into(tap: Tap, config: dict[str, Any], sink: Any, **options: Any) -> Any:
    """Run a tap into a sink; ``options`` are those of ``run_session``."""
    session, settings = testing.open_session(tap.seal(), config)
    return testing.run_session(session, settings, sink, **options)


class _Counting(MemorySink):
    rows = 0

    def write(self, message: Message) -> None:
        self.rows += getattr(message, "count", 0)


def print_memory(tap: Tap) -> None:
    """Run a tap into nothing: how many rows came, and the most memory that this process has had, as JSON."""
    sink = _Counting()
    assert not run_into(tap, {}, sink).errors
    print(json.dumps({"rows": sink.rows, "kilobytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))
