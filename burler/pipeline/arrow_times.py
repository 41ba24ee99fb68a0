"""Arrow's dates and times to JSON text, as ``arrow_text`` does it: RFC 3339, UTC, no digit lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burler.pipeline.arrow_text import Parts, Unsure, join, one_number, quoted

_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
FIRST_DAY, LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31


def date_parts(array: Any) -> Parts:
    """Dates of the years 1 to 9999."""
    import pyarrow as pa

    return quoted(days(array).cast(pa.string()))


def days(array: Any) -> Any:
    """The same as dates of 32 bits."""
    import pyarrow as pa

    if pa.types.is_date64(array.type):
        array = array.view(pa.timestamp("ms")).cast(pa.date32(), safe=False)
    check_bounds(array.view(pa.int32()), FIRST_DAY, LAST_DAY)
    return array


def moments_us(array: Any) -> Any:
    """Timestamps with a zone, of the years 1 to 9999, as microseconds in UTC; none of them loses a digit."""
    import pyarrow as pa

    made = array.cast(pa.timestamp("us", "UTC"))
    check_bounds(made.view(pa.int64()), FIRST_DAY * 86_400_000_000, (LAST_DAY + 1) * 86_400_000_000 - 1)
    return made


def timestamp_parts(array: Any) -> Parts:
    """Timestamps with a zone in UTC with ``Z``; a fraction of six digits, or nine where six lose some, or none."""
    import pyarrow as pa

    unit = array.type.unit
    counts = array.view(pa.int64())
    per = _PER_SECOND[unit]
    check_bounds(counts, FIRST_DAY * 86_400 * per, (LAST_DAY + 1) * 86_400 * per - 1)
    if unit == "ms":
        unit, moments = "us", counts.view(pa.timestamp("ms")).cast(pa.timestamp("us"))
        counts = moments.view(pa.int64())
    else:
        moments = counts.view(pa.timestamp(unit))
    day = moments.cast(pa.date32(), safe=False).cast(pa.string())
    clock = moments.cast(pa.time32("s") if unit == "s" else pa.time64(unit), safe=False)
    return quoted(day, "T", _clock(clock, counts, unit), "Z")


def time_parts(array: Any) -> Parts:
    """Times of day as Python writes them: six digits of a second or none, nine where six lose some."""
    import pyarrow as pa

    unit = array.type.unit
    counts = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    check_bounds(counts, 0, 86_400 * _PER_SECOND[unit] - 1)
    if unit == "ms":
        unit, array = "us", array.cast(pa.time64("us"))
        counts = array.view(pa.int64())
    return quoted(_clock(array, counts, unit))


def _clock(clock: Any, counts: Any, unit: str) -> Any:
    """``HH:MM:SS`` with as many digits as each value needs. ``counts`` are in ``unit``, of the day or the epoch."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if unit == "s":
        return clock.cast(pa.string())
    whole = _multiples(counts, _PER_SECOND[unit])
    if pc.all(whole).as_py():
        return _seconds(clock)
    fine = clock.cast(pa.string())
    if unit == "ns":
        fine = _either(
            _multiples(counts, 1000), lambda: clock.cast(pa.time64("us"), safe=False).cast(pa.string()), fine
        )
    return _either(whole, lambda: _seconds(clock), fine)


def _seconds(clock: Any) -> Any:
    import pyarrow as pa

    return clock.cast(pa.time32("s"), safe=False).cast(pa.string())


def _either(mask: Any, coarse: Callable[[], Any], fine: Any) -> Any:
    """The coarse text where the mask says so."""
    import pyarrow.compute as pc

    return pc.if_else(mask, coarse(), fine) if pc.any(mask).as_py() else fine


def _multiples(counts: Any, of: int) -> Any:
    import pyarrow.compute as pc

    step = one_number(of)
    return pc.equal(pc.multiply(pc.divide(counts, step), step), counts)


def check_bounds(counts: Any, least: int, most: int) -> None:
    """Raise ``Unsure`` for counts that are not all between the bounds."""
    import pyarrow.compute as pc

    bounds = pc.min_max(counts).as_py()
    if bounds["min"] < least or bounds["max"] > most:
        raise Unsure


def date_time_string_parts(array: Any) -> Parts:
    """Texts that are date-times exactly as burler writes them."""
    import pyarrow as pa

    return _as_given(array, timestamp_parts(array.cast(pa.timestamp("us", "UTC"))))


def date_string_parts(array: Any) -> Parts:
    """Texts that are dates as RFC 3339 has them."""
    import pyarrow as pa

    return _as_given(array, date_parts(array.cast(pa.date32())))


def _as_given(array: Any, parts: Parts) -> Parts:
    """The array in quotes, if what was read from it is written as it stands there."""
    import pyarrow.compute as pc

    given = quoted(array)
    if not pc.all(pc.equal(join(given, len(array)), join(parts, len(array)))).as_py():
        raise Unsure
    return given
