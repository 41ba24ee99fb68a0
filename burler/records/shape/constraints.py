"""What a schema says of a value beside its type: ``enum``, bounds, lengths, ``pattern``, ``multipleOf``.

Numbers are compared as the decimals they are written as: 0.07 is a multiple of 0.01, and 1 equals 1.0 but not
``true``. Both spellings of the exclusive bounds count: draft 4's booleans and the numbers of later drafts.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Mapping, Sized
from decimal import Decimal
from typing import Any

from burler.regex import compile_pattern
from burler.schema.overlay import ALSO as ALSO
from burler.schema.overlay import CONSTRAINTS as CONSTRAINTS

_WIDEST = 10_000  # digits between two numbers of which one may be a multiple of the other
_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength"})
_NUMBERS = frozenset({int, float, Decimal})


def quick_length(pattern: Any) -> int:
    """Up to which length texts, a whole page of them, may be held against a ``pattern`` by Python's own engine; 0 where
    they may not."""
    try:
        compiled = compile_pattern(pattern) if isinstance(pattern, str) else None
    except re.error:
        return 0
    return compiled.longest if compiled is not None and compiled.is_quick else 0


def constrained(schema: Mapping[str, Any]) -> bool:
    """Whether a node (not those below it) says more than types."""
    return ALSO in schema or not CONSTRAINTS.isdisjoint(schema)


def broken(value: Any, schema: Mapping[str, Any]) -> str | None:
    """The first constraint that a value (as it is emitted) breaks, as ``maxLength 5``; None if it keeps all."""
    for keyword in CONSTRAINTS & schema.keys():
        check = _CHECKS.get(keyword)
        if check is not None and not check(value, schema[keyword], schema):
            return f"{keyword} {_shown(schema[keyword])}"
    for further in schema.get(ALSO, ()):
        also = broken(value, further)
        if also is not None:
            return also
    return None


def told_by_ends(schema: Mapping[str, Any], less: Collection[str] = ()) -> bool:
    """Whether all scalars of a column keep a node's constraints (but for some, ``less``) if its ``ends`` do."""
    return ALSO not in schema and (CONSTRAINTS & schema.keys()) - set(less) <= _BOUNDS


def ends(values: Collection[Any]) -> list[Any]:
    """Of some values the least and the greatest number, the shortest and the longest text."""
    kinds = set(map(type, values))
    numbers = values if kinds <= _NUMBERS else [value for value in values if type(value) in _NUMBERS]
    texts = values if kinds == {str} else [value for value in values if type(value) is str]
    found = [min(numbers), max(numbers)] if numbers else []
    return [*found, min(texts, key=len), max(texts, key=len)] if texts else found


def _shown(wanted: Any) -> str:
    text = ", ".join(map(repr, wanted[:8])) + (", ..." if len(wanted) > 8 else "") if isinstance(wanted, list) else ""
    return text or repr(wanted)[:120]


def _decimal(number: Any) -> Decimal | None:
    """A number as the decimal it is written as; None for anything else."""
    if isinstance(number, bool):
        return None
    if isinstance(number, float):
        return Decimal(repr(float(number)))
    return Decimal(number) if isinstance(number, int | Decimal) else None


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal, as JSON Schema means it."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(part, other[name]) for name, part in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    left, right = _decimal(one), _decimal(other)
    if left is not None and right is not None:
        return left == right
    return type(one) is type(other) and bool(one == other)


def _enum(value: Any, choices: Any, _schema: Mapping[str, Any]) -> bool:
    return not isinstance(choices, list | tuple) or any(same(value, choice) for choice in choices)


def _const(value: Any, wanted: Any, _schema: Mapping[str, Any]) -> bool:
    return same(value, wanted)


def _bound(holds: Callable[[Decimal, Decimal], bool], exclusive: str = "") -> Callable[..., bool]:
    def check(value: Any, bound: Any, schema: Mapping[str, Any]) -> bool:
        number, limit = _decimal(value), _decimal(bound)
        if number is None or limit is None:  # exclusiveMinimum of draft 4 is a boolean: see ``exclusive``
            return True
        return holds(number, limit) and not (schema.get(exclusive) is True and number == limit)

    return check


def _multiple(value: Any, step: Any, _schema: Mapping[str, Any]) -> bool:
    if type(value) is Decimal and value.is_finite():
        digits = digits_of_step(step)
        if digits is not None and -_exponent(value) <= digits:
            return True
    number, unit = _decimal(value), _decimal(step)
    if number is None or not unit or not number:
        return True
    if abs(number.adjusted() - unit.adjusted()) > _WIDEST:
        return False
    exponent = min(_exponent(number), _exponent(unit))
    return _scaled(number, exponent) % _scaled(unit, exponent) == 0


@functools.lru_cache(1024, typed=True)
def digits_of_step(step: Any) -> int | None:
    """How many digits behind the point a step of 1, 0.1, 0.01, ... allows; None for any other step."""
    unit = _decimal(step)
    if not unit or unit < 0 or unit.as_tuple().digits != (1,):
        return None
    return -_exponent(unit)


def are_multiples(values: Collection[Any], step: Any) -> bool:
    """Whether the numbers among some values surely are multiples of a step of 0.01 (or the like): by their digits."""
    digits = digits_of_step(step)
    numbers = map(_decimal, values) if digits is not None else ()
    return digits is not None and all(-_exponent(number) <= digits for number in numbers if number is not None)


def _exponent(number: Decimal) -> int:
    return int(number.as_tuple().exponent)


def _scaled(number: Decimal, exponent: int) -> int:
    """``number`` in units of 10^exponent: whole, and exact whatever the context's precision."""
    sign, digits, own = number.as_tuple()
    whole = functools.reduce(lambda left, digit: left * 10 + digit, digits, 0)
    scaled: int = whole * 10 ** (int(own) - exponent)
    return -scaled if sign else scaled


def _size(kind: type[Sized], holds: Callable[[int, int], bool]) -> Callable[..., bool]:
    def check(value: Any, bound: Any, _schema: Mapping[str, Any]) -> bool:
        return not isinstance(value, kind) or isinstance(bound, bool) or holds(len(value), bound)

    return check


def _pattern(value: Any, pattern: Any, _schema: Mapping[str, Any]) -> bool:
    return not isinstance(value, str) or not isinstance(pattern, str) or finder(pattern)(value)


@functools.lru_cache(maxsize=512)
def finder(pattern: str) -> Callable[[str], bool]:
    """Says whether a ``pattern`` is found in a text. One that Python can't read, which is told when the run begins, is
    in each: it is written for another language."""
    try:
        return compile_pattern(pattern).search
    except re.error:
        return lambda _text: True


def _unique(value: Any, wanted: Any, _schema: Mapping[str, Any]) -> bool:
    if wanted is not True or not isinstance(value, list):
        return True
    if len(value) > 8 and set(map(type, value)) in ({str}, {int}):
        return len(set(value)) == len(value)
    return not any(same(one, other) for i, one in enumerate(value) for other in value[:i])


_CHECKS: dict[str, Callable[[Any, Any, Mapping[str, Any]], bool]] = {
    "enum": _enum,
    "const": _const,
    "multipleOf": _multiple,
    "minimum": _bound(lambda number, limit: number >= limit, "exclusiveMinimum"),
    "maximum": _bound(lambda number, limit: number <= limit, "exclusiveMaximum"),
    "exclusiveMinimum": _bound(lambda number, limit: number > limit),
    "exclusiveMaximum": _bound(lambda number, limit: number < limit),
    "minLength": _size(str, lambda size, limit: size >= limit),
    "maxLength": _size(str, lambda size, limit: size <= limit),
    "pattern": _pattern,
    "minItems": _size(list, lambda size, limit: size >= limit),
    "maxItems": _size(list, lambda size, limit: size <= limit),
    "uniqueItems": _unique,
    "minProperties": _size(dict, lambda size, limit: size >= limit),
    "maxProperties": _size(dict, lambda size, limit: size <= limit),
}
