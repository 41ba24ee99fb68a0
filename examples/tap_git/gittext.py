"""What git prints, as text that JSON can hold: messages, names, paths, times."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta

_ESCAPES = {ord(c): f"\\{e}" for c, e in zip('\a\b\t\n\v\f\r"\\', 'abtnvfr"\\', strict=True)}


def time_of(seconds: str | bytes) -> str | None:
    """Return Unix seconds as RFC 3339 text in UTC; None if there are none or the year is not 1-9999."""
    try:
        at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=int(seconds))
    except (ValueError, OverflowError):
        return None
    return at.strftime("%Y-%m-%dT%H:%M:%SZ").zfill(20)  # %Y has no leading zeros everywhere


def text_of(raw: bytes) -> str:
    """Return UTF-8, else latin-1 text up to a NUL (git has converted what a commit says it is in)."""
    raw = raw.partition(b"\0")[0]
    with suppress(UnicodeDecodeError):
        return raw.decode()
    return raw.decode("latin-1")


def name_of(raw: bytes) -> str:
    """Return a path or ref name as text, one to one: what is not UTF-8 comes in git's C-style quotes."""
    if not raw.startswith(b'"'):
        with suppress(UnicodeDecodeError):
            return raw.decode()
    return '"' + "".join(_ESCAPES.get(b) or (chr(b) if 31 < b < 127 else f"\\{b:03o}") for b in raw) + '"'
