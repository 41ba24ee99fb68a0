"""Catalogs of any tap, changed: with less selected, and in the form of ``--properties``. What is not understood in them
stays as it is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from burler.singer.metadata import AUTOMATIC, AVAILABLE, UNSUPPORTED


def names_of(catalog: Any, *, automatic: bool = False) -> set[str]:
    """The names that messages of a catalog's streams may bear; ``automatic``: of those that can't be deselected."""
    found: set[str] = set()
    for item in _items(catalog):
        if not automatic or _root(item).get("inclusion") == AUTOMATIC:
            found |= {
                item[key] for key in ("stream", "tap_stream_id", "stream_alias") if isinstance(item.get(key), str)
            }
    return found


def nothing_selected(catalog: Any) -> Any:
    """A copy of a catalog in which no stream is wanted."""
    changed = json.loads(json.dumps(catalog))
    for item in _items(changed):
        listed = item.get("metadata")
        if not isinstance(listed, list):
            listed = item["metadata"] = []
        if not any(isinstance(one, dict) and one.get("breadcrumb") in ([], "") for one in listed):
            listed.insert(0, {"breadcrumb": [], "metadata": {}})
        _root(item)["selected"] = False
        for holder in (item, item.get("schema")):
            if isinstance(holder, dict) and "selected" in holder:
                holder["selected"] = False
    return changed


def legacy(catalog: Any) -> Any:
    """A copy of a catalog as ``--properties`` files have it: ``selected`` stands in the schemas, too."""
    changed = json.loads(json.dumps(catalog))
    for item in _items(changed):
        schema = item.get("schema")
        if not isinstance(schema, dict):
            continue
        schema["selected"] = _selects({"selected": item.get("selected"), **_root(item)}, default=False)
        fields = _fields(item)
        properties = schema.get("properties")
        for name, node in properties.items() if isinstance(properties, dict) else ():
            if isinstance(node, dict):
                node["selected"] = _selects(fields.get(name, {}), default=True)
    return changed


def _selects(held: Mapping[str, Any], *, default: bool) -> bool:
    """Whether metadata selects what it belongs to."""
    if held.get("inclusion") in (AUTOMATIC, UNSUPPORTED):
        return bool(held["inclusion"] == AUTOMATIC)
    chosen = next((held[key] for key in ("selected", "selected-by-default") if held.get(key) is not None), default)
    return chosen in (True, "true")


def _items(catalog: Any) -> list[dict[str, Any]]:
    streams = catalog.get("streams") if isinstance(catalog, dict) else None
    return [one for one in streams if isinstance(one, dict)] if isinstance(streams, list) else []


def _root(item: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of a stream as a whole."""
    listed = item.get("metadata")
    for one in listed if isinstance(listed, list) else ():
        if isinstance(one, dict) and one.get("breadcrumb") in ([], "") and isinstance(one.get("metadata"), dict):
            held: dict[str, Any] = one["metadata"]
            return held
    return {}


def fewer_fields(catalog: Any) -> tuple[Any, dict[str, list[str]]]:
    """A copy of a catalog in which each stream has but its automatic fields, and those fields that were deselected, by
    the stream's name on messages. Where none is automatic, one stays. Keys stay in any case."""
    changed, off = json.loads(json.dumps(catalog)), {}
    for item in _items(changed):
        root = _root(item)
        kept: set[Any] = set()
        for holder, keys in ((item, ("key_properties", "replication_key")), (root, _KEYS)):
            for key in keys:
                value = holder.get(key)
                kept |= {one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)}
        fields = _fields(item)
        on = [name for name, held in fields.items() if _selects(held, default=True)]
        free = [name for name in on if fields[name].get("inclusion") == AVAILABLE and name not in kept]
        if len(free) == len(on):
            free = free[1:]
        for name in free:
            fields[name]["selected"] = False
        stream = item.get("stream_alias") or item.get("stream") or item.get("tap_stream_id")
        if free and isinstance(stream, str):
            off[stream] = free
    return changed, off


_KEYS = ("table-key-properties", "view-key-properties", "valid-replication-keys", "replication-key")


def _fields(item: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The metadata of a stream's fields at the top."""
    listed = item.get("metadata")
    return {
        str(one["breadcrumb"][1]): one["metadata"]
        for one in (listed if isinstance(listed, list) else ())
        if isinstance(one, dict)
        and isinstance(one.get("breadcrumb"), list)
        and len(one["breadcrumb"]) == 2
        and isinstance(one.get("metadata"), dict)
    }
