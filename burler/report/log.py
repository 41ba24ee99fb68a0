"""What a run says in the log: a line when a stream begins and when it ends, METRIC lines, what an operator should know.

The rounds of a tail are many: each has its lines at DEBUG only. Now and then there are lines for what came since, and
what is said of a stream is said once, or once an hour.
"""

from __future__ import annotations

import json
import logging
from bisect import bisect_right
from collections.abc import Iterable
from operator import sub
from typing import Any

import msgspec

from burler import events
from burler.config.secrets import mask, masked
from burler.log_settings import log_settings
from burler.measures import JOB_DURATION, RECORD_COUNT
from burler.records.shape.unknown import FURTHER, kept_schema
from burler.records.shape.values import show
from burler.report.stats import RunStats, StreamStats
from burler.settings import Settings
from burler.tally import metric
from burler.words import counted, length, some

logger = logging.getLogger(__name__)

_AGAIN_SECONDS = 3600.0  # what was said of a stream's rows in a tail is said again only after so long
_SHOWN = 20  # fields of rows that were dropped, or did not fit
_EXAMPLE, _PATH = 40, 100  # characters of a field
_LONGEST = 2000  # bytes of schema in a log line
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
            case events.FamilyBegan():
                self._began(event)
            case events.FamilyEnded():
                self._ended(event)
            case events.Incomplete():
                if self._first_time(event.stream, "incomplete"):
                    held = " ".join(event.held)
                    logger.warning("stream '%s': may be incomplete (%s). %s", event.stream, event.why, held)
            case events.RunEnded():
                metric(JOB_DURATION, event.seconds, job_type="sync", status=event.status)
                logger.info("%s: %s, %.1f s", event.tap, event.status, event.seconds)

    def _began(self, event: events.FamilyBegan) -> None:
        where = _bookmark(event.partitions, None if event.partitions else event.bookmark)
        logger.log(self._level, "stream '%s': start (sync, %s, bookmark %s)", event.root, event.method, where)
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
        status: str = event.status
        if status == "failed" and event.failed and event.root not in event.failed:
            status = f"succeeded, but rows of {', '.join(event.failed)} are missing"
        logger.log(
            self._level,
            "stream '%s': %s, %s, %.1f s, bookmark %s",
            event.root,
            status,
            ", ".join(map(_rows_of, event.streams)),
            event.seconds,
            _bookmark(event.partitions, event.bookmark, _WAYS.get(event.instead)),
        )
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
        metric(JOB_DURATION, event.seconds, job_type="stream", stream=event.root, status=event.status)

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
        self._summed = self._clock.monotonic()
        self._told: dict[str, tuple[int, int, int, int]] = {}
        # How much was said of a stream's rows, when to say more, and what there is to say.
        self._remarked: dict[str, tuple[int, float, events.StreamEnded]] = {}

    def hear(self, event: events.Event) -> None:
        """See ``burler.events``."""
        match event:
            case events.Tick():
                if self._clock.monotonic() - self._summed >= self._settings.metrics_interval_seconds:
                    self._sum_up()
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
                some(once, 10),
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
        for count, _due, ended in self._remarked.values():
            if ended.remarked != count:
                super()._stream_ended(ended)
        self._sum_up(last=True)

    def _measure(self, event: events.FamilyEnded) -> None:
        """Not each round: see ``_sum_up``."""

    def _stream_ended(self, ended: events.StreamEnded) -> None:
        """What is new to say of its rows is said at once, then once an hour."""
        at = self._clock.monotonic()
        count, due, _ = self._remarked.get(ended.stream, (0, at, None))
        if ended.remarked != count and at >= due:
            count, due = ended.remarked, at + _AGAIN_SECONDS
            super()._stream_ended(ended)
        self._remarked[ended.stream] = count, due, ended

    def _sum_up(self, *, last: bool = False) -> None:
        """What came of each stream since the last lines, each with one METRIC line at least; and a line for the run,
        also where nothing came: a tail that has nothing to read shows that it lives."""
        at = self._clock.monotonic()
        seconds, self._summed = at - self._summed, at
        known, all_rows = self._stats.known, 0
        for row in known:
            numbers = row.rows, row.repeated, row.errors, row.rounds
            rows, repeated, errors, polls = map(sub, numbers, self._told.get(row.name, (0, 0, 0, 0)))
            self._told[row.name] = numbers
            all_rows += rows
            if rows or (last and not row.rows):
                metric(RECORD_COUNT, rows, endpoint=row.name)
            if rows or repeated or errors or row.doing == "failed":
                line = _interval_line(rows, repeated, errors, polls, seconds=seconds, stream=row)
                logger.info("stream '%s': %s", row.shown_name, line)
        if not last:
            logger.info(
                "tail: %s in %.0f s, %s, %d of them failing, %s",
                counted(all_rows, "row"),
                seconds,
                counted(len(known), "stream"),
                sum(row.failures > 0 for row in known),
                self._stats.last_state,
            )


def _interval_line(rows: int, repeated: int, errors: int, polls: int, *, seconds: float, stream: StreamStats) -> str:
    """What came of a stream since the last line: ``12 rows in 60 s, 5 rows repeated, 6 polls, ...``."""
    parts = [f"{counted(rows, 'row')} in {length(seconds)}"]
    if repeated:
        parts.append(f"{counted(repeated, 'row')} repeated")
    parts.append(counted(polls, "poll"))
    if stream.bookmark is not None:
        lag = "" if stream.lag_seconds is None else f" ({length(stream.lag_seconds)} behind)"
        parts.append(f"bookmark {stream.shown_bookmark}{lag}")
    if errors:
        row = f", {stream.failures} in a row" if stream.failures else ""
        parts.append(f"{counted(errors, 'error')}{row}, the last: {stream.error}")
    return ", ".join(parts)


def _rows_of(one: events.StreamEnded) -> str:
    left = f" ({one.left_out} left out by its post_transform)" if one.left_out else ""
    repeated = f" ({one.counts['repeated']} more were out already)" if one.counts.get("repeated") else ""
    rows, uncounted = counted(one.rows, "row"), one.counts.get("uncounted_files")
    if isinstance(uncounted, int) and uncounted:
        files = f"{counted(uncounted, 'file')} that nobody has counted"
        rows = f"{rows} and those of {files}" if one.rows else f"the rows of {files}"
    return f"{rows} of '{one.stream}'{left}{repeated}"


def _bookmark(partitions: int, bookmark: Any, instead: str | None = None) -> Any:
    """A bookmark, those of partitions, or what is there in its place."""
    if partitions:
        others = f", {bookmark} for the others" if bookmark is not None else ""
        return f"of each of {counted(partitions, 'partition')}{others}"
    return (instead or "none") if bookmark is None else bookmark


# ---- rows that are not as declared ---------------------------------------------------------------------


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
        _say_dropped(stream, remarks)


def _say_dropped(stream: str, remarks: events.Remarks) -> None:
    """Two warnings: the fields, the most frequent first, with count (and example, where values are shown); and the
    schema, on one line, as JSON.

    A schema of over 2 kB is cut to its most frequent fields, and stands whole in a DEBUG line.
    """
    fields = remarks.dropped
    shown = [_line(field, remarks.rows) for field in fields[:_SHOWN]]
    if len(fields) > len(shown):
        shown.append(f"and {len(fields) - len(shown)} more")
    if remarks.further:
        shown.append(f"{FURTHER} ({remarks.further} times)")
    logger.warning("stream '%s': fields that its schema does not know were dropped: %s", stream, ", ".join(shown))

    def schema(count: int) -> str:
        text = msgspec.json.encode(kept_schema(fields[:count])).decode()
        return text if text.isprintable() else json.dumps(kept_schema(fields[:count]), separators=(",", ":"))

    kept, why, count = "them", "from samples", len(fields)
    if len(schema(count)) > _LONGEST:
        merged = "stream '%s': merged into its schema, this keeps all of them (from samples): %s"
        logger.debug(merged, stream, schema(count))
        count = max(1, bisect_right(range(1, len(fields)), _LONGEST, key=lambda count: len(schema(count))))
        kept, why = f"{count} of the {len(fields)} fields", f"{why}; BURLER_LOG_LEVEL=DEBUG shows all"
    logger.warning("stream '%s': merged into its schema, this keeps %s (%s): %s", stream, kept, why, schema(count))


def _line(field: events.DroppedField, rows: int) -> str:
    """``address.floor (12 of 40 rows, e.g. 3)``; below an array ``(12 times, ...)``."""
    if None in field.path:
        count = counted(field.count, "time")
    else:
        count = f"{field.count:,} of {counted(rows, 'row')}" if field.count <= rows else counted(field.count, "row")
    example = ""
    if log_settings.values and field.examples:
        telling = [example for example in field.examples if example not in (None, "", [], {})]
        names = [part for part in field.path if part is not None]
        value = mask((telling or field.examples)[0], names[-1] if names else "")
        example = f", e.g. {_cut(masked(json.dumps(value, ensure_ascii=False, default=str)), _EXAMPLE)}"
    return f"{_cut(show(field.path), _PATH)} ({count}{example})"


def _cut(text: str, most: int) -> str:
    """Text from a source, safe in a log line: nothing that ends the line or moves the cursor, and not too long."""
    plain = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text[: most + 1])
    return plain if len(plain) <= most else plain[: most - 3] + "..."
