"""What is said of a stream when it begins and when it ends: log lines, metrics, the report.

The rounds of a tail are many: each has its lines at DEBUG only, and its METRIC lines are those of ``TailWatch``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from burler.declare.strategies import Manual
from burler.engine.writer.outlet import Outlet
from burler.errors import PartialError
from burler.measures import JOB_DURATION, RECORD_COUNT
from burler.singer import state as st
from burler.singer.metadata import FULL_TABLE
from burler.tally import metric
from burler.words import counted

if TYPE_CHECKING:
    from burler.engine.run.stream import SyncRun
    from burler.engine.run.sync import Engine
    from burler.report.watch import TailWatch

logger = logging.getLogger(__name__)

_AGAIN_SECONDS = 3600.0  # what was said of a stream in a tail is said again only after so long


def begin(sync: SyncRun) -> None:
    """The start of a stream and of what is synced with it, or of a round of it."""
    engine, own = sync.engine, sync.outlets.get(sync.name)
    level = logging.INFO if engine.watch is None else logging.DEBUG
    if logger.isEnabledFor(level):
        method = own.planned.replication_method if own is not None else sync.spec.replication_method
        logger.log(level, "stream '%s': start (sync, %s, bookmark %s)", sync.name, method, _or_none(_where(sync)))
    coverage = sync.saved.coverage
    if coverage is not None and (late := coverage.reads_again()):
        logger.log(
            level,
            "stream '%s': begins before its bookmark %s, since %s has not had what lies before it",
            sync.name,
            coverage.saved,
            ", ".join(f"'{name}'" for name in late),
        )
    for name, outlet in sync.outlets.items():
        planned = outlet.planned
        outlet.bookmark_from = st.value_of(engine.state, name, planned.bookmark_key)
        engine.report.stream_began(name, method=planned.replication_method, bookmark=outlet.bookmark_from)


def _where(sync: SyncRun) -> Any:
    if sync.saved.coverage is not None:
        return sync.saved.coverage.start
    kept = len(st.partitions_of(sync.engine.state, sync.name))
    return f"of each of {counted(kept, 'partition')}" if kept else sync.own_run.raw_bookmark


def end(sync: SyncRun, status: str, seconds: float) -> None:
    """The end: one log line for the whole line of streams, a counter for each."""
    watch = sync.engine.watch
    failed = sync.failures.errors()
    for name, outlet in sync.outlets.items():
        _end_of(sync, outlet, _status_of(sync, name, failed, status), seconds)
    if watch is None:
        metric(JOB_DURATION, round(seconds, 6), job_type="stream", stream=sync.name, status=status)
    else:
        for name, error in failed.items():
            if isinstance(error, PartialError):
                watch.parts_failed(name, error.failures[-1].error, len(error.failures))
    level = logging.INFO if watch is None else logging.DEBUG
    if logger.isEnabledFor(level):
        _log_end(sync, level, status, failed, seconds)
    _warn(sync, status)


def last(engine: Engine, outlets: Iterable[Outlet]) -> None:
    """The end of a tail: what its rounds have left unsaid of their rows."""
    for outlet in outlets:
        if engine.watch is not None:
            _report_rows(engine.watch, outlet, at=None)


def _status_of(sync: SyncRun, name: str, failed: dict[str, BaseException], status: str) -> str:
    if name in failed:
        return "failed"
    # A stream that came whole has not failed with one below it.
    return "succeeded" if status == "failed" and sync.failures.error is None else status


def _end_of(sync: SyncRun, outlet: Outlet, status: str, seconds: float) -> None:
    """One stream of the line."""
    engine, name, key = sync.engine, outlet.planned.tap_stream_id, outlet.planned.bookmark_key
    bookmark = st.value_of(engine.state, name, key)
    skipped = outlet.skipped
    if engine.watch is None:
        outlet.report(engine.session.watcher)
        if not _uncounted(sync, name):
            metric(RECORD_COUNT, outlet.rows, endpoint=name)
    else:
        engine.watch.bookmark(name, bookmark)
        _report_rows(engine.watch, outlet, at=engine.clock.monotonic())
        skipped = outlet.left_out + engine.watch.remarks(name).misfits(outlet.skipped - outlet.left_out)
    counts = sync.tallies[name].to_json() if name in sync.tallies else {}
    if outlet.repeated:
        counts["repeated"] = outlet.repeated
    engine.report.stream_ended(
        name,
        status=status,
        rows=outlet.rows,
        updated=_updated(outlet, counts) if key is not None else None,
        skipped=skipped,
        seconds=seconds,
        bookmark_from=outlet.bookmark_from,
        bookmark_to=bookmark,
        counts=counts,
    )


def _updated(outlet: Outlet, counts: Mapping[str, Any]) -> int | None:
    """Rows beyond the bookmark that the stream began with; None where files went out whose rows nobody has seen. Rows
    that were out before are looked at, too."""
    return None if "passed_files" in counts else min(outlet.newer, outlet.rows)


def _report_rows(watch: TailWatch, outlet: Outlet, at: float | None) -> None:
    """Warnings on rows of a tail, where there is something new to warn of: at once, then once an hour, and when all is
    over (``at`` is None)."""
    remarks = outlet.remarks
    said = watch.remarks(outlet.planned.tap_stream_id)
    if remarks and remarks != said.count and (at is None or at >= said.next_at):
        said.count = remarks
        said.next_at = (at or 0.0) + _AGAIN_SECONDS
        outlet.report()


def _log_end(sync: SyncRun, level: int, status: str, failed: dict[str, BaseException], seconds: float) -> None:
    state = sync.engine.state
    rows = ", ".join(_rows_of(name, outlet, _uncounted(sync, name)) for name, outlet in sync.outlets.items())
    own = sync.outlets.get(sync.name)
    key = own.planned.bookmark_key if own is not None else sync.spec.bookmark_key
    bookmark = st.value_of(state, sync.name, key)
    kept = len(st.partitions_of(state, sync.name))
    if kept:
        others = f", {bookmark} for the others" if bookmark is not None else ""
        bookmark = f"of each of {counted(kept, 'partition')}{others}"
    elif bookmark is None and st.value_of(state, sync.name, st.FULL_TABLE) is not None:
        bookmark = "of an interrupted full table"
    elif bookmark is None and st.value_of(state, sync.name, st.POSITION) is not None:
        bookmark = "in stream.state"
    shown = status
    if status == "failed" and failed and sync.name not in failed:
        shown = f"succeeded, but rows of {', '.join(failed)} are missing"
    logger.log(level, "stream '%s': %s, %s, %.1f s, bookmark %s", sync.name, shown, rows, seconds, _or_none(bookmark))


def _or_none(bookmark: Any) -> Any:
    return "none" if bookmark is None else bookmark


def _uncounted(sync: SyncRun, name: str) -> int:
    """Files of a stream that went out as they are, and whose rows nobody has counted."""
    found = sync.tallies[name].to_json().get("uncounted_files", 0) if name in sync.tallies else 0
    return found if isinstance(found, int) else 0


def _rows_of(name: str, outlet: Outlet, uncounted: int) -> str:
    left = f" ({outlet.left_out} left out by its post_transform)" if outlet.left_out else ""
    repeated = f" ({outlet.repeated} more were out already)" if outlet.repeated else ""
    rows = counted(outlet.rows, "row")
    if uncounted:
        files = f"{counted(uncounted, 'file')} that nobody has counted"
        rows = f"{rows} and those of {files}" if outlet.rows else f"the rows of {files}"
    return f"{rows} of '{name}'{left}{repeated}"


def _warn(sync: SyncRun, status: str) -> None:
    """What an author has likely forgotten, or an operator should know; of a tail once."""
    if status == "succeeded":
        _warn_of_incomplete(sync)
    manual = isinstance(sync.spec.strategy, Manual) and sync.rows and status == "succeeded" and not sync.saved_by_hand
    if manual and _first_time(sync, "manual"):
        logger.warning(
            "stream '%s': bookmark_strategy is 'manual', and its function never called stream.save_bookmark(): its "
            "bookmark has not moved, and the next run reads the same again",
            sync.name,
        )
    kept, most = (
        len(st.partitions_of(sync.engine.state, sync.name)),
        sync.engine.settings.partition_bookmarks_warning,
    )
    if kept > most and _first_time(sync, "partitions"):
        logger.warning(
            "stream '%s': the state holds the bookmarks of %d partitions (partition_bookmarks_warning is %d). Shorter "
            "keys make it smaller (@tap.partitions(key=...)); partitions that rise (order='asc') need none.",
            sync.name,
            kept,
            most,
        )


def _warn_of_incomplete(sync: SyncRun) -> None:
    """What waits where sources have said that there is more than was read."""
    for name, why in sync.failures.incomplete.items():
        held = _held_back(sync, name)
        if held and sync.engine.session.watcher is not None:
            waiting = {*sync.line.below(name), sync.line.root}
            sync.engine.session.watcher.incomplete(name, why, waiting)
        if held and _first_time(sync, f"incomplete {name}"):
            logger.warning("stream '%s': may be incomplete (%s). %s", name, why, " ".join(held))


def _held_back(sync: SyncRun, name: str) -> list[str]:
    """What does not happen since rows of a stream may be missing, in sentences."""
    line, said = sync.line, []
    outlets = [sync.outlets[one] for one in sync.outlets if one in line.below(name)]
    tables = [
        one.planned.stream
        for one in outlets
        if one.versions.withheld or (one.planned.versions and not one.versions.activated)
    ]
    if tables:
        named = ", ".join(tables)
        said.append(f"No ACTIVATE_VERSION of {named} follows, so that targets drop none for those that did not come.")
    own = line.planned.get(line.root)
    if own is None or own.replication_method == FULL_TABLE:
        return said
    if line.is_substream(name):
        said.append(f"The bookmark of '{line.root}' does not pass the rows for which it may be.")
    elif own.bookmark_key is None:
        said.append("What its function puts into stream.state at the end is not saved.")
    elif own.order != "asc" and not isinstance(own.spec.strategy, Manual) and not sync.own_run._incomplete:
        at = f"at {_or_none(sync.outlets[name].bookmark_from)}"
        if sync.spec.partitions is not None:
            at = "where it was in partitions that may be"
        said.append(f"Its bookmark stays {at}: the next run reads the same again.")
    return said


def _first_time(sync: SyncRun, what: str) -> bool:
    return sync.engine.watch is None or sync.engine.watch.remarks(sync.name).first_time(what)
