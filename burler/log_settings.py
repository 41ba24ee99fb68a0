"""What the log of this process shows beside what it must. As the log itself it is of the process, not of one run."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

from burler.settings import Settings


class LogSettings:
    """The settings of a run that its log follows.

    Attributes:
        values: values of rows may stand in log lines, errors and reports.
        requests: each HTTP request has a METRIC line.
    """

    def __init__(self) -> None:
        self.values = False
        self.requests = False

    def follow(self, settings: Settings) -> None:
        """From here on it is as a run's settings say."""
        self.values, self.requests = settings.log_values, settings.metrics == "requests"


log_settings = LogSettings()


def value(text: str) -> str:
    """A value in an error about it; ``a value`` where values are not shown."""
    return text if log_settings.values else "a value"


def near(data: bytes | str, most: int = 60) -> str:
    """``, near 'data'``, for an error about data that is broken there; nothing where values are not shown."""
    if not log_settings.values:
        return ""
    text = data if isinstance(data, str) else data[: 4 * most].decode("utf-8", "replace")
    return f", near {text[:most]!r}"


_KINDS = ((bool, "a boolean"), (int, "an integer"), (float, "a number"), (str, "a string"))


def describe(item: Any) -> str:
    """What an item is, for an error: its kind, or its type and a glimpse of short scalars where values are shown."""
    if item is None:
        return "None"
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str):
        return f"({f'{item[0]!r:.60}' if log_settings.values else 'a string'}, {describe(item[1])})"
    if isinstance(item, dt.date):
        zone = " (no zone)" if isinstance(item, dt.datetime) and item.tzinfo is None else ""
        return f"{type(item).__name__}{f' {item.isoformat()}' if log_settings.values else ''}{zone}"
    if not isinstance(item, str | int | float | bool):
        return type(item).__name__
    if log_settings.values:
        try:
            return f"{type(item).__name__} {item!r:.60}"
        except ValueError:  # Python writes no integer of more than 4300 digits
            return f"an {type(item).__name__} of thousands of digits"
    if isinstance(item, str) and _is_broken(item):
        return "a string with half of a surrogate pair"
    if item == "":
        return "an empty string"
    if isinstance(item, float) and not math.isfinite(item):
        return f"a number that is {item}"
    return next(words for kind, words in _KINDS if isinstance(item, kind))


def _is_broken(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
