"""The Singer catalog: what a tap can give, and what of it is wanted.

One catalog is a plain dict ``{"streams": [entry, ...]}`` on the wire; ``CatalogEntry`` is the
frozen form of one entry. The legacy ``--properties`` file has the same shape, with ``selected``
inside the schema nodes instead of in the metadata; both are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from burler.errors import CatalogError
from burler.singer import metadata as md


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One stream of a catalog. ``metadata`` is in map form (see ``burler.singer.metadata``)."""

    tap_stream_id: str
    stream: str
    schema: dict[str, Any]
    key_properties: tuple[str, ...] = ()
    replication_key: str | None = None
    replication_method: str | None = None
    metadata: md.MetadataMap = field(default_factory=dict)

    def to_wire(self) -> dict[str, Any]:
        """The entry as a plain dict, in the order people read it."""
        wire: dict[str, Any] = {
            "tap_stream_id": self.tap_stream_id,
            "stream": self.stream,
            "key_properties": list(self.key_properties),
        }
        if self.replication_key is not None:
            wire["replication_key"] = self.replication_key
        if self.replication_method is not None:
            wire["replication_method"] = self.replication_method
        return {**wire, "schema": self.schema, "metadata": md.to_list(self.metadata)}


@dataclass(frozen=True, slots=True)
class Catalog:
    """All streams, by ``tap_stream_id``, in the order they were declared."""

    entries: dict[str, CatalogEntry]

    def to_wire(self) -> dict[str, Any]:
        """``{"streams": [...]}``."""
        return {"streams": [entry.to_wire() for entry in self.entries.values()]}


def catalog_from_wire(wire: Any, *, source: str = "catalog") -> Catalog:
    """A catalog or a legacy properties file as ``Catalog``.

    Raises:
        CatalogError: not of the shape ``{"streams": [{"stream" or "tap_stream_id", "schema"}]}``.
    """
    if not isinstance(wire, Mapping) or not isinstance(wire.get("streams"), list):
        raise CatalogError(f'{source}: a catalog is a JSON object {{"streams": [...]}}. Make one: burler discover APP')
    entries: dict[str, CatalogEntry] = {}
    for position, item in enumerate(wire["streams"]):
        entry = _entry_from_wire(item, f"{source}: streams[{position}]")
        if entry.tap_stream_id in entries:
            raise CatalogError(
                f"{source}: stream '{entry.tap_stream_id}' is listed twice; keep one of the two entries."
            )
        entries[entry.tap_stream_id] = entry
    return Catalog(entries)


def _entry_from_wire(item: Any, place: str) -> CatalogEntry:
    if not isinstance(item, Mapping):
        raise CatalogError(f"{place}: a JSON object was expected.")
    name = item.get("tap_stream_id") or item.get("stream")
    if not name:
        raise CatalogError(f"{place}: has neither 'tap_stream_id' nor 'stream'.")
    for key in ("tap_stream_id", "stream"):
        _text(item.get(key), key, place)
    place = f"{place} ('{name}')"
    schema = item.get("schema")
    if schema is None:
        schema = {}
    if not isinstance(schema, Mapping):
        raise CatalogError(f"{place}: 'schema' must be a JSON object.")
    if not isinstance(schema.get("properties", {}), Mapping):
        raise CatalogError(f"{place}: 'properties' of its schema must be a JSON object.")
    try:
        compiled = md.to_map(item.get("metadata") or [])
    except (KeyError, TypeError, ValueError):
        raise CatalogError(
            f'{place}: \'metadata\' must be a list of {{"breadcrumb": [...], "metadata": {{...}}}}.'
        ) from None
    root = compiled.get((), {})
    keys = item.get("key_properties") or root.get("table-key-properties") or ()
    if not isinstance(keys, list | tuple) or not all(isinstance(key, str) for key in keys):
        raise CatalogError(f"{place}: the key properties must be a list of field names.")
    _adopt_legacy_selection(item, schema, compiled)
    return CatalogEntry(
        tap_stream_id=name,
        stream=item.get("stream") or name,
        schema=dict(schema),
        key_properties=tuple(keys),
        replication_key=_text(root.get("replication-key") or item.get("replication_key"), "replication_key", place),
        replication_method=_text(
            root.get("replication-method") or item.get("replication_method"), "replication_method", place
        ),
        metadata=compiled,
    )


def _text(value: Any, what: str, place: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise CatalogError(f"{place}: '{what}' must be text, not {type(value).__name__}.")


def _adopt_legacy_selection(item: Mapping[str, Any], schema: Mapping[str, Any], compiled: md.MetadataMap) -> None:
    """Take what the entry or the schema's nodes say on selection (``--properties``) where metadata says nothing."""
    for crumb, holder in [((), item), ((), schema), *md.fields(schema)]:
        for key in ("selected", "inclusion"):
            if isinstance(holder, Mapping) and holder.get(key) is not None:
                compiled.setdefault(crumb, {}).setdefault(key, holder[key])
