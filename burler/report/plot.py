"""A line over time as SVG, to stand inside a page: no script, no picture file, colours from the page's style.

Moments are seconds since 1970 in UTC, as floats.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from typing import Any

from burler import times

Ticks = list[tuple[float, str]]
"""Places on an axis, and what is written there."""

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_DAY = 86400.0
_CLOCK_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)
_DAY_STEPS = (1, 2, 7, 14)
_MONTH_STEPS = (1, 2, 3, 6)
_EXACT = 2**53
_WIDTH, _HEIGHT = 480, 190
_TOP, _BOTTOM, _RIGHT = 12, 24, 16
_CHARACTER = 6.2  # of a label, in the units of the picture


def rows_plot(seconds: Sequence[float], rows: Sequence[int]) -> str:
    """Rows over time, from zero on; empty where there is nothing to see."""
    if len(seconds) < 2 or not max(rows):
        return ""
    values = [float(count) for count in rows]
    return _svg("Rows over time", seconds, values, _number_ticks(0.0, max(values)), low=0.0, filled=True)


def bookmark_plot(seconds: Sequence[float], bookmarks: Sequence[Any]) -> str:
    """A bookmark over time, on an axis of moments or of numbers; empty where it is neither, or never was one."""
    present = [(at, value) for at, value in zip(seconds, bookmarks, strict=True) if value is not None]
    if len(present) < 2:
        return ""
    for read, ticks in ((_moment_of, _moment_ticks), (_number_of, _number_ticks)):
        values = [read(value) for _, value in present]
        found = [value for value in values if value is not None]
        if len(found) == len(values):
            moments = [at for at, _ in present]
            low, high = min(found), max(found)
            return _svg("Bookmark over time", moments, found, ticks(low, high), low=low, span=(seconds[0], seconds[-1]))
    return ""


def _svg(
    title: str,
    seconds: Sequence[float],
    values: Sequence[float],
    ticks: Ticks,
    *,
    low: float,
    span: tuple[float, float] | None = None,
    filled: bool = False,
) -> str:
    begin, end = span or (seconds[0], seconds[-1])
    left = 14 + _CHARACTER * max(len(text) for _, text in ticks)
    across = (_WIDTH - left - _RIGHT) / max(end - begin, 1e-9)
    down = (_HEIGHT - _TOP - _BOTTOM) / max(max(values) - low, 1e-300)
    floor = _HEIGHT - _BOTTOM

    def x(at: float) -> float:
        return left + (at - begin) * across

    def y(value: float) -> float:
        return floor - (value - low) * down

    # A bookmark and a count stay where they are until the next point: steps, not slopes.
    steps = "".join(f"H{x(at):.1f}V{y(value):.1f}" for at, value in zip(seconds[1:], values[1:], strict=True))
    line = f"M{x(seconds[0]):.1f} {y(values[0]):.1f}{steps}H{x(end):.1f}"
    marks = [
        f'<path class="grid" d="M{left:.1f} {y(at):.1f}H{_WIDTH - _RIGHT}"/>'
        f'<text class="y" x="{left - 6:.1f}" y="{y(at) + 3.5:.1f}">{text}</text>'
        for at, text in ticks
    ]
    marks += [
        f'<text class="x" x="{x(begin + at):.1f}" y="{_HEIGHT - 6}">{text}</text>'
        for at, text in _duration_ticks(end - begin)
    ]
    area = f'<path class="area" d="{line}V{floor}H{x(seconds[0]):.1f}Z"/>' if filled else ""
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img"><title>{title}</title>{"".join(marks)}'
        f'<path class="grid" d="M{left:.1f} {floor}H{_WIDTH - _RIGHT}"/>{area}<path class="line" d="{line}"/></svg>'
    )


# ---- axes: round values, and how they are written ------------------------------------------------------


def _moment_of(value: Any) -> float | None:
    """A date or date-time, as a bookmark holds it, in seconds; None if it is none or has no zone."""
    if not isinstance(value, str) or value[4:5] != "-":
        return None
    found = times.lenient_moment(value)
    if found is None or (times.is_naive(value) and len(value) > 10):
        return None
    return (found - _EPOCH).total_seconds()


def _number_of(value: Any) -> float | None:
    """A number as a float; None if it is none, or beyond what a plot can show."""
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e300:
        return None
    return float(value)


def _nice_step(span: float, most: int) -> float:
    """A step of 1, 2 or 5 times a power of ten that gives ``most`` ticks or fewer."""
    raw = span / most
    power = 10.0 ** math.floor(math.log10(raw))
    return next((factor * power for factor in (1, 2, 5) if factor * power >= raw), 10 * power)


def _number_ticks(low: float, high: float, most: int = 5) -> Ticks:
    """Round numbers between two; whole ones where the step allows it."""
    if not (span := high - low) > max(abs(low) * 1e-14, abs(high) * 1e-14, 1e-300):
        return [(low, _number_text(low))]
    step = _nice_step(span, most)
    digits = max(0, -math.floor(math.log10(step)))
    first = math.ceil(low / step)
    values = [n * step for n in range(first, first + most + 2) if n * step <= high]
    return [(value, _number_text(value, digits)) for value in values]


def _number_text(value: float, digits: int = 0) -> str:
    """A number with its thousands apart, short where it is huge or tiny."""
    if abs(value) >= _EXACT or digits > 6:
        return f"{value:.10g}"
    if digits == 0 and value != int(value):
        return f"{value:,.6g}"
    return f"{value + 0.0:,.{digits}f}"


def _duration_ticks(high: float, most: int = 6) -> Ticks:
    """Round lengths of time from 0 on, in seconds."""
    if high < 1e-6:
        return [(0.0, "0 s")]
    wanted = high / most
    if wanted <= 1:
        step = _nice_step(high, most)
    else:
        days = [_DAY * _nice_step(high / _DAY, most)]
        step = next((float(step) for step in (*_CLOCK_STEPS, _DAY) if step >= wanted), *days)
    return [(n * step, _duration_text(n * step)) for n in range(int(high / step) + 1)]


def _duration_text(seconds: float) -> str:
    """A length of time in its largest unit."""
    for size, unit in ((_DAY, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= size:
            return f"{seconds / size:.4g} {unit}"
    return f"{seconds:.3g} s"


def _moment_ticks(low: float, high: float, most: int = 5) -> Ticks:
    """Round moments between two: seconds to days by the clock, months and years by the calendar."""
    span = high - low
    if span < 1:
        return [(low, _moment_text(low, 0.0))]
    wanted = span / most
    clock = [float(step) for step in _CLOCK_STEPS] + [_DAY * step for step in _DAY_STEPS]
    step = next((step for step in clock if step >= wanted), None)
    if step is not None:
        first = math.ceil(low / step)
        return [(n * step, _moment_text(n * step, step)) for n in range(first, math.floor(high / step) + 1)]
    months = next((count for count in _MONTH_STEPS if count * 30 * _DAY >= wanted), None)
    if months is None:
        months = 12 * max(1, round(_nice_step(max(span / (365 * _DAY), 1.0), most + 2)))
    return _calendar(low, high, months)


def _calendar(low: float, high: float, months: int) -> Ticks:
    start = _EPOCH + dt.timedelta(seconds=low)
    found: Ticks = []
    for count in range((start.year * 12 + start.month - 1) // months * months, 10_000 * 12, months):
        year, month = divmod(count, 12)
        at = (dt.datetime(max(year, 1), month + 1, 1, tzinfo=dt.UTC) - _EPOCH).total_seconds()
        if at > high:
            break
        if at >= low and year:
            found.append((at, f"{year:04}" if months >= 12 else f"{year:04}-{month + 1:02}"))
    return found or [(low, _moment_text(low, _DAY))]


def _moment_text(seconds: float, step: float) -> str:
    """A moment, as exact as steps of so many seconds need it."""
    try:
        moment = _EPOCH + dt.timedelta(seconds=seconds)
    except OverflowError:
        return "?"
    date = f"{moment.year:04}-{moment.month:02}-{moment.day:02}"
    if step >= _DAY:
        return date
    clock = f"{moment.hour:02}:{moment.minute:02}"
    return f"{date} {clock}" if step >= 60 else f"{date[5:]} {clock}:{moment.second:02}"
