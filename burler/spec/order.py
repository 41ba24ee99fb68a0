"""In which order rows come by their replication key, where that turns, and where each stands."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from operator import ge, le
from typing import Any

from burler.spec.states import Kind

FLIPS = 10
"""So many turns are kept with their values; the rest is counted."""
_SEGMENTS = 200
_SHOWN = 200


class OrderMap:
    """Takes values in the order in which they come.

    ``flips`` counts the places where a value stands on the wrong side of the one before it, by the direction that the
    rows had until then; equal values keep any direction.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.flips = 0
        self.ascending = self.descending = True
        self.first_flips: list[dict[str, Any]] = []
        self.segments: list[list[Any]] = []
        self._last: Any = None
        self._last_shown: Any = None
        self._direction = "same"
        self._began = 1

    def add(self, values: Sequence[Any], lines: Sequence[int], shown: Sequence[Any]) -> None:
        """Some more values, to be compared; the lines they stood in; and what they looked like."""
        if not values:
            return
        before = [self._last] if self.rows else []
        chain = [*before, *values]
        rises, falls = _is(le, chain), _is(ge, chain)
        if (rises and self._direction in ("asc", "same")) or (falls and self._direction in ("desc", "same")):
            if not (rises and falls):
                self._direction = "asc" if rises else "desc"
                self.ascending, self.descending = self.ascending and rises, self.descending and falls
        else:
            self._turns(chain, lines, shown, len(before))
        self._last, self._last_shown = values[-1], shown[-1]
        self.rows += len(values)

    def _turns(self, chain: Sequence[Any], lines: Sequence[int], shown: Sequence[Any], before: int) -> None:
        for place in range(1, len(chain)):
            one, other = chain[place - 1], chain[place]
            if one == other:
                continue
            step = "asc" if one < other else "desc"
            self.ascending, self.descending = self.ascending and step == "asc", self.descending and step == "desc"
            if self._direction == "same":
                self._direction = step
            elif step != self._direction:
                at = place - before
                self._flip(self.rows + at + 1, lines[at], shown[at - 1] if at else self._last_shown, shown[at])
                self._direction = step

    def _flip(self, row: int, line: int, one: Any, other: Any) -> None:
        self.flips += 1
        if len(self.first_flips) < FLIPS:
            self.first_flips.append(
                {"place": f"line {line}", "before": str(one)[:_SHOWN], "value": str(other)[:_SHOWN]}
            )
        if len(self.segments) < _SEGMENTS:
            self.segments.append([self._began, row - 1, self._direction])
            self._began = row

    @property
    def direction(self) -> str:
        """ "asc", "desc", "same" (all values equal) or "none"."""
        if self.ascending and self.descending:
            return "same"
        return "asc" if self.ascending else "desc" if self.descending else "none"

    def to_json(self, key: str) -> dict[str, Any]:
        """The order as plain values: see ``burler.verify.result.StreamFacts``."""
        last = [[self._began, self.rows, self._direction if len(self.segments) < _SEGMENTS else "none"]]
        return {
            "key": key,
            "direction": self.direction,
            "flips": self.flips,
            "first_flips": self.first_flips,
            "map": [*self.segments, *(last if self.rows else [])],
        }


def _is(holds: Any, chain: Sequence[Any]) -> bool:
    return all(map(holds, chain, islice(chain, 1, None)))


def marks_of(column: Sequence[Any], kind: Kind) -> list[float] | None:
    """Values of a replication key as numbers that stand in the same order; None for text."""
    if kind == "text":
        return None
    try:
        return [one.timestamp() for one in column] if kind == "time" else list(map(float, column))
    except OverflowError:
        return None
