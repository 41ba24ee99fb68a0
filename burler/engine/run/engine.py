"""The engine: what all streams of a run share. Its lock guards everything behind the pull."""

from __future__ import annotations

import datetime as dt
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from burler.clock import Clock
from burler.engine.acknowledge import Acknowledgements
from burler.engine.catalog.plan import Plan, PlannedStream
from burler.engine.run.partitions import GivenPartition
from burler.engine.run.signals import Stopper
from burler.engine.run.stop import Reason, StopToken
from burler.engine.run.workers import stopper_here
from burler.engine.session import Session
from burler.engine.state.ledger import Ledger
from burler.errors import BatchError, DataError, LockLost, OutputClosed, StorageError, StreamError, UsageError
from burler.events import Events, Failed, StateWritten
from burler.settings import Settings
from burler.singer.messages import Message, State
from burler.sinks.base import Forward, Sink

# Errors of the whole run: no other stream would fare better, and no STATE may follow them.
FATAL: tuple[type[BaseException], ...] = (OutputClosed, StorageError, DataError, LockLost, UsageError, MemoryError)


class GuardedSink(Forward):
    """The sink; when it fails, the run has: after that nothing may be written, least of all a STATE."""

    def __init__(self, sink: Sink, stop: StopToken) -> None:
        super().__init__(sink)
        self._stop = stop

    def _do(self, action: Callable[..., None], *args: Any, **kwargs: Any) -> None:
        if self._stop.reason >= Reason.LEFT_BEHIND:
            return  # a thread that has not heard of it: what it writes would stand behind a hole, or the end
        try:
            action(*args, **kwargs)
        except BatchError:
            raise  # a row that a file can't hold: it was not taken, and its stream ends
        except BaseException as error:
            self._stop.fail(error)
            raise

    def write(self, message: Message) -> None:
        """See ``Sink.write``."""
        self._do(self._sink.write, message)

    def flush(self) -> None:
        """See ``Sink.flush``."""
        self._do(self._sink.flush)

    def settle(self) -> None:
        """See ``Sink.settle``."""
        self._do(self._sink.settle)

    def tick(self) -> None:
        """See ``Sink.tick``."""
        self._do(self._sink.tick)

    def close(self, *, complete: bool) -> None:
        """See ``Sink.close``."""
        complete = complete and self._stop.error is None
        self._stop.stop(Reason.LEFT_BEHIND)
        try:
            self._sink.close(complete=complete)
        except BaseException as error:
            self._stop.fail(error)
            raise


class Engine:
    """Session and plan, sink and state, clock, lock and stop.

    Args:
        limit: rows of each stream, at the most: then nothing is saved.
        replan: makes the plan of a tail after another discovery.
        part: one partition alone, of the only stream of the plan, for another run.

    Attributes:
        running: what is being read, in the order in which it began. waiting: what is still to be read.
        late_errors: of streams that have ended.
    """

    def __init__(
        self,
        session: Session,
        plan: Plan,
        sink: Sink,
        *,
        state: dict[str, Any] | None = None,
        settings: Settings | None = None,
        stopper: Stopper | None = None,
        now: Callable[[], dt.datetime] | None = None,
        clock: Clock | None = None,
        limit: int | None = None,
        events: Events | None = None,
        replan: Callable[[], Plan] | None = None,
        part: GivenPartition | None = None,
    ) -> None:
        self.session = session
        self.plan = plan
        self.stopper = stopper or Stopper()
        self.stop = self.stopper.stop.child()
        self.sink: Sink = GuardedSink(sink, self.stop)
        self.settings = settings or Settings()
        self.clock = clock or Clock()
        always = self.settings.tail and limit is None
        self.ledger = Ledger(state, self.clock, always=always, writes=limit is None)
        self.state = self.ledger.document
        self.now = now or self.clock.now
        self.limit = limit
        self.replan = replan
        self.part = part
        self.lock = threading.RLock()
        self.changed = threading.Condition()
        self.running: list[Any] = []
        self.events = events or Events()
        self.acknowledgements = Acknowledgements(
            session,
            plan,
            self.settings,
            self.clock,
            given=self.state,
            client_of=self.client_of,
            stop=self.stop,
            failed=self.stream_failed,
            died=self.stopper.fail,
        )
        self.waiting = deque(plan.runs)
        self.late_errors: dict[str, BaseException] = {}

    def write_state(self) -> None:
        """STATE with what is safe to say of all streams now, also where that is the same as before: it covers what came
        since. Files that hold records before it are closed for it."""
        for run in self.running:
            run.save()
        self.say_state()
        self.sink.settle()

    def say_state(self) -> None:
        """STATE, if it says anything new."""
        self.note_syncing()
        value = self.ledger.snapshot()
        if value is not None:
            self.sink.write(State(msgspec.json.decode(value)))
            self.ledger.is_out(value)
            self.events.tell(StateWritten(len(value)))

    def pause(self, seconds: float, until: Callable[[], bool], *, clock: Clock | None = None) -> None:
        """Let time pass for a function of the author's, no longer than ``until`` says; by the run's clock, if no other
        one is given."""
        clock = clock or self.clock
        end = clock.monotonic() + seconds
        # A Stop in a condition could leave its lock as it should not be.
        with stopper_here(self.stopper).our_code(), self.changed:
            while not until() and (left := end - clock.monotonic()) > 0:
                clock.wait(self.changed, left)

    def client_of(self, stream: str) -> tuple[int, Any]:
        """The client that a stream's round began with, while it runs, and its number: its functions have one."""
        run = next((run for run in tuple(self.running) if stream in run.family.names), None)
        if run is None or not run.client_numbers:
            return self.session.clients.get()
        return self.session.clients.numbered(min(tuple(run.client_numbers)))

    def tell(self) -> None:
        """Wake whoever waits: something has changed."""
        with self.changed:
            self.changed.notify_all()

    def stream_failed(self, name: str, error: StreamError) -> None:
        """A function of a stream's failed that is not called in its own run: for an acknowledgement."""
        with self.lock:
            run = next((run for run in self.running if name in run.family.names), None)
            if run is not None:
                run.failures.end_of(name, error)
            else:
                self.late_errors.setdefault(name, error)
                self.events.tell(Failed(name, None, error))

    def planned(self, stream: str) -> PlannedStream | None:
        """A stream of the plan; None if it is not selected."""
        return next((one for one in self.plan.streams if one.tap_stream_id == stream), None)

    def note_syncing(self) -> None:
        """Note in the state which stream the run is in, unless the settings say not to: the first that has
        not come to its end."""
        name = self.running[0].at if self.running else None
        if name is None and self.waiting and self.stop.reason < Reason.LEFT_BEHIND:
            name = self.waiting[0].spec.tap_stream_id
        # Rounds of a tail are of all streams.
        self.ledger.note_syncing(name if self.settings.currently_syncing and not self.settings.tail else None)
