"""Texts of date-times and dates to Arrow, a column at a time, where that surely gives what the exact path gives.

The forms taken here are RFC 3339's, narrower than those that ``burler.columns.values.parse_moment`` reads: Arrow's own
parser takes some that are none (an hour without minutes), so the form is looked at first.
"""

from __future__ import annotations

from typing import Any

from burler.pipeline.arrow_text import bytes_of

_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31
_DAY_US = 86_400_000_000
_FORM = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$"
_PLACES = {4: b"-", 7: b"-", 10: b"T", 13: b":", 16: b":", 19: b"."}


def moments(texts: Any) -> Any | None:
    """A string array as timestamp[us, UTC]; None where some text wants a closer look.

    Raises:
        pyarrow.ArrowInvalid: the same.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if len(texts) > texts.null_count:
        if not _as_one(texts) and not pc.all(pc.match_substring_regex(texts, _FORM)).as_py():
            return None
        array = texts.cast(pa.timestamp("us", "UTC"))
        return array if _within(array.view(pa.int64()), _FIRST_DAY * _DAY_US, (_LAST_DAY + 1) * _DAY_US - 1) else None
    return texts.cast(pa.timestamp("us", "UTC"))


def days(texts: Any) -> Any | None:
    """A string array as date32, likewise."""
    import pyarrow as pa

    array = texts.cast(pa.date32())
    return array if _within(array.view(pa.int32()), _FIRST_DAY, _LAST_DAY) else None


def _as_one(texts: Any) -> bool:
    """Whether all have the form ``2024-01-02T03:04:05Z``, or that with six digits: looked at place by place, for all
    of them at once."""
    import pyarrow.compute as pc

    width, count = pc.min(pc.binary_length(texts)).as_py(), len(texts) - texts.null_count
    data = bytes(bytes_of(texts))
    if width not in (20, 27) or len(data) != width * count:
        return False
    places = {**_PLACES, width - 1: b"Z"}
    return all(data[place::width] == character * count for place, character in places.items())


def _within(counts: Any, least: int, most: int) -> bool:
    import pyarrow.compute as pc

    ends = pc.min_max(counts).as_py()
    return ends["min"] is None or (ends["min"] >= least and ends["max"] <= most)
