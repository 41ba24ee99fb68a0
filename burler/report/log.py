"""What a run says in the log: a line when a stream begins and when it ends, METRIC lines, what an operator should know.

The rounds of a tail are many: each has its lines at DEBUG only. Now and then there are lines for what came since, and
what is said of a stream is said once, or once an hour.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from operator import sub
from typing import Any

from burler import events
from burler.measures import JOB_DURATION, RECORD_COUNT
from burler.report import unknown
from burler.report.stats import RunStats, StreamView
from burler.settings import Settings
from burler.tally import metric
from burler.words import counted, length

logger = logging.getLogger(__name__)

_AGAIN_SECONDS = 3600.0  # what was said of a stream's rows in a tail is said again only after so long
_SHOWN = 20  # fields of rows that did not fit
_WAYS = {"table": "of an interrupted full table", "position": "in stream.state"}


class RunLog:
    """The log of a run that has an end."""

    _level = logging.INFO

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._said: set[tuple[str, str]] = set()

    def hear(self, event: events.Event) -> None:
        """See ``burler.events``."""
        match event:
            case events.Page():  # of these there are many
                pass
            case events.FamilyBegan():
                if logger.isEnabledFor(self._level):
                    self._began(event)
            case events.FamilyEnded():
                self._ended(event)
            case events.Incomplete():
                if self._first_time(event.stream, "incomplete"):
                    held = " ".join(event.held)
                    logger.warning("stream '%s': may be incomplete (%s). %s", event.stream, event.why, held)
            case events.RunEnded():
                metric(JOB_DURATION, round(event.seconds, 6), job_type="sync", status=event.status)
                logger.info("%s: %s, %.1f s", event.tap, event.status, event.seconds)

    def _began(self, event: events.FamilyBegan) -> None:
        bookmark = f"of each of {counted(event.partitions, 'partition')}" if event.partitions else event.bookmark
        logger.log(
            self._level, "stream '%s': start (sync, %s, bookmark %s)", event.root, event.method, _or_none(bookmark)
        )
        if event.late:
            logger.log(
                self._level,
                "stream '%s': begins before its bookmark %s, since %s has not had what lies before it",
                event.root,
                event.passed,
                ", ".join(f"'{name}'" for name in event.late),
            )

    def _ended(self, event: events.FamilyEnded) -> None:
        """One log line for the whole line of streams, and what is to be said of each of them."""
        for one in event.streams:
            self._stream_ended(one)
        self._measure(event)
        if logger.isEnabledFor(self._level):
            self._log_end(event)
        if event.saves_nothing and self._first_time(event.root, "manual"):
            logger.warning(
                "stream '%s': bookmark_strategy is 'manual', and its function never called stream.save_bookmark(): its "
                "bookmark has not moved, and the next run reads the same again",
                event.root,
            )
        most = self._settings.partition_bookmarks_warning
        if event.partitions > most and self._first_time(event.root, "partitions"):
            logger.warning(
                "stream '%s': the state holds the bookmarks of %d partitions (partition_bookmarks_warning is %d). "
                "Shorter keys make it smaller (@tap.partitions(key=...)); partitions that rise "
                "(order='asc') need none.",
                event.root,
                event.partitions,
                most,
            )

    def _stream_ended(self, ended: events.StreamEnded) -> None:
        if ended.remarked:
            _say_remarks(ended.stream, ended.remarks())

    def _measure(self, event: events.FamilyEnded) -> None:
        for one in event.streams:
            if not one.counts.get("uncounted_files"):
                metric(RECORD_COUNT, one.rows, endpoint=one.stream)
        metric(JOB_DURATION, round(event.seconds, 6), job_type="stream", stream=event.root, status=event.status)

    def _log_end(self, event: events.FamilyEnded) -> None:
        bookmark = event.bookmark
        if event.partitions:
            others = f", {bookmark} for the others" if bookmark is not None else ""
            bookmark = f"of each of {counted(event.partitions, 'partition')}{others}"
        elif bookmark is None:
            bookmark = _WAYS.get(event.instead)
        status: str = event.status
        if status == "failed" and event.failed and event.root not in event.failed:
            status = f"succeeded, but rows of {', '.join(event.failed)} are missing"
        rows = ", ".join(map(_rows_of, event.streams))
        logger.log(
            self._level,
            "stream '%s': %s, %s, %.1f s, bookmark %s",
            event.root,
            status,
            rows,
            event.seconds,
            _or_none(bookmark),
        )

    def _first_time(self, stream: str, what: str) -> bool:
        first = (stream, what) not in self._said
        self._said.add((stream, what))
        return first


class TailLog(RunLog):
    """The log of a tail.

    Args:
        stats: what has been counted; it hears of an event first.
    """

    _level = logging.DEBUG

    def __init__(self, settings: Settings, stats: RunStats) -> None:
        super().__init__(settings)
        self._stats, self._clock = stats, stats.clock
        self._every = settings.metrics_interval_seconds
        self._ticked = self._summed = self._clock.monotonic()
        self._due = self._ticked + self._every
        self._rows_summed = 0
        self._told: dict[str, tuple[int, int, int, int]] = {}
        self._ended_last: dict[str, events.StreamEnded] = {}
        self._remarked: dict[str, tuple[int, float]] = {}  # how much was said, and when to say more

    def hear(self, event: events.Event) -> None:
        """See ``burler.events``."""
        match event:
            case events.Tick():
                at = self._clock.monotonic()
                if at >= self._due:
                    # Not `+=`: after a pause there is one line, for all of it.
                    self._due = at + self._every
                    self._tell(at)
                    self._tell_all(at)
            case events.TailPlanned():
                if self._first_time("", "plan"):
                    self._announce(event.families)
            case events.TailEnded():
                self._last_words(event)
            case _:
                super().hear(event)

    def _announce(self, families: Iterable[events.TailFamily]) -> None:
        """What will be read, and how often; what a user may not expect of it."""
        settings, kinds = self._settings, [one.kind for one in families]
        pushes = kinds.count("push")
        logger.info(
            "tail: streams polled: %d (by default %g s apart), pushed: %d; STATE at the latest %g s after a record",
            len(kinds) - pushes,
            settings.new_record_polling_interval_ms / 1000,
            pushes,
            settings.state_message_min_interval_ms / 1000,
        )
        for one in families:
            if one.moves_last:
                logger.warning(
                    "stream '%s': its tail function gives rows in no declared order (order='asc'): its bookmark moves "
                    "only when the function returns",
                    one.root,
                )
        once = [one.root for one in families if one.once]
        if once and settings.tail_max_rounds is None:
            logger.warning(
                "full tables are read once in a tail run: %s. With max_full_table_age_seconds they are read again",
                ", ".join(once[:10]) + (", ..." if len(once) > 10 else ""),
            )

    def _last_words(self, event: events.TailEnded) -> None:
        """What did not come to its end, what is unsaid of rows, and what came since the last lines."""
        for name in event.blocked:
            logger.warning("stream '%s': its function is blocked, and is left behind; its finally does not run", name)
        for name, failures in event.failing.items():
            logger.warning(
                "stream '%s': had failed %d times when the run was stopped; the next run goes on where the STATE says",
                name,
                failures,
            )
        for stream, ended in self._ended_last.items():
            if ended.remarked != self._remarked[stream][0]:
                _say_remarks(stream, ended.remarks())
        self._tell(self._clock.monotonic(), last=True)

    def _measure(self, event: events.FamilyEnded) -> None:
        """Not each round: see ``_tell``."""

    def _stream_ended(self, ended: events.StreamEnded) -> None:
        """What is new to say of its rows is said at once, then once an hour."""
        at = self._clock.monotonic()
        self._ended_last[ended.stream] = ended
        count, due = self._remarked.setdefault(ended.stream, (0, at))
        if ended.remarked != count and at >= due:
            self._remarked[ended.stream] = ended.remarked, at + _AGAIN_SECONDS
            super()._stream_ended(ended)

    def _tell(self, at: float, *, last: bool = False) -> None:
        """What came of each stream since the last lines. Each that came has one METRIC line at least."""
        seconds, self._ticked = at - self._ticked, at
        for stream, view in self._stats.snapshot().items():
            numbers = view.rows, view.repeated, view.errors, view.polls
            rows, repeated, errors, polls = map(sub, numbers, self._told.get(stream, (0, 0, 0, 0)))
            self._told[stream] = numbers
            if rows or (last and not view.rows):
                metric(RECORD_COUNT, rows, endpoint=stream)
            if rows or repeated or errors or view.status == "failed":
                line = _interval_line(rows, repeated, errors, polls, seconds=seconds, view=view)
                logger.info("stream '%s': %s", view.name, line)

    def _tell_all(self, at: float) -> None:
        """One line for the run, also where nothing came: a tail that has nothing to read shows that it lives."""
        rows, views, state = self._stats.rows, self._stats.snapshot().values(), self._stats.last_state_seconds_ago
        logger.info(
            "tail: %s in %.0f s, %s, %d of them failing, %s",
            counted(rows - self._rows_summed, "row"),
            at - self._summed,
            counted(len(views), "stream"),
            sum(view.failures > 0 for view in views),
            "no STATE yet" if state is None else f"last STATE {state:.0f} s ago",
        )
        self._rows_summed, self._summed = rows, at


def _interval_line(rows: int, repeated: int, errors: int, polls: int, *, seconds: float, view: StreamView) -> str:
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


def _say_remarks(stream: str, remarks: events.Remarks) -> None:
    """Warnings on rows that no bookmark can follow, rows that did not fit, and fields that no schema knows."""
    if remarks.without_key:
        logger.warning(
            "stream '%s': %d of %s have no '%s'; they come, but the bookmark can't follow them",
            stream,
            remarks.without_key,
            counted(remarks.rows, "row"),
            remarks.key,
        )
    if count := remarks.skipped or remarks.nulled:
        rows, were = counted(count, "row"), "was" if count == 1 else "were"
        logger.warning(
            "stream '%s': %s where the schema had no room: %s",
            stream,
            f"{rows} {were} left out" if remarks.skipped else f"fields of {rows} were set to null",
            ", ".join(f"{path} ({count})" for path, count in sorted(remarks.unfit.items())[:_SHOWN]),
        )
    if remarks.dropped:
        unknown.warn(stream, remarks)


def _rows_of(one: events.StreamEnded) -> str:
    left = f" ({one.left_out} left out by its post_transform)" if one.left_out else ""
    repeated = f" ({one.counts['repeated']} more were out already)" if one.counts.get("repeated") else ""
    rows, uncounted = counted(one.rows, "row"), one.counts.get("uncounted_files")
    if isinstance(uncounted, int) and uncounted:
        files = f"{counted(uncounted, 'file')} that nobody has counted"
        rows = f"{rows} and those of {files}" if one.rows else f"the rows of {files}"
    return f"{rows} of '{one.stream}'{left}{repeated}"


def _or_none(bookmark: Any) -> Any:
    return "none" if bookmark is None else bookmark
