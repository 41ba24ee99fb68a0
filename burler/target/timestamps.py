"""``time_extracted`` in its one form: RFC 3339, UTC, six digits, ``Z``.

In this form times sort as text, so a file's least and greatest are found without parsing.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence

from burler.singer.messages import format_time

_CANONICAL = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)
_MANY = re.compile(r"(?:\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{6}Z(?:\n|\Z))++", re.ASCII)
_READ = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:[.,](\d{1,6})\d*)?\s?([Zz]|[+-]\d\d(?::?\d\d)?)?", re.ASCII
)


def normalise_time(text: str) -> tuple[str, bool]:
    """(the time in its one form, whether a zone was missing and UTC was assumed).

    Digits beyond microseconds are cut off.

    Raises:
        ValueError: the text is no date-time.
    """
    found = _READ.fullmatch(text)
    if found is None:
        raise ValueError(f"{text[:40]!r} is no RFC 3339 date-time")
    date, time, fraction, zone = found.groups()
    offset = "+00:00" if zone is None or zone in "Zz" else zone
    moment = dt.datetime.fromisoformat(f"{date}T{time}.{(fraction or '').ljust(6, '0')}{offset}")
    if _CANONICAL.fullmatch(text):
        return text, False
    try:
        return format_time(moment), zone is None
    except OverflowError:
        raise ValueError(f"{text!r} leaves the years 1 to 9999 in UTC") from None


def is_normal(text: str) -> bool:
    """Whether a text is a time in the one form."""
    try:
        return _CANONICAL.fullmatch(text) is not None and normalise_time(text)[0] == text
    except ValueError:
        return False


def checked(value: object) -> str:
    """A value that must be a time in the one form, as it is.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(value, str) or _CANONICAL.fullmatch(value) is None:
        raise ValueError(f"{str(value)[:40]!r} is no time of the form 2024-01-02T03:04:05.678901Z")
    to_moment(value)
    return value


def are_all_canonical(texts: Sequence[str]) -> bool:
    """Whether all texts are times in the one form: ``checked`` of many."""
    joined = "\n".join(texts)
    if joined.count("\n") != len(texts) - 1 or _MANY.fullmatch(joined) is None:
        return not texts
    try:
        for day in {text[:10] for text in texts}:
            dt.date.fromisoformat(day)
    except ValueError:
        return False
    return True


def to_moment(text: str) -> dt.datetime:
    """A time in the one form as an aware datetime."""
    return dt.datetime.fromisoformat(text)
