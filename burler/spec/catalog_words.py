"""What the checks of catalogs share: reporting for one stream, and values of strangers in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from burler.spec.finding import Findings

_LONGEST = 60
_MOST = 5


@dataclass(frozen=True, slots=True)
class Reporter:
    """Adds findings on one stream, all with the same place ("streams[2]" or "line 12")."""

    findings: Findings
    stream: str | None
    place: str | None

    def add(self, code: str, message: str, *, path: str | None = None, place: str | None = None) -> None:
        """Report something of the stream; ``place``: one that is more exact."""
        self.findings.add(
            code, message, stream=_whole(self.stream), path=_whole(path or None), place=place or self.place
        )


def _whole(text: str | None) -> str | None:
    """Text that can be written as UTF-8: JSON may hold half a surrogate pair."""
    return text if text is None or text.isascii() else text.encode("utf-8", "replace").decode()


def cut(text: str) -> str:
    """Text of a stranger, printable and short."""
    shown = text[: _LONGEST + 1]
    shown = shown if shown.isprintable() else ascii(shown)[1:-1]
    return shown if len(text) <= _LONGEST else f"{shown[:_LONGEST]}..."


def quoted(names: Sequence[str]) -> str:
    """``'a', 'b' and 3 more``."""
    shown = ", ".join(f"'{cut(name)}'" for name in names[:_MOST])
    return f"{shown} and {len(names) - _MOST} more" if len(names) > _MOST else shown


def said(value: Any) -> str:
    """A JSON value in a sentence. Objects and lists are not opened: they may be huge, and hold anything."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return f"the text '{cut(value)}'"
    if isinstance(value, int | float):
        return f"the number {value}" if abs(value) < 10**20 else "a huge number"
    if isinstance(value, Mapping):
        return "an object" if value else "an empty object"
    if isinstance(value, list | tuple):
        return "a list" if value else "an empty list"
    return f"a {type(value).__name__}"


def texts(value: Any) -> list[str] | None:
    """A list of texts, or None if it is none."""
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        return list(value)
    return None
