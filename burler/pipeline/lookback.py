"""Lookback: how a run begins before the saved bookmark, for sources in which rows come late."""

from __future__ import annotations

import datetime as dt
import math
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

from burler import times
from burler.errors import StreamError
from burler.singer.bookmark_values import DATE, DATE_TIME, NUMBER, comparable, key_text

_EXACT = Context(prec=3000)  # more than two numbers of the digits that a bookmark may have can need
_FIRST_SECOND, _FIRST_DAY = "0001-01-01T00:00:00Z", "0001-01-01"
_EPOCH = dt.datetime(1, 1, 1, tzinfo=dt.UTC)


def before(value: Any, lookback: float | dt.timedelta, *, stream: str = "", textual: str | None = None) -> Any:
    """A bookmark less a lookback, in the form in which it stands in the state.

    Date-times are spelled as the bookmark is, dates give a date (a part of a day counts as a whole one), numbers a
    number (a Decimal if it is one). None stays None; time goes back to the year 1 at most. What can't be had exactly
    is moved further back, never less far.

    Args:
        lookback: 0 or more; a number means seconds for date-times, days for dates, and for numbers what they count.
        textual: "decimal" if the key is a number written as text; it gives one, too.

    Raises:
        StreamError: a bookmark that is text; a timedelta for a number.
    """
    if value is None:
        return None
    kind, rank = comparable(value, textual)
    if rank is None or kind not in (DATE_TIME, DATE, NUMBER):
        raise _refused(
            stream,
            f"the bookmark {value!r:.60} is {kind}; a lookback needs a date-time, a date or a number. Leave it out.",
        )
    if kind == DATE_TIME:
        return times.spelled_like(_moment_before(rank, lookback), value)
    if kind == DATE:
        return _day_before(rank, lookback)
    if isinstance(lookback, dt.timedelta):
        raise _refused(
            stream,
            f"lookback is a timedelta, but the bookmark {value!r:.60} is a number. Give a number, in the key's unit.",
        )
    return _number_before(value, lookback)


def _refused(stream: str, fact: str) -> StreamError:
    return StreamError(stream, f"stream '{stream}': {fact}" if stream else fact)


def _moment_before(rank: str, lookback: float | dt.timedelta) -> str:
    """``rank``: a date-time as ``comparable`` orders it: its second, and the digits of its fraction."""
    body, _, fraction = rank.partition(".")
    places = max(6, len(fraction))
    unit = 10**places
    whole = dt.datetime.fromisoformat(f"{body}+00:00") - _EPOCH
    seconds = whole.days * 86400 + whole.seconds
    ticks = seconds * unit + int(fraction.ljust(places, "0")) - _microseconds(lookback) * 10 ** (places - 6)
    if ticks <= 0:
        return _FIRST_SECOND
    seconds, rest = divmod(ticks, unit)
    text = (_EPOCH + dt.timedelta(seconds=seconds)).isoformat().removesuffix("+00:00")
    return f"{text}.{rest:0{places}}Z" if rest else f"{text}Z"


def _microseconds(lookback: float | dt.timedelta) -> int:
    if isinstance(lookback, dt.timedelta):
        return lookback // dt.timedelta(microseconds=1)
    return int((_decimal(lookback) * 10**6).to_integral_value(ROUND_CEILING, _EXACT))


def _day_before(day: str, lookback: float | dt.timedelta) -> str:
    days = -(-lookback // dt.timedelta(days=1)) if isinstance(lookback, dt.timedelta) else math.ceil(lookback)
    ordinal = dt.date.fromisoformat(day).toordinal() - days
    return dt.date.fromordinal(ordinal).isoformat() if ordinal > 0 else _FIRST_DAY


def _number_before(value: Any, lookback: float) -> Any:
    less = _EXACT.subtract(_decimal(value), _decimal(lookback))
    if isinstance(value, Decimal):
        return less
    if isinstance(value, str):
        return f"{less:f}"
    return key_text(less)


def _decimal(number: Any) -> Decimal:
    """A number by its digits as a person or a state writes them: 0.1 is a tenth."""
    return Decimal(repr(number)) if isinstance(number, float) else Decimal(number)
