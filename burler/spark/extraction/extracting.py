"""``burler.spark.extract``: from a tap's name to rows in a lake and a state."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from burler.appref import AppRef, load_app
from burler.config.loading import Loaded
from burler.declare.tap import Tap
from burler.engine.command.tap_command import TapCommand
from burler.engine.remote import Planning
from burler.engine.run.signals import Stopper
from burler.engine.run.sync import SyncResult
from burler.errors import UsageError
from burler.lake.driver import LakeDriver
from burler.lake.locks import LockSettings
from burler.lake.store import open_store
from burler.settings import Settings
from burler.spark.extraction.driving import Emit, Extraction
from burler.spark.extraction.jobs import Slots
from burler.spark.extraction.tasks import Target
from burler.spark.extraction.work import AppWork, Work
from burler.spark.lakesource.options import absolute
from burler.spark.remote import task_slots

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_SLOTS = 8


def extract(
    spark: SparkSession,
    app: str | Path | Tap | None,
    lake: str | Path,
    *,
    exec: str | None = None,
    tap_id: str | None = None,
    config: Mapping[str, Any] | Loaded | None = None,
    catalog: Any = None,
    state: Mapping[str, Any] | None = None,
    select: str | None = None,
    slots: int | None = None,
    emit: Emit = lambda state: None,
    settings: Callable[[Settings], Settings] = lambda settings: settings,
    stopper: Stopper | None = None,
    on_progress: Callable[[int, int], object] | None = None,
) -> SyncResult:
    """Extract a burler app into a lake: each partition of a stream is a Spark task, as is each stream without.

    Args:
        spark: the session whose executors do the work, classic or Connect.
        app: the tap itself, or APP as the command line takes it; None with ``exec``.
        exec: the command of any other Singer tap instead: each of its streams is a task.
        tap_id: the tap's folder in the lake; by default the app's name, or the command's.
        lake: folder or URL, which driver and executors reach alike.
        config, catalog, state, select: as in a run. ``state`` is a state's value.
        slots: tasks at a time; by default as many as the session says it runs, else DEFAULT_SLOTS.
        emit: gets the value of each STATE once its data is committed.
        settings: changes the settings that the config holds.
        stopper: what ends the run early; by default SIGTERM and SIGINT do.
        on_progress: gets how many tasks have ended, and of how many that are known by now.

    Returns the rows, errors and last state of the run. A stream that fails stands in ``errors``; the others go on.

    Raises:
        UsageError: app, config, catalog or state are wrong. LockLost: another writer has the lake.
        StorageError: the lake can't be written.
    """
    for name, value in (("config", config), ("state", state)):
        if not isinstance(value, Mapping | Loaded | None):
            raise UsageError(  # its type alone: a text may be a config with secrets
                f"{name} must be a dict, not {type(value).__name__}. Of a file: json.loads(Path(...).read_text())"
            )
    place = absolute(str(lake))  # tasks stand in the folder where the session was started, not in this process's
    given = Loaded(dict(config or {})) if not isinstance(config, Loaded) else config
    with contextlib.ExitStack() as closing:
        if exec is not None:
            from burler.spark.extraction.foreign import ExecWork

            if app is not None:
                raise UsageError("give app or exec, not both: an app of burler's, or any other tap's command.")
            own = settings(Settings())
            target = Target(place, tap_id or own.tap_id or TapCommand.of_command(exec, strict=False).program, own)
            work: Work = ExecWork(
                exec, target, config=given.config or None, catalog=catalog, state=state, select=select
            )
        elif app is None:
            raise UsageError("give an app, or the command of a tap as exec.")
        else:
            named = settings if tap_id is None else lambda own: replace(settings(own), tap_id=tap_id)
            ref = AppRef.of(app)
            planning = Planning(load_app(app), given, catalog=catalog, state=state, select=select, settings=named)
            closing.callback(planning.close)
            target = Target(place, planning.tap_id, planning.settings)
            work = AppWork(ref, planning, target, config=dict(given.config), catalog=catalog, select=select)
        return _run(spark, work, target, slots=slots, emit=emit, stopper=stopper or Stopper(), on_progress=on_progress)


def _run(
    spark: SparkSession,
    work: Work,
    target: Target,
    *,
    slots: int | None,
    emit: Emit,
    stopper: Stopper,
    on_progress: Callable[[int, int], object] | None,
) -> SyncResult:
    count = slots if slots is not None else task_slots(spark) or DEFAULT_SLOTS
    if count < 1:
        raise UsageError(f"slots must be a number above 0, not {count}.")
    settings = target.settings
    lake = LakeDriver(
        open_store(target.url, options=settings.lake_options),
        target.tap_id,
        encoding=settings.lake_encoding,
        locks=LockSettings(settings.lock_ttl_seconds, settings.lock_timeout_seconds),
        should_stop=lambda: stopper.requested,
    )
    with lake, stopper.installed():
        return Extraction(
            work,
            Slots(spark, count),
            lake,
            target,
            emit,
            stopper,
            names_stream=settings.currently_syncing,
            on_progress=on_progress,
        ).run()
