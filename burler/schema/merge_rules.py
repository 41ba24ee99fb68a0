"""Keywords that reach beyond their own schema: what two schemas say of fields that one of them does not declare."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from burler.schema.merge_values import mapping

OBJECT = ("properties", "patternProperties", "additionalProperties")
ARRAY = ("items", "prefixItems", "additionalItems")
NAMED = ("dependencies", "dependentSchemas", "dependentRequired")
SEES_ALL = ("unevaluatedProperties", "unevaluatedItems")
"""These judge what all keywords beside them, and below them in allOf, leave over; a merge would show them more."""
_SEEN = frozenset((*SEES_ALL, *OBJECT, *ARRAY, *NAMED, "allOf", "anyOf", "oneOf", "if", "contains"))
_LITERAL = re.compile(r"\^?[A-Za-z0-9_ :/@#=~-]*\$?")  # patterns that mean just what they say


def sees_all(part: Any) -> bool:
    """Whether a schema judges what its other keywords leave over."""
    return isinstance(part, Mapping) and any(key in part for key in SEES_ALL)


def must_stand(part: Any, others: Iterable[Any]) -> bool:
    """Whether a schema would judge more if it were merged with one of the others."""
    return sees_all(part) and any(isinstance(other, Mapping) and not _SEEN.isdisjoint(other) for other in others)


def extra_of(node: Mapping[str, Any]) -> Any:
    """What a schema asks of fields that it does not know."""
    return node.get("additionalProperties", True)


def is_unclear(node: Mapping[str, Any], fields: Mapping[str, Any]) -> bool:
    """Whether it can't be told, for one of these fields, if a pattern takes it from ``node``'s rule for further ones.

    No regular expression of a document is run on its names: one of ten letters can take years.
    """
    extra, known = extra_of(node), mapping(node.get("properties"))
    if not isinstance(extra, Mapping) or not extra or all(name in known for name in fields):
        return False
    patterns = mapping(node.get("patternProperties"))
    return not all(isinstance(pattern, str) and _LITERAL.fullmatch(pattern) for pattern in patterns)


def matches_literal(pattern: str, name: str) -> bool:
    """Whether a pattern, which is not ``is_unclear``, is found in a name."""
    begins, ends = pattern.startswith("^"), pattern.endswith("$")
    text = pattern.removeprefix("^").removesuffix("$")
    if begins and ends:
        return name == text
    return name.startswith(text) if begins else name.endswith(text) if ends else text in name
