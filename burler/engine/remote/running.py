"""One part, run where it was sent: the engine of a local run, with the one task."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from burler.config.loading import Loaded
from burler.declare.app import App
from burler.engine.remote.parts import Part, PartEnd, errors_of
from burler.engine.remote.planning import Planning
from burler.engine.run.partitions import GivenPartition
from burler.engine.run.run import Run
from burler.engine.run.signals import Stopper
from burler.engine.run.sync import sync
from burler.errors import CatalogError
from burler.events import Events
from burler.report.log import RunLog
from burler.settings import Settings
from burler.singer.state import get_version
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
    settings: Settings | None = None,
    stopper: Stopper | None = None,
) -> PartEnd:
    """Run one part into a sink, which is closed; STATEs that come on the way speak of this part alone.

    Args:
        config, catalog, state, select: as those of a run, and the same for which the parts were found.
        settings: in place of those that the config holds.

    Raises:
        UsageError: config, catalog, state or the tap's declarations are wrong; nothing was written.
        OutputClosed, StorageError, DataError: the sink failed. Errors of the stream stand in ``PartEnd.errors``.
    """
    begun = time.monotonic()
    one = Planning(app, config, catalog=catalog, state=state, select=select, settings=lambda own: settings or own)
    try:
        runs = tuple(run for run in one.plan.runs if run.spec.tap_stream_id == part.stream)
        if not runs:
            raise CatalogError(
                f"stream '{part.stream}' is not here, though the plan had it. Do all processes see the same tap, "
                "config and catalog?"
            )
        given = None
        if part.partition.key is not None:
            versions = {name: table.version for name, table in part.shared.tables.items()}
            given = GivenPartition(copy.deepcopy(part.partition), versions)
        run = Run(
            one.session,
            replace(one.plan, runs=runs),
            sink,
            state=one.state,
            settings=one.settings,
            stopper=stopper or Stopper(),
            events=Events(RunLog(one.settings)),
            part=given,
        )
        result = sync(run)
    finally:
        one.close()
    counts = {name: get_version(result.state, name) for name in part.shared.family.names if part.partition.key is None}
    return PartEnd(
        part,
        run.progress.get(part.stream),
        {name: version for name, version in counts.items() if version is not None},
        result.rows,
        time.monotonic() - begun,
        errors_of(result.errors),
    )
