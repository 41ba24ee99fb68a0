"""The values of single keywords, of two schemas at once. ``DIFFERENT``: no one value says both."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

DIFFERENT = object()
_LARGEST = 2**63


def same(one: Any, two: Any) -> bool:
    """Whether two JSON values are equal; ``true`` is not 1, and 1.0 is."""
    if one is two:
        return True
    if isinstance(one, bool) or isinstance(two, bool):
        return False
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        return one.keys() == two.keys() and all(same(value, two[key]) for key, value in one.items())
    if isinstance(one, list | tuple) and isinstance(two, list | tuple):
        return len(one) == len(two) and all(map(same, one, two))
    return bool(one == two)


def key_of(value: Any) -> Any:
    """Something hashable that two values have in common exactly when they are the ``same``."""
    if isinstance(value, str) or value is None:
        return value
    if isinstance(value, bool):
        return (bool, value)
    if isinstance(value, Mapping):
        return (dict, frozenset((name, key_of(part)) for name, part in value.items()))
    if isinstance(value, list | tuple):
        return (list, tuple(map(key_of, value)))
    try:
        hash(value)
    except TypeError:  # nothing that JSON has
        return (id, id(value))
    return (None, value)


def types_named(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The types that a schema's ``type`` names, in its order; empty if there is none."""
    given = schema.get("type")
    if isinstance(given, str):
        return (given,)
    return tuple(name for name in given if isinstance(name, str)) if isinstance(given, list | tuple) else ()


def common_types(one: Sequence[str], two: Sequence[str]) -> list[str]:
    """The types that both name; an integer is a number."""
    fits = [name for name in two if name in one or (name == "integer" and "number" in one)]
    return fits + [name for name in one if name == "integer" and "number" in two and name not in fits]


def united(one: Any, two: Any) -> Any:
    """All names of both, each once."""
    if not isinstance(one, list | tuple) or not isinstance(two, list | tuple):
        return DIFFERENT
    return distinct([*one, *two])


def common_values(one: Any, two: Any) -> Any:
    """The choices that both offer."""
    if not isinstance(one, list | tuple) or not isinstance(two, list | tuple):
        return DIFFERENT
    known = set(map(key_of, one))
    return [value for value in two if key_of(value) in known] or DIFFERENT


def larger(one: Any, two: Any) -> Any:
    """The larger of two numbers."""
    return max(one, two) if _are_numbers((one, two)) else DIFFERENT


def smaller(one: Any, two: Any) -> Any:
    """The smaller of two numbers."""
    return min(one, two) if _are_numbers((one, two)) else DIFFERENT


def common_multiple(one: Any, two: Any) -> Any:
    """The least number that both divide, if it is one of the two or an integer (others have no exact text) that
    JSON's readers can hold."""
    if not _are_numbers((one, two)) or not (0 < one < math.inf and 0 < two < math.inf):
        return DIFFERENT
    first, second = (Fraction(number if isinstance(number, int) else str(number)) for number in (one, two))
    product = Fraction(
        math.lcm(first.numerator * second.denominator, second.numerator * first.denominator),
        first.denominator * second.denominator,
    )
    for given, exact in ((one, first), (two, second)):
        if product == exact:
            return given
    return int(product) if product.denominator == 1 and product < _LARGEST else DIFFERENT


def tighter(one: tuple[Any, Any], two: tuple[Any, Any], *, is_lower: bool) -> Any:
    """The tighter of two (bound, exclusive bound) pairs, or ``DIFFERENT``.

    ``exclusive`` is a number of its own, or, as draft 4 has it, says whether the bound itself is left out. A pair
    that comes back may hold both numbers: then both hold.
    """
    is_old = [isinstance(pair[1], bool) for pair in (one, two)]
    numbers = [value for pair in (one, two) for value in pair if value is not None and not isinstance(value, bool)]
    if not _are_numbers(numbers) or (any(is_old) and any(_is_new(pair) for pair in (one, two))):
        return DIFFERENT
    pick = max if is_lower else min
    if not any(is_old):
        bounds = [value for value in (one[0], two[0]) if value is not None]
        exclusive = [value for value in (one[1], two[1]) if value is not None]
        return (pick(bounds) if bounds else None, pick(exclusive) if exclusive else None)
    pairs = [pair for pair in (one, two) if pair[0] is not None]
    if not pairs:
        return (None, None)
    best = pick(pair[0] for pair in pairs)
    return (best, True if any(pair[1] is True and pair[0] == best for pair in pairs) else None)


def _is_new(pair: tuple[Any, Any]) -> bool:
    return pair[1] is not None and not isinstance(pair[1], bool)


def _are_numbers(values: Iterable[Any]) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def distinct(parts: Iterable[Any]) -> list[Any]:
    """Each value once: the first of those that are the ``same``."""
    found: dict[Any, Any] = {}
    for part in parts:
        found.setdefault(key_of(part), part)
    return list(found.values())


def parts_of(node: Mapping[str, Any]) -> list[Any]:
    """The parts of a schema's ``allOf``; what is no list stands as a part of its own."""
    parts = node.get("allOf", [])
    return parts if isinstance(parts, list) else [{"allOf": parts}]


def mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def is_mapping_or_none(value: Any) -> bool:
    """Whether names to schemas can be read from it."""
    return value is None or isinstance(value, Mapping)


def is_plain_type(value: Any) -> bool:
    """Whether it is a type or a list of types (draft 3 also had schemas there)."""
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(name, str) for name in value))
