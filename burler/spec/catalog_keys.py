"""Key properties, replication methods and replication keys (C110 to C117, C122, C129, C130, C134)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from burler.singer.metadata import AUTOMATIC, METHODS, MetadataMap
from burler.spec.catalog_metadata import inclusion
from burler.spec.catalog_walk import reference, types_of
from burler.spec.catalog_words import Reporter, cut, quoted, said, texts

_INCOMPARABLE = frozenset(("object", "array", "boolean"))


def check_keys(report: Reporter, schema: Mapping[str, Any], keys: Sequence[str]) -> None:
    """Report keys that are no field, may be null, or are no single value; and that there are none."""
    if not keys:
        report.add("C113", "the stream has no key properties")
    fields = _fields(schema)
    if fields is None:
        return
    for key in dict.fromkeys(keys):
        if key not in fields:
            report.add("C110", f"the key '{cut(key)}' is no field of the schema", path=key)
            continue
        types = types_of(fields[key])
        if types is None:
            continue
        if "null" in types:
            report.add("C111", f"the key '{cut(key)}' may be null", path=key)
        if types & {"object", "array"}:
            report.add("C130", f"the key '{cut(key)}' may be {quoted(sorted(types & {'object', 'array'}))}", path=key)


def _fields(schema: Any) -> Mapping[str, Any] | None:
    """The fields of the top; None where they can't be known, or where there are none at all (C107)."""
    if not isinstance(schema, Mapping) or reference(schema) is not None:
        return None
    fields, further = schema.get("properties"), schema.get("additionalProperties")
    if not fields:
        return {} if further is True or isinstance(further, Mapping) else None
    return fields if isinstance(fields, Mapping) else None


def catalog_keys(report: Reporter, entry: Mapping[str, Any], compiled: MetadataMap) -> list[str] | None:
    """The keys that a catalog's entry gives, as readers look for them; None where it gives no list (C110)."""
    own, root = entry.get("key_properties"), compiled.get((), {})
    if own is not None and texts(own) is None:
        report.add("C110", f"'key_properties' is {said(own)}, no list of field names")
        return None
    is_view = root.get("is-view") is True or entry.get("is_view") is True
    view = texts(root.get("view-key-properties"))
    table = texts(root.get("table-key-properties"))
    if own is not None and table is not None and set(own) != set(table) and not is_view:
        fact = f"'key_properties' is {_list(own)}, and 'table-key-properties' of its metadata is {_list(table)}"
        report.add("C122", fact)
    return texts(own) or (view if is_view else None) or table or []


def _list(names: Sequence[str]) -> str:
    return f"[{quoted(names)}]" if names else "an empty list"


def check_automatic(report: Reporter, schema: Any, keys: Sequence[str], compiled: MetadataMap) -> None:
    """Report keys that a user may leave out (C112). Those that say nothing are C121's."""
    fields = _fields(schema) or {}
    for key in dict.fromkeys(keys):
        chosen = inclusion(schema, compiled, key) if key in fields else None
        if chosen is not None and chosen != AUTOMATIC:
            report.add("C112", f"the key '{cut(key)}' has the inclusion {said(chosen)}, not 'automatic'", path=key)


def check_replication(report: Reporter, entry: Mapping[str, Any], compiled: MetadataMap) -> None:
    """Report what is wrong with a stream's method and replication key."""
    root = compiled.get((), {})
    forced, asked, own = (
        root.get("forced-replication-method"),
        root.get("replication-method"),
        entry.get("replication_method"),
    )
    for where, method in (
        ("forced-replication-method", forced),
        ("replication-method", asked),
        ("replication_method", own),
    ):
        if method and (not isinstance(method, str) or method not in METHODS):
            report.add("C116", f"'{where}' is {said(method)}; known are {', '.join(METHODS)}")
        elif method and forced and forced in METHODS and method != forced:
            report.add("C122", f"'{where}' is {method}, and the stream is forced to {forced}")
    key = next((one for one in (root.get("replication-key"), entry.get("replication_key")) if one), None)
    if key is not None and not isinstance(key, str):
        report.add("C114", f"the replication key is {said(key)}, no field's name")
        return
    valid = texts(root.get("valid-replication-keys")) or []
    method = forced or asked or own
    if method == "INCREMENTAL" and not key and not valid:
        if forced == method:
            report.add("C134", "the stream is always INCREMENTAL, and no replication key is named")
        else:
            report.add("C117", "the stream is INCREMENTAL, and no replication key is named")
    if key and valid and key not in valid:
        fact = f"the replication key is '{cut(key)}', which 'valid-replication-keys' does not list ({quoted(valid)})"
        report.add("C122", fact, path=key)
    check_replication_keys(report, entry.get("schema"), [*([key] if key else []), *valid])
    sure = key or (valid[0] if len(valid) == 1 and forced == "INCREMENTAL" else None)
    if sure and method != "FULL_TABLE":
        _check_stays(report, entry.get("schema"), sure, compiled)


def _check_stays(report: Reporter, schema: Any, key: str, compiled: MetadataMap) -> None:
    chosen = inclusion(schema, compiled, key) if key in (_fields(schema) or {}) else None
    if chosen is None or chosen == AUTOMATIC or compiled.get(("properties", key), {}).get("selected") is True:
        return
    fact = f"the replication key '{cut(key)}' has the inclusion {said(chosen)}, not 'automatic'"
    report.add("C115", fact, path=key)


def check_replication_keys(report: Reporter, schema: Any, keys: Sequence[str]) -> None:
    """Report replication keys that are no field (C114), or of a type that has no order (C129)."""
    fields = _fields(schema)
    if fields is None:
        return
    for key in dict.fromkeys(keys):
        if key not in fields:
            report.add("C114", f"the replication key '{cut(key)}' is no field of the schema", path=key)
            continue
        types = types_of(fields[key])
        if types is not None and types - {"null"} and types - {"null"} <= _INCOMPARABLE:
            fact = f"the replication key '{cut(key)}' is of type {quoted(sorted(types - {'null'}))}"
            report.add("C129", f"{fact}, which has no order", path=key)
