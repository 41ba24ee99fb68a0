"""Counts, sizes and times as a person reads them."""

from __future__ import annotations

import datetime as dt

_SIZES = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_AGES = ((365.25 * 86400, "year"), (30.44 * 86400, "month"), (86400.0, "day"), (3600.0, "hour"), (60.0, "minute"))


def count(number: int) -> str:
    """With its thousands apart."""
    return f"{number:,}"


def size(number: int) -> str:
    """``0 bytes``, ``1 byte``, ``1.5 KiB``, ``12 MiB``."""
    if number < 1024:
        return "1 byte" if number == 1 else f"{number} bytes"
    value, unit = float(number), 0
    while value >= 999.5 and unit < len(_SIZES) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:,.1f}".removesuffix(".0") + f" {_SIZES[unit]}" if value < 10 else f"{value:,.0f} {_SIZES[unit]}"


def clock(moment: dt.datetime) -> str:
    """``2024-01-02 12:00 UTC``."""
    return f"{moment.astimezone(dt.UTC).replace(tzinfo=None).isoformat(' ', 'minutes')} UTC"


def machine(moment: dt.datetime) -> str:
    """As the ``datetime`` attribute has it."""
    return moment.astimezone(dt.UTC).replace(tzinfo=None).isoformat("T", "seconds") + "Z"


def age(moment: dt.datetime, now: dt.datetime) -> str:
    """``5 minutes ago``, ``2 days ago``; what lies ahead of the clock by more than a minute is said to."""
    seconds = (now - moment).total_seconds()
    if abs(seconds) < 60:
        return "just now"
    length, unit = next((length, unit) for length, unit in _AGES if abs(seconds) >= length)
    number = int(abs(seconds) // length)
    words = f"{number:,} {unit}{'s' if number > 1 else ''}"
    return f"{words} ago" if seconds > 0 else f"{words} in the future"


def cut(text: str, most: int) -> str:
    """Not longer than ``most`` characters."""
    return text if len(text) <= most else text[: most - 1] + "…"
