"""The catalog of a lake, as ``burler lake read --discover`` prints it: a plain Singer catalog."""

from __future__ import annotations

import copy
import logging
from typing import Any

from burler.errors import CatalogError, LakeError, UsageError
from burler.lake.catalogue import read_catalogue
from burler.lake.head import Head
from burler.lake.replay.plan import Asked, OnBroken, ReplayStream, load_all
from burler.singer import metadata as md
from burler.singer.catalog import Catalog, CatalogEntry, catalog_from_wire
from burler.storage.base import Store

_log = logging.getLogger("burler.lake")


def discover(store: Store, asked: Asked, *, on_broken: OnBroken | None = None) -> Catalog:
    """Every stream that the options name, with its newest schema among those that they name.

    What stands in a tap's ``catalogue.json`` beside the schema is kept: metadata, further keys. Streams are selected
    unless it says otherwise.

    Args:
        on_broken: see ``choose``; also told of streams of which the file that a schema is read from is broken.

    Raises:
        UsageError: what was asked for is not there. LakeError: a manifest, or the file that a schema is read from, is
            broken.
    """
    entries: dict[str, CatalogEntry] = {}
    known: dict[str, dict[str, CatalogEntry]] = {}
    for stream in load_all(store, asked, on_broken=on_broken):
        try:
            head = stream.newest(store)
        except (LakeError, UsageError) as error:
            if on_broken is None:
                raise
            on_broken(stream.id, error)
            continue
        if head is None:
            continue
        tap_id = stream.snapshot.tap_id
        if tap_id not in known:
            known[tap_id] = _catalogue(store, tap_id)
        entries[stream.id] = _entry(stream, head, known[tap_id].get(head.message.stream))
    return Catalog(entries)


def _entry(stream: ReplayStream, head: Head, noted: CatalogEntry | None) -> CatalogEntry:
    message = head.message
    compiled = md.standard_metadata(
        message.schema,
        key_properties=message.key_properties,
        replication_method=None,
        replication_key=message.bookmark_properties[0] if len(message.bookmark_properties) == 1 else None,
    )
    compiled[()]["selected"] = True
    for crumb, values in (noted.metadata if noted else {}).items():
        if crumb in compiled:
            compiled[crumb] = {**copy.deepcopy(values), **compiled[crumb]} if crumb else {**compiled[()], **values}
    for name in message.bookmark_properties:
        compiled.get(("properties", name), {})["inclusion"] = md.AUTOMATIC
    compiled[()]["table-key-properties"] = list(message.key_properties)
    return CatalogEntry(
        tap_stream_id=stream.id,
        stream=message.stream,
        schema=message.schema,
        key_properties=message.key_properties,
        metadata=compiled,
        extra=dict(noted.extra) if noted else {},
    )


def _catalogue(store: Store, tap_id: str) -> dict[str, CatalogEntry]:
    """A tap's ``catalogue.json`` by stream; it can be spared, so a broken one is only told of."""
    try:
        found: Any = read_catalogue(store, tap_id)
        return {} if found is None else {one.stream: one for one in catalog_from_wire(found).entries.values()}
    except (LakeError, CatalogError) as error:
        _log.warning("%s", error)
        return {}
