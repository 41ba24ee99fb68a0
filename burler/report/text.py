"""Tables of streams in plain ASCII, which fit a width: the summary of a run, and what a terminal shows of a tail."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from burler.clock import Clock
from burler.report.stats import RunStats, StreamStats
from burler.words import counted, length

SHOWN = 40
"""Streams in a summary; streams that failed are always there."""

_ARROW = " -> "
_NAME, _BOOKMARK = 16, 24  # characters that a name and a bookmark keep; where there is no room for them, columns go
_TEXTS = ("stream", "status", "bookmark")
_DROPPED = ("skipped", "updated", "seconds", "status", "bookmark", "errors")
_LIVE_DROPPED = ("next", "bookmark", "errors", "last poll", "rows/s", "failures", "lag", "status")
_LIVE_NEEDLESS = ("lag", "next", "failures", "errors", "bookmark")
_LIVE_ERRORS = 3  # lines of errors, at the most
_LIVE_AROUND = 3  # lines that are no stream's: the run, the names of the columns, a rule
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_FRACTION = re.compile(r"(T\d\d:\d\d:\d\d)\.\d+")


class Line(NamedTuple):
    """A line, and how it looks: "" or a style that rich knows."""

    text: str
    style: str = ""


# ---- the summary of a run ------------------------------------------------------------------------------


def summary(report: dict[str, Any], width: int) -> list[Line]:
    """The lines of a report (``burler.report.report.document``): streams that failed, and of the others those with the
    most rows; what was counted of them. Nothing without a stream."""
    streams = report["streams"]
    if not streams:
        return []
    order = sorted(range(len(streams)), key=lambda i: (not has_failed(streams[i]), -streams[i]["rows"]))
    most = max(SHOWN, sum(map(has_failed, streams)))
    shown, left = [streams[i] for i in sorted(order[:most])], [streams[i] for i in order[most:]]
    rows = [_row(one) for one in shown]
    styles = ["red" if has_failed(one) else "" for one in shown]
    if left:
        rows.append(_sum(f"and {len(left):,} more", left))
        styles.append("")
    if len(streams) > 1:
        rows.append(_sum("total", streams))
        styles.append("bold")
    if all(one["status"] == "succeeded" or one["error_count"] for one in streams):
        for row in rows:
            del row["status"]  # it says nothing that the others do not
    asked = [one for one in streams if one["counts"].keys() - {"bytes"}][:SHOWN]
    lines = [f"{ascii_of(one['stream'])}: {_counts(one['counts'])}"[:width] for one in asked]
    return [*table(rows, styles, width, _DROPPED), *map(Line, lines)]


def has_failed(stream: dict[str, Any]) -> bool:
    """Whether anything of it did."""
    return bool(stream["error_count"]) or stream["status"] == "failed"


def numbers(stream: dict[str, Any]) -> dict[str, str]:
    """The columns of numbers, here and on a page. Of ``rows``: ``12+`` where files went out that nobody has counted,
    ``unknown`` where these are all."""
    rows, updated, seconds = stream["rows"], stream["updated"], stream["seconds"]
    uncounted = "uncounted_files" in stream["counts"]
    return {
        "rows": "unknown" if uncounted and not rows else f"{rows:,}{'+' if uncounted else ''}",
        "updated": "-" if updated is None else f"{updated:,}",
        "skipped": f"{stream['skipped']:,}",
        "seconds": "" if seconds is None else f"{seconds:,.1f}",
        "errors": f"{stream['error_count']:,}",
    }


def _row(stream: dict[str, Any]) -> dict[str, str]:
    """``from -> to``; where a bookmark has not moved, the value alone. Fractions of seconds are left out."""
    bookmarks = stream["bookmark_from"], stream["bookmark_to"]
    texts = ["none" if value is None else _FRACTION.sub(r"\1", ascii_of(value)) for value in bookmarks]
    bookmark = texts[0] if bookmarks[0] == bookmarks[1] else _ARROW.join(texts)
    return {
        "stream": ascii_of(stream["stream"]),
        **numbers(stream),
        "status": stream["status"],
        "bookmark": "-" if bookmarks == (None, None) else bookmark,
    }


def _sum(name: str, streams: list[dict[str, Any]]) -> dict[str, str]:
    """A line of sums; seconds are left out, since streams may run side by side."""
    updated = [one["updated"] for one in streams if one["updated"] is not None]
    sums: dict[str, Any] = {key: sum(one[key] for one in streams) for key in ("rows", "skipped", "error_count")}
    sums |= {"updated": sum(updated) if updated else None, "seconds": None}
    counts = {name for one in streams for name in one["counts"]}
    return {"stream": name, **numbers({**sums, "counts": counts}), "status": "", "bookmark": ""}


def _counts(counts: dict[str, Any]) -> str:
    """What was counted while a source was read: ``31 requests, 4 retries (429: 3, no answer: 1)``. Bytes are for
    programs; they stand in the JSON."""
    parts = []
    for name in sorted(counts.keys() - {"bytes"}):
        total, reasons = total_of(counts[name])
        parts.append(f"{_several(total, name)}{f' ({ascii_of(reasons)})' if reasons else ''}")
    return ", ".join(parts)


def _several(count: int, name: str) -> str:
    """``1 request``, ``1 refresh``, ``2 retries``: names of counts are plurals."""
    if count == 1:
        ends = (("ies", "y"), ("shes", "sh"), ("s", ""))
        name = next((name.removesuffix(many) + one for many, one in ends if name.endswith(many)), name)
    return f"{count:,} {name.replace('_', ' ')}"


def total_of(count: int | dict[str, int]) -> tuple[int, str]:
    """A count, and its reasons: ``429: 3, no answer: 1``."""
    if not isinstance(count, dict):
        return count, ""
    return sum(count.values()), ", ".join(f"{reason}: {number:,}" for reason, number in count.items())


# ---- a tail on a terminal ------------------------------------------------------------------------------


def frame(name: str, stats: RunStats, *, width: int, height: int) -> list[Line]:
    """The lines, none wider than ``width``, no more than ``height``: the run, a table of its streams, errors.

    Where there is no room for all streams, the worst come first: failed, failing, far behind, busy.
    """
    streams = stats.known
    if not streams:
        return []  # what is to be read is not known yet
    worst = sorted(streams, key=_badness, reverse=True)
    room = height - _LIVE_AROUND
    failing = [one for one in worst if one.error is not None][: min(_LIVE_ERRORS, max(room - 2, 0))]
    room -= len(failing)
    head = Line(_status_line(name, streams, stats)[:width], "bold")
    if room < 2:
        return [head]
    shown, left = (streams, 0) if len(streams) <= room else (worst[: room - 1], len(streams) - room + 1)
    return [
        head,
        *table(
            [_live_row(one, stats.clock) for one in shown], map(_style, shown), width, _LIVE_DROPPED, _LIVE_NEEDLESS
        ),
        *([Line(f"... and {left:,} more"[:width], "dim")] if left else []),
        *(Line(f"{ascii_of(one.shown_name)}: {ascii_of(one.error)}"[:width], _style(one)) for one in failing),
    ]


def _status_line(name: str, streams: Sequence[StreamStats], stats: RunStats) -> str:
    """The run on one line."""
    failing = sum(one.failures > 0 or one.doing == "failed" for one in streams)
    lags = [(one.lag_seconds, one.shown_name) for one in streams if one.lag_seconds is not None]
    parts = [
        counted(len(streams), "stream"),
        *([f"{failing:,} failing"] if failing else []),
        counted(sum(one.rows for one in streams), "row"),
        f"{_rate(sum(one.rows_per_second for one in streams))}/s",
        stats.last_state,
        *([f"{length(max(lags)[0])} behind ({ascii_of(max(lags)[1])})"] if lags else []),
    ]
    return f"{ascii_of(name)}: {', '.join(parts)}"


def _live_row(one: StreamStats, clock: Clock) -> dict[str, str]:
    return {
        "stream": ascii_of(one.shown_name),
        "status": one.doing,
        "rows": f"{one.rows:,}",
        "rows/s": _rate(one.rows_per_second),
        "lag": "-" if one.lag_seconds is None else length(one.lag_seconds),
        "last poll": _length(one.polled_at, clock.now().timestamp()),
        "next": _length(clock.monotonic(), one.next_at),
        "failures": f"{one.failures:,}",
        "errors": f"{one.errors:,}",
        "bookmark": "-" if one.bookmark is None else ascii_of(one.shown_bookmark),
    }


def _rate(rows_per_second: float) -> str:
    """Rows a second: ``0.25``, ``1.2``, ``1,200``."""
    return f"{rows_per_second:,.0f}" if rows_per_second >= 9.95 else f"{rows_per_second:.2g}"


def _length(begin: float | None, end: float | None) -> str:
    return "-" if begin is None or end is None else length(max(end - begin, 0.0))


def _badness(one: StreamStats) -> tuple[bool, int, float, int, float]:
    return one.doing == "failed", one.failures, one.lag_seconds or 0.0, one.errors, one.rows_per_second


def _style(one: StreamStats) -> str:
    if one.failures or one.doing == "failed":
        return "red"
    return "yellow" if one.errors else ""


# ---- tables that fit -----------------------------------------------------------------------------------


def table(
    rows: Sequence[dict[str, str]],
    styles: Iterable[str],
    width: int,
    dropped: Iterable[str],
    needless: Collection[str] = (),
) -> list[Line]:
    """Rows as lines, none longer than ``width`` characters, below the names of their columns.

    Where there is no room, names and bookmarks are cut, then columns go: those of ``dropped``, in its order. Columns of
    ``needless`` go where they have nothing to say.
    """
    columns = {name: [name, *(row[name] for row in rows)] for name in rows[0]}
    columns = {name: cells for name, cells in columns.items() if name not in needless or {*cells[1:]} - {"", "-", "0"}}
    going = iter(dropped)
    while (sizes := _sizes(columns, width)) is None:
        columns.pop(next(going), None)
    cells = [[_fitted(name, cell, sizes[name]) for cell in column] for name, column in columns.items()]
    first, *lines = ["  ".join(line)[:width].rstrip() for line in zip(*cells, strict=True)]
    rule = "-" * max(map(len, (first, *lines)))
    return [Line(first, "bold"), Line(rule, "dim"), *map(Line, lines, styles)]


def _sizes(columns: dict[str, list[str]], width: int) -> dict[str, int] | None:
    """How wide each column is: numbers as they need it, the rest for texts; None if that is too little."""
    sizes = {name: max(map(len, cells)) for name, cells in columns.items()}
    longest, bookmark = sizes.pop("stream"), sizes.pop("bookmark", 0)
    room = width - sum(sizes.values()) - 2 * (len(columns) - 1)
    if room < min(longest, _NAME) + min(bookmark, _BOOKMARK) and len(columns) > 2:
        return None
    name = min(longest, max(_NAME, room - bookmark, room // 3))
    return {**sizes, "stream": name, "bookmark": min(bookmark, max(room - name, 0))}


def _fitted(name: str, cell: str, size: int) -> str:
    """Of ``from -> to`` both keep as much as there is room for."""
    if name not in _TEXTS:
        return cell.rjust(size)
    before, arrow, after = cell.partition(_ARROW)
    if len(cell) <= size or not arrow:
        return cut_in_two(cell, size).ljust(size)
    room = size - len(_ARROW)
    left = min(len(before), max(room // 2, room - len(after)))
    return f"{cut_in_two(before, left)}{_ARROW}{cut_in_two(after, room - left)}"[:size]


def cut_in_two(text: str, size: int) -> str:
    """A text of ``size`` characters at the most, with dots where something is left out: of a date-time its beginning,
    of others the two ends, which tell names and numbers apart."""
    if len(text) <= size:
        return text
    tail = 0 if size < 6 or _DATE.match(text) else (size - 2) // 2
    return f"{text[: max(size - 2 - tail, 0)]}..{text[len(text) - tail :]}"[:size]


def ascii_of(value: Any) -> str:
    """A value on one line of ASCII: what else is in it is spelled as Python does."""
    text = str(value).encode("ascii", "backslashreplace").decode()
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
