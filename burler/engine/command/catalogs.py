"""Catalogs of any tap, changed: with all selected or less, and in the form of ``--properties``.

Taps fail over keys that vanish from their own catalog: nothing but the selection is changed. It is written in both
ways, as metadata, and as ``selected`` in the schema, which taps of the first years look for. All functions give copies;
what is not understood in a catalog stays as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from burler.singer.metadata import AUTOMATIC, AVAILABLE, UNSUPPORTED, plain_crumb

_NAMES = ("stream", "tap_stream_id", "stream_alias")
_KEYS = ("table-key-properties", "view-key-properties", "valid-replication-keys", "replication-key")


def names_of(catalog: Any, *, automatic: bool = False) -> set[str]:
    """The names that messages of a catalog's streams may bear; ``automatic``: of those that can't be deselected."""
    found: set[str] = set()
    for item in _items(catalog):
        if not automatic or _root(item).get("inclusion") == AUTOMATIC:
            found |= _names(item)
    return found


def select_all(catalog: Any) -> Any:
    """All streams and fields selected, in the ways that taps read; fields whose inclusion is ``unsupported`` stay
    out."""
    changed = _copy(catalog)
    for item in _items(changed):
        _own_root(item)["selected"] = True
        for entry in _entries(item):
            if entry["metadata"].get("inclusion") != UNSUPPORTED:
                entry["metadata"]["selected"] = True
        if isinstance(item.get("schema"), dict):
            item["schema"]["selected"] = True  # taps from before metadata look here
    return changed


def only(catalog: Any, stream: str, wanted: Mapping[tuple[str, ...], bool]) -> Any:
    """One stream selected, and no other.

    Args:
        stream: by its ``tap_stream_id``. wanted: breadcrumb -> whether that field of it is to come.
    """
    changed = without(catalog)
    for item in _items(changed):
        if (item.get("tap_stream_id") or item.get("stream")) != stream:
            continue
        schema = item.get("schema")
        for holder in (_own_root(item), item, schema):
            if isinstance(holder, dict):
                holder["selected"] = True
        entries = [one for one in _entries(item) if isinstance(one.get("breadcrumb"), list) and one["breadcrumb"]]
        held = {plain_crumb([str(part) for part in one["breadcrumb"]]): one["metadata"] for one in entries}
        for crumb, on in wanted.items():
            if crumb not in held and (len(crumb) == 2 or not on):
                held[crumb] = {}
                item["metadata"].append({"breadcrumb": list(crumb), "metadata": held[crumb]})
            if crumb in held and held[crumb].get("inclusion") != UNSUPPORTED:
                held[crumb]["selected"] = on
        properties = schema.get("properties") if isinstance(schema, dict) else None
        for name, node in properties.items() if isinstance(properties, dict) else ():
            if isinstance(node, dict):
                node["selected"] = wanted.get(("properties", name), True)
    return changed


def without(catalog: Any, streams: Collection[str] | None = None) -> Any:
    """Some streams deselected, or all; they may be named as in messages or as in states."""
    changed = _copy(catalog)
    for item in _items(changed):
        if streams is None or not _names(item).isdisjoint(streams):
            _own_root(item)["selected"] = False
            for holder in (item, item.get("schema")):
                if isinstance(holder, dict) and "selected" in holder:
                    holder["selected"] = False
    return changed


def legacy(catalog: Any) -> Any:
    """As ``--properties`` files have it: ``selected`` stands in the schemas, too."""
    changed = _copy(catalog)
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


def fewer_fields(catalog: Any) -> tuple[Any, dict[str, list[str]]]:
    """A copy of a catalog in which each stream has but its automatic fields, and those fields that were deselected, by
    the stream's name on messages. Where none is automatic, one stays. Keys stay in any case."""
    changed, off = _copy(catalog), {}
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


def _copy(value: Any) -> Any:
    """A copy whose parts are all objects of their own, also where one stood in several places."""
    if isinstance(value, Mapping):
        return {key: _copy(one) for key, one in value.items()}
    return [_copy(one) for one in value] if isinstance(value, list | tuple) else value


def _selects(held: Mapping[str, Any], *, default: bool) -> bool:
    """Whether metadata selects what it belongs to."""
    if held.get("inclusion") in (AUTOMATIC, UNSUPPORTED):
        return bool(held["inclusion"] == AUTOMATIC)
    chosen = next((held[key] for key in ("selected", "selected-by-default") if held.get(key) is not None), default)
    return chosen in (True, "true")


def _items(catalog: Any) -> list[dict[str, Any]]:
    streams = catalog.get("streams") if isinstance(catalog, dict) else None
    return [one for one in streams if isinstance(one, dict)] if isinstance(streams, list) else []


def _names(item: Mapping[str, Any]) -> set[str]:
    return {item[key] for key in _NAMES if isinstance(item.get(key), str)}


def _entries(item: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The entries of a stream's metadata that hold something."""
    listed = item.get("metadata")
    entries = (one for one in (listed if isinstance(listed, list) else ()) if isinstance(one, dict))
    return [one for one in entries if isinstance(one.get("metadata"), dict)]


def _is_root(entry: Mapping[str, Any]) -> bool:
    return entry.get("breadcrumb") in ([], (), "")


def _root(item: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of a stream as a whole."""
    found: dict[str, Any] = next((one["metadata"] for one in _entries(item) if _is_root(one)), {})
    return found


def _own_root(item: dict[str, Any]) -> dict[str, Any]:
    """The metadata of a stream as a whole, to write to: made where there is none."""
    if not any(_is_root(one) for one in _entries(item)):
        listed = item.get("metadata")
        if not isinstance(listed, list):
            listed = item["metadata"] = []
        listed.insert(0, {"breadcrumb": [], "metadata": {}})
    return _root(item)


def _fields(item: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The metadata of a stream's fields at the top."""
    entries = ((one.get("breadcrumb"), one["metadata"]) for one in _entries(item))
    return {str(path[1]): held for path, held in entries if isinstance(path, list) and len(path) == 2}
