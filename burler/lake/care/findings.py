"""What ``check`` can find, and what to do about each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "orphan",
    "unfinished",
    "missing",
    "double",
    "hash",
    "torn",
    "message",
    "time",
    "count",
    "misplaced",
    "json",
    "no manifest",
    "twins",
    "lock",
    "leftover",
]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong: where (a path in the lake), what, and what to do about it."""

    kind: Kind
    path: str
    fact: str
    cure: str


_ANEW = "Restore it from a copy. Else move it out of the lake, run burler lake rebuild, and extract that time again."
LEFT_OUT = "Restore it from a copy; then burler lake rebuild. Else move it out of the lake; extract that time again."
"""The cure for a damaged file that no manifest names."""
_CURES: dict[Kind, str] = {
    "orphan": "burler lake rebuild{only} takes it in; burler lake vacuum removes it once it is old.",
    "unfinished": "Nothing is lost: burler lake vacuum removes it once it is old.",
    "missing": "Restore it from a copy. Else burler lake rebuild drops it; then extract that time again.",
    "double": "burler lake rebuild lists the compacted file alone.",
    "hash": "Restore it from a copy, or move it to the folder it belongs to; then burler lake rebuild.",
    "torn": _ANEW,
    "message": _ANEW,
    "time": "Give it the right name; then burler lake rebuild.",
    "count": "If it was changed, restore it from a copy; burler lake rebuild takes it as it is.",
    "misplaced": "Move it into the folder of its schema version; then burler lake rebuild.",
    "json": "burler lake rebuild makes it anew.",
    "no manifest": "burler lake rebuild makes it anew.",
    "twins": "Rename one of them: in the tap, and its folder; then burler lake rebuild.",
    "lock": "The next writer takes it over; burler lake vacuum removes it once it is old.",
    "leftover": "burler lake vacuum removes it.",
}


def finding(kind: Kind, path: str, fact: str, cure: str | None = None, *, only: str = "") -> Finding:
    """A finding with the usual cure of its kind, or its own. ``only``: options that keep a command to one stream."""
    return Finding(kind, path, fact, cure or _CURES[kind].replace("{only}", only))
