"""Schemas of nothing but plain fields: what each holds can be told from a row that was shaped, without its JSON.

Whoever makes rows and whoever checks lines call the same function, each on the schema it goes by; only where both get
the same may the one trust the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Plain = tuple[Any, ...]
"""``(kind, nullable)``, of an array ``("array", nullable, items)``, of an object ``("object", nullable, ((name, plain),
...))``, sorted. Kinds: text, truth, whole, number, time, date."""

_REFUSED = frozenset(
    {"$ref", "allOf", "anyOf", "oneOf", "not", "if", "patternProperties", "dependencies", "dependentSchemas"}
    | {"prefixItems", "additionalItems", "contentEncoding", "multipleOf"}
)
_FORMATS = {"date-time": "time", "date": "date"}
_KINDS = {
    frozenset({"boolean"}): "truth",
    frozenset({"integer"}): "whole",
    frozenset({"number"}): "number",
    frozenset({"number", "integer"}): "number",
}
_IN_ARRAYS = ("text", "truth", "whole")


def plain_record(schema: Mapping[str, Any], left_out: Any = None) -> Plain | None:
    """What a record holds; None if some field is not plain.

    Args:
        left_out: stands in ``properties`` for a field that is known and does not come.
    """
    if not _REFUSED.isdisjoint(schema):
        return None
    return _fields(schema, False, left_out)


def _fields(schema: Mapping[str, Any], nullable: bool, left_out: Any) -> Plain | None:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return None
    found = []
    for name, node in properties.items():
        if left_out is not None and node is left_out:
            continue
        kind = _plain(node, left_out)
        if kind is None:
            return None
        found.append((name, kind))
    return ("object", nullable, tuple(sorted(found))) if found else None


def _plain(node: Any, left_out: Any) -> Plain | None:
    if not isinstance(node, Mapping) or not _REFUSED.isdisjoint(node) or node.get("format") == "singer.decimal":
        return None
    said = node.get("type")
    types = {said} if isinstance(said, str) else set(said) if isinstance(said, list | tuple) else set()
    nullable = "null" in types
    types.discard("null")
    if types == {"string"}:
        return _FORMATS.get(str(node.get("format")), "text"), nullable
    if types == {"array"}:
        items = _plain(node.get("items"), left_out)
        return ("array", nullable, items) if items is not None and items[0] in _IN_ARRAYS else None
    if types == {"object"}:
        return None if node.get("additionalProperties", False) is not False else _fields(node, nullable, left_out)
    kind = _KINDS.get(frozenset(types))
    return None if kind is None else (kind, nullable)
