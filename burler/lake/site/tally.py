"""How much there is, and when it came: counts of data files, added up by hours, days, months or years; bars of it.

A file's rows count evenly over the hours between its first and its last ``time_extracted``: nothing says more of them,
and a file that was compacted of many spans many days. Times are aware and in UTC. The picture itself is made by a
template; here are its numbers, in percent, so that a plot is as wide as the page and its text stays readable.
"""

from __future__ import annotations

import datetime as dt
import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from burler import times
from burler.lake.layout import parse_file_name
from burler.lake.site.words import count, size
from burler.lake.snapshot import DataFile
from burler.words import counted

MOST_BUCKETS = 92  # a quarter by days
MOST_HOURS = 48
_HOUR = dt.timedelta(hours=1)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_EPOCH_DAY = _EPOCH.toordinal()
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

    def add(self, file: DataFile) -> None:
        """Count a file in: by its statistics, else by its name alone."""
        first, last = span(file)
        records = size = 0
        self.files += 1
        if (stats := file.stats) is not None and _is_count(stats.records) and _is_count(stats.bytes):
            records, size = stats.records, stats.bytes
            self.counted += 1
            stored: int | None = getattr(stats, "stored_bytes", None)
            if stored is not None:
                self.stored += stored
                self.stored_known += 1
            self._see_written(times.lenient_moment(getattr(stats, "written", "") or ""))
        self.records += records
        self.bytes += size
        self._see(first, last)
        if last is not None:
            self._count((_hour(first or last), _hour(last)), (records, size, 1))

    def merge(self, other: Tally) -> None:
        """Count in what another one has counted."""
        for name in ("files", "counted", "records", "bytes", "stored", "stored_known"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self._see(other.first, other.last)
        self._see_written(other.written)
        for hours, amount in other.spans.items():
            self._count(hours, amount)

    def _see(self, first: dt.datetime | None, last: dt.datetime | None) -> None:
        if first is not None and (self.first is None or first < self.first):
            self.first = first
        if last is not None and (self.last is None or last > self.last):
            self.last = last

    def _see_written(self, written: dt.datetime | None) -> None:
        if written is not None and (self.written is None or written > self.written):
            self.written = written

    def _count(self, hours: Hours, amount: Amount) -> None:
        self.spans[hours] = _sum(self.spans.get(hours, (0, 0, 0)), amount)


def _sum(one: Amount, two: Amount) -> Amount:
    return one[0] + two[0], one[1] + two[1], one[2] + two[2]


def _hour(at: dt.datetime) -> int:
    return int((at - _EPOCH) // _HOUR)


def _is_count(number: int) -> bool:
    """Manifests are edited by hand, too: what no file can hold is not counted."""
    return 0 <= number < 2**63


def span(file: DataFile) -> tuple[dt.datetime | None, dt.datetime | None]:
    """First and last ``time_extracted`` of a file: exact from its statistics, else to the second from its name."""
    if file.stats is not None:
        first, last = times.lenient_moment(file.stats.first), times.lenient_moment(file.stats.last)
        if first is not None and last is not None:
            return min(first, last), max(first, last)
    parsed = parse_file_name(file.path.rpartition("/")[2])
    return (parsed.first, parsed.last) if parsed else (None, None)


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
    starts: tuple[int, ...]

    def place(self, at: dt.datetime) -> int:
        """The index of the bucket that a moment lies in."""
        return _number(self.unit, at) - self.starts[0]


def series_of(tally: Tally) -> Series | None:
    """What came over time, in at most some 90 buckets; None where all of it came within one hour."""
    hours = {hour for span_hours in tally.spans for hour in span_hours}
    if len(hours) < 2:
        return None
    low, high = (_EPOCH + hour * _HOUR for hour in (min(hours), max(hours)))
    unit = next(
        unit
        for unit in _UNITS
        if _number(unit, high) - _number(unit, low) < (MOST_HOURS if unit == "hour" else MOST_BUCKETS)
        or unit == _UNITS[-1]
    )
    numbers = range(_number(unit, low), _number(unit, high) + 1)
    starts = [_start(unit, number) for number in numbers]
    amounts: list[Amount] = [(0, 0, 0)] * len(numbers)
    for span_hours, amount in tally.spans.items():
        for place, part in _spread(span_hours, amount, starts):
            amounts[place] = _sum(amounts[place], part)
    found = tuple(Bucket(_label(unit, number), *amounts[place]) for place, number in enumerate(numbers))
    return Series(unit, found, tuple(numbers))


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


_UNITS = ("hour", "day", "week", "month", "year", "decade", "century")
_YEARS = {"year": 1, "decade": 10, "century": 100}


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


def _start(unit: str, number: int) -> int:
    """The first hour of a bucket, counted from 1970."""
    if unit == "hour":
        return number
    if unit == "day":
        day = number
    elif unit == "week":
        day = number * 7 + 1
    elif unit == "month":
        day = dt.date(number // 12, number % 12 + 1, 1).toordinal()
    else:
        day = dt.date(max(number * _YEARS[unit], 1), 1, 1).toordinal()
    return (day - _EPOCH_DAY) * 24


def _label(unit: str, number: int) -> str:
    if unit == "hour":
        return f"{_EPOCH + number * _HOUR:%Y-%m-%d %H:00}".rjust(16, "0")
    if unit in ("day", "week"):
        return dt.date.fromordinal(number if unit == "day" else number * 7 + 1).isoformat()
    if unit == "month":
        return f"{number // 12:04}-{number % 12 + 1:02}"
    return f"{number * _YEARS[unit]:04}"


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
