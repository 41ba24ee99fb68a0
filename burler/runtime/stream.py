"""One sync function, run once: its pull, the outlets of its streams, and when a STATE is due."""

from __future__ import annotations

import copy
import logging
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from burler.declare.strategies import EveryN
from burler.errors import DataError, LockLost, OutputClosed, StorageError, StreamError, UsageError
from burler.pipeline.pull import Pull, split
from burler.runtime import logs
from burler.runtime.coverage import bookmark_of
from burler.runtime.logs import short
from burler.runtime.members import Members
from burler.runtime.outlet import Outlet
from burler.runtime.page_size import PageSize
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
        self.members = Members(engine, planned)
        self.outlets = {
            stream.tap_stream_id: Outlet(
                stream,
                engine.sink,
                state,
                initial=self.members.initial(stream),
                now=engine.now,
                settings=engine.settings,
                limit=engine.limit,
                invoke=partial(engine.session.invoke, stream=stream.tap_stream_id),
            )
            for stream in planned.streams
        }
        root = self.members.by_name[self.name]
        self.run = root.run
        self.place = root.place
        self.pull = Pull(self.members.open, self.run, place=self.place)
        self.safe_states = {name: copy.deepcopy(member.run.state) for name, member in self.members.by_name.items()}
        self.pull.page_by_page = isinstance(self.spec.strategy, EveryN)
        self.failed: Exception | None = None
        self.since_state = 0
        self.bytes_at_state = 0
        self.page = PageSize(engine.settings)

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
            engine.stopper.on_raise = self.pull.cut
            engine.running = self
        status = "failed"
        try:
            finished = self._pages()
            with engine.lock:
                if finished and engine.stopper.failure is None:
                    for outlet in self.outlets.values() if engine.limit is None else ():
                        outlet.complete()
                    self.members.coverage.complete()
                    engine.set_syncing(following)
                    status = "succeeded"
                else:
                    status = "stopped"
        finally:
            with engine.lock:
                engine.running = None
                if not engine.broken and engine.stopper.failure is None:
                    self._save_state(spaced=status == "succeeded")
            self._log_end(status, time.monotonic() - begun)

    def _pages(self) -> bool:
        """Pull and write page after page; True if the function came to its end."""
        engine = self.engine
        alive: bool | None = True
        try:
            while alive and not engine.stopper.requested and self.failed is None and not self._full():
                begun = time.monotonic()
                alive = self._fill(self._limit())
                if alive is None:
                    break
                spent = time.monotonic() - begun
                engine.session.save_config()
                after = self._encode_state()
                with engine.lock:
                    if engine.stopper.failure is not None:
                        return False
                    self.process()
                    self.safe_states = msgspec.json.decode(after)
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
        return alive is False or (self._full() and not engine.stopper.requested)

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

        Not where a post_transform function sees the rows: that is called where the stream's own function runs, in the
        main thread, since what it uses may belong to that thread (a database connection does).
        An error of the stream is kept, and the function is stopped, so that the main thread ends this
        stream and goes on with the next.
        """
        if any(outlet.planned.spec.post_transform is not None for outlet in self.outlets.values()):
            return
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
        parts, strange = split(items, self.name)
        errors: list[StreamError] = []
        written: list[tuple[Outlet, list[Any]]] = []
        rows: dict[str, list[dict[str, Any]]] = {}
        for name in sorted(parts, key=self.members.rank):
            written_rows = 0
            outlet = self.outlets.get(name)
            if outlet is not None:
                before = outlet.rows
                for part in outlet.joined(parts[name]):
                    keys, error = outlet.write(part, self.members.given_to(name))
                    written.append((outlet, keys))
                    if error is not None:
                        errors.append(error)
                        break
                written_rows = outlet.rows - before
            elif name not in self.members.line:
                errors.append(self._not_declared(name))
            rows[name] = _rows(parts[name])
            # Rows that were left out count as well; how many a page of another kind holds is seen by what came of it.
            self.since_state += max(len(rows[name]), written_rows)
        if not errors or len(parts) == 1:
            # In a page of several streams the rows of one before another's bad row can't be told from those
            # after it: the bookmarks stay, and the page comes again.
            for outlet, keys in written:
                outlet.observe(keys)
            if self.name in rows and self.name not in self.outlets:
                self.members.coverage.observe(rows[self.name])
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

    def _full(self) -> bool:
        """Whether a limit on rows is reached: every selected stream has its rows, or the function's own one has and
        a further row of it came, so that what belongs to its last row and stands behind it is here as well. A row of
        one stream may come with any number of another's: no more than a thousand are read for each that is wanted."""
        limit, own = self.engine.limit, self.outlets.get(self.name)
        if limit is None:
            return False
        outlets = self.outlets.values()
        if all(outlet.full for outlet in outlets) or sum(outlet.beyond for outlet in outlets) >= 1000 * limit:
            return True
        return own is not None and own.full and own.beyond > 0

    def _limit(self) -> int:
        """Rows to pull for the next page."""
        limit = self.engine.limit
        if limit is None:
            return self._page_rows()
        left = max(limit - outlet.rows for outlet in self.outlets.values())
        return max(1, min(self._page_rows(), left))

    def _page_rows(self) -> int:
        strategy = self.spec.strategy
        if not isinstance(strategy, EveryN):
            return self.page.rows
        # A STATE whose line is big may be put off: pages go on being cut where one might be due.
        left = strategy.count - self.since_state % strategy.count
        if len(self.members.line) > 1:
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
        """Each ``stream.state`` as it stands at a yield: what it says is in the page or out already."""
        try:
            return msgspec.json.encode({name: member.run.state for name, member in self.members.by_name.items()})
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            guilty = next((one for one in self.members.by_name.values() if not _has_json(one.run.state)), None)
            name, place = (guilty.name, guilty.place) if guilty is not None else (self.name, self.place)
            raise StreamError(
                name, f"stream '{name}' ({place}): stream.state must hold JSON values only: {error}."
            ) from None

    def _save_state(self, *, spaced: bool = False) -> None:
        """STATE with what is safe to say now; nothing in a run that leaves rows out on purpose. ``spaced``: it may be
        put off (``Engine.end_of_stream_state``)."""
        engine = self.engine
        if engine.limit is not None:
            return
        for outlet in self.outlets.values():
            outlet.save_bookmark()
        for name, safe in self.safe_states.items():
            if name != self.name or self.members.coverage.saves_position:
                st.set_bookmark(engine.state, name, "stream_state", copy.deepcopy(safe) or None)
        self.members.coverage.note()
        size = sum(outlet.bytes for outlet in self.outlets.values())
        if spaced:
            engine.end_of_stream_state(size - self.bytes_at_state)
        else:
            engine.write_state()
        self.since_state = 0
        self.bytes_at_state = size

    def _log_end(self, status: str, seconds: float) -> None:
        for name, outlet in self.outlets.items():
            outlet.report()
            logs.metric("counter", "record_count", outlet.rows, endpoint=name)
        logs.metric("timer", "job_duration", round(seconds, 6), job_type="stream", stream=self.name, status=status)
        rows = ", ".join(_counted(name, outlet) for name, outlet in self.outlets.items())
        own = self.outlets.get(self.name)
        key = own.planned.bookmark_key if own else self.spec.bookmark_key
        bookmark = bookmark_of(self.engine.state, self.name, key)
        logger.info("stream '%s': %s, %s, %.1f s, bookmark %s", self.name, status, rows, seconds, bookmark)


def _rows(parts: list[Any]) -> list[dict[str, Any]]:
    """The rows of a stream that were yielded as such."""
    lists = [part for part in parts if type(part) is list]
    return lists[0] if len(lists) == 1 else [row for rows in lists for row in rows]


def _counted(name: str, outlet: Outlet) -> str:
    left = f" ({outlet.left_out} left out by its post_transform)" if outlet.left_out else ""
    return f"{outlet.rows} rows of '{name}'{left}"


def _has_json(value: Any) -> bool:
    try:
        msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return False
    return True
