"""Values of a replication key: what they are ordered by, how they stand in the state, and a page of them at C speed.

A date-time stands in the state as the source wrote it, digits and zone: a source that compares text takes
``05.400Z`` for less than ``05Z``, and would leave that row out for ever. It is compared as a moment.

Kinds are date-times, dates, text and numbers, and don't mix. What a text is follows from the schema's format where that
is known, else from its look: RFC 3339 with a zone is a date-time, ``2024-01-02`` a date, all else text.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterable, Sequence
from decimal import ROUND_FLOOR, Decimal
from functools import reduce
from itertools import chain
from operator import attrgetter
from typing import Any

import msgspec

from burler import times

DATE_TIME, DATE, TEXT, NUMBER = "a date-time", "a date", "text", "a number"
MOST_DIGITS = 1000  # a whole number beyond this is no bookmark: written out it is a line of its own
_MOST_BITS = 3322  # of so many digits
_TOO_LONG = (f"a number of over {MOST_DIGITS:,} digits", None)
_NUMBERS = frozenset((int, float, Decimal))
_DAY = len("2024-01-02")
_DECIMAL = re.compile(r"[+-]?(?:\d{1,5000}(?:\.\d{0,5000})?|\.\d{1,5000})(?:[eE][+-]?\d{1,9})?", re.ASCII)
_zone = attrgetter("tzinfo")


class KeyValues(list[Any]):
    """Values of a replication key, one for each row, as they are compared; ``given`` has them as the source wrote
    them."""

    def __init__(self, values: Iterable[Any] = (), given: list[Any] | None = None) -> None:
        super().__init__(values)
        self.given: list[Any] = self if given is None else given

    @classmethod
    def joined(cls, parts: Sequence[list[Any]]) -> KeyValues:
        """The values of several pages, one behind the other."""
        given = [getattr(part, "given", part) for part in parts]
        return cls(chain.from_iterable(parts), list(chain.from_iterable(given)))

    def up_to(self, count: int) -> KeyValues:
        """Those of the first rows."""
        return KeyValues(self[:count], self.given[:count])


def spelled(values: list[Any], at: int) -> Any:
    """One of the values of a key as it stands in the state: a date-time that came as text as the source wrote it."""
    given = getattr(values, "given", values)[at]
    return given if type(given) is str and times.strict(given) is not None else key_text(values[at])


def greater(one: Any, other: Any, textual: str | None = None) -> Any:
    """The greater of two bookmarks of one kind, None being none; of two spellings of one moment the one that sorts
    lower as text: a source that compares text gives more from there, one that compares moments the same."""
    if one is None or other is None:
        return other if one is None else one
    rank, others = comparable(one, textual)[1], comparable(other, textual)[1]
    if rank == others:
        return lower_text(one, other)
    return one if rank > others else other


def least(values: Sequence[Any], textual: str | None = None) -> Any:
    """The least of some bookmarks, spelled as ``greater`` has it; None where they can't be compared."""
    ranked = [comparable(value, textual) for value in values]
    if len({kind for kind, _rank in ranked}) > 1 or any(rank is None for _kind, rank in ranked):
        return None
    found = min(rank for _kind, rank in ranked)
    return reduce(lower_text, (value for value, (_kind, rank) in zip(values, ranked, strict=True) if rank == found))


def lower_text(one: Any, other: Any) -> Any:
    """Of two spellings of one value the one that sorts lower as text; the first, where one of them is no text."""
    return other if isinstance(one, str) and isinstance(other, str) and other < one else one


def comparable(value: Any, textual: str | None = None) -> tuple[str, Any]:
    """The kind of a bookmark value, and something that its kind is ordered by; None if it has no place in
    an order (NaN, a naive date-time, a list, ...).

    Args:
        textual: what the schema says of a text: "date-time", "date" or "decimal" (a number written as text, compared
            as one); None: as it looks.
    """
    if isinstance(value, str):
        return _text(value, textual)
    if isinstance(value, dt.datetime):
        if value.utcoffset() is None:
            return "a date-time without a zone", None
        text = times.rfc3339(value)
        return (DATE_TIME, text[:-1]) if text is not None else ("a date-time beyond the calendar", None)
    if isinstance(value, dt.date):
        return DATE, value.isoformat()
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return f"of type {type(value).__name__}", None
    if isinstance(value, float):
        return (NUMBER, value) if math.isfinite(value) else ("no finite number", None)
    if isinstance(value, Decimal):
        return _decimal(value)
    return (NUMBER, value) if value.bit_length() < _MOST_BITS else _TOO_LONG


def _text(value: str, textual: str | None) -> tuple[str, Any]:
    if textual == "decimal":
        return _decimal(Decimal(value)) if _DECIMAL.fullmatch(value) else ("text that is no number", None)
    moment = times.strict(value)
    if moment is not None:
        return DATE_TIME, times.rank(moment)
    if times.is_date(value):
        return DATE, value
    if textual in ("date", "date-time"):
        return f"text that is no {textual}", None
    return TEXT, value


def _decimal(value: Decimal) -> tuple[str, Any]:
    if not value.is_finite():
        return "no finite number", None
    return (NUMBER, value) if value.adjusted() < MOST_DIGITS else _TOO_LONG


def in_page(rank: Any, types: set[type]) -> Any:
    """A rank as the values of a page of such types are ordered (see ``ordered``), for asking which are greater."""
    if types == {dt.datetime}:
        # Digits beyond the sixth make no difference: what is greater than the rest is greater than it with them.
        return times.moment(f"{rank[:26]}Z")
    return dt.date.fromisoformat(rank) if types == {dt.date} else rank


def key_text(value: Any) -> Any:
    """A replication key's value as it stands in the state: text, a date-time in RFC 3339, or a number.

    A Decimal that a JSON float has no room for is rounded down: a bookmark may lie before the last row, never
    after it.
    """
    if isinstance(value, dt.datetime):
        return times.rfc3339(value)
    if isinstance(value, dt.date):
        return value.isoformat()
    if value is msgspec.UNSET:
        return None
    if isinstance(value, Decimal):
        if value == value.to_integral_value():
            return int(value)
        rounded = float(value)
        if Decimal(repr(rounded)) > value:
            rounded = math.nextafter(rounded, -math.inf)
        # Below all floats there are whole numbers only.
        return rounded if math.isfinite(rounded) else int(value.to_integral_value(ROUND_FLOOR))
    return value


def present_of(values: list[Any]) -> tuple[list[Any], set[type]]:
    """The values that are there, without None and those that are missing, and their types."""
    kinds = set(map(type, values))
    if type(None) not in kinds and msgspec.UnsetType not in kinds:
        return values, kinds
    present = [value for value in values if value is not None and value is not msgspec.UNSET]
    return present, kinds - {type(None), msgspec.UnsetType}


def ordered(present: list[Any], kinds: set[type], textual: str | None) -> tuple[str, list[Any]] | None:
    """The kind of a page of values and what they are ordered by, both without a look at each in Python; None where that
    can't be had: then each takes ``comparable``. Date-times and dates that are no text are ordered by themselves, all
    else by what ``comparable`` gives.
    """
    if kinds <= _NUMBERS:
        return (NUMBER, present) if _finite(present, kinds) else None
    if kinds == {dt.datetime}:
        # Two date-times in one and the same zone compare by the clock on the wall, which goes back once a year; and a
        # naive one has no place at all. Fixed offsets are safe.
        return (DATE_TIME, present) if set(map(type, set(map(_zone, present)))) == {dt.timezone} else None
    if kinds == {dt.date}:
        return DATE, present
    if kinds == {str}:
        return _ordered_text(present, textual)
    return None


def _finite(present: list[Any], kinds: set[type]) -> bool:
    if kinds == {int}:
        return True
    if Decimal in kinds:
        return kinds == {Decimal} and all(map(Decimal.is_finite, present)) and _most(present) < MOST_DIGITS
    return all(map(math.isfinite, (value for value in present if type(value) is float) if int in kinds else present))


def _most(present: list[Decimal]) -> int:
    return max(map(Decimal.adjusted, present))


def _ordered_text(present: list[str], textual: str | None) -> tuple[str, list[Any]] | None:
    moments = times.ranks(present) if present[0].endswith("Z") else None
    if moments is not None:
        return DATE_TIME, moments
    if len(present[0]) == _DAY and times.are_dates(present):
        return DATE, present
    return (TEXT, present) if textual is None and not times.may_have_moments(present) else None
