"""What the STATEs of a run say of one stream, held against its rows (area B)."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from burler.spec.finding import Findings
from burler.spec.limits import Limits
from burler.spec.order import OrderMap, marks_of
from burler.spec.saying import say_lines
from burler.spec.states import (
    MISSING,
    ZONES,
    Kind,
    bookmark_of,
    comparable,
    comparables,
    entry_of,
    epoch_unit,
    has_bookmark,
    has_zone,
    is_ordered,
    knows_more,
    mentions,
    of_kind,
    partitions_of,
)

_MOST_SPELLINGS = 10_000
_MOST_POINTS = 500

CameBefore = Callable[[Sequence[int], "Sequence[float] | None"], Collection[int]]
"""Takes places in the page that is looked at, and where the rows stand by their replication key."""


class Stated(NamedTuple):
    """A bookmark as a STATE has it, and the STATE's line."""

    value: Any
    line: int


class BookmarkSeries:
    """Takes points and keeps some hundreds of them, spread over the rows."""

    def __init__(self) -> None:
        self.points: list[list[Any]] = []
        self._step = 1

    def add(self, seconds: float, rows: int, bookmark: Any) -> None:
        """After so many seconds and rows the bookmark stood there; None: there was none yet."""
        shown = None if bookmark is None else str(bookmark)
        if self.points and rows < self.points[-1][1] + self._step and shown == self.points[-1][2]:
            return
        self.points.append([round(seconds, 4), rows, shown])
        if len(self.points) > _MOST_POINTS:
            self.points = self.points[::2]
            self._step = max(1, rows // (_MOST_POINTS // 2))


class BookmarkWatch:
    """Takes the values of a stream's replication key and its bookmarks, in the order of the messages.

    Args:
        given: the state that the run was given.
        tap_stream_id: the stream's name in states, where it is another than ``stream``.
        in_schema: whether the replication key is a field of the SCHEMA.
        came_before: says which of some rows of the page that is looked at had come before, as they are.
    """

    def __init__(
        self,
        stream: str,
        key: str,
        given: Any,
        findings: Findings,
        limits: Limits,
        *,
        tap_stream_id: str = "",
        in_schema: bool = True,
        came_before: CameBefore | None = None,
    ) -> None:
        self.stream, self.key, self.tap_stream_id = stream, key, tap_stream_id
        self.findings, self.limits = findings, limits
        self.order = OrderMap()
        self.nothing_new = False  # the run goes on from the last STATE of one just before
        self.kind: Kind | None = None
        self.given = self.bookmark_in(given)
        self.value: Any = self.given
        self.partitioned = partitions_of(entry_of(given, stream, tap_stream_id)) is not None
        self.greatest: Any = None
        self.greatest_shown: Any = None
        self.first: Any = MISSING  # of the rows
        self.rows = 0
        self.states = 0
        self._given_state, self._in_schema, self._came_before = given, in_schema, came_before
        self._points = BookmarkSeries()
        self._texts = False  # the first value was text
        self._sample: str | None = None  # of texts that are neither moments nor numbers
        self._unordered = False
        self._stated: Stated | None = None  # the greatest bookmark of a STATE so far
        self._ahead: Stated | None = None  # the last one that was beyond all rows before it
        self._bounds: tuple[Any, Any, Any] = (None, None, None)  # given, stated and ahead, as the rows' kind
        self._last: Any = None
        self.spelled_otherwise: dict[str, str] = {}
        """Bookmarks of STATEs, and how the rows they stand for spell the same moment, where that is another text."""

    def begin_with(self, state: Any) -> None:
        """The state that the run was given; no row has come yet."""
        self._given_state = state
        self.given = self.value = self.bookmark_in(state)
        self.partitioned = partitions_of(entry_of(state, self.stream, self.tap_stream_id)) is not None

    def bookmark_in(self, state: Any) -> Any:
        """The stream's bookmark in a state."""
        return bookmark_of(state, self.stream, self.key, self.kind, tap_stream_id=self.tap_stream_id)

    def said(self, value: Any) -> Any:
        """A bookmark as something to be compared with the rows' values; None where it can't be."""
        kind = self.kind or comparable(value)[0]
        return of_kind(value, kind, self.greatest)

    def covers(self, state: Any) -> bool:
        """Whether a state covers all rows: its bookmark, or the greatest one of its partitions."""
        own = self.bookmark_in(state)
        given = partitions_of(entry_of(state, self.stream, self.tap_stream_id)) or {}
        entries = [{"bookmarks": {self.stream: one}} for one in given.values()]
        bounds = [self.said(one) for one in (own, *map(self.bookmark_in, entries)) if one is not MISSING]
        return self.greatest is not None and any(one is not None and one >= self.greatest for one in bounds)

    @property
    def series(self) -> list[list[Any]]:
        """Seconds, rows and the bookmark, from time to time."""
        return self._points.points

    def add_rows(self, values: Sequence[Any], lines: Sequence[int], seconds: float) -> list[float] | None:
        """The replication keys of some rows; gives where each stands, as a number (NaN: unknown)."""
        self.rows += len(values)
        there = [at for at, one in enumerate(values) if one is not None]
        if len(there) < len(values) and self._in_schema:
            empty = [line for one, line in zip(values, lines, strict=True) if one is None]
            self._say_lines("B320", f"the replication key '{self.key}' is null: no bookmark can cover the row", empty)
        column = [] if self._unordered else self._comparable(values, there, lines)
        if not column:
            return None
        assert self.kind is not None
        all_there = len(there) == len(values)
        own = lines if all_there else [lines[at] for at in there]
        shown = values if all_there else [values[at] for at in there]
        self.order.add(column, own, shown)
        if self.first is MISSING:
            self.first = shown[0]
        greatest = max(column)
        if not self.partitioned:
            self._behind(min(column), column, shown, own, there)
        if self.greatest is None or greatest > self.greatest:
            self.greatest, self.greatest_shown = greatest, shown[column.index(greatest)]
        self._last = column[-1]
        self._point(seconds)
        marks = marks_of(column, self.kind)
        if marks is None or all_there:
            return marks
        found = dict(zip(there, marks, strict=True))
        return [found.get(at, math.nan) for at in range(len(values))]

    def _comparable(self, values: Sequence[Any], there: list[int], lines: Sequence[int]) -> list[Any]:
        """Those of the values that are ``there`` as things to be compared; takes out of ``there`` what is none."""
        odd: list[int] = []
        if self.kind is None:
            odd = list(takewhile(lambda at: type(values[at]) not in (int, float, str), there))
        rest = there[len(odd) :]
        column: list[Any] = []
        if rest:
            first = values[rest[0]]
            kind, column, more = comparables([values[at] for at in rest], self.kind)
            odd += [rest[at] for at in more]
            if self.kind is None:
                self._begin(kind, isinstance(first, str))
            if self._is_unordered(kind, values, column):
                self._unordered = True
                return []
        if odd:
            if self._texts and self.kind == "number" and any(isinstance(values[at], str) for at in odd):
                self._unordered = True  # texts of which some look like numbers: who knows how the source sorts them
                return []
            words = f"the replication key '{self.key}' changes its kind, so values can't be compared"
            if self.kind == "time" and all(isinstance(values[at], str) for at in odd):
                words = (
                    f"of the values of the replication key '{self.key}' some are date-times, others are text that is "
                    "none, so they can't be compared"
                )
            self._say_lines("B321", words, [lines[at] for at in odd])
            left = set(odd)
            there[:] = [at for at in there if at not in left]
        return column

    def _is_unordered(self, kind: Kind, values: Sequence[Any], column: Sequence[Any]) -> bool:
        """Whether nobody knows how a source sorts these texts: words; "1.9" and "1.10"."""
        if kind == "text" and column:
            self._sample = self._sample or column[0]
            return not is_ordered([self._sample, *column])
        return kind == "number" and self._texts and any(isinstance(one, str) and "." in one for one in values)

    def _begin(self, kind: Kind, texts: bool) -> None:
        """The rows' kind is known: what was given can be found and compared."""
        self.kind, self._texts = kind, texts
        if self.given is MISSING:
            self.given = self.bookmark_in(self._given_state)
            self.value = self.given if self.value is MISSING else self.value
        self._bound()

    def _bound(self) -> None:
        given = None if self.given is MISSING else self.said(self.given)
        stated = None if self._stated is None else self.said(self._stated.value)
        ahead = None if self._ahead is None else self.said(self._ahead.value)
        self._bounds = given, stated, ahead

    def _lost(self, column: Sequence[Any], bound: Any, given: Any, there: Sequence[int]) -> list[int]:
        """The places of values below a bookmark whose rows a run from there would not get. Those that lie below the
        state that the run was given were read before; so were those that had come before (windows that overlap)."""
        below = [at for at, one in enumerate(column) if one < bound and not _is_below(one, given)]
        if not below or self._came_before is None or self.findings.seen("B303", self.stream, self.key):
            return below
        marks = None if self.kind is None else marks_of([column[at] for at in below], self.kind)
        again = self._came_before([there[at] for at in below], marks)
        return [at for at in below if there[at] not in again]

    def _behind(
        self,
        least: Any,
        column: Sequence[Any],
        shown: Sequence[Any],
        lines: Sequence[int],
        there: Sequence[int],
    ) -> None:
        """Rows that a run from one of the STATEs before them would not get. Those at a bookmark it gets, if it goes on
        as Singer says (at the bookmark, not behind it)."""
        given, stated, ahead = self._bounds
        if ahead is not None and self._ahead is not None and least < ahead:
            place = next(iter(self._lost(column, ahead, given, there)), None)
            if place is not None:
                self.say(
                    "B302",
                    f"a STATE says {self._ahead.value!s}, and the row with {shown[place]!s} came after it (line "
                    f"{lines[place]}): a run that is resumed from there misses it",
                    self._ahead.line,
                )
                self._ahead = None
                self._bound()
        if self._stated is None or stated is None or least >= stated:
            return
        if self.findings.seen("B302", self.stream, self.key):
            return
        lost = self._lost(column, stated, given, there)
        if lost:
            words = (
                f"a STATE said {self._stated.value!s} (line {self._stated.line}), and the row with {shown[lost[0]]!s} "
                "came after it: a run that is resumed from there misses it"
            )
            self._say_lines("B303", words, [lines[at] for at in lost])

    def add_state(self, state: Any, line: int, now: dt.datetime, seconds: float) -> None:
        """A STATE."""
        if partitions_of(entry_of(state, self.stream, self.tap_stream_id)) is not None:
            self.partitioned = True
        value = self.bookmark_in(state)
        if value is MISSING:
            return
        self.states += 1
        said = self.said(value)
        if said is None:
            if not self._unordered:
                self.say(
                    "B322",
                    f"the bookmark {value!r:.60} can't be compared with the rows' '{self.key}': who goes by it may "
                    "stand still",
                    line,
                )
            return
        self._look(Stated(value, line), said, now)
        self.value = value
        self._point(seconds)

    def _look(self, stated: Stated, said: Any, now: dt.datetime) -> None:
        value, line = stated
        differs = isinstance(value, str) and said == self.greatest and value != self.greatest_shown
        if differs and len(self.spelled_otherwise) < _MOST_SPELLINGS:
            self.spelled_otherwise[value] = self.greatest_shown
        before = None if self.value is MISSING else self.said(self.value)
        if self._unordered:
            return
        if before is not None and not _same_kind(before, said):
            before = None  # no row has told the kind yet
        if before is not None and said < before:
            self.say("B304", f"the bookmark goes back from {self.value!s} to {value!s}: rows come again", line)
        if isinstance(said, dt.datetime):
            slack = dt.timedelta(seconds=self.limits.future_seconds) + (dt.timedelta() if has_zone(value) else ZONES)
            if said > now + slack:
                self.say("B307", f"the bookmark {value!s} lies in the future: rows until then are never read", line)
        if self.partitioned:
            return
        moved = before is None or said != before
        if moved and self._last is not None and said == self._last and said < self.greatest:
            self.say(
                "O402",
                f"the bookmark becomes {value!s}, that of the last row, though a row before it had "
                f"{self.greatest_shown!s}: rows are not sorted by '{self.key}'",
                line,
            )
        if (self.greatest is None or said > self.greatest) and (before is None or said > before):
            self._ahead = stated
        greatest = None if self._stated is None else self.said(self._stated.value)
        if greatest is None or not _same_kind(greatest, said) or said > greatest:
            self._stated = stated
        self._bound()

    def finish(
        self, *, whole: bool, last_state: Any, seconds: float, now: dt.datetime, own_layout: bool = False
    ) -> None:
        """The end of the messages. ``whole``: the tap had come to its end; ``seconds``: how long it read;
        ``own_layout``: the state is laid out in a way of the tap's own: that a stream is not found in it says
        nothing."""
        if self.greatest is not None and not self.partitioned and not self._unordered:
            self._look_at_end(whole=whole, last_state=last_state, seconds=seconds, now=now, own_layout=own_layout)

    def _look_at_end(self, *, whole: bool, last_state: Any, seconds: float, now: dt.datetime, own_layout: bool) -> None:
        """Hold the last STATE against the rows of a stream that has some, and no partitions."""
        own = self.bookmark_in(last_state)
        if whole and last_state is not None:
            entry = entry_of(last_state, self.stream, self.tap_stream_id)
            if own is not MISSING:
                if not knows_more(entry, self.key):
                    self._lags(own)
            elif entry is MISSING:
                if not own_layout and not self.findings.seen("B316", self.stream):
                    self._is_missing(last_state)
            elif not has_bookmark(entry):
                self._is_empty(entry)
        if own is not MISSING:
            self._far_ahead(own)
            self._slow(own, seconds, now)

    def _is_missing(self, last_state: Any) -> None:
        if not any(mentions(last_state, name) for name in (self.stream, self.tap_stream_id) if name):
            self.say(
                "B305",
                f"rows came up to {self.greatest_shown!s}, and the last STATE has no bookmark of the stream: each run "
                "reads everything again",
            )

    def _is_empty(self, entry: Any) -> None:
        if self.value is not MISSING:
            self.findings.add(
                "B316",
                f"the last STATE no longer has the bookmark of '{self.stream}', which was {self.value!s}: a target "
                "keeps the last STATE only",
                stream=self.stream,
            )
        elif not entry or (isinstance(entry, Mapping) and all(value is None for value in entry.values())):
            self.say(
                "B305",
                f"rows came up to {self.greatest_shown!s}, and what the last STATE has of the stream is empty: each "
                "run reads everything again",
            )

    def _lags(self, own: Any) -> None:
        said, greatest = self.said(own), self.greatest
        began = None if self.given is MISSING else self.said(self.given)
        if said is None or said >= greatest or _is_cut_of(said, greatest):
            return
        if began is not None and said <= began:
            if self.nothing_new:
                return  # rows at the bookmark, and those that the tap looks back to
            self.say(
                "B305",
                f"rows came up to {self.greatest_shown!s}, and the bookmark stands at {own!s} as before: each run "
                "reads them again",
            )
        else:
            self.say(
                "B323",
                f"rows came up to {self.greatest_shown!s}, and the last bookmark is {own!s}: the rows between come "
                "again with each run",
            )

    def _far_ahead(self, own: Any) -> None:
        said = self.said(own)
        if self.findings.seen("M201"):
            return  # the last row may have stood in a line that can't be read
        if isinstance(said, dt.datetime) and not has_zone(own) and said - self.greatest <= ZONES:
            return  # it may be the rows' local time
        if self.states and said is not None and said > self.greatest and own != self.given:
            self.say(
                "B324",
                f"the last bookmark is {own!s}, and the last row has {self.greatest_shown!s}: what appears between "
                "them in the source is never read",
            )

    def _slow(self, own: Any, seconds: float, now: dt.datetime) -> None:
        least = self.limits.min_advance_ratio
        ratio = self._ratio(own, seconds)
        if ratio is None or seconds < self.limits.min_advance_seconds or ratio >= least:
            return
        said = of_kind(own, "time")
        if said is None or (now - said).total_seconds() <= 2 * seconds:
            return  # it has caught up
        self.say(
            "B306",
            f"the bookmark went on by {ratio:.3g} s for each second of the run (at least {least:g} are needed to "
            "catch up)",
        )

    def facts(self, last_state: Any, seconds: float) -> Mapping[str, Any]:
        """See ``burler.verify.result.StreamFacts.bookmark``; ``seconds``: how long the run read."""
        own = self.bookmark_in(last_state)
        ratio = self._ratio(own, seconds)
        return {
            "from": None if self.given is MISSING else self.given,
            "to": None if own is MISSING else own,
            "advanced_seconds": self._advanced_seconds(own),
            "ratio": None if ratio is None else round(ratio, 3),
        }

    def _advanced_seconds(self, own: Any) -> float | None:
        """How far a bookmark of date-times went; None where it is none."""
        began = self.given if self.given is not MISSING else self.first
        if self.kind != "time" or own is MISSING or began is MISSING:
            return None
        one, other = of_kind(began, "time"), of_kind(own, "time")
        return None if one is None or other is None else (other - one).total_seconds()

    def _ratio(self, own: Any, seconds: float) -> float | None:
        """Seconds that the bookmark went on for each second of the run."""
        advanced = self._advanced_seconds(own)
        return None if advanced is None or seconds <= 0 else advanced / seconds

    def _point(self, seconds: float) -> None:
        self._points.add(seconds, self.rows, None if self.value is MISSING else self.value)

    def say(self, code: str, message: str, line: int | None = None) -> None:
        """Report something of the stream's replication key."""
        place = None if line is None else f"line {line}"
        self.findings.add(code, message, stream=self.stream, path=self.key, place=place)

    def _say_lines(self, code: str, message: str, lines: Sequence[int]) -> None:
        say_lines(self.findings, code, message, lines, stream=self.stream, path=self.key)


def _is_below(value: Any, given: Any) -> bool:
    return given is not None and bool(value < given)


def _same_kind(one: Any, other: Any) -> bool:
    return isinstance(one, int | float) == isinstance(other, int | float) and isinstance(one, str) == isinstance(
        other, str
    )


def _is_cut_of(said: Any, greatest: Any) -> bool:
    """Whether a bookmark is the last row's time in whole seconds, minutes, hours or days: so the source's filter may
    want it, and it is the rows of that second or day that come again, as Singer allows."""
    if not isinstance(said, dt.datetime):
        unit = None if isinstance(said, str) else epoch_unit(greatest)  # of numbers that are times since 1970
        lengths = [] if unit is None else [unit * seconds for seconds in (1, 60, 3_600, 86_400)]
        return any(said == greatest // length * length for length in lengths)
    try:
        there = greatest.astimezone(said.tzinfo)
    except OverflowError:  # the last day of the year 9999
        return False
    moment = there.replace(microsecond=said.microsecond if said.microsecond % 1000 else 0)
    cuts = (
        there.replace(microsecond=greatest.microsecond // 1000 * 1000),
        moment,
        moment.replace(second=0),
        moment.replace(minute=0, second=0),
        moment.replace(hour=0, minute=0, second=0),
    )
    return said in cuts
