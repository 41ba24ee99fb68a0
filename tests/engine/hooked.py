"""A tap with a post_transform function, for the tests of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import burler
from burler.testing import TapRun

FIELDS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "at": {"type": ["null", "string"], "format": "date-time"},
        "amount": {"type": ["null", "number"]},
        "text": {"type": ["null", "string"]},
        "address": {"type": ["null", "object"], "properties": {"city": {"type": "string"}, "zip": {"type": "string"}}},
    },
}


def tap_of(hook: Callable[..., Any], rows: Any, **options: Any) -> burler.Tap:
    tap = burler.tap("tap-hook")
    given = {"key_properties": "id", "replication_key": "id", "order": "asc", "schema": FIELDS, **options}
    tap.sync("rows", **given)(rows if callable(rows) else lambda: list(rows))
    tap.post_transform("rows")(hook)
    return tap


def ids(*numbers: int) -> list[dict[str, Any]]:
    return [{"id": number} for number in numbers]


def bookmark(run: TapRun) -> Any:
    return run.states[-1].get("bookmarks", {}).get("rows", {}).get("id")
