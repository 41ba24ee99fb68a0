"""States that a tap must take: empty ones, of streams that are gone, and one of just now."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

GONE = "a-stream-that-is-gone"

STATES: tuple[tuple[str, Any], ...] = (
    ("an empty state", {}),
    ("a state without bookmarks", {"bookmarks": {}}),
    ("a state of a stream that is gone", {"bookmarks": {GONE: {"id": 1}}, "currently_syncing": GONE}),
)
"""First runs are given the first two, and streams do go."""

_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)(?:([T ])(\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d(:?)\d\d)?)?")
_NAMES = ("context",)
"""What stands below these names a part of a stream, and is no bookmark."""


def as_of(state: Any, now: dt.datetime) -> Any:
    """A copy of a state in which each bookmark that is a date or a date-time is ``now`` (UTC), in its own form: what a
    source has nothing newer than. Later ones, and all else, stay as they are."""
    if isinstance(state, dict):
        return {key: value if key in _NAMES else as_of(value, now) for key, value in state.items()}
    if isinstance(state, list):
        return [as_of(value, now) for value in state]
    found = _MOMENT.fullmatch(state) if isinstance(state, str) else None
    if found is None:
        return state
    day, between, seconds, fraction, zone, colon = found.groups()
    today, clock = f"{now:%Y-%m-%d}", f"{now:%H:%M:%S}"
    if (day, seconds or "") >= (today, clock if seconds else ""):
        return state
    if not seconds:
        return today
    zero = "." + "0" * (len(fraction) - 1) if fraction else ""
    offset = f"+00{colon}00" if zone and zone != "Z" else zone or ""
    return f"{today}{between}{clock}{zero}{offset}"
