"""The outbox: what the functions of a task have given, on its way to the writers of their streams, and what they say of
their streams, which is done behind it. What writes runs under the run's lock; ``TaskChannel`` takes it for that."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Any

import msgspec

from burler.context import Channel
from burler.engine.run.calls import Snapshot
from burler.engine.run.job import Job
from burler.engine.run.run import FATAL
from burler.engine.run.signals import Reason, Stop, StopToken
from burler.engine.run.task import GREATEST, Row, Task
from burler.errors import StreamError
from burler.events import Page
from burler.logs import short
from burler.pages import misused
from burler.pipeline.pull import Buffer, not_emitted, refused
from burler.pipeline.yielded import split
from burler.singer.bookmark_values import KeyValues, spelled

logger = logging.getLogger(__name__)

Above = Mapping[str, Row]
"""A row of a parent, that of its own parent, and so on, by their streams."""

_OURS = 2  # references to a dict that is in a list, and is looked at: nobody else has it
_MANY = 5000  # rows that were emitted by name and are not written yet, at the most


class Enough(Stop):
    """As many rows are out as a limit allows, and user code has not come to a yield."""


class Raised(Exception):
    """What ends a task: something of it did not fit, or what a function raised, whichever function it was."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


@dataclass(slots=True)
class _Whole:
    """A task whose functions have come to their end, before what they have given is written.

    Attributes:
        given: what of it is not. rows: those of the root among that.
        shares: these are all of it, plain dicts that nobody else has, which may share a page with those of other tasks.
        states: what authors keep, as it is true of all rows.
    """

    task: Task
    given: dict[str, list[Any]]
    rows: list[Any]
    shares: bool
    states: Snapshot


class Outbox:
    """Of one worker; of one task after the other. Tasks whose functions have come to their end may wait here, so that
    their rows share a page: one costs as much as fifty rows.

    Attributes:
        stop: the worker's token. token: of the try of a task that it is at.
        task: whose rows these are; None between two.
        is_open: more may come of it. What threads of the author's emit from then on is refused.
        saw_stop: a function of the author's has seen that it is to come to its end.
        buffer: what was given and is not written yet. waiting_rows: of tasks that have come to their end.
    """

    def __init__(self, job: Job) -> None:
        self.job, self.run = job, job.run
        self.stop: StopToken = job.stop.child()
        self.token = self.stop
        self.task: Task | None = None
        self.is_open = self.saw_stop = False
        self.buffer = Buffer()
        self._whole: list[_Whole] = []
        self.waiting_rows = 0
        self.thread = 0  # the worker's
        self._writes = 0  # the thread that is at it
        self._warned = False

    def begin(self, task: Task) -> None:
        """A try of a task begins."""
        self.token = self.stop.child()
        self.task, self.is_open, self.saw_stop = task, True, False
        task.attach(TaskChannel(self, task))

    def end(self) -> None:
        """It has ended: its functions have nothing to say any more."""
        if self.task is not None:
            self.task.attach(_ENDED)
        self.task, self.is_open, self.token = None, False, self.stop
        if self.buffer.is_cutting:
            self.buffer = Buffer()

    def take_whole(self, task: Task, states: Snapshot) -> bool:
        """The task's functions have come to their end: it has, once what they have given is written. Whether that may
        wait for what follows."""
        self.job.task_began(task)
        given, root = self.buffer.take(), self.job.name
        rows = given.get(root, [])
        shares = self.job.shares_pages and given.keys() <= {root} and set(map(type, rows)) <= {dict}
        if shares and max(map(sys.getrefcount, rows), default=0) > _OURS:
            shares = len(set(map(id, rows))) == len(rows)  # else its own page says what is wrong
            if shares:  # the author has a dict still, and may fill it again for the next task
                rows = given[root] = list(map(dict.copy, rows))
        self._whole.append(_Whole(task, given, rows, shares, states))
        self.waiting_rows += len(rows)
        if shares:  # else functions of the author's may see its rows, and ask who they are for
            self.end()
        return shares and task.error is None

    def finish(self, task: Task, states: Snapshot) -> None:
        """A task has come to its end, and all that it gave is out, if nothing was wrong with it."""
        self.guarded(task, task.check_overlap)
        if task.error is None:
            task.note_incomplete()
            task.keep_states(states)
            task.finish()
            if self.task is task:
                self.end()
            self.job.task_ended(task)

    @property
    def goes_on(self) -> bool:
        """Whether functions are to be called."""
        return not (self.stop.reason or self.job.is_full)

    # ---- writing -----------------------------------------------------------------------------------------

    def write(self) -> None:
        """Take what was gathered, shape it, write it; the bookmarks follow. An error of the task stands in
        ``task.error``.

        Raises:
            errors of the sink, and of the program itself.
        """
        while self._whole and self.stop.reason < Reason.LEFT_BEHIND:
            self._write_whole()
        task = self.task
        if task is not None:
            self.job.task_began(task)
        given = self.buffer.take()
        if given and task is not None:
            self._write(task, given)

    def _write(self, task: Task, given: dict[str, list[Any]]) -> None:
        if task.error is not None or self.stop.reason >= Reason.LEFT_BEHIND:
            return
        self._writes = threading.get_ident()
        try:
            self.guarded(task, lambda: self._rows(task, given))
        finally:
            self._writes = 0
        self.job.wrote()

    def _write_whole(self) -> None:
        """Write what the first of the tasks that have come to their end have given, and end them."""
        together = list(takewhile(lambda one: one.shares and one.task.error is None, self._whole))
        rows = [row for one in together for row in one.rows]
        if rows:
            count = self._write_together(together, rows)
        else:
            count, one = 1, self._whole[0]
            if one.given:
                self._write(one.task, one.given)
        written, self._whole = self._whole[:count], self._whole[count:]
        for one in written:
            self.waiting_rows -= len(one.rows)
            self.finish(one.task, one.states)
            if one.task.error is not None and one.task is not self.task:  # else its worker does that
                self.job.task_ended(one.task)

    def _write_together(self, whole: list[_Whole], rows: list[Any]) -> int:
        """Write rows of several tasks as one page; of how many. A row that does not fit ends its task, and those behind
        it begin another page. Where a value raises what nobody expects, each writes its own, to see whose it is."""
        job, name = self.job, self.job.name
        writer = job.writers[name]
        before = writer.rows
        try:
            keys, error = writer.write([rows], whole[0].task.given_to(name), None)
        except FATAL:
            raise
        except Exception as failed:
            if self.run.stop.error is failed:  # the sink's
                raise
            for one in whole:
                one.shares = False
            return 0
        out = writer.rows - before
        given = getattr(keys, "given", keys)
        job.at, at, count = name, 0, 0
        for one in whole:
            end = at + len(one.rows)
            observed = KeyValues(keys[at : min(end, out)], given[at : min(end, out)])
            self.guarded(one.task, partial(one.task.observe, name, observed))
            at, count = end, count + 1
            if end > out:
                one.task.error = one.task.error or error
                break
        job.since_rows += at
        self._tell(whole[0].task, (name,))
        job.wrote()
        return count

    def is_writing_here(self) -> bool:
        """Whether this thread is writing just now: whoever asks is a hook, called with rows on their way out."""
        return self._writes == threading.get_ident()

    def guarded(self, task: Task, action: Callable[[], Any]) -> None:
        """What goes wrong with what a task has given is its error. Nothing that comes after it goes out: its bookmark
        may not pass it."""
        if task.error is not None:
            return
        try:
            action()
        except FATAL:
            raise
        except Exception as error:
            if self.run.stop.error is error:  # the sink's
                raise
            task.error = error

    def act(self, task: Task, action: Callable[[], Any]) -> None:
        """Between two calls: write what was gathered, and act.

        Raises:
            Raised: something did not fit.
        """
        with self.run.lock:
            self.write()
            self.guarded(task, action)
        if task.error is not None:
            raise Raised(task.error)

    def _rows(self, task: Task, given: dict[str, list[Any]]) -> None:
        job, family, root = self.job, self.job.family, self.job.name
        task.check_overlap()
        parts: dict[str, list[Any]] = {}
        strange: StreamError | None = None
        for owner, items in given.items():
            found, odd = split(items, owner)
            for name, some in found.items():
                parts[name] = [*parts[name], *some] if name in parts else some
            if odd is not None:
                strange = strange or refused(odd, owner, task.members[owner].function.place)
        errors: list[tuple[str, StreamError]] = []
        written: list[tuple[str, list[Any]]] = []
        for name in sorted(parts, key=family.rank) if len(parts) > 1 else parts:
            writer = job.writers.get(name)
            before = writer.rows if writer is not None else 0
            if writer is not None and name not in job.failures.closed:
                keys, error = writer.write(parts[name], task.given_to(name), task.key)
                written.append((name, keys))
                if error is not None:
                    errors.append((name, error))
            elif name not in family.names:
                errors.append((root, not_emitted(name, root, job.place)))
            rows = _rows(parts[name])
            if writer is None and name == root and job.unseen is not None and root in task.trackers:
                written.append((name, job.unseen.of(rows)))
            # Rows that were left out count as well; how many a page of another kind holds is seen by what came of it.
            job.since_rows += max(len(rows), writer.rows - before if writer is not None else 0)
            job.at = name
        try:
            self._observe(task, written, errors, several=len(parts) > 1)
        finally:
            self._tell(task, parts)
        if strange is not None:
            raise strange

    def _observe(
        self, task: Task, written: list[tuple[str, list[Any]]], errors: list[tuple[str, StreamError]], *, several: bool
    ) -> None:
        """The bookmarks follow what is out. In a page of several streams the rows of one before another's bad row
        can't be told from those after it: there the bookmarks stay, and the page comes again."""
        family, failures = self.job.family, self.job.failures
        own = [error for name, error in errors if name not in family.substreams]
        for name, error in errors:
            if error not in own:
                failures.of_substream(name, error)
        for name, keys in written if not own or not several else ():
            try:
                task.observe(name, keys)
            except StreamError as error:
                if name not in family.substreams:
                    raise
                failures.of_substream(name, error)
        if own:
            raise own[0]

    def _tell(self, task: Task, names: Iterable[str]) -> None:
        """Pages of streams are out. Of many partitions there is no one bookmark to draw."""
        for name in names:
            if (writer := self.job.writers.get(name)) is not None:
                tracker = task.trackers.get(name) if self.job.saved.coverage is not None else None
                greatest = tracker.greatest if tracker is not None else None
                self.run.events.tell(Page(name, writer.rows, greatest))

    # ---- substreams --------------------------------------------------------------------------------------

    def ask(self, task: Task) -> None:
        """What belongs to some parents is out: their bookmark functions are told what it was."""
        asked, task.asked = task.asked, []
        for name, row, children in asked:
            writer = self.job.writers.get(name)
            if writer is not None:
                task.observe(name, writer.ask_bookmark(row, children, task.given_to(name)))

    def miss(self, task: Task, stream: str, line: Above, why: str = "") -> None:
        """Rows of a substream are missing below a row: every stream above it is held there. What can't be told is left
        out, and stays where it is.

        Args:
            why: what the source said of them, where the call has not failed.
        """
        values: dict[str, Any] = {}
        for name, row in line.items():
            writer, unseen = self.job.writers.get(name), self.job.unseen
            if writer is not None:
                found = writer.key_of(row, task.given_to(name))
                if found is not msgspec.UNSET:
                    values[name] = found
            elif name == self.job.name and unseen is not None:
                values[name] = spelled(unseen.of([row]), 0)
        task.miss(stream, values)
        if why:
            task.incomplete.setdefault(stream, why)

    # ---- from other threads ------------------------------------------------------------------------------

    def tick(self) -> None:
        """Rows that wait while user code blocks go out; called by the timer.

        An error of the task is kept, and the function is stopped where it can be, so that its worker goes on.
        """
        self.write()
        task = self.task
        if task is not None and task.error is not None:
            if self.job.pushes and not self._warned:
                self._warned = True
                logger.warning("stream '%s': can't go on: %s", self.job.name, short(task.error))
            self.token.stop(Reason.ENDED)
            self.run.stopper.look()
            self.run.tell()  # whoever waits by stream.wait

    def abandon(self) -> None:
        """The run ends, and user code here does not: what it has yielded goes out (where anything still can), nothing
        after that counts."""
        self.buffer.cut()
        if not self.job.has_hooks:
            self.write()
        self.is_open = False
        self.stop.stop(Reason.LEFT_BEHIND)


class _Ended(Channel):
    """Of tasks that have ended, for threads of the author's that go on."""

    def stopping(self) -> bool:
        """Whether the function is to come to its end."""
        return True

    def wait(self, seconds: float) -> bool:
        """Sleep no longer than until then; whether it is."""
        return True


_ENDED = _Ended()


class TaskChannel(Channel):
    """Of one task, while its worker is at it. What is emitted stands behind all that was yielded so far; what a
    function says of its stream is done at once, behind that."""

    def __init__(self, outbox: Outbox, task: Task) -> None:
        self._outbox, self._job, self._task = outbox, outbox.job, task

    @property
    def _is_open(self) -> bool:
        return self._outbox.task is self._task and self._outbox.is_open

    def _check(self, stream: str, what: str) -> None:
        if not self._is_open or self._outbox.is_writing_here():
            raise self._refused(stream, what)

    def _act(self, action: Callable[[], Any]) -> None:
        """Write what was given so far, and act behind it.

        Raises:
            what is wrong with what the task has given, which ends it.
        """
        outbox, task, run = self._outbox, self._task, self._job.run
        with run.stopper.our_code(), run.lock:
            if run.stop.error is not None:
                return
            try:
                outbox.write()
                if outbox.buffer.is_cutting or outbox.stop.reason >= Reason.LEFT_BEHIND:
                    return  # behind a Stop: what was emitted before it may not be out
                outbox.guarded(task, action)
                self._job.save_if_due()
            except BaseException as error:
                run.stopper.fail(error)  # user code may eat it, or it may end a thread of the author's alone
                raise
        if task.error is not None:
            raise task.error

    def _relieve(self) -> None:
        """Write what is in the buffer where user code has put much there at once; each row where nobody else would: of
        a tail function that may block for hours, with hooks that run in its own thread only."""
        outbox, job = self._outbox, self._job
        if len(outbox.buffer) >= (1 if job.pushes and job.has_hooks else _MANY):
            self._act(lambda: None)
            if threading.get_ident() == outbox.thread and job.is_full:
                raise Enough

    def rows(self, emitter: str, stream: str, rows: Iterable[Any]) -> None:
        """Rows of ``stream`` that the function of ``emitter`` emits.

        Raises:
            StreamError: something that is no row, or rows of a stream that the function does not emit.
        """
        task = self._task
        self._check(emitter, "emit_record")
        member = task.members[emitter]
        if stream not in member.names:
            raise not_emitted(stream, emitter, member.function.place)
        for i, row in enumerate(rows):
            if not isinstance(row, Mapping) or misused(row):
                raise refused((stream, row), emitter, member.function.place)
            with task.emitting:
                self._check(emitter, "emit_record")
                task.has_emitted = True
                self._outbox.buffer.put(emitter, (stream, row))
                if stream in task.children:
                    task.emitted.setdefault(emitter, []).append((stream, row))
            if (below := task.child_rows.get(stream)) is not None:
                below.count_row(row)
            if i % 64 == 63:
                self._relieve()
        self._relieve()

    def save_bookmark(self, stream: str, value: Any, *, given: bool) -> None:
        """A STATE where the author asks for one. Rows of a parent whose substreams are still to come are not covered
        yet: there the STATE comes, and the bookmark follows. What ``stream.state`` says is safe here, but not where
        rows are read ahead of what belongs to them."""
        self._check(stream, "save_bookmark")
        job, task = self._job, self._task

        def act() -> None:
            if given or task.members[stream].run.manual:
                task.save_bookmark(stream, value if given else GREATEST)
            if not job.family.has_children:
                task.keep_states(task.states())
            job.save_state()

        self._act(act)

    def version_begins(self, stream: str) -> None:
        """Rows from here on are a full table."""
        self._check(stream, "full_table")
        if stream in self._job.writers:  # not of a parent that runs unseen: no row of it goes out
            self._act(self._job.writers[stream].begin_block)

    def version_ends(self, stream: str, *, whole: bool) -> None:
        """The full table has ended."""
        self._check(stream, "full_table")
        writer, behind = self._job.writers.get(stream), self._task.behind
        if writer is not None:
            self._act(lambda: writer.versions.end_block(whole=whole and stream not in behind))

    def not_modified(self, stream: str) -> None:
        """The source says that nothing has changed. Rows of substreams hang on rows that do not come. What the function
        gives by other names may still come: if nothing does, that means nothing, either."""
        self._check(stream, "not_modified")
        job, family = self._job, self._job.family

        def act() -> None:
            for name in family.below(stream) & job.writers.keys():
                writer = job.writers[name]
                by_name = any(job.planned.specs[one].emitted_by for one in family.above[name] if one != stream)
                for_parent = stream in family.substreams
                writer.versions.not_changed(writer.rows, job.place, by_name=by_name, for_parent=for_parent)

        self._act(act)

    def source_dropped(self, stream: str) -> None:
        """What was saved of a source of the stream no longer counts."""
        job, task = self._job, self._task

        def act() -> None:
            task.drop_sources(stream)
            if job.run.ledger.is_small:
                job.save_state()
            else:  # of thousands of partitions each would write all of them: it goes with the next one that is due
                job.calls.sources_changed = True

        if self._is_open:
            self._act(act)

    def state_set(self, stream: str) -> None:
        """What a tail function says of its position counts from here on: behind it, nothing may come for hours."""
        if self._job.pushes and self._is_open and not self._job.family.has_children:
            self._act(lambda: self._task.keep_states(self._task.states()))

    def catch_up(self, stream: str) -> Iterator[Any]:
        """What the sync function of a stream gives, inside of its tail function.

        Raises:
            StreamError: the tail function is not declared so, or has asked for it before.
        """
        self._check(stream, "catch_up")

        def caught_up() -> None:
            self._check(stream, "catch_up")
            self._act(lambda: self._task.caught_up(stream))

        return self._task.catch_up(stream, caught_up)

    def stopping(self) -> bool:
        """Whether the function is to come to its end."""
        outbox = self._outbox
        if not self._is_open:
            return True
        outbox.saw_stop = outbox.saw_stop or not outbox.goes_on or self._task.error is not None
        return outbox.saw_stop

    def wait(self, seconds: float) -> bool:
        """Sleep no longer than until then; whether it is."""
        self._job.run.pause(seconds, self.stopping)
        return self.stopping()

    def in_hook(self) -> bool:
        """Whether code that runs here now is a hook, called for rows on their way out."""
        return self._outbox.is_writing_here()


def _rows(parts: list[Any]) -> list[dict[str, Any]]:
    """The rows of a stream that were yielded as such."""
    lists = [part for part in parts if type(part) is list]
    return lists[0] if len(lists) == 1 else [row for rows in lists for row in rows]
