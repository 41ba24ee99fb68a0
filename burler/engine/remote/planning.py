"""The driver's side of a run whose parts run elsewhere: it finds the parts as a local run does, and puts their ends
together to what one local run of all of them would have written."""

from __future__ import annotations

import contextvars
import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from burler.clock import Clock
from burler.config.loading import Loaded
from burler.declare.app import App
from burler.engine.catalog.discovery import discover
from burler.engine.catalog.plan import PlannedRun, make_plan
from burler.engine.family import Family
from burler.engine.remote.parts import Part, PartEnd, PartError, Shared, as_errors
from burler.engine.run.calls import Calls
from burler.engine.run.failures import Retries
from burler.engine.run.partitions import PartitionsFunction
from burler.engine.session import open_session
from burler.engine.state.ledger import FamilyState, Ledger, saved_of
from burler.engine.state.progress import Partition
from burler.engine.writer.versions import next_version
from burler.engine.writer.writer import schema_of
from burler.errors import CatalogError, StreamError
from burler.settings import Settings
from burler.singer.messages import ActivateVersion, Schema

logger = logging.getLogger(__name__)


class Planning:
    """The plan of a run whose parts are run elsewhere, or of one of these. Safe among threads.

    Args:
        config, catalog, state, select: as those of a run.
        settings: in place of those that the config holds.

    Attributes:
        tap_id: the name that the tap goes by.
        state: what the run begins with; what can't be gone on with is taken out as the parts of a stream are found.
        config: what was checked.
        streams: those whose functions are called first, in the order of a local run.

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
        self._lock, self._clock = threading.Lock(), Clock()
        self._ledger = Ledger(None if state is None else dict(state), self._clock)
        self.state = self._ledger.document
        self.session, own = open_session(app, config)
        try:
            self.settings = replace(settings(own), tail=False)  # a part ends; whoever runs it knows of no tail
            self.plan = make_plan(
                discover(self.session),
                catalog=catalog,
                select=select,
                state=self.state,
                versions=self.settings.full_table_versions,
            )
        except BaseException:
            self.session.close()
            raise
        self.config = self.session.config
        self.tap_id = self.settings.tap_id or app.name
        self._runs = {one.spec.tap_stream_id: one for one in self.plan.runs}
        self.streams = tuple(self._runs)

    def schemas(self, stream: str) -> list[Schema]:
        """SCHEMA of each selected stream that comes in the run of this one."""
        return [schema_of(planned) for planned in self._runs[stream].streams]

    def parts(self, stream: str) -> list[Part]:
        """The parts of a stream, in the order of a local run; one for a stream without partitions.

        Raises:
            CatalogError: there is no such stream, or it comes with another one.
            StreamError: its partitions function failed, or gave what is none.
        """
        planned = self._of(stream)
        spec, session, settings = planned.spec, self.session, self.settings
        if spec.acknowledge is not None:
            logger.warning("stream '%s': its acknowledge function is not called where its parts run elsewhere", stream)
        with self._lock:
            saved = saved_of(planned, self._ledger, settings.start_date)
            if settings.ignore_source_state:
                saved.forget_sources()
            shared = Shared(planned.family, order=saved.order, asks_state=planned.asks_for("state"))
            if spec.partitions is None:
                return [Part(stream, Partition(), 1, shared)]
            now = self._clock.now()
            calls = Calls(
                session,
                planned,
                saved,
                catalog=self.plan.catalog,
                settings=settings,
                client=session.client,
                began=now,
            )
            calls.note_state(self.state)
            # The function is bound to its stream: in a context of its own, which goes with it.
            function = PartitionsFunction(spec, calls, Retries(session.invoke))
            found = contextvars.copy_context().run(lambda: list(function))
        # Parts of a full table share one version, that of now.
        tables = {
            one.tap_stream_id: ActivateVersion(one.stream, next_version(saved.version(one.tap_stream_id), now))
            for one in planned.streams
            if one.versions
        }
        shared = replace(shared, tables=tables, incomplete=bool(calls.of_partitions.incomplete))
        return [Part(stream, one, len(found), shared) for one in found]

    def close(self) -> None:
        """Close the client, if the partitions functions have made one."""
        self.session.close()

    def _of(self, stream: str) -> PlannedRun:
        found = self._runs.get(stream)
        if found is None:
            roots = (name for name, one in self._runs.items() if stream in (each.tap_stream_id for each in one.streams))
            root = next(roots, None)
            hint = f" It comes in the run of '{root}'." if root is not None else ""
            raise CatalogError(
                f"stream '{stream}' is none that is selected and called by itself.{hint} "
                f"Streams: {', '.join(self._runs) or 'none'}."
            )
        return found


@dataclass(slots=True)
class _Stream:
    """The parts of one stream that have ended, and one of them."""

    part: Part
    saved: FamilyState
    behind: set[str]
    ended: int = 0
    unchanged: set[str] = field(default_factory=set)


class Merge:
    """Takes ends as they come, in any order; ``state`` says at any time what is safe to say of what was taken in.

    One thread at a time. ``rows`` are those of each stream.
    """

    def __init__(self, state: Mapping[str, Any] | None = None) -> None:
        self._ledger = Ledger(dict(state or {}), Clock())
        self._ledger.note_syncing(None)
        self.state = self._ledger.document
        self.rows: Counter[str] = Counter()
        self._streams: dict[str, _Stream] = {}
        self._errors: list[PartError] = []

    @property
    def errors(self) -> dict[str, BaseException]:
        """The errors of the parts, by stream, as a local run has them in its result."""
        return as_errors(self._errors)

    def begin(self, family: Family, state: Mapping[str, Any]) -> bool:
        """The parts of a stream were found: what that took out of the state they begin with goes here, too. True if
        there was something: a STATE without it must be out before rows that are committed now."""
        return self._ledger.take(family.names, state)

    def add(self, end: PartEnd) -> None:
        """A part has ended, and what it gave is durable."""
        part, stream = end.part, self._of(end.part)
        self._errors += end.errors
        self.rows.update(end.rows)
        stream.ended += 1
        stream.behind |= end.behind
        for name, version in end.versions.items():
            if version > (stream.saved.version(name) or 0):
                stream.saved.put_version(name, version)
        if end.progress is None:
            stream.saved.stop_at(part.partition.number)
            return
        stream.unchanged |= end.progress.unchanged
        try:
            stream.saved.ended(end.progress)
        except StreamError as error:  # they don't rise as declared
            stream.behind |= set(part.shared.family.names)
            self._errors.append(PartError.of(error, part.stream))

    def lost(self, part: Part, error: str) -> None:
        """A part has come to nothing: whoever ran it is gone, and what it gave is lost."""
        self.add(PartEnd(part, None, {}, {}, 0.0, (PartError(part.stream, part.where, error),)))

    def finish(self, stream: str) -> list[ActivateVersion]:
        """All parts of a stream have ended: what can be said of the stream as a whole goes into ``state``.

        Returns the messages that must be durable before that state is told: full tables that count from here on.
        Nothing where parts are missing.
        """
        found = self._streams.get(stream)
        if found is None or found.ended < found.part.count:
            return []
        tables = found.part.shared.tables
        whole = {name: table for name, table in tables.items() if name not in found.behind | found.unchanged}
        for name, table in whole.items():
            found.saved.put_version(name, table.version)
        if not found.behind:
            found.saved.finish()
        return list(whole.values())

    def _of(self, part: Part) -> _Stream:
        if part.stream not in self._streams:
            shared = part.shared
            saved = self._ledger.family(
                shared.family, is_partitioned=part.partition.key is not None, order=shared.order
            )
            behind = set(shared.family.names) if shared.incomplete else set()
            self._streams[part.stream] = _Stream(part, saved, behind)
        return self._streams[part.stream]
