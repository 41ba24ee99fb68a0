"""A line over time as SVG, to stand inside a page: no script, no picture file, colours from the page's style."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from burler.report.ticks import Ticks, duration_ticks, moment_of, moment_ticks, number_of, number_ticks

_WIDTH, _HEIGHT = 480, 190
_TOP, _BOTTOM, _RIGHT = 12, 24, 16
_CHARACTER = 6.2  # of a label, in the units of the picture


def rows_plot(seconds: Sequence[float], rows: Sequence[int]) -> str:
    """Rows over time, from zero on; empty where there is nothing to see."""
    if len(seconds) < 2 or not max(rows):
        return ""
    values = [float(count) for count in rows]
    return _svg("Rows over time", seconds, values, number_ticks(0.0, max(values)), low=0.0, filled=True)


def bookmark_plot(seconds: Sequence[float], bookmarks: Sequence[Any]) -> str:
    """A bookmark over time, on an axis of moments or of numbers; empty where it is neither, or never was one."""
    present = [(at, value) for at, value in zip(seconds, bookmarks, strict=True) if value is not None]
    if len(present) < 2:
        return ""
    for read, ticks in ((moment_of, moment_ticks), (number_of, number_ticks)):
        values = [read(value) for _, value in present]
        found = [value for value in values if value is not None]
        if len(found) == len(values):
            times = [at for at, _ in present]
            low, high = min(found), max(found)
            return _svg("Bookmark over time", times, found, ticks(low, high), low=low, span=(seconds[0], seconds[-1]))
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
        for at, text in duration_ticks(end - begin)
    ]
    area = f'<path class="area" d="{line}V{floor}H{x(seconds[0]):.1f}Z"/>' if filled else ""
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img"><title>{title}</title>{"".join(marks)}'
        f'<path class="grid" d="M{left:.1f} {floor}H{_WIDTH - _RIGHT}"/>{area}<path class="line" d="{line}"/></svg>'
    )
