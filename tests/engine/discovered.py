"""Taps with a discover function, for the tests of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import burler
from burler.testing import discover

INTEGER = {"type": "integer"}
TABLE: dict[str, Any] = {
    "type": "object",
    "properties": {"id": INTEGER, "at": {"type": "string", "format": "date-time"}, "text": {"type": "string"}},
}


def entry(name: str, root: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """An entry of a catalog as a discover function gives it."""
    metadata = [{"breadcrumb": [], "metadata": root}] if root is not None else []
    return {"tap_stream_id": name, "stream": name, "schema": TABLE, "metadata": metadata, **more}


def catalog_of(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"streams": list(entries)}


def tap_of(found: Any, pattern: str = "*", rows: Callable[..., Any] | None = None, **options: Any) -> burler.Tap:
    """A tap that discovers ``found``; every stream gives one row."""
    tap = burler.tap("tap-found")
    tap.discover(found if callable(found) else lambda: found)
    tap.sync(pattern, **options)(rows or (lambda: [{"id": 1, "at": "2024-01-01T00:00:00Z"}]))
    return tap


def streams_of(tap: burler.Tap) -> list[str]:
    return list(discover(tap, {}).entries)
