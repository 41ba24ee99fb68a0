"""The report of a run: what each stream gave and how it ended, as a table, as JSON and as a page (docs/reports.md).

The engine tells it what happens. Nothing here is exact where the engine is not: ``page`` gets totals, and the last
word on a stream is ``stream_ended``.
"""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from burler import times
from burler.config.watched import clean
from burler.errors import PartialError
from burler.report.rows import StreamRow
from burler.report.series import POINTS, Points, Series, kept
from burler.report.values import TEXT, added, cut, described, value_of, values_of

FORMAT_VERSION = 1
"""Of the shape of ``Report.to_json``: it grows when a reader of the old shape would go wrong."""

FAILURES = 1000
"""Failures of a run that are kept; the rest is counted."""


def _utc_now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


class Report:
    """Gathers what a run does.

    Args:
        now: the time of day, with a zone.
        monotonic: seconds of a clock that never goes back.
        points: points kept a stream for the plots; 0 for none, where only the summary is wanted.
    """

    def __init__(
        self,
        now: Callable[[], dt.datetime] = _utc_now,
        monotonic: Callable[[], float] = time.monotonic,
        *,
        points: int = POINTS,
    ) -> None:
        self.limit: int | None = None
        self.schemas_only = False
        self.batch: dict[str, Any] | None = None
        """The batch files of the run (``burler.sinks.base.files_made``)."""
        self._now, self._monotonic = now, monotonic
        self._tap: str | None = None
        self._began, self._zero = now(), monotonic()
        self._ended: dt.datetime | None = None
        self._seconds = 0.0
        self._status = "unfinished"
        self._exit_code: int | None = None
        self._error: dict[str, Any] | None = None
        self._points = Points(points) if points else None
        self._streams: dict[str, StreamRow] = {}
        self._kept = 0
        self._lock = threading.Lock()

    def begin(self, tap_name: str) -> None:
        """The run of a tap begins. Told again, it stays at the time it was told first."""
        if self._tap is None:
            self._began, self._zero = self._now(), self._monotonic()
        self._tap = tap_name

    def stream_began(self, stream: str, *, method: str | None, bookmark: Any) -> None:
        """A stream begins, at a bookmark or None. A stream that begins anew goes on where it was; after its end, that
        is another round, of which everything is added up."""
        row = self._streams.get(stream) or self._new(stream)
        if row.over:
            row.again()
        if not row.begun:
            row.begun = True
            row.method, row.bookmark_from, row.bookmark_to = method, bookmark, bookmark
            if self._points is not None:
                row.series = self._points.series()
                self._point(row, row.at)

    def _new(self, stream: str) -> StreamRow:
        at = self._monotonic()
        return self._streams.setdefault(stream, StreamRow(stream, first_at=at, at=at))

    def page(self, stream: str, rows: int, bookmark: Any) -> None:
        """A page is out; ``rows`` of the stream's round by now, and its bookmark (None says nothing new). Called once a
        page, it must be cheap."""
        row = self._streams.get(stream)
        if row is None:
            row = self._new(stream)
        row.rows = row.before.rows + rows
        if bookmark is not None:
            row.bookmark_to = bookmark
        row.at = at = self._monotonic()
        if at >= row.next_at:
            self._point(row, at)

    def under_way(self) -> list[StreamRow]:
        """The streams that have begun and not come to their end; from any thread."""
        return [row for row in tuple(self._streams.values()) if row.begun and not row.over]

    def _point(self, row: StreamRow, at: float) -> None:
        if self._points is not None and row.series is not None:
            self._points.add(row.series, at - self._zero, row.rows, row.bookmark_to)
            row.next_at = at + row.series.step

    def failed(self, stream: str, where: str | None, error: BaseException) -> None:
        """Something failed: a part of a stream, named by ``where``, or the stream itself. From any thread.

        A ``PartialError`` stands for its failures; where those were told one by one it says nothing new, no more than
        an error that has just been told.
        """
        with self._lock:
            row = self._streams.get(stream) or self._new(stream)
            if not isinstance(error, PartialError):
                if where is not None or row.told is not error:
                    self._failure(row, where, error)
                row.told = error
                return
            told = {failure.stream for failure in error.failures if self._located(failure.stream)}
            for failure in error.failures:
                if failure.stream not in told:
                    other = self._streams.get(failure.stream) or self._new(failure.stream)
                    self._failure(other, failure.where, failure.error)

    def _located(self, stream: str) -> int:
        return self._streams[stream].located if stream in self._streams else 0

    def _failure(self, row: StreamRow, where: str | None, error: BaseException) -> None:
        row.errors += 1
        row.located += where is not None
        if self._kept >= FAILURES:
            if row.rounds == 0:
                return
            # Of a run without an end the newest say more: one of the many goes.
            max(self._streams.values(), key=lambda one: len(one.failures)).failures.pop(0)
            self._kept -= 1
        self._kept += 1
        shown = None if where is None else cut(clean(where))
        row.failures.append({"where": shown, **described(error, row.name)})

    def has_failed(self, stream: str) -> bool:
        """Whether a failure of a stream was told."""
        return stream in self._streams and self._streams[stream].errors > 0

    def stream_ended(
        self,
        stream: str,
        *,
        status: str,
        rows: int,
        updated: int | None,
        skipped: int,
        seconds: float,
        bookmark_from: Any,
        bookmark_to: Any,
        counts: Mapping[str, int | Mapping[str, int]] | None = None,
    ) -> None:
        """The last word on a stream, or on a round of it.

        Args:
            status: "succeeded", "failed" or "stopped".
            updated: rows whose bookmark value is beyond the bookmark the stream began with; None without a bookmark.
            skipped: rows left out.
            seconds: how long the stream took, or the round.
            counts: what was counted while its source was read: requests, retries by their reason, files.
        """
        row = self._streams.get(stream) or self._new(stream)
        before, at = row.before, self._monotonic()
        row.rounds += not row.over
        row.status, row.over, row.at = status, True, at
        row.rows, row.skipped, row.seconds = before.rows + rows, before.skipped + skipped, before.seconds + seconds
        row.updated = before.updated if updated is None else updated + (before.updated or 0)
        row.counts = added(before.counts, counts or {})
        if row.rounds == 1:
            row.bookmark_from = bookmark_from
        row.bookmark_to = bookmark_to
        if row.rounds == 1 or at >= row.next_at:
            self._point(row, at)

    def end(self, status: str, exit_code: int | None, error: BaseException | None = None) -> None:
        """The run ends; told again, the last word counts. ``error`` is what ended the whole run, if it was none of a
        stream's."""
        self._ended, self._seconds = self._now(), self._monotonic() - self._zero
        self._status, self._exit_code = status, exit_code
        if error is not None:
            self._error = described(error)

    @property
    def empty(self) -> bool:
        """Whether no stream has begun."""
        return not self._streams

    def summary(self, width: int = 120) -> str:
        """A table of the streams in plain ASCII, no line longer than ``width``; without a stream: nothing."""
        from burler.report.text import counted, plain, table

        report = self.to_json(series=False)
        return "\n".join([plain(table(report), width), *counted(report, width)])

    def to_html(self) -> str:
        """One page that needs nothing else."""
        from burler.report.page import page

        return page(self.to_json())

    def to_json(self, *, series: bool = True) -> dict[str, Any]:
        """The report as plain JSON values, without secrets; docs/reports.md has its shape.

        Args:
            series: with the points of the plots.
        """
        from burler import __version__

        ended = self._ended is not None
        seconds = self._seconds if ended else self._monotonic() - self._zero
        rows = list(self._streams.values())
        totals = {
            "streams": len(rows),
            "streams_failed": sum(row.failed for row in rows),
            "rows": sum(row.rows for row in rows),
            "updated": sum(row.updated or 0 for row in rows),
            "skipped": sum(row.skipped for row in rows),
            "errors": sum(row.errors for row in rows) + (self._error is not None),
        }
        document = {
            "format_version": FORMAT_VERSION,
            "tap": None if self._tap is None else value_of(self._tap),
            "burler_version": __version__,
            "started": times.format_time(self._began),
            "ended": times.format_time(self._ended) if self._ended is not None else None,
            "seconds": round(seconds, 6),
            "status": self._status,
            "exit_code": self._exit_code,
            "limit": self.limit,
            "schemas_only": self.schemas_only,
            "error": self._error,
            "totals": {**totals, "rows_per_second": _rate(totals["rows"], seconds)},
            "streams": [self._stream(row) for row in rows],
        }
        if self.batch is not None:
            document["batch"] = {**self.batch, "root": value_of(self.batch["root"])}
        if series:
            document["series"] = [self._series(row) for row in rows if row.series is not None]
        return document

    def _stream(self, row: StreamRow) -> dict[str, Any]:
        seconds = row.at - row.first_at if row.seconds is None else row.seconds
        return {
            "stream": value_of(row.name),
            "replication_method": value_of(row.method),
            "status": value_of(row.status),
            "rows": row.rows,
            "updated": row.updated,
            "skipped": row.skipped,
            "seconds": round(seconds, 6),
            "rounds": row.rounds,
            "rows_per_second": _rate(row.rows, seconds),
            "bookmark_from": value_of(row.bookmark_from, TEXT),
            "bookmark_to": value_of(row.bookmark_to, TEXT),
            "counts": row.counts,
            "error_count": row.errors,
            "errors": row.failures,
        }

    def _series(self, row: StreamRow) -> dict[str, Any]:
        series = row.series or Series()
        seconds, rows, bookmarks = list(series.seconds), list(series.rows), list(series.bookmarks)
        if seconds and (
            rows[-1] != row.rows or bookmarks[-1] != kept(row.bookmark_to)
        ):  # the newest page is no point yet
            seconds.append(row.at - self._zero)
            rows.append(row.rows)
            bookmarks.append(kept(row.bookmark_to))
        return {
            "stream": value_of(row.name),
            "seconds": [round(at, 3) for at in seconds],
            "rows": rows,
            "bookmark": values_of(bookmarks),
        }


def _rate(rows: int, seconds: float) -> float | None:
    return round(rows / seconds, 3) if seconds > 0 else None
