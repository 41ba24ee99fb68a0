"""The columns of a stream's CSV files: its declared fields in order, and how a value of each is written.

``text`` is text as it is, in quotes; ``number`` and ``boolean`` the JSON source text, bare; ``json`` JSON text in
quotes. A field that takes text and other scalars is ``text`` (its numbers are read back as text), one that takes
objects or arrays, or says nothing of its type, is ``json``, which reads back as it was. Of numbers and texts whose
columns in Parquet are narrower a column knows that, too: its cells are held against it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from burler.errors import DataError
from burler.records.columns.nodes import record_type
from burler.records.columns.types import Scalar

Kind = Literal["text", "number", "boolean", "json"]
Narrow = Literal["integer", "date", "date-time"]

_MOMENTS: dict[str, Narrow] = {"timestamp": "date-time", "date": "date"}
_NUMBERS = {"integer", "number"}
_SCALARS = {*_NUMBERS, "string", "boolean"}
_DEEPEST = 50  # of choices within choices; a schema that contains itself goes on for ever


@dataclass(frozen=True, slots=True)
class Column:
    """One column. ``narrow``: what alone its cells may hold, of the numbers or texts that its kind takes."""

    name: str
    kind: Kind
    narrow: Narrow | None = None


def columns_of(schema: Mapping[str, Any]) -> tuple[Column, ...]:
    """The columns of a schema's rows: none if it declares no fields."""
    return tuple(_column(name, node) for name, node in _properties(schema).items())


def _column(name: str, node: Any) -> Column:
    kind = _kind(node)
    if kind == "number":
        return Column(name, kind, "integer" if "number" not in _types(node, 0) else None)
    return Column(name, kind, _moment(node) if kind == "text" else None)


def _moment(node: Any) -> Narrow | None:
    """Whether texts are dates or date-times, by the rule that columns of Parquet follow."""
    try:
        ((_, kind),) = record_type({"properties": {"cell": node}}).fields
    except DataError:
        return None
    return _MOMENTS.get(kind.name) if isinstance(kind, Scalar) else None


def _properties(schema: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
    found = schema.get("properties")
    fields = dict(found) if isinstance(found, Mapping) else {}
    parts = schema.get("allOf")
    for part in parts if isinstance(parts, list) and depth < _DEEPEST else ():
        if isinstance(part, Mapping):
            fields |= _properties(part, depth + 1)
    return fields


def _kind(node: Any) -> Kind:
    types = set(_types(node, 0)) - {"null"}
    if not types or not types <= _SCALARS:
        return "json"
    if "string" in types:
        return "text"
    if types <= _NUMBERS:
        return "number"
    return "boolean" if types == {"boolean"} else "json"


def _types(node: Any, depth: int) -> Iterator[str]:
    """The JSON types that a node lets in; ``any`` where it does not say."""
    if not isinstance(node, Mapping) or "$ref" in node or depth > _DEEPEST:
        yield "any"
        return
    for key in ("anyOf", "oneOf"):
        if isinstance(branches := node.get(key), list) and branches:
            for branch in branches:  # one that names no type takes the node's
                said = {"type": node["type"], **branch} if isinstance(branch, Mapping) and "type" in node else branch
                yield from _types(said, depth + 1)
            return
    given = node.get("type")
    if isinstance(given, str):
        yield given
    elif isinstance(given, list):
        yield from map(str, given)
    elif isinstance(parts := node.get("allOf"), list) and parts:
        joined: dict[str, Any] = {}
        for part in parts:
            joined |= part if isinstance(part, Mapping) else {}
        yield from _types(joined, depth + 1)
    elif isinstance(values := node.get("enum"), list) and values:
        yield from map(_json_type, values)
    else:
        yield _json_type(node["const"]) if "const" in node else "any"


def _json_type(value: Any) -> str:
    for kind, name in ((bool, "boolean"), (int, "integer"), (str, "string"), (list, "array"), (dict, "object")):
        if isinstance(value, kind):
            return name
    return "null" if value is None else "number"
