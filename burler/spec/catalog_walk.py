"""Every place of a schema that came from anywhere: wrong kinds are handed out, not tripped over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from burler.schema_tree import DEFINITIONS, TYPES, UNIONS, VALUES, parts

MOST_DEPTH = 100
"""Schemas inside one another; below that nobody looks. Readers in most languages give up at a few hundred."""

Role = Literal["top", "field", "items", "values", "branch", "other"]
"""Where a schema stands: at the top, under ``properties``, in an array, in a map, in a union, or in a condition
(``not``, ``if``, ...), which says nothing of what fields there are."""

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_ROLES: dict[str, Role] = {
    "properties": "field",
    **dict.fromkeys(("items", "prefixItems"), "items"),
    **dict.fromkeys((*VALUES, "patternProperties"), "values"),
    **dict.fromkeys(UNIONS, "branch"),
}


@dataclass(frozen=True, slots=True)
class Spot:
    """One place of a schema.

    Attributes:
        path: as people write it: ``address.city``, ``tags[]``; "" at the top.
        crumb: as a breadcrumb; branches of unions leave no trace in it.
        node: what stands there, of any kind.
        depth: so many schemas are around it.
    """

    path: str
    crumb: tuple[str, ...]
    node: Any
    role: Role
    depth: int = 0


def spots(schema: Any, *, without: frozenset[str] = frozenset()) -> Iterator[Spot]:
    """Every place of a schema, from the top down. ``definitions`` are left out: no row follows them.

    Args:
        without: fields of the top that are left out, with all that is in them.
    """
    stack = [Spot("", (), schema, "top")]
    while stack:
        spot = stack.pop()
        yield spot
        if spot.depth >= MOST_DEPTH:
            continue
        below = [
            Spot(*_at(spot, role, key), node, "other" if spot.role == "other" else role, spot.depth + 1)
            for role, key, node in children(spot.node)
            if not (spot.role == "top" and role == "field" and key in without)
        ]
        stack.extend(reversed(below))


def children(node: Any) -> Iterator[tuple[Role, str, Any]]:
    """What stands directly below a schema: (role, field's name or keyword, what stands there)."""
    for way, part in parts(node):
        role = _ROLES.get(way[0], "other")
        if way[0] in DEFINITIONS or (isinstance(part, bool) and role not in ("field", "items", "branch")):
            continue
        yield role, way[1] if role == "field" else "*" if role == "values" else way[0], part


def _at(spot: Spot, role: Role, key: str) -> tuple[str, tuple[str, ...]]:
    if role == "items":
        return f"{spot.path}[]", (*spot.crumb, "items")
    if role == "field":
        return _joined(spot.path, key), (*spot.crumb, "properties", key)
    if role == "values":
        return _joined(spot.path, "*"), (*spot.crumb, "*")
    return spot.path, spot.crumb


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def own_types(node: Any) -> frozenset[str] | None:
    """The types that a schema's own ``type`` names; None if it names none, or not in words that exist."""
    given = node.get("type") if isinstance(node, Mapping) else None
    words = [given] if isinstance(given, str) else given
    if not isinstance(words, list | tuple) or not words:
        return None
    return frozenset(words) if all(isinstance(word, str) and word in TYPES for word in words) else None


def types_of(node: Any, depth: int = 0) -> frozenset[str] | None:
    """The types of values that a schema takes, unions followed; None where it does not say."""
    own = own_types(node)
    if own is not None or not isinstance(node, Mapping) or depth > MOST_DEPTH:
        return own
    for word in ("anyOf", "oneOf"):
        branches = node.get(word)
        if isinstance(branches, list | tuple) and branches:
            found = [types_of(branch, depth + 1) for branch in branches]
            known = [types for types in found if types is not None]
            return frozenset().union(*known) if len(known) == len(found) else None
    return None


def reference(node: Any) -> str | None:
    """The keyword of a schema that is a reference; None if it is none."""
    if not isinstance(node, Mapping):
        return None
    return next((word for word in REFERENCES if isinstance(node.get(word), str)), None)
