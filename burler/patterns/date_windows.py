"""Windows of time: from where the last run got to, up to now, one after the other."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from burler.context import StreamRun
from burler.errors import BurlerError
from burler.patterns.spans import DAY, Moment, Size
from burler.patterns.window_plan import Asked, WindowPlan, utc_now


@dataclass(frozen=True, slots=True)
class Window:
    """A half-open stretch of time: ``start`` is in it, ``end`` is not.

    Attributes:
        start, end: as text: RFC 3339 in UTC (``2024-05-01T00:00:00Z``), or dates (``2024-05-01``); in the stream's
            ``bookmark_format``, if it has one.
        start_at, end_at: the same as datetimes in the zone of the windows, or as dates.
    """

    start: str
    end: str
    start_at: Moment
    end_at: Moment
    _save: Callable[[], None] | None = field(default=None, repr=False, compare=False)

    @property
    def last_day(self) -> str:
        """The last day in a window of dates, for sources that take both ends inclusive.

        Raises:
            BurlerError: it is no window of dates.
        """
        if isinstance(self.end_at, dt.datetime):
            raise BurlerError("last_day is there for windows of dates: say windows(..., dates=True).")
        return (self.end_at - DAY).isoformat()

    def done(self) -> None:
        """All rows of this window and of those before it have been yielded. Asking for the next one says the same."""
        if self._save is not None:
            self._save()


def windows(
    stream: StreamRun | None,
    size: Size = dt.timedelta(days=7),
    *,
    overlap: dt.timedelta = dt.timedelta(0),
    start: str | Moment | None = None,
    end: str | Moment | None = None,
    delay: dt.timedelta = dt.timedelta(0),
    zone: str | dt.tzinfo | None = None,
    dates: bool = False,
    keep: str | None = "bookmark",
    state_key: str = "window_end",
    now: Callable[[], dt.datetime] = utc_now,
) -> Iterator[Window]:
    """``for window in windows(stream): yield from fetch(window.start, window.end)``: windows that cover the time from
    where the last run got to up to now, without a gap, none over another. The end of a window is noted once the next
    one is asked for: never while its rows are being yielded, nor when the body was left by an error, ``break`` or
    ``return``. So ask for one only after all rows of the one before it were yielded: ``list(windows(stream))`` would
    note them all at once.

    Args:
        stream: the running stream; None for windows that note nothing (then say ``start``).
        size: how long a window is: a timedelta; "day", "week", "month", "quarter" or "year", which end where the
            calendar has it; or a function of the window's start that gives its end or its length.
        overlap: each window begins so much before the end of the one before it, the first one so much before the
            bookmark; never before ``start_date`` or ``start``.
        start: where the very first run begins, if the config has no ``start_date``.
        end: where the last window is cut; else now (with dates: the end of today).
        delay: rows become visible so long after the moment they carry: windows end so much before now.
        zone: whose days and months count, for ``size`` and ``dates``: a name such as "Europe/Berlin". Else UTC.
        dates: windows are made of whole days, and written so. Today is read, and read again by the next run.
        keep: where it is noted how far all is out: "bookmark" (needs ``bookmark_strategy="manual"``), "state"
            (``stream.state[state_key]``; the bookmark counts for nothing then), None (nowhere). Full tables note
            nothing: each run reads from the beginning.
        now: gives the time, with a zone. It is asked once.

    Raises:
        BurlerError: nothing says where to begin, or something given is no time, length or zone.
    """
    asked = Asked(size, overlap, start, end, delay, zone, dates, keep, state_key, now)
    return _each(WindowPlan(stream, asked, what="windows()"))


def _each(plan: WindowPlan) -> Iterator[Window]:
    for start, end in plan.spans():
        window = window_of(plan, start, end)
        yield window
        window.done()


def window_of(plan: WindowPlan, start: Moment, end: Moment) -> Window:
    """One window as authors get it; ``done`` notes its end."""
    calendar = plan.calendar
    begins, ends = (calendar.local(one) if isinstance(one, dt.datetime) else one for one in (start, end))
    written = plan.stream.written if plan.stream is not None else str
    return Window(written(calendar.text(start)), written(calendar.text(end)), begins, ends, lambda: plan.save(end))
