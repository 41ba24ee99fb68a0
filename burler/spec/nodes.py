"""A JSON Schema as a tree of nodes, each with what it takes and what was seen there.

What is seen is noted a column at a time: ``set(map(type, column))`` costs some 20 ns a value, where to validate a value
by a JSON Schema costs 10 µs. What cannot be told by kinds, formats and bounds is left to the library ``jsonschema``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from burler.spec.constraints import Constraints

KINDS: dict[type, str] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
"""JSON Schema's word for what a decoder gives."""

_TAKES: dict[str, set[type]] = {
    "null": {type(None)},
    "boolean": {bool},
    "integer": {int},
    "number": {int, float},
    "string": {str},
    "array": {list},
    "object": {dict},
}
_ANY = frozenset(KINDS)
_LEFT_TO_LIBRARY = frozenset(
    {"$ref", "allOf", "anyOf", "oneOf", "not", "if", "patternProperties", "dependencies", "dependentSchemas"}
    | {"dependentRequired", "prefixItems", "additionalItems", "contains", "propertyNames", "const", "uniqueItems"}
    | {"minItems", "maxItems", "minProperties", "maxProperties"}
)


@dataclass(slots=True)
class Node:
    """One place of a schema.

    Attributes:
        path: as people write it: ``address.city``, ``tags[]``; "" for the record.
        takes: kinds of values that fit; all of them where the schema names none.
        known: fields by name; None where the schema lists none.
        open: whether further fields may come; ``rest`` is the node they fit, if there is one.
        library: the schema, where only the library can tell.
        seen: kinds of values that came; ``rows`` and ``nulls`` how many.
        further: fields that no ``properties`` names, and how often they came.
    """

    path: str
    schema: Mapping[str, Any]
    takes: frozenset[type] = _ANY
    format: str | None = None
    known: dict[str, Node] | None = None
    open: bool = True
    rest: Node | None = None
    required: frozenset[str] = frozenset()
    items: Node | None = None
    constraints: Constraints | None = None
    library: Mapping[str, Any] | None = None
    seen: set[type] = field(default_factory=set)
    rows: int = 0
    nulls: int = 0
    further: dict[str, int] = field(default_factory=dict)

    def walk(self) -> Iterable[Node]:
        """This node and all below it."""
        yield self
        for child in (*(self.known or {}).values(), self.rest, self.items):
            if child is not None:
                yield from child.walk()


def node_of(schema: Any, path: str = "", depth: int = 0) -> Node:
    """The tree of a schema; what is odd in it takes anything (area C says so)."""
    if not isinstance(schema, Mapping) or depth > 100:
        return Node(path, {})
    schema = _without_null_branch(schema)
    node = Node(path, schema)
    node.takes = _takes(schema)
    form = schema.get("format")
    node.format = form if isinstance(form, str) else None
    if not _LEFT_TO_LIBRARY.isdisjoint(schema):
        node.library = schema
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        node.known = {
            name: node_of(below, f"{path}.{name}" if path else name, depth + 1) for name, below in properties.items()
        }
    rest = schema.get("additionalProperties", True)
    node.open = rest is not False
    if isinstance(rest, Mapping) and rest:
        node.rest = node_of(rest, f"{path}.*" if path else "*", depth + 1)
    required = schema.get("required")
    if isinstance(required, list):
        node.required = frozenset(name for name in required if isinstance(name, str))
    items = schema.get("items")
    if isinstance(items, Mapping):
        node.items = node_of(items, f"{path}[]", depth + 1)
    elif isinstance(items, list):
        node.library = schema
    node.constraints = None if node.library is not None else Constraints.of(schema)
    return node


def _takes(schema: Mapping[str, Any]) -> frozenset[type]:
    said = schema.get("type")
    words = [said] if isinstance(said, str) else said if isinstance(said, list) else []
    takes: set[type] = set()
    for word in words:
        known = _TAKES.get(word.lower()) if isinstance(word, str) else None
        takes |= _ANY if known is None else known
    return frozenset(takes) if takes else _ANY


def _without_null_branch(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """``anyOf`` of one schema and null, as many taps write it, is that schema, nullable."""
    for word in ("anyOf", "oneOf"):
        branches = schema.get(word)
        if not isinstance(branches, list) or "type" in schema or len(branches) != 2:
            continue
        others = [one for one in branches if isinstance(one, Mapping) and one.get("type") not in ("null", ["null"])]
        if len(others) != 1 or not isinstance(others[0].get("type"), str | list):
            continue
        said = others[0]["type"]
        types = [*([said] if isinstance(said, str) else said), "null"]
        rest = {key: value for key, value in schema.items() if key != word}
        if "enum" in others[0] or not rest.keys().isdisjoint(others[0]):
            return schema
        return {**rest, **others[0], "type": types}
    return schema


def kinds(seen: Iterable[type]) -> list[str]:
    """JSON Schema's words for kinds, in a fixed order."""
    return [word for kind, word in KINDS.items() if kind in set(seen)]
