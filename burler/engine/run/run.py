"""One run: what all of its streams share. Its lock guards everything behind the pull."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from burler.clock import Clock
from burler.engine.acknowledge import Acknowledgements, AcknowledgeThread
from burler.engine.catalog.plan import Plan, PlannedRun
from burler.engine.family import Progress
from burler.engine.run.partitions import GivenPartition
from burler.engine.run.signals import Reason, Stopper, StopToken
from burler.engine.session import Session
from burler.engine.state.ledger import Ledger
from burler.errors import BatchError, DataError, LockLost, OutputClosed, StorageError, StreamError, UsageError
from burler.events import Events, Failed, StateOut, StateWritten
from burler.settings import Settings
from burler.singer.messages import State
from burler.sinks import Forward, Sink

logger = logging.getLogger(__name__)

# Errors of the whole run: no other stream would fare better, and no STATE may follow them.
FATAL: tuple[type[BaseException], ...] = (OutputClosed, StorageError, DataError, LockLost, UsageError, MemoryError)


class GuardedSink(Forward):
    """The sink; when it fails, the run has: after that nothing may be written, least of all a STATE."""

    def __init__(self, sink: Sink, stop: StopToken) -> None:
        super().__init__(sink)
        self._stop = stop

    def hand_on(self, action: Callable[..., None], *args: Any) -> None:
        """See ``Forward.hand_on``."""
        if self._stop.reason >= Reason.LEFT_BEHIND:
            return  # a thread that has not heard of it: what it writes would stand behind a hole, or the end
        try:
            action(*args)
        except BatchError:
            raise  # a row that a file can't hold: it was not taken, and its stream ends
        except BaseException as error:
            self._stop.fail(error)
            raise

    def close(self, *, complete: bool) -> None:
        """See ``Sink.close``."""
        complete = complete and self._stop.error is None
        self._stop.stop(Reason.LEFT_BEHIND)
        try:
            self._sink.close(complete=complete)
        except BaseException as error:
            self._stop.fail(error)
            raise


class Run:
    """Session and plan, sink and state, clock, lock and stop; who drives the streams is above.

    Args:
        limit: rows of each stream, at the most: then nothing is saved.
        replan: makes the plan of a tail after another discovery.
        part: one partition alone, of the only stream of the plan, for another run.

    Attributes:
        jobs: families that are read just now, in the order in which they began. waiting: what is still to be read.
        progress: how far the last call of each stream's function has come; that is all of it where there was one.
        late_errors: of streams that have ended.
    """

    def __init__(
        self,
        session: Session,
        plan: Plan,
        sink: Sink,
        *,
        state: dict[str, Any],
        settings: Settings,
        stopper: Stopper,
        events: Events,
        clock: Clock | None = None,
        limit: int | None = None,
        replan: Callable[[], Plan] | None = None,
        part: GivenPartition | None = None,
    ) -> None:
        self.session, self.plan, self.settings = session, plan, settings
        self.stopper = stopper
        self.stop = stopper.stop.child()
        self.sink: Sink = GuardedSink(sink, self.stop)
        self.clock = clock or Clock()
        self.ledger = Ledger(state, self.clock, always=settings.tail and limit is None, writes=limit is None)
        self.state = self.ledger.document
        self.limit, self.replan, self.part = limit, replan, part
        self.lock = threading.RLock()
        self.changed = threading.Condition()
        self.events = events
        self.acknowledgements = (AcknowledgeThread if settings.tail else Acknowledgements)(
            session,
            plan,
            settings,
            self.clock,
            given=self.state,
            stopper=stopper,
            client_of=self.client_of,
            failed=self.stream_failed,
        )
        self.jobs: list[Any] = []
        self.waiting = deque(plan.runs)
        self.progress: dict[str, Progress] = {}
        self.late_errors: dict[str, BaseException] = {}

    # ---- under the lock ----------------------------------------------------------------------------------

    def write_state(self) -> None:
        """STATE with what is safe to say of all streams now, also where that is the same as before: it covers what came
        since. Files that hold records before it are closed for it."""
        for job in self.jobs:
            job.save()
        self.say_state(covers=True)
        self.sink.settle()

    def say_state(self, *, covers: bool = False) -> None:
        """STATE, if it says anything new. ``covers``: or if rows came since the last one."""
        self.note_syncing()
        message = self.ledger.next_state(covers=covers)
        if message is not None:
            self.sink.write(message)
            self.events.tell(StateWritten(self.ledger.size))

    def state_is_out(self, message: State) -> None:
        """The line of a STATE has been written."""
        self.acknowledgements.state_is_out(message)
        self.events.tell(StateOut(message.number))

    def note_syncing(self) -> None:
        """Note in the state which stream the run is in, unless the settings say not to: the first that has
        not come to its end."""
        name = self.jobs[0].at if self.jobs else None
        if name is None and self.waiting and self.stop.reason < Reason.LEFT_BEHIND:
            name = self.waiting[0].spec.tap_stream_id
        # Rounds of a tail are of all streams.
        self.ledger.note_syncing(name if self.settings.currently_syncing and not self.settings.tail else None)

    def tick(self) -> None:
        """What is due while user code blocks: rows that wait go out, a STATE that is due comes, the sink does what is
        due by age."""
        self.session.save_config()
        for job in list(self.jobs):
            job.tick()
        self.sink.tick()

    # ---- from any thread ---------------------------------------------------------------------------------

    def next(self) -> PlannedRun | None:
        """What is to be read next."""
        with self.lock:
            return self.waiting.popleft() if self.waiting and not self.stop.reason else None

    def beside(self, action: Callable[[], None]) -> None:
        """Act under the lock, in a thread beside the run's: what goes wrong there ends the run."""
        with self.lock:
            if self.stop.error is None:
                try:
                    action()
                except BaseException as error:
                    self.stopper.fail(error)

    def pause(self, seconds: float, until: Callable[[], bool], *, clock: Clock | None = None) -> None:
        """Let time pass for a function of the author's, no longer than ``until`` says; by the run's clock, if no other
        one is given."""
        clock = clock or self.clock
        end = clock.monotonic() + seconds
        # A Stop in a condition could leave its lock as it should not be.
        with self.stopper.our_code(), self.changed:
            while not until() and (left := end - clock.monotonic()) > 0:
                clock.wait(self.changed, left)

    def tell(self) -> None:
        """Wake whoever waits: something has changed."""
        with self.changed:
            self.changed.notify_all()

    def client_of(self, stream: str) -> tuple[int, Any]:
        """The client that a stream's round began with, while it runs, and its number: its functions have one."""
        job = next((job for job in tuple(self.jobs) if stream in job.family.names), None)
        if job is None or not job.client_numbers:
            return self.session.clients.get()
        return self.session.clients.get(min(tuple(job.client_numbers)))

    def stream_failed(self, name: str, error: StreamError) -> None:
        """A function of a stream's failed that is not called in its own run: for an acknowledgement."""
        with self.lock:
            job = next((job for job in self.jobs if name in job.family.names), None)
            if job is not None:
                job.failures.end_of(name, error)
            else:
                self.late_errors.setdefault(name, error)
                self.events.tell(Failed(name, None, error))

    # ---- from the watchdog -------------------------------------------------------------------------------

    def hook_since(self) -> float | None:
        """Since when a hook of the author's has been at one row. Without the lock: whoever runs the hook holds it."""
        writers = [writer for job in tuple(self.jobs) for writer in tuple(job.writers.values())]
        return min((writer.hook_since for writer in writers if writer.hook_since is not None), default=None)

    def leave(self) -> None:
        """User code does not come to its end although the run is to: the last STATE goes out all the same, and the
        process ends."""
        if self.lock.acquire(timeout=1.0):
            logger.warning("a function does not end although it was told to; the process ends without it")
            if self.stop.error is None:
                self.write_state()
