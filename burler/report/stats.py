"""What a run has done so far, counted once: for its report, for a live table, for Prometheus, for lines in the log.

It costs some microseconds a page or a round, and as much memory after a year as after a minute. What stands in a report
are JSON values without secrets, and texts that do not go on and on.
"""

from __future__ import annotations

import datetime as dt
import math
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from burler import events, logs, times
from burler.clock import Clock
from burler.config.secrets import masked
from burler.errors import BurlerError
from burler.tally import Tally
from burler.words import length

FAILURES = 1000
"""Failures of a run that are kept, the newest; the rest is counted."""
POINTS = 500
"""Points of one stream over time, at the most."""
TOTAL_POINTS = 100_000
"""Of all streams together: where there are many, each keeps fewer."""
TEXT = 300
"""Characters of a place, or of a bookmark that is text."""

_SHORTEST_STEP = 0.001  # seconds; a clock that stands still must not make points for ever
_RATE_SECONDS = 30.0  # rows/s is a mean that forgets what is much older than this
_BUSY = {"poll": "polling", "full": "reading", "push": "connected"}

Point = tuple[float, int, Any]
"""Seconds since the run began; rows and the bookmark of a stream by then."""


@dataclass(slots=True)
class StreamStats:
    """What is known of a stream, over all of its rounds; a stream of a plain run has but one.

    Attributes:
        status: how its last round ended; "failed" once something of it did.
        doing: what it does now, in a tail: "starting", "polling" / "reading" / "connected", "waiting", "retrying",
            "failed" (for good), "done".
        rounds: that have ended; ``seconds``: how long they took; None before the first.
        rows: of all rounds; ``rows_before``: those of the rounds before this one; ``repeated``: that were dropped, as
            they were out already.
        covering: the number of the STATE that covers its last round.
        tally: what was counted while its source was read.
        polled_at: when a round that did not fail has ended last, in seconds since 1970; of "push": its last rows.
            Other times are of the monotonic clock.
        failures: rounds in a row; ``errors``: in all; ``error``: the last of them, on a line.
    """

    name: str
    clock: Clock
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
    repeated: int = 0
    seconds: float | None = None
    covering: int = 0
    tally: Tally = field(default_factory=Tally)
    bookmark_from: Any = None
    bookmark: Any = None
    at: float = 0.0
    points: list[Point] = field(default_factory=list)
    step: float = 0.0
    point_at: float = 0.0
    rate: float = 0.0
    rate_at: float = 0.0
    polled_at: float | None = None
    next_at: float | None = None
    failures: int = 0
    errors: int = 0
    error: str | None = None

    def came(self, rows: int) -> None:
        """So many rows of this round, so far."""
        self.at = at = self.clock.monotonic()
        more = self.rows_before + rows - self.rows
        if more:
            self.rate, self.rate_at = self._faded(at) + more / _RATE_SECONDS, at
            self.rows += more

    def _faded(self, at: float) -> float:
        """What is left of its rate by now. A machine that was put back to an earlier moment may give an earlier one."""
        return self.rate * math.exp(min(self.rate_at - at, 0.0) / _RATE_SECONDS)

    def thin(self, most: int) -> None:
        """Points lie at least ``step`` seconds apart. Where there are too many, the step grows so that about half of
        them stay: a stream that is slow for hours after a fast start keeps points for all of the time."""
        first, *rest = self.points
        self.step = max(2 * (rest[-1][0] - first[0]) / most, 2 * self.step, _SHORTEST_STEP)
        self.points = [first]
        for point in rest:
            if point[0] - self.points[-1][0] >= self.step:
                self.points.append(point)

    # ---- for people: texts without secrets, times that count from now ----------------------------------

    @property
    def shown_name(self) -> str:
        """Its name."""
        return str(value_of(self.name, TEXT))

    @property
    def shown_bookmark(self) -> Any:
        """Its bookmark."""
        return value_of(self.bookmark, TEXT)

    @property
    def rows_per_second(self) -> float:
        """Over the last half a minute or so; in its first seconds, over what there was of it."""
        at = self.clock.monotonic()
        known = 1.0 - math.exp(-max(at - self.first_at, 1.0) / _RATE_SECONDS)
        rate = self._faded(at) / known
        return rate if rate >= 0.001 else 0.0

    @property
    def lag_seconds(self) -> float | None:
        """How far a bookmark that is a time lies behind now, 0 for one to come; None for all others: nobody knows what
        a number counts."""
        moment = moment_of(self.bookmark)
        return None if moment is None else max((self.clock.now() - moment).total_seconds(), 0.0)


class RunStats:
    """Hears what a run tells, and counts; asked by whoever shows it, from any thread.

    Args:
        points: kept of each stream over time, for plots; 0 for none.

    Attributes:
        known: streams in the order in which they were told of.
        failed: the newest failures, each with its stream's name.
        last_state_at: in seconds since 1970.
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
        self.batch: Mapping[str, Any] | None = None
        self.failed: deque[tuple[str, dict[str, Any]]] = deque(maxlen=FAILURES)
        self.states = self.state_bytes = self.clients_renewed = self._out = 0
        self.last_state_at: float | None = None
        self._seconds = 0.0
        self._streams: dict[str, StreamStats] = {}
        self._lock = threading.RLock()
        self._points = points

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
                        self._stream_ended(ended, event.seconds)
                        self._row(ended.stream).covering = event.covering
                case events.Failed():
                    row, found = self._row(event.stream), described(event.error, event.stream)
                    row.errors, row.status = row.errors + 1, "failed"
                    row.error = value_of(" ".join(f"{found['type']}: {found['message']}".split()).rstrip(":"), TEXT)
                    self.failed.append((row.name, {"where": value_of(event.where, TEXT), **found}))
                case events.StateWritten():
                    self.states += 1
                    self.state_bytes += event.size
                    self.last_state_at = self.clock.now().timestamp()
                case events.StateOut():
                    self._out = event.number
                case events.TailPlanned():
                    for family in event.families:
                        for name in family.streams:
                            self._row(name).kind = family.kind
                case events.RoundEnded():
                    self._round_ended(event)
                case events.ClientRenewed():
                    self.clients_renewed += 1
                case events.RunBegan():
                    self.tap = event.tap
                case events.RunEnded():
                    self.batch = event.batch
                    if event.exit_code is None:
                        self._take_back()
                    self.end(event.status, event.exit_code)

    def end(self, status: str, exit_code: int | None, error: BaseException | None = None) -> None:
        """The run ends; told again, the last word counts. ``error`` is what ended the whole run, if it was none of a
        stream's."""
        self.ended, self._seconds = self.clock.now(), self.clock.monotonic() - self.zero
        self.status, self.exit_code = status, exit_code
        if error is not None:
            self.error = described(error)

    def _take_back(self) -> None:
        """An error ended the run: a stream whose rows or STATE had not left it by then has come to no end."""
        for row in self._streams.values():
            if row.status == "succeeded" and row.covering > self._out:
                row.status = "unfinished"

    def _row(self, name: str) -> StreamStats:
        row = self._streams.get(name)
        if row is None:
            at = self.clock.monotonic()
            row = self._streams[name] = StreamStats(name, self.clock, first_at=at, at=at)
        return row

    def _stream_began(self, began: events.StreamBegan) -> None:
        """A stream that begins anew goes on where it was; after its end, that is another round, and what is told from
        here on comes on top."""
        row = self._row(began.stream)
        if row.over:
            row.rows_before, row.over = row.rows, False
        row.doing, row.next_at = _BUSY[row.kind], None
        if not row.begun:
            row.begun, row.first_at = True, self.clock.monotonic()
            row.at = row.first_at
            row.method, row.bookmark_from, row.bookmark = began.method, began.bookmark, began.bookmark
            self._point(row)

    def _page(self, page: events.Page) -> None:
        row = self._row(page.stream)
        if page.bookmark is not None:
            row.bookmark = page.bookmark
        row.came(page.rows)
        if row.kind == "push":
            row.polled_at = self.clock.now().timestamp()
        self._point(row)

    def _point(self, row: StreamStats) -> None:
        """A point of its plot, where one is due."""
        if self._points and row.at >= row.point_at:
            row.points.append(point_of(row, row.at - self.zero))
            most = max(min(self._points, TOTAL_POINTS // len(self._streams)), 4)
            if len(row.points) >= most:
                row.thin(most)
            row.point_at = row.at + row.step

    def _stream_ended(self, ended: events.StreamEnded, seconds: float) -> None:
        row = self._row(ended.stream)
        row.came(ended.rows)
        row.rounds, row.status, row.over = row.rounds + 1, ended.status, True
        row.skipped, row.seconds = row.skipped + ended.skipped, (row.seconds or 0.0) + seconds
        if ended.updated is not None:
            row.updated = (row.updated or 0) + ended.updated
        for name, count in ended.counts.items():
            for reason, number in count.items() if isinstance(count, Mapping) else [("", count)]:
                row.tally.add(name, reason, number)
                row.repeated += number if name == "repeated" else 0
        row.bookmark = ended.bookmark
        self._point(row)

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
    def known(self) -> list[StreamStats]:
        """All streams, in the order in which they were told of."""
        return [*self._streams.values()]

    @property
    def streams(self) -> list[StreamStats]:
        """The streams that have begun, or failed before that."""
        return [row for row in self.known if row.begun or row.errors]

    @property
    def last_state(self) -> str:
        """How long ago the last STATE was, in words."""
        if self.last_state_at is None:
            return "no STATE yet"
        return f"last STATE {length(max(self.clock.now().timestamp() - self.last_state_at, 0.0))} ago"


def point_of(row: StreamStats, seconds: float) -> Point:
    """A stream as it stands."""
    return seconds, row.rows, row.bookmark[:TEXT] if isinstance(row.bookmark, str) else row.bookmark


def moment_of(bookmark: Any) -> dt.datetime | None:
    """A bookmark that is a time with a zone, or a date (its midnight in UTC); None for all others."""
    if not isinstance(bookmark, str):
        return None
    return times.strict_moment(f"{bookmark}T00:00:00Z" if times.is_date(bookmark) else bookmark)


# ---- values of a report ----------------------------------------------------------------------------------


def described(error: BaseException, stream: str | None = None) -> dict[str, Any]:
    """An exception for a report: its type, its message in a few lines, and where in the author's code it came from,
    where that says something."""
    name = type(error).__name__
    message = logs.short(error).removeprefix(name).removeprefix(": ")
    if stream is not None:
        message = message.removeprefix(f"stream '{stream}': ")
    place = None if isinstance(error, BurlerError) else logs.place_of_error(error)
    return {"type": name, "message": _whole(message), "place": None if place is None else _whole(place)}


def value_of(value: Any, most: int | None = None) -> Any:
    """A bookmark or a name as a JSON value, without secrets; a text is cut after ``most`` characters."""
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    text = masked(str(value))
    return _whole(text if most is None or len(text) <= most else text[:most] + " ...")


def values_of(values: Sequence[Any]) -> list[Any]:
    """As :func:`value_of`, for many at once: to look for the secrets of each costs more than to compare."""
    joined = "\n;\n".join(value for value in values if isinstance(value, str))
    of_text = _whole if masked(joined) == joined else value_of
    return [of_text(value) if isinstance(value, str) else value_of(value) for value in values]


def _whole(text: str) -> str:
    """Half a surrogate pair, which JSON in UTF-8 has no form for, is spelled out."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
