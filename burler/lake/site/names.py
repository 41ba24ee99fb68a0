"""Names of pages, and of places in them: made of a few safe characters, whatever the lake calls things."""

from __future__ import annotations

import hashlib
import re

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
