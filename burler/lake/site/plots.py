"""How much there is, and when it came: counts of data files, added up by hours, days, months or years; plots of it.

A file's rows count evenly over the hours between its first and its last ``time_extracted``: nothing says more of them,
and a file that was compacted of many spans many days. Times are aware and in UTC. The picture itself is made by a
template; here are its numbers, in percent, so that a plot is as wide as the page and its text stays readable.
"""

from __future__ import annotations

import datetime as dt
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from burler import times
from burler.lake.snapshot import DataFile
from burler.words import counted, size

MOST_BUCKETS = 92  # a quarter by days
MOST_HOURS = 48
_HOUR = dt.timedelta(hours=1)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
Amount = tuple[int, int, int]
"""Rows, bytes, files."""
Hours = tuple[int, int]
"""The first and the last hour that a file's rows are of, counted from 1970."""


@dataclass(slots=True)
class Tally:
    """Counts of some files. ``counted`` of them have statistics: ``records`` and ``bytes`` are of these alone."""

    files: int = 0
    counted: int = 0
    records: int = 0
    bytes: int = 0
    stored: int = 0
    stored_known: int = 0
    first: dt.datetime | None = None
    last: dt.datetime | None = None
    written: dt.datetime | None = None
    spans: dict[Hours, Amount] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether every file has statistics."""
        return self.counted == self.files

    @classmethod
    def of(cls, file: DataFile) -> Tally:
        """One file: by its statistics, else by its name alone."""
        ends = sorted(filter(None, map(times.lenient_moment, file.span or ())))
        one = cls(files=1, first=ends[0] if ends else None, last=ends[-1] if ends else None)
        if file.stats is not None:
            one.counted = 1
            one.records, one.bytes = file.stats.records, file.stats.bytes
            one.written = times.lenient_moment(file.stats.written)
            if file.stats.stored_bytes is not None:
                one.stored, one.stored_known = file.stats.stored_bytes, 1
        if ends:
            one.spans[_hour(ends[0]), _hour(ends[-1])] = (one.records, one.bytes, 1)
        return one

    def merge(self, other: Tally) -> None:
        """Count in what another one has counted."""
        for name in ("files", "counted", "records", "bytes", "stored", "stored_known"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.first = min(filter(None, (self.first, other.first)), default=None)
        self.last = max(filter(None, (self.last, other.last)), default=None)
        self.written = max(filter(None, (self.written, other.written)), default=None)
        for hours, amount in other.spans.items():
            self.spans[hours] = _sum(self.spans.get(hours, (0, 0, 0)), amount)


def _sum(one: Amount, two: Amount) -> Amount:
    return one[0] + two[0], one[1] + two[1], one[2] + two[2]


def _hour(at: dt.datetime) -> int:
    return int((at - _EPOCH) // _HOUR)


@dataclass(frozen=True, slots=True)
class Bucket:
    """An hour, a day, ... and what came in it. ``label`` is its beginning, as exact as the unit is."""

    label: str
    records: int
    bytes: int
    files: int


@dataclass(frozen=True, slots=True)
class Series:
    """Buckets without gaps, oldest first, and their ``unit``: ``hour``, ``day``, ..."""

    unit: str
    buckets: tuple[Bucket, ...]
    first: int

    def place(self, at: dt.datetime) -> int:
        """The index of the bucket that a moment lies in."""
        return _number(self.unit, at) - self.first


_UNITS = {"hour": 16, "day": 10, "week": 10, "month": 7, "year": 4, "decade": 4, "century": 4}
"""Units, and the characters of a bucket's beginning that say which it is."""
_YEARS = {"year": 1, "decade": 10, "century": 100}


def series_of(tally: Tally) -> Series | None:
    """What came over time, in at most some 90 buckets; None where all of it came within one hour."""
    hours = {hour for span in tally.spans for hour in span}
    if len(hours) < 2:
        return None
    low, high = (_EPOCH + hour * _HOUR for hour in (min(hours), max(hours)))
    unit = next(
        unit
        for unit in _UNITS
        if _number(unit, high) - _number(unit, low) < (MOST_HOURS if unit == "hour" else MOST_BUCKETS)
        or unit == "century"
    )
    numbers = range(_number(unit, low), _number(unit, high) + 1)
    begins = [_begin(unit, number) for number in numbers]
    starts = list(map(_hour, begins))
    amounts: list[Amount] = [(0, 0, 0)] * len(numbers)
    for span, amount in tally.spans.items():
        for place, part in _spread(span, amount, starts):
            amounts[place] = _sum(amounts[place], part)
    labels = [begin.isoformat(" ")[: _UNITS[unit]] for begin in begins]
    buckets = tuple(Bucket(label, *amount) for label, amount in zip(labels, amounts, strict=True))
    return Series(unit, buckets, numbers[0])


def _spread(hours: Hours, amount: Amount, starts: Sequence[int]) -> Iterator[tuple[int, Amount]]:
    """What each bucket gets of a file's rows and bytes, by its share of the file's hours; the last gets the file."""
    (low, high), (records, size, files) = hours, amount
    first, last = (bisect_right(starts, hour) - 1 for hour in hours)
    all_hours = high - low + 1
    before = 0
    for place in range(first, last):
        until = starts[place + 1] - low
        rows, much = (total * until // all_hours - total * before // all_hours for total in (records, size))
        yield place, (rows, much, 0)
        before = until
    yield last, (records - records * before // all_hours, size - size * before // all_hours, files)


def _number(unit: str, at: dt.datetime) -> int:
    """The number of the bucket of this unit that a moment lies in: one up from each to the next."""
    if unit == "hour":
        return _hour(at)
    if unit == "day":
        return at.toordinal()
    if unit == "week":
        return (at.toordinal() - 1) // 7  # day 1 was a Monday
    if unit == "month":
        return at.year * 12 + at.month - 1
    return at.year // _YEARS[unit]


def _begin(unit: str, number: int) -> dt.datetime:
    """When a bucket begins."""
    if unit == "hour":
        return _EPOCH + number * _HOUR
    if unit in ("day", "week"):
        day = dt.date.fromordinal(number if unit == "day" else number * 7 + 1)
    elif unit == "month":
        day = dt.date(number // 12, number % 12 + 1, 1)
    else:
        day = dt.date(max(number * _YEARS[unit], 1), 1, 1)
    return dt.datetime(day.year, day.month, day.day, tzinfo=dt.UTC)


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


def plots_of(series: Series | None, tally: Tally, begun: Iterable[tuple[dt.datetime, str]] = ()) -> list[Plot]:
    """Rows and bytes before compression of each hour, day, ...; files, which are known all the same, where nobody
    counted some rows. What there is nothing of has no plot.

    Args:
        begun: when each schema version began, and its name.
    """
    if series is None:
        return []
    marks = [(series.place(at), label) for at, label in begun]
    buckets = series.buckets
    plots = [
        _plot("Rows", series, [one.records for one in buckets], "{:,}".format, _number_step, marks, each="row"),
        _plot("Bytes", series, [one.bytes for one in buckets], size, _bytes_step, marks),
    ]
    if not tally.complete:
        files = [one.files for one in buckets]
        plots.append(_plot("Files", series, files, "{:,}".format, _number_step, marks, each="file"))
    return [plot for plot in plots if plot is not None]


def _plot(
    what: str,
    series: Series,
    values: Sequence[int],
    text: Callable[[int], str],
    step: Callable[[float], int],
    marks: Sequence[tuple[int, str]],
    *,
    each: str | None = None,
) -> Plot | None:
    high = max(values, default=0)
    if not high:
        return None
    width = 100 / len(values)
    top = high * 1.04
    labels = [bucket.label for bucket in series.buckets]
    most = values.index(high)
    return Plot(
        title=f"{what} per {series.unit}",
        summary=(
            f"{what} per {series.unit} from {labels[0]} to {labels[-1]}: {text(sum(values))} in all, "
            f"most at {labels[most]} with {text(high)}."
        ),
        bars=tuple(
            _bar(i * width, width, value / top * 100, f"{labels[i]}: {counted(value, each) if each else text(value)}")
            for i, value in enumerate(values)
            if value
        ),
        ticks=tuple((_percent(100 - at / top * 100), text(at)) for at in range(0, high + 1, step(high / 4))),
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
