"""The sync loop: a run, from its first stream to the last STATE.

    user function -> pull -> shape -> bookmark -> sink

One way drives every mode. STATE travels in the same sequence as the records it covers.
"""

from __future__ import annotations

import contextvars
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from burler.clock import Ticker
from burler.engine.catalog.plan import PlannedRun
from burler.engine.run.job import Job, Memory
from burler.engine.run.run import FATAL, Run
from burler.engine.run.signals import STUCK_SECONDS, Reason, Stopper, StopToken
from burler.engine.run.worker import Worker
from burler.events import Failed, Status
from burler.pages import copied

GRACE_SECONDS = 1.0
"""How long a run that is to end waits for threads whose user code may be at its ``finally`` blocks."""

_LOOK_SECONDS = 0.05


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


class Crew:
    """Threads of one purpose, beside the one that starts them. They are daemons: one that is blocked in user code can't
    be woken, and must not keep the process from ending. What one raises ends the run."""

    def __init__(self, stopper: Stopper, stop: StopToken, *, name: str) -> None:
        self._stopper, self._stop, self._name = stopper, stop, name
        self._ended = threading.Condition()
        self._busy = self._started = 0

    def start(self, action: Callable[[], None]) -> None:
        """Run ``action`` in a thread of its own, in an empty context: what is bound here is no concern of it."""
        with self._ended:
            self._busy += 1
            self._started += 1

        def work() -> None:
            try:
                contextvars.Context().run(action)
            except BaseException as error:
                self._stopper.fail(error)
            finally:
                with self._ended:
                    self._busy -= 1
                    self._ended.notify_all()

        threading.Thread(target=work, name=f"{self._name}-{self._started}", daemon=True).start()

    def wait(self) -> bool:
        """Wait until all have ended: True. Where the run, or a round, is to end, no longer than a moment, where the
        stream can't go on, for ten seconds: False if some are still busy then."""
        deadline = math.inf
        while True:
            with self._ended:
                if self._busy:  # short waits: a signal's handler runs between them, and says that the run is to end
                    self._ended.wait(_LOOK_SECONDS)
                if not self._busy:
                    return True
            reason, now = self._stop.reason, time.monotonic()
            if reason:
                deadline = min(deadline, now + (GRACE_SECONDS if reason >= Reason.CUT else STUCK_SECONDS))
            if now >= deadline:
                return False


def sync(run: Run, drive: Callable[[SyncResult], None] | None = None) -> SyncResult:
    """Run every stream of the plan; a broken one does not stop the others.

    Args:
        drive: runs them, if not each once.

    Raises:
        OutputClosed, StorageError, LockLost: nothing can be written any more.
    """
    result, stopper = SyncResult(), run.stopper
    # The sink sees which streams come, and how: what is wrong with that shows before the first message.
    for stream in run.plan.streams if run.limit is None else ():
        run.sink.choose(stream.stream, stream.told("batch-enabled"))
    run.sink.note_streams(run.plan.seen, unseen=run.plan.unseen)
    run.sink.tell_states(run.state_is_out)
    run.acknowledgements.start()
    stopper.hook_since, stopper.on_stuck = run.hook_since, run.leave
    stopper.listeners.append(run.tell)
    complete = False
    try:
        if drive is not None:
            drive(result)
        else:
            with run.clock.ticking(Ticker(partial(run.beside, run.tick), run.settings.page_max_age_seconds)):
                _sync_each(run, result)
        with run.lock:
            if not stopper.requested or run.ledger.is_put_off:
                run.say_state()
            if run.stop.error is not None:
                raise run.stop.error
        complete = True
    except BaseException as failure:
        stopper.fail(failure)  # threads beside this one hear of it
        raise
    finally:
        try:
            with run.lock:
                run.sink.close(complete=complete)
        finally:
            run.acknowledgements.close()  # of the last STATE; a lake's has only just been written
    for name, error in run.late_errors.items():
        result.errors.setdefault(name, error)
    result.state = copied(run.state)
    result.stopped_by = stopper.signal
    return result


def _sync_each(run: Run, result: SyncResult) -> None:
    """Streams of the plan, one after the other or several at a time; the first one on this thread."""
    crew = Crew(run.stopper, run.stop, name="burler-stream")
    first = run.waiting.popleft() if run.waiting else None

    def work(planned: PlannedRun | None) -> None:
        while planned is not None:
            job = sync_family(run, planned, result.rows, result.errors)
            if job is not None and job.last is not None:
                run.progress[job.name] = job.last.progress()
            planned = run.next()

    for _ in range(1, min(run.settings.workers, len(run.plan.runs)) if run.limit is None else 1):
        crew.start(lambda: work(run.next()))
    work(first)
    if not crew.wait():
        with run.lock:
            for job in list(run.jobs):
                job.abandon()
                _add_up(job, result.rows, result.errors)


def sync_family(
    run: Run,
    planned: PlannedRun,
    rows: dict[str, int],
    errors: dict[str, BaseException],
    memory: Memory | None = None,
    *,
    stop: StopToken | None = None,
) -> Job | None:
    """Read a family once, and add what came of it; None if it could not begin, or must not any more. ``stop``: what
    ends it, if not the run's.

    Raises:
        errors of the sink and of the run as a whole.
    """
    name = planned.spec.tap_stream_id
    job: Job | None = None
    try:
        with run.lock:
            if memory is not None and stop is not None and stop.reason:
                return None  # another one may have begun in its place already
            job = Job(run, planned, memory, stop=(stop or run.stop).child())
        _drive(job, rows, errors)
    except FATAL:
        raise
    except Exception as error:
        if run.stop.error is not None:
            raise
        with run.lock:
            errors[name] = error
            run.events.tell(Failed(name, None, error))
    finally:
        with run.lock:
            if job in run.jobs:
                run.jobs.remove(job)
    return job


def _add_up(job: Job, rows: dict[str, int], errors: dict[str, BaseException]) -> None:
    """Add what came of a job, once."""
    for stream, writer in job.writers.items():
        rows[stream] = rows.get(stream, 0) + writer.rows
    for failed, reason in job.failures.errors().items():
        errors.setdefault(failed, reason)


def _drive(job: Job, rows: dict[str, int], errors: dict[str, BaseException]) -> None:
    """Run a job to the end, or to a Stop. Whatever is raised, a STATE of what is out has been written.

    Raises:
        errors of the sink and of the run as a whole; those of the stream stand in ``job.failures``.
    """
    run = job.run
    with run.lock:
        job.begin()
    status: Status = "unfinished"  # what comes out of a worker ends the whole run
    try:
        _run_workers(job)
        with run.lock:
            if job.stop.reason < Reason.LEFT_BEHIND:
                status = job.complete()
    finally:
        with run.lock:
            if job in run.jobs:  # else it was left behind
                _add_up(job, rows, errors)
                job.end(status)


def _run_workers(job: Job) -> None:
    """The first on this thread; where there are partitions, others beside it."""
    run, more = job.run, 0
    crew = Crew(run.stopper, job.stop, name=f"burler-{job.name}")
    if job.spec.partitions is not None and run.limit is None and run.part is None:
        more = (run.settings.partition_workers or job.spec.workers) - 1
    first, *others = (Worker(job) for _ in range(1 + more))
    job.outboxes = [first.outbox, *(one.outbox for one in others)]
    for worker in others:
        crew.start(partial(_run_worker, job, worker))
    _run_worker(job, first)
    if not crew.wait():
        with run.lock:
            job.abandon_workers()


def _run_worker(job: Job, worker: Worker) -> None:
    """Run a worker. What ends it is the stream's error, or the whole run's."""
    try:
        worker.run()
    except BaseException as failed:
        # SystemExit of code that an author's object runs somewhere ends no process.
        error = job.as_error(failed) if isinstance(failed, SystemExit) else failed
        if isinstance(error, Exception) and not isinstance(error, FATAL) and job.run.stop.error is not error:
            with job.run.lock:
                job.failures.end(error)
            return
        job.stop.stop(Reason.ENDED)
        raise
