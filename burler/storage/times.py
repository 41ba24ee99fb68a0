"""When a file of a store changed last. Each store of fsspec's has its own name and spelling for it: here they are."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from typing import Any

from burler import times

KEYS = ("mtime", "LastModified", "last_modified", "Last-Modified", "updated", "modified", "modify")
"""How stores call it. When a file was made is another matter: it may have been written to since."""
_FTP_TIME = re.compile(r"(\d{14})(?:\.\d+)?")  # MLSD, in UTC
_HTTP_DAY = re.compile("[A-Z][a-z]{2}, ")


def said_time(store: Any, info: Mapping[str, Any]) -> Any:
    """What a store says of the time of a file's last change, as it says it; None where it does not.

    Args:
        store: of fsspec's.
        info: an entry of its listing.
    """
    value = next((info[key] for key in KEYS if info.get(key)), None)
    if value is None:
        try:
            value = store.modified(info["name"])
        except (NotImplementedError, OSError, KeyError, AttributeError):
            return None
    return value


def micros(value: Any) -> int | None:
    """A time in microseconds since 1970; None for one that can't be read."""
    if isinstance(value, str):
        value = _parsed(value)
    if isinstance(value, dt.datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
        return (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
    return round(value * 1_000_000) if isinstance(value, int | float) else None


def modified_seconds(store: Any, info: Mapping[str, Any]) -> float | None:
    """The time of a file's last change in seconds since 1970; None where the store does not say, or nobody can read
    it: such a file is never old."""
    found = micros(said_time(store, info))
    return None if found is None else found / 1_000_000


def _parsed(text: str) -> dt.datetime | None:
    from email.utils import parsedate_to_datetime

    digits = _FTP_TIME.fullmatch(text)
    try:
        if digits:
            return dt.datetime.strptime(digits[1], "%Y%m%d%H%M%S").replace(tzinfo=dt.UTC)
        return parsedate_to_datetime(text) if _HTTP_DAY.match(text) else times.lenient_moment(text)
    except (ValueError, TypeError):
        return None
