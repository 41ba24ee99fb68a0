"""Bookmark: from the replication key's values to the value that a STATE may carry.

Rows sorted by the key: the greatest value out is safe at any row, since resumption is inclusive (specs
11.9). All others: the bookmark moves when the stream is complete. It never goes back.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from operator import attrgetter
from typing import Any

import msgspec

from burler.errors import StreamError, UnsortedStreamError
from burler.pipeline import times

_zone = attrgetter("tzinfo")
_NATURAL = ({dt.datetime}, {int}, {float})  # kinds whose own order is the order of their ranks


class BookmarkTracker:
    """Follows one stream's replication key through a run."""

    def __init__(self, stream: str, key: str, *, initial: Any, sorted_rows: bool) -> None:
        self._stream = stream
        self._key = key
        self._sorted = sorted_rows
        self._initial = initial
        self._greatest = initial
        self._kind: str | None = None
        self._greatest_rank = None if initial is None else self._rank(initial)
        self._last: Any = None
        self._last_rank: Any = None
        self._complete = False
        self.without_value = 0
        self._broken = False

    def observe(self, values: list[Any]) -> None:
        """Take in the key's values of a page, in row order. A value of None or none at all says nothing.

        Raises:
            UnsortedStreamError: the order is declared and a value is smaller than one before it in this
                run. From then on the bookmark is the one the run began with: rows between may be missing.
            StreamError: values of different kinds, which have no order.
        """
        present = values
        kinds = set(map(type, values))
        if kinds not in _NATURAL:
            present = [value for value in values if value is not None and value is not msgspec.UNSET]
            self.without_value += len(values) - len(present)
            if not present:
                return
            kinds = set(map(type, present))
        if kinds in _NATURAL and self._comparable(present):
            rising = not self._sorted or present == sorted(present)
            top = present[-1] if self._sorted and rising else max(present)
            first_rank, top_rank, last_rank = self._rank(present[0]), self._rank(top), self._rank(present[-1])
        else:
            ranks = [self._rank(value) for value in present]
            top_rank = max(ranks)
            top = present[ranks.index(top_rank)]
            rising = not self._sorted or ranks == sorted(ranks)
            first_rank, last_rank = ranks[0], ranks[-1]
        if self._sorted and not (rising and (self._last_rank is None or self._last_rank <= first_rank)):
            self._broken = True
            raise self._unsorted(present)
        if self._greatest_rank is None or top_rank > self._greatest_rank:
            self._greatest_rank, self._greatest = top_rank, key_text(top)
        self._last_rank, self._last = last_rank, present[-1]

    def _comparable(self, present: list[Any]) -> bool:
        """Whether Python's own comparison will do: not for NaN, nor for date-times of which one is naive."""
        if isinstance(present[0], float):
            return not any(map(math.isnan, present))
        return not isinstance(present[0], dt.datetime) or None not in set(map(_zone, present))

    def _unsorted(self, present: list[Any]) -> UnsortedStreamError:
        before, rank = self._last, self._last_rank
        for value in present:
            now = self._rank(value)
            if rank is not None and now < rank:
                break
            before, rank = value, now
        return UnsortedStreamError(
            self._stream,
            f"stream '{self._stream}': order 'asc' is declared (every_n asks for it), but '{self._key}' went from "
            f"{key_text(before)!r} back to {key_text(value)!r}. The bookmark stays where this run began.\n"
            "  Ask the source for sorted rows, or use bookmark_strategy='end_of_sync' without order.",
        )

    def complete(self) -> None:
        """All rows of this run are out."""
        self._complete = True

    @property
    def safe(self) -> Any:
        """The bookmark that a STATE written now may carry; None if there is none."""
        if self._broken or not (self._sorted or self._complete):
            return self._initial
        return self._greatest

    def _rank(self, value: Any) -> Any:
        """Something to compare a value by; kinds can't be mixed unseen."""
        kind, rank = comparable(value)
        if rank is None:
            raise StreamError(
                self._stream,
                f"stream '{self._stream}': '{self._key}' is {kind} ({value!r:.60}); a bookmark must be a date-time "
                "with a zone, a date, text or a finite number.",
            )
        if self._kind is None:
            self._kind = kind
        elif self._kind != kind:
            raise StreamError(
                self._stream,
                f"stream '{self._stream}': '{self._key}' is {kind} ({value!r:.60}) where it was {self._kind} before; "
                "a bookmark needs values of one kind.",
            )
        return rank


def comparable(value: Any) -> tuple[str, Any]:
    """The kind of a bookmark value, and something that its kind is ordered by; None if it has no place in
    an order (NaN, a naive date-time, a list, ...)."""
    if isinstance(value, dt.datetime):
        if value.utcoffset() is None:
            return "a date-time without a zone", None
        utc = value.astimezone(dt.UTC)
        return "a date-time", (utc.replace(microsecond=0), f"{utc.microsecond:06}".rstrip("0"))
    if isinstance(value, dt.date):
        return "text", value.isoformat()
    if isinstance(value, str):
        moment = times.sortable(value)
        return ("a date-time", moment) if moment is not None else ("text", value)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return f"of type {type(value).__name__}", None
    if isinstance(value, float | Decimal) and not math.isfinite(value):
        return "no finite number", None
    return "a number", value


def key_text(value: Any) -> Any:
    """A replication key's value as it stands in the state: text, a date-time in RFC 3339, or a number.

    A Decimal that a JSON float has no room for is rounded down: a bookmark may lie before the last row, never
    after it.
    """
    if isinstance(value, dt.datetime):
        return times.from_datetime(value)
    if isinstance(value, dt.date):
        return value.isoformat()
    if value is msgspec.UNSET:
        return None
    if isinstance(value, Decimal):
        if value == value.to_integral_value():
            return int(value)
        rounded = float(value)
        return rounded if Decimal(repr(rounded)) <= value else math.nextafter(rounded, -math.inf)
    return value
