"""What a tail run is doing, for whoever looks at it while it runs: log lines, a live table, Prometheus.

The engine tells it what happens, a page or a round at a time; it costs some microseconds each, and as much memory after
a year as after a minute. A METRIC line says how many rows came since the last one of its kind.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Iterable, Mapping
from operator import sub
from typing import Any

from burler.clock import Clock
from burler.measures import RECORD_COUNT
from burler.report.rows import Remarks, WatchRow
from burler.report.views import RunView, StreamView, error_line, interval_line, lag_of, texts
from burler.tally import metric
from burler.words import counted

logger = logging.getLogger(__name__)

_RATE_SECONDS = 30.0  # rows/s is a mean that forgets what is much older than this
_BUSY = {"poll": "polling", "full": "reading", "push": "connected"}


class TailWatch:
    """Told by the engine, asked by whoever shows it; from any thread.

    Args:
        streams: name and kind ("poll", "push", "full") of each; others that are told of later on are "poll".
        metrics_interval_seconds: how often ``tick`` writes lines.
    """

    def __init__(
        self, clock: Clock, streams: Iterable[tuple[str, str]] = (), *, metrics_interval_seconds: float = 60.0
    ) -> None:
        self._clock = clock
        self._every = metrics_interval_seconds
        self._began = self._ticked = self._summed = clock.monotonic()
        self._rows_summed = 0
        self._due = self._began + metrics_interval_seconds
        self._lock = threading.RLock()
        self._rows: dict[str, WatchRow] = {}
        self._families: dict[str, tuple[str, ...]] = {}
        self._remarks: dict[str, Remarks] = {}
        self._states = self._state_bytes = self._renewed = 0
        self._state: float | None = None
        self._state_at: float | None = None
        self.plan(streams)

    # ---- told by the engine ----------------------------------------------------------------------------

    def plan(self, streams: Iterable[tuple[str, str]], families: Mapping[str, tuple[str, ...]] | None = None) -> None:
        """What is to be read: name and kind of each stream, as above. Those that are known stay as they are.

        Args:
            families: by its root, the streams that come in one round; each begins with the root itself.
        """
        with self._lock:
            for name, kind in streams:
                self._row(name).kind = kind
            self._families.update(families or {})

    def round_began(self, root: str) -> None:
        """A round of a stream, and of those that come with it, begins."""
        with self._lock:
            row = self._row(root)
            row.failing = False
            for name in self._families.get(root, (root,)):
                one = self._row(name)
                one.status, one.next_at = _BUSY.get(one.kind, "polling"), None
                one.fold()

    def rows(self, stream: str, rows: int, bookmark: Any) -> None:
        """A page is out.

        Args:
            rows: of the round, so far.
            bookmark: None says nothing new.
        """
        with self._lock:
            row = self._row(stream)
            self._came(row, rows)
            if bookmark is not None:
                row.bookmark = bookmark
            if row.kind == "push":
                self._polled(row)

    def bookmark(self, stream: str, bookmark: Any) -> None:
        """The bookmark as it stands in the state; None where there is none."""
        if bookmark is not None:
            with self._lock:
                self._row(stream).bookmark = bookmark

    def round_ended(
        self,
        root: str,
        *,
        rows: Mapping[str, int],
        repeated: int,
        seconds: float,
        status: str,
        next_at: float | None,
    ) -> None:
        """A round has ended.

        Args:
            rows: of each stream of the line, in this round.
            repeated: rows that were dropped since they had been out before.
            status: "succeeded", "failed" or "stopped".
            next_at: when the next one is to begin, of the monotonic clock; None: no other is planned.
        """
        with self._lock:
            own = self._row(root)
            self._families[root] = tuple(dict.fromkeys((root, *rows)))
            for name in self._families[root]:
                row = self._row(name)
                self._came(row, rows.get(name, row.now))
                row.polls += 1
                row.poll_seconds = seconds
                row.polls_seconds += seconds
                row.polled_before = row.polled, row.polled_at
                if not own.failing and status != "stopped":
                    self._polled(row)
            own.repeated += repeated
            if not own.failing:
                for name in self._families[root]:
                    self._rows[name].next_at = next_at
                    self._rows[name].status = "waiting" if next_at is not None else "done"

    def failed(self, root: str, error: BaseException, *, failures: int, wait_seconds: float | None) -> None:
        """A round has failed; told before or after its end.

        Args:
            failures: in a row, this one among them.
            wait_seconds: until the next attempt; None: there is none.
        """
        text = error_line(error)
        with self._lock:
            row = self._row(root)
            if not row.failing and row.status in ("waiting", "done"):  # its end was told first, as if it were good
                for name in self._families.get(root, (root,)):
                    self._rows[name].polled, self._rows[name].polled_at = self._rows[name].polled_before
            row.failing = True
            row.failures = failures
            row.errors += 1
            row.error = text
            for name in self._families.get(root, (root,)):
                one = self._row(name)
                one.status = "failed" if wait_seconds is None else "retrying"
                one.next_at = None if wait_seconds is None else self._clock.monotonic() + wait_seconds

    def parts_failed(self, stream: str, error: BaseException, count: int = 1) -> None:
        """Partitions, or calls for a parent, have failed; the stream itself has not."""
        text = error_line(error)
        with self._lock:
            row = self._row(stream)
            row.errors += count
            row.error = text

    def recovered(self, root: str) -> None:
        """A round was good, after some that were not."""
        with self._lock:
            self._row(root).failures = 0

    def state_written(self, size_bytes: int) -> None:
        """A STATE is out."""
        with self._lock:
            self._states += 1
            self._state_bytes += size_bytes
            self._state, self._state_at = self._clock.monotonic(), self._clock.now().timestamp()

    def client_renewed(self) -> None:
        """The tap's client was made anew."""
        with self._lock:
            self._renewed += 1

    def remarks(self, stream: str) -> Remarks:
        """What has been said of a stream's rows; for one thread at a time."""
        return self._remarks.setdefault(stream, Remarks())

    def _row(self, name: str) -> WatchRow:
        row = self._rows.get(name)
        if row is None:
            row = self._rows[name] = WatchRow(name, "poll", rate_at=self._began)
        return row

    def _came(self, row: WatchRow, rows: int) -> None:
        """Rows of this round, so far."""
        more = rows - row.now
        if more <= 0:
            if more == 0:
                return
            row.fold()  # fewer than before: of another round
            more = rows
        row.now = rows
        at = self._clock.monotonic()
        row.rate = _faded(row, at) + more / _RATE_SECONDS
        row.rate_at = at

    def _polled(self, row: WatchRow) -> None:
        row.polled, row.polled_at = self._clock.monotonic(), self._clock.now().timestamp()

    # ---- asked -----------------------------------------------------------------------------------------

    def snapshot(self) -> list[StreamView]:
        """All streams, in the order in which they were told of."""
        at, now = self._clock.monotonic(), self._clock.now()
        with self._lock:
            rows = list(self._rows.values())
            marks = [row.bookmark for row in rows]
            views = [self._view(row, at) for row in rows]
        shown = texts([*(row.name for row in rows), *marks])
        return [
            StreamView(name=shown[i], bookmark=shown[len(rows) + i], lag_seconds=lag_of(marks[i], now), **view)
            for i, view in enumerate(views)
        ]

    def _view(self, row: WatchRow, at: float) -> dict[str, Any]:
        return {
            "kind": row.kind,
            "status": row.status,
            "rows": row.rows,
            "repeated": row.repeated,
            "rows_per_second": self._rate(row, at),
            "last_poll_seconds_ago": None if row.polled is None else max(at - row.polled, 0.0),
            "last_poll_at": row.polled_at,
            "next_poll_in_seconds": None if row.next_at is None else max(row.next_at - at, 0.0),
            "polls": row.polls,
            "poll_seconds": row.poll_seconds,
            "polls_seconds": row.polls_seconds,
            "failures": row.failures,
            "errors": row.errors,
            "error": row.error,
        }

    def _rate(self, row: WatchRow, at: float) -> float:
        """Weighed by age; in the first seconds of a run, over what there was of it."""
        known = 1.0 - math.exp(-max(at - self._began, 1.0) / _RATE_SECONDS)
        rate = _faded(row, at) / known
        return rate if rate >= 0.001 else 0.0

    def totals(self) -> RunView:
        """The run as a whole."""
        at = self._clock.monotonic()
        with self._lock:
            return RunView(
                seconds=at - self._began,
                rows=sum(row.rows for row in self._rows.values()),
                rows_per_second=sum(self._rate(row, at) for row in self._rows.values()),
                states=self._states,
                state_bytes=self._state_bytes,
                last_state_seconds_ago=None if self._state is None else max(at - self._state, 0.0),
                last_state_at=self._state_at,
                clients_renewed=self._renewed,
            )

    # ---- lines in the log ------------------------------------------------------------------------------

    def tick(self) -> None:
        """Write the lines of an interval that has passed. Cheap otherwise; called by one thread at a time."""
        at = self._clock.monotonic()
        if at >= self._due:
            # Not `+=`: after a pause there is one line, for all of it.
            self._due = at + self._every
            self._tell(at)

    def close(self) -> None:
        """The run is over: what came since the last lines. Each stream that came has one METRIC line at least."""
        self._tell(self._clock.monotonic(), last=True)

    def _tell(self, at: float, *, last: bool = False) -> None:
        seconds, self._ticked = at - self._ticked, at
        found: list[tuple[str, int | str]] = []
        with self._lock:
            for view, row in zip(self.snapshot(), self._rows.values(), strict=False):
                rows, repeated, errors, polls = map(sub, row.numbers(), row.told)
                row.told = row.numbers()
                if rows or (last and not row.counted):
                    row.counted = True
                    found.append((row.name, rows))
                if rows or repeated or errors or view.status == "failed":
                    line = interval_line(rows, repeated, errors, polls, seconds=seconds, view=view)
                    found.append((view.name, line))
        for name, told in found:  # without the lock: whoever reads our stderr may be slow
            if isinstance(told, int):
                metric(RECORD_COUNT, told, endpoint=name)
            else:
                logger.info("stream '%s': %s", name, told)
        if not last:
            self._tell_all(at)

    def _tell_all(self, at: float) -> None:
        """One line for the run, also where nothing came: a tail that has nothing to read shows that it lives."""
        rows, seconds = sum(row.rows for row in list(self._rows.values())), at - self._summed
        failing = sum(row.failures > 0 for row in list(self._rows.values()))
        state = "no STATE yet" if self._state is None else f"last STATE {at - self._state:.0f} s ago"
        logger.info(
            "tail: %s in %.0f s, %s, %d of them failing, %s",
            counted(rows - self._rows_summed, "row"),
            seconds,
            counted(len(self._rows), "stream"),
            failing,
            state,
        )
        self._rows_summed, self._summed = rows, at


def _faded(row: WatchRow, at: float) -> float:
    """What is left of a row's rate by now. A machine that was put back to an earlier moment may give an earlier one."""
    return row.rate * math.exp(min(row.rate_at - at, 0.0) / _RATE_SECONDS)
