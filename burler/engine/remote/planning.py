"""What there is to run elsewhere: the streams of a plan, and the parts of each, found as a local run finds them."""

from __future__ import annotations

import contextvars
import copy
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from burler.config.loading import Loaded
from burler.declare.app import App
from burler.engine.catalog.discovery import discover
from burler.engine.catalog.plan import PlannedRun, make_plan
from burler.engine.remote.parts import Part, Shared, Table
from burler.engine.run.partition_source import PartitionSource
from burler.engine.run.stream import SyncRun
from burler.engine.run.sync import Engine
from burler.engine.session import open_session
from burler.engine.writer.writer import schema_of
from burler.errors import CatalogError
from burler.settings import Settings
from burler.singer import state as st
from burler.singer.messages import Message, Schema

logger = logging.getLogger(__name__)


class Planning:
    """The plan of a run whose parts are run elsewhere. Safe among threads.

    Args:
        config, catalog, state, select: as those of a run.
        settings: in place of those that the config holds.

    Attributes:
        tap_id: the name that the tap goes by.
        state: what the run begins with; what can't be gone on with is taken out as the parts of a stream are found.

    Raises:
        UsageError: config, catalog, state or the tap's declarations are wrong.
    """

    def __init__(
        self,
        app: App,
        config: Mapping[str, Any] | Loaded,
        *,
        catalog: Any = None,
        state: Mapping[str, Any] | None = None,
        select: str | None = None,
        settings: Callable[[Settings], Settings] = lambda settings: settings,
    ) -> None:
        session, own = open_session(app, config)
        self._session = session
        try:
            # A part comes to its end; whoever runs it knows of no tail.
            self.settings = replace(settings(own), tail=False)
            found = discover(session)
            started = st.check_state(copy.deepcopy(dict(state)) if state is not None else None)
            plan = make_plan(
                found,
                catalog=catalog,
                select=select,
                state=started,
                versions=self.settings.full_table_versions,
            )
        except BaseException:
            session.close()
            raise
        self._plan = {planned.spec.tap_stream_id: planned for planned in plan.runs}
        self._engine = Engine(session, plan, _Nowhere(), state=started, settings=self.settings)
        self._lock = threading.Lock()
        self.tap_id = self.settings.tap_id or app.name

    @property
    def state(self) -> dict[str, Any]:
        """What the run begins with."""
        return self._engine.state

    @property
    def config(self) -> dict[str, Any]:
        """The config that was checked."""
        return self._session.config

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams whose functions are called first, in the order of a local run."""
        return tuple(self._plan)

    def schemas(self, stream: str) -> list[Schema]:
        """SCHEMA of each selected stream that comes in the run of this one."""
        return [schema_of(planned) for planned in self._plan[stream].streams]

    def parts(self, stream: str) -> list[Part]:
        """The parts of a stream, in the order of a local run; one for a stream without partitions.

        Raises:
            StreamError: its partitions function failed, or gave what is none.
        """
        planned = self._of(stream)
        with self._lock:
            run = SyncRun(self._engine, planned, stop=self._engine.stop)
            self._warn(run)
            if run.spec.partitions is None:
                return [Part(stream, None, None, 0, 1, _shared(run))]
            run._state_at_start = msgspec.json.encode(self._engine.state)
            # The function is bound to its stream: in a context of its own, which goes with it.
            found = contextvars.copy_context().run(_all_of, PartitionSource(run))
            shared = _shared(run)
        return [
            Part(stream, partition, key, number, len(found), shared) for number, (partition, key) in enumerate(found)
        ]

    def close(self) -> None:
        """Close the client, if the partitions functions have made one."""
        self._session.close()

    def _of(self, stream: str) -> PlannedRun:
        found = self._plan.get(stream)
        if found is None:
            inner = next((one for one in self._plan.values() if stream in _names(one)), None)
            hint = f" It comes in the run of '{inner.spec.tap_stream_id}'." if inner is not None else ""
            raise CatalogError(
                f"stream '{stream}' is none that is selected and called by itself.{hint} "
                f"Streams: {', '.join(self._plan) or 'none'}."
            )
        return found

    def _warn(self, run: SyncRun) -> None:
        if run.spec.acknowledge is not None:
            logger.warning(
                "stream '%s': its acknowledge function is not called where its parts run elsewhere", run.name
            )


def parts_of(
    app: App,
    stream: str,
    *,
    config: Mapping[str, Any] | Loaded,
    catalog: Any = None,
    state: Mapping[str, Any] | None = None,
    select: str | None = None,
) -> list[Part]:
    """The parts of one stream, in the order of a local run; one for a stream without partitions.

    Raises:
        UsageError: config, catalog, state or the tap's declarations are wrong; there is no such stream.
        StreamError: its partitions function failed.
    """
    planning = Planning(app, config, catalog=catalog, state=state, select=select)
    try:
        return planning.parts(stream)
    finally:
        planning.close()


def _all_of(source: PartitionSource) -> list[tuple[dict[str, Any], str]]:
    found = []
    while (one := source.next()) is not None:
        found.append(one)
    return found


def _names(planned: PlannedRun) -> list[str]:
    return [stream.tap_stream_id for stream in planned.streams]


def _shared(run: SyncRun) -> Shared:
    """What the parts of a stream have in common. Parts of a full table share one version, that of now."""
    tables = {}
    if run.spec.partitions is not None:
        for name, writer in run.writers.items():
            if writer.planned.versions and writer.versions.now is not None:
                tables[name] = Table(writer.planned.stream, writer.versions.now)
    return Shared(
        run.line.family,
        flat=run.saved.flat.get(run.name),
        order=run.saved.order,
        tables=tables,
        asks_state=run.line.asks_for("state"),
        incomplete=bool(run.failures.incomplete),
    )


class _Nowhere:
    """The sink of an engine that plans alone: nothing is written."""

    def write(self, message: Message) -> None:
        raise AssertionError(f"a plan writes nothing: {type(message).__name__}")

    def flush(self) -> None: ...

    def settle(self) -> None: ...

    def tick(self) -> None: ...

    def tell_states(self, told: Callable[[dict[str, Any]], None]) -> None: ...

    def close(self, *, complete: bool) -> None: ...
