"""Keywords of a JSON Schema with values that no draft of JSON Schema has (C125)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from burler.regex import compile_pattern
from burler.schema_tree import UNIONS
from burler.spec.catalog_walk import MOST_DEPTH, Spot
from burler.spec.catalog_words import Reporter, said, texts

Check = Callable[[Any], str | None]
"""Gives what is wrong with a keyword's value, as the end of a sentence; None if nothing is."""


def check_valid(report: Reporter, spot: Spot) -> None:
    """Report what is no schema, and keywords that have a wrong value."""
    node = spot.node
    if spot.depth >= MOST_DEPTH:
        report.add("C125", f"the schema is nested deeper than {MOST_DEPTH} levels", path=spot.path)
    elif isinstance(node, Mapping):
        for word, check in _CHECKS.items():
            problem = check(node[word]) if word in node else None
            if problem is not None:
                report.add("C125", f"'{word}' is {problem}", path=spot.path)
    elif not isinstance(node, bool):
        report.add("C125", f"{said(node)} stands where a schema should be", path=spot.path)


def _object(value: Any) -> str | None:
    return None if isinstance(value, Mapping) else f"{said(value)}; it is an object of names and schemas"


def _text(value: Any) -> str | None:
    return None if isinstance(value, str) else f"{said(value)}; it is text"


def _number(value: Any) -> str | None:
    return None if _is_number(value) else f"{said(value)}; it is a number"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _positive(value: Any) -> str | None:
    return None if _is_number(value) and value > 0 else f"{said(value)}; it is a number above 0"


def _exclusive(value: Any) -> str | None:
    return None if isinstance(value, bool) or _is_number(value) else f"{said(value)}; it is a number, or true or false"


def _count(value: Any) -> str | None:
    whole = _is_number(value) and value >= 0 and (isinstance(value, int) or value.is_integer())
    return None if whole else f"{said(value)}; it is a whole number, 0 or more"


def _truth(value: Any) -> str | None:
    return None if isinstance(value, bool) else f"{said(value)}; it is true or false"


def _required(value: Any) -> str | None:
    if isinstance(value, bool):
        return f"{said(value)}, as draft 3 had it; now the object around lists the names of its required fields"
    names = texts(value)
    if names is None:
        return f"{said(value)}; it is a list of names"
    return None if len(set(names)) == len(names) else "a list that names a field twice"


def _enum(value: Any) -> str | None:
    if not isinstance(value, list | tuple):
        return f"{said(value)}; it is a list of values"
    return None if value else "an empty list, which no value fits"


def _schemas(value: Any) -> str | None:
    good = isinstance(value, list | tuple) and len(value) > 0
    return None if good else f"{said(value)}; it is a list of one schema or more"


def _types(value: Any) -> str | None:
    """What is no type at all is C123's."""
    names = texts(value)
    return "a list that names a type twice" if names and len(set(names)) < len(names) else None


def _pattern(value: Any) -> str | None:
    if not isinstance(value, str):
        return f"{said(value)}; it is a regular expression"
    try:
        compile_pattern(value)
    except re.error as error:
        return f"{said(value)}, which does not compile as a regular expression: {str(error)[:80]}"
    return None


def _patterns(value: Any) -> str | None:
    if not isinstance(value, Mapping):
        return _object(value)
    wrong = next((problem for key in value if (problem := _pattern(key)) is not None), None)
    return f"an object with {wrong}" if wrong is not None else None


_CHECKS: dict[str, Check] = {
    "properties": _object,
    "patternProperties": _patterns,
    "dependencies": _object,
    "type": _types,
    "required": _required,
    "enum": _enum,
    **dict.fromkeys(UNIONS, _schemas),
    "pattern": _pattern,
    **dict.fromkeys(("format", "title", "description", "$ref"), _text),
    **dict.fromkeys(("minimum", "maximum"), _number),
    **dict.fromkeys(("exclusiveMinimum", "exclusiveMaximum"), _exclusive),
    "multipleOf": _positive,
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _count),
    "uniqueItems": _truth,
}
