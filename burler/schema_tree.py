"""A JSON Schema as a tree: which keywords hold schemas, the schemas below a schema, and JSON pointers into it.

A schema is walked by place: ``type`` is a keyword in a schema, a field's name among ``properties``, a value in
``enum``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

SCHEMA, MAP, DATA, OTHER = "schema", "map", "data", "other"
"""A schema (or a list of them); names to schemas; a value; a keyword that JSON Schema does not know."""

UNIONS = ("anyOf", "oneOf", "allOf")
ITEMS = ("items", "prefixItems", "additionalItems", "unevaluatedItems", "contains")
VALUES = ("additionalProperties", "unevaluatedProperties")
DEFINITIONS = ("definitions", "$defs")
HOLDS = {
    **dict.fromkeys((*UNIONS, *ITEMS, *VALUES), SCHEMA),
    **dict.fromkeys(("not", "if", "then", "else", "propertyNames", "contentSchema"), SCHEMA),
    **dict.fromkeys(("properties", "patternProperties", "dependencies", "dependentSchemas", *DEFINITIONS), MAP),
    **dict.fromkeys(("enum", "const", "default", "example", "examples"), DATA),
}
"""What a keyword's value is, of all drafts and of OpenAPI; other keywords hold no schemas."""

TYPES = ("string", "integer", "number", "boolean", "object", "array", "null")

Way = tuple[str, ...]
"""Steps to a schema: ``("properties", "tags", "items")``, ``("anyOf", "0")``."""

_NOT_OTHER = {"default"}  # outside of schemas it is a name: of one of OpenAPI's answers, for instance


def below(place: str, key: str) -> str:
    """The place of what a key of an object at ``place`` holds."""
    if place == MAP:
        return SCHEMA
    if place == DATA or (place == OTHER and key in _NOT_OTHER):
        return place
    return HOLDS.get(key, OTHER)


def parts(schema: Any) -> Iterator[tuple[Way, Any]]:
    """What stands in the places of schemas right below a schema, in its order; it may be of any kind."""
    if not isinstance(schema, Mapping):
        return
    for key, value in schema.items():
        holds = HOLDS.get(key)
        if holds == MAP and isinstance(value, Mapping):
            for name, part in value.items():
                if key != "dependencies" or not isinstance(part, list | tuple):
                    yield (key, str(name)), part
        elif holds == SCHEMA and isinstance(value, list | tuple):
            yield from (((key, str(i)), part) for i, part in enumerate(value))
        elif holds == SCHEMA:
            yield (key,), value


def walk(schema: Any) -> Iterator[tuple[Way, Any]]:
    """A schema and all below it, from the top down, each with the way there. It must not hold itself."""
    stack: list[tuple[Way, Any]] = [((), schema)]
    while stack:
        way, node = stack.pop()
        yield way, node
        stack.extend(reversed([((*way, *step), part) for step, part in parts(node)]))


def changed(schema: Mapping[str, Any], change: Callable[[Way, Any], Any]) -> dict[str, Any]:
    """A copy of a schema in which each one right below it is what ``change`` makes of it (see ``parts``)."""
    out = dict(schema)
    for way, part in parts(schema):
        made = change(way, part)
        if len(way) == 1:
            out[way[0]] = made
            continue
        if out[way[0]] is schema[way[0]]:
            out[way[0]] = dict(out[way[0]]) if HOLDS[way[0]] == MAP else list(out[way[0]])
        if HOLDS[way[0]] == MAP:
            out[way[0]][way[1]] = made
        else:
            out[way[0]][int(way[1])] = made
    return out


def field_path(way: Way) -> str:
    """The field that a way leads to, as people write it: ``address.city``, ``tags[]``; ``*`` for a name that is not
    known beforehand, "" for the top. Branches of unions leave no trace."""
    path = ""
    steps = iter(way)
    for key in steps:
        name = next(steps) if HOLDS.get(key) == MAP else "*" if key in VALUES else None
        if key in ITEMS:
            path += "[]"
        elif name is not None and key in ("properties", "patternProperties", *VALUES):
            path = f"{path}.{name}" if path else name
    return path


def types_of(schema: Any) -> tuple[str, ...]:
    """The types that a schema's own ``type`` names."""
    given = schema.get("type") if isinstance(schema, Mapping) else None
    if isinstance(given, str):
        return (given,)
    return tuple(name for name in given if isinstance(name, str)) if isinstance(given, list | tuple) else ()


_KINDS = (
    (bool, "boolean"),
    (int, "integer"),
    (float | Decimal, "number"),
    (str, "string"),
    (Mapping, "object"),
    (list | tuple, "array"),
)


def type_of(value: Any) -> str:
    """The JSON type of a value; of a value that JSON does not have the name of its class."""
    if value is None:
        return "null"
    for kind, name in _KINDS:
        if isinstance(value, kind):
            return name
    return type(value).__name__


def expressions(schema: Any) -> Iterator[tuple[str, str, str]]:
    """The regular expressions of a schema: keyword, expression, the field that it is said of (see ``field_path``)."""
    for way, node in walk(schema):
        if not isinstance(node, Mapping):
            continue
        if isinstance(node.get("pattern"), str):
            yield "pattern", node["pattern"], field_path(way)
        if isinstance(node.get("patternProperties"), Mapping):
            path = field_path(way)
            yield from (("patternProperties", one, path) for one in node["patternProperties"] if isinstance(one, str))


# ---- JSON pointers ---------------------------------------------------------------------------------------------------


def tokens(pointer: str) -> list[str]:
    """The steps of a JSON pointer: of ``/a/b~1c`` ``["a", "b/c"]``. One from an address is percent-decoded before."""
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def token(name: str) -> str:
    """A name as one step of a JSON pointer in the fragment of an address."""
    return name.replace("%", "%25").replace("~", "~0").replace("/", "~1")


def step(node: Any, token: str) -> Any:
    """What a step of a pointer leads to.

    Raises:
        LookupError: nothing.
    """
    if isinstance(node, Mapping) and token in node:
        return node[token]
    is_index = token.isascii() and token.isdigit() and len(token) < 10 and (token == "0" or token[0] != "0")
    if isinstance(node, list | tuple) and is_index and int(token) < len(node):
        return node[int(token)]
    raise LookupError(token)


def at(root: Any, pointer: str) -> Any:
    """What a pointer leads to.

    Raises:
        LookupError: nothing; its argument is the step that failed.
    """
    node = root
    for one in tokens(pointer):
        node = step(node, one)
    return node
