"""The summary of a run: a table of its streams for the log, in plain ASCII."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

SHOWN = 40
"""Streams in a table; streams that failed are always there."""

_ARROW = " -> "
_NAME, _BOOKMARK = 16, 24  # characters that a name and a bookmark keep; where there is no room for them, columns go
_DROPPED = ("skipped", "updated", "seconds", "status", "bookmark", "errors")
_TEXTS = ("stream", "status", "bookmark")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_FRACTION = re.compile(r"(T\d\d:\d\d:\d\d)\.\d+")


@dataclass(frozen=True)
class Table:
    """Columns by their names, each a cell a line; ``failed`` are the lines that went wrong, ``total`` says whether the
    last line sums up the others."""

    columns: dict[str, list[str]]
    failed: frozenset[int]
    total: bool


def summary(report: dict[str, Any], width: int) -> list[str]:
    """The lines of a report: the table, and what was counted of its streams; nothing without a stream."""
    return [*plain(table(report), width).splitlines(), *counted(report, width)]


def table(report: dict[str, Any]) -> Table:
    """The table of a report (``Report.to_json``): failed streams, and of the others those with the most rows."""
    streams = report["streams"]
    failed = {i for i, one in enumerate(streams) if one["error_count"] or one["status"] == "failed"}
    others = sorted((i for i in range(len(streams)) if i not in failed), key=lambda i: -streams[i]["rows"])
    shown = sorted([*failed, *others[: max(SHOWN - len(failed), 0)]])
    lines = [_line(streams[i]) for i in shown]
    left = [streams[i] for i in others[max(SHOWN - len(failed), 0) :]]
    if left:
        lines.append(_sum(f"and {len(left):,} more", left))
    if len(streams) > 1:
        lines.append(_sum("total", streams))
    columns = {name: [line[name] for line in lines] for name in (lines[0] if lines else ())}
    if all(one["status"] == "succeeded" or one["error_count"] for one in streams):
        columns.pop("status", None)  # nothing that the others do not say
    return Table(columns, frozenset(n for n, i in enumerate(shown) if i in failed), total=len(streams) > 1)


def _line(stream: dict[str, Any]) -> dict[str, str]:
    return {
        "stream": ascii_of(stream["stream"]),
        "rows": rows_of([stream]),
        "updated": "-" if stream["updated"] is None else f"{stream['updated']:,}",
        "skipped": f"{stream['skipped']:,}",
        "seconds": f"{stream['seconds']:,.1f}",
        "errors": f"{stream['error_count']:,}",
        "status": ascii_of(stream["status"]),
        "bookmark": _bookmark(stream["bookmark_from"], stream["bookmark_to"]),
    }


def rows_of(streams: list[dict[str, Any]]) -> str:
    """The rows of streams: ``12``, ``12+`` where files went out that nobody has counted, ``unknown`` where these are
    all."""
    rows = sum(one["rows"] for one in streams)
    if not any("uncounted_files" in one["counts"] for one in streams):
        return f"{rows:,}"
    return f"{rows:,}+" if rows else "unknown"


def counted(report: dict[str, Any], width: int) -> list[str]:
    """A line a stream of what was counted while its source was read: ``contacts: 31 requests, 4 retries (429: 3, no
    answer: 1)``. Bytes are for programs; they stand in the JSON."""
    streams = [one for one in report["streams"] if one["counts"].keys() - {"bytes"}][:SHOWN]
    return [f"{ascii_of(one['stream'])}: {_counts(one['counts'])}"[:width] for one in streams]


def _counts(counts: dict[str, Any]) -> str:
    parts = []
    for name, count in counts.items():
        if name == "bytes":
            continue
        if isinstance(count, dict):
            reasons = ", ".join(f"{ascii_of(reason)}: {number:,}" for reason, number in count.items())
            parts.append(f"{_several(sum(count.values()), name)} ({reasons})")
        else:
            parts.append(_several(count, name))
    return ", ".join(parts)


def _several(count: int, name: str) -> str:
    """``1 request``, ``1 refresh``, ``2 retries``: names of counts are plurals."""
    if count == 1:
        ends = (("ies", "y"), ("shes", "sh"), ("s", ""))
        name = next((name.removesuffix(many) + one for many, one in ends if name.endswith(many)), name)
    return f"{count:,} {name.replace('_', ' ')}"


def _sum(name: str, streams: list[dict[str, Any]]) -> dict[str, str]:
    """A line of sums; seconds are left out, since streams may run side by side."""
    updated = [one["updated"] for one in streams if one["updated"] is not None]
    return {
        "stream": name,
        "rows": rows_of(streams),
        "updated": f"{sum(updated):,}" if updated else "-",
        "skipped": f"{sum(one['skipped'] for one in streams):,}",
        "seconds": "",
        "errors": f"{sum(one['error_count'] for one in streams):,}",
        "status": "",
        "bookmark": "",
    }


def _bookmark(before: Any, after: Any) -> str:
    """``from -> to``; where it has not moved, the value alone. Fractions of seconds are left out."""
    if before is None and after is None:
        return "-"
    texts = ["none" if value is None else _FRACTION.sub(r"\1", ascii_of(value)) for value in (before, after)]
    return texts[1] if before == after else _ARROW.join(texts)


def ascii_of(value: Any) -> str:
    """A value on one line of ASCII: what else is in it is spelled as Python does."""
    text = str(value).encode("ascii", "backslashreplace").decode()
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def plain(shown: Table, width: int, dropped: Iterable[str] = _DROPPED) -> str:
    """The table as lines, none longer than ``width`` characters; nothing if there is no stream.

    Where there is no room, names and bookmarks are cut, then columns go: those of ``dropped``, in its order.
    """
    if not shown.columns:
        return ""
    columns = {name: [name, *cells] for name, cells in shown.columns.items()}
    going = iter(dropped)
    while (sizes := _sizes(columns, width)) is None:
        columns.pop(next(going), None)
    cells = [[_fitted(name, cell, sizes[name]) for cell in column] for name, column in columns.items()]
    text = ["  ".join(line)[:width].rstrip() for line in zip(*cells, strict=True)]
    return "\n".join([text[0], "-" * max(map(len, text)), *text[1:]])


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
    if name == "bookmark":
        return _cut_bookmark(cell, size)
    return cut_in_two(cell, size).ljust(size) if name in _TEXTS else cell.rjust(size)


def cut_in_two(text: str, size: int) -> str:
    """A text of ``size`` characters at the most: its two ends, which tell names apart."""
    if len(text) <= size:
        return text
    if size < 6:
        return text[:size]
    tail = (size - 2) // 2
    return f"{text[: size - 2 - tail]}..{text[-tail:]}"


def _cut_bookmark(text: str, size: int) -> str:
    """Of ``from -> to`` both keep as much as there is room for; dots say where something is left out."""
    before, arrow, after = text.partition(_ARROW)
    if len(text) <= size or not arrow:
        return _cut_value(text, size)
    room = size - len(_ARROW)
    left = min(len(before), max(room // 2, room - len(after)))
    return f"{_cut_value(before, left)}{_ARROW}{_cut_value(after, room - left)}"[:size]


def _cut_value(text: str, size: int) -> str:
    """Of a date-time the beginning, of other bookmarks the two ends: long numbers and names often begin alike."""
    if len(text) <= size or not _DATE.match(text):
        return cut_in_two(text, size)
    return f"{text[: max(size - 2, 0)]}.."[:size]
