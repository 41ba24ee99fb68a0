"""Single nodes of a JSON Schema as msgspec types: what it says exactly as JSON Schema does, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from burler.records.shape import constraints

# No "number": msgspec makes a float of a Decimal without a word, and knows no NaN; such fields are looked at.
# Whole numbers beyond 64 bits are looked at, too: so a struct says that its numbers are within them.
_INT64 = range(-(2**63), 2**63)
SCALARS: dict[str, Any] = {
    "boolean": bool,
    "integer": Annotated[int, msgspec.Meta(ge=_INT64.start, le=_INT64.stop - 1)],
    "string": str,
}
BARE: dict[str, Any] = {**SCALARS, "integer": int}
"""The same for what has bounds of its own."""
_LENGTHS = {"minLength": "min_length", "maxLength": "max_length", "pattern": "pattern"}
SIZES = {"minItems": "min_length", "maxItems": "max_length"}
_BOUNDS = {"minimum": "ge", "maximum": "le", "exclusiveMinimum": "gt", "exclusiveMaximum": "lt"}


class Unfit(Exception):
    """The node has no form in msgspec."""


def either(kind: Any, other: Any) -> Any:
    """One or the other; anything at all, if one of them is."""
    return Any if kind is Any else kind | other


def is_name(name: str) -> bool:
    """Whether msgspec takes a field's name: no quote, no backslash, no control character."""
    return name.isprintable() and '"' not in name and "\\" not in name


def arguments(schema: Mapping[str, Any], words: Mapping[str, str]) -> dict[str, Any]:
    """Constraints as arguments of ``msgspec.Meta``.

    Raises:
        Unfit: one is left over.
    """
    held = constraints.CONSTRAINTS & schema.keys()
    if not held <= set(words) or constraints.ALSO in schema:
        raise Unfit
    return {words[word]: schema[word] for word in held}


def meta(name: str, schema: Mapping[str, Any]) -> msgspec.Meta:
    """The constraints of a text or an integer.

    Raises:
        Unfit: msgspec can't hold one of them as JSON Schema means it.
    """
    if name == "string":
        lengths = arguments(schema, _LENGTHS)
        if "pattern" in schema:
            longest = constraints.quick_length(schema["pattern"])
            if not longest:
                raise Unfit
            lengths["max_length"] = min(longest, lengths.get("max_length", longest))  # longer ones are looked at
        return msgspec.Meta(**lengths)
    if name != "integer":
        raise Unfit
    bounds = arguments(schema, _BOUNDS)
    if not all(type(bound) is int and bound in _INT64 for bound in bounds.values()):
        raise Unfit
    lowest = {} if "gt" in bounds else {"ge": _INT64.start}
    highest = {} if "lt" in bounds else {"le": _INT64.stop - 1}
    return msgspec.Meta(**(lowest | highest | bounds))


def literal(schema: Mapping[str, Any], wanted: list[str]) -> Any:
    """An ``enum`` of texts or of integers."""
    choices = schema["enum"]
    kinds = {type(choice) for choice in choices} if isinstance(choices, list | tuple) else set()
    held = constraints.CONSTRAINTS & schema.keys()
    special = schema.get("format") in ("date-time", "date", "singer.decimal")
    if held != {"enum"} or constraints.ALSO in schema or special:
        raise Unfit
    if kinds - {type(None)} not in ({str}, {int}):
        raise Unfit
    name = "string" if str in kinds else "integer"
    if set(wanted) - {"null"} != {name} or (type(None) in kinds and "null" not in wanted):
        raise Unfit
    if name == "integer" and not all(choice is None or choice in _INT64 for choice in choices):
        raise Unfit
    return Literal[tuple(choices)]
