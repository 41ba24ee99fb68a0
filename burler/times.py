"""Texts of date-times: three rules of which are read, and the forms in which they are written (docs/values.md).

``strict``: RFC 3339 with a zone, for what burler writes. ``lenient``: ISO 8601 as people and programs write it, for
tables and for moments that others say. ``lake``: RFC 3339 and its usual slips, for ``time_extracted``.

No rule takes a leap second, ``24:00``, a day that the calendar has not, or a moment outside of the years 1 to 9999 in
UTC.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from functools import cache

UTC = dt.UTC
# ---- parts of patterns -----------------------------------------------------------------------------------------------
DAY = (
    r"(?!0000)\d{4}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31"
    r"|02-29(?<=(?:[02468][048]|[13579][26])-02-29)(?<!(?:[02468][1235679]|[13579][01345789])00-02-29))"
)
"""A day of the calendar, leap years looked at. Wants ``re.ASCII``, as the others."""
CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d"
OFFSET = r"[+-](?:[01]\d|2[0-3]):[0-5]\d"
_STRICT = rf"({DAY})[Tt ]({CLOCK})(?:\.(\d+))?([Zz]|{OFFSET})"
_NAIVE = rf"({DAY})[Tt ]({CLOCK})(?:\.(\d+))?"
_LAKE = rf"({DAY})[Tt ]({CLOCK})(?:[.,](\d+))?\s?([Zz]|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)?"
_LENIENT = (
    r"(\d{4})(-?)(\d\d)\2(\d\d)"
    r"(?:[Tt ](\d\d):?(\d\d)(?::?(\d\d)(?:[.,](\d+))?)?\s?([Zz]|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)?)?"
)
_SIX = rf"{DAY}T{CLOCK}\.\d{{6}}Z"
_SIXES = rf"(?:{DAY}T{CLOCK}\.\d{{6}}Z\n)*+"
# Without the Z their order as text is that in time: a fraction is never all zeros.
_CANONICAL = rf"(?:{DAY}T{CLOCK}(?:\.(?!000000)\d{{6}})?Z\n)*+"
# In the first and the last year a zone may lead out of the calendar.
_STRICTS = rf"(?:(?!0001|9999){DAY}[Tt]{CLOCK}(?:\.\d+)?(?:[Zz]|{OFFSET})\n)*+"
_PLAIN = rf"(?:{DAY}[T ]{CLOCK}(?:\.\d+)?(?:Z|{OFFSET})?\n)*+"
_USUAL = rf"{DAY}T{CLOCK}(?:\.\d{{1,6}})?(?:Z|{OFFSET})"
_MAY_BE = r"(?m)^\d{4}-\d\d-\d\d[Tt ]\d\d:"
_DATES = rf"(?:{DAY}\n)*+"


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compiled when it is first asked for: all together they take some milliseconds of a start."""
    return re.compile(pattern, re.ASCII)


# ---- strict ----------------------------------------------------------------------------------------------------------


def strict(text: str) -> str | None:
    """A date-time with a zone as RFC 3339 in UTC with ``Z``; None if the text is no such thing.

    The fraction is written as Python and msgspec write it, with six digits or none; one of more than six digits stays
    as it is, since to round it would lose digits.
    """
    found = _compiled(_STRICT).fullmatch(text)
    if found is None:
        return None
    day, clock, digits, zone = found.groups()
    shown = f"{day}T{clock}"
    if zone not in "Zz":
        try:
            shown = (dt.datetime.fromisoformat(shown) - _offset(zone)).isoformat()
        except OverflowError:
            return None
    if digits and len(digits) <= 6:
        digits = digits.ljust(6, "0") if digits.strip("0") else None
    return f"{shown}.{digits}Z" if digits else f"{shown}Z"


def strict_moment(text: str) -> dt.datetime | None:
    """The same as a datetime in UTC; digits beyond the sixth are cut."""
    found = strict(text)
    return None if found is None else dt.datetime.fromisoformat(found)


def are_strict(texts: Sequence[str]) -> bool:
    """Whether all of many texts surely are what ``strict`` takes, with the ``T`` of RFC 3339: one look at all of them.
    False: some may not be."""
    return _are_all(_STRICTS, texts)


def naive(text: str) -> dt.datetime | None:
    """What ``strict`` would take if it had a zone, without one; None if it is no such text. Digits beyond the sixth are
    cut."""
    return dt.datetime.fromisoformat(text.upper()) if _compiled(_NAIVE).fullmatch(text) else None


def is_date(text: str) -> bool:
    """Whether text is a day of the calendar, ``2024-01-02``."""
    return _compiled(DAY).fullmatch(text) is not None


def are_dates(texts: Sequence[str]) -> bool:
    """Whether all of many texts are."""
    return _are_all(_DATES, texts)


def have_one_form(joined: str, width: int) -> bool:
    """Whether texts of so many characters each, one behind the other, all are like ``2024-01-02T03:04:05Z``, or all so
    with six digits, if they are date-times at all."""
    marks = {4: "-", 7: "-", 10: "T", 13: ":", 16: ":", width - 1: "Z"} | ({19: "."} if width == 27 else {})
    count = len(joined) // max(1, width)
    return width in (20, 27) and all(joined[place::width] == mark * count for place, mark in marks.items())


def may_have_moments(texts: Sequence[str]) -> bool:
    """Whether some of many texts look like date-times. False: none is what ``strict`` takes."""
    return _compiled(_MAY_BE).search("\n".join(texts)) is not None


def rank(canonical: str) -> str:
    """A text of ``strict`` without its Z; the fraction has six digits, or more that are no zeros, or isn't there. In
    this form the order of the texts is that of the moments, and equal moments have one text."""
    body, _, fraction = canonical[:-1].partition(".")
    fraction = fraction.rstrip("0")
    return f"{body}.{fraction.ljust(6, '0')}" if fraction else body


def ranks(texts: Sequence[str]) -> list[str] | None:
    """The ranks of many texts, where all are spelled as ``strict`` spells them, with six digits or none; else None."""
    lines = "\n".join(texts) + "\n"
    if _compiled(_CANONICAL).fullmatch(lines) is None:
        return None
    bare = lines.split("Z\n")
    del bare[-1]
    return bare if len(bare) == len(texts) else None


# ---- lenient ---------------------------------------------------------------------------------------------------------


def lenient(text: str) -> tuple[dt.datetime, bool]:
    """A date-time in any form that RFC 3339 or ISO 8601 spells it, as UTC; and whether digits were cut.

    A time without offset is UTC, a date alone its midnight.

    Raises:
        ValueError: no such form or moment.
    """
    found = _compiled(_LENIENT).fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text[:40]!r} is no date-time")
    year, _, month, day, hour, minute, second, digits, zone = found.groups()
    micros, rest = (digits or "")[:6].ljust(6, "0"), (digits or "")[6:]
    moment = dt.datetime(
        int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), int(micros), UTC
    )
    return _less(moment, zone, text), bool(rest.strip("0"))


def is_naive(text: str) -> bool:
    """Whether ``lenient`` takes text to be in UTC because it names no zone."""
    found = _compiled(_LENIENT).fullmatch(text.strip())
    return found is not None and found[9] is None


def is_plain(text: str) -> bool:
    """Whether text has RFC 3339's usual form with at most six digits, which each reader takes. It may be no moment."""
    return _compiled(_USUAL).fullmatch(text) is not None


def lenient_moment(text: object) -> dt.datetime | None:
    """The datetime of ``lenient``, in UTC; None for what is no such text."""
    try:
        return lenient(text)[0] if isinstance(text, str) else None
    except ValueError:
        return None


def lenient_moments(texts: Sequence[str]) -> list[dt.datetime]:
    """Many of them, each with its own zone: quickly where all have the usual form.

    Raises:
        ValueError: one is no such text.
    """
    if not _are_all(_PLAIN, texts):
        return [lenient(text)[0] for text in texts]
    moments = list(map(dt.datetime.fromisoformat, texts))
    if None not in {moment.tzinfo for moment in moments}:
        return moments
    return [moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC) for moment in moments]


# ---- lake ------------------------------------------------------------------------------------------------------------


def lake(text: str) -> tuple[str, bool]:
    """``time_extracted`` in its one form (RFC 3339, UTC, six digits, ``Z``), and whether a zone was missing and UTC was
    assumed. In this form times sort as text. Digits beyond the sixth are cut.

    Raises:
        ValueError: the text is no date-time.
    """
    if _compiled(_SIX).fullmatch(text):
        return text, False
    found = _compiled(_LAKE).fullmatch(text)
    if found is None:
        raise ValueError(f"{text[:40]!r} is no RFC 3339 date-time")
    day, clock, digits, zone = found.groups()
    moment = dt.datetime.fromisoformat(f"{day}T{clock}.{(digits or '')[:6].ljust(6, '0')}+00:00")
    return format_time(_less(moment, zone, text)), zone is None


def is_lake_form(text: object) -> bool:
    """Whether this is a time in the one form of ``lake``."""
    return isinstance(text, str) and _compiled(_SIX).fullmatch(text) is not None


def are_lake_form(texts: Sequence[str]) -> bool:
    """Whether all of many texts are."""
    return _are_all(_SIXES, texts)


# ---- written ---------------------------------------------------------------------------------------------------------


def rfc3339(moment: dt.datetime) -> str | None:
    """An aware datetime as ``strict`` spells it; None if it is naive or leaves the calendar."""
    if moment.utcoffset() is None:
        return None
    try:
        return f"{moment.astimezone(UTC).isoformat().removesuffix('+00:00')}Z"
    except OverflowError:
        return None


def format_time(moment: dt.datetime) -> str:
    """RFC 3339 in UTC with six digits and ``Z``, as ``time_extracted`` has it.

    Raises:
        ValueError: a naive date-time (never a guess).
        OverflowError: one that leaves the years 1 to 9999 in UTC.
    """
    if moment.utcoffset() is None:
        raise ValueError(f"a date-time without a zone: {moment.isoformat()}")
    return f"{moment.astimezone(UTC).isoformat(timespec='microseconds').removesuffix('+00:00')}Z"


def moment(text: str) -> dt.datetime:
    """A text that was written by this module as a datetime in UTC; digits beyond the sixth are cut."""
    return dt.datetime.fromisoformat(text)


def spelled_like(text: str, like: object) -> str:
    """A date-time of ``strict`` in the spelling of another text: as many digits of a second (if that has any), the same
    zone, the same signs. Digits beyond those are cut, so that it lies before the moment, never after it. As it is,
    where ``like`` is no date-time, or the zone leads out of the calendar.
    """
    form = _compiled(_STRICT).fullmatch(like) if isinstance(like, str) else None
    if form is None or not isinstance(like, str):
        return text
    digits, zone = form[3] or "", form[4]
    body, _, fraction = text[:-1].partition(".")
    try:
        moment = dt.datetime.fromisoformat(body) + _offset(zone)
    except (ValueError, OverflowError):
        return text
    shown = moment.isoformat(sep=like[10])
    cut = fraction[: len(digits)].ljust(len(digits), "0") if digits else fraction
    return f"{shown}{'.' + cut if cut else ''}{zone}"


def in_form(value: object, form: str) -> str:
    """A date-time or date in a form of ``strftime``, in UTC. ``%3f`` gives milliseconds and ``%s`` seconds since 1970
    there. What the form has no room for is cut: the text lies before the moment, never after it.

    As text, ``05Z`` comes after ``05.400Z``. Where the text would be greater than the value's own, it says one unit
    less (``04Z``), which is less as text and as a moment.

    Raises:
        ValueError: the value is neither.
    """
    text = value.isoformat() if isinstance(value, dt.date) else value
    if isinstance(text, str) and len(text) == 10:
        text = f"{text}T00:00:00Z"
    moment = strict_moment(text) if isinstance(text, str) else None
    if moment is None or not isinstance(text, str):
        raise ValueError(f"{value!r:.60} is no date-time and no date")
    asked = _in_form(moment, form)
    # Two texts can be compared if they have one layout: the day, what stands behind it, and the zone.
    if asked <= text or asked[:11] != text[:11] or not text.endswith(("Z", "z", "+00:00", "-00:00")):
        return asked
    earlier = (_in_form(moment - step, form) for step in _UNITS if moment - _FIRST >= step)
    return next((one for one in earlier if one <= text), asked)


def time_of_day(since_midnight: dt.timedelta) -> str:
    """``HH:MM:SS`` with six digits of a second or none: what drivers give as a timedelta for a TIME column."""
    return (dt.datetime(1, 1, 1, tzinfo=UTC) + since_midnight).time().isoformat()


def duration(length: dt.timedelta) -> str:
    """An ISO 8601 duration in days and seconds, ``P1DT2.5S``; one below zero begins with ``-``."""
    sign, length = ("-", -length) if length < dt.timedelta(0) else ("", length)
    seconds = f"{length.seconds}.{length.microseconds:06d}".rstrip("0").rstrip(".")
    days = f"{length.days}D" if length.days else ""
    time = f"T{seconds}S" if seconds != "0" or not days else ""
    return f"{sign}P{days}{time}"


_EPOCH, _SECOND = dt.datetime(1970, 1, 1, tzinfo=UTC), dt.timedelta(seconds=1)
_FIRST = dt.datetime.min.replace(tzinfo=UTC)
_UNITS = [_SECOND / 10**6, _SECOND / 1000, _SECOND, 60 * _SECOND]


def _in_form(moment: dt.datetime, form: str) -> str:
    own = {"%3f": f"{moment.microsecond // 1000:03}", "%s": str((moment - _EPOCH) // _SECOND), "%%": "%%"}
    return moment.strftime(re.sub(r"%(3f|s|%)", lambda found: own[found[0]], form))


@cache
def _offset(zone: str) -> dt.timedelta:
    """What a zone is ahead of UTC: ``Z``, ``+02:00``, ``+0200``, ``+02``."""
    if zone in "Zz":
        return dt.timedelta(0)
    offset = dt.timedelta(hours=int(zone[1:3]), minutes=int(zone[3:].removeprefix(":") or 0))
    return -offset if zone[0] == "-" else offset


def _less(moment: dt.datetime, zone: str | None, text: str) -> dt.datetime:
    try:
        return moment - _offset(zone) if zone else moment
    except OverflowError:
        raise ValueError(f"{text[:40]!r} leaves the years 1 to 9999 in UTC") from None


def _are_all(lines: str, texts: Sequence[str]) -> bool:
    """Whether each text is a line of the pattern."""
    joined = "\n".join(texts) + "\n"
    return not texts or (_compiled(lines).fullmatch(joined) is not None and joined.count("\n") == len(texts))
