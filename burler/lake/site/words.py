"""Counts, sizes and times as a person reads them; names of pages, and of places in them, made of a few safe characters
whatever the lake calls things.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re

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


_MOST = 60
_PAGE = re.compile(r"[^a-z0-9_-]+")
_ANCHOR = re.compile(r"[^A-Za-z0-9_.-]+")
# Device names of Windows; the page that every folder has; what we make of names that are not safe.
_TAKEN = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d|index|(?:.*-)?[0-9a-f]{12})\Z")


def page_name(name: str) -> str:
    """A file name without ending: ``[a-z0-9_-]`` alone, at most 73 characters, never two names alike.

    A name that is not so itself is made so, and gets a part of its SHA-256; nothing else of the lake has a say in it,
    so that a page keeps its address. Two names that differ only in case get two pages everywhere.
    """
    return _safe(name.lower(), name, _PAGE)


def anchor(path: str) -> str:
    """The ``id`` of a field's row: ``f-address.city``."""
    return "f-" + _safe(path, path, _ANCHOR)


def _safe(wanted: str, name: str, unsafe: re.Pattern[str]) -> str:
    text = unsafe.sub("-", wanted)[:_MOST].strip("-")
    if text == name and not _TAKEN.match(text):
        return text
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{text}-{digest}" if text else digest


class Unlike:
    """Names that must not come twice: folders of other writers may stand for one name, hashes may be made to meet."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._taken

    def one(self, name: str, other: str) -> str:
        """``name``, or ``other`` if it is taken, or that with a number."""
        found, number = name, 1
        while found in self._taken:
            found, number = other if number == 1 else f"{other}-{number}", number + 1
        self._taken.add(found)
        return found
