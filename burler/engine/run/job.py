"""A job: one family of streams, read once. What its workers share: its writers, its tasks, what is missing, and when a
STATE is due."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any, Protocol

from burler.declare.strategies import EveryN, Manual, Since
from burler.engine.catalog.plan import PlannedRun, PlannedStream
from burler.engine.family import Partition
from burler.engine.run.calls import Calls
from burler.engine.run.failures import Failures, Retries
from burler.engine.run.partitions import Partitions, PartitionsFunction
from burler.engine.run.run import Run
from burler.engine.run.signals import STUCK_SECONDS, Reason, StopToken
from burler.engine.run.task import Task
from burler.engine.writer.writer import StreamWriter, UnseenKey
from burler.errors import StreamError
from burler.events import FamilyBegan, FamilyEnded, Incomplete, Status, StreamBegan, StreamEnded
from burler.logs import short
from burler.pipeline.repeats import Recurring
from burler.singer import state as st
from burler.singer.metadata import FULL_TABLE

logger = logging.getLogger(__name__)

_SOON_ROWS, _SOON_SECONDS = 1000, 1.0  # after so much, what finished partitions have reached is saved


class Giving(Protocol):
    """What a worker's functions give (``Outbox``)."""

    def tick(self) -> None:
        """Rows that wait while user code blocks go out."""

    def abandon(self) -> None:
        """What they have given goes out; nothing after that counts."""


class Memory:
    """What a tail remembers of a family from one round to the next, of its sync and tail functions together: what is
    dear to make, and the rows that may come again.

    Attributes:
        since: rows, pages and the moment of the last STATE that the stream's strategy has asked for.
        writers: by stream; they hold the shapers, and what went out.
        rounds: how many have begun.
    """

    def __init__(self, now: float) -> None:
        self.since = 0, 0, now
        self.writers: dict[str, StreamWriter] = {}
        self.rounds = 0

    def forget(self) -> None:
        """All rows are wanted once more."""
        for writer in self.writers.values():
            writer.repeats.forget()


class Job:
    """Lives from SCHEMA to the root's last STATE. The run's lock guards everything behind the pull.

    ``at`` is the stream whose rows came last, ``last`` the task that began last. ``status`` says how it ended.
    ``shares_pages``: rows of several tasks may stand in one page: only where no function of the author's sees them,
    none is left out, and none can be out already, since each of these goes by the task.

    Args:
        memory: what the rounds of a tail have in common; None in a plain run.
        stop: says that it is to end, and why.
    """

    def __init__(
        self,
        run: Run,
        planned: PlannedRun,
        memory: Memory | None = None,
        *,
        stop: StopToken,
    ) -> None:
        self.run = run
        self.memory = memory
        if memory is not None:
            memory.rounds += 1
        self.stop = stop
        self.pushes = planned.pushes
        self.status: Status = "unfinished"
        self.behind_since: float | None = None  # when a part of a tail function's call was first seen to have failed
        self._ending_since: float | None = None  # when it was first seen that it is to end
        self.client_numbers: set[int] = set()
        self.spec = planned.spec
        self.name = self.at = planned.spec.tap_stream_id
        self.place = self.spec.sync.place if self.spec.sync is not None else self.spec.place
        self.planned, self.family = planned, planned.family
        self.unseen = None
        if planned.unseen is not None and self.spec.replication_key is not None:
            self.unseen = UnseenKey(self.name, self.spec.replication_key, planned.unseen)
        settings, self._begun = run.settings, run.clock.monotonic()
        self.saved = run.ledger.family(self.family, collapses=run.part is None)
        self._forgot = self.saved.forgot
        # Everything is fetched: once; the further rounds of a tail ask for what has changed.
        ignores_sources = settings.ignore_source_state and (memory is None or memory.rounds == 1)
        if ignores_sources:
            self._forgot |= self.saved.forget_sources()
        self.calls = Calls(
            run.session,
            planned,
            self.saved,
            catalog=run.plan.catalog,
            settings=settings,
            client=self.client,
            began=run.clock.now(),
            tailing=memory is not None,
            ignores_sources=ignores_sources or run.limit is not None,  # up to a limit it is there to show rows
        )
        self.writers = {stream.tap_stream_id: self._writer(stream) for stream in planned.streams}
        if self.pushes:
            for writer in self.writers.values():
                writer.versions.keep()  # its rows belong to the table as it stands
        self.outboxes: list[Giving] = []
        self.open_tasks: dict[Task, None] = {}  # whose rows may be out, in the order in which they began
        self.failures = Failures(
            self.family, most=settings.max_failures, events=run.events, stop=stop, open_tasks=self.open_tasks
        )
        self.retries = Retries(run.session.invoke)
        self.last: Task | None = None
        self.since_rows, self.since_pages, self._since = memory.since if memory else (0, 0, run.clock.monotonic())
        self._ended_tasks, self._out = 0, (0, 0)
        self.partitions = self._partitions()
        specs = [stream.spec for stream in planned.streams]
        self.has_hooks = any(spec.post_transform is not None or spec.bookmark is not None for spec in specs)
        own = self.writers.get(self.name)
        self.shares_pages = (
            self.spec.partitions is not None
            and own is not None
            and own.joins_rows
            and not (self.family.has_children or self.has_hooks or memory is not None)
        )

    def _writer(self, stream: PlannedStream) -> StreamWriter:
        """The writer of a stream: a new one, or the one of the rounds before."""
        run, name = self.run, stream.tap_stream_id
        known = self.memory.writers if self.memory is not None else {}
        if name not in known:
            known[name] = StreamWriter(
                stream,
                run.sink,
                now=run.clock.now,
                invoke=partial(run.session.invoke, stream=name),
                settings=run.settings,
                limit=run.limit,
            )
        again = _recurring(self.planned, name) if self.memory is not None else None
        known[name].begin_round(stream, self.saved, again)
        return known[name]

    def _partitions(self) -> Partitions:
        part = self.run.part
        if self.spec.partitions is None:
            return Partitions.one(Partition())
        if part is None:
            return Partitions(iter(PartitionsFunction(self.spec, self.calls, self.retries)))
        for name, version in part.versions.items():
            if name in self.writers:
                self.writers[name].versions.belong_to(version)
        return Partitions.one(part.partition)

    def task(self, partition: Partition) -> Task:
        """The task of a partition, or of the stream as a whole.

        Raises:
            StreamError: what the state says of it is no bookmark.
        """
        if self.spec.acknowledge is not None and partition.key is not None:
            self.run.acknowledgements.partitions[self.name][partition.key] = partition.values
        return Task(self.calls, self.writers, partition)

    def as_error(self, error: BaseException) -> Exception:
        """What user code raised, as an error of the stream: sys.exit() and the like end this stream, not the others."""
        if isinstance(error, Exception):
            return error
        ended = StreamError(self.name, f"stream '{self.name}' ({self.place}): {short(error)}")
        ended.__cause__ = error
        return ended

    def client(self) -> Any:
        """The client, for functions of this run: it is not closed while they may be at it."""
        number, client = self.run.session.clients.get()
        self.client_numbers.add(number)
        return client

    @property
    def rows(self) -> int:
        """Rows that are out, of all streams of the family."""
        return sum(writer.rows for writer in self.writers.values())

    @property
    def bytes(self) -> int:
        """Bytes of lines that are out."""
        return sum(writer.counts.bytes for writer in self.writers.values())

    # ---- from begin to end -----------------------------------------------------------------------------

    def begin(self) -> None:
        """SCHEMA of its streams."""
        run = self.run
        self._tell_begin()
        for writer in self.writers.values():
            writer.open()
        run.jobs.append(self)
        if self.planned.asks_for("state"):
            run.note_syncing()
            self.calls.note_state(run.state)
        if self._forgot:
            run.say_state()

    def complete(self) -> Status:
        """What can be said once no worker runs; gives the stream's status."""
        if self.partitions.exhausted:
            self.failures.of_partitions(self.calls.of_partitions.incomplete)
        behind = self.failures.behind()
        done = self.partitions.exhausted and not self.open_tasks
        if not done and not (self.is_full and self.stop.reason < Reason.CUT):
            return "failed" if self.failures.error is not None else "stopped"
        if self.run.limit is None:
            for name, writer in self.writers.items():
                if name not in behind:
                    writer.versions.complete(writer.rows)
                elif not self.failures:
                    writer.versions.leave_open()
            if self.last is not None and self.last.key is None:
                self.saved.merge(self.last.progress())  # with what may be said only once the whole table counts
            elif not self.failures and not behind and self.run.part is None:
                self.saved.finish()
        return "failed" if self.failures else "succeeded"

    def end(self, status: Status) -> None:
        """The last STATE of the stream; in a tail the one that is due next covers it. Where the stream did not come to
        its end, that names it as the one to begin with."""
        run = self.run
        self.status = status
        if status == "succeeded" or (status != "stopped" and self.failures.error is None):
            run.jobs.remove(self)
        if run.stop.error is None:
            if self.memory is not None:
                self._end_round()
            else:
                self.save_state(between=status == "succeeded", covers=status == "stopped")
        if self in run.jobs:
            run.jobs.remove(self)
        for task in self.open_tasks:
            self._count(task)
        self._tell_end(status, run.clock.monotonic() - self._begun)

    def _end_round(self) -> None:
        """A round of a tail has ended: what is safe to say of it stands in the state, and goes out when a STATE is due.
        Its rows go out now."""
        for task in self.open_tasks:
            self.saved.merge(task.progress())
        if self.memory is not None:
            self.memory.since = self.since_rows, self.since_pages, self._since
        if self.calls.sources_changed or any(writer.versions.activated for writer in self.writers.values()):
            self.run.ledger.note()
        self.run.sink.flush()

    # ---- how much ----------------------------------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        """Whether a limit on rows is reached: every selected stream has its rows, or the function's own one has and
        a further row of it came, so that what belongs to its last row and stands behind it is here as well. A row of
        one stream may come with any number of another's: no more than a thousand are read for each that is wanted."""
        if self.run.limit is None:
            return False
        own, writers = self.writers.get(self.name), self.writers.values()
        beyond = sum(writer.counts.beyond for writer in writers)
        if not any(writer.room for writer in writers) or beyond >= 1000 * self.run.limit:
            return True
        return own is not None and not own.room and own.counts.beyond > 0

    def rows_of_page(self, most: int) -> int:
        """Rows to pull for the next page of a worker that takes ``most`` at a time."""
        strategy = self.spec.strategy
        # Where rows of parents are read ahead, no bookmark moves within a lot.
        if isinstance(strategy, EveryN) and not self.family.has_children:
            # A STATE whose line is big may be put off: pages go on being cut where one might be due.
            left = strategy.count - self.since_rows % strategy.count
            if len(self.family.names) > 1:
                # Where rows of several streams come mixed, the exact count is not worth ever smaller pages.
                left = max(left, strategy.count // 10)
            most = max(1, min(most, left))
        if self.pushes and self.has_hooks:
            most = 1  # hooks run where the function runs: what waits for a page would wait for hours
        if self.run.limit is None:
            return most
        return max(1, min(most, max(writer.room for writer in self.writers.values())))

    # ---- tasks (under the run's lock) ------------------------------------------------------------------

    def wrote(self) -> None:
        """A page went through."""
        self.since_pages += 1
        (pages, size), self._out = self._out, (sum(one.counts.pages for one in self.writers.values()), self.bytes)
        if self._out[0] > pages:
            self.run.ledger.add(self._out[1] - size)

    def task_began(self, task: Task) -> None:
        """Rows of a task follow; it may be known."""
        if task not in self.open_tasks:
            self.last = task
            self.open_tasks[task] = None
            self.failures.misses(task)

    def task_ended(self, task: Task) -> None:
        """A task has come to its end, or to an error."""
        del self.open_tasks[task]
        self._ended_tasks += 1
        self._count(task)
        for name, writer in self.writers.items():
            if task.error is None and name not in task.behind:
                writer.repeats.ended(task.key)
        self.failures.of_task(task)
        try:
            self.saved.merge(task.progress())
        except StreamError as error:
            self.failures.end(error)

    def _count(self, task: Task) -> None:
        for name, tracker in task.trackers.items():
            if name in self.writers:
                self.writers[name].counts.without_value += tracker.without_value
                self.writers[name].counts.newer += tracker.newer

    # ---- from other threads (under the run's lock) -------------------------------------------------------

    def tick(self) -> None:
        """Rows that wait while user code blocks go out, and a STATE that is due. What blocks on the main thread is
        interrupted where the stream has been unable to go on for ten seconds.

        Rows wait where a function of the author's sees them: that is called where the stream's own function runs, since
        what it uses may belong to that thread (a database connection does).
        """
        if self.stop.reason:
            now = self.run.clock.monotonic()
            self._ending_since = now if self._ending_since is None else self._ending_since
            if now - self._ending_since >= STUCK_SECONDS:
                self.run.stopper.look()
        if self.has_hooks:
            return
        for outbox in self.outboxes:
            outbox.tick()
        self.save_if_due()

    def cut(self) -> None:
        """This round is to end, and the tail goes on: user code is interrupted where it can be."""
        self.stop.stop(Reason.CUT)
        self.run.stopper.look()

    def abandon_workers(self) -> None:
        """Those that are blocked in user code are left behind. What they have yielded goes out, but where a function of
        the author's would have to see it."""
        for outbox in self.outboxes:
            outbox.abandon()

    def abandon(self) -> None:
        """The run ends, and user code of this stream does not: a STATE of what is out, and nothing after that."""
        self.abandon_workers()
        self.end("stopped")
        self.stop.stop(Reason.LEFT_BEHIND)

    # ---- what is told ----------------------------------------------------------------------------------

    def _tell_begin(self) -> None:
        run, own, coverage = self.run, self.writers.get(self.name), self.saved.coverage
        run.events.tell(
            FamilyBegan(
                self.name,
                method=own.planned.replication_method if own is not None else self.spec.replication_method,
                bookmark=coverage.start if coverage is not None else self.calls.whole.raw_bookmark,
                partitions=0 if coverage is not None else len(st.partitions_of(run.state, self.name)),
                streams=tuple(
                    StreamBegan(name, writer.planned.replication_method, writer.bookmark_from)
                    for name, writer in self.writers.items()
                ),
                passed=coverage.saved if coverage is not None else None,
                late=tuple(coverage.reads_again()) if coverage is not None else (),
            )
        )

    def _tell_end(self, status: Status, seconds: float) -> None:
        state, failed = self.run.state, self.failures.errors()
        own = self.writers.get(self.name)
        key = own.planned.bookmark_key if own is not None else self.spec.bookmark_key
        table, position = (st.value_of(state, self.name, one) is not None for one in (st.FULL_TABLE, st.POSITION))
        self.run.events.tell(
            FamilyEnded(
                self.name,
                status,
                seconds,
                bookmark=st.value_of(state, self.name, key),
                partitions=len(st.partitions_of(state, self.name)),
                instead="table" if table else "position" if position else "",
                streams=tuple(self._stream_ended(name, failed, status) for name in self.writers),
                failed=tuple(failed),
                saves_nothing=status == "succeeded"
                and isinstance(self.spec.strategy, Manual)
                and self.rows > 0
                and not self.calls.saved_by_hand,
                covering=self.run.ledger.covering,
            )
        )
        if status == "succeeded":
            for name, why in self.failures.incomplete.items():
                self._tell_incomplete(name, why)

    def _stream_ended(self, name: str, failed: dict[str, BaseException], status: Status) -> StreamEnded:
        writer = self.writers[name]
        if name in failed:
            status = "failed"
        elif status == "failed" and self.failures.error is None:
            status = "succeeded"  # a stream that came whole has not failed with one below it
        bookmark = st.value_of(self.run.state, name, writer.planned.bookmark_key)
        return writer.ended(status, bookmark=bookmark, counts=self.calls.tallies[name].to_json())

    def _tell_incomplete(self, name: str, why: str) -> None:
        """What does not happen since rows of a stream may be missing; nothing where all happens."""
        family, below, held = self.family, self.family.below(name), []
        writers = [writer for one, writer in self.writers.items() if one in below]
        planned = [
            one.planned.stream
            for one in writers
            if one.versions.withheld or (one.planned.versions and not one.versions.activated)
        ]
        if planned:
            tables = ", ".join(planned)
            held.append(
                f"No ACTIVATE_VERSION of {tables} follows, so that targets drop none for those that did not come."
            )
        own = self.planned.by_name.get(family.root)
        if own is None or own.replication_method == FULL_TABLE:
            pass
        elif name in family.substreams:
            held.append(f"The bookmark of '{family.root}' does not pass the rows for which it may be.")
        elif own.bookmark_key is None:
            held.append("What its function puts into stream.state at the end is not saved.")
        elif (
            own.order != "asc" and not isinstance(own.spec.strategy, Manual) and not self.calls.of_partitions.incomplete
        ):
            bookmark = self.writers[name].bookmark_from
            at = "none" if bookmark is None else bookmark
            where = f"at {at}" if self.spec.partitions is None else "where it was in partitions that may be"
            held.append(f"Its bookmark stays {where}: the next run reads the same again.")
        if held:
            self.run.events.tell(Incomplete(name, why, frozenset({*below, family.root}), tuple(held)))

    # ---- STATE -----------------------------------------------------------------------------------------

    def save_if_due(self) -> None:
        """STATE, where the strategy asks for one, or partitions have come to their end; put off while its line would
        outweigh the rows since the last one."""
        if self.run.limit is not None or self.stop.reason >= Reason.LEFT_BEHIND:
            return
        seconds = self.run.clock.monotonic() - self._since
        since = Since(self.since_rows, seconds, self.since_pages)
        waited = since.rows >= _SOON_ROWS or seconds >= _SOON_SECONDS
        soon = self.memory is None and waited and (self._ended_tasks > 0 or self.calls.sources_changed)
        if (soon or self._strategy_asks(since)) and self.run.ledger.has_room():
            self.save_state()

    def _strategy_asks(self, since: Since) -> bool:
        """Whether the stream's strategy asks for a STATE. One of the author's that fails ends the stream."""
        try:
            return bool(self.spec.strategy.is_due(since))
        except (Exception, SystemExit) as error:
            where = f"stream '{self.name}' ({self.spec.place})"
            fact = f"{where}: its bookmark strategy {self.spec.strategy!r:.60} failed: {short(error)}"
            self.failures.end(StreamError(self.name, fact))
            return False

    def save(self) -> None:
        """Put what is safe to say now into the state, for a STATE that follows."""
        for task in self.open_tasks:
            self.saved.merge(task.progress())
        self.since_rows = self.since_pages = self._ended_tasks = 0
        self._since = self.run.clock.monotonic()

    def save_state(self, *, between: bool = False, covers: bool = False) -> None:
        """STATE with what is safe to say now; nothing in a run that leaves rows out on purpose.

        Args:
            between: it stands between two streams, and may be put off.
            covers: it comes also where it says the same as the last one, if rows came since.
        """
        run = self.run
        if run.limit is not None or run.stop.error is not None:
            return
        self.save()
        if not (between and run.ledger.puts_off()):
            run.say_state(covers=covers)


def _recurring(run: PlannedRun, name: str) -> Recurring | None:
    """Which rows of a stream may come again. None: those of a full table are all wanted, and of a source that gives
    only what lies behind the bookmark none do."""
    planned, root, family = run.by_name[name], run.by_name.get(run.root), run.family
    spec = planned.spec
    if run.pushes and not planned.key_properties:
        return None  # two equal messages are two
    if planned.versions or (root is not None and root.versions):
        return None
    if not planned.key_properties and (name != family.root or spec.bookmark is not None):
        return None  # equal rows may be two: of two parents
    if name != family.root:
        return "all" if any(family.keys[one] is not None for one in family.above[name]) else None
    if planned.bookmark_key is None or (spec.resume == "exclusive" and spec.lookback is None and not spec.signpost):
        return None
    made = spec.bookmark is not None or spec.post_transform is not None
    # Where a key may come twice in one reading, newest first, or in two partitions, all of them must be known.
    anywhere = planned.key_properties and (planned.order != "asc" or spec.partitions is not None)
    return "all" if made or anywhere or spec.lookback is not None or spec.signpost else "top"
