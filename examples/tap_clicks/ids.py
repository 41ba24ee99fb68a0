"""Ids of entries of Redis streams: two whole numbers of 64 bits, ``<milliseconds since 1970>-<number>``."""

from __future__ import annotations

import datetime as dt

_DIGITS = 20  # 2**64 has as many
_LAST_MS = 253_402_300_799_999  # the end of the year 9999


def number(entry_id: str) -> tuple[int, int]:
    """What ids are ordered by."""
    milliseconds, _, count = entry_id.partition("-")
    return int(milliseconds), int(count or 0)


def sortable(entry_id: str) -> str:
    """An id as a text that sorts as the ids do: both numbers with leading zeros. Not as a number, since many programs
    that keep a state read JSON numbers as floats, and those end at 2**53."""
    milliseconds, count = number(entry_id)
    return f"{milliseconds:0{_DIGITS}}-{count:0{_DIGITS}}"


def from_sortable(text: str | None) -> str:
    """The id of a bookmark; ``0-0``, before the first entry, where there is none."""
    if text is None:
        return "0-0"
    return "-".join(map(str, number(text)))


def moment(entry_id: str) -> str | None:
    """When an entry was added, by the server's clock, RFC 3339; None if its id holds no time of this calendar."""
    milliseconds = number(entry_id)[0]
    if milliseconds > _LAST_MS:
        return None
    at = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=milliseconds)
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")
