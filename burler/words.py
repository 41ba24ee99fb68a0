"""Numbers of things, and lists of names, in words."""

from __future__ import annotations


def counted(number: int, what: str) -> str:
    """``1 row``, ``2,000 rows``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def some(names: list[str], most: int = 30) -> str:
    """Names for an error, not more than fit one line."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return (", ".join(names[:most]) or "none") + more
