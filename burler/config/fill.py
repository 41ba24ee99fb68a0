"""A config with the defaults of its JSON Schema, at every depth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from burler.config import schemas
from burler.config.schemas import Schema
from burler.regex import compile_pattern

_ABSENT = object()


def plain_copy(value: Any) -> Any:
    """A config again, with containers of its own; what else it holds (a test may put anything in) is shared."""
    if isinstance(value, Mapping):
        return {key: plain_copy(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain_copy(inner) for inner in value]
    return value


def fill(root: Schema, config: Mapping[str, Any]) -> dict[str, Any]:
    """A new config with each missing key that has a default.

    A null where the schema allows none counts as missing. A missing object is made of the defaults of its keys,
    if no key that it requires is left without. Where whole numbers are asked for, ``5.0`` becomes 5. What stands
    in ``anyOf``, ``oneOf`` or ``if`` gives no defaults: which branch holds is not known beforehand.
    """
    filled: dict[str, Any] = _fill(root, root, config, ())
    return filled


def _fill(root: Schema, schema: Any, value: Any, above: tuple[int, ...]) -> Any:
    if isinstance(value, Mapping):
        return _fill_object(root, schema, value, above)
    if isinstance(value, list | tuple):
        return [_fill(root, _item(root, schema, i), item, ()) for i, item in enumerate(value)]
    if isinstance(value, float) and value.is_integer():
        kinds = schemas.types(root, schema)
        return int(value) if "integer" in kinds and "number" not in kinds else value
    return value


def _item(root: Schema, schema: Any, place: int) -> Any:
    """The schema of a list's item at a place: of the first ones by ``prefixItems`` or a list of ``items``."""
    found = []
    for layer in schemas.layers(root, schema):
        first, rest = layer.get("prefixItems", ()), layer.get("items", {})
        if isinstance(rest, list | tuple):
            first, rest = rest, layer.get("additionalItems", {})
        found.append(first[place] if place < len(first) else rest)
    said = [part for part in found if isinstance(part, Mapping) and part]
    return {"allOf": said} if len(said) > 1 else said[0] if said else {}


def _fill_object(root: Schema, schema: Any, value: Mapping[str, Any], above: tuple[int, ...]) -> dict[str, Any]:
    named = schemas.properties(root, schema)
    required = schemas.required(root, schema)
    rest: Any = next(
        (layer["additionalProperties"] for layer in schemas.layers(root, schema) if "additionalProperties" in layer), {}
    )
    patterns = [found for layer in schemas.layers(root, schema) for found in layer.get("patternProperties", {}).items()]
    out: dict[str, Any] = {}
    for key, inner in value.items():
        parts = [part for pattern, part in patterns if compile_pattern(pattern).search(key)]
        if key in named:
            parts.insert(0, named[key])
        part = {"allOf": parts} if len(parts) > 1 else parts[0] if parts else rest
        if key not in named or inner is not None or schemas.allows_null(root, part):
            out[key] = _fill(root, part, inner, ())
    for key, part in named.items():
        if key not in out:
            made = _default(root, part, above, must=key in required)
            if made is not _ABSENT:
                out[key] = made
    return out


def _default(root: Schema, schema: Any, above: tuple[int, ...], *, must: bool) -> Any:
    """What a missing key gets. ``above``: the schemas a missing object stands in, so that recursion ends."""
    layers = list(schemas.layers(root, schema))
    for layer in layers:
        if "default" in layer:
            return _fill(root, schema, layer["default"], above)
    if not layers or id(layers[-1]) in above or schemas.types(root, schema) != {"object"}:
        return _ABSENT
    made = _fill_object(root, schema, {}, (*above, id(layers[-1])))
    lacking = [key for key in schemas.required(root, schema) if key not in made]
    if lacking:
        return made if must else _ABSENT  # the error then names what lacks inside
    return made or _ABSENT
