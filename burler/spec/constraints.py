"""What a schema says of values beside their kinds, looked at a column at a time where that says enough."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from burler.records.shape.constraints import CONSTRAINTS, broken

_BOUNDS: Mapping[str, Callable[[Sequence[Any], Any], bool]] = {
    "minimum": lambda numbers, bound: min(numbers) >= bound,
    "maximum": lambda numbers, bound: max(numbers) <= bound,
}
_LENGTHS: Mapping[str, Callable[[Sequence[Any], Any], bool]] = {
    "minLength": lambda texts, bound: len(min(texts, key=len)) >= bound,
    "maxLength": lambda texts, bound: len(max(texts, key=len)) <= bound,
}
_QUICK = frozenset({*_BOUNDS, *_LENGTHS})


class Constraints:
    """The constraints of one node; None by ``of`` where it has none."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        words = {word: bound for word, bound in schema.items() if word in _QUICK and _is_number(bound)}
        self._bounds = [(_BOUNDS[word], bound) for word, bound in words.items() if word in _BOUNDS]
        self._lengths = [(_LENGTHS[word], bound) for word, bound in words.items() if word in _LENGTHS]
        self._texts = _texts_of(schema.get("enum"))
        held = {*words, "enum"} if self._texts is not None else words.keys()
        self._plain = schema.keys() <= held

    @classmethod
    def of(cls, schema: Mapping[str, Any]) -> Constraints | None:
        """Those of a schema, if it has some."""
        own = {word: value for word, value in schema.items() if word in CONSTRAINTS}
        return cls(own) if own else None

    def keep(self, values: Sequence[Any], seen: set[type]) -> bool:
        """Whether all values of a column surely keep them; False says nothing. ``seen``: their kinds."""
        kinds = seen - {type(None)}
        if not self._plain:
            return False
        if self._texts is not None and not (seen <= {str, type(None)} and self._texts.issuperset(values)):
            return False
        if kinds <= {int, float}:
            checks = self._bounds
        elif kinds == {str}:
            checks = self._lengths
        else:
            return False
        column = values if len(kinds) == len(seen) else [value for value in values if value is not None]
        return not column or all(check(column, bound) for check, bound in checks)

    def broken(self, value: Any) -> str | None:
        """The first one that a value breaks, in words."""
        try:
            return broken(value, self._schema)
        except (TypeError, ValueError, ArithmeticError, RecursionError):  # a constraint that is none: C125 says so
            return None


def _texts_of(listed: Any) -> frozenset[str | None] | None:
    """The values of an ``enum`` of texts (and null), which are told by being equal; None for any other."""
    if not isinstance(listed, list) or not listed or not all(isinstance(one, str | None) for one in listed):
        return None
    return frozenset(listed)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
