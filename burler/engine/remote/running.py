"""One part, run where it was sent: the engine of a local run, restricted to it."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from burler.config.loading import Loaded
from burler.declare.app import App
from burler.engine.catalog.discovery import discover
from burler.engine.catalog.plan import make_plan
from burler.engine.remote.ends import PartEnd, errors_of
from burler.engine.remote.parts import Part
from burler.engine.run.partitions import GivenPartition
from burler.engine.run.run import check_limit
from burler.engine.run.signals import Stopper
from burler.engine.run.stream import SyncRun
from burler.engine.run.sync import Engine, SyncResult
from burler.engine.run.task import Task
from burler.engine.session import open_session
from burler.errors import CatalogError
from burler.events import Events
from burler.report.log import RunLog
from burler.settings import Settings
from burler.singer.state import check_state, entry_of, get_version
from burler.sinks.base import Sink


def run_part(
    app: App,
    part: Part,
    *,
    config: Mapping[str, Any] | Loaded,
    catalog: Any = None,
    state: Mapping[str, Any] | None = None,
    select: str | None = None,
    sink: Sink,
    limit: int | None = None,
    settings: Settings | None = None,
    stopper: Stopper | None = None,
) -> PartEnd:
    """Run one part into a sink, which is closed; STATEs that come on the way speak of this part alone.

    Args:
        config, catalog, state, select, limit: as those of a run, and the same for which the parts
            were found.
        settings: in place of those that the config holds.

    Raises:
        UsageError: config, catalog, state or the tap's declarations are wrong; nothing was written.
        OutputClosed, StorageError, DataError: the sink failed. Errors of the stream stand in ``PartEnd.errors``.
    """
    check_limit(limit)
    session, own = open_session(app, config)
    begun = time.monotonic()
    task: list[tuple[SyncRun, Task]] = []
    try:
        settings = replace(settings or own, tail=False)
        plan = make_plan(discover(session), catalog=catalog, select=select, versions=settings.full_table_versions)
        planned = next((one for one in plan.runs if one.spec.tap_stream_id == part.stream), None)
        if planned is None:
            raise CatalogError(
                f"stream '{part.stream}' is not here, though the plan had it. Do all processes see the same tap, "
                "config and catalog?"
            )
        engine = Engine(
            session,
            replace(plan, runs=(planned,)),
            sink,
            state=check_state(copy.deepcopy(dict(state)) if state is not None else None),
            settings=settings,
            stopper=stopper,
            limit=limit,
            events=Events(RunLog(settings)),
            part=_given(part, task),
        )
        result = engine.run()
        return _end(part, result, task, time.monotonic() - begun)
    finally:
        session.close()


def _given(part: Part, task: list[tuple[SyncRun, Task]]) -> GivenPartition | None:
    if part.key is None:
        return None
    versions = {name: table.version for name, table in part.shared.tables.items()}
    return GivenPartition(part.partition or {}, part.key, versions, lambda run, one: task.append((run, one)))


def _end(part: Part, result: SyncResult, task: list[tuple[SyncRun, Task]], seconds: float) -> PartEnd:
    names, state = part.shared.family.names, result.state
    found = {name: entry_of(state, name, part.key) or None for name in names}
    errors = errors_of(result.errors)
    if part.key is None:
        behind = frozenset(result.errors) | (set(names) if _stopped(result) else set())
        return PartEnd(part, found, {}, rows=result.rows, seconds=seconds, errors=errors, behind=behind)
    end = PartEnd(part, found, {}, result.rows, seconds, errors, behind=frozenset(result.errors if task else names))
    for run, one in task:
        activated = [name for name, writer in run.writers.items() if writer.versions.activated]
        end = replace(
            end,
            versions={name: version for name in activated if (version := get_version(state, name)) is not None},
            behind=end.behind | one.behind | (set(names) if one.error is not None else set()),
            kept=frozenset(name for name, writer in run.writers.items() if writer.versions.not_modified),
            progress=one.progress(),
        )
    return end


def _stopped(result: SyncResult) -> bool:
    return result.stopped_by is not None
