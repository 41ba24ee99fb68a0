"""Constraints that a whole Arrow column can be held against in one kernel: bounds, lengths, choices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from burler.schema.overlay import ALSO, CONSTRAINTS

Limit = Callable[[Any], bool]
"""Whether an array surely keeps a constraint. No is no verdict: then each value is looked at."""

_NUMERIC = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_LENGTHS = frozenset({"minLength", "maxLength"})
_SIZES = frozenset({"minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"})


def limits_of(kind: pa.DataType, schema: Mapping[str, Any]) -> tuple[Limit, ...] | None:
    """The checks of a node's constraints for arrays of a type; None where a kernel can't tell."""
    if ALSO in schema:
        return None
    named = CONSTRAINTS & schema.keys()
    number = bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
    text = bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
    if not (number or text) or not named <= _NUMERIC | _LENGTHS | _SIZES | {"enum"}:
        return None
    if number and "string" in (schema.get("type") or ()):  # it may go out as text
        return None
    limits: list[Limit | None] = []
    if "enum" in named:
        limits.append(_choice(schema["enum"]) if text else None)
    if text and named & _LENGTHS:
        limits.append(_length(schema.get("minLength"), schema.get("maxLength")))
    if number and named & _NUMERIC:
        limits.append(_bounds(kind, schema))
        if "multipleOf" in named:
            limits.append(_multiple(kind, schema["multipleOf"]))
    return None if None in limits else tuple(limit for limit in limits if limit is not None)


def _choice(choices: Any) -> Limit | None:
    if not isinstance(choices, list | tuple):
        return None
    texts = [choice for choice in choices if isinstance(choice, str)]

    def holds(array: Any) -> bool:
        if array.null_count and not any(choice is None for choice in choices):
            return False
        found = pc.is_in(array, pa.array(texts, array.type), skip_nulls=True)
        return bool(pc.all(pc.or_(found, array.is_null())).as_py())

    return holds


def _length(least: Any, most: Any) -> Limit | None:
    if not all(bound is None or type(bound) is int for bound in (least, most)):
        return None

    def holds(array: Any) -> bool:
        lengths = pc.min_max(pc.utf8_length(array)).as_py()
        if lengths["min"] is None:
            return True
        return bool((least is None or lengths["min"] >= least) and (most is None or lengths["max"] <= most))

    return holds


def _bounds(kind: pa.DataType, schema: Mapping[str, Any]) -> Limit | None:
    """Bounds, compared as the decimals that are written."""
    given = {word: schema[word] for word in _NUMERIC - {"multipleOf"} if word in schema}
    if not all(type(bound) in (int, float, Decimal) for bound in given.values()):  # draft 4's booleans too
        return None
    if pa.types.is_float16(kind) or (not pa.types.is_integer(kind) and kind.bit_width > 128):
        return None
    bounds = {word: Decimal(repr(bound)) if type(bound) is float else Decimal(bound) for word, bound in given.items()}

    def holds(array: Any) -> bool:
        ends = pc.min_max(array).as_py()
        if ends["min"] is None:
            return True
        low, high = (
            Decimal(repr(end)) if isinstance(end, float) else Decimal(end) for end in (ends["min"], ends["max"])
        )
        if not (low.is_finite() and high.is_finite()):
            return False
        return bool(
            ("minimum" not in bounds or low >= bounds["minimum"])
            and ("exclusiveMinimum" not in bounds or low > bounds["exclusiveMinimum"])
            and ("maximum" not in bounds or high <= bounds["maximum"])
            and ("exclusiveMaximum" not in bounds or high < bounds["exclusiveMaximum"])
        )

    return holds


def _multiple(kind: pa.DataType, step: Any) -> Limit | None:
    """Decimals of a type with no more digits than a step of 0.01 (or the like) allows, and integers."""
    if type(step) not in (int, float, Decimal):
        return None
    size = Decimal(repr(step)) if type(step) is float else Decimal(step)
    if not size.is_finite() or size <= 0 or size.normalize().as_tuple().digits != (1,):
        return None
    digits = -int(size.normalize().as_tuple().exponent)
    scale = 0 if pa.types.is_integer(kind) else kind.scale if pa.types.is_decimal(kind) else None
    return (lambda array: True) if scale is not None and scale <= digits else None
