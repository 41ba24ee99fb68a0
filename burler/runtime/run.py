"""One run of a tap, from config and state to the last STATE; what the command line and tests call."""

from __future__ import annotations

import logging
import time
from typing import Any

from burler.config.spec import check_config
from burler.declare.tap import Tap
from burler.runtime import logs
from burler.runtime.plan import make_plan
from burler.runtime.session import Session
from burler.runtime.signals import Stopper
from burler.runtime.sync import Engine, SyncResult
from burler.settings import Settings, read_settings
from burler.singer import state as st
from burler.singer.catalog import Catalog, catalog_from_wire
from burler.sinks.base import Sink

logger = logging.getLogger(__name__)


def prepare(tap: Tap, config: dict[str, Any]) -> tuple[Session, Settings]:
    """Check a config and open a session.

    Raises:
        ConfigError, DeclarationError: see there.
    """
    logs.hide(config)
    tap.seal()
    check_config(tap.config_spec, config, tap_name=tap.name)
    return Session(tap, config), read_settings(config)


def discover(tap: Tap, config: dict[str, Any]) -> Catalog:
    """The tap's catalog."""
    session, _settings = prepare(tap, config)
    try:
        return session.catalog()
    finally:
        close(session)


def close(session: Session) -> None:
    """Close a session; a client that fails to close spoils no run that is done."""
    try:
        session.close()
    except Exception as error:
        logger.warning("%s: its client raised when it was closed: %s", session.tap.name, logs.short(error))


def run(
    tap: Tap,
    config: dict[str, Any],
    sink: Sink,
    *,
    catalog: Any = None,
    state: dict[str, Any] | None = None,
    select: str | None = None,
    stopper: Stopper | None = None,
) -> SyncResult:
    """Sync the selected streams into a sink.

    Args:
        catalog: a catalog as a plain dict; None selects everything.
        state: the value of a STATE.

    Raises:
        UsageError: config, catalog, state or the tap's declarations are wrong; nothing was written.
        OutputClosed, StorageError, LockLost, DataError: the sink failed.
    """
    session, settings = prepare(tap, config)
    stopper = stopper or Stopper()
    begun = time.monotonic()
    status = "failed"
    try:
        state = st.check_state(state)
        own = session.catalog()
        given = None if catalog is None else catalog_from_wire(catalog)
        plan = make_plan(
            session.specs, own, given=given, select=select, state=state, versions=settings.full_table_versions
        )
        names = ", ".join(stream.tap_stream_id for planned in plan for stream in planned.streams)
        logger.info("%s: start (sync), streams: %s", tap.name, names or "none selected")
        if not plan:
            logger.warning("%s: no stream is selected. Select some in the catalog or with --select.", tap.name)
        if any(planned.spec.sync and "client" in planned.spec.sync.names for planned in plan):
            session.client()  # what is wrong with it shows before the first message
        engine = Engine(session, plan, sink, catalog=given or own, state=state, settings=settings, stopper=stopper)
        with stopper.installed():
            result = engine.run()
        status = "failed" if result.errors else "stopped" if result.stopped_by else "succeeded"
        return result
    finally:
        seconds = time.monotonic() - begun
        logs.metric("timer", "job_duration", round(seconds, 6), job_type="sync", status=status)
        logger.info("%s: %s, %.1f s", tap.name, status, seconds)
        close(session)
