"""Schemas made by other tools in the form that Singer's targets read: nullable types as lists of types, tuples as
plain arrays, choices with a type, and an object with named fields at the top.

What is folded allows the same values as before, or more (an array instead of a tuple); never fewer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from burler.schema.merge import distinct, is_plain_type, mapping, sees_all
from burler.schema_tree import type_of, types_of

_MAPS = ("properties", "patternProperties")
_SINGLE = ("items", "additionalProperties", "additionalItems", "contains", "not", "propertyNames")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_NOTES = frozenset(
    ("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment", "example")
)
_NUMBER = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "format", "scale", "precision")
_OF_TYPE: dict[str, tuple[str, ...]] = {
    "string": ("format", "pattern", "minLength", "maxLength", "contentEncoding", "contentMediaType"),
    "integer": _NUMBER,
    "number": _NUMBER,
    "array": ("items", "minItems", "maxItems", "uniqueItems"),
    "object": (
        "properties",
        "required",
        "additionalProperties",
        "patternProperties",
        "minProperties",
        "maxProperties",
        "propertyNames",
    ),
}
# Keywords that null passes, whatever they hold.
_OF_NO_NULL = frozenset({"type", *_NOTES, *(word for words in _OF_TYPE.values() for word in words)})


def simplify(node: Any) -> Any:
    """A copy in Singer's form; the schema must hold no ``$ref`` any more."""
    return _simple(node, exact=False)


def _simple(node: Any, *, exact: bool) -> Any:
    """``exact``: a schema around this one counts or turns round what it takes, so it may not take more either."""
    if not isinstance(node, Mapping):
        return node
    out = dict(node)
    for keyword in _MAPS:
        if isinstance(out.get(keyword), Mapping):
            out[keyword] = {name: _simple(sub, exact=exact) for name, sub in out[keyword].items()}
    for keyword in _SINGLE:
        if isinstance(out.get(keyword), Mapping):
            turned = keyword == "not" or (keyword == "contains" and "maxContains" in out)
            out[keyword] = _simple(out[keyword], exact=exact or turned)
    if sees_all(out):  # which branches fit decides what is left over for these
        return out
    for keyword in (*_LISTS, "items"):
        if isinstance(out.get(keyword), list):
            out[keyword] = _all_simple(out[keyword], exact=exact, one_fits=keyword == "oneOf")
    if not exact:
        _tuple_to_array(out)
    if isinstance(out.get("type"), list) and out["type"] and is_plain_type(out["type"]):
        out["type"] = _listed(dict.fromkeys(out["type"]))
    if "const" in out and "enum" not in out:
        out["enum"] = [out.pop("const")]
    if isinstance(out.get("enum"), list) and out["enum"] and "type" not in out:
        out = {"type": _listed(dict.fromkeys(type_of(value) for value in out["enum"])), **out}
    for keyword in ("anyOf", "oneOf"):
        if isinstance(out.get(keyword), list):
            out = _fold(out, keyword, exact=exact)
    return out


def _all_simple(parts: list[Any], *, exact: bool, one_fits: bool) -> list[Any]:
    """Of a ``oneOf`` (``one_fits``) a branch that takes more would rob another of its values, unless their types
    tell them apart."""
    if exact or not one_fits:
        return [_simple(part, exact=exact) for part in parts]
    found = [_simple(part, exact=True) for part in parts]
    return [_simple(part, exact=False) for part in found] if _are_apart(found) else found


def _are_apart(branches: list[Any]) -> bool:
    """Whether no value can be of the types of two branches."""
    seen: set[str] = set()
    for branch in branches:
        mine = {_family(name) for name in types_of(branch)}
        if not mine or mine & seen:
            return False
        seen |= mine
    return True


def _listed(types: Iterable[str]) -> Any:
    """One type as text, several as a list with "null" first."""
    names = sorted(types, key=lambda name: name != "null")
    return names[0] if len(names) == 1 else names


def _tuple_to_array(node: dict[str, Any]) -> None:
    """Items by their position become items of any of these kinds."""
    places = node.pop("prefixItems", None)
    rest = node.get("items")
    if isinstance(rest, list):  # drafts before 2020-12
        places, rest = rest, node.pop("additionalItems", True)
    elif places is None:
        return
    elif rest is None:
        rest = node.get("maxItems") != len(places)
    if rest is True:
        node["items"] = {}
        return
    kinds = [*places, *([rest] if isinstance(rest, Mapping) else [])]
    node["items"] = simplify({"anyOf": kinds}) if kinds else {}


def _fold(node: dict[str, Any], keyword: str, *, exact: bool) -> dict[str, Any]:
    """A union as one schema with a list of types, if that says the same; else with its branches tidied."""
    branches = node[keyword] if exact and keyword == "oneOf" else _distinct(node[keyword], keyword, exact=exact)
    beside = {key: value for key, value in node.items() if key != keyword}
    if set(beside) - _NOTES:
        return {**beside, keyword: branches}
    if exact and not (_are_apart(branches) and all(map(_types_fit_choices, branches))):
        return {**beside, keyword: branches}
    if any(branch is True or (isinstance(branch, Mapping) and not set(branch) - _NOTES) for branch in branches):
        return beside
    if len(branches) == 1 and isinstance(branches[0], Mapping):
        return {**branches[0], **beside}
    folded = _one_schema(branches)
    if folded is None:
        return {**beside, keyword: branches}
    return {**folded, **beside}


def _distinct(branches: list[Any], keyword: str, *, exact: bool) -> list[Any]:
    """Branches without repeats; unions among them taken apart; what a plain type covers left out.

    A ``oneOf`` in an ``anyOf`` takes more when it is taken apart: not where that counts (``exact``).

    A value that fits one branch of a ``oneOf`` alone still does: what is left out has its like among the others,
    so no value fits it alone. A union in it stays whole: a value may fit two of that union's branches.
    """
    flat: list[Any] = []
    for branch in branches:
        inner = [word for word in ("anyOf", "oneOf") if isinstance(branch, Mapping) and word in branch]
        is_union = len(inner) == 1 and isinstance(branch[inner[0]], list) and not set(branch) - _NOTES - {inner[0]}
        if is_union and keyword == "anyOf" and not (exact and inner == ["oneOf"]):
            flat += branch[inner[0]]
        else:
            flat.append(branch)
    out = distinct(flat)
    if any(_takes_null(branch) for branch in out):
        out = [branch for branch in out if types_of(branch) != ("null",)]
    plain = {name for branch in out if _is_plain(branch) for name in types_of(branch)}
    covered = plain | ({"integer"} if "number" in plain else set())
    return [
        branch for branch in out if _is_plain(branch) or not types_of(branch) or not set(types_of(branch)) <= covered
    ]


def _takes_null(branch: Any) -> bool:
    """Whether null surely fits a branch, among other values: by its type, and no keyword speaks of null."""
    kinds = types_of(branch)
    return "null" in kinds and len(kinds) > 1 and not set(branch) - _OF_NO_NULL


def _types_fit_choices(branch: Any) -> bool:
    choices = branch.get("enum", [])
    kinds = {"integer", *types_of(branch)} if "number" in types_of(branch) else set(types_of(branch))
    return isinstance(choices, list) and {type_of(value) for value in choices} <= kinds


def _is_plain(branch: Any) -> bool:
    return isinstance(branch, Mapping) and bool(types_of(branch)) and not set(branch) - _NOTES - {"type"}


def _one_schema(branches: list[Any]) -> dict[str, Any] | None:
    """Branches of different types as one schema: each keyword speaks of one type only, so they can stand together."""
    types: dict[str, None] = {}
    words: dict[str, Any] = {}
    choices: list[Any] = []
    with_choices = 0
    for branch in branches:
        mine = types_of(branch)
        allowed = {word for name in mine for word in _OF_TYPE.get(name, ())} | {"type", "enum"} | _NOTES
        if not mine or set(branch) - allowed:
            return None
        overlap = {_family(name) for name in mine} & {_family(name) for name in types}
        special = {word: value for word, value in branch.items() if word not in _NOTES and word not in ("type", "enum")}
        if overlap and (special or words or with_choices or "enum" in branch):
            return None
        if set(special) & set(words):
            return None
        types.update(dict.fromkeys(mine))
        words.update(special)
        if "enum" in branch or mine == ("null",):
            with_choices += 1
            choices += branch.get("enum", [None])
    if "number" in types:
        types.pop("integer", None)
    out = {"type": _listed(types), **words}
    if choices and choices != [None]:
        if with_choices != len(branches):
            return None
        out["enum"] = choices
    named = [branch for branch in branches if types_of(branch) != ("null",)]
    if len(named) == 1:
        out.update({key: value for key, value in named[0].items() if key in _NOTES})
    return out


def _family(name: str) -> str:
    return "number" if name == "integer" else name


def as_object(schema: Any) -> dict[str, Any] | None:
    """A schema of records: an object with ``properties`` at its top; None if it describes no such thing.

    The fields of a union of objects stand side by side; a field that differs may be any of its kinds. Only
    what all branches require is required.
    """
    if not isinstance(schema, Mapping):
        return None
    out = dict(schema)
    for keyword in ("anyOf", "oneOf"):
        if isinstance(out.get(keyword), list):
            branches = [as_object(branch) for branch in out.pop(keyword) if types_of(branch) != ("null",)]
            found = [branch for branch in branches if branch is not None]
            if not found or len(found) < len(branches):
                return None
            out = _side_by_side(out, found)
    if isinstance(out.get("allOf"), list):  # what could not be merged exactly still says which fields there are
        parts = [part for part in map(as_object, out["allOf"]) if part is not None]
        named = {name: sub for part in parts for name, sub in part["properties"].items()}
        out["properties"] = {**named, **mapping(out.get("properties"))}
    if not isinstance(out.get("properties"), Mapping) or not out["properties"]:
        return None
    if types_of(out) and "object" not in types_of(out):
        return None
    return {**out, "type": "object"}


def _side_by_side(base: dict[str, Any], branches: list[dict[str, Any]]) -> dict[str, Any]:
    kinds: dict[str, list[Any]] = {}
    for branch in branches:
        for name, sub in branch["properties"].items():
            kinds.setdefault(name, []).append(sub)
    out = {**base, "type": "object"}
    own = dict(mapping(base.get("properties")))
    for name, subs in kinds.items():
        union = simplify({"anyOf": subs})
        own[name] = {"allOf": [own[name], union]} if name in own and own[name] != union else union
    out["properties"] = own
    common = set.intersection(*(set(_required(branch)) for branch in branches))
    required = [*_required(base), *sorted(common - set(_required(base)))]
    if required:
        out["required"] = required
    extra = [branch["additionalProperties"] for branch in branches if "additionalProperties" in branch]
    if len(extra) == len(branches) and all(one == extra[0] for one in extra):
        out.setdefault("additionalProperties", extra[0])
    elif any(one is not False for one in extra):
        out.setdefault("additionalProperties", True)
    return out


def _required(schema: Mapping[str, Any]) -> list[str]:
    names = schema.get("required")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list | tuple) else []
