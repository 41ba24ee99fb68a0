"""The fast path: a JSON Schema as a msgspec type, a page converted in C.

What msgspec alone would let pass is checked a column at a time: fields that no schema knows, date-times
that are not in UTC or carry more than six digits (msgspec keeps offsets and rounds digits). A schema
this path has no form for gives None, and its rows take the exact path.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Annotated, Any

import msgspec

from burler.pipeline.shape_exact import types_of

_LARGEST = 1.7976931348623157e308
_FLOAT = Annotated[float, msgspec.Meta(ge=-_LARGEST, le=_LARGEST)]  # a bound on both sides refuses NaN and infinities
_DATE_TIME = Annotated[dt.datetime, msgspec.Meta(tz=True)]
_SCALAR = {"boolean": bool, "integer": int, "number": int | _FLOAT, "string": str, "null": None}
_OPEN = ("anyOf", "oneOf", "allOf", "not", "patternProperties", "$ref")
_ZULU = {"Z"}
_LONGEST = len("2024-01-02T03:04:05.123456Z")


@dataclass(slots=True)
class ObjectNode:
    """What the column checks need of one object in the schema."""

    path: str
    known: frozenset[str]
    date_times: tuple[str, ...] = ()
    objects: dict[str, ObjectNode] = field(default_factory=dict)
    lists: dict[str, ObjectNode] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Compiled:
    """The type of a page, and the tree for the column checks."""

    page_type: Any
    row_type: Any
    tree: ObjectNode
    attributes: Mapping[str, str]


class _Unfit(Exception):
    """The schema needs the exact path."""


def compile_schema(schema: Mapping[str, Any]) -> Compiled | None:
    """The type of a stream's rows; None if only the exact path can do them."""
    try:
        row_type, tree, attributes = _object(schema, "")
    except _Unfit:
        return None
    return Compiled(list[row_type], row_type, tree, attributes)  # type: ignore[valid-type]


def _object(schema: Mapping[str, Any], path: str) -> tuple[Any, ObjectNode, dict[str, str]]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or any(word in schema for word in _OPEN):
        raise _Unfit
    if schema.get("additionalProperties", False) is not False:
        raise _Unfit
    node = ObjectNode(path, frozenset(properties))
    required = set(schema.get("required") or ())
    if not required <= set(properties):
        raise _Unfit
    fields: list[Any] = []
    attributes = {name: f"f{i}" for i, name in enumerate(properties)}
    for name, sub in properties.items():
        kind = _value(sub, name, node, f"{path}.{name}" if path else name)
        if name in required:
            fields.append((attributes[name], kind))
        else:
            fields.append((attributes[name], kind | msgspec.UnsetType, msgspec.UNSET))
    renamed = {attribute: name for name, attribute in attributes.items()}
    struct = msgspec.defstruct("Row", fields, rename=renamed, kw_only=True, gc=False)
    return struct, node, attributes


def _value(schema: Any, name: str, node: ObjectNode, path: str) -> Any:
    if not isinstance(schema, Mapping) or any(word in schema for word in _OPEN):
        raise _Unfit
    wanted = [kind for kind in types_of(schema) if kind != "null"]
    nullable = "null" in types_of(schema)
    if set(wanted) == {"integer", "number"}:
        wanted = ["number"]
    if len(wanted) != 1:
        raise _Unfit
    kind: Any
    if wanted[0] == "object":
        kind, node.objects[name], _ = _object(schema, path)
    elif wanted[0] == "array":
        inner = ObjectNode(path, frozenset())
        kind = list[_value(schema.get("items"), "", inner, path + "[]")]  # type: ignore[misc]
        if inner.date_times or inner.lists:
            raise _Unfit
        if inner.objects:
            node.lists[name] = inner.objects[""]
    elif wanted[0] == "string" and schema.get("format") == "date-time":
        kind = _DATE_TIME
        node.date_times = (*node.date_times, name)
    elif wanted[0] == "string" and schema.get("format") == "date":
        kind = dt.date
    elif wanted[0] in _SCALAR:
        kind = _SCALAR[wanted[0]]
    else:
        raise _Unfit
    return kind | None if nullable else kind


def count_unknown(tree: ObjectNode, rows: list[dict[str, Any]], counts: dict[str, int]) -> bool:
    """Count fields, at any depth, that the schema does not know: dotted path -> rows. One C pass a node
    where there are none. False if a field's name is no text: such a row has no JSON form."""
    extra: set[Any] = set().union(*rows) - tree.known
    for name in extra:
        if not isinstance(name, str):
            return False
        path = f"{tree.path}.{name}" if tree.path else name
        counts[path] = counts.get(path, 0) + sum(name in row for row in rows)
    return all(count_unknown(node, below, counts) for node, below in _below(tree, rows) if below)


def odd_times(tree: ObjectNode, rows: list[dict[str, Any]]) -> bool:
    """Whether a date-time is there that msgspec would not write as burler does: neither text in UTC
    with at most six digits, nor an aware datetime in UTC."""
    for name in tree.date_times:
        column = [row.get(name) for row in rows]
        kinds = set(map(type, column))
        kinds.discard(type(None))
        if kinds == {str}:
            texts = [text for text in column if text]
            if len(texts) and (set(map(itemgetter(-1), texts)) != _ZULU or max(map(len, texts)) > _LONGEST):
                return True
        elif kinds == {dt.datetime}:
            if {moment.tzinfo for moment in column if moment is not None} - {dt.UTC}:
                return True
        elif kinds:
            return True
    return any(odd_times(node, below) for node, below in _below(tree, rows) if below)


def _below(tree: ObjectNode, rows: list[dict[str, Any]]) -> Iterator[tuple[ObjectNode, list[dict[str, Any]]]]:
    """The rows of each object nested one level deeper."""
    for name, node in tree.objects.items():
        column = [row.get(name) for row in rows]
        yield node, [value for value in column if type(value) is dict]
    for name, node in tree.lists.items():
        lists = [value for value in [row.get(name) for row in rows] if type(value) is list]
        yield node, [value for values in lists for value in values if type(value) is dict]
