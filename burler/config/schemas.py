"""A config's JSON Schema: telling one from an example, following its references, and what its parts say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from burler import schema_tree
from burler.config.secrets import Path
from burler.errors import DeclarationError
from burler.schema_tree import HOLDS, TYPES, UNIONS, parts, type_of, types_of

Schema = Mapping[str, Any]

ANY = "*"  # in a path: any key of an open object, any place in a list
_OTHERS = {
    "$schema", "$id", "id", "$comment", "$ref", "type", "format", "title", "description", "readOnly", "writeOnly",
    "deprecated", "secret", "tuning", "contentEncoding", "contentMediaType", "required", "dependentRequired", "minimum",
    "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern", "minItems",
    "maxItems", "uniqueItems", "minContains", "maxContains", "minProperties", "maxProperties",
}  # fmt: skip
KEYWORDS = frozenset(_OTHERS | HOLDS.keys())


def is_json_schema(value: Mapping[str, Any]) -> bool:
    """Whether a ``config_spec`` that is a dict is a JSON Schema; else it is an example of a config.

    It is one if it has ``"$schema"``; or ``"type": "object"`` and ``"properties"``; or nothing but keywords of
    JSON Schema, among them ``"type": "object"``, ``"properties"`` with a dict for each, ``$ref``, ``allOf``,
    ``anyOf`` or ``oneOf``.
    """
    if isinstance(value.get("$schema"), str):
        return True
    kind = value.get("type")
    of_object: bool = kind == "object" or (isinstance(kind, list | tuple) and "object" in kind)
    properties = value.get("properties")
    if of_object and isinstance(properties, Mapping):
        return True
    if not all(isinstance(key, str) and (key in KEYWORDS or key.startswith("x-")) for key in value):
        return False
    if of_object:
        return True
    if isinstance(properties, Mapping):
        return all(isinstance(part, Mapping | bool) for part in properties.values())
    if isinstance(value.get("$ref"), str):
        return bool(value["$ref"].startswith("#"))
    return any(
        isinstance(value.get(key), list) and value[key] and all(isinstance(part, Mapping) for part in value[key])
        for key in UNIONS
    )


def check_shape(schema: Schema, *, place: str) -> None:
    """What can be said of a schema without the package jsonschema; it is looked at when the tap is declared.

    Raises:
        DeclarationError: not a schema, a reference that leads nowhere or out of the schema.
    """
    todo: list[tuple[tuple[str, ...], Any]] = [((), schema)]
    while todo:
        way, part = todo.pop()
        at = f"{place}: config_spec, at '#{''.join('/' + step for step in way)}'"
        if isinstance(part, bool):
            continue
        if not isinstance(part, Mapping):
            raise DeclarationError(f"{at}: a schema is a dict, not {type(part).__name__}.")
        for key in ("properties", "patternProperties", "$defs", "definitions"):
            if key in part and not isinstance(part[key], Mapping):
                raise DeclarationError(f"{at}: '{key}' must be a dict of schemas, not {type(part[key]).__name__}.")
        _check_words(part, at)
        if "$ref" in part:
            target(schema, part["$ref"], at=at)
        if way and isinstance(part.get("$id", part.get("id")), str):
            raise DeclarationError(f"{at}: an inner '$id' is not supported in a config's schema; leave it out.")
        todo += [((*way, *step), inner) for step, inner in parts(part)]


def _check_words(part: Schema, at: str) -> None:
    kinds = part.get("type", [])
    for kind in kinds if isinstance(kinds, list | tuple) else [kinds]:
        if kind not in TYPES:
            raise DeclarationError(f"{at}: type {kind!r} is unknown. Known: {', '.join(TYPES)}.")
    required = part.get("required", [])
    if not isinstance(required, list | tuple) or not all(isinstance(key, str) for key in required):
        raise DeclarationError(f"{at}: 'required' must be a list of keys; it stands beside 'properties'.")


def target(root: Schema, ref: Any, *, at: str = "config_spec") -> Any:
    """The part of a schema that ``#/...`` names.

    Raises:
        DeclarationError: there is none, or the reference leads elsewhere.
    """
    if not isinstance(ref, str) or not (ref == "#" or ref.startswith("#/")):
        raise DeclarationError(
            f"{at}: reference {ref!r}: a config's schema may refer to its own parts only, as '#/...'."
        )
    try:
        return schema_tree.at(root, unquote(ref[1:]))
    except LookupError as error:
        raise DeclarationError(f"{at}: reference '{ref}' leads nowhere: there is no {error.args[0]!r}.") from None


def layers(root: Schema, schema: Any, seen: tuple[int, ...] = (), *, branches: bool = False) -> Iterator[Schema]:
    """A schema and all that holds beside it: what it refers to, and the parts of its ``allOf``; each once.

    ``branches``: also what may hold: the parts of ``anyOf`` and ``oneOf``.
    """
    if not isinstance(schema, Mapping) or id(schema) in seen:
        return
    yield schema
    seen = (*seen, id(schema))
    if "$ref" in schema:
        yield from layers(root, target(root, schema["$ref"]), seen, branches=branches)
    for key in UNIONS if branches else ("allOf",):
        for part in schema.get(key, ()):
            yield from layers(root, part, seen, branches=branches)


def properties(root: Schema, schema: Any, *, branches: bool = False) -> dict[str, Any]:
    """The properties that a schema names, its own first; with ``branches`` also those in ``anyOf`` and ``oneOf``.

    One that stands in several layers becomes an ``allOf`` (of branches: an ``anyOf``).
    """
    found: dict[str, list[Any]] = {}
    for layer in layers(root, schema, branches=branches):
        for name, part in layer.get("properties", {}).items():
            found.setdefault(name, []).append(part)
    several = "anyOf" if branches else "allOf"
    return {name: named[0] if len(named) == 1 else {several: named} for name, named in found.items()}


def required(root: Schema, schema: Any) -> list[str]:
    """The keys that must be there, in the order in which the schema names them."""
    return list(dict.fromkeys(key for layer in layers(root, schema) for key in layer.get("required", ())))


def types(root: Schema, schema: Any) -> set[str]:
    """The JSON types a value may have; empty where the schema does not say."""
    found: set[str] = set()
    for layer in layers(root, schema, branches=True):
        kinds = types_of(layer)
        found |= set(kinds)
        if not kinds:
            values = layer.get("enum", [layer["const"]] if "const" in layer else [])
            found |= {type_of(value) for value in values}
    if not found and properties(root, schema):
        return {"object"}
    return found


def allows_null(root: Schema, schema: Any) -> bool:
    """Whether null is a value here; a schema that says nothing of types takes it, too."""
    kinds = types(root, schema)
    return not kinds or "null" in kinds


def secret_paths(root: Schema) -> frozenset[Path]:
    """The paths of what is marked ``secret: true``, ``writeOnly: true`` or ``format: password``."""
    return marked_paths(root, is_secret)


def tuning_paths(root: Schema) -> frozenset[Path]:
    """The paths of what is marked ``tuning: true``: it says how a source is read, not what."""
    return marked_paths(root, lambda schema: schema.get("tuning") is True)


def marked_paths(root: Schema, is_marked: Callable[[Schema], bool]) -> frozenset[Path]:
    """The paths of what a schema marks; ``*`` stands for any place in a list and any key of an open object."""
    found: set[Path] = set()

    def walk(schema: Any, path: Path, above: tuple[int, ...]) -> None:
        if not isinstance(schema, Mapping) or id(schema) in above:
            return
        above = (*above, id(schema))
        if path and is_marked(schema):
            found.add(path)
            return
        if "$ref" in schema:
            walk(target(root, schema["$ref"]), path, above)
        for way, part in parts(schema):
            if way[0] == "properties":
                walk(part, (*path, way[1]), above)
            elif way[0] in ("additionalProperties", "patternProperties", "items", "prefixItems", "additionalItems"):
                walk(part, (*path, ANY), above)
            elif way[0] in (*UNIONS, "if", "then", "else", "dependentSchemas", "dependencies"):
                walk(part, path, above)

    walk(root, (), ())
    return frozenset(found)


def is_secret(schema: Schema) -> bool:
    """Whether a schema marks its value as a secret."""
    return schema.get("secret") is True or schema.get("writeOnly") is True or schema.get("format") == "password"
