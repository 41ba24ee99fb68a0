"""The kind that the values of a replication key are of, as they show it; values with their rank, and their range."""

from __future__ import annotations

import datetime as dt
from typing import Any, NamedTuple

from burler.errors import StreamError
from burler.singer.bookmark_values import DATE, TEXT, comparable, lower_text, ordered, present_of


class Mark(NamedTuple):
    """A value and what it is ordered by; a rank of None stands before all others."""

    value: Any
    rank: Any

    def over(self, other: Mark) -> bool:
        """Whether it is greater."""
        return self.rank is not None and (other.rank is None or self.rank > other.rank)

    def raised(self, other: Mark) -> Mark:
        """The greater of two; of two spellings of one value the one that sorts lower as text (see ``greater``)."""
        if other.rank == self.rank:
            return Mark(lower_text(self.value, other.value), self.rank)
        return other if other.over(self) else self


NOWHERE = Mark(None, None)


class KeyRange:
    """The least and the greatest value of a key.

    Args:
        textual: see ``comparable``.

    Attributes:
        is_mixed: there were values of two kinds, or one that has no place in an order.
    """

    __slots__ = ("_kind", "_textual", "greatest", "is_mixed", "least")

    def __init__(self, textual: str | None = None) -> None:
        self._textual = textual
        self._kind: str | None = None
        self.least = self.greatest = NOWHERE
        self.is_mixed = False

    def add(self, values: list[Any]) -> None:
        """Take in the values of a page; None says nothing."""
        present, types = present_of(values)
        quick = ordered(present, types, self._textual) if present else None
        if quick is not None:
            ranks = quick[1]
            present = [present[ranks.index(min(ranks))], present[ranks.index(max(ranks))]]
        for value in present:
            kind, rank = comparable(value, self._textual)
            if rank is None or kind != (self._kind or kind):
                self.is_mixed = True
                return
            self._kind, mark = kind, Mark(value, rank)
            self.greatest = self.greatest.raised(mark)
            if self.least.rank is None or self.least.over(mark):
                self.least = mark


def alike(kind: str, other: str) -> bool:
    """Whether values of two kinds can be compared: a text may look like a date."""
    return kind == other or {kind, other} == {DATE, TEXT}


class Kinds:
    """What the values of one key are, as they show it: ``kind`` is None before the first one.

    Args:
        textual: see ``comparable``.
    """

    def __init__(self, stream: str, key: str, textual: str | None) -> None:
        self.kind: str | None = None
        self._stream, self._key, self._textual = stream, key, textual
        self._by_look = False  # dates that may turn out to be text
        self._begun: Any = None

    def begin(self, value: Any) -> Mark:
        """The bookmark that a run begins with; None where there is none.

        Raises:
            StreamError: it is no bookmark.
        """
        kind, rank = comparable(value, self._textual) if value is not None else ("", None)
        if value is not None and rank is None:
            raise self.refused(
                f"the bookmark that it begins with is no bookmark: '{self._key}' is {kind} ({_shown(value)}). Correct "
                "the state (or start_date), or take the key out of it to begin anew."
            )
        mark = Mark(value, None if value is None else self.rank(value))
        self._begun = value
        return mark

    def mark(self, value: Any) -> Mark:
        """A value with its rank.

        Raises:
            StreamError: see ``rank``.
        """
        return Mark(value, self.rank(value))

    def rank(self, value: Any) -> Any:
        """Something to compare a value by.

        Raises:
            StreamError: a value that has no place in an order, or is of another kind than those before it.
        """
        kind, rank = comparable(value, self._textual)
        if rank is None:
            raise self.refused(
                f"'{self._key}' is {kind} ({_shown(value)}); a bookmark must be a date-time with a zone, a date, text "
                "or a finite number."
            )
        if kind != self.kind:
            self.adopt(kind, value)
        elif self._by_look and not isinstance(value, str):
            self._by_look = False
        return rank

    def adopt(self, kind: str, value: Any) -> None:
        """Take a kind that is not the one so far.

        Raises:
            StreamError: it can't be mixed with that.
        """
        looks = isinstance(value, str) and self._textual is None
        if self.kind is None:
            self.kind, self._by_look = kind, looks and kind == DATE
        elif looks and ((kind == TEXT and self._by_look) or (kind, self.kind) == (DATE, TEXT)):
            self.kind, self._by_look = TEXT, False
        else:
            begun = (
                "" if self._begun is None else f" (the run began at {_shown(self._begun)}: is the state this tap's?)"
            )
            raise self.refused(
                f"'{self._key}' is {kind} ({_shown(value)}) where it was {self.kind} before{begun}; a bookmark needs "
                "values of one kind."
            )

    def refused(self, fact: str) -> StreamError:
        """An error of the stream."""
        return StreamError(self._stream, f"stream '{self._stream}': {fact}")


def _shown(value: Any) -> str:
    return value.isoformat() if isinstance(value, dt.date) else f"{value!r:.60}"
