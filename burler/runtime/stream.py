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
from burler.errors import StreamError
from burler.pipeline.pull import Pull, split
from burler.runtime import logs
from burler.runtime.outlet import Outlet
from burler.runtime.plan import PlannedRun
from burler.runtime.signals import Stop
from burler.singer import state as st

if TYPE_CHECKING:
    from burler.runtime.sync import Engine

logger = logging.getLogger(__name__)

_PAGE_BYTES = 4 * 1024 * 1024
_FIRST_PAGE_ROWS = 100


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
        self.given = engine.session.given(
            state=lambda: engine.state, catalog=lambda: engine.catalog, stream=lambda: self.run
        )
        self.since_state = 0
        self.page_rows = min(_FIRST_PAGE_ROWS, engine.settings.page_max_rows)

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
        logger.info("stream '%s': start (%s, bookmark %s)", self.name, method, self.run.bookmark)
        with engine.lock:
            for outlet in self.outlets.values():
                outlet.open()
            engine.running = self
        status = "failed"
        try:
            finished = self._pages()
            with engine.lock:
                if finished:
                    for outlet in self.outlets.values():
                        outlet.complete()
                    st.set_currently_syncing(engine.state, following)
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
        alive, stopped = True, False
        try:
            while alive and not engine.stopper.requested:
                limit = self._limit()
                begun = time.monotonic()
                try:
                    with engine.stopper.user_code():
                        alive = self.pull.fill(limit)
                except Stop:
                    stopped = True
                    break
                spent = time.monotonic() - begun
                after = self._encode_state()
                with engine.lock:
                    if engine.stopper.failure is not None:
                        break
                    self.process()
                    self.safe_state = msgspec.json.decode(after)
                    self._adapt(spent)
                    if self._due():
                        self._save_state()
        finally:
            # What user code yielded before it was stopped or failed goes out, too.
            self._finish()
        return not alive and not stopped and engine.stopper.failure is None

    def _finish(self) -> None:
        with self.engine.lock:
            if not self.engine.broken and self.engine.stopper.failure is None:
                self.process()
        try:
            self.pull.close()
        except Exception as error:
            logger.warning("stream '%s': its function raised when it was closed: %s", self.name, error)

    def process(self) -> None:
        """Take what is in the page, shape it, write it. Called under the engine's lock."""
        items = self.pull.take()
        if not items:
            return
        rows, strange = split(items, self.name)
        for name in sorted(rows, key=self._rank):
            outlet = self.outlets.get(name)
            if outlet is not None:
                outlet.write(rows[name], self.given)
            elif name not in self._known():
                raise StreamError(
                    self.name,
                    f"stream '{self.name}' ({self.place}): yielded rows of '{name}', which it does not emit. "
                    f"Declare it: tap.stream({name!r}, emitted_by={self.name!r}, ...)",
                )
        self.since_state += sum(map(len, rows.values()))
        if strange is not None:
            raise self.pull.refuse(strange)

    def _known(self) -> set[str]:
        specs = self.engine.session.specs
        return {name for name, spec in specs.items() if name == self.name or spec.emitted_by == self.name}

    def _rank(self, name: str) -> int:
        """The function's own rows first: those of the streams beside it may refer to them."""
        return 0 if name == self.name else 1

    def _limit(self) -> int:
        strategy = self.spec.strategy
        if isinstance(strategy, EveryN):
            left = strategy.count - self.since_state
            # Where rows of several streams come mixed, the exact count is not worth ever smaller pages.
            return max(1, min(self.page_rows, max(left, strategy.count // 10)))
        return self.page_rows

    def _adapt(self, seconds: float) -> None:
        """So many rows to a page that it holds few bytes and comes together within the page's age."""
        settings = self.engine.settings
        rows = sum(outlet.rows for outlet in self.outlets.values())
        size = sum(outlet.bytes for outlet in self.outlets.values())
        limit = settings.page_max_rows
        if rows:
            limit = min(limit, max(1, _PAGE_BYTES // max(1, size // rows)))
        if seconds > settings.page_max_age_seconds / 2:
            limit = min(limit, int(self.page_rows / seconds * settings.page_max_age_seconds / 2))
        self.page_rows = max(1, min(limit, self.page_rows * 4))

    def _due(self) -> bool:
        return isinstance(self.spec.strategy, EveryN) and self.since_state >= self.spec.strategy.count

    def _encode_state(self) -> bytes:
        """``stream.state`` as it stands at a yield: what it says is in the page or out already."""
        try:
            return msgspec.json.encode(self.run.state)
        except (TypeError, UnicodeEncodeError) as error:
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

    def _log_end(self, status: str, seconds: float) -> None:
        for name, outlet in self.outlets.items():
            outlet.report_unknown()
            logs.metric("counter", "record_count", outlet.rows, endpoint=name)
        logs.metric("timer", "job_duration", round(seconds, 6), job_type="stream", stream=self.name, status=status)
        rows = ", ".join(f"{outlet.rows} rows of '{name}'" for name, outlet in self.outlets.items())
        bookmark = _bookmark(self.engine.state, self.name, self.spec.bookmark_key)
        logger.info("stream '%s': %s, %s, %.1f s, bookmark %s", self.name, status, rows, seconds, bookmark)


def _bookmark(state: Mapping[str, Any], stream: str, key: str | None) -> Any:
    return st.get_bookmark(dict(state), stream, key) if key else None
