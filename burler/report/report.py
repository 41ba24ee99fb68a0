"""The report of a run as JSON (docs/reports.md): what each stream gave and how it ended. A table and a page show it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from burler import times
from burler.report.stats import TEXT, RunStats, StreamStats, point_of, value_of, values_of

FORMAT_VERSION = 1
"""Of the shape of ``document``: it grows when a reader of the old shape would go wrong."""


def document(stats: RunStats, *, series: bool = True) -> dict[str, Any]:
    """The report as plain JSON values, without secrets; docs/reports.md has its shape.

    Args:
        series: with the points of the plots.
    """
    from burler import __version__

    rows, seconds = stats.streams, stats.seconds
    errors: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for name, error in stats.failed:
        errors[name].append(error)
    totals = {
        "streams": len(rows),
        "streams_failed": sum(row.status == "failed" for row in rows),
        "rows": sum(row.rows for row in rows),
        "updated": sum(row.updated or 0 for row in rows),
        "skipped": sum(row.skipped for row in rows),
        "errors": sum(row.errors for row in rows) + (stats.error is not None),
    }
    found = {
        "format_version": FORMAT_VERSION,
        "tap": value_of(stats.tap),
        "burler_version": __version__,
        "started": times.format_time(stats.began),
        "ended": times.format_time(stats.ended) if stats.ended is not None else None,
        "seconds": round(seconds, 6),
        "status": stats.status,
        "exit_code": stats.exit_code,
        "limit": stats.limit,
        "schemas_only": stats.schemas_only,
        "error": stats.error,
        "totals": {**totals, "rows_per_second": _rate(totals["rows"], seconds)},
        "streams": [_stream(row, errors[row.name]) for row in rows],
    }
    if stats.batch is not None:
        found["batch"] = {**stats.batch, "root": value_of(stats.batch["root"])}
    if series:
        found["series"] = [_series(row, stats.zero) for row in rows if row.points]
    return found


def _stream(row: StreamStats, errors: list[dict[str, Any]]) -> dict[str, Any]:
    seconds = row.at - row.first_at if row.seconds is None else row.seconds
    return {
        "stream": value_of(row.name),
        "replication_method": value_of(row.method),
        "status": row.status,
        "rows": row.rows,
        "updated": row.updated,
        "skipped": row.skipped,
        "seconds": round(seconds, 6),
        "rounds": row.rounds,
        "rows_per_second": _rate(row.rows, seconds),
        "bookmark_from": value_of(row.bookmark_from, TEXT),
        "bookmark_to": value_of(row.bookmark, TEXT),
        "counts": row.tally.to_json(),
        "error_count": row.errors,
        "errors": errors,
    }


def _series(row: StreamStats, zero: float) -> dict[str, Any]:
    points, last = row.points, point_of(row, row.at - zero)
    if points[-1][1:] != last[1:]:  # the newest page is no point yet
        points = [*points, last]
    seconds, rows, bookmarks = zip(*points, strict=True)
    return {
        "stream": value_of(row.name),
        "seconds": [round(at, 3) for at in seconds],
        "rows": [*rows],
        "bookmark": values_of(bookmarks),
    }


def _rate(rows: int, seconds: float) -> float | None:
    return round(rows / seconds, 3) if seconds > 0 else None
