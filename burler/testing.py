"""Run a tap in a test: declare, run, compare messages.

from burler.testing import run_tap

def test_contacts():
    messages = run_tap(tap, config={"base_url": "..."}).messages
    assert [m["record"] for m in messages if m["type"] == "RECORD"] == [...]
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from burler.config.canaries import canaries_in, canary
from burler.context import Kept, StreamRun, bind, unbind
from burler.declare.tap import Tap
from burler.runtime.clock import Clock, FakeClock
from burler.runtime.run import check_limit, prepare, run_session
from burler.runtime.signals import Stopper
from burler.runtime.sync import SyncResult
from burler.sinks.memory import MemorySink
from burler.sinks.open import with_batches
from burler.sinks.touched import TouchedStates

__all__ = ["FakeClock", "TapRun", "bind_stream", "canaries_in", "canary", "run_tap", "without_times"]


@dataclass(frozen=True, slots=True)
class TapRun:
    """What a run gave: every message as a plain dict, and how it ended."""

    messages: list[dict[str, Any]]
    result: SyncResult

    def records(self, stream: str) -> list[dict[str, Any]]:
        """The rows of one stream, in order."""
        return [m["record"] for m in self.messages if m["type"] == "RECORD" and m["stream"] == stream]

    @property
    def states(self) -> list[dict[str, Any]]:
        """The values of all STATEs, in order."""
        return [m["value"] for m in self.messages if m["type"] == "STATE"]

    @property
    def types(self) -> list[str]:
        """The types of all messages, in order: ``["SCHEMA", "RECORD", "STATE"]``."""
        return [m["type"] for m in self.messages]


def run_tap(
    tap: Tap,
    config: dict[str, Any] | None = None,
    *,
    state: dict[str, Any] | None = None,
    catalog: Any = None,
    select: str | None = None,
    stopper: Stopper | None = None,
    limit: int | None = None,
    schemas_only: bool = False,
    clock: Clock | None = None,
) -> TapRun:
    """Run a tap into memory. Errors of streams stand in ``result.errors``, as in a real run.

    Args:
        limit: rows of each stream; then there is no STATE. ``schemas_only``: SCHEMA messages alone.
        clock: a ``FakeClock`` lets the waits of a tail pass at once.

    Raises:
        UsageError: config, catalog, state or the declarations are wrong.
    """
    sink = MemorySink()
    check_limit(limit)
    session, settings = prepare(tap, dict(config or {}))
    touched = settings.state_scope == "touched"
    result = run_session(
        session,
        settings,
        with_batches(TouchedStates(sink, state) if touched else sink, settings, tap=tap.name),
        catalog=catalog,
        state=state,
        select=select,
        stopper=stopper,
        limit=limit,
        schemas_only=schemas_only,
        clock=clock,
    )
    return TapRun(sink.messages, result)


@contextlib.contextmanager
def bind_stream(tap: Tap, stream: str, *, bookmark: Any = None, **more: Any) -> Iterator[StreamRun]:
    """Make ``tap.get_bookmark()`` and the like work in a test that calls a sync function itself.

    Gives the object that the parameter ``stream`` would hold.
    """
    run = StreamRun(tap, stream, bookmark=bookmark, **more)
    run._channel = Kept()
    token = bind(run)
    try:
        yield run
    finally:
        unbind(token)


def without_times(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages less ``time_extracted``, and with versions counted from 1, in STATEs too: what two runs of
    the same input have in common."""
    versions: dict[int, int] = {}

    def plain(node: Any) -> Any:
        if isinstance(node, list):
            return [plain(item) for item in node]
        if not isinstance(node, dict):
            return node
        out = {key: plain(value) for key, value in node.items() if key != "time_extracted"}
        if isinstance(out.get("version"), int):
            out["version"] = versions.setdefault(out["version"], len(versions) + 1)
        return out

    return [message if message["type"] == "SCHEMA" else plain(message) for message in messages]
