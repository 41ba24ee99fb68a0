"""A tap with rows of every kind: an increment, full tables with and without keys. Its source is a folder of JSON lines.

SOURCE=folder python tap_batched.py --batch ...
"""

from __future__ import annotations

import json
import os
from decimal import Decimal
from pathlib import Path

import burler

tap = burler.tap("tap-batched")
SUFFIX = os.environ.get("SUFFIX", "")

_TEXT = {"type": ["null", "string"]}
_MOMENT = {"type": ["null", "string"], "format": "date-time"}
_KINDS = {
    "id": {"type": "integer"},
    "big": {"type": ["null", "integer"]},
    "price": {"type": ["null", "number"], "multipleOf": 0.01},
    "ratio": {"type": ["null", "number"]},
    "is_open": {"type": ["null", "boolean"]},
    "text": _TEXT,
    "made_at": _MOMENT,
    "day": {"type": ["null", "string"], "format": "date"},
    "address": {
        "type": ["null", "object"],
        "properties": {
            "city": _TEXT,
            "floor": {"type": ["null", "integer"]},
            "geo": {"type": ["null", "object"], "properties": {"lat": {"type": ["null", "integer"]}}},
        },
    },
    "tags": {"type": ["null", "array"], "items": _TEXT},
    "parts": {"type": ["null", "array"], "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
}
_ORDER = {"id": {"type": "integer"}, "updated_at": {"type": "string", "format": "date-time"}, "note": _TEXT}


def _rows(name: str) -> list[dict]:
    path = Path(os.environ["SOURCE"], f"{name}.jsonl")
    with path.open("rb") as lines:
        return [json.loads(line, parse_float=Decimal) for line in lines]


@tap.sync(
    f"orders{SUFFIX}",
    key_properties="id",
    replication_key="updated_at",
    order="asc",
    bookmark_strategy="every_n(40)",
    schema={"type": "object", "properties": _ORDER},
)
def orders(stream):
    """An increment: rows at or after the bookmark."""
    start = stream.bookmark or ""
    return [row for row in _rows("orders") if row["updated_at"] >= start]


@tap.sync(f"kinds{SUFFIX}", key_properties="id", schema={"type": "object", "properties": _KINDS})
def kinds():
    """A full table."""
    return _rows("kinds")


@tap.sync(f"log{SUFFIX}", schema={"type": "object", "properties": {"at": _MOMENT, "line": _TEXT}})
def log():
    """A full table without keys."""
    return _rows("log")


@tap.sync(
    f"open{SUFFIX}",
    key_properties="id",
    schema={
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "anything": {"type": ["null", "object"]},
            "counts": {"type": ["null", "object"], "additionalProperties": {"type": "integer"}},
        },
    },
)
def open_objects():
    """Objects whose names nobody knows before."""
    return _rows("open")


if __name__ == "__main__":
    tap.cli()
