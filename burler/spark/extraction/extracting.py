"""``burler.spark.extract``: from a tap's name to rows in a lake and a state."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from burler.appref import AppRef, load_app
from burler.config.loading import Loaded
from burler.config.secrets import hide_config
from burler.declare.tap import Tap
from burler.engine.beginning import Beginning, Source, beginning
from burler.engine.command.tap_command import TapCommand
from burler.engine.remote import Planning
from burler.engine.run.signals import Stopper
from burler.engine.run.sync import SyncResult
from burler.engine.session import open_session
from burler.errors import UsageError
from burler.lake.locks import LockSettings
from burler.lake.state import LakeState
from burler.lake.store import open_store
from burler.lake.writer import LakeDriver
from burler.settings import Settings
from burler.singer.catalog import catalog_from_wire
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
    full_refresh: bool | str | Collection[str] = False,
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
        config, catalog, select: as in a run.
        state: a state's value, in place of the one that the lake keeps of this tap; ``{}`` begins anew.
        full_refresh: streams to begin anew, whatever a state says; True: all.
        slots: tasks at a time; by default as many as the session says it runs, else DEFAULT_SLOTS.
        emit: gets the value of each STATE once its data is committed and the lake has it.
        settings: changes the settings that the config holds.
        stopper: what ends the run early; by default SIGTERM and SIGINT do.
        on_progress: gets how many tasks have ended, and of how many that are known by now.

    Returns the rows, errors and last state of the run. A stream that fails stands in ``errors``; the others go on.

    Raises:
        UsageError: app, config, catalog or state are wrong; the lake has this tap's rows from another config.
        LockLost: another writer has the lake, or another run of this tap has changed the state.
        StorageError: the lake can't be written.
    """
    with prepared(
        app,
        lake,
        exec=exec,
        tap_id=tap_id,
        config=config,
        catalog=catalog,
        state=state,
        full_refresh=full_refresh,
        select=select,
        settings=settings,
    ) as what:
        return what.run(spark, slots=slots, emit=emit, stopper=stopper, on_progress=on_progress)


@contextlib.contextmanager
def prepared(
    app: str | Path | Tap | None,
    lake: str | Path,
    *,
    exec: str | None = None,
    tap_id: str | None = None,
    config: Mapping[str, Any] | Loaded | None = None,
    catalog: Any = None,
    state: Mapping[str, Any] | None = None,
    full_refresh: bool | str | Collection[str] = False,
    select: str | None = None,
    settings: Callable[[Settings], Settings] = lambda settings: settings,
) -> Iterator[Prepared]:
    """What can be known of an extraction without Spark: all that is wrong with what was given shows here. The
    arguments are those of ``extract``."""
    for name, value in (("config", config), ("state", state)):
        if not isinstance(value, Mapping | Loaded | None):
            raise UsageError(  # its type alone: a text may be a config with secrets
                f"{name} must be a dict, not {type(value).__name__}. Of a file: json.loads(Path(...).read_text())"
            )
    place = absolute(str(lake))  # tasks stand in the folder where the session was started, not in this process's
    loaded = Loaded(dict(config or {})) if not isinstance(config, Loaded) else config
    given = None if state is None else dict(state)
    with contextlib.ExitStack() as closing:
        if exec is not None:
            from burler.spark.extraction.foreign import ExecWork
            from burler.spark.source.foreign import look

            if app is not None:
                raise UsageError("give app or exec, not both: an app of burler's, or any other tap's command.")
            hide_config(loaded.config)
            own = settings(Settings())
            named = tap_id or own.tap_id or TapCommand.of_command(exec, strict=False).program
            target = Target(place, named, own)
            tap, wire = look(exec, loaded.config or None, catalog, option="--exec")
            streams = catalog_from_wire(wire, source=tap.source).entries
            begun = beginning(
                Source(named, {name: name for name in streams}), _state_in(target), given=given, refresh=full_refresh
            )
            work: Work = ExecWork(tap, wire, target, chosen=catalog is not None, state=begun.start, select=select)
        elif app is None:
            raise UsageError("give an app, or the command of a tap as exec.")
        else:
            ref, sealed = AppRef.of(app), load_app(app)
            session, own = open_session(sealed, loaded)
            closing.callback(session.close)
            own = settings(own) if tap_id is None else replace(settings(own), tap_id=tap_id)
            target = Target(place, own.tap_id or sealed.name, own)
            source = Source.of_app(sealed, session.config, loaded.config)
            begun = beginning(source, _state_in(target), given=given, refresh=full_refresh)
            planning = Planning(session, own, catalog=catalog, state=begun.start, select=select)
            work = AppWork(ref, planning, target, config=dict(loaded.config), catalog=catalog, select=select)
        yield Prepared(work, target, begun)


def _state_in(target: Target) -> LakeState:
    return LakeState(open_store(target.url, options=target.settings.lake_options), target.tap_id)


@dataclass(frozen=True, slots=True)
class Prepared:
    """An extraction that only wants a session. ``begun``: where it begins, and who keeps its state."""

    work: Work
    target: Target
    begun: Beginning

    def run(
        self,
        spark: SparkSession,
        *,
        slots: int | None = None,
        emit: Emit = lambda state: None,
        stopper: Stopper | None = None,
        on_progress: Callable[[int, int], object] | None = None,
    ) -> SyncResult:
        """See ``extract``."""
        count = slots if slots is not None else task_slots(spark) or DEFAULT_SLOTS
        if count < 1:
            raise UsageError(f"slots must be a number above 0, not {count}.")
        settings, keeper, stopper = self.target.settings, self.begun.keeper, stopper or Stopper()
        assert keeper is not None  # there is a lake
        keeper.runs(self.work.seen, unseen=self.work.unseen)

        def keep(state: dict[str, Any]) -> None:
            keeper.save(state)
            emit(state)

        lake = LakeDriver(
            keeper.state.store,
            self.target.tap_id,
            keeper=keeper,
            encoding=settings.lake_encoding,
            locks=LockSettings(settings.lock_ttl_seconds, settings.lock_timeout_seconds),
            should_stop=lambda: stopper.requested,
        )
        with lake, stopper.installed():
            return Extraction(
                self.work,
                Slots(spark, count),
                lake,
                self.target,
                keep,
                stopper,
                names_stream=settings.currently_syncing,
                on_progress=on_progress,
            ).run()
