"""What a run has done so far, counted once: for its report, for a live table, for Prometheus, for lines in the log.

It costs some microseconds a page or a round, and as much memory after a year as after a minute.
"""

from __future__ import annotations

import datetime as dt
import math
import threading
from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from burler import events, times
from burler.clock import Clock
from burler.config.secrets import masked
from burler.report.values import TEXT, cut, described, value_of, values_of

FAILURES = 1000
"""Failures of a run that are kept; the rest is counted."""
POINTS = 500
"""Points of one stream over time, at the most."""
TOTAL_POINTS = 100_000
"""Of all streams together: where there are many, each keeps fewer."""

_FEWEST = 4  # points that stay, however many streams there are
_TEXT = 200  # characters of a bookmark
_SHORTEST_STEP = 0.001  # seconds; a clock that stands still must not make points for ever
_RATE_SECONDS = 30.0  # rows/s is a mean that forgets what is much older than this
_BUSY = {"poll": "polling", "full": "reading", "push": "connected"}


class Series:
    """Points in time with the rows and the bookmark of a stream by then.

    Points lie at least ``step`` seconds apart. When there are too many, the step grows so that half of them stay:
    a stream that is slow for hours after a fast start keeps points for all of the time.
    """

    def __init__(self) -> None:
        self.seconds = array("d")
        self.rows = array("q")
        self.bookmarks: list[Any] = []
        self.step = 0.0

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, seconds: float, rows: int, bookmark: Any) -> None:
        """One more point, later than those before it."""
        self.seconds.append(seconds)
        self.rows.append(rows)
        self.bookmarks.append(bookmark[:_TEXT] if isinstance(bookmark, str) else bookmark)

    def thin(self, most: int) -> None:
        """Leave out points until about half of ``most`` are there."""
        last = self.seconds[0]
        self.step = max(2 * (self.seconds[-1] - last) / most, 2 * self.step, _SHORTEST_STEP)
        kept = [0]
        for i, at in enumerate(self.seconds):
            if at - last >= self.step:
                kept.append(i)
                last = at
        self.seconds = array("d", [self.seconds[i] for i in kept])
        self.rows = array("q", [self.rows[i] for i in kept])
        self.bookmarks = [self.bookmarks[i] for i in kept]


@dataclass(slots=True)
class StreamStats:
    """What is known of a stream, over all of its rounds; a stream of a plain run has but one.

    Attributes:
        status: how its last round ended; ``doing``: what it does now, in a tail.
        rows: of all rounds; ``rows_before``, ``errors_before``: those of the rounds before this one.
        polled_at: when a round that did not fail has ended last, in seconds since 1970. Other times are of the
            monotonic clock.
    """

    name: str
    first_at: float
    kind: str = "poll"
    method: str | None = None
    begun: bool = False
    over: bool = False
    status: str = "unfinished"
    doing: str = "starting"
    rounds: int = 0
    rows: int = 0
    rows_before: int = 0
    updated: int | None = None
    skipped: int = 0
    seconds: float | None = None
    counts: dict[str, Any] = field(default_factory=dict)
    bookmark_from: Any = None
    bookmark: Any = None
    at: float = 0.0
    series: Series | None = None
    point_at: float = math.inf
    rate: float = 0.0
    rate_at: float = 0.0
    polled_at: float | None = None
    next_at: float | None = None
    failures: int = 0
    errors: int = 0
    errors_before: int = 0
    error: dict[str, Any] | None = None
    shown: list[dict[str, Any]] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether its last round failed, or the one it is in does."""
        return self.status == "failed" or self.errors > self.errors_before

    def faded(self, at: float) -> float:
        """What is left of its rate by now. A machine that was put back to an earlier moment may give an earlier one."""
        return self.rate * math.exp(min(self.rate_at - at, 0.0) / _RATE_SECONDS)


@dataclass(frozen=True, slots=True)
class StreamView:
    """A stream as it stands, for people. Its texts are free of secrets; ``..._seconds_ago`` and ``..._in_seconds``
    count from now.

    Attributes:
        status: "starting", "polling" / "reading" / "connected", "waiting", "retrying", "failed" (for good), "done".
        rows: all that came out in this run; without ``repeated``, those that were dropped as out already.
        rows_per_second: over the last half a minute or so.
        lag_seconds: how far a bookmark that is a time lies behind now; None for all others.
        last_poll_seconds_ago: since the end of the last round that did not fail; of "push": since its last rows.
        last_poll_at: the same, as seconds since 1970.
        polls: rounds that have ended; ``polls_seconds``: how long they took.
        failures: in a row; ``errors``: in all; ``error``: the last of them.
    """

    name: str
    status: str
    rows: int
    repeated: int
    rows_per_second: float
    bookmark: Any
    lag_seconds: float | None
    last_poll_seconds_ago: float | None
    last_poll_at: float | None
    next_poll_in_seconds: float | None
    polls: int
    polls_seconds: float
    failures: int
    errors: int
    error: str | None


class RunStats:
    """Hears what a run tells, and counts; asked by whoever shows it, from any thread.

    Args:
        points: kept of each stream over time, for plots; 0 for none.
    """

    def __init__(self, clock: Clock | None = None, *, points: int = POINTS) -> None:
        self.clock = clock or Clock()
        self.limit: int | None = None
        self.schemas_only = False
        self.tap: str | None = None
        self.began, self.zero = self.clock.now(), self.clock.monotonic()
        self.ended: dt.datetime | None = None
        self.status = "unfinished"
        self.exit_code: int | None = None
        self.error: dict[str, Any] | None = None
        self.batch: dict[str, Any] | None = None
        self._seconds = 0.0
        self._streams: dict[str, StreamStats] = {}
        self._lock = threading.RLock()
        self._shown = 0  # failures that are kept
        self._points = points
        self.states = self.state_bytes = self.clients_renewed = 0
        self.last_state_at: float | None = None  # in seconds since 1970

    # ---- told ------------------------------------------------------------------------------------------

    def hear(self, event: events.Event) -> None:
        """See ``burler.events``."""
        with self._lock:
            match event:
                case events.Page():
                    self._page(event)
                case events.FamilyBegan():
                    for began in event.streams:
                        self._stream_began(began)
                case events.FamilyEnded():
                    for ended in event.streams:
                        self._stream_ended(ended)
                case events.Failed():
                    self._failed(event.stream, event.where, event.error)
                case events.StateWritten():
                    self.states += 1
                    self.state_bytes += event.size
                    self.last_state_at = self.clock.now().timestamp()
                case events.TailPlanned():
                    for family in event.families:
                        for name in family.streams:
                            self._row(name).kind = family.kind
                case events.RoundEnded():
                    self._round_ended(event)
                case events.ClientRenewed():
                    self.clients_renewed += 1
                case events.RunBegan():
                    if self.tap is None:  # told again, it stays at the time it was told first
                        self.began, self.zero = self.clock.now(), self.clock.monotonic()
                    self.tap = event.tap
                case events.RunEnded():
                    self.batch = dict(event.batch) if event.batch is not None else None
                    self.end(event.status, event.exit_code)

    def end(self, status: str, exit_code: int | None, error: BaseException | None = None) -> None:
        """The run ends; told again, the last word counts. ``error`` is what ended the whole run, if it was none of a
        stream's."""
        self.ended, self._seconds = self.clock.now(), self.clock.monotonic() - self.zero
        self.status, self.exit_code = status, exit_code
        if error is not None:
            self.error = described(error)

    def _row(self, name: str) -> StreamStats:
        row = self._streams.get(name)
        if row is None:
            at = self.clock.monotonic()
            row = self._streams[name] = StreamStats(name, first_at=at, at=at, rate_at=at)
        return row

    def _stream_began(self, began: events.StreamBegan) -> None:
        """A stream that begins anew goes on where it was; after its end, that is another round, and what is told from
        here on comes on top."""
        row = self._row(began.stream)
        if row.over:
            row.rows_before, row.errors_before, row.over = row.rows, row.errors, False
        row.doing, row.next_at = _BUSY[row.kind], None
        if not row.begun:
            row.begun, row.first_at = True, self.clock.monotonic()
            row.method, row.bookmark_from, row.bookmark = began.method, began.bookmark, began.bookmark
            if self._points:
                row.series = Series()
                self._point(row, row.first_at)

    def _page(self, page: events.Page) -> None:
        row = self._row(page.stream)
        if page.bookmark is not None:
            row.bookmark = page.bookmark
        row.at = at = self.clock.monotonic()
        self._came(row, page.rows, at)
        if row.kind == "push":
            row.polled_at = self.clock.now().timestamp()
        if at >= row.point_at:
            self._point(row, at)

    def _came(self, row: StreamStats, rows: int, at: float) -> None:
        """So many rows of this round, so far."""
        more = row.rows_before + rows - row.rows
        if more:
            row.rate, row.rate_at = row.faded(at) + more / _RATE_SECONDS, at
            row.rows += more

    def _point(self, row: StreamStats, at: float) -> None:
        """A point of its plot."""
        if row.series is not None:
            row.series.add(at - self.zero, row.rows, row.bookmark)
            most = max(min(self._points, TOTAL_POINTS // len(self._streams)), _FEWEST)
            if len(row.series) >= most:
                row.series.thin(most)
            row.point_at = at + row.series.step

    def _failed(self, stream: str, where: str | None, error: BaseException) -> None:
        row = self._row(stream)
        row.errors += 1
        if self._shown >= FAILURES:
            if row.rounds == 0:
                return
            # Of a run without an end the newest say more: one of the many goes.
            max(self._streams.values(), key=lambda one: len(one.shown)).shown.pop(0)
            self._shown -= 1
        self._shown += 1
        row.error = {"where": None if where is None else cut(masked(where)), **described(error, row.name)}
        row.shown.append(row.error)

    def _stream_ended(self, ended: events.StreamEnded) -> None:
        row, at = self._row(ended.stream), self.clock.monotonic()
        self._came(row, ended.rows, at)
        row.rounds, row.status, row.over, row.at = row.rounds + 1, ended.status, True, at
        row.skipped, row.seconds = row.skipped + ended.skipped, (row.seconds or 0.0) + ended.seconds
        if ended.updated is not None:
            row.updated = (row.updated or 0) + ended.updated
        row.counts = _added(row.counts, ended.counts)
        if row.rounds == 1:
            row.bookmark_from = ended.bookmark_from
        row.bookmark = ended.bookmark_to
        if row.rounds == 1 or at >= row.point_at:
            self._point(row, at)

    def _round_ended(self, ended: events.RoundEnded) -> None:
        self._row(ended.root).failures = ended.failures
        ways = ("retrying", "failed") if ended.status == "failed" else ("waiting", "done")
        for name in ended.streams:
            row = self._row(name)
            if not row.over:  # it could not begin
                row.rounds, row.over = row.rounds + 1, True
            row.next_at, row.doing = ended.next_at, ways[ended.next_at is None]
            if ended.status == "succeeded":
                row.polled_at = self.clock.now().timestamp()

    # ---- asked -----------------------------------------------------------------------------------------

    @property
    def seconds(self) -> float:
        """How long the run has lasted, or did."""
        return self._seconds if self.ended is not None else self.clock.monotonic() - self.zero

    @property
    def streams(self) -> list[StreamStats]:
        """The streams that have begun, or failed before that."""
        return [row for row in tuple(self._streams.values()) if row.begun or row.errors]

    @property
    def under_way(self) -> list[StreamStats]:
        """The streams that have begun and not come to their end."""
        return [row for row in tuple(self._streams.values()) if row.begun and not row.over]

    def snapshot(self) -> dict[str, StreamView]:
        """All streams by their names, in the order in which they were told of."""
        at, now = self.clock.monotonic(), self.clock.now()
        seconds = now.timestamp()
        with self._lock:
            rows = list(self._streams.values())
            # To look for secrets in many texts at once costs less; names and bookmarks are cut.
            texts = values_of([*(row.name for row in rows), *(row.bookmark for row in rows)])
            texts = [cut(text) if isinstance(text, str) else text for text in texts]
            names, bookmarks = texts[: len(rows)], texts[len(rows) :]
            return {
                row.name: StreamView(
                    name=name,
                    status=row.doing,
                    rows=row.rows,
                    repeated=row.counts.get("repeated", 0),
                    rows_per_second=self._rate(row, at),
                    bookmark=bookmark,
                    lag_seconds=_lag_of(row.bookmark, now),
                    last_poll_seconds_ago=None if row.polled_at is None else max(seconds - row.polled_at, 0.0),
                    last_poll_at=row.polled_at,
                    next_poll_in_seconds=None if row.next_at is None else max(row.next_at - at, 0.0),
                    polls=row.rounds,
                    polls_seconds=row.seconds or 0.0,
                    failures=row.failures,
                    errors=row.errors,
                    error=None if row.error is None else _line_of(row.error),
                )
                for row, name, bookmark in zip(rows, names, bookmarks, strict=True)
            }

    @property
    def rows(self) -> int:
        """Rows of all streams."""
        return sum(row.rows for row in tuple(self._streams.values()))

    @property
    def rows_per_second(self) -> float:
        """Of all streams, over the last half a minute or so."""
        at = self.clock.monotonic()
        return sum(self._rate(row, at) for row in tuple(self._streams.values()))

    @property
    def last_state_seconds_ago(self) -> float | None:
        """How long ago the last STATE was; None before the first one."""
        return None if self.last_state_at is None else max(self.clock.now().timestamp() - self.last_state_at, 0.0)

    def _rate(self, row: StreamStats, at: float) -> float:
        """Weighed by age; in the first seconds of a run, over what there was of it."""
        known = 1.0 - math.exp(-max(at - self.zero, 1.0) / _RATE_SECONDS)
        rate = row.faded(at) / known
        return rate if rate >= 0.001 else 0.0


def _line_of(error: Mapping[str, Any]) -> str:
    """A failure on one line."""
    text = " ".join(f"{error['type']}: {error['message']}".split()).removesuffix(":")
    return str(value_of(text, TEXT))


def _lag_of(bookmark: Any, now: dt.datetime) -> float | None:
    """Seconds by which a bookmark that is a time with a zone, or a date (its midnight in UTC), lies behind ``now``; 0
    for one to come. None for all others: nobody knows what a number counts."""
    moment: dt.datetime | None = None
    if isinstance(bookmark, str):
        moment = times.strict_moment(f"{bookmark}T00:00:00Z" if times.is_date(bookmark) else bookmark)
    elif isinstance(bookmark, dt.datetime):
        moment = bookmark if bookmark.tzinfo is not None else None
    elif isinstance(bookmark, dt.date):
        moment = dt.datetime(bookmark.year, bookmark.month, bookmark.day, tzinfo=dt.UTC)
    return None if moment is None else max((now - moment).total_seconds(), 0.0)


def _added(before: dict[str, Any], more: events.Counts) -> dict[str, Any]:
    """Counts of two rounds together: ``{"requests": 31, "retries": {"429": 3}}``. A name that was counted with and
    without a reason keeps both, as in ``burler.tally``."""
    if not before or not more:
        return dict(before or more)
    found = dict(before)
    for name, count in more.items():
        old = found.get(name, 0)
        if isinstance(count, int) and isinstance(old, int):
            found[name] = old + count
        else:
            found[name] = dict(Counter(_reasons(old)) + Counter(_reasons(count)))
    return dict(sorted(found.items()))


def _reasons(count: int | Mapping[str, int]) -> Mapping[str, int]:
    return count if isinstance(count, Mapping) else {"other": count} if count else {}
