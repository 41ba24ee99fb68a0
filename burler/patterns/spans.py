"""Moments and the calendar: from what people write to points in time, and from one to the end of its window.

A moment is a date-time in UTC, or, for sources that take days, a date. Lengths of time count in UTC, so that a day of
24 hours stays one where clocks change; calendar units ("day", "month") are those of the zone.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

from burler import times

Moment = dt.datetime | dt.date
Size = dt.timedelta | str | Callable[[Any], Any]

UNITS = ("day", "week", "month", "quarter", "year")
DAY = dt.timedelta(days=1)
_FIRST = dt.datetime.min.replace(tzinfo=dt.UTC)
_LAST = dt.datetime.max.replace(tzinfo=dt.UTC)


class BadTime(ValueError):
    """Something that is no moment, no size or no zone; the message says what it was and what is wanted."""


def zone_of(zone: str | dt.tzinfo | None) -> dt.tzinfo:
    """A time zone from its name; UTC for None.

    Raises:
        BadTime: there is no such zone.
    """
    if zone is None:
        return dt.UTC
    if isinstance(zone, dt.tzinfo):
        return zone
    try:
        return ZoneInfo(zone)
    except (KeyError, ValueError, TypeError, OSError):
        raise BadTime(
            f"zone {zone!r:.60} is unknown. Give a name as 'Europe/Berlin'; where the system has none install tzdata."
        ) from None


@dataclass(frozen=True, slots=True)
class Calendar:
    """How moments are read, counted and written: in which zone days begin, and whether windows are made of days.

    ``zone_said``: the author has named the zone, so that times without one are taken to be in it.
    """

    zone: dt.tzinfo
    dates: bool
    zone_said: bool = False

    def moment(self, value: Any, what: str) -> Moment:
        """A moment from text, a datetime or a date. Digits beyond microseconds are cut: it lies before, never after.

        Raises:
            BadTime: it is none, or a time without a zone where no zone was named.
        """
        if isinstance(value, str):
            value = _parsed(value)
        if isinstance(value, dt.datetime):
            if value.tzinfo is None and self.zone_said:
                value = value.replace(tzinfo=self.zone)
            if value.utcoffset() is not None:
                return self.day_of(value) if self.dates else _to_utc(value)
        elif isinstance(value, dt.date):
            return value if self.dates else self.midnight(value)
        raise BadTime(
            f"{what} is {value!r:.60}; windows need a date-time with a zone (2024-01-02T03:04:05Z) or a date "
            "(2024-01-02). For numbers there is id_ranges."
        )

    def day_of(self, moment: dt.datetime) -> dt.date:
        """The day that a moment falls on."""
        return self.local(moment).date()

    def local(self, moment: dt.datetime) -> dt.datetime:
        """A moment by the clocks of the zone."""
        try:
            return moment.astimezone(self.zone)
        except OverflowError:
            return moment

    def midnight(self, day: dt.date, *, fold: int = 0) -> dt.datetime:
        """When a day begins; where clocks skip midnight, the moment at which they do. ``fold=1``: where they show it
        twice, the second time."""
        return _to_utc(dt.datetime.combine(day, dt.time(fold=fold), self.zone))

    def before(self, moment: Moment, length: dt.timedelta) -> Moment:
        """So much before a moment, or the first moment there is. Of days, parts of one count as a whole one."""
        try:
            return moment - (length if isinstance(moment, dt.datetime) else DAY * -(-length // DAY))
        except OverflowError:
            return _FIRST if isinstance(moment, dt.datetime) else dt.date.min

    def after(self, moment: Moment, length: dt.timedelta) -> Moment:
        """So much after a moment, or the last moment there is. Of days, parts of one don't count."""
        try:
            return moment + length
        except OverflowError:
            return _LAST if isinstance(moment, dt.datetime) else dt.date.max

    def text(self, moment: Moment, *, as_date: bool | None = None) -> str:
        """A moment as it is written: RFC 3339 in UTC, or a date. ``as_date`` says which, else the moment does: a
        date-time becomes the day it falls on, a date the moment at which it begins."""
        if as_date is True and isinstance(moment, dt.datetime):
            moment = self.day_of(moment)
        if as_date is False and not isinstance(moment, dt.datetime):
            moment = self.midnight(moment)
        if isinstance(moment, dt.datetime):
            return times.rfc3339(moment) or ""
        return moment.isoformat()

    def length(self, length: Any, what: str, *, least: dt.timedelta = dt.timedelta(0)) -> dt.timedelta:
        """A length of time, checked.

        Raises:
            BadTime: it is none, below ``least``, or no whole days where windows are made of days.
        """
        if not isinstance(length, dt.timedelta):
            raise BadTime(f"{what} is {length!r:.60}; it must be a timedelta.")
        if length < least:
            raise BadTime(f"{what} is {length}; it must be {'0 or more' if not least else f'{least} or more'}.")
        if self.dates and length % DAY:
            raise BadTime(f"{what} is {length}; with dates=True it must be whole days.")
        return length

    def ends(self, size: Size) -> Callable[[Moment], Moment | None]:
        """A function from where a window begins to where it ends; None where the calendar ends before.

        Raises:
            BadTime: a size that is none. From the function: one of the author's own that does not go forward.
        """
        if isinstance(size, str):
            if size not in UNITS:
                raise BadTime(f"size {size!r:.60} is unknown. Known: a timedelta, a function, {', '.join(UNITS)}.")
            return lambda start: self._next(start, size)
        if isinstance(size, dt.timedelta):
            step = self.length(size, "size", least=DAY if self.dates else dt.timedelta(microseconds=1))
            return lambda start: self.after(start, step)
        if not callable(size):
            raise BadTime(f"size is {size!r:.60}. Known: a timedelta, a function, {', '.join(UNITS)}.")
        return lambda start: self._asked(size, start)

    def _asked(self, size: Callable[[Any], Any], start: Moment) -> Moment:
        """The end that an author's own function gives: a moment, or a length."""
        given = size(self.local(start) if isinstance(start, dt.datetime) else start)
        if isinstance(given, dt.timedelta):
            end = self.after(start, self.length(given, "what size gives"))
        else:
            end = self.moment(given, "what size gives")
        if end <= start:
            raise BadTime(f"size gave {self.text(end)} as the end of a window that begins at {self.text(start)}.")
        return end

    def _next(self, start: Moment, unit: str) -> Moment | None:
        """Where the calendar unit that holds ``start`` ends."""
        if not isinstance(start, dt.datetime):
            return _next_day(start, unit)
        day = _next_day(self.day_of(start), unit)
        while day is not None:
            # A clock that is set back over midnight shows it twice; then the first one may lie behind us.
            for fold in (0, 1):
                end = self.midnight(day, fold=fold)
                if end > start:
                    return end
            day = _next_day(day, unit)
        return None


def spans(begin: Moment, end: Moment, ends: Callable[[Moment], Moment | None]) -> Iterator[tuple[Moment, Moment]]:
    """Half-open spans that cover ``[begin, end)`` without a gap, none over another; the last one is cut at ``end``."""
    while begin < end:
        following = ends(begin)
        to = end if following is None else min(following, end)
        yield begin, to
        begin = to


def _next_day(day: dt.date, unit: str) -> dt.date | None:
    try:
        if unit == "day":
            return day + DAY
        if unit == "week":
            return day + dt.timedelta(days=7 - day.weekday())
        months = {"month": 1, "quarter": 3, "year": 12}[unit]
        count = day.year * 12 + (day.month - 1) // months * months + months
        return dt.date(count // 12, count % 12 + 1, 1)
    except (OverflowError, ValueError):
        return None


def _parsed(text: str) -> Moment | str:
    """Text as a date or a date-time; as it is, if it is neither."""
    if times.is_date(text):
        return dt.date.fromisoformat(text)
    return times.strict_moment(text) or times.naive(text) or text  # no zone: whoever asked decides


def _to_utc(moment: dt.datetime) -> dt.datetime:
    try:
        return moment.astimezone(dt.UTC)
    except OverflowError:
        return _FIRST if moment.year < 5000 else _LAST
