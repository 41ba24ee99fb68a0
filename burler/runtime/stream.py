"""One sync function, run once: its pull, the outlets of its streams, and when a STATE is due."""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from burler.context import StreamRun
from burler.declare.inject import call
from burler.declare.strategies import EveryN
from burler.errors import DataError, LockLost, OutputClosed, StorageError, StreamError, UsageError
from burler.pipeline.pull import Pull, split
from burler.runtime import logs
from burler.runtime.logs import short
from burler.runtime.outlet import Outlet
from burler.runtime.pages import PageSize
from burler.runtime.plan import PlannedRun
from burler.runtime.signals import Stop
from burler.singer import state as st

if TYPE_CHECKING:
    from burler.runtime.sync import Engine

logger = logging.getLogger(__name__)

# Errors of the whole run: no other stream would fare better, and no STATE may follow them.
FATAL = (OutputClosed, StorageError, DataError, LockLost, UsageError, MemoryError)


class SyncRun:
    """Lives from SCHEMA to the stream's last STATE. The engine's lock guards everything behind the pull."""

    def __init__(self, engine: Engine, planned: PlannedRun) -> None:
        self.engine = engine
        self.spec = planned.spec
        self.name = planned.spec.tap_stream_id
        state = engine.state
        self.outlets = {
            stream.tap_stream_id: Outlet(
                stream,
                engine.sink,
                state,
                initial=_bookmark(state, stream.tap_stream_id, stream.bookmark_key),
                now=engine.now,
            )
            for stream in planned.streams
        }
        own = self.outlets.get(self.name)
        key = own.planned.bookmark_key if own else planned.spec.bookmark_key
        bookmark = _bookmark(state, self.name, key)
        entry = engine.catalog.entries.get(self.name)
        self.run = StreamRun(
            engine.session.tap,
            self.name,
            bookmark=bookmark if bookmark is not None or key is None else engine.settings.start_date,
            state=copy.deepcopy(st.get_bookmark(state, self.name, "stream_state", {})),
            selected=frozenset(self.outlets),
            schema=own.planned.schema if own else None,
            metadata=own.planned.metadata if own else entry.metadata if entry else None,
            config=engine.session.config,
        )
        assert planned.spec.sync is not None
        self.place = planned.spec.sync.place
        self.pull = Pull(self._start, self.run, place=self.place)
        self.safe_state: dict[str, Any] = copy.deepcopy(self.run.state)
        # A copy: what an author writes into it must not get into a STATE ahead of the rows.
        snapshot = copy.deepcopy(state)
        self.given = engine.session.given(
            state=lambda: snapshot, catalog=lambda: engine.catalog, stream=lambda: self.run
        )
        specs = engine.session.specs
        self._known = {name for name, spec in specs.items() if name == self.name or spec.emitted_by == self.name}
        self.failed: Exception | None = None
        self.since_state = 0
        self.bytes_at_state = 0
        self.page = PageSize(engine.settings)

    def _start(self) -> Any:
        function = self.spec.sync
        assert function is not None
        return call(function.fn, function.names, self.given)

    def sync(self, following: str | None) -> None:
        """Run to the end, or to a Stop. Whatever is raised, a STATE of what is out has been written."""
        engine = self.engine
        begun = time.monotonic()
        own = self.outlets.get(self.name)
        method = own.planned.replication_method if own else self.spec.replication_method
        logger.info("stream '%s': start (sync, %s, bookmark %s)", self.name, method, self.run.bookmark)
        with engine.lock:
            for outlet in self.outlets.values():
                outlet.open()
            engine.stopper.calm()
            engine.running = self
        status = "failed"
        try:
            finished = self._pages()
            with engine.lock:
                if finished and engine.stopper.failure is None:
                    for outlet in self.outlets.values():
                        outlet.complete()
                    engine.set_syncing(following)
                    status = "succeeded"
                else:
                    status = "stopped"
        finally:
            with engine.lock:
                engine.running = None
                if not engine.broken and engine.stopper.failure is None:
                    self._save_state()
            self._log_end(status, time.monotonic() - begun)

    def _pages(self) -> bool:
        """Pull and write page after page; True if the function came to its end."""
        engine = self.engine
        alive: bool | None = True
        try:
            while alive and not engine.stopper.requested and self.failed is None:
                begun = time.monotonic()
                alive = self._fill(self._limit())
                if alive is None:
                    break
                spent = time.monotonic() - begun
                after = self._encode_state()
                with engine.lock:
                    if engine.stopper.failure is not None:
                        return False
                    self.process()
                    self.safe_state = msgspec.json.decode(after)
                    outlets = self.outlets.values()
                    size = sum(outlet.bytes for outlet in outlets)
                    self.page.adapt(rows=sum(outlet.rows for outlet in outlets), size=size, seconds=spent)
                    if self._due():
                        self._save_state()
        finally:
            # What user code yielded before it was stopped or failed goes out, too.
            self._finish()
        if self.failed is not None:
            raise self.failed
        return alive is False

    def _fill(self, limit: int) -> bool | None:
        """Run user code until a page is full: True if there is more, False at its end, None if it was stopped.

        User code may catch Stop, or raise something else on its way out: it was stopped all the same, and
        must not pass for complete.
        """
        stopper = self.engine.stopper
        try:
            with stopper.user_code():
                alive = self.pull.fill(limit)
        except (Stop, KeyboardInterrupt) as stop:
            if not stopper.raised:
                raise StreamError(self.name, f"stream '{self.name}' ({self.place}): {short(stop)}") from stop
            return None
        except BaseException as error:
            if stopper.raised:
                if self.failed is None:
                    logger.warning("stream '%s': its function raised when it was stopped: %s", self.name, short(error))
                return None
            if isinstance(error, Exception):
                raise
            # sys.exit() and the like end this stream, not the others.
            raise StreamError(self.name, f"stream '{self.name}' ({self.place}): {short(error)}") from error
        return None if stopper.raised else alive

    def _finish(self) -> None:
        try:
            with self.engine.lock:
                if not self.engine.broken and self.engine.stopper.failure is None:
                    self.process()
        finally:
            try:
                self.pull.close()
            except (Exception, SystemExit, GeneratorExit, KeyboardInterrupt) as error:
                logger.warning("stream '%s': its function raised when it was closed: %s", self.name, short(error))

    def tick(self) -> None:
        """Rows that wait while user code blocks go out; called by the timer under the engine's lock.

        An error of the stream is kept, and the function is stopped, so that the main thread ends this
        stream and goes on with the next.
        """
        try:
            self.process()
        except FATAL:
            raise
        except Exception:
            if self.engine.broken:
                raise
            self.engine.stopper.wake()

    def process(self) -> None:
        """Take what is in the page, shape it, write it. Called under the engine's lock.

        Once something did not fit, nothing that was yielded after it goes out: the bookmark may not pass it.
        """
        if self.failed is not None:
            return
        items = self.pull.take()
        if not items:
            return
        try:
            self._write(items)
        except Exception as error:
            self.failed = error
            raise

    def _write(self, items: list[Any]) -> None:
        rows, strange = split(items, self.name)
        errors: list[StreamError] = []
        written: list[tuple[Outlet, list[Any]]] = []
        for name in sorted(rows, key=self._rank):
            outlet = self.outlets.get(name)
            if outlet is not None:
                keys, error = outlet.write(rows[name], self.given)
                written.append((outlet, keys))
                errors += [error] if error is not None else []
            elif name not in self._known:
                errors.append(self._not_declared(name))
        self.since_state += sum(map(len, rows.values()))
        if not errors or len(rows) == 1:
            # In a page of several streams the rows of one before another's bad row can't be told from those
            # after it: the bookmarks stay, and the page comes again.
            for outlet, keys in written:
                outlet.observe(keys)
        if errors:
            raise errors[0]
        if strange is not None:
            raise self.pull.refuse(strange)

    def _not_declared(self, name: str) -> StreamError:
        return StreamError(
            self.name,
            f"stream '{self.name}' ({self.place}): yielded rows of '{name}', which it does not emit. "
            f"Declare it: tap.stream({name!r}, emitted_by={self.name!r}, ...)",
        )

    def _rank(self, name: str) -> int:
        """The function's own rows first: those of the streams beside it may refer to them."""
        return 0 if name == self.name else 1

    def _limit(self) -> int:
        strategy = self.spec.strategy
        if not isinstance(strategy, EveryN):
            return self.page.rows
        # A STATE whose line is big may be put off: pages go on being cut where one might be due.
        left = strategy.count - self.since_state % strategy.count
        if len(self._known) > 1:
            # Where rows of several streams come mixed, the exact count is not worth ever smaller pages.
            left = max(left, strategy.count // 10)
        return max(1, min(self.page.rows, left))

    def _due(self) -> bool:
        """Whether the strategy asks for a STATE, and its line would not outweigh the rows since the last one
        (specs 11.29: a strategy says the most often that a STATE comes)."""
        if not isinstance(self.spec.strategy, EveryN) or self.since_state < self.spec.strategy.count:
            return False
        return sum(outlet.bytes for outlet in self.outlets.values()) - self.bytes_at_state >= self.engine.state_bytes

    def _encode_state(self) -> bytes:
        """``stream.state`` as it stands at a yield: what it says is in the page or out already."""
        try:
            return msgspec.json.encode(self.run.state)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise StreamError(
                self.name,
                f"stream '{self.name}' ({self.place}): stream.state must hold JSON values only: {error}.",
            ) from None

    def _save_state(self) -> None:
        """STATE with what is safe to say now."""
        engine = self.engine
        for outlet in self.outlets.values():
            outlet.save_bookmark()
        st.set_bookmark(engine.state, self.name, "stream_state", copy.deepcopy(self.safe_state) or None)
        engine.write_state()
        self.since_state = 0
        self.bytes_at_state = sum(outlet.bytes for outlet in self.outlets.values())

    def _log_end(self, status: str, seconds: float) -> None:
        for name, outlet in self.outlets.items():
            outlet.report()
            logs.metric("counter", "record_count", outlet.rows, endpoint=name)
        logs.metric("timer", "job_duration", round(seconds, 6), job_type="stream", stream=self.name, status=status)
        rows = ", ".join(f"{outlet.rows} rows of '{name}'" for name, outlet in self.outlets.items())
        bookmark = _bookmark(self.engine.state, self.name, self.spec.bookmark_key)
        logger.info("stream '%s': %s, %s, %.1f s, bookmark %s", self.name, status, rows, seconds, bookmark)


def _bookmark(state: Mapping[str, Any], stream: str, key: str | None) -> Any:
    return st.get_bookmark(dict(state), stream, key) if key else None
