"""What a schema says of values beside their kinds, looked at a column at a time where that says enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from burler.records.shape.constraints import CONSTRAINTS, broken, ends, told_by_ends

_SCALARS = {int, float, str, type(None)}


class Constraints:
    """The constraints of one node; None by ``of`` where it has none."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._texts = _texts_of(schema.get("enum"))
        self._plain = told_by_ends(schema, () if self._texts is None else ("enum",))

    @classmethod
    def of(cls, schema: Mapping[str, Any]) -> Constraints | None:
        """Those of a schema, if it has some."""
        own = {word: value for word, value in schema.items() if word in CONSTRAINTS}
        return cls(own) if own else None

    def keep(self, values: Sequence[Any], seen: set[type]) -> bool:
        """Whether all values of a column surely keep them; False says nothing. ``seen``: their kinds."""
        if not self._plain or not seen <= _SCALARS:
            return False
        if self._texts is not None and not (seen <= {str, type(None)} and self._texts.issuperset(values)):
            return False
        return not any(map(self.broken, ends(values)))

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
