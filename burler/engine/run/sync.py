"""The sync loop: a run, from its first stream to the last STATE.

    user function -> pull -> shape -> bookmark -> sink

One engine drives every mode. STATE travels in the same sequence as the records it covers.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from burler.clock import Ticker
from burler.engine.catalog.plan import Plan, PlannedRun
from burler.engine.run.engine import FATAL, Engine
from burler.engine.run.job import Job
from burler.engine.run.stop import Reason, StopToken
from burler.engine.run.worker import Worker
from burler.engine.run.workers import Crew, Undisturbed, stopper_here
from burler.engine.state.progress import Progress
from burler.engine.tail.memory import Memory
from burler.engine.writer.writer import schema_of
from burler.errors import StreamError
from burler.events import Failed, Status
from burler.logs import short
from burler.sinks.base import Sink

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class SyncResult:
    """How a run ended: rows per stream, errors per stream, the last state, and the signal that ended it."""

    rows: dict[str, int] = field(default_factory=dict)
    errors: dict[str, BaseException] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)
    stopped_by: int | None = None

    @property
    def exit_code(self) -> int:
        """0, or 1 if a stream failed."""
        return 1 if self.errors else 0


class Run(Engine):
    """Runs a plan into a sink.

    Attributes:
        progress: how far the last call of each stream's function has come; that is all of it where there was one.
    """

    running: list[Job]

    def run(self, drive: Callable[[SyncResult], None] | None = None) -> SyncResult:
        """Run every stream of the plan; a broken one does not stop the others.

        Args:
            drive: runs them, if not each once.

        Raises:
            OutputClosed, StorageError, LockLost: nothing can be written any more.
        """
        result = SyncResult()
        self.progress: dict[str, Progress] = {}
        self._choose_forms()
        self.sink.tell_states(self.acknowledgements.state_is_out)
        self.acknowledgements.start()
        self.stopper.hook_since = self._hook_since
        self.stopper.on_stuck = self._leave
        self.stopper.listeners.append(self.tell)
        complete = False
        try:
            (drive or self._run_streams)(result)
            with self.lock:
                if not self.stopper.requested or self.ledger.is_put_off:
                    self.say_state()
                if self.stop.error is not None:
                    raise self.stop.error
            complete = True
        except BaseException as failure:
            self.stopper.fail(failure)  # threads beside this one hear of it
            raise
        finally:
            self.stopper.listeners.remove(self.tell)
            try:
                with self.lock:
                    self.sink.close(complete=complete)
            finally:
                self.acknowledgements.close()  # of the last STATE; a lake's has only just been written
        for name, error in self.late_errors.items():
            result.errors.setdefault(name, error)
        result.state = copy.deepcopy(self.state)
        result.stopped_by = self.stopper.signal
        return result

    def _choose_forms(self) -> None:
        """Let the sink see which streams come, and how: what is wrong with that shows before the first message."""
        for stream in self.plan.streams if self.limit is None else ():
            self.sink.choose(stream.stream, stream.batch_enabled)

    def _run_streams(self, result: SyncResult) -> None:
        """Streams of the plan, one after the other or several at a time; the first one on this thread."""
        with self.clock.ticking(Ticker(partial(self.beside, self._tick), self.settings.page_max_age_seconds)):
            self._run_each(result)

    def _tick(self) -> None:
        """What is due while user code blocks: rows that wait go out, a STATE that is due comes, the sink does what is
        due by age."""
        self.session.save_config()
        for run in list(self.running):
            run.tick()
        self.sink.tick()

    def beside(self, action: Callable[[], None]) -> None:
        """Act under the lock, in a thread beside the run's: what goes wrong there ends the run."""
        with self.lock:
            if self.stop.error is None:
                try:
                    action()
                except BaseException as error:
                    self.stopper.fail(error)

    def _run_each(self, result: SyncResult) -> None:
        crew = Crew(self.stop, name="burler-stream")
        first = self.waiting.popleft() if self.waiting else None
        for _ in range(1, min(self.settings.workers, len(self.plan.runs)) if self.limit is None else 1):
            crew.start(partial(self._beside, result))
        while first is not None:
            self._run_stream(first, result)
            first = self._next()
        if not crew.wait():
            with self.lock:
                for run in list(self.running):
                    run.abandon()

    def _hook_since(self) -> float | None:
        """Without the lock: whoever runs the hook holds it."""
        writers = [writer for run in tuple(self.running) for writer in tuple(run.writers.values())]
        return min((writer.hook_since for writer in writers if writer.hook_since is not None), default=None)

    def _next(self) -> PlannedRun | None:
        with self.lock:
            return self.waiting.popleft() if self.waiting and not self.stop.reason else None

    def _beside(self, result: SyncResult) -> None:
        """Streams in a thread beside the first."""
        try:
            while (planned := self._next()) is not None:
                self._run_stream(planned, result)
        except BaseException as error:
            self.stopper.fail(error)

    def _run_stream(self, planned: PlannedRun, result: SyncResult) -> None:
        run = self.run_one(planned, result.rows, result.errors)
        if run is not None and run.last is not None:
            self.progress[run.name] = run.last.progress()

    def run_one(
        self,
        planned: PlannedRun,
        rows: dict[str, int],
        errors: dict[str, BaseException],
        memory: Memory | None = None,
        *,
        stop: StopToken | None = None,
    ) -> Job | None:
        """Run one sync function, and add what came of it; None if it could not begin, or must not any more. ``stop``:
        what ends it, if not the run's.

        Raises:
            errors of the sink and of the run as a whole.
        """
        name = planned.spec.tap_stream_id
        run: Job | None = None
        try:
            with self.lock:
                if memory is not None and stop is not None and stop.reason:
                    return None  # another one may have begun in its place already
                run = Job(self, planned, memory, stop=(stop or self.stop).child())
            self._drive_job(run)
        except FATAL:
            raise
        except Exception as error:
            if self.stop.error is not None:
                raise
            with self.lock:
                errors[name] = error
                self.events.tell(Failed(name, None, error))
        finally:
            with self.lock:
                if run is not None:
                    if run in self.running:
                        self.running.remove(run)
                    for writer in run.writers.values():
                        stream = writer.planned.tap_stream_id
                        rows[stream] = rows.get(stream, 0) + writer.rows
                    for failed, reason in run.failures.errors().items():
                        errors.setdefault(failed, reason)
        return run

    def _drive_job(self, job: Job) -> None:
        """Run a job to the end, or to a Stop. Whatever is raised, a STATE of what is out has been written.

        Raises:
            errors of the sink and of the run as a whole; those of the stream stand in ``job.failures``.
        """
        with self.lock:
            job.begin()
        status: Status = "unfinished"  # what comes out of a worker ends the whole run
        try:
            self._run_workers(job)
            with self.lock:
                if job.stop.reason < Reason.LEFT_BEHIND:
                    status = job.complete()
        finally:
            with self.lock:
                if job.is_running:  # else it was left behind
                    job.end(status)

    def _run_workers(self, job: Job) -> None:
        """The first on this thread; where there are partitions, others beside it."""
        crew = Crew(job.stop, name=f"burler-{job.name}")
        first, more = Worker(job, stopper_here(self.stopper)), 0
        job.workers = [first]
        if job.spec.partitions is not None and self.limit is None and self.part is None:
            more = (self.settings.partition_workers or job.spec.workers) - 1
        for _ in range(more):
            worker = Worker(job, Undisturbed())
            job.workers.append(worker)
            crew.start(partial(self._drive, job, worker, is_first=False))
        self._drive(job, first, is_first=True)
        if not crew.wait():
            with self.lock:
                job.abandon_workers()

    def _drive(self, job: Job, worker: Worker, *, is_first: bool) -> None:
        """Run a worker. What ends it is the stream's error, or the whole run's."""
        try:
            worker.run()
        except BaseException as error:
            if isinstance(error, SystemExit):  # of code that an author's object runs somewhere: it ends no process
                error = StreamError(job.name, f"stream '{job.name}' ({job.place}): {short(error)}")
            if isinstance(error, Exception) and not isinstance(error, FATAL) and self.stop.error is not error:
                with self.lock:
                    job.failures.end(error)
                return
            job.stop.stop(Reason.ENDED)
            if is_first:
                raise
            self.stopper.fail(error)

    def _leave(self) -> None:
        """User code does not come to its end although the run is to: the last STATE goes out all the same, and the
        process ends. Called by the watchdog."""
        if self.lock.acquire(timeout=1.0):
            logger.warning("a function does not end although it was told to; the process ends without it")
            if self.stop.error is None:
                self.write_state()


def write_schemas(plan: Plan, sink: Sink) -> None:
    """SCHEMA of every planned stream, and nothing else; the sink is closed."""
    complete = False
    try:
        for stream in plan.streams:
            sink.write(schema_of(stream))
        complete = True
    finally:
        sink.close(complete=complete)
