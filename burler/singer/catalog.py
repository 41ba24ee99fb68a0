"""The Singer catalog: what a tap can give, and what of it is wanted.

One catalog is a plain dict ``{"streams": [entry, ...]}`` on the wire; ``CatalogEntry`` is the
frozen form of one entry. The legacy ``--properties`` file has the same shape, with ``selected``
inside the schema nodes instead of in the metadata; both are read. What other tools write is read too, see
``burler.singer.foreign``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from burler.errors import CatalogError
from burler.singer import metadata as md
from burler.singer.foreign import adopt_schema_words, read_metadata

_KNOWN = (
    "tap_stream_id",
    "stream",
    "schema",
    "key_properties",
    "replication_key",
    "replication_method",
    "metadata",
)


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One stream of a catalog. ``metadata`` is in map form (see ``burler.singer.metadata``).

    ``extra`` holds the keys that burler does not know or need, as they came (``table_name``, ``row_count``,
    ``custom_metadata``, ...): they are carried along.
    """

    tap_stream_id: str
    stream: str
    schema: dict[str, Any]
    key_properties: tuple[str, ...] = ()
    replication_key: str | None = None
    replication_method: str | None = None
    metadata: md.MetadataMap = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def emitted_name(self) -> str:
        """The name on the stream's messages: the catalog's ``stream_alias`` if it gives one, else ``stream``."""
        alias = self.extra.get("stream_alias")
        return alias if isinstance(alias, str) and alias else self.stream

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
        return {**wire, **self.extra, "schema": self.schema, "metadata": md.to_list(self.metadata)}


@dataclass(frozen=True, slots=True)
class Catalog:
    """All streams, by ``tap_stream_id``, in the order they were declared."""

    entries: dict[str, CatalogEntry]

    def to_wire(self) -> dict[str, Any]:
        """``{"streams": [...]}``."""
        return {"streams": [entry.to_wire() for entry in self.entries.values()]}


def catalog_from_wire(wire: Any, *, source: str = "catalog") -> Catalog:
    """A catalog or a legacy properties file as ``Catalog``; the input is not changed.

    Raises:
        CatalogError: not of the shape ``{"streams": [{"stream" or "tap_stream_id", "schema"}]}``.
    """
    if not isinstance(wire, Mapping) or not isinstance(wire.get("streams"), list):
        raise CatalogError(f'{source}: a catalog is a JSON object {{"streams": [...]}}. Make one: burler discover APP')
    entries: dict[str, CatalogEntry] = {}
    for position, item in enumerate(wire["streams"]):
        try:
            entry = _entry_from_wire(item, f"{source}: streams[{position}]")
        except RecursionError:
            raise CatalogError(f"{source}: streams[{position}]: its schema is nested too deep.") from None
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
    for key in ("tap_stream_id", "stream", "stream_alias"):
        _text(item.get(key), key, place)
    place = f"{place} ('{name}')"
    schema = _schema(item.get("schema"), place)
    compiled = read_metadata(item.get("metadata"), schema, place=place)
    adopt_schema_words(item, schema, compiled)
    root = compiled.get((), {})
    return CatalogEntry(
        tap_stream_id=name,
        stream=item.get("stream") or name,
        schema=dict(schema),
        key_properties=_keys(item, root, place),
        replication_key=_text(root.get("replication-key") or item.get("replication_key"), "replication_key", place)
        or None,
        replication_method=_text(
            root.get("replication-method") or item.get("replication_method"), "replication_method", place
        )
        or None,
        metadata=compiled,
        extra={key: value for key, value in item.items() if key not in _KNOWN},
    )


def _schema(schema: Any, place: str) -> Mapping[str, Any]:
    if schema is None:
        return {}
    if not isinstance(schema, Mapping):
        raise CatalogError(f"{place}: 'schema' must be a JSON object.")
    if not isinstance(schema.get("properties", {}), Mapping):
        raise CatalogError(f"{place}: 'properties' of its schema must be a JSON object.")
    return schema


def _keys(item: Mapping[str, Any], root: Mapping[str, Any], place: str) -> tuple[str, ...]:
    """The key properties: the entry's, else those of a view, else those of a table."""
    view = (root.get("is-view") or item.get("is_view")) and root.get("view-key-properties")
    keys = item.get("key_properties") or view or root.get("table-key-properties") or ()
    for given in (keys, root.get("view-key-properties") or (), root.get("table-key-properties") or ()):
        if not isinstance(given, list | tuple) or not all(isinstance(key, str) for key in given):
            raise CatalogError(f"{place}: the key properties must be a list of field names.")
    return tuple(keys)


def _text(value: Any, what: str, place: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise CatalogError(f"{place}: '{what}' must be text, not {type(value).__name__}.")
