"""The two descriptive files of a lake: ``catalogue.json`` of each tap, ``singerlake.json`` of all (specs 1).

Neither is needed to read the lake, and both can be edited by hand: what burler does not know in them
it leaves as it is. On disk the Singerlake spelling is used; in code it is a catalog.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

import msgspec

from burler.errors import LakeError, UsageError
from burler.lake import layout
from burler.lake.canonical import CANONICAL_FORM
from burler.lake.store import Store
from burler.lake.swap import swap
from burler.singer.messages import Schema, encode

LAKE_FORMAT = 1
SCHEMA_HASH = {"function": "farmhash-fingerprint64", "canonical": CANONICAL_FORM, "encoding": "base58"}
_TAP_NOTES = ("owner", "description", "documentation", "status")

Document = dict[str, Any]


def read_catalogue(store: Store, tap_id: str) -> Document | None:
    """A tap's catalog ``{"streams": [...]}``; None when there is none. ``catalog.json`` is read as well.

    Raises:
        LakeError: it is no JSON object with a list of streams.
    """
    for path in (layout.catalogue_path(tap_id), f"{layout.tap_folder(tap_id)}/catalog.json"):
        blob = store.read(path)
        if blob is not None:
            return _catalog(blob.data, store.locate(path))
    return None


def read_singerlake(store: Store) -> Document | None:
    """``singerlake.json``: lake id, format, taps and their notes; None when there is none."""
    blob = store.read(layout.singerlake_path())
    return None if blob is None else _parse(blob.data, store.locate(layout.singerlake_path()))


def describe_streams(store: Store, tap_id: str, schemas: Iterable[Schema]) -> None:
    """Put the newest schema of each stream into the tap's catalog; other entries stay."""
    wanted = list(schemas)
    path = layout.catalogue_path(tap_id)

    def change(document: Document | None) -> Document:
        catalog = document or {"streams": []}
        entries: dict[Any, Document] = {entry.get("tap_stream_id"): entry for entry in catalog["streams"]}
        for schema in wanted:
            entries[schema.stream] = _entry(schema, entries.get(schema.stream, {}))
        return {**catalog, "streams": list(entries.values())}

    _change(store, path, change, _catalog)


def describe_lake(store: Store, tap_id: str) -> None:
    """Make ``singerlake.json``, or add the tap to it.

    Raises:
        UsageError: the lake names its schema folders by other rules than this burler writes.
    """
    path = layout.singerlake_path()

    def change(document: Document | None) -> Document:
        lake: Document = {"lake_id": secrets.token_hex(16)} if document is None else document
        if lake.setdefault("format", LAKE_FORMAT) != LAKE_FORMAT:
            raise UsageError(f"{store.locate(path)} has format {lake['format']}. Upgrade burler to write there.")
        if lake.setdefault("schema_hash", SCHEMA_HASH) != SCHEMA_HASH:
            raise UsageError(
                f"{store.locate(path)} asks for the schema hash {lake['schema_hash']}; "
                f"this burler writes {SCHEMA_HASH}. Write to another lake."
            )
        taps = lake.setdefault("taps", {})
        taps[tap_id] = {**dict.fromkeys(_TAP_NOTES), **(taps.get(tap_id) or {})}
        return lake

    _change(store, path, change, _parse)


def _entry(schema: Schema, known: Document) -> Document:
    """One entry of a catalog; what somebody wrote beside our keys stays."""
    keys = list(schema.key_properties)
    root: Document = {"selected": True, "table-key-properties": keys}
    if schema.bookmark_properties:
        root["valid-replication-keys"] = list(schema.bookmark_properties)
    metadata: list[Document] = [
        item for item in known.get("metadata") or () if isinstance(item, dict) and item.get("breadcrumb")
    ]
    return {
        **known,
        "tap_stream_id": schema.stream,
        "stream": schema.stream,
        "key_properties": keys,
        "schema": schema.schema,
        "metadata": [{"breadcrumb": [], "metadata": root}, *metadata],
    }


def _change(
    store: Store,
    path: str,
    change: Callable[[Document | None], Document],
    parse: Callable[[bytes, str], Document],
) -> None:
    """Compare-and-swap of a JSON file; not written when nothing changes."""

    def changed(data: bytes | None, _again: bool) -> bytes | None:
        document = None if data is None else parse(data, store.locate(path))
        new = msgspec.json.format(encode(change(document)), indent=1) + b"\n"
        return None if new == data else new

    swap(store, path, changed)


def _parse(data: bytes, place: str) -> Document:
    try:
        document = json.loads(data, parse_float=Decimal)  # keeps the digits of numbers it does not understand
    except (ValueError, RecursionError) as error:
        raise LakeError(f"{place} is no valid JSON: {error}. Repair it, or move it away: it can be spared.") from None
    if not isinstance(document, dict):
        raise LakeError(f"{place} is no JSON object. Repair it, or move it away: it can be spared.")
    return document


def _catalog(data: bytes, place: str) -> Document:
    document = _parse(data, place)
    streams = document.get("streams")
    if not isinstance(streams, list) or not all(isinstance(entry, dict) for entry in streams):
        raise LakeError(f"{place} is no Singer catalog. Repair it, or move it away: it can be spared.")
    return document
