"""A JSON Schema as a tree of nodes, each with what it takes and what was seen there.

What is seen is noted a column at a time: ``set(map(type, column))`` costs some 20 ns a value, where to validate a value
by a JSON Schema costs 10 µs. What cannot be told by kinds, formats and bounds is left to the library ``jsonschema``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from burler.records.shape.constraints import finder
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
_BRANCHES = frozenset({"$ref", "allOf", "anyOf", "oneOf", "not", "if", "dependencies", "dependentSchemas"})
"""Words under which further fields may be described."""
_LEFT_TO_LIBRARY = _BRANCHES | {
    "then", "else", "patternProperties", "dependentRequired", "prefixItems", "additionalItems", "contains",
    "minContains", "maxContains", "propertyNames", "unevaluatedProperties", "unevaluatedItems",
}  # fmt: skip
_DEPTH = 100

ITEM: Any = object()
REST: Any = object()
"""Steps to a node that are no names: the items of an array, and the fields that no ``properties`` names."""


@dataclass(slots=True)
class Node:
    """One place of a schema.

    Attributes:
        path: as people write it: ``address.city``, ``tags[]``; "" for the record.
        above, step: the node that it is below of, and the field's name there (or ``ITEM``, ``REST``).
        takes: kinds of values that fit; all of them where the schema names none.
        known: fields by name; None where the schema lists none.
        open: whether further fields may come; ``rest`` is the node they fit, if there is one.
        patterns: what further fields may be called besides: whether a name is such.
        library: the part of the schema that only the library can tell.
        seen: kinds of values that came; ``rows`` and ``nulls`` how many.
        further: fields that no ``properties`` names, and how often they came.
    """

    path: str
    schema: Mapping[str, Any]
    above: Node | None = None
    step: Any = None
    takes: frozenset[type] = _ANY
    format: str | None = None
    known: dict[str, Node] | None = None
    open: bool = True
    rest: Node | None = None
    patterns: tuple[Callable[[str], bool], ...] = ()
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

    def values(self, record: Any) -> Iterator[Any]:
        """What a record has at this place."""
        if self.above is None:
            yield record
            return
        for value in self.above.values(record):
            if self.step is ITEM:
                yield from value if isinstance(value, list) else ()
            elif not isinstance(value, dict):
                continue
            elif self.step is REST:
                known = self.above.known or {}
                yield from (one for name, one in value.items() if name not in known)
            elif self.step in value:
                yield value[self.step]

    @property
    def names_all(self) -> bool:
        """Whether a field that ``properties`` does not name is none that the schema means."""
        return (
            bool(self.known)
            and "additionalProperties" not in self.schema
            and not self.patterns
            and _BRANCHES.isdisjoint(self.schema)
        )


def node_of(schema: Any, path: str = "", above: Node | None = None, step: Any = None, depth: int = 0) -> Node:
    """The tree of a schema; what is odd in it takes anything (area C says so)."""
    if schema is False:
        return Node(path, {}, above, step, library={"not": {}})
    if not isinstance(schema, Mapping) or depth > _DEPTH:
        return Node(path, {}, above, step)
    schema = _without_null_branch(schema)
    node = Node(path, schema, above, step)
    if "$ref" in schema:  # what stands beside it counts for nothing, up to draft 7
        node.library = {"$ref": schema["$ref"]}
        return node
    node.takes = _takes(schema)
    form = schema.get("format")
    node.format = form if isinstance(form, str) else None
    node.library = _for_library(schema)
    _fields(node, schema, depth)
    items = schema.get("items")
    if isinstance(items, Mapping) and "prefixItems" not in schema:
        node.items = node_of(items, f"{path}[]", node, ITEM, depth + 1)
    node.constraints = Constraints.of(schema)
    return node


def _fields(node: Node, schema: Mapping[str, Any], depth: int) -> None:
    start = f"{node.path}." if node.path else ""
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        node.known = {
            name: node_of(below, f"{start}{name}", node, name, depth + 1) for name, below in properties.items()
        }
    rest = schema.get("additionalProperties", True)
    node.open = rest is not False
    if isinstance(rest, Mapping) and rest and "patternProperties" not in schema:
        node.rest = node_of(rest, f"{start}*", node, REST, depth + 1)
    patterns = schema.get("patternProperties")
    if isinstance(patterns, Mapping):
        node.patterns = tuple(finder(one) for one in patterns if isinstance(one, str))
    required = schema.get("required")
    if isinstance(required, list):
        node.required = frozenset(name for name in required if isinstance(name, str))


def _for_library(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The part of a schema that nodes, formats and constraints do not hold."""
    left = {word: value for word, value in schema.items() if word in _LEFT_TO_LIBRARY}
    items, rest = schema.get("items"), schema.get("additionalProperties")
    if isinstance(items, list) or ("prefixItems" in left and "items" in schema):
        left["items"] = items
    if "unevaluatedProperties" in left or "unevaluatedItems" in left:
        return dict(schema)  # they go by all that stands beside them
    if "patternProperties" in left and isinstance(rest, Mapping):  # it holds for what no pattern takes
        properties = schema.get("properties")
        left["additionalProperties"] = rest
        left["properties"] = {name: {} for name in properties} if isinstance(properties, Mapping) else {}
    return left or None


def _takes(schema: Mapping[str, Any]) -> frozenset[type]:
    said = schema.get("type")
    words = [said] if isinstance(said, str) else said if isinstance(said, list) else []
    takes: set[type] = set()
    for word in words:
        known = _TAKES.get(word.lower()) if isinstance(word, str) else None
        takes |= _ANY if known is None else known
    return frozenset(takes) if takes else _ANY


def _without_null_branch(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """``anyOf`` of one schema and null, as many taps write it, is that schema, nullable; ``anyOf`` of nothing but types
    is a list of types."""
    listed = schema.get("anyOf")
    if isinstance(listed, list) and "type" not in schema and all(_is_bare(one) for one in listed):
        words = [word for one in listed for word in ([one["type"]] if isinstance(one["type"], str) else one["type"])]
        return {**{key: value for key, value in schema.items() if key != "anyOf"}, "type": words} if words else schema
    for word in ("anyOf", "oneOf"):
        branches = schema.get(word)
        if not isinstance(branches, list) or "type" in schema or len(branches) != 2:
            continue
        others = [one for one in branches if isinstance(one, Mapping) and one.get("type") not in ("null", ["null"])]
        nulls = [one for one in branches if isinstance(one, Mapping) and one.get("type") in ("null", ["null"])]
        if len(others) != 1 or len(nulls) != 1 or not isinstance(others[0].get("type"), str | list):
            continue
        said = others[0]["type"]
        types = [said] if isinstance(said, str) else list(said)
        rest = {key: value for key, value in schema.items() if key != word}
        hard = _LEFT_TO_LIBRARY | {"enum", "const"}  # of these null would have to keep its branch alone
        if "null" in types or not hard.isdisjoint({*others[0], *nulls[0]}) or not rest.keys().isdisjoint(others[0]):
            return schema
        return {**rest, **others[0], "type": [*types, "null"]}
    return schema


def _is_bare(branch: Any) -> bool:
    """Whether a branch of a union says its type and nothing else."""
    if not isinstance(branch, Mapping) or branch.keys() != {"type"}:
        return False
    said = branch["type"]
    words = [said] if isinstance(said, str) else said
    return isinstance(words, list) and bool(words) and all(isinstance(word, str) and word in _TAKES for word in words)


def kinds(seen: Iterable[type]) -> list[str]:
    """JSON Schema's words for kinds, in a fixed order."""
    return [word for kind, word in KINDS.items() if kind in set(seen)]
