"""What a schema says of types, and which of it targets can't make columns of (C107, C123, C124, C131 to C133)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from burler.errors import DeclarationError
from burler.schema.type_names import check_types
from burler.schema_tree import TYPES, UNIONS
from burler.spec.catalog_walk import Spot, own_types, reference, types_of
from burler.spec.catalog_words import Reporter, cut, quoted, said, texts

_TIMES = ("datetime", "timestamp", "timestamptz", "isodatetime", "datetimetz", "iso8601", "rfc3339")
_FORMATS = {**dict.fromkeys(_TIMES, "date-time"), "isodate": "date", "singerdecimal": "singer.decimal"}
_RIGHT = ("date-time", "date", "singer.decimal")


def check_top(report: Reporter, schema: Mapping[str, Any]) -> None:
    """Report a stream whose schema describes no object with fields."""
    if reference(schema) is not None:
        return
    types = own_types(schema)
    if types is not None and "object" not in types:
        report.add("C107", f"the schema's type is {quoted(sorted(types))}, but a row is an object")
        return
    properties = schema.get("properties")
    if properties or (properties is not None and not isinstance(properties, Mapping)):
        return  # what is no object is C125's
    further = schema.get("additionalProperties")
    if further is True or isinstance(further, Mapping) or schema.get("patternProperties"):
        return
    union = next((word for word in UNIONS if schema.get(word)), None)
    where = f": those in '{union}' are not looked at" if union else ""
    report.add("C107", f"the schema has no 'properties' at its top{where}, so that there is no column")


def check_type(report: Reporter, spot: Spot) -> None:
    """Report a type that JSON Schema does not have, else what is hard for targets."""
    node = spot.node
    problem = _type_problem(node["type"]) if isinstance(node, Mapping) and "type" in node else None
    if problem is not None:
        report.add("C123", problem, path=spot.path)
    elif spot.role != "other":
        for fact in _hard(spot):
            report.add("C124", fact, path=spot.path)


def _type_problem(given: Any) -> str | None:
    for name in given if isinstance(given, list | tuple) else [given]:
        if not isinstance(name, str):
            return f"a type is one of {', '.join(TYPES)} (or a list of them), not {said(name)}"
        if name not in TYPES:
            try:
                check_types({"type": name[:60]}, where="")
            except DeclarationError as error:
                hint = str(error).partition(". ")[2]
                return f"there is no type '{cut(name)}'. {hint}"
    return None if given else "the list of types is empty, which no value fits"


def _hard(spot: Spot) -> Iterator[str]:
    node = spot.node
    if isinstance(node, bool):
        yield f"the schema is {said(node)}: it names no type"
    if not isinstance(node, Mapping) or reference(node) is not None:
        return
    types = own_types(node)
    if types is None:  # at the top nobody asks for it: that there are fields is enough
        yield from _without_type(node, spot)
    else:
        several = _several(types)
        if several:
            yield f"values may be of several types ({several}), and a column has one"
        elif types == {"null"} and spot.role != "branch":
            yield "the type is null alone: there is no column type for that"
    if types is not None and "array" in types:
        if isinstance(node.get("items"), list | tuple) or "prefixItems" in node:
            yield "each position of the array has a schema of its own (a tuple)"
        elif "items" not in node:
            yield "an array without 'items': nothing says what its elements are"
    if node.get("patternProperties"):
        yield "'patternProperties': the fields' names are not known beforehand"


def _without_type(node: Mapping[str, Any], spot: Spot) -> Iterator[str]:
    branches = [one for word in ("anyOf", "oneOf") for one in _listed(node.get(word))]
    if not branches:
        if spot.role not in ("branch", "top"):
            yield f"no 'type'{' but allOf' if 'allOf' in node else ''}: a target can't tell what the column is"
        return
    found = [types_of(branch) for branch in branches if reference(branch) is None]
    if None in found:
        yield "a union ('anyOf', 'oneOf') with a branch that has no type"
        return
    kinds = [types - {"null"} for types in found if types is not None and types != {"null"}]
    several = _several(frozenset().union(*kinds))
    if several:
        yield f"a union ('anyOf', 'oneOf') of several types ({several}), and a column has one"
    elif len(kinds) > 1 and any(types & {"object", "array"} for types in kinds):
        yield "a union ('anyOf', 'oneOf') of several objects or arrays: targets take the first, or none"


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _several(types: frozenset[str]) -> str:
    """The types, if they are more than one; whole numbers are numbers."""
    kinds = types - {"null"}
    return ", ".join(sorted(kinds)) if len(kinds) > 1 and kinds != {"integer", "number"} else ""


def check_values(report: Reporter, spot: Spot) -> None:
    """Report required fields that do not exist, formats that nobody knows, and null left out of an enum."""
    node = spot.node
    if not isinstance(node, Mapping) or spot.role == "other":
        return
    missing = [] if spot.role == "branch" else _required_in_vain(node)
    if missing:
        report.add("C131", f"'required' lists {quoted(missing)}, which 'properties' does not have", path=spot.path)
    meant = _meant_format(node)
    if meant is not None:
        fact = f"there is no format '{cut(node['format'])}', so that this is plain text. Did you mean '{meant}'?"
        report.add("C132", fact, path=spot.path)
    types, listed = own_types(node), node.get("enum")
    if types is not None and "null" in types and isinstance(listed, list | tuple) and listed and None not in listed:
        report.add("C133", "the type may be null, but 'enum' does not list null: no null fits", path=spot.path)


def _required_in_vain(node: Mapping[str, Any]) -> list[str]:
    properties, further = node.get("properties"), node.get("additionalProperties")
    if not isinstance(properties, Mapping) or further is True or isinstance(further, Mapping):
        return []
    if any(word in node for word in (*UNIONS, "patternProperties")) or reference(node) is not None:
        return []
    return [name for name in texts(node.get("required")) or () if name not in properties]


def _meant_format(node: Mapping[str, Any]) -> str | None:
    given, types = node.get("format"), own_types(node)
    if not isinstance(given, str) or given in _RIGHT or types is None or "string" not in types:
        return None
    plain = re.sub(r"[^a-z0-9]", "", given[:60].lower())
    return _FORMATS.get(plain) or (given.lower() if given.lower() in _RIGHT else None)
