"""What the source of the storm over batch files holds: rows that can be told from each other and from torn ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

FIELDS = {
    "part": {"type": ["null", "string"]},
    "id": {"type": "integer"},
    "text": {"type": "string"},
    "note": {"type": ["null", "string"]},
    "price": {"type": ["null", "number"], "multipleOf": 0.01},
}
SCHEMA = {"type": "object", "properties": FIELDS}
NOTES = (None, "a,b", '"quoted"\r\n', "\u00fc\u4e2d\U0001f600\u2028", "'\t\\", "null")


def row(place: str, n: int, size: int) -> dict[str, Any]:
    """Row ``n`` of a place, of about ``size`` bytes."""
    made: dict[str, Any] = {
        "id": n,
        "text": f"{place}{n:09}" * max(1, size // 10),
        "note": NOTES[n % len(NOTES)],
        "price": Decimal(n) / 100 if n % 3 else None,
    }
    _stream, _, part = place.partition("-")
    return {"part": part, **made} if part else made


def rows(place: str, first: int, count: int, size: int) -> Iterator[dict[str, Any]]:
    """From ``first`` on, to the end of the place."""
    return (row(place, n, size) for n in range(first, count))


def place_of(stream: str, found: Mapping[str, Any]) -> str:
    """Where a row that was read belongs: a stream, or a partition of one."""
    return f"{stream}-{found['part']}" if found.get("part") else stream


def is_as_it_was(stream: str, found: Mapping[str, Any], size: int) -> bool:
    """Whether a row that was read is what the source holds; in columns an absent field is null."""
    wanted = row(place_of(stream, found), int(found["id"]), size)
    return {name: found.get(name) for name in FIELDS} == {name: wanted.get(name) for name in FIELDS}
