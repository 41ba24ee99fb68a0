"""HTML out of facts, through templates that escape whatever they are given: pages, their names and those of places in
them (of a few safe characters whatever the lake calls things), plots over time, the search's index.

The picture of a plot is made by a template; here are its numbers, in percent, so that it is as wide as the page and its
text stays readable.
"""

from __future__ import annotations

import datetime as dt
import functools
import hashlib
import json
import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from burler import times
from burler.extras import require
from burler.lake.site.facts import EPOCH, HOUR, Amount, Change, Hours, Kind, StreamFacts, Tally, add, hour_of, quoted
from burler.words import counted, cut, size

MOST_BUCKETS = 92  # a quarter by days
MOST_HOURS = 48
MOST_INDEXED = 300_000
_SHORT = 90
STATIC = Path(__file__).with_name("static")
_TEMPLATES = Path(__file__).with_name("templates")
# Control characters, and those that turn the direction of the text after them.
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")
_AGES = ((365.25 * 86400, "year"), (30.44 * 86400, "month"), (86400.0, "day"), (3600.0, "hour"), (60.0, "minute"))


class Pages:
    """Templates, made ready once. ``everywhere``: what each page may show (title, time)."""

    def __init__(self, **everywhere: Any) -> None:
        """Raises: MissingExtra: Jinja2 is not there."""
        self._environment = _environment()
        self._everywhere = everywhere

    def page(self, template: str, *, depth: int, **facts: Any) -> bytes:
        """One page. ``depth``: folders between it and the front page."""
        text: str = self._environment.get_template(template).render(self._everywhere, up="../" * depth, **facts)
        return text.encode("utf-8", "backslashreplace")


@functools.cache
def _environment() -> Any:
    jinja2 = require("jinja2", extra="docs-site", needed_for="burler lake docs")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        count="{:,}".format,
        size=size,
        clock=lambda moment: f"{moment.astimezone(dt.UTC).replace(tzinfo=None).isoformat(' ', 'minutes')} UTC",
        machine=lambda moment: f"{moment.astimezone(dt.UTC).replace(tzinfo=None).isoformat('T', 'seconds')}Z",
        age=jinja2.pass_context(lambda context, moment: _age(moment, context["now"])),
        cut=cut,
        anchor=anchor,
        counts=counts,
        moment=times.lenient_moment,
        percent=_percent,
        quoted=quoted,
        web=_web_address,
    )
    return environment


def _visible(value: Any) -> Any:
    """Text from the lake with what is not printed spelled out; what templates made themselves stays."""
    if type(value) is not str:
        return value
    return _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", value)


def _age(moment: dt.datetime, now: dt.datetime) -> str:
    """``5 minutes ago``, ``2 days ago``; what lies ahead of the clock by more than a minute is said to."""
    seconds = (now - moment).total_seconds()
    if abs(seconds) < 60:
        return "just now"
    length, unit = next((length, unit) for length, unit in _AGES if abs(seconds) >= length)
    return f"{counted(int(abs(seconds) // length), unit)} {'ago' if seconds > 0 else 'in the future'}"


def _web_address(text: Any) -> str:
    """The text if it is an http or https address, else nothing: no other scheme becomes a link."""
    if not isinstance(text, str) or re.search(r"[\x00-\x20\x7f]", text):
        return ""
    try:
        parts = urlsplit(text)
    except ValueError:
        return ""
    return text if parts.scheme in ("http", "https") and parts.netloc and "@" not in parts.netloc else ""


def counts(changes: Sequence[Change]) -> str:
    """``2 added, 1 removed``; what there is none of is left out."""
    kinds: tuple[Kind, ...] = ("added", "removed", "changed")
    found = [(sum(change.kind == kind for change in changes), kind) for kind in kinds]
    return ", ".join(f"{count:,} {kind}" for count, kind in found if count)


# ---- names -----------------------------------------------------------------------------------------------------------

_MOST = 60
_PAGE = re.compile(r"[^a-z0-9_-]+")
_ANCHOR = re.compile(r"[^A-Za-z0-9_.-]+")
# Device names of Windows; the page that every folder has; what we make of names that are not safe.
_TAKEN = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d|index|(?:.*-)?[0-9a-f]{12})\Z")


def page_name(name: str) -> str:
    """A file name without ending: ``[a-z0-9_-]`` alone, at most 73 characters, never two names alike.

    A name that is not so itself is made so, and gets a part of its SHA-256; nothing else of the lake has a say in it,
    so that a page keeps its address. Two names that differ only in case get two pages everywhere.
    """
    return _safe(name.lower(), name, _PAGE)


def anchor(path: str) -> str:
    """The ``id`` of a field's row: ``f-address.city``."""
    return "f-" + _safe(path, path, _ANCHOR)


def _safe(wanted: str, name: str, unsafe: re.Pattern[str]) -> str:
    text = unsafe.sub("-", wanted)[:_MOST].strip("-")
    if text == name and not _TAKEN.match(text):
        return text
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{text}-{digest}" if text else digest


# ---- the search ------------------------------------------------------------------------------------------------------


class Index:
    """Taps, streams and fields. A field's name and description stand there once, with all streams that have them."""

    def __init__(self) -> None:
        self._taps: list[tuple[str, str, str]] = []
        self._streams: list[tuple[int, str, str, str]] = []
        self._fields: dict[tuple[str, str], list[int]] = {}
        self._count = 0
        self.left_out = 0

    def add_tap(self, tap_id: str, page: str, description: str) -> None:
        """``page`` is the tap's folder."""
        self._taps.append((tap_id, page, cut(description, _SHORT)))

    def add_stream(self, facts: StreamFacts, page: str) -> None:
        """A stream of the tap that was added last. ``page`` is its file's name, without ending."""
        view = facts.view
        number = len(self._streams)
        description = view.description if view else ""
        self._streams.append((len(self._taps) - 1, facts.stream, page, cut(description, _SHORT)))
        for one in view.fields if view else ():
            if self._count == MOST_INDEXED:
                self.left_out += 1
                continue
            self._count += 1
            self._fields.setdefault((one.path, cut(one.description, _SHORT)), []).append(number)

    def script(self) -> bytes:
        """``window.BURLER_LAKE = {...};`` in ASCII."""
        document = {
            "taps": self._taps,
            "streams": self._streams,
            "fields": [
                [path, streams, description, "" if anchor(path) == f"f-{path}" else anchor(path)]
                for (path, description), streams in sorted(self._fields.items())
            ],
            "leftOut": self.left_out,
        }
        return f"window.BURLER_LAKE = {json.dumps(document, separators=(',', ':'))};\n".encode("ascii")


# ---- plots -----------------------------------------------------------------------------------------------------------


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
    low, high = (EPOCH + hour * HOUR for hour in (min(hours), max(hours)))
    unit = next(
        unit
        for unit in _UNITS
        if _number(unit, high) - _number(unit, low) < (MOST_HOURS if unit == "hour" else MOST_BUCKETS)
        or unit == "century"
    )
    numbers = range(_number(unit, low), _number(unit, high) + 1)
    begins = [_begin(unit, number) for number in numbers]
    starts = list(map(hour_of, begins))
    amounts: list[Amount] = [(0, 0, 0)] * len(numbers)
    for span, amount in tally.spans.items():
        for place, part in _spread(span, amount, starts):
            amounts[place] = add(amounts[place], part)
    labels = [begin.isoformat(" ")[: _UNITS[unit]] for begin in begins]
    buckets = tuple(Bucket(label, *amount) for label, amount in zip(labels, amounts, strict=True))
    return Series(unit, buckets, numbers[0])


def _spread(hours: Hours, amount: Amount, starts: Sequence[int]) -> Iterator[tuple[int, Amount]]:
    """What each bucket gets of a file's rows and bytes, by its share of the file's hours; the last gets the file."""
    (low, high), (records, size, files) = hours, amount
    first, last = (bisect_right(starts, hour) - 1 for hour in hours)
    allhour_ofs = high - low + 1
    before = 0
    for place in range(first, last):
        until = starts[place + 1] - low
        rows, much = (total * until // allhour_ofs - total * before // allhour_ofs for total in (records, size))
        yield place, (rows, much, 0)
        before = until
    yield last, (records - records * before // allhour_ofs, size - size * before // allhour_ofs, files)


def _number(unit: str, at: dt.datetime) -> int:
    """The number of the bucket of this unit that a moment lies in: one up from each to the next."""
    if unit == "hour":
        return hour_of(at)
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
        return EPOCH + number * HOUR
    if unit in ("day", "week"):
        day = dt.date.fromordinal(number if unit == "day" else number * 7 + 1)
    elif unit == "month":
        day = dt.date(number // 12, number % 12 + 1, 1)
    else:
        day = dt.date(max(number * _YEARS[unit], 1), 1, 1)
    return dt.datetime(day.year, day.month, day.day, tzinfo=dt.UTC)


_MOST_MARKS = 8


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot, in percent of the page. ``summary`` says in words what is to be seen. ``bars``: (left, height, what it
    stands for), each of one ``width``. ``marks``: places where a schema version begins."""

    title: str
    summary: str
    width: float
    bars: list[tuple[float, float, str]]
    ticks: list[tuple[float, str]]
    labels: list[tuple[float, str, str]]
    marks: list[tuple[float, str, str]]


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
    bars = [
        # At least .8, so that a single row is seen beside a million.
        (i * width, max(value / top * 100, 0.8), f"{labels[i]}: {counted(value, each) if each else text(value)}")
        for i, value in enumerate(values)
        if value
    ]
    return Plot(
        title=f"{what} per {series.unit}",
        summary=(
            f"{what} per {series.unit} from {labels[0]} to {labels[-1]}: {text(sum(values))} in all, "
            f"most at {labels[most]} with {text(high)}."
        ),
        width=width,
        bars=bars,
        ticks=[(100 - at / top * 100, text(at)) for at in range(0, high + 1, step(high / 4))],
        labels=_labels(labels),
        marks=_marks(marks, width),
    )


def _labels(labels: Sequence[str]) -> list[tuple[float, str, str]]:
    """(place, anchor, text) of the first, the last, and one or two between: so many fit on a phone."""
    last = len(labels) - 1
    between = [last // 2] if last < 6 else [round(last / 3), round(last * 2 / 3)]
    found = [(0.0, "start", labels[0])]
    if last > 3:
        found += [((i + 0.5) * 100 / len(labels), "middle", labels[i]) for i in between]
    return [*found, (100.0, "end", labels[last])]


def _marks(marks: Sequence[tuple[int, str]], width: float) -> list[tuple[float, str, str]]:
    """(place, anchor, text); those of one bucket share a line, and of many only the last are named."""
    places: dict[int, str] = {}
    for index, text in marks:
        places[index] = f"{places[index]}, {text}" if index in places else text
    shown = list(places.items())[-_MOST_MARKS:]
    return [(i * width, "end" if i * width > 80 else "start", text) for i, text in shown]


def _percent(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") + "%"


def _number_step(wanted: float) -> int:
    """1, 2 or 5 times a power of ten, at least ``wanted``."""
    power: int = 10 ** max(0, math.floor(math.log10(max(wanted, 1))))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= wanted)


def _bytes_step(wanted: float) -> int:
    """A power of two, at least ``wanted``: 256 KiB, 1 MiB, ..."""
    return 1 << max(0, math.ceil(math.log2(max(wanted, 1))))
