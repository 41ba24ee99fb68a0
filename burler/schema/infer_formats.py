"""Formats that inference finds in text: only those that a text either has or has not."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable

from burler.times import is_date, strict

_TIME = re.compile(r"(\d\d:\d\d:\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_UUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}", re.ASCII)


def is_date_time(text: str) -> bool:
    """Whether text is an RFC 3339 date-time with a zone, as shaping takes it."""
    return strict(text) is not None


def is_time(text: str) -> bool:
    """Whether text is an RFC 3339 time of day with a zone."""
    found = _TIME.fullmatch(text)
    return found is not None and is_date_time("2000-06-15T" + text)


FORMATS: dict[str, Callable[[str], bool]] = {
    "date-time": is_date_time,
    "date": is_date,
    "time": is_time,
    "uuid": lambda text: _UUID.fullmatch(text) is not None,
}


def iso_text(moment: dt.datetime) -> str:
    """An aware datetime as RFC 3339 text, its offset cut to minutes: only whether it stays in the calendar counts."""
    text = moment.isoformat()
    return text if len(text[text.rindex(":") :]) == 3 and text[-6] in "+-" else text[: text.rindex(":")]
