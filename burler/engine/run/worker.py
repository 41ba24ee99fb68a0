"""A worker: one thread's way through the tasks of a stream. It runs user code a page at a time, writes what came, and
calls the functions of substreams for it.

    task -> call -> pull -> flush -> bookmark

Rows of a parent are read ahead, a lot of them (bounded by count, size and time); then the functions of its substreams
are called for each of them, in order. Once all these rows are out, the parent's bookmark may pass the lot: reading on
from there, inclusive, brings what is missing again.

The main thread's worker can be interrupted by signals; the others look, page by page, whether the run is to end.
Everything behind the pull runs under the engine's lock.
"""

from __future__ import annotations

import contextlib
import contextvars
import copy
import datetime as dt
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

import msgspec

from burler.declare.spec import StreamSpec
from burler.engine.run.channel import WorkerChannel
from burler.engine.run.engine import FATAL
from burler.engine.run.failures import is_retried
from burler.engine.run.job import Job
from burler.engine.run.signals import Stop, Stopper
from burler.engine.run.stop import Reason
from burler.engine.run.task import Came, Member, Row, Snapshot, Task
from burler.engine.run.writing import Above, Writing
from burler.engine.state.progress import Partition
from burler.errors import StreamError
from burler.log_settings import log_settings
from burler.logs import short
from burler.pipeline.pull import Buffer, Pull
from burler.pipeline.yielded import size_of_row
from burler.settings import Settings

logger = logging.getLogger(__name__)

_MANY = 5000  # rows that were emitted by name and are not written yet, at the most
_CHARACTERS = 60
_UNCHANGING = frozenset((str, int, float, bool, type(None), bytes, Decimal, dt.datetime, dt.date, UUID))

_LOT_BYTES = 2 * 1024 * 1024
_PAGE_BYTES = 4 * 1024 * 1024
_FIRST_PAGE_ROWS = 10


class PageSize:
    """Starts small and follows what it sees of the stream's rows and of the time they take."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.rows = min(_FIRST_PAGE_ROWS, settings.page_max_rows)
        self._rows_before = self._size_before = 0

    def adapt(self, *, rows: int, size: int, seconds: float) -> None:
        """Take in what a page has shown.

        Args:
            rows, size: how many rows, and bytes of lines, the stream has had so far.
            seconds: how long the last page took to come together.
        """
        limit = self._settings.page_max_rows
        new, new_size = rows - self._rows_before, size - self._size_before
        if new > 0:
            limit = min(limit, max(1, _PAGE_BYTES // max(1, new_size // new)))
            self._rows_before, self._size_before = rows, size
        age = self._settings.page_max_age_seconds / 2
        if seconds > age:
            limit = min(limit, int(self.rows / seconds * age))
        self.rows = max(1, min(limit, self.rows * 4))


class Lot:
    """Rows of parents that were read ahead.

    Args:
        most_rows, most_seconds: of one lot.
    """

    __slots__ = ("_most_rows", "_most_seconds", "_size", "_until", "rows")

    def __init__(self, most_rows: int, most_seconds: float) -> None:
        self.rows: deque[tuple[str, Row]] = deque()
        self._most_rows, self._most_seconds = most_rows, most_seconds
        self.begin()

    def begin(self) -> None:
        """Another one."""
        self._size, self._until = 0, time.monotonic() + self._most_seconds

    def add(self, stream: str, row: Row) -> None:
        """Add a row."""
        self.rows.append((stream, row))
        self._size += size_of_row(row)

    @property
    def is_full(self) -> bool:
        """Whether no more is to be read ahead."""
        full = len(self.rows) >= self._most_rows or self._size >= _LOT_BYTES
        return full or time.monotonic() >= self._until


class Halted(Exception):
    """User code was stopped, or is not called any more: the run, or the round, is to end, or a limit is reached."""


class TaskFailed(Exception):
    """Something of the task did not fit: ``task.error``."""


class Raised(Exception):
    """What a function raised that ends its task, whichever function it was."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


_NOT_THE_CALLS: tuple[type[BaseException], ...] = (Halted, TaskFailed, Raised, *FATAL)


class Worker:
    """Drives tasks one after the other. ``task`` is the one that it is at."""

    def __init__(self, job: Job, stopper: Stopper) -> None:
        self._job = job
        self._engine = job.engine
        self.family, self.planned = job.family, job.planned
        self._stopper = stopper
        self.stop = self._token = job.stop.child()  # the token: of the try of a task that it is at
        self._context = contextvars.copy_context()
        self.writing = Writing(job)
        self._buffer = Buffer()
        self._pulls: list[Pull] = []  # calls that have begun, the root's first
        self._size = PageSize(job.engine.settings)
        self._page_rows = 1
        self._spent_seconds = 0.0  # in user code, for what is in the buffer
        self._thread = 0
        self._warned = False
        self.task: Task | None = None
        self._current: Task | None = None  # whose rows are in the buffer
        self._is_open = False  # rows of it may be out
        self.over = False
        self.told = False
        """Whether a function of the author's has seen that it is to come to its end."""

    # ---- tasks -----------------------------------------------------------------------------------------

    def run(self) -> None:
        """Go on until there are no more tasks, the run is to end, or the stream can't go on.

        Raises:
            errors of the sink, and of the program itself.
        """
        self._thread = threading.get_ident()
        try:
            with contextlib.suppress(Halted):
                while (task := self._next()) is not None:
                    while not self._try(task):
                        pass
        finally:
            try:
                self._write_last()
            finally:
                self._close()
                self.task = None  # what a thread of the author's emits from here on is refused
            self.over = True

    def _goes_on(self) -> bool:
        return not (self.stop.reason or self._job.is_full)

    def _next(self) -> Task | None:
        """The next task; None behind the last, and where the partitions function has failed: what it gave before comes
        to its end."""
        self._token = self.stop
        while True:
            self._check()
            try:
                given: Partition | None = self._user_code(partial(self._context.run, self._job.partitions.next))
            except Halted:
                raise
            except FATAL:
                raise
            except BaseException as error:
                with self._engine.lock:
                    self._job.failures.of_partitions_function(self._as_error(error))
                return None
            if given is None:
                return None
            try:
                return self._job.task(given)
            except StreamError as error:
                with self._engine.lock:
                    self._job.could_not_begin(given, error)

    def _check(self) -> None:
        if not self._goes_on():
            raise Halted

    def _try(self, task: Task) -> bool:
        """Run a task to its end; False where it is to be tried once more.

        Raises:
            Halted: it did not come to its end, and no other one is to follow.
        """
        self._token = self.stop.child()
        if self._buffer.is_cutting:
            self._buffer = Buffer()
        self.told = self._is_open = False
        self.task = self._current = task
        task.attach(WorkerChannel(self, task))
        error: Exception | None = None
        try:
            self._call_root(task)
            return True
        except TaskFailed:
            pass
        except Raised as raised:
            self._write_last()
            error = raised.error
        except Halted:
            self._write_last()
            if task.error is None:
                raise
        return not self._failed(task, error)

    def _call_root(self, task: Task) -> None:
        """Call the root's function, and go through what it gives."""
        job, root, lot = self._job, task.root, self._lot(task)
        pull = self._open(
            task,
            root,
            lambda: task.call(root, None),
            ended=lambda: None if self.told else task.settle(),
            lot=lot,
            one_by_one=job.pushes,
            whole_pages=job.whole_pages,
            page_by_page=job.page_by_page,
        )
        alive, error = True, None
        while alive:
            self._check()
            try:
                alive = self._pull(pull)
            except (Halted, Raised):
                raise
            except BaseException as failed:  # what came before it counts
                alive, error = False, self._as_error(failed)
            ends = not alive and error is None and not self.told
            if not self.family.has_children:
                states = self._states(task) if error is None else None
                if ends:
                    with task.emitting:  # what a thread of the author's emits from here on is refused
                        self.task = None
                self._flush(task, states=states, ends=ends)
            elif alive and not lot.is_full:
                self._flush(task)
            else:
                self._go_through(task, root, lot, {})
                self._release(task, ends=ends)
        if error is not None:
            raise Raised(error)
        self._check_told()
        self._pulls.clear()

    def _states(self, task: Task) -> Snapshot:
        try:
            return task.states()
        except StreamError as error:
            raise Raised(error) from None

    def _as_error(self, error: BaseException) -> Exception:
        """What user code raised, as an error of the stream: sys.exit() and the like end this stream, not the others."""
        if isinstance(error, Exception):
            return error
        job = self._job
        ended = StreamError(job.name, f"stream '{job.name}' ({job.place}): {short(error)}")
        ended.__cause__ = error
        return ended

    def _failed(self, task: Task, error: Exception | None) -> bool:
        """The task can't go on; whether it is tried once more.

        Raises:
            Halted: the stream can't go on either.
        """
        job, engine = self._job, self._engine
        with engine.lock:
            written = task.error
        # A tail function is called again by the tail, from where it has come to.
        if written is None and error is not None and not job.pushes and is_retried(job.spec, error, task.retries):
            if self.stop.reason >= Reason.CUT:
                raise Halted  # stopped, before the next try
            try:
                self._try_again(task, error)
            except StreamError as failed:
                error = failed
            else:
                return True
        with engine.lock:
            if task.error is None:
                task.error = error
            self.task = self._current = None
            if task in job.open_tasks:
                job.task_ended(task)
        if isinstance(task.error, FATAL):
            raise task.error
        if self.stop.reason or task.key is None:
            raise Halted
        self._close()
        return False

    def _try_again(self, task: Task, error: Exception) -> None:
        """Prepare a further try: from the task's beginning, or from where its author says."""
        job, root = self._job, task.root
        job.retries.note(job.spec, task.where, error, task.retries + 1)
        self._again(task)
        prepare = partial(job.retries.set_up, job.spec, root.given, error, task.retries, run=root.context.run)
        bookmark = self._user_code(prepare)
        task.begin_at(bookmark)
        if task.key is None and bookmark is None and not job.resumable:
            with self._engine.lock:
                for writer in job.writers.values():
                    writer.versions.renew()

    def _again(self, task: Task) -> None:
        self._close()
        with self._engine.lock:
            task.again()
            self.task = self._current = None

    def _write_last(self) -> None:
        """What user code yielded before it was stopped or failed goes out, too."""
        with self._engine.lock:
            self._write_all()

    def _close(self) -> None:
        """End the user's generators, innermost first; what they raise then is no error of the stream's."""
        while self._pulls:
            self._close_one(self._pulls.pop())

    def _close_one(self, pull: Pull) -> None:
        name = pull.stream
        try:
            with self._stopper.closing(self._token):
                pull.close()
        except Stop:
            logger.warning("stream '%s': its function did not come to its end when it was closed", name)
        except (Exception, SystemExit, GeneratorExit, KeyboardInterrupt) as error:
            logger.warning("stream '%s': its function raised when it was closed: %s", name, short(error))

    # ---- user code -------------------------------------------------------------------------------------

    def _user_code(self, action: Callable[[], Any]) -> Any:
        """Call user code; what it gives. What it raises comes through.

        User code may catch Stop, or raise something else on its way out: it was stopped all the same, and must not pass
        for complete.

        Raises:
            Halted: it was stopped.
        """
        job, stopper = self._job, self._stopper
        begun = time.monotonic()
        try:
            result = stopper.run(action, self._token, self._buffer.cut)
        except Enough:
            raise Halted from None
        except (Stop, KeyboardInterrupt) as stop:
            if stopper.raised:
                raise Halted from None
            raise Raised(StreamError(job.name, f"stream '{job.name}' ({job.place}): {short(stop)}")) from None
        except BaseException as error:
            if not stopper.raised:
                raise
            if self.task is None or self.task.error is None:
                logger.warning("stream '%s': its function raised when it was stopped: %s", job.name, short(error))
            raise Halted from None
        finally:
            self._spent_seconds += time.monotonic() - begun
        if stopper.raised:
            raise Halted
        return result

    def _open(
        self,
        task: Task,
        member: Member,
        start: Callable[[], Any],
        *,
        lot: Lot,
        came: Mapping[str, Came] | None = None,
        ended: Callable[[], None],
        **manner: bool,
    ) -> Pull:
        """Begin a call of a function.

        Args:
            lot: gets its rows that are parents. came: counts its rows, for bookmark functions that ask.
        """
        parents = member.children

        def keep(stream: str, row: Row) -> bool:
            if came and stream in came:
                came[stream].count_row(row)
            if not parents or not (task.emitted or stream in parents):
                return False
            self._take_emitted(task, member, lot)
            if stream in parents:
                lot.add(stream, row)
            return lot.is_full

        pull = Pull(
            start,
            buffer=self._buffer,
            stream=member.name,
            place=member.place,
            context=member.context,
            ended=ended,
            names=member.names if self.family.has_children else None,
            keep=keep if parents or came else None,
            records_paths=member.records_paths,
            take_files=task.take_files,
            passed=task.files_passed,
            **manner,
        )
        self._pulls.append(pull)
        return pull

    def _pull(self, pull: Pull) -> bool:
        """Run a function until a page is full, or a lot of rows of parents; False once it has ended."""
        if not self._buffer:
            self._page_rows = self._job.rows_of_page(self._size.rows)
        return bool(self._user_code(partial(pull.fill, max(1, self._page_rows - len(self._buffer)))))

    def _lot(self, task: Task) -> Lot:
        """An empty one. A run up to a limit asks the source for no more than it shows, and behind a row of a function
        that pushes nothing may come for hours."""
        settings = self._engine.settings
        most = 1 if self._engine.limit is not None or task.pushes else settings.parent_buffer_rows
        return Lot(most, settings.parent_buffer_seconds)

    # ---- substreams ------------------------------------------------------------------------------------

    def _go_through(self, task: Task, member: Member, lot: Lot, above: Above) -> None:
        """Call the functions of substreams for the rows of a lot, and for those that the member's function has emitted
        by name."""
        self._take_emitted(task, member, lot)
        while lot.rows:
            name, row = lot.rows.popleft()
            came: dict[str, Came] = {}
            if name in self.family.asks_children:
                keys = self.planned.by_name
                for child in task.children[name]:
                    key = keys[child.name].replication_key if child.name in keys else None
                    came[child.name] = Came(key, self.family.key_formats.get(child.name))
                task.watched.append(came)
            for child in task.children[name]:
                if child.name in self._job.failures.closed:
                    if child.name not in task.skipped:
                        task.skipped.add(child.name)
                        self._act(task, partial(task.miss, child.name, None))
                    continue
                self._call(task, child, row, {name: row, **above}, came)
            if came:
                task.watched.pop()
                children = {child_name: one.done() for child_name, one in came.items()}
                for child_name, one in came.items():
                    if one.is_mixed:
                        error = StreamError(child_name, f"stream '{child_name}': '{one.key}' has values of two kinds")
                        self._call_failed(task, child_name, error, {name: row, **above})
                task.asked.append((name, row, children))
        lot.begin()

    def _take_emitted(self, task: Task, member: Member, lot: Lot) -> None:
        with task.emitting:
            lot.rows.extend(task.emitted.pop(member.name, ()))

    def _call(self, task: Task, child: Member, row: Row, above: Above, came: Mapping[str, Came]) -> None:
        """Call a substream's function for one row of its parent. If it fails, that is noted, and the others go on."""
        spec, bookmark = self.planned.specs[child.name], child.first_bookmark
        tries = 0
        while True:
            child.run._call_begins()
            child.run._bookmark = bookmark
            state = msgspec.json.encode(child.run.state) if spec.retry is not None else b""
            try:
                self._run_call(task, child, row, above, came)
            except _NOT_THE_CALLS:
                raise
            except BaseException as error:  # sys.exit() and the like are the call's own, too
                tries += 1
                failed = error
                try:
                    if isinstance(error, Exception) and is_retried(spec, error, tries - 1):
                        child.run.state = msgspec.json.decode(state)
                        again = self._set_up_call(child, spec, error, tries, row, above)
                        bookmark = child.first_bookmark if again is None else again
                        if child.name in came:
                            came[child.name].begin()
                        continue
                except StreamError as setup_failed:
                    failed = setup_failed
                self._call_failed(task, child.name, failed, above)
                return
            if why := child.run._incomplete:
                self._act(task, partial(self.writing.incomplete, task, child.name, why, above))
            return

    def _run_call(self, task: Task, child: Member, row: Row, above: Above, came: Mapping[str, Came]) -> None:
        lot = self._lot(task)
        parent = _copy(row)
        ended = child.run._call_ended
        pull = self._open(task, child, lambda: task.call(child, parent), lot=lot, came=came, ended=ended)
        try:
            alive = True
            while alive:
                self._check()
                error: BaseException | None = None
                try:
                    alive = self._pull(pull)
                except (Halted, Raised):
                    raise
                except FATAL as failed:
                    raise Raised(failed) from None  # type: ignore[arg-type]
                except BaseException as failed:  # what was read ahead gets its children all the same
                    error, alive = failed, False
                if child.children and (not alive or lot.is_full):
                    self._go_through(task, child, lot, above)
                if error is not None:
                    raise error
                if self._is_full():
                    self._flush(task)
        except Halted:
            raise  # the generators are closed, innermost first, once what they have given is out
        except BaseException:
            self._close_one(self._pulls.pop())
            raise
        self._pulls.pop()

    def _set_up_call(
        self, child: Member, spec: StreamSpec, error: Exception, tries: int, row: Row, above: Above
    ) -> Any:
        retries = self._job.retries
        retries.note(spec, self._row_name(above), error, tries)
        parent = _copy(row)
        given = {**child.given, "parent": lambda: parent}
        run = child.context.run
        return self._user_code(partial(retries.set_up, spec, given, error, tries, run=run))

    def _row_name(self, above: Above) -> str:
        """A parent's row by its key, for errors: ``tickets id=5``. Where it has none, the whole row, cut, if values are
        shown."""
        name, row = next(iter(above.items()))
        spec = self.planned.specs[name]
        keys = [f"{key}={str(row.get(key))[:_CHARACTERS]}" for key in spec.key_properties if key in row]
        whole = str(dict(row))[:_CHARACTERS] if log_settings.values else "(a row without a key)"
        return f"{name} {', '.join(keys) or whole}"

    def _call_failed(self, task: Task, stream: str, error: BaseException, above: Above) -> None:
        """A substream's function failed for one row of its parent. One of which too many calls have failed is called no
        more, at once."""
        where = f"parent {self._row_name(above)}"
        if task.where:
            where = f"{task.where}, {where}"
        if self._job.failures.too_many_calls(stream):
            self._job.failures.closed |= self.family.below(stream)

        def act() -> None:
            task.miss(stream, self.writing.values_above(task, above))
            self._job.failures.of_call(stream, where, error)

        self._act(task, act)

    def _release(self, task: Task, *, ends: bool) -> None:
        """What belongs to the rows of a lot is out, once all of it is written: the bookmark may pass them. ``ends``:
        nothing follows. No thread of the author's emits a parent in between; while that is seen to, nothing is written
        and no function of the author's is called, for which such a thread might wait."""
        while True:
            self._check_told()
            if ends:
                with task.emitting:
                    if not any(task.emitted.values()):
                        self.task = None  # what a thread of the author's emits from here on is refused
            states = self._states(task)
            self._flush(task)
            with self._engine.lock:
                if self.stop.reason >= Reason.LEFT_BEHIND:
                    raise Halted
                self.writing.guarded(task, lambda: self.writing.ask(task))
                with task.emitting:
                    lot = self._lot(task)
                    lot.rows.extend(pair for name in list(task.emitted) for pair in task.emitted.pop(name))
                    if not lot.rows:
                        self.writing.guarded(task, partial(task.release, states))
                        if ends:
                            self._end(task, states)
                if not lot.rows:
                    if task.takes_save():
                        self._job.save_state()
                    self._job.save_if_due()
            if task.error is not None:
                raise TaskFailed
            if not lot.rows:
                self._acknowledge()
                return
            self._go_through(task, task.root, lot, {})

    def _check_told(self) -> None:
        """A call that has ended since it was told to says nothing about the rows that it has not given."""
        if self.told:
            raise Halted

    # ---- writing ---------------------------------------------------------------------------------------

    def _is_full(self) -> bool:
        if self._engine.limit is not None:
            return True
        return len(self._buffer) >= self._page_rows

    def _flush(self, task: Task, *, states: Snapshot | None = None, ends: bool = False) -> None:
        """Write what was gathered, and say what that means for the bookmarks.

        Args:
            states: what authors keep, as it is true of all rows so far.
            ends: the function has come to its end.

        Raises:
            Halted: nothing is written any more. TaskFailed: something did not fit.
        """
        job, engine = self._job, self._engine
        engine.session.save_config()
        with engine.lock:
            if self.stop.reason >= Reason.LEFT_BEHIND:
                raise Halted
            self._write_all()
            if states is not None and task.error is None and not ends:
                task.keep_states(states)
            if ends:
                self._end(task, states)
            self._size.adapt(rows=job.rows, size=job.bytes, seconds=self._spent_seconds)
            self._spent_seconds = 0.0
            job.save_if_due()
        self._acknowledge()
        if task.error is not None:
            raise TaskFailed

    def _end(self, task: Task, states: Snapshot | None) -> None:
        self.writing.guarded(task, task.check_overlap)
        if task.error is None:
            task.note_incomplete()
            if states is not None:
                task.keep_states(states)
            task.finish()
            self._current = None
            self._job.task_ended(task)

    def _write_all(self) -> None:
        """Take what was gathered, shape it, write it. An error of the task stands in ``task.error``.

        Raises:
            errors of the sink, and of the program itself.
        """
        task = self._current
        if task is not None and not self._is_open:
            self._is_open = True
            self._job.task_began(task)
        given = self._buffer.take()
        if not given or self.stop.reason >= Reason.LEFT_BEHIND:
            return
        if task is None or task.error is not None:
            return
        self.writing.write(task, given)

    def _acknowledge(self) -> None:
        if self._engine.acknowledgements.waiting and self._job.memory is None:
            with (
                contextlib.suppress(Stop),
                self._stopper.user_code(self._token),
            ):  # the rest is told at the end of the run
                self._engine.acknowledgements.call()

    def _act(self, task: Task, action: Callable[[], Any]) -> None:
        """Between two calls: write what was gathered, and act.

        Raises:
            TaskFailed: something did not fit.
        """
        with self._engine.lock:
            self._write_all()
            self.writing.guarded(task, action)
        if task.error is not None:
            raise TaskFailed

    # ---- from other threads ----------------------------------------------------------------------------

    def tick(self) -> None:
        """Rows that wait while user code blocks go out; called by the timer under the engine's lock.

        An error of the task is kept, and the function is stopped where it can be, so that its worker goes on.
        """
        self._write_all()
        task = self._current
        if task is not None and task.error is not None:
            if self._job.pushes and not self._warned:
                self._warned = True
                logger.warning("stream '%s': can't go on: %s", self._job.name, short(task.error))
            self._token.stop(Reason.ENDED)
            self._stopper.look()
            self._engine.tell()  # whoever waits by stream.wait

    def abandon(self) -> None:
        """The run ends, and this worker's user code does not: what it has yielded goes out (where anything still can),
        nothing after that counts."""
        self._buffer.cut()
        if not self._job.has_hooks:
            self._write_all()
        self.task = None
        self.stop.stop(Reason.LEFT_BEHIND)

    # ---- from user code --------------------------------------------------------------------------------

    def put(self, emitter: str, stream: str, row: Any) -> None:
        """A row that a function emits by name, behind all that was yielded so far."""
        self._buffer.put(emitter, (stream, row))

    def pause(self, seconds: float, until: Callable[[], bool]) -> None:
        """Let time pass for a function of the author's."""
        self._engine.pause(seconds, until)

    @property
    def stopping(self) -> bool:
        """Whether its functions are to come to their end."""
        task = self.task
        return self.over or not self._goes_on() or (task is not None and task.error is not None)

    def relieve(self, task: Task) -> None:
        """Write what is in the buffer where user code has put much there at once; each row where nobody else would: of
        a tail function that may block for hours, with hooks that run in its own thread only."""
        if len(self._buffer) >= (1 if self._job.pushes and self._job.has_hooks else _MANY):
            self.act(task, lambda: None)
            if threading.get_ident() == self._thread and self._job.is_full:
                raise Enough

    def act(self, task: Task, action: Callable[[], Any]) -> None:
        """Write what was given so far, and act behind it.

        Raises:
            what is wrong with what the task has given, which ends it.
        """
        # A thread of the author's own is none that a signal interrupts.
        own = threading.get_ident() == self._thread
        with self._stopper.our_code() if own else contextlib.nullcontext(), self._engine.lock:
            if self._engine.stop.error is not None:
                return
            try:
                self._write_all()
                if self._buffer.is_cutting or self.stop.reason >= Reason.LEFT_BEHIND:
                    return  # behind a Stop: what was emitted before it may not be out
                self.writing.guarded(task, action)
                self._job.save_if_due()
            except BaseException as error:
                self._engine.stopper.fail(error)  # user code may eat it, or it may end a thread of the author's alone
                raise
        if task.error is not None:
            raise task.error


class Enough(Stop):
    """As many rows are out as a limit allows, and user code has not come to a yield."""


def _copy(value: Any) -> Any:
    """A child's own copy of its parent's row: a function that changes it would change what goes out."""
    kind = type(value)
    if kind is dict:
        return {key: _copy(inner) for key, inner in value.items()}
    if kind is list:
        return [_copy(inner) for inner in value]
    return value if kind in _UNCHANGING else copy.deepcopy(value)
