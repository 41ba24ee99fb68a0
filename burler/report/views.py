"""A tail run at one moment: what a live table, Prometheus and the lines in the log show of it."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from burler import logs, times
from burler.report.values import TEXT, cut, value_of, values_of
from burler.words import counted

_UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"))


@dataclass(frozen=True)
class StreamView:
    """A stream as it stands. Its texts are free of secrets; ``..._seconds_ago`` and ``..._in_seconds`` count from now.

    Attributes:
        kind: "poll", "full" (FULL_TABLE, read again by its age) or "push" (a tail function).
        status: "starting", "polling" / "reading" / "connected", "waiting", "retrying", "failed" (for good), "done".
        rows: all that came out in this run; without ``repeated``, those that were dropped as out already.
        rows_per_second: over the last half a minute or so.
        lag_seconds: how far a bookmark that is a time lies behind now; None for all others.
        last_poll_seconds_ago: since the end of the last round that did not fail; of "push": since its last rows.
        last_poll_at: the same, as seconds since 1970.
        polls: rounds that have ended.
        poll_seconds: how long the last round took; ``polls_seconds``: all of them.
        failures: in a row; ``errors``: in all; ``error``: the last of them.
    """

    name: str
    kind: str
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
    poll_seconds: float | None
    polls_seconds: float
    failures: int
    errors: int
    error: str | None


@dataclass(frozen=True)
class RunView:
    """The run as a whole. ``last_state_at``: seconds since 1970."""

    seconds: float
    rows: int
    rows_per_second: float
    states: int
    state_bytes: int
    last_state_seconds_ago: float | None
    last_state_at: float | None
    clients_renewed: int


def lag_of(bookmark: Any, now: dt.datetime) -> float | None:
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


def texts(values: list[Any]) -> list[Any]:
    """Names and bookmarks for people: JSON values without secrets, none of them long."""
    return [cut(value) if isinstance(value, str) else value for value in values_of(values)]


def error_line(error: BaseException) -> str:
    """An error on one line, without secrets."""
    return str(value_of(" ".join(logs.short(error).split()), TEXT))


def interval_line(rows: int, repeated: int, errors: int, polls: int, *, seconds: float, view: StreamView) -> str:
    """What came of a stream since the last line: ``12 rows in 60 s, 5 rows repeated, 6 polls, ...``."""
    parts = [f"{counted(rows, 'row')} in {length(seconds)}"]
    if repeated:
        parts.append(f"{counted(repeated, 'row')} repeated")
    parts.append(counted(polls, "poll"))
    if view.bookmark is not None:
        lag = "" if view.lag_seconds is None else f" ({length(view.lag_seconds)} behind)"
        parts.append(f"bookmark {view.bookmark}{lag}")
    if errors:
        row = f", {view.failures} in a row" if view.failures else ""
        parts.append(f"{counted(errors, 'error')}{row}, the last: {view.error}")
    return ", ".join(parts)


def length(seconds: float) -> str:
    """A length of time in one or two digits that count: ``0.4 s``, ``12 s``, ``3 min``, ``5 h``, ``40 d``."""
    for size, unit in _UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
