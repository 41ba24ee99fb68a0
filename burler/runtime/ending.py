"""What is said of a stream when it begins and when it ends: log lines, metrics, the report (specs 11.6)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from burler.declare.strategies import Manual
from burler.runtime import entries, logs
from burler.runtime.outlet import Outlet

if TYPE_CHECKING:
    from burler.runtime.stream import SyncRun

logger = logging.getLogger(__name__)


def begin(sync: SyncRun) -> None:
    """The start of a stream and of what is synced with it."""
    engine, own = sync.engine, sync.outlets.get(sync.name)
    method = own.planned.replication_method if own is not None else sync.spec.replication_method
    logger.info("stream '%s': start (sync, %s, bookmark %s)", sync.name, method, _where(sync))
    for name, outlet in sync.outlets.items():
        planned = outlet.planned
        outlet.bookmark_from = entries.value_of(engine.state, name, planned.bookmark_key)
        engine.report.stream_began(name, method=planned.replication_method, bookmark=outlet.bookmark_from)


def _where(sync: SyncRun) -> Any:
    if sync.coverage is not None:
        return sync.coverage.start
    kept = len(entries.partitions_of(sync.engine.state, sync.name))
    return f"of each of {kept} partitions" if kept else sync.own_run.bookmark


def end(sync: SyncRun, status: str, seconds: float) -> None:
    """The end: one log line for the whole line of streams, a counter for each."""
    state = sync.engine.state
    failed = sync.failures.errors()
    counts = {name: tally.to_json() for name, tally in sync.tallies.items()}
    for name, outlet in sync.outlets.items():
        outlet.report()
        logs.metric("counter", "record_count", outlet.rows, endpoint=name)
        key = outlet.planned.bookmark_key
        # A stream that came whole has not failed with one below it.
        came = "succeeded" if status == "failed" and sync.failures.error is None else status
        one = "failed" if name in failed else came
        sync.engine.report.stream_ended(
            name,
            status=one,
            rows=outlet.rows,
            updated=outlet.newer if key is not None else None,
            skipped=outlet.skipped,
            seconds=seconds,
            bookmark_from=outlet.bookmark_from,
            bookmark_to=entries.value_of(state, name, key),
            counts=counts.get(name, {}),
        )
    logs.metric("timer", "job_duration", round(seconds, 6), job_type="stream", stream=sync.name, status=status)
    rows = ", ".join(_counted(name, outlet) for name, outlet in sync.outlets.items())
    own = sync.outlets.get(sync.name)
    key = own.planned.bookmark_key if own is not None else sync.spec.bookmark_key
    bookmark = entries.value_of(state, sync.name, key)
    kept = len(entries.partitions_of(state, sync.name))
    if kept:
        bookmark = f"of each of {kept} partitions" + (f", {bookmark} for the others" if bookmark is not None else "")
    elif bookmark is None and entries.value_of(state, sync.name, entries.FULL) is not None:
        bookmark = "of an interrupted full table"
    elif bookmark is None and entries.value_of(state, sync.name, entries.POSITION) is not None:
        bookmark = "in stream.state"
    shown = status
    if status == "failed" and sync.name not in failed:
        shown = f"succeeded, but rows of {', '.join(failed)} are missing"
    logger.info("stream '%s': %s, %s, %.1f s, bookmark %s", sync.name, shown, rows, seconds, bookmark)
    _warn(sync, status)
    most = sync.engine.settings.partition_bookmarks_warning
    if kept > most:
        logger.warning(
            "stream '%s': the state holds the bookmarks of %d partitions (partition_bookmarks_warning is %d). Shorter "
            "keys make it smaller (@tap.partitions(key=...)); partitions that rise (order='asc') need none.",
            sync.name,
            kept,
            most,
        )


def _counted(name: str, outlet: Outlet) -> str:
    left = f" ({outlet.left_out} left out by its post_transform)" if outlet.left_out else ""
    return f"{outlet.rows} rows of '{name}'{left}"


def _warn(sync: SyncRun, status: str) -> None:
    """What an author has likely forgotten."""
    if isinstance(sync.spec.strategy, Manual) and sync.rows and status == "succeeded" and not sync.saved_by_hand:
        logger.warning(
            "stream '%s': bookmark_strategy is 'manual', and its function never called stream.save_bookmark(): its "
            "bookmark has not moved, and the next run reads the same again",
            sync.name,
        )
