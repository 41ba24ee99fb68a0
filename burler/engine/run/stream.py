"""One sync function, run once: the workers that drive its tasks."""

from __future__ import annotations

from functools import partial

from burler.engine.catalog.plan import PlannedRun
from burler.engine.run.engine import FATAL, Engine
from burler.engine.run.job import Job
from burler.engine.run.stop import Reason, StopToken
from burler.engine.run.worker import Worker
from burler.engine.run.workers import Crew, Undisturbed, stopper_here
from burler.engine.tail.memory import Memory
from burler.errors import StreamError
from burler.events import Status
from burler.logs import short


class SyncRun(Job):
    """A job with the workers that drive its tasks, from the first to the last."""

    def __init__(self, engine: Engine, planned: PlannedRun, memory: Memory | None = None, *, stop: StopToken) -> None:
        super().__init__(engine, planned, memory, stop=stop)
        self.workers: list[Worker] = []

    def cut_now(self) -> None:
        """This round is to end, and the tail goes on: user code is interrupted where it can be."""
        self.stop.stop(Reason.CUT)
        self.engine.stopper.look()

    def sync(self) -> None:
        """Run to the end, or to a Stop. Whatever is raised, a STATE of what is out has been written.

        Raises:
            errors of the sink and of the run as a whole; those of the stream stand in ``failures``.
        """
        engine = self.engine
        with engine.lock:
            self.begin()
            self.workers = [Worker(self, stopper_here(engine.stopper))]
        status: Status = "unfinished"  # what comes out of a worker ends the whole run
        try:
            self._run_workers()
            with engine.lock:
                if self.stop.reason < Reason.LEFT_BEHIND:
                    status = self.complete()
        finally:
            with engine.lock:
                if self.is_running:  # else it was left behind
                    self.end(status)

    def _run_workers(self) -> None:
        engine = self.engine
        crew = Crew(self.stop, name=f"burler-{self.name}")
        if self.spec.partitions is not None and engine.limit is None and engine.part is None:
            for _ in range(1, engine.settings.partition_workers or self.spec.workers):
                worker = Worker(self, Undisturbed())
                self.workers.append(worker)
                crew.start(partial(self._drive, worker))
        self._drive(self.workers[0])
        if not crew.wait():
            with engine.lock:
                self._abandon_workers()

    def _drive(self, worker: Worker) -> None:
        """Run a worker. What ends it is the stream's error, or the whole run's."""
        engine = self.engine
        try:
            worker.run()
        except BaseException as error:
            if isinstance(error, SystemExit):  # of code that an author's object runs somewhere: it ends no process
                error = StreamError(self.name, f"stream '{self.name}' ({self.place}): {short(error)}")
            if isinstance(error, Exception) and not isinstance(error, FATAL) and engine.stop.error is not error:
                with engine.lock:
                    self.failures.end(error)
                return
            self.stop.stop(Reason.ENDED)
            if worker is self.workers[0]:
                raise
            engine.stopper.fail(error)

    def _abandon_workers(self) -> None:
        for worker in self.workers:
            if not worker.over:
                worker.abandon()

    def abandon(self) -> None:
        """The run ends, and user code of this stream does not: what it has yielded goes out, with the STATE of that."""
        self._abandon_workers()
        self.end("stopped")
        self.stop.stop(Reason.LEFT_BEHIND)

    def tick(self) -> None:
        """Rows that wait while user code blocks go out, and a STATE that is due; called by the timer under the
        engine's lock.

        Not where a function of the author's sees the rows: that is called where the stream's own function runs, since
        what it uses may belong to that thread (a database connection does).
        """
        if self.has_hooks:
            return
        for worker in self.workers:
            if not worker.over:
                worker.tick()
        self.save_if_due()
