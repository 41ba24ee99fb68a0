"""What the tests of the patterns share: a stream, a tap around a function, what its STATEs promise."""

from __future__ import annotations

import datetime as dt
from typing import Any

import burler
from burler import StreamRun
from burler.testing import TapRun, bind_stream, run_tap

FIELDS = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "at": {"type": ["null", "string"], "format": "date-time"},
        "day": {"type": ["null", "string"], "format": "date"},
        "code": {"type": ["null", "string"]},
    },
}
NOW = dt.datetime(2024, 5, 10, 12, 30, 15, 999_999, tzinfo=dt.UTC)


def now() -> dt.datetime:
    return NOW


def running(**more: Any) -> StreamRun:
    """A stream as a function gets it, without an engine; manual unless something else is said."""
    with bind_stream(burler.tap("tap-patterns"), "rows", **{"manual": True, "replication_key": "at", **more}) as stream:
        return stream


def saved_by(stream: StreamRun) -> list[Any]:
    """What a function has saved by hand: bookmarks, and None for a plain ``save_bookmark()``."""
    return stream._call.channel.saved


def tap_of(function: Any, *, schema: Any = FIELDS, **options: Any) -> burler.Tap:
    """A tap of one stream, ``rows``, that a function of ``stream`` reads."""
    tap = burler.tap("tap-patterns")

    def rows(stream):
        return function(stream)

    given = {"key_properties": "id", "replication_key": "at", "bookmark_strategy": "manual", **options}
    tap.sync("rows", schema=schema, **{name: value for name, value in given.items() if value is not None})(rows)
    return tap


def ids_before(run: TapRun, position: int) -> set[int]:
    """The ids of the rows that stand before a place among the messages."""
    return {m["record"]["id"] for m in run.messages[:position] if m["type"] == "RECORD"}


def lost_from_any_state(broken: burler.Tap, whole: burler.Tap, wanted: set[int], config: Any = None) -> set[int]:
    """The rows that are lost if a run of ``broken`` is killed behind any of its STATEs, or before the first, and
    ``whole`` goes on from there."""
    run = run_tap(broken, config)
    lost: set[int] = set()
    states = [i for i, m in enumerate(run.messages) if m["type"] == "STATE"]
    for position in [None, *states]:
        state = None if position is None else run.messages[position]["value"]
        rest = run_tap(whole, config, state=state)
        assert not rest.result.errors, rest.result.errors
        before = set() if position is None else ids_before(run, position)
        lost |= wanted - before - ids_before(rest, len(rest.messages))
    return lost
