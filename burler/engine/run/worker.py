"""A worker: one thread's way through the tasks of a stream. It runs user code a page at a time, writes what came, and
calls the functions of substreams for it.

    task -> call -> pull -> flush -> bookmark

Small tasks that come quickly one behind the other are flushed together (``Outbox.take_whole``).

Rows of a parent are read ahead, a lot of them (bounded by count, size and time); then the functions of its substreams
are called for each of them, in order. Once all these rows are out, the parent's bookmark may pass the lot: reading on
from there, inclusive, brings what is missing again.

The main thread's worker can be interrupted by signals; the others look, page by page, whether the run is to end.
Everything behind the pull runs under the run's lock.
"""

from __future__ import annotations

import contextlib
import contextvars
import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from burler.call import Given
from burler.declare.strategies import EveryN, OnPage
from burler.engine.family import Partition
from burler.engine.run.calls import Snapshot
from burler.engine.run.failures import is_retried
from burler.engine.run.job import Job
from burler.engine.run.outbox import Above, Enough, Outbox, Raised
from burler.engine.run.run import FATAL
from burler.engine.run.signals import Reason, Stop
from burler.engine.run.task import ChildRows, Member, Row, Task
from burler.errors import StreamError
from burler.log_settings import log_settings
from burler.logs import short
from burler.pages import copied
from burler.pipeline.pull import Lot, PageSize, Pull

logger = logging.getLogger(__name__)

_CHARACTERS = 60
_SHORT_SECONDS = 0.05  # in user code, within which tasks share a page


class Halted(Exception):
    """User code was stopped, or is not called any more: the run, or the round, is to end, or a limit is reached."""


_NOT_THE_CALLS: tuple[type[BaseException], ...] = (Halted, Raised, *FATAL)


class Worker:
    """Drives tasks one after the other; what they give goes into its ``outbox``."""

    def __init__(self, job: Job) -> None:
        self._job, self._run = job, job.run
        self.family, self.planned = job.family, job.planned
        self._stopper = job.run.stopper
        self.outbox = Outbox(job)
        self.stop = self.outbox.stop
        self._context = contextvars.copy_context()
        self._pull_of: dict[str, Pull] = {}  # by the stream whose function it calls
        self._pulls: list[Pull] = []  # those whose calls have begun, the root's first
        self._size = PageSize(job.run.settings)
        self._no_lot = self._lot()
        self._page_rows = 1
        self._spent_seconds = 0.0  # in user code, for what is in the buffer

    # ---- tasks -----------------------------------------------------------------------------------------

    def run(self) -> None:
        """Go on until there are no more tasks, the run is to end, or the stream can't go on.

        Raises:
            errors of the sink, and of the program itself.
        """
        self.outbox.thread = threading.get_ident()
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
                self.outbox.end()

    def _next(self) -> Task | None:
        """The next task; None behind the last, and where the partitions function has failed: what it gave before comes
        to its end."""
        while True:
            self._check()
            try:
                given: Partition | None = self._user_code(partial(self._context.run, self._job.partitions.next))
            except Halted:
                raise
            except FATAL:
                raise
            except BaseException as error:
                with self._run.lock:
                    self._job.failures.of_partitions_function(self._job.as_error(error))
                return None
            if given is None:
                return None
            try:
                return self._job.task(given)
            except StreamError as error:
                with self._run.lock:  # the others go on, but those behind it don't collapse
                    self._job.failures.of_call_of_root(given, error)

    def _check(self) -> None:
        if not self.outbox.goes_on:
            raise Halted

    def _try(self, task: Task) -> bool:
        """Run a task to its end; False where it is to be tried once more.

        Raises:
            Halted: it did not come to its end, and no other one is to follow.
        """
        self.outbox.begin(task)
        try:
            self._call_root(task)
            return True
        except (Raised, Halted) as ended:
            self._write_last()
            if isinstance(ended, Halted) and task.error is None:
                raise
            with task.emitting:
                self.outbox.is_open = False
            self._write_last()  # what threads emit from here on would go out with the next task
            return not self._failed(task, ended.error if isinstance(ended, Raised) else None)

    def _call_root(self, task: Task) -> None:
        """Call the root's function, and go through what it gives."""
        outbox, root = self.outbox, task.root
        lot = self._lot() if self.family.has_children else self._no_lot
        pull = self._open(task, root, None, lot=lot, ended=lambda: None if outbox.saw_stop else task.settle())
        alive, error = True, None
        while alive:
            self._check()
            try:
                alive = self._pull(pull)
            except (Halted, Raised):
                raise
            except BaseException as failed:  # what came before it counts
                alive, error = False, self._job.as_error(failed)
            ends = not alive and error is None and not outbox.saw_stop
            if not self.family.has_children:
                states = self._states(task) if error is None else None
                if not (ends and states is not None and self._waits(task, states)):
                    self._flush(task, states=states)
            elif alive and not lot.is_full:
                self._flush(task)
            else:
                self._go_through(task, root, lot, {})
                self._release(task, ends=ends)
        if error is not None:
            raise Raised(error)
        self._check_saw_stop()
        self._pulls.clear()

    def _waits(self, task: Task, states: Snapshot) -> bool:
        """The task's function has come to its end; whether what it gave waits for a page that is worth it: not where
        that may take long."""
        with task.emitting:
            self.outbox.is_open = False
        with self._run.lock:
            if self.stop.reason >= Reason.LEFT_BEHIND:
                raise Halted
            may_wait = self.outbox.take_whole(task, states)
        return may_wait and self._spent_seconds < _SHORT_SECONDS and self.outbox.waiting_rows < self._page_rows

    def _states(self, task: Task) -> Snapshot:
        try:
            return task.states()
        except StreamError as error:
            raise Raised(error) from None

    def _failed(self, task: Task, error: BaseException | None) -> bool:
        """The task can't go on; whether it is tried once more.

        Raises:
            Halted: the stream can't go on either.
        """
        job, lock = self._job, self._run.lock
        with lock:
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
        with lock:
            if task.error is None:
                task.error = error
            self.outbox.end()
            if task in job.open_tasks:
                job.task_ended(task)
        if isinstance(task.error, FATAL):
            raise task.error
        if self.stop.reason or task.key is None:
            raise Halted
        self._close()
        return False

    def _try_again(self, task: Task, error: BaseException) -> None:
        """Prepare a further try: from the task's beginning, or from where its author says."""
        job, root = self._job, task.root
        self._close()
        with self._run.lock:
            task.again()
            self.outbox.end()
        again = partial(job.retries.begin, job.spec, task.partition.where, error, task.retries, root.given)
        bookmark = self._user_code(partial(root.context.run, again))
        root.call.bookmark = root.first_bookmark if bookmark is None else bookmark
        if task.key is None and bookmark is None and self.family.resume_key is None:
            with self._run.lock:
                for writer in job.writers.values():
                    writer.versions.renew()

    def _write_last(self) -> None:
        """What user code yielded before it was stopped or failed goes out, too."""
        with self._run.lock:
            self.outbox.write()

    def _close(self) -> None:
        """End the user's generators, innermost first; what they raise then is no error of the stream's."""
        while self._pulls:
            self._close_one(self._pulls.pop())

    def _close_one(self, pull: Pull) -> None:
        name = pull.stream
        try:
            with self._stopper.closing(self.outbox.token):
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
        job, outbox = self._job, self.outbox
        begun = time.monotonic()
        try:
            result = self._stopper.run(action, outbox.token, outbox.buffer.cut)
        except Enough:
            raise Halted from None
        except (Stop, KeyboardInterrupt) as stop:
            if outbox.buffer.is_cutting:
                raise Halted from None
            raise Raised(job.as_error(stop)) from None
        except BaseException as error:
            if not outbox.buffer.is_cutting:
                raise
            if outbox.task is None or outbox.task.error is None:
                logger.warning("stream '%s': its function raised when it was stopped: %s", job.name, short(error))
            raise Halted from None
        finally:
            self._spent_seconds += time.monotonic() - begun
        if outbox.buffer.is_cutting:
            raise Halted
        return result

    def _open(self, task: Task, member: Member, parent: Any, *, lot: Lot, ended: Callable[[], None]) -> Pull:
        """Begin a call of a function, for a row of its parent. ``lot`` gets its rows that are parents."""
        is_seen = member.children or not task.child_rows.keys().isdisjoint(member.names)
        pull = self._pull_of.get(member.name)
        if pull is None:
            pull = self._pull_of[member.name] = self._new_pull(member)
        pull.begin(
            lambda: task.invoke(member, parent),
            self.outbox.buffer,
            member.context,
            ended=ended,
            take_files=task.take_files,
            passed=task.files_passed,
            keep=partial(self._keep, task, member, lot) if is_seen else None,
        )
        self._pulls.append(pull)
        return pull

    def _keep(self, task: Task, member: Member, lot: Lot, stream: str, row: Row) -> bool:
        """Note a row that a function gives, if it is a parent or its parent wants to know of it; whether it is enough
        for now."""
        parents = member.children
        if stream in task.child_rows:
            task.child_rows[stream].count_row(row)
        if not parents or not (task.emitted or stream in parents):
            return False
        if task.emitted:
            self._take_emitted(task, member, lot)
        if stream in parents:
            lot.add(stream, row)
        return lot.is_full

    def _new_pull(self, member: Member) -> Pull:
        job, name = self._job, member.name
        strategy, is_root = job.spec.strategy, name == self.family.root
        return Pull(
            stream=name,
            place=member.function.place,
            names=member.names if self.family.has_children else None,
            records_paths=job.calls.records_paths[name],
            one_by_one=is_root and job.pushes,
            whole_pages=is_root and isinstance(strategy, OnPage),
            page_by_page=is_root and isinstance(strategy, EveryN | OnPage),
        )

    def _pull(self, pull: Pull) -> bool:
        """Run a function until a page is full, or a lot of rows of parents; False once it has ended."""
        gathered = len(self.outbox.buffer) + self.outbox.waiting_rows
        if not gathered:
            self._page_rows = self._job.rows_of_page(self._size.rows)
        return bool(self._user_code(partial(pull.fill, max(1, self._page_rows - gathered))))

    def _lot(self) -> Lot:
        """An empty one. A run up to a limit asks the source for no more than it shows, and behind a row of a function
        that pushes nothing may come for hours."""
        settings = self._run.settings
        most = 1 if self._run.limit is not None or self._job.pushes else settings.parent_buffer_rows
        return Lot(most, settings.parent_buffer_seconds)

    # ---- substreams ------------------------------------------------------------------------------------

    def _go_through(self, task: Task, member: Member, lot: Lot, above: Above) -> None:
        """Call the functions of substreams for the rows of a lot, and for those that the member's function has emitted
        by name."""
        self._take_emitted(task, member, lot)
        while lot.rows:
            name, row = lot.rows.popleft()
            line, asked = {name: row, **above}, name in self.family.asks_children
            if asked:
                for child in task.children[name]:
                    planned = self.planned.by_name.get(child.name)
                    key = planned.replication_key if planned is not None else None
                    task.child_rows[child.name] = ChildRows(key, self.family.key_formats.get(child.name))
            for child in task.children[name]:
                if child.name not in self._job.failures.closed:
                    self._call(task, child, row, line)
            if asked:
                children = {}
                for child in task.children[name]:
                    below = task.child_rows.pop(child.name)
                    children[child.name] = below.done()
                    if below.is_mixed:
                        fact = f"stream '{child.name}': '{below.key}' has values of two kinds"
                        self._call_failed(task, child.name, StreamError(child.name, fact), line)
                task.asked.append((name, row, children))
        lot.begin()

    def _take_emitted(self, task: Task, member: Member, lot: Lot) -> None:
        with task.emitting:
            lot.rows.extend(task.emitted.pop(member.name, ()))

    def _call(self, task: Task, child: Member, row: Row, line: Above) -> None:
        """Call a substream's function for one row of its parent (``line``: with those above it). If it fails, that is
        noted, and the others go on."""
        spec, run, call = self.planned.specs[child.name], child.run, child.call
        bookmark, tries = child.first_bookmark, 0
        while True:
            call.begin()
            call.bookmark = bookmark
            state = msgspec.json.encode(run.state) if spec.retry is not None else b""
            try:
                self._run_call(task, child, row, line)
            except _NOT_THE_CALLS:
                raise
            except BaseException as error:  # sys.exit() and the like are the call's own, too
                tries += 1
                failed = error
                try:
                    if isinstance(error, Exception) and is_retried(spec, error, tries - 1):
                        run.state = msgspec.json.decode(state)
                        given: Given = {**child.given, "parent": partial(copied, row)}
                        begin = partial(self._job.retries.begin, spec, self._row_name(line), error, tries, given)
                        again = self._user_code(partial(child.context.run, begin))
                        bookmark = child.first_bookmark if again is None else again
                        if child.name in task.child_rows:
                            task.child_rows[child.name].begin()
                        continue
                except StreamError as setup_failed:
                    failed = setup_failed
                self._call_failed(task, child.name, failed, line)
                return
            if call.incomplete:
                self.outbox.act(task, partial(self.outbox.miss, task, child.name, line, why=call.incomplete))
            return

    def _run_call(self, task: Task, child: Member, row: Row, line: Above) -> None:
        lot = self._lot() if child.children else self._no_lot
        pull = self._open(task, child, copied(row), lot=lot, ended=child.call.end)
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
                    raise Raised(failed) from None
                except BaseException as failed:  # what was read ahead gets its children all the same
                    error, alive = failed, False
                if child.children and (not alive or lot.is_full):
                    self._go_through(task, child, lot, line)
                if error is not None:
                    raise error
                if self._run.limit is not None or len(self.outbox.buffer) >= self._page_rows:
                    self._flush(task)
        except Halted:
            raise  # the generators are closed, innermost first, once what they have given is out
        except BaseException:
            self._close_one(self._pulls.pop())
            raise
        self._pulls.pop()

    def _row_name(self, line: Above) -> str:
        """A parent's row by its key, for errors: ``tickets id=5``. Where it has none, the whole row, cut, if values are
        shown."""
        name, row = next(iter(line.items()))
        spec = self.planned.specs[name]
        keys = [f"{key}={str(row.get(key))[:_CHARACTERS]}" for key in spec.key_properties if key in row]
        whole = str(dict(row))[:_CHARACTERS] if log_settings.values else "(a row without a key)"
        return f"{name} {', '.join(keys) or whole}"

    def _call_failed(self, task: Task, stream: str, error: BaseException, line: Above) -> None:
        """A substream's function failed for one row of its parent."""
        where = f"parent {self._row_name(line)}"
        if task.key is not None:
            where = f"{task.partition.where}, {where}"

        def act() -> None:
            self.outbox.miss(task, stream, line)
            self._job.failures.of_call(stream, where, error)

        self.outbox.act(task, act)

    def _release(self, task: Task, *, ends: bool) -> None:
        """What belongs to the rows of a lot is out, once all of it is written: the bookmark may pass them. ``ends``:
        nothing follows. No thread of the author's emits a parent in between; while that is seen to, nothing is written
        and no function of the author's is called, for which such a thread might wait."""
        outbox, job = self.outbox, self._job
        while True:
            self._check_saw_stop()
            if ends:
                with task.emitting:
                    if not any(task.emitted.values()):
                        outbox.is_open = False
            states = self._states(task)
            self._flush(task)
            with self._run.lock:
                if self.stop.reason >= Reason.LEFT_BEHIND:
                    raise Halted
                outbox.guarded(task, lambda: outbox.ask(task))
                with task.emitting:
                    lot = self._lot()
                    lot.rows.extend(pair for name in list(task.emitted) for pair in task.emitted.pop(name))
                    if not lot.rows:
                        outbox.guarded(task, partial(task.release, states))
                        if ends:
                            outbox.finish(task, states)
                if not lot.rows:
                    if task.wants_state:
                        task.wants_state = False
                        job.save_state()
                    job.save_if_due()
            if task.error is not None:
                raise Raised(task.error)
            if not lot.rows:
                self._acknowledge()
                return
            self._go_through(task, task.root, lot, {})

    def _check_saw_stop(self) -> None:
        """A call that has ended since it saw that it is to says nothing about the rows that it has not given."""
        if self.outbox.saw_stop:
            raise Halted

    # ---- writing ---------------------------------------------------------------------------------------

    def _flush(self, task: Task, *, states: Snapshot | None = None) -> None:
        """Write what was gathered, and say what that means for the bookmarks.

        Args:
            states: what authors keep, as it is true of all rows so far.

        Raises:
            Halted: nothing is written any more. Raised: something did not fit.
        """
        job, run = self._job, self._run
        run.session.save_config()
        with run.lock:
            if self.stop.reason >= Reason.LEFT_BEHIND:
                raise Halted
            self.outbox.write()
            if states is not None and task.error is None and not task.complete:
                task.keep_states(states)
            self._size.adapt(rows=job.rows, size=job.bytes, seconds=self._spent_seconds)
            self._spent_seconds = 0.0
            job.save_if_due()
        self._acknowledge()
        if task.error is not None:
            raise Raised(task.error)

    def _acknowledge(self) -> None:
        if self._run.acknowledgements.is_due and self._job.memory is None:
            with contextlib.suppress(Stop):  # what is left is told at the end of the run
                self._stopper.run(self._run.acknowledgements.tell, self.outbox.token)
