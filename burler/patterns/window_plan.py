"""The windows of one run: where the first one begins, where the last one ends, and what is noted behind each."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from burler.context import StreamRun
from burler.patterns.progress import Progress, failed, lookback_of, saved_bookmark
from burler.patterns.spans import DAY, BadTime, Calendar, Moment, Size, spans, zone_of
from burler.singer.bookmark_values import comparable

_SECOND = dt.timedelta(seconds=1)
_TIMES = {"a date": True, "a date-time": False}


def utc_now() -> dt.datetime:
    """The time by this machine's clock."""
    return dt.datetime.now(dt.UTC)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the author said of windows, as it was said (see ``date_windows.windows``)."""

    size: Size
    overlap: dt.timedelta
    start: Any
    end: Any
    delay: dt.timedelta
    zone: str | dt.tzinfo | None
    dates: bool
    keep: str | None
    state_key: str
    now: Callable[[], dt.datetime]


class WindowPlan:
    """The spans to read, as moments of ``calendar``; ``save`` notes how far all is out.

    What is noted never passes ``now`` less the delay: of a day that is not over, and of a future, more may come. And
    it never goes back behind the bookmark that the run began with, which an overlap reads again.
    """

    def __init__(self, stream: StreamRun | None, asked: Asked, *, what: str) -> None:
        self.stream = stream
        self._progress = Progress(stream, asked.keep, asked.state_key, what=what)
        try:
            self.calendar = Calendar(zone_of(asked.zone), asked.dates, zone_said=asked.zone is not None)
            self._read(asked, what)
        except BadTime as error:
            raise failed(stream, f"{what}: {error}") from None

    def _read(self, asked: Asked, what: str) -> None:
        calendar = self.calendar
        self._overlap = calendar.length(asked.overlap, "overlap")
        delay = Calendar(calendar.zone, dates=False).length(asked.delay, "delay")
        now = asked.now()
        if not isinstance(now, dt.datetime) or now.utcoffset() is None:
            raise BadTime(f"now() gave {now!r:.60}; it must be a datetime with a zone.")
        settled = calendar.before(now.astimezone(dt.UTC).replace(microsecond=0), delay)
        assert isinstance(settled, dt.datetime)
        self._settled: Moment = calendar.day_of(settled) if asked.dates else settled
        if asked.end is not None:
            self.end = calendar.moment(asked.end, "end")
        else:
            self.end = calendar.after(self._settled, DAY) if asked.dates else self._settled
        self.begin, self._floor, self._least = self._beginning(asked, what)
        self._ends = calendar.ends(asked.size)
        self._as_date = self._key_is_date() if self._progress.kept == "bookmark" else None
        self._saved: Moment | None = None

    def _beginning(self, asked: Asked, what: str) -> tuple[Moment, Moment | None, Moment | None]:
        """Where the first window begins; the value that what is noted may not go back behind, if there is one; and the
        moment before which no overlap reaches, if there is one."""
        stream, calendar = self.stream, self.calendar
        given = asked.start
        if stream is not None and stream.start_date is not None:
            given = stream.start_date
        least = None if given is None else calendar.moment(given, "start")
        lookback = self._lookback()
        if self._progress.position is not None:
            floor = calendar.moment(self._progress.position, f"stream.state[{asked.state_key!r}]")
            begin = calendar.before(floor, lookback)
        elif self._progress.bookmark is not None:
            begin = calendar.moment(self._progress.bookmark, "the bookmark")
            # At the beginning of the calendar it can't be told how far the saved bookmark lies behind.
            floor = calendar.after(begin, lookback) if begin.year > 1 else begin
        elif least is not None:
            return least, None, least
        else:
            nothing = "nothing is noted in stream.state" if asked.keep == "state" else "no bookmark is saved"
            nothing = "" if stream is None else f"{nothing}, the config has no start_date, and "
            raise failed(stream, f"{what} has nowhere to begin: {nothing}no start= is given.")
        return begin, floor, None if least is None else min(least, begin)

    def _lookback(self) -> dt.timedelta:
        """The stream's lookback as a length of time; none for a key that is no time."""
        lookback = lookback_of(self.stream)
        if isinstance(lookback, dt.timedelta):
            return lookback
        unit = {True: DAY, False: _SECOND}.get(self._key_is_date())  # type: ignore[arg-type]
        return (unit or dt.timedelta(0)) * (lookback or 0)

    def _key_is_date(self) -> bool | None:
        """Whether the replication key holds days, as the schema has it, else as the bookmark looks; None if neither
        says."""
        stream = self.stream
        if stream is None:
            return None
        formats = frozenset(_formats(stream.schema.get("properties", {}).get(stream.replication_key or "")))
        if not formats:
            return _TIMES.get(comparable(saved_bookmark(stream))[0])
        return {frozenset({"date"}): True, frozenset({"date-time"}): False}.get(formats)

    def spans(self) -> Iterator[tuple[Moment, Moment]]:
        """The spans to read, in order; each begins ``overlap`` before the end of the one before it."""
        try:
            for start, end in spans(self.begin, self.end, self._ends):
                yield self._with_overlap(start), end
        except BadTime as error:
            raise failed(self.stream, str(error)) from None

    def _with_overlap(self, start: Moment) -> Moment:
        if not self._overlap:
            return start
        earlier = self.calendar.before(start, self._overlap)
        return earlier if self._least is None else max(earlier, self._least)

    def save(self, end: Moment) -> None:
        """All rows before ``end`` have been yielded."""
        value = min(end, self._settled)
        if self._floor is not None:
            value = max(value, self._floor)
        if self._saved is not None:
            value = max(value, self._saved)
        self._saved = value
        self._progress.save(self.calendar.text(value, as_date=self._as_date))


def _formats(schema: Any) -> Iterator[str]:
    """The formats that a field's schema names, also in ``anyOf`` and ``oneOf``."""
    if not isinstance(schema, Mapping):
        return
    if isinstance(schema.get("format"), str):
        yield schema["format"]
    for word in ("anyOf", "oneOf"):
        for part in schema.get(word) or ():
            yield from _formats(part)
