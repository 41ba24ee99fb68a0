"""What OpenAPI 2.0 to 3.1 add to JSON Schema, said in plain JSON Schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from burler.schema_tree import UNIONS, changed, parts

_NOTES = ("title", "description", "default", "readOnly", "writeOnly", "deprecated")
_DROPPED = frozenset(("discriminator", "xml", "externalDocs", "example", "examples", "collectionFormat", "$schema"))
# fmt: off
_FORMATS_WITHOUT_MEANING = frozenset((
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "integer", "float", "double",
    "number", "decimal", "decimal128", "double-int", "binary", "byte", "base64url", "password", "string", "text",
    "char", "html", "commonmark", "media-range", "http-date", "boolean",
))
# fmt: on


def to_json_schema(schema: Any) -> None:
    """Rewrite a schema and all below it, in place: only for documents that nobody else holds. A second time
    changes nothing. ``readOnly`` and ``writeOnly`` stay: see ``without_write_only``."""
    seen: set[int] = set()
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict) and id(node) not in seen:
            _rewrite(node)
            seen.add(id(node))
            waiting += [part for _, part in parts(node)]


def _rewrite(node: dict[str, Any]) -> None:
    nullable = node.pop("nullable", None) is True or node.pop("x-nullable", None) is True
    for key in [key for key in node if key in _DROPPED or (isinstance(key, str) and key.startswith("x-"))]:
        del node[key]
    if node.get("type") == "file":  # Swagger 2.0
        node["type"] = "string"
    if node.get("type") in ("any", ""):
        del node["type"]
    if "properties" in node and not {"type", "$ref", "allOf", "anyOf", "oneOf"} & set(node):
        node["type"] = "object"
    if isinstance(node.get("required"), bool):  # a parameter's habit, without meaning in a schema
        del node["required"]
    _bounds(node)
    _formats(node)
    if nullable:
        _allow_null(node)


def _bounds(node: dict[str, Any]) -> None:
    for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(node.get(exclusive), bool) and node.pop(exclusive) and bound in node:
            node[exclusive] = node.pop(bound)


def _formats(node: dict[str, Any]) -> None:
    kind = node.get("format")
    if kind == "byte" and "contentEncoding" not in node:
        node["contentEncoding"] = "base64"
    if not isinstance(kind, str) or kind in _FORMATS_WITHOUT_MEANING:
        node.pop("format", None)


def _allow_null(node: dict[str, Any]) -> None:
    if {"$ref", "allOf", "anyOf", "oneOf"} & set(node):  # null must pass beside them, not through them
        inner = {key: node.pop(key) for key in list(node) if key not in _NOTES}
        node["anyOf"] = [inner, {"type": "null"}]
        return
    kind = node.get("type")
    if isinstance(kind, str):
        node["type"] = ["null", kind] if kind != "null" else kind
    elif isinstance(kind, list) and "null" not in kind:
        node["type"] = ["null", *kind]
    if "const" in node:
        node["enum"] = [node.pop("const")]
    if isinstance(node.get("enum"), list) and None not in node["enum"]:
        node["enum"] = [*node["enum"], None]


def without_write_only(node: Any, hidden: frozenset[str] = frozenset()) -> Any:
    """A copy without properties that are never in an answer, and without ``readOnly``: all that is left may be read.

    Args:
        hidden: fields that a schema around this one writes only.
    """
    if not isinstance(node, Mapping):
        return node
    out = {key: value for key, value in node.items() if key not in ("readOnly", "writeOnly")}
    hidden = hidden | _write_only_names(node)
    if isinstance(out.get("properties"), Mapping):
        out["properties"] = {name: sub for name, sub in out["properties"].items() if name not in hidden}
    out = changed(out, lambda way, sub: without_write_only(sub, hidden if way[0] in UNIONS else frozenset()))
    if isinstance(out.get("required"), list):
        out["required"] = [name for name in out["required"] if name not in hidden]
        if not out["required"]:
            del out["required"]
    return out


def _write_only_names(node: Mapping[str, Any]) -> frozenset[str]:
    """Write-only properties of a schema and of what it is made of by ``allOf``."""
    own = node.get("properties")
    names = {name for name, sub in own.items() if _is_write_only(sub)} if isinstance(own, Mapping) else set()
    for part in _list(node.get("allOf")):
        if isinstance(part, Mapping):
            names |= _write_only_names(part)
    return frozenset(names)


def _is_write_only(node: Any) -> bool:
    if not isinstance(node, Mapping):
        return False
    if node.get("writeOnly") is True or any(map(_is_write_only, _list(node.get("allOf")))):
        return True
    branches = [branch for branch in _list(node.get("anyOf")) if branch != {"type": "null"}]
    return bool(branches) and all(map(_is_write_only, branches))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def cut_cycles(root: Any, target_of: Callable[[str], Any]) -> None:
    """Open every reference that leads back to a schema which holds it, in place: there anything may stand.

    Args:
        root: the schema to begin with.
        target_of: gives the schema that a reference of its document points to, or None.
    """
    path: set[int] = set()
    done: set[int] = set()
    stack: list[tuple[Any, Iterator[Any]]] = []

    def enter(node: Any) -> None:
        if isinstance(node, dict) and id(node) not in done:
            path.add(id(node))
            stack.append((node, _next_nodes(node, path, target_of)))

    enter(root)
    while stack:
        node, below = stack[-1]
        following = next(below, None)
        if following is None:
            stack.pop()
            path.discard(id(node))
            done.add(id(node))
        else:
            enter(following)


def _next_nodes(node: dict[str, Any], path: set[int], target_of: Callable[[str], Any]) -> Iterator[Any]:
    reference = node.get("$ref")
    if isinstance(reference, str):
        target = target_of(reference)
        if target is not None and id(target) in path:
            del node["$ref"]
        elif target is not None:
            yield target
    yield from (sub for _, sub in list(parts(node)) if isinstance(sub, dict) and id(sub) not in path)
