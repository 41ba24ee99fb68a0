"""What a catalog says of each stream, as far as its messages can be held against it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from burler.errors import BurlerError
from burler.singer.catalog import CatalogEntry, catalog_from_wire
from burler.singer.selection import deselected, stream_selected


@dataclass(frozen=True, slots=True)
class Declared:
    """One stream, by the name of its messages.

    ``tap_stream_id``: its name in states. ``fields``: the selected ones at the top; ``unselected``: those that are not.
    """

    stream: str
    tap_stream_id: str = ""
    replication_method: str | None = None
    replication_key: str | None = None
    key_properties: tuple[str, ...] = ()
    selected: bool = True
    fields: frozenset[str] = frozenset()
    unselected: frozenset[str] = frozenset()

    @property
    def names(self) -> tuple[str, str]:
        """What messages and states may call it."""
        return self.stream, self.tap_stream_id


def declaration_of(declared: Mapping[str, Declared] | None, name: str) -> Declared | None:
    """What a catalog says of a stream, by its messages' name: some write the ``tap_stream_id`` there."""
    declared = declared or {}
    return declared.get(name) or next((one for one in declared.values() if one.tap_stream_id == name), None)


def declared_of(catalog: Any, *, all_selected: bool = False) -> dict[str, Declared]:
    """The streams of a catalog as plain JSON; none where it is no catalog (area C says so).

    Args:
        all_selected: the tap was told to take everything, whatever the catalog says.
    """
    try:
        entries = catalog_from_wire(catalog).entries.values()
    except BurlerError:
        return {}
    found: dict[str, Declared] = {}
    for entry in entries:
        try:
            one = _declared(entry, all_selected)
        except BurlerError:
            continue
        found[one.stream] = one
    return found


def _declared(entry: CatalogEntry, all_selected: bool) -> Declared:
    root: Mapping[str, Any] = entry.metadata.get((), {})
    method = root.get("forced-replication-method") or root.get("replication-method") or entry.replication_method
    key = root.get("replication-key") or entry.replication_key
    valid = root.get("valid-replication-keys")
    if key is None and method == "INCREMENTAL" and isinstance(valid, list) and valid:
        key = valid[0]
    names = frozenset(map(str, entry.schema.get("properties") or {}))
    off: frozenset[str] = frozenset()
    if not all_selected:
        crumbs = deselected(entry.metadata, stream=entry.tap_stream_id)
        off = frozenset(crumb[1] for crumb in crumbs if len(crumb) == 2 and crumb[0] == "properties")
    return Declared(
        stream=entry.emitted_name,
        tap_stream_id=entry.tap_stream_id,
        replication_method=method if isinstance(method, str) else None,
        replication_key=key if isinstance(key, str) else None,
        key_properties=entry.key_properties,
        selected=all_selected or stream_selected(entry.metadata, stream=entry.tap_stream_id),
        fields=names - off,
        unselected=off & names,
    )
