"""A tail run on a terminal: the lines of a live table, in plain ASCII, for any width and height."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from burler.report.stats import RunStats, StreamView
from burler.report.text import Table, ascii_of, plain
from burler.words import counted, length

_DROPPED = ("next", "bookmark", "errors", "last poll", "rows/s", "failures", "lag", "status")
_NEEDLESS = ("lag", "next", "failures", "errors", "bookmark")  # where no stream has any
_ERRORS = 3  # lines of errors, at the most
_AROUND = 3  # lines that are no stream's: the run, the names of the columns, a rule


class Line(NamedTuple):
    """A line that is drawn on a terminal, and how it looks: "" or a style that rich knows."""

    text: str
    style: str = ""


def frame(name: str, stats: RunStats, *, width: int, height: int) -> list[Line]:
    """The lines, none wider than ``width``, no more than ``height``: the run, a table of its streams, errors.

    Where there is no room for all streams, the worst come first: failed, failing, far behind, busy.
    """
    streams = [*stats.snapshot().values()]
    if not streams:
        return []  # what is to be read is not known yet
    head = Line(_status_line(name, streams, stats)[:width], "bold")
    room = height - _AROUND
    if room < 2:
        return [head]
    errors = _errors(streams, width)[: min(_ERRORS, max(room - 2, 0))]
    room -= len(errors)
    shown, left = list(streams), 0
    if len(shown) > room:
        shown, left = sorted(shown, key=_badness, reverse=True)[: room - 1], len(streams) - room + 1
    rows = [_row(view) for view in shown]
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    columns = {key: cells for key, cells in columns.items() if key not in _NEEDLESS or {*cells} - {"0", "-"}}
    first, rule, *lines = plain(Table(columns, frozenset(), total=False), width, dropped=_DROPPED).splitlines()
    more = [Line(f"... and {left:,} more"[:width], "dim")] if left else []
    styled = [Line(text, _style(view)) for text, view in zip(lines, shown, strict=True)]
    return [head, Line(first, "bold"), Line(rule, "dim"), *styled, *more, *errors]


def _status_line(name: str, streams: Sequence[StreamView], stats: RunStats) -> str:
    """The run on one line."""
    failing = sum(view.failures > 0 or view.status == "failed" for view in streams)
    lags = [(view.lag_seconds, view.name) for view in streams if view.lag_seconds is not None]
    parts = [counted(stats.rows, "row"), f"{_rate(stats.rows_per_second)}/s"]
    state = stats.last_state_seconds_ago
    parts.append("no STATE yet" if state is None else f"last STATE {length(state)} ago")
    if lags:
        parts.append(f"{length(max(lags)[0])} behind ({ascii_of(max(lags)[1])})")
    first = counted(len(streams), "stream") + (f", {failing:,} failing" if failing else "")
    return f"{ascii_of(name)}: {first}, {', '.join(parts)}"


def _rate(rows_per_second: float) -> str:
    """Rows a second: ``0.25``, ``45``, ``1,200``."""
    if rows_per_second >= 9.95 or not rows_per_second:
        return f"{rows_per_second:,.0f}"
    return f"{rows_per_second:.1f}" if rows_per_second >= 0.95 else f"{rows_per_second:.2f}"


def _row(view: StreamView) -> dict[str, str]:
    return {
        "stream": ascii_of(view.name),
        "status": view.status,
        "rows": f"{view.rows:,}",
        "rows/s": _rate(view.rows_per_second),
        "lag": _length(view.lag_seconds),
        "last poll": _length(view.last_poll_seconds_ago),
        "next": _length(view.next_poll_in_seconds),
        "failures": f"{view.failures:,}",
        "errors": f"{view.errors:,}",
        "bookmark": "-" if view.bookmark is None else ascii_of(view.bookmark),
    }


def _length(seconds: float | None) -> str:
    return "-" if seconds is None else length(seconds)


def _errors(streams: Sequence[StreamView], width: int) -> list[Line]:
    """The last error of each stream that had one, those that still fail first."""
    found = sorted((view for view in streams if view.error is not None), key=_badness, reverse=True)
    return [
        Line(f"{ascii_of(view.name)}: {ascii_of(view.error)}"[:width], "red" if view.failures else "yellow")
        for view in found
    ]


def _badness(view: StreamView) -> tuple[bool, int, float, int, float]:
    return view.status == "failed", view.failures, view.lag_seconds or 0.0, view.errors, view.rows_per_second


def _style(view: StreamView) -> str:
    if view.failures or view.status == "failed":
        return "red"
    return "yellow" if view.errors else ""
