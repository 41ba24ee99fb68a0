"""How far a call of a root's function has come, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from burler.singer.bookmark_values import comparable, ordered, present_of

Ranked = tuple[Any, Any]
"""What a value is ordered by, and the value."""


class KeyRange:
    """The least and the greatest value of a key.

    Args:
        key_format: how text is compared (see ``comparable``).

    Attributes:
        is_mixed: there were values of two kinds, or one that has no place in an order.
    """

    __slots__ = ("_key_format", "_kind", "greatest", "is_mixed", "least")

    def __init__(self, key_format: str | None = None) -> None:
        self._key_format = key_format
        self._kind: str | None = None
        self.least: Ranked | None = None
        self.greatest: Ranked | None = None
        self.is_mixed = False

    def add(self, values: list[Any]) -> None:
        """Take in the values of a page; None says nothing."""
        present, types = present_of(values)
        if not present:
            return
        quick = ordered(present, types, self._key_format)
        ranks = quick[1] if quick is not None else []
        if quick is None:
            found = [comparable(one, self._key_format) for one in present]
            kinds, ranks = [kind for kind, _ in found], [rank for _, rank in found]
            if len(set(kinds)) > 1 or None in ranks:
                self.is_mixed = True
                return
        self._add_one(present[ranks.index(min(ranks))])
        self._add_one(present[ranks.index(max(ranks))])

    def _add_one(self, value: Any) -> None:
        kind, rank = comparable(value, self._key_format)
        if kind != (self._kind or kind):
            self.is_mixed = True
            return
        self._kind = kind
        if self.least is None or rank < self.least[0]:
            self.least = (rank, value)
        if self.greatest is None or rank > self.greatest[0]:
            self.greatest = (rank, value)


_CHARACTERS = 200  # of a key, in errors


@dataclass(frozen=True, slots=True)
class Partition:
    """Which call of a root's function it is: that of a partition, or of the stream as a whole.

    Attributes:
        values: what the partitions function gave; None: the stream as a whole.
        key: of the partition's entry in the state.
        number: in the order in which partitions were given, from 0 on.
    """

    values: Mapping[str, Any] | None = None
    key: str | None = None
    number: int = 0

    @property
    def where(self) -> str:
        """Which one it is, for errors and reports; empty for a stream as a whole."""
        return "" if self.key is None else f"partition {self.key[:_CHARACTERS]}"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far one call of a root's function has come with all that is called below it, as far as it is safe to say now.

    Attributes:
        partition: which call.
        bookmarks: of each stream that keeps one, as JSON has it; None: there is none yet.
        positions: what each function keeps in ``stream.state``.
        sources: the source states to be saved, of each stream of which they have changed.
        versions: of the rows of each full table that is going out.
        is_complete: the function has come to its end, and all that it gave is out.
        behind: streams of which rows are missing.
        unchanged: full tables of which the source said that nothing has changed.
        least, greatest: of the key of its rows, where partitions rise.
    """

    partition: Partition = field(default_factory=Partition)
    bookmarks: Mapping[str, Any] = field(default_factory=dict)
    positions: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    sources: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    versions: Mapping[str, int] = field(default_factory=dict)
    is_complete: bool = False
    behind: frozenset[str] = frozenset()
    unchanged: frozenset[str] = frozenset()
    least: Ranked | None = None
    greatest: Ranked | None = None
