"""One run of a tap, from config and state to the last STATE; what the command line and tests call."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, nullcontext
from functools import partial
from typing import Any

from burler import logs
from burler.clock import Clock
from burler.config.loading import Loaded
from burler.config.watched import hide
from burler.config.writeback import ConfigFiles
from burler.declare.app import App
from burler.declare.classes import Stream
from burler.declare.spec import StreamSpec
from burler.engine.catalog.plan import PlannedRun, make_plan
from burler.engine.run.session import Session
from burler.engine.run.signals import Stopper
from burler.engine.run.sync import Engine, SyncResult, write_schemas
from burler.engine.state.ledger import unread
from burler.engine.tail.settings import check
from burler.errors import ConfigError, DeclarationError, UsageError
from burler.events import Events, Listener, RunBegan, RunEnded, Status
from burler.log_settings import log_settings
from burler.numbers import is_count
from burler.report.log import RunLog, TailLog
from burler.report.stats import RunStats
from burler.settings import Settings, read_settings
from burler.singer import state as st
from burler.singer.catalog import Catalog, catalog_from_wire
from burler.sinks.base import Sink, files_made
from burler.words import counted

logger = logging.getLogger(__name__)

_CLOSE_SECONDS = 2.0

TEST_ROWS = 5
"""Rows of each stream that ``--test`` takes."""


def prepare(app: App, config: Mapping[str, Any] | Loaded) -> tuple[Session, Settings]:
    """Check a config and open a session. What the tap changes in a config that was loaded from files goes back
    into them.

    Raises:
        ConfigError: all that is wrong with the tap's own keys, burler's settings and environment variables.
        DeclarationError: the tap's declarations have gaps, or there is no stream.
    """
    loaded = config if isinstance(config, Loaded) else Loaded(dict(config))
    marked = app.config_form.secret_paths
    hide(loaded.config, marked=marked)
    if not app.streams and app.discover is None:
        raise _no_streams(app)
    checked, settings = _check(app, loaded)
    log_settings.follow(settings)
    hide(checked, marked=marked, more=True)
    return Session(app, checked, files=ConfigFiles(loaded, checked) if loaded is config else None), settings


def _check(app: App, loaded: Loaded) -> tuple[dict[str, Any], Settings]:
    problems = [f"{app.name}: {sentence}" for sentence in loaded.problems]
    checked, settings = dict(loaded.config), Settings()
    try:
        checked = app.config_form.check(loaded.config, tap_name=app.name)
    except ConfigError as error:
        problems.append(str(error))
    try:
        settings = read_settings({**loaded.config, **checked}, loaded.variables, own=app.config_form.keys)
    except ConfigError as error:
        problems.append(f"{app.name}: {error}")
    if problems:
        raise ConfigError("\n  ".join(problems))
    return checked, settings


def discover(app: App, config: Mapping[str, Any] | Loaded) -> Catalog:
    """The tap's catalog."""
    session, _settings = prepare(app, config)
    try:
        return session.catalog()
    finally:
        close(session)


def _close_for_a_while(session: Session) -> None:
    """A tail stops at once when told: a client that takes longer is left behind."""
    closing = threading.Thread(target=close, args=(session,), name="burler-close", daemon=True)
    closing.start()
    closing.join(_CLOSE_SECONDS)
    if closing.is_alive():
        logger.warning("%s: its client is not closed after %.0f s; it is left behind", session.app.name, _CLOSE_SECONDS)


def close(session: Session, *, tail: bool = False) -> None:
    """Close a session; a client that fails to close spoils no run that is done."""
    try:
        if tail:
            _close_for_a_while(session)
        else:
            session.close()
    except Exception as error:
        logger.warning("%s: its client raised when it was closed: %s", session.app.name, logs.short(error))
    session.save_config(last=True)


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
        session, settings: what :func:`prepare` gave; the settings may have been needed to open the sink.
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
    stack = ExitStack()
    try:
        state = st.check_state(state)
        stack.enter_context(stopper.noting_hangups() if tail else nullcontext())
        own = session.catalog()
        given = None if catalog is None else catalog_from_wire(catalog)
        plans = partial(_plan, session, settings, given=given, select=select, state=state, tail=tail)
        plan = plans(own)
        _announce(session.app, plan, own, limit, state)
        if schemas_only:
            write_schemas(plan, sink)
            status = "succeeded"
            return SyncResult(state=state)
        _make_client(session, plan)
        engine = Engine(
            session,
            plan,
            sink,
            catalog=given or own,
            state=state,
            settings=settings,
            stopper=stopper,
            limit=limit,
            events=events,
            clock=clock,
            replan=lambda: _again(session, plans, given),
        )
        with stopper.installed(hangup=tail):
            result = engine.run()
        status = "failed" if result.errors else "stopped" if result.stopped_by else "succeeded"
        code = result.exit_code
        return result
    finally:
        stack.close()
        events.tell(RunEnded(session.app.name, status, code, time.monotonic() - begun, files_made(sink)))
        close(session, tail=tail)


def _plan(session: Session, settings: Settings, own: Catalog, *, tail: bool, **more: Any) -> tuple[PlannedRun, ...]:
    """The plan of a run; ``own`` is the tap's catalog."""
    plan = make_plan(session.specs, own, versions=settings.full_table_versions, tail=tail, **more)
    for stream in (stream for planned in plan for stream in planned.streams if tail):
        check(stream)
    return plan


def _again(
    session: Session, plans: Callable[[Catalog], tuple[PlannedRun, ...]], given: Catalog | None
) -> tuple[tuple[PlannedRun, ...], Catalog]:
    """The plan after another discovery, and the catalog that it follows."""
    own = session.rediscover()
    return plans(own), given or own


def _no_streams(app: App) -> DeclarationError:
    forgotten = [cls.__name__ for cls in Stream.__subclasses__() if not cls.__name__.startswith("_")]
    hint = f"Put @tap.stream above class {forgotten[0]}. " if forgotten else ""
    return DeclarationError(
        f"{app.name} ({app.place}): declares no stream. {hint}A stream is a function with @tap.sync('contacts')."
    )


def check_limit(limit: int | None) -> None:
    """Refuse a limit that is none.

    Raises:
        UsageError: so.
    """
    if limit is not None and not is_count(limit, 1):
        raise UsageError(
            f"limit must be a whole number above 0, not {limit!r:.60}. For SCHEMA lines only: --test=schema"
        )


def _announce(app: App, plan: tuple[PlannedRun, ...], own: Catalog, limit: int | None, state: dict[str, Any]) -> None:
    names = ", ".join(stream.tap_stream_id for planned in plan for stream in planned.streams)
    logger.info("%s: start (sync), streams: %s", app.name, names or "none selected")
    if limit is not None:
        logger.info("%s: at most %s of each stream, and no STATE", app.name, counted(limit, "row"))
    if not plan:
        pushed = any(spec.sync is None and spec.tail is not None for spec in app.streams.values())
        more = " Those that have a tail function alone come with --tail." if pushed else ""
        logger.warning("%s: no stream is selected. Select some in the catalog or with --select.%s", app.name, more)
    for remark in unread(plan, own.entries, state):
        logger.warning("%s", remark)


def _make_client(session: Session, plan: tuple[PlannedRun, ...]) -> None:
    """Make the client, if any stream of the plan asks for it: what is wrong with it shows before the first message."""
    if any(_asks_for_client(spec) for planned in plan for spec in session.line(planned.spec)):
        session.client()


def _asks_for_client(spec: StreamSpec) -> bool:
    functions = (spec.sync, spec.tail, spec.wake, spec.bookmark, spec.post_transform)
    return any(function is not None and "client" in function.names for function in functions)
