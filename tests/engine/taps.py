"""Small taps for the tests of the engine, and nothing but them in memory."""

from __future__ import annotations

from typing import Any

import burler

FIELDS = {"type": "object", "properties": {"id": {"type": "integer"}, "at": {"type": "string"}}}
AT = {"replication_key": "at"}
"""Options of ``make`` for a key that knows time."""


def make(**streams: Any) -> burler.Tap:
    """A tap of INCREMENTAL streams by ``id``; each value is the sync function or (function, options)."""
    tap = burler.tap("tap-t")
    for name, given in streams.items():
        fn, options = given if isinstance(given, tuple) else (given, {})
        tap.sync(name, **{"key_properties": "id", "replication_key": "id", "order": "asc", **options})(fn)
        tap.schema(name, FIELDS)
    return tap


def ids(*numbers: int) -> list[dict[str, int]]:
    return [{"id": number} for number in numbers]
