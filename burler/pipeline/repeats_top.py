"""The rows of a round that have the greatest replication key: where they stand in a page, and what is kept of them."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Sequence
from typing import Any

import msgspec

from burler.pipeline.shape_lines import Output
from burler.singer.bookmark_values import comparable, key_text, ordered, present_of

_FEW = 16  # lines that are looked for from the end of a page
_WAITING_BYTES = 4 * 1024 * 1024
_WORTH_IT = 8  # values in a page, from which on it is quicker to look at them together
_PLAIN = frozenset((str, int, float, type(None)))
_BY_THEMSELVES: tuple[set[type], ...] = ({dt.datetime}, {int}, {dt.date})  # types of values that Python orders


class Top:
    """The rows of the greatest key, as JSON. They are kept as they are for a while: mostly rows with a greater one
    follow, and the work of digesting them would be for nothing.

    Args:
        rank: what the key is ordered by (see ``comparable``).
    """

    __slots__ = ("_bodies", "_size", "keys", "rank")

    def __init__(self, rank: Any = None) -> None:
        self.rank = rank
        self.keys: set[Any] = set()
        self._bodies: list[bytes] = []
        self._size = 0

    def add(self, bodies: Sequence[bytes], keys: list[Any]) -> bool:
        """Add rows; whether it is time to take them."""
        self.keys.update(keys)
        self._bodies += bodies
        self._size += sum(map(len, bodies))
        return self._size > _WAITING_BYTES

    def taken(self) -> list[bytes]:
        """The rows since the last call."""
        bodies, self._bodies, self._size = self._bodies, [], 0
        return bodies


def last_of(keys: list[Any], textual: str | None) -> list[int]:
    """The places of the last value of keys that rise."""
    places: list[int] = []
    last = rank = None
    for i in range(len(keys) - 1, -1, -1):
        key = keys[i]
        if blank(key):
            continue
        if not places:
            last, rank = key, comparable(key, textual)[1]
        elif key != last and comparable(key, textual)[1] != rank:
            break
        places.append(i)
    places.reverse()
    return places


def greatest_of(keys: list[Any], textual: str | None) -> list[int]:
    """The places of the greatest of the keys; none where they have no order."""
    present, kinds = present_of(keys)
    try:
        ranks = _ranks(present, kinds, textual)
        greatest = max(ranks)
        if len(present) < len(keys):
            there = [i for i, key in enumerate(keys) if not blank(key)]
            return [i for i, rank in zip(there, ranks, strict=True) if rank == greatest]
    except (TypeError, ValueError):
        return []
    return _places(ranks, greatest)


def _places(ranks: list[Any], one: Any) -> list[int]:
    """Where a rank stands."""
    places = [ranks.index(one)]
    with contextlib.suppress(ValueError):
        while len(places) < _FEW:
            places.append(ranks.index(one, places[-1] + 1))
        return [i for i, rank in enumerate(ranks) if rank == one]
    return places


def _ranks(present: list[Any], kinds: set[type], textual: str | None) -> list[Any]:
    """What values are ordered by among themselves."""
    if kinds in _BY_THEMSELVES:
        return present
    quick = ordered(present, kinds, textual) if len(present) >= _WORTH_IT else None
    return quick[1] if quick is not None else [comparable(key, textual)[1] for key in present]


def texts(keys: list[Any]) -> list[Any]:
    """Values of a key as they stand in a state, which all kinds of pages give alike. What is no value is None."""
    if set(map(type, keys)) <= _PLAIN:
        return keys
    return [None if blank(key) else _text(key) for key in keys]


def _text(key: Any) -> Any:
    try:
        text = key_text(key)
    except ArithmeticError:  # no number
        return None
    return text if type(text) in _PLAIN else None


def blank(key: Any) -> bool:
    """Whether a row has no value."""
    return key is None or key is msgspec.UNSET


def less(rank: Any, other: Any) -> bool:
    """Whether a rank is less than another. Those of different kinds have no order, and nothing is less than None."""
    try:
        return other is not None and bool(rank < other)
    except TypeError:
        return False


def bodies_at(lines: bytes | bytearray, output: Output, count: int, places: list[int]) -> list[bytes]:
    """Some of the last lines of a page, as JSON.

    Args:
        lines: those that are there; ``output`` says what stands before and after each row.
        count: how many they are.
        places: which, counted from the first of them; they rise.
    """
    before, behind = len(output.prefix), len(output.suffix)
    if count - places[0] > _FEW:
        cut = bytes(lines).split(output.suffix)
        return [cut[place][before:] for place in places]
    found: list[bytes] = []
    end = len(lines)
    for place in range(count - 1, places[0] - 1, -1):
        begin = lines.rfind(b"\n", 0, end - 1) + 1
        if place in places:
            found.append(bytes(lines[begin + before : end - behind]))
        end = begin
    found.reverse()
    return found
