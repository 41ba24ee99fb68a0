"""Date-times as burler writes them: RFC 3339, UTC, ``Z``; never a guess and never a lost digit."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

_EPOCH, _SECOND = dt.datetime(1970, 1, 1, tzinfo=dt.UTC), dt.timedelta(seconds=1)
_FIRST = dt.datetime.min.replace(tzinfo=dt.UTC)
_UNITS = [_SECOND / 10**6, _SECOND / 1000, _SECOND, 60 * _SECOND]
_UTC = ("Z", "z", "+00:00", "-00:00")
_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def canonical_text(text: str) -> str | None:
    """A date-time with a zone as RFC 3339 in UTC with ``Z``; None if the text is no such thing.

    The fraction is written as Python and msgspec write it, with six digits or none; one of more than six
    digits stays as it is, since to round it would lose digits. A leap second is no time that readers
    know, and is refused like any other out-of-range part.
    """
    found = _RFC3339.fullmatch(text)
    if found is None:
        return None
    date, time, fraction, zone = found.groups()
    if time >= "24" or zone[4:] >= "60":  # Python takes some of these, depending on its version
        return None
    try:
        moment = dt.datetime.fromisoformat(f"{date}T{time}{'+00:00' if zone in 'Zz' else zone}").astimezone(dt.UTC)
    except (ValueError, OverflowError):
        return None
    if fraction and len(fraction) <= 6:
        fraction = fraction.ljust(6, "0") if fraction.strip("0") else None
    return moment.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0") + (f".{fraction}" if fraction else "") + "Z"


def from_datetime(moment: dt.datetime) -> str | None:
    """An aware datetime as RFC 3339 in UTC; None if it is naive (strict) or leaves the calendar."""
    if moment.tzinfo is None or moment.utcoffset() is None:
        return None
    try:
        utc = moment.astimezone(dt.UTC)
    except OverflowError:
        return None
    return utc.isoformat().removesuffix("+00:00") + "Z"


def spelled_like(text: str, like: Any) -> str:
    """A canonical date-time in the spelling of another one: as many digits of a second (if that has any), the same
    zone, the same signs. Digits beyond those are cut, so that it lies before the moment, never after it. As it is,
    where ``like`` is no date-time, or the zone leads out of the calendar.
    """
    form = _RFC3339.fullmatch(like) if isinstance(like, str) else None
    if form is None:
        return text
    digits, zone = form[3] or "", form[4]
    body, _, fraction = text[:-1].partition(".")
    try:
        moment = dt.datetime.fromisoformat(f"{body}+00:00").astimezone(_zone(zone))
    except (ValueError, OverflowError):
        return text
    shown = moment.isoformat(sep=like[10], timespec="seconds")[:19]
    cut = fraction[: len(digits)].ljust(len(digits), "0") if digits else fraction
    return f"{shown}{'.' + cut if cut else ''}{zone}"


def written(value: Any, form: str) -> str:
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
    canonical = canonical_text(text) if isinstance(text, str) else None
    if canonical is None:
        raise ValueError(f"{value!r:.60} is no date-time and no date")
    body, _, fraction = canonical[:-1].partition(".")
    moment = dt.datetime.fromisoformat(f"{body}.{fraction[:6].ljust(6, '0')}+00:00")
    asked = _in_form(moment, form)
    # Two texts can be compared if they have one layout: the day, what stands behind it, and the zone.
    if asked <= text or asked[:11] != text[:11] or not text.endswith(_UTC):
        return asked
    earlier = (_in_form(moment - step, form) for step in _UNITS if moment - _FIRST >= step)
    return next((one for one in earlier if one <= text), asked)


def _in_form(moment: dt.datetime, form: str) -> str:
    own = {"%3f": f"{moment.microsecond // 1000:03}", "%s": str((moment - _EPOCH) // _SECOND), "%%": "%%"}
    return moment.strftime(re.sub(r"%(3f|s|%)", lambda found: own[found[0]], form))


def _zone(text: str) -> dt.timezone:
    """``Z``, or ``+02:00``."""
    if text in "Zz":
        return dt.UTC
    offset = dt.timedelta(hours=int(text[1:3]), minutes=int(text[4:]))
    return dt.timezone(-offset if text[0] == "-" else offset)


def sortable(text: str) -> tuple[dt.datetime, str] | None:
    """A value to compare date-time texts by: the second, then the digits of the fraction.

    Plain text order is wrong as soon as fractions differ in length ("5.1Z" < "5Z").
    """
    canonical = canonical_text(text)
    if canonical is None:
        return None
    body, _, fraction = canonical[:-1].partition(".")
    return dt.datetime.fromisoformat(body + "+00:00"), fraction.rstrip("0")


def time_of_day(since_midnight: dt.timedelta) -> str:
    """``HH:MM:SS`` with six digits of a second or none: what drivers give as a timedelta for a TIME column."""
    return (dt.datetime(1, 1, 1, tzinfo=dt.UTC) + since_midnight).time().isoformat()


def duration(length: dt.timedelta) -> str:
    """An ISO 8601 duration in days and seconds, ``P1DT2.5S``; one below zero begins with ``-``."""
    sign, length = ("-", -length) if length < dt.timedelta(0) else ("", length)
    seconds = f"{length.seconds}.{length.microseconds:06d}".rstrip("0").rstrip(".")
    days = f"{length.days}D" if length.days else ""
    time = f"T{seconds}S" if seconds != "0" or not days else ""
    return f"{sign}P{days}{time}"
