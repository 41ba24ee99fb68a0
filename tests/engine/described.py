"""Taps with metadata of their own, for the tests of it."""

from __future__ import annotations

from typing import Any

import burler
from burler.singer.catalog import CatalogEntry
from burler.testing import discover, run_tap

INTEGER, TEXT = {"type": "integer"}, {"type": "string"}
GEO = {"type": "object", "properties": {"lat": TEXT}}
FIELDS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": INTEGER,
        "at": {"type": "string", "format": "date-time"},
        "address": {
            "type": "object",
            "properties": {"street": TEXT, "geo": {"type": "object", "properties": {"lat": TEXT}}},
        },
        "tags": {"type": "array", "items": {"type": "object", "properties": {"name": TEXT}}},
    },
}
CRUMBS = {
    "": (),
    "id": ("properties", "id"),
    "at": ("properties", "at"),
    "address": ("properties", "address"),
    "address.street": ("properties", "address", "properties", "street"),
    "address.geo": ("properties", "address", "properties", "geo"),
    "address.geo.lat": ("properties", "address", "properties", "geo", "properties", "lat"),
    "tags": ("properties", "tags"),
    "tags.name": ("properties", "tags", "items", "properties", "name"),
}


def tap_of(fn: Any = None, **options: Any) -> burler.Tap:
    """A tap of one stream; ``fn`` is its metadata function, or a mapping."""
    tap = burler.tap("tap-meta")
    given = {"key_properties": "id", "schema": FIELDS, **options}
    tap.sync("rows", **given)(lambda: [{"id": 1, "at": "2024-01-01T00:00:00Z"}])
    if callable(fn):
        tap.metadata("rows")(fn)
    elif fn is not None:
        tap.metadata("rows", fn)
    return tap


def entry_of(tap: burler.Tap, stream: str = "rows") -> CatalogEntry:
    return discover(tap, {}).entries[stream]


def written(tap: burler.Tap, path: str = "") -> dict[str, Any]:
    """The metadata at a dotted path."""
    return entry_of(tap).metadata[CRUMBS[path]]


def schema_of(tap: burler.Tap, **more: Any) -> dict[str, Any]:
    return run_tap(tap, **more).messages[0]
