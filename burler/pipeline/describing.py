"""What something that user code has yielded is, in the words of an error."""

from __future__ import annotations

import datetime as dt
from typing import Any


def describe(item: Any) -> str:
    """What an item is, for an error: its type, and a glimpse of short scalars."""
    if item is None:
        return "None"
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str):
        return f"({item[0]!r:.60}, {describe(item[1])})"
    if isinstance(item, str | int | float | bool):
        try:
            return f"{type(item).__name__} {item!r:.60}"
        except ValueError:  # Python writes no integer of more than 4300 digits
            return f"an {type(item).__name__} of thousands of digits"
    if isinstance(item, dt.date):
        zone = " (no zone)" if isinstance(item, dt.datetime) and item.tzinfo is None else ""
        return f"{type(item).__name__} {item.isoformat()}{zone}"
    return type(item).__name__
