"""Partitions of a tap that run elsewhere: in other processes, on other machines, in tasks of Spark.

::

    ref = AppRef.of(tap)                                   # on the driver; it can be pickled (burler.appref)
    session, settings = open_session(tap.seal(), config)
    planning = Planning(session, settings, state=state)
    parts = planning.parts("tickets")
    end = run_part(ref.load(), part, config=config, state=part.state_for(state), sink=sink)   # anywhere
    merge = Merge(planning.state)                          # on the driver
    merge.add(end)                                         # of each part; then merge.finish("tickets"), merge.state

Each part is a run of the same engine (pull, shape, bookmark) with one task. What comes of it is plain data; put
together, the ends say what one local run of all partitions would have written into its last STATE. A full table has one
version, chosen when its parts are found; it counts once all of them are whole (``Merge.finish``).
"""

from __future__ import annotations

import contextvars
import copy
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from burler.clock import Clock
from burler.config.loading import Loaded
from burler.declare.app import App
from burler.engine.catalog.discovery import discover
from burler.engine.catalog.plan import PlannedRun, make_plan
from burler.engine.family import Family, Partition, Progress
from burler.engine.run.calls import Calls
from burler.engine.run.failures import Retries, errors_of
from burler.engine.run.partitions import GivenPartition, PartitionsFunction
from burler.engine.run.run import Run
from burler.engine.run.signals import Stopper
from burler.engine.run.sync import sync
from burler.engine.session import Session, open_session
from burler.engine.state.ledger import FamilyState, Ledger
from burler.engine.writer.versions import next_version
from burler.engine.writer.writer import schema_of
from burler.errors import CatalogError, Failure, PartialError, StreamError
from burler.events import Events
from burler.logs import in_one_line
from burler.report.log import RunLog
from burler.settings import Settings
from burler.singer.messages import ActivateVersion, Schema
from burler.singer.state import get_version, partitions_of
from burler.sinks import Sink

logger = logging.getLogger(__name__)


# ---- what is told to whoever runs a part, and what comes back: plain data, which can be pickled --------------------


@dataclass(frozen=True, slots=True)
class Shared:
    """What the parts of a stream have in common, and what has to be known to put their ends together.

    Attributes:
        tables: full tables that the parts make up, and the message with which they count; rows carry its version.
        asks_state: functions want to see the whole state.
        incomplete: there may be partitions that nobody found.
    """

    family: Family
    tables: Mapping[str, ActivateVersion] = field(default_factory=dict)
    asks_state: bool = False
    incomplete: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """One partition of a stream, or a stream that has none, as a whole; one of ``count``. Streams that come with this
    one (substreams, emitted ones) come here as well."""

    stream: str
    partition: Partition
    count: int
    shared: Shared

    @property
    def where(self) -> str:
        """Which part it is, for errors and logs; empty for a stream as a whole."""
        return self.partition.where

    def state_for(self, state: Mapping[str, Any] | None) -> dict[str, Any]:
        """What of a state this part has to be told: of thousands of partitions, each one's own entry."""
        own: dict[str, Any] = copy.deepcopy(dict(state or {}))
        key = self.partition.key
        if key is None or self.shared.asks_state:
            return own
        for name in self.shared.family.names:
            others = partitions_of(own, name)
            for one in [one for one in others if one != key]:
                del others[one]
        return own


@dataclass(frozen=True, slots=True)
class PartEnd:
    """How a part ended.

    Attributes:
        progress: how far it has come; None: its function was not called.
        versions: of whole tables, those that count by what this part has said of them.
        errors: of the parts of its streams; "" is where a stream failed as a whole.
    """

    part: Part
    progress: Progress | None
    versions: Mapping[str, int]
    rows: Mapping[str, int]
    seconds: float
    errors: tuple[Failure, ...] = ()

    @property
    def behind(self) -> set[str]:
        """The streams of which rows are missing."""
        if self.progress is None or not self.progress.is_complete:
            return set(self.part.shared.family.names)
        return {*self.progress.behind, *(one.stream for one in self.errors)}


def plain_error(stream: str, error: BaseException) -> StreamError:
    """An error that can be pickled, holds no secret, and says where in the author's code it arose."""
    text = in_one_line(error)
    return StreamError(stream, text if text.startswith("stream '") else f"stream '{stream}': {text}")


def _failures_of(errors: Mapping[str, BaseException]) -> Iterator[Failure]:
    """The errors of a run's streams, one by one, as plain data."""
    for stream, error in errors.items():
        parts = error.failures if isinstance(error, PartialError) else [Failure(stream, "", error)]
        yield from (replace(one, error=plain_error(one.stream, one.error)) for one in parts)


# ---- the driver's side ---------------------------------------------------------------------------------------------


class Planning:
    """The plan of a run whose parts are run elsewhere, or of one of these. Safe among threads.

    Args:
        session, settings: what ``open_session`` gave; whoever opened the session closes it.
        catalog, state, select: as those of a run.

    Attributes:
        state: what the run begins with; what can't be gone on with is taken out as the parts of a stream are found.
        streams: those whose functions are called first, in the order of a local run.

    Raises:
        UsageError: catalog, state or the tap's declarations are wrong.
    """

    def __init__(
        self,
        session: Session,
        settings: Settings,
        *,
        catalog: Any = None,
        state: Mapping[str, Any] | None = None,
        select: str | None = None,
    ) -> None:
        self._lock, self._clock = threading.Lock(), Clock()
        self._ledger = Ledger(None if state is None else dict(state), self._clock)
        self.state = self._ledger.document
        self.session = session
        self.settings = replace(settings, tail=False)  # a part ends; whoever runs it knows of no tail
        self.plan = make_plan(
            discover(session),
            catalog=catalog,
            select=select,
            state=self.state,
            versions=settings.full_table_versions,
        )
        self._runs = {one.spec.tap_stream_id: one for one in self.plan.runs}
        self.streams = tuple(self._runs)

    def schemas(self, stream: str) -> list[Schema]:
        """SCHEMA of each selected stream that comes in the run of this one."""
        return [schema_of(planned) for planned in self._runs[stream].streams]

    def parts(self, stream: str) -> list[Part]:
        """The parts of a stream, in the order of a local run; one for a stream without partitions.

        Raises:
            CatalogError: there is no such stream.
            StreamError: its partitions function failed, or gave what is none.
        """
        planned = self.of(stream)
        spec, session, settings = planned.spec, self.session, self.settings
        if spec.acknowledge is not None:
            logger.warning("stream '%s': its acknowledge function is not called where its parts run elsewhere", stream)
        with self._lock:
            saved = self._ledger.family(planned.family)
            if settings.ignore_source_state:
                saved.forget_sources()
            shared = Shared(planned.family, asks_state=planned.asks_for("state"))
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

    def of(self, stream: str) -> PlannedRun:
        """The run that begins with a stream's function.

        Raises:
            CatalogError: there is none here.
        """
        if stream not in self._runs:
            raise CatalogError(
                f"stream '{stream}' is not here, though the plan had it. Do all processes see the same tap, config and "
                "catalog?"
            )
        return self._runs[stream]


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
        self._ledger = Ledger(None if state is None else dict(state), Clock())
        self._ledger.note_syncing(None)
        self.state = self._ledger.document
        self.rows: Counter[str] = Counter()
        self._streams: dict[str, _Stream] = {}
        self._failures: list[Failure] = []

    @property
    def errors(self) -> dict[str, BaseException]:
        """The errors, by stream, as a local run has them in its result."""
        return errors_of(self._failures)

    def begin(self, family: Family, state: Mapping[str, Any]) -> bool:
        """The parts of a stream were found: what that took out of the state they begin with goes here, too. True if
        there was something: a STATE without it must be out before rows that are committed now."""
        return self._ledger.take(family.names, state)

    def add(self, end: PartEnd) -> None:
        """A part has ended, and what it gave is durable."""
        part, stream = end.part, self._of(end.part)
        self._failures += end.errors
        self.rows.update(end.rows)
        stream.ended += 1
        stream.behind |= end.behind
        for name, version in end.versions.items():
            if version > (stream.saved.version(name) or 0):
                stream.saved.put_version(name, version)
        if end.progress is None:
            return
        stream.unchanged |= end.progress.unchanged
        try:
            stream.saved.merge(end.progress)
        except StreamError as error:  # they don't rise as declared
            stream.behind |= set(part.shared.family.names)
            self.fail(part.stream, error)

    def lost(self, part: Part, reason: str) -> None:
        """A part has come to nothing: whoever ran it is gone, and what it gave is lost."""
        error = StreamError(part.stream, f"stream '{part.stream}': {reason}")
        self.add(PartEnd(part, None, {}, {}, 0.0, (Failure(part.stream, part.where, error),)))

    def fail(self, stream: str, error: BaseException) -> None:
        """A stream has failed as a whole."""
        self._failures.append(Failure(stream, "", error))

    def add_foreign(self, rows: Mapping[str, int], before: Mapping[str, Any], after: Mapping[str, Any] | None) -> None:
        """Another program has run streams of its own; what it has changed of the state goes in.

        Args:
            before: the state that it was given. after: its last STATE; None: there was none.
        """
        self.rows.update(rows)
        if after is not None:
            self._ledger.take_changes(before, after)

    def committed(self, count: int) -> None:
        """So many bytes of rows are durable."""
        self._ledger.add(count)

    def next_state(self, syncing: str | None, *, now: bool = False) -> dict[str, Any] | None:
        """The value of a STATE that is to be told; None where it says nothing new, or is big and waits for more rows.

        Args:
            syncing: the stream that the run is in.
            now: it does not wait.
        """
        self._ledger.note_syncing(syncing)
        if not now and self._ledger.puts_off():
            return None
        message = self._ledger.next_state()
        return None if message is None else message.value

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
            behind = set(shared.family.names) if shared.incomplete else set()
            self._streams[part.stream] = _Stream(part, self._ledger.family(shared.family), behind)
        return self._streams[part.stream]


# ---- where a part runs ---------------------------------------------------------------------------------------------


def run_part(
    app: App,
    part: Part,
    *,
    config: Mapping[str, Any] | Loaded,
    catalog: Any = None,
    state: Mapping[str, Any] | None = None,
    select: str | None = None,
    sink: Sink,
    settings: Callable[[Settings], Settings] = lambda settings: settings,
    stopper: Stopper | None = None,
) -> PartEnd:
    """Run one part into a sink, which is closed; STATEs that come on the way speak of this part alone.

    Args:
        config, catalog, state, select: as those of a run, and the same for which the parts were found.
        settings: gives those that count in place of those that the config holds.

    Raises:
        UsageError: config, catalog, state or the tap's declarations are wrong; nothing was written.
        OutputClosed, StorageError, DataError: the sink failed. Errors of the stream stand in ``PartEnd.errors``.
    """
    begun = time.monotonic()
    session, own = open_session(app, config)
    try:
        one = Planning(session, settings(own), catalog=catalog, state=state, select=select)
        given = None
        if part.partition.key is not None:
            versions = {name: table.version for name, table in part.shared.tables.items()}
            given = GivenPartition(copy.deepcopy(part.partition), versions)
        run = Run(
            session,
            replace(one.plan, runs=(one.of(part.stream),)),
            sink,
            state=one.state,
            settings=one.settings,
            stopper=stopper or Stopper(),
            events=Events(RunLog(one.settings)),
            part=given,
        )
        result = sync(run)
    finally:
        session.close()
    counts = {name: get_version(result.state, name) for name in part.shared.family.names if part.partition.key is None}
    return PartEnd(
        part,
        run.progress.get(part.stream),
        {name: version for name, version in counts.items() if version is not None},
        result.rows,
        time.monotonic() - begun,
        tuple(_failures_of(result.errors)),
    )
