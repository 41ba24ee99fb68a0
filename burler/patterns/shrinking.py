"""Windows that shrink: a source that says "too much" is asked for half of it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from burler.context import StreamRun
from burler.errors import BurlerError
from burler.numbers import is_count
from burler.patterns.date_windows import Window, window_of
from burler.patterns.items import count_rows, items_of
from burler.patterns.progress import failed
from burler.patterns.spans import DAY, BadTime, Moment, Size
from burler.patterns.window_plan import Asked, WindowPlan, utc_now

_SECOND = dt.timedelta(seconds=1)
_FITS_TO_GROW = 2  # windows in a row that fit, before a longer one is tried again

TooMuchKind = type[Exception] | tuple[type[Exception], ...] | Callable[[Exception], bool]


class TooMuch(Exception):
    """Raise it in a fetch function when the source says that a window holds more than it gives at a time."""


def read_windows(
    stream: StreamRun,
    fetch: Callable[[Window], Any],
    size: Size = dt.timedelta(days=7),
    *,
    too_much: TooMuchKind = TooMuch,
    most_rows: int | None = None,
    smallest: dt.timedelta | None = None,
    overlap: dt.timedelta = dt.timedelta(0),
    start: str | Moment | None = None,
    end: str | Moment | None = None,
    delay: dt.timedelta = dt.timedelta(0),
    zone: str | dt.tzinfo | None = None,
    dates: bool = False,
    keep: str | None = "bookmark",
    state_key: str = "window_end",
    now: Callable[[], dt.datetime] = utc_now,
) -> Iterator[Any]:
    """``yield from read_windows(stream, fetch)``: the rows that ``fetch(window)`` gives for window after window. One
    that is too much is halved until it fits; then windows grow again. The rows of a window are held in memory until all
    of them are there, so that none goes out of a window that turns out to be too much.

    Args:
        fetch: gives the rows of a window: a list, an iterator, bytes of JSON, an Arrow table.
        size: the longest window, and, as "month" or a function, where windows end at the latest (see ``windows``).
        too_much: which errors of ``fetch`` say that the window is too long: exception classes, or a function of the
            error. ``TooMuch`` itself always does.
        most_rows: the most rows that the source gives at a time: as many or more are taken to be cut off.
        smallest: the shortest window to try: a second, or a day where windows are made of days.
        overlap, start, end, delay, zone, dates, keep, state_key, now: see ``windows``.

    Raises:
        StreamError: the smallest window is too much; ``fetch`` gave no rows; what ``windows`` raises.
    """
    asked = Asked(size, overlap, start, end, delay, zone, dates, keep, state_key, now)
    plan = WindowPlan(stream, asked, what="read_windows()")
    least = smallest if smallest is not None else DAY if dates else _SECOND
    try:
        plan.calendar.length(least, "smallest", least=DAY if dates else dt.timedelta(microseconds=1))
    except BadTime as error:
        raise failed(stream, f"read_windows(): {error}") from None
    if most_rows is not None and not is_count(most_rows, 1):
        raise failed(stream, f"read_windows(): most_rows is {most_rows!r:.60}; it must be 1 or more.")
    return _read(plan, _Reading(stream, fetch, too_much, most_rows), _Lengths(least))


class _Reading:
    """Asks for one window and holds what comes."""

    def __init__(
        self, stream: StreamRun, fetch: Callable[[Window], Any], too_much: TooMuchKind, most_rows: int | None
    ) -> None:
        self._stream = stream
        self._fetch = fetch
        self._most_rows = most_rows
        self._kinds: tuple[type[Exception], ...] = (TooMuch,)
        self._says_too_much: Callable[[Exception], bool] | None = None
        if isinstance(too_much, tuple):
            self._kinds = (TooMuch, *too_much)
        elif isinstance(too_much, type):
            self._kinds = (TooMuch, too_much)
        else:
            self._says_too_much = too_much

    def read(self, window: Window) -> tuple[list[Any] | None, Exception | None]:
        """The items of a window; None if it is too much, and the error that said so, if one did."""
        held: list[Any] = []
        count = 0
        try:
            for item in items_of(self._fetch(window), self._stream, what=f"fetch for {window.start} to {window.end}"):
                held.append(item)
                if self._most_rows is not None:
                    count += self._rows(item)
                    if count >= self._most_rows:
                        return None, None
        except Exception as error:
            if not self._is_too_much(error):
                raise
            return None, error
        return ([held] if set(map(type, held)) == {dict} else held), None

    def _rows(self, item: Any) -> int:
        count = count_rows(item)
        if count is None:
            raise failed(
                self._stream,
                "most_rows can't count the rows in bytes. Give rows (reply.json()), or raise TooMuch in fetch.",
            )
        return count

    def _is_too_much(self, error: Exception) -> bool:
        if isinstance(error, self._kinds):
            return True
        return self._says_too_much is not None and bool(self._says_too_much(error))

    def hopeless(self, window: Window, error: Exception | None) -> BurlerError:
        """The error for a window that can't be made smaller."""
        said = f"{type(error).__name__}: {error}" if error else f"{self._most_rows} rows or more (most_rows)"
        return failed(
            self._stream,
            f"the window from {window.start} to {window.end} is too much ({said:.200}).\n"
            "  None may be smaller (smallest=). Allow smaller ones, or ask the source for less (pages, a filter).",
        )


def _read(plan: WindowPlan, reading: _Reading, lengths: _Lengths) -> Iterator[Any]:
    for begin, end in plan.spans():
        start = begin
        while start < end:
            to = lengths.cut(plan.calendar.after, start, end)
            window = replace(window_of(plan, start, to), _save=None)  # its rows are yielded later
            held, error = reading.read(window)
            if held is None:
                if not lengths.shrink(start, to):
                    raise reading.hopeless(window, error) from error
                continue
            yield from held
            plan.save(to)
            lengths.fitted()
            start = to


class _Lengths:
    """How long windows may be just now; None: as long as they come."""

    def __init__(self, smallest: dt.timedelta) -> None:
        self._smallest = smallest
        self._longest: dt.timedelta | None = None
        self._fits = 0

    def cut(self, after: Callable[[Moment, dt.timedelta], Moment], start: Moment, end: Moment) -> Moment:
        """Where a window from ``start`` ends, ``end`` at the latest."""
        return end if self._longest is None else min(end, after(start, self._longest))

    def shrink(self, start: Moment, end: Moment) -> bool:
        """Half of the window that was too much, in whole seconds or days if it can be; False if it was the smallest."""
        length: dt.timedelta = end - start  # type: ignore[operator]
        if length <= self._smallest:
            return False
        half = length / 2
        unit = DAY if not isinstance(start, dt.datetime) else _SECOND
        if half > unit:
            half -= half % unit
        self._longest = max(half, self._smallest)
        self._fits = 0
        return True

    def fitted(self) -> None:
        """A window was not too much; after some of them, twice as long a one is tried."""
        if self._longest is None:
            return
        self._fits += 1
        if self._fits >= _FITS_TO_GROW:
            self._fits = 0
            self._longest = None if self._longest > dt.timedelta.max / 2 else self._longest * 2
