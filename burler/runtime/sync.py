"""The sync loop: the only place where the chain is put together.

    user function -> pull -> shape -> bookmark -> sink

One engine drives every mode. STATE travels in the same sequence as the records it covers.
"""

from __future__ import annotations

import copy
import datetime as dt
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from burler.runtime.outlet import schema_of
from burler.runtime.plan import PlannedRun
from burler.runtime.session import Session
from burler.runtime.signals import Stopper
from burler.runtime.stream import FATAL, SyncRun
from burler.settings import Settings
from burler.singer import state as st
from burler.singer.catalog import Catalog
from burler.singer.messages import Message, State
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


_BIG_STATE = 1024  # bytes of a STATE's value, from which on it is spaced between small streams
_STATE_SECONDS = 5.0  # the longest that such a STATE is put off


class Engine:
    """Runs a plan into a sink."""

    def __init__(
        self,
        session: Session,
        plan: tuple[PlannedRun, ...],
        sink: Sink,
        *,
        catalog: Catalog,
        state: dict[str, Any] | None = None,
        settings: Settings | None = None,
        stopper: Stopper | None = None,
        now: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
        limit: int | None = None,
    ) -> None:
        self.session = session
        self.plan = plan
        self.sink: Sink = _Guarded(sink, self)
        self.catalog = catalog
        self.state = st.check_state(state)
        self.settings = settings or Settings()
        self.stopper = stopper or Stopper()
        self.now = now
        self.limit = limit
        self.lock = threading.RLock()
        self.running: SyncRun | None = None
        self.broken = False

    def run(self) -> SyncResult:
        """Run every stream of the plan; a broken one does not stop the others.

        Raises:
            OutputClosed, StorageError, LockLost: nothing can be written any more.
        """
        result = SyncResult()
        timer = _Timer(self)
        timer.start()
        complete = False
        try:
            self._run_streams(result)
            with self.lock:
                if not self.stopper.requested:
                    self.set_syncing(None)
                    self.write_state()
                if self.stopper.failure is not None:
                    raise self.stopper.failure
            complete = True
        finally:
            timer.stop()
            with self.lock:
                self.sink.close(complete=complete)
        result.state = copy.deepcopy(self.state)
        result.stopped_by = self.stopper.signal
        return result

    def _run_streams(self, result: SyncResult) -> None:
        for i, planned in enumerate(self.plan):
            if self.stopper.requested:
                return
            name = planned.spec.tap_stream_id
            self.set_syncing(name)
            following = self.plan[i + 1].spec.tap_stream_id if i + 1 < len(self.plan) else None
            run: SyncRun | None = None
            try:
                run = SyncRun(self, planned)
                run.sync(following)
            except FATAL:
                raise
            except Exception as error:
                if self.broken:
                    raise
                result.errors[name] = error
                logger.debug("stream '%s' failed", name, exc_info=True)
            finally:
                self.running = None
                for outlet in run.outlets.values() if run is not None else ():
                    result.rows[outlet.planned.tap_stream_id] = outlet.rows

    def set_syncing(self, stream: str | None) -> None:
        """Note in the state which stream the run is in, unless the settings say not to (specs 8)."""
        if self.limit is None:
            st.set_currently_syncing(self.state, stream if self.settings.currently_syncing else None)

    _written: bytes | None = None
    _bytes_since_state = 0
    _state_written = 0.0

    def end_of_stream_state(self, wrote_bytes: int) -> None:
        """STATE after a stream that succeeded. Where there are thousands of small ones and the line is big, it is put
        off until the rows since the last one outweigh it or some time has passed (specs 11.29); the run's last STATE
        always comes."""
        self._bytes_since_state += wrote_bytes
        waited = time.monotonic() - self._state_written
        if self.state_bytes > _BIG_STATE and self._bytes_since_state < self.state_bytes and waited < _STATE_SECONDS:
            return
        self.write_state()

    @property
    def state_bytes(self) -> int:
        """The size of the last STATE's value; 0 before the first one."""
        return len(self._written or b"")

    def write_state(self) -> None:
        """STATE, if it differs from the last one. A run up to a limit has none: it leaves rows out."""
        if self.limit is not None:
            return
        encoded = msgspec.json.encode(self.state)
        if encoded != self._written:
            self.sink.write(State(msgspec.json.decode(encoded)))
            self._written = encoded
            self._bytes_since_state, self._state_written = 0, time.monotonic()


def write_schemas(plan: tuple[PlannedRun, ...], sink: Sink) -> None:
    """SCHEMA of every planned stream, and nothing else; the sink is closed."""
    complete = False
    try:
        for planned in plan:
            for stream in planned.streams:
                sink.write(schema_of(stream))
        complete = True
    finally:
        sink.close(complete=complete)


class _Guarded:
    """The sink, with a note when it fails: after that nothing may be written, least of all a STATE."""

    def __init__(self, sink: Sink, engine: Engine) -> None:
        self._sink = sink
        self._engine = engine

    def _do(self, action: Callable[..., None], *args: Any, **kwargs: Any) -> None:
        try:
            action(*args, **kwargs)
        except BaseException:
            self._engine.broken = True
            raise

    def write(self, message: Message) -> None:
        """See ``Sink.write``."""
        self._do(self._sink.write, message)

    def flush(self) -> None:
        """See ``Sink.flush``."""
        self._do(self._sink.flush)

    def tick(self) -> None:
        """See ``Sink.tick``."""
        self._do(self._sink.tick)

    def close(self, *, complete: bool) -> None:
        """See ``Sink.close``."""
        self._do(self._sink.close, complete=complete and not self._engine.broken)


class _Timer(threading.Thread):
    """Hands on rows that wait while user code blocks, and lets the sink do what is due by age."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(name="burler-timer", daemon=True)
        self._engine = engine
        self._over = threading.Event()

    def run(self) -> None:
        """Tick until stopped."""
        engine = self._engine
        while not self._over.wait(engine.settings.page_max_age_seconds):
            with engine.lock:
                if self._over.is_set() or engine.stopper.failure is not None:
                    return
                try:
                    engine.session.save_config()
                    if engine.running is not None:
                        engine.running.tick()
                    engine.sink.tick()
                except BaseException as error:
                    engine.stopper.fail(error)
                    return

    def stop(self) -> None:
        """End, and wait for a tick that is under way."""
        self._over.set()
        self.join()
