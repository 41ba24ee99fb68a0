"""A run begins: from config and state to a plan, and to the last STATE; what the command line and tests call."""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from burler.clock import Clock
from burler.declare.app import App
from burler.engine.catalog.discovery import discover
from burler.engine.catalog.plan import Plan, make_plan
from burler.engine.run.run import Run
from burler.engine.run.signals import Stopper
from burler.engine.run.sync import SyncResult, sync
from burler.engine.session import Session
from burler.engine.state.ledger import unread
from burler.engine.tail.schedule import check_metadata
from burler.engine.tail.tail import run_tail
from burler.engine.writer.writer import schema_of
from burler.events import Events, Listener, RunBegan, RunEnded, Status
from burler.log_settings import log_settings
from burler.report.log import RunLog, TailLog
from burler.report.stats import RunStats
from burler.settings import Settings
from burler.singer import state as st
from burler.sinks import Sink
from burler.words import counted

logger = logging.getLogger(__name__)


TEST_ROWS = 5
"""Rows of each stream that ``--test`` takes."""


def run_session(
    session: Session,
    settings: Settings,
    sink: Sink,
    *,
    catalog: Any = None,
    state: dict[str, Any] | None = None,
    select: str | None = None,
    stopper: Stopper | None = None,
    limit: int | None = None,
    schemas_only: bool = False,
    stats: RunStats | None = None,
    listeners: Iterable[Listener] = (),
    clock: Clock | None = None,
) -> SyncResult:
    """Sync the selected streams into a sink.

    Args:
        session, settings: what ``open_session`` gave; the settings may have been needed to open the sink.
        catalog: a catalog as a plain dict; None selects everything.
        state: the value of a STATE.
        select: patterns of streams and fields.
        stopper: what signals and tests stop the run with.
        limit: rows of each stream, at the most, to look at. Such a run writes no STATE and no ACTIVATE_VERSION, and the
            result's state is the one given: it leaves rows out, and a bookmark must not pass them.
        schemas_only: SCHEMA messages only; no sync function is called.
        stats: what is to count how the run went.
        listeners: hear what the run tells, beside the statistics and the log.
        clock: what tells the time; a test may have one of its own.

    Raises:
        UsageError: catalog, state or the tap's declarations are wrong; nothing was written.
        OutputClosed, StorageError, LockLost, DataError: the sink failed.
    """
    log_settings.follow(settings)
    tail = settings.tail and limit is None and not schemas_only
    stopper = stopper or Stopper()
    begun = time.monotonic()
    status: Status = "failed"
    code: int | None = None
    stats = stats or RunStats(clock, points=0)
    events = Events(stats, TailLog(settings, stats) if tail else RunLog(settings), *listeners)
    events.tell(RunBegan(session.app.name))
    try:
        state = st.check_state(state)
        plan = _plan(session, settings, catalog=catalog, select=select, state=state, tail=tail)
        _announce(session.app, plan, limit, state)
        if schemas_only:
            _write_schemas(plan, sink)
            status = "succeeded"
            return SyncResult(state=state)
        _make_client(session, plan)
        run = Run(
            session,
            plan,
            sink,
            state=state,
            settings=settings,
            stopper=stopper,
            limit=limit,
            events=events,
            clock=clock,
            replan=partial(_plan, session, settings, catalog=catalog, select=select, state=state, tail=tail),
        )
        with stopper.installed(hangup=tail):
            result = run_tail(run) if tail else sync(run)
        status = "failed" if result.errors else "stopped" if result.stopped_by else "succeeded"
        code = result.exit_code
        return result
    finally:
        events.tell(RunEnded(session.app.name, status, code, time.monotonic() - begun, sink.made))
        session.close(tail=tail)


def _plan(session: Session, settings: Settings, *, tail: bool, **more: Any) -> Plan:
    """What to run of the streams that there are now."""
    plan = make_plan(discover(session), versions=settings.full_table_versions, tail=tail, **more)
    for stream in plan.streams if tail else ():
        check_metadata(stream)
    return plan


def _announce(app: App, plan: Plan, limit: int | None, state: dict[str, Any]) -> None:
    names = ", ".join(stream.tap_stream_id for stream in plan.streams)
    logger.info("%s: start (sync), streams: %s", app.name, names or "none selected")
    if limit is not None:
        logger.info("%s: at most %s of each stream, and no STATE", app.name, counted(limit, "row"))
    if not plan.runs:
        pushed = any(spec.sync is None and spec.tail is not None for spec in app.streams.values())
        more = " Those that have a tail function alone come with --tail." if pushed else ""
        logger.warning("%s: no stream is selected. Select some in the catalog or with --select.%s", app.name, more)
    for remark in unread(plan, state):
        logger.warning("%s", remark)


def _write_schemas(plan: Plan, sink: Sink) -> None:
    """SCHEMA of every planned stream, and nothing else; the sink is closed."""
    complete = False
    try:
        for stream in plan.streams:
            sink.write(schema_of(stream))
        complete = True
    finally:
        sink.close(complete=complete)


def _make_client(session: Session, plan: Plan) -> None:
    """Make the client, if any stream of the plan asks for it: what is wrong with it shows before the first message."""
    specs = [spec for run in plan.runs for spec in run.specs.values()]
    functions = [one for spec in specs for one in (spec.sync, spec.tail, spec.wake, spec.bookmark, spec.post_transform)]
    if any(function is not None and "client" in function.names for function in functions):
        session.client()


@contextmanager
def calm_collector(objects: int = 20_000) -> Iterator[None]:
    """While rows go by: what was loaded is left alone by Python's garbage collector, and it comes less often, after so
    many new ``objects``.

    A page of rows is thousands of new objects, which go again without the collector's help; each of its visits, by
    Python's own settings several a page, looks at them in vain.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(max(before[0], objects), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
