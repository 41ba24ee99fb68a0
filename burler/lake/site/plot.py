"""Bars over time: where each stands, in percent, so that a plot is as wide as the page and its text stays readable.

The picture itself is made by a template; here are its numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from burler.lake.site.tally import Series
from burler.lake.site.words import count, size
from burler.words import counted

_GAP = 0.18  # of a bar's place
_MOST_MARKS = 8


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar, in percent of the plot. ``title`` says what it stands for."""

    place: str
    place_width: str
    left: str
    width: str
    top: str
    height: str
    title: str


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot. ``summary`` says in words what is to be seen; ``marks`` are places where a schema version begins."""

    title: str
    summary: str
    bars: tuple[Bar, ...]
    ticks: tuple[tuple[str, str], ...]
    labels: tuple[tuple[str, str, str], ...]
    marks: tuple[tuple[str, str, str], ...]


def rows_plot(series: Series, marks: Sequence[tuple[int, str]] = ()) -> Plot | None:
    """Rows of each hour, day, ...; None where there are none, or nobody counted them."""
    return _plot("Rows", series, [bucket.records for bucket in series.buckets], count, _rows, marks, step=_number_step)


def bytes_plot(series: Series, marks: Sequence[tuple[int, str]] = ()) -> Plot | None:
    """Bytes before compression of each hour, day, ..."""
    return _plot("Bytes", series, [bucket.bytes for bucket in series.buckets], size, size, marks, step=_bytes_step)


def files_plot(series: Series, marks: Sequence[tuple[int, str]] = ()) -> Plot | None:
    """Files of each hour, day, ...: known even where rows are not."""
    return _plot("Files", series, [bucket.files for bucket in series.buckets], count, _files, marks, step=_number_step)


def _rows(number: int) -> str:
    return counted(number, "row")


def _files(number: int) -> str:
    return counted(number, "file")


def _plot(
    what: str,
    series: Series,
    values: Sequence[int],
    text: Callable[[int], str],
    said: Callable[[int], str],
    marks: Sequence[tuple[int, str]],
    *,
    step: Callable[[float], int],
) -> Plot | None:
    high = max(values, default=0)
    if not high:
        return None
    width = 100 / len(values)
    each = step(high / 4)
    top = max(high, 1) * 1.04
    labels = [bucket.label for bucket in series.buckets]
    most = values.index(high)
    return Plot(
        title=f"{what} per {series.unit}",
        summary=(
            f"{what} per {series.unit} from {labels[0]} to {labels[-1]}: {text(sum(values))} in all, "
            f"most at {labels[most]} with {text(high)}."
        ),
        bars=tuple(
            _bar(i * width, width, value / top * 100, f"{labels[i]}: {said(value)}")
            for i, value in enumerate(values)
            if value
        ),
        ticks=tuple((_percent(100 - at / top * 100), text(at)) for at in range(0, math.floor(high) + 1, each)),
        labels=_labels(labels),
        marks=_marks(marks, width),
    )


def _bar(left: float, width: float, height: float, title: str) -> Bar:
    height = max(height, 0.8)  # a single row is seen beside a million
    return Bar(
        place=_percent(left),
        place_width=_percent(width),
        left=_percent(left + width * _GAP / 2),
        width=_percent(width * (1 - _GAP)),
        top=_percent(100 - height),
        height=_percent(height),
        title=title,
    )


def _labels(labels: Sequence[str]) -> tuple[tuple[str, str, str], ...]:
    """(place, anchor, text) of the first, the last, and one or two between: so many fit on a phone."""
    last = len(labels) - 1
    between = [last // 2] if last < 6 else [round(last / 3), round(last * 2 / 3)]
    found = [("0%", "start", labels[0])]
    if last > 3:
        found += [(_percent((i + 0.5) * 100 / len(labels)), "middle", labels[i]) for i in between]
    return (*found, ("100%", "end", labels[last]))


def _marks(marks: Sequence[tuple[int, str]], width: float) -> tuple[tuple[str, str, str], ...]:
    """(place, anchor, text); those of one bucket share a line, and of many only the last are named."""
    places: dict[int, str] = {}
    for index, text in marks:
        places[index] = f"{places[index]}, {text}" if index in places else text
    shown = list(places.items())[-_MOST_MARKS:]
    return tuple((_percent(i * width), "end" if i * width > 80 else "start", text) for i, text in shown)


def _percent(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") + "%"


def _number_step(wanted: float) -> int:
    """1, 2 or 5 times a power of ten, at least ``wanted``."""
    power: int = 10 ** max(0, math.floor(math.log10(max(wanted, 1))))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= wanted)


def _bytes_step(wanted: float) -> int:
    """A power of two, at least ``wanted``: 256 KiB, 1 MiB, ..."""
    return 1 << max(0, math.ceil(math.log2(max(wanted, 1))))
