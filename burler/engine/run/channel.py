"""What functions of the author's emit and ask for beside the rows that they yield."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from burler.context import Channel
from burler.engine.run.task import GREATEST, Task
from burler.pages import misused
from burler.pipeline.pull import not_emitted, refused

if TYPE_CHECKING:
    from burler.engine.run.worker import Worker


class WorkerChannel(Channel):
    """Of one task, while its worker is at it. What is emitted stands behind all that was yielded so far; what a
    function says of its stream is done at once, behind that."""

    def __init__(self, worker: Worker, task: Task) -> None:
        self._worker = worker
        self._task = task

    def _check(self, stream: str, what: str) -> None:
        if self._worker.task is not self._task or self._worker.writing.at_work_here():
            raise self._refused(stream, what)

    def _act(self, stream: str, what: str, action: Callable[[], Any]) -> None:
        self._check(stream, what)
        self._worker.act(self._task, action)

    def rows(self, emitter: str, stream: str, rows: Iterable[Any]) -> None:
        """Rows of ``stream`` that the function of ``emitter`` emits.

        Raises:
            StreamError: something that is no row, or rows of a stream that the function does not emit.
        """
        worker, task = self._worker, self._task
        self._check(emitter, "emit_record")
        member = task.members[emitter]
        if stream not in member.names:
            raise not_emitted(stream, emitter, member.place)
        for i, row in enumerate(rows):
            if not isinstance(row, Mapping) or misused(row):
                raise refused((stream, row), emitter, member.place)
            with task.emitting:
                self._check(emitter, "emit_record")
                task.has_emitted = True
                worker.put(emitter, stream, row)
                if stream in task.children:
                    task.emitted.setdefault(emitter, []).append((stream, row))
            for watched in task.watched:
                if stream in watched:
                    watched[stream].count_row(row)
            if i % 64 == 63:
                worker.relieve(task)
        worker.relieve(task)

    def save_bookmark(self, stream: str, value: Any, *, given: bool) -> None:
        """A STATE is due."""
        manual = self._task.members[stream].run.manual
        said = value if given else GREATEST if manual else msgspec.UNSET
        self._act(stream, "save_bookmark", partial(self._worker.writing.save_here, self._task, stream, said))

    def version_begins(self, stream: str) -> None:
        """Rows from here on are a full table."""
        self._act(stream, "full_table", partial(self._worker.writing.begin_version, stream))

    def version_ends(self, stream: str, *, whole: bool) -> None:
        """The full table has ended."""
        self._act(stream, "full_table", partial(self._worker.writing.end_version, self._task, stream, whole=whole))

    def not_modified(self, stream: str) -> None:
        """The source says that nothing has changed."""
        self._act(stream, "not_modified", partial(self._worker.writing.not_modified, stream))

    def source_dropped(self, stream: str) -> None:
        """What was saved of a source of the stream no longer counts."""
        if self._worker.task is self._task:
            self._worker.act(self._task, partial(self._worker.writing.drop_source, self._task, stream))

    def state_set(self, stream: str) -> None:
        """What a tail function says of its position counts from here on: behind it, nothing may come for hours."""
        if self._task.pushes and self._worker.task is self._task and not self._task.family.has_children:
            self._worker.act(self._task, lambda: self._task.keep_states(self._task.states()))

    def catch_up(self, stream: str) -> Iterator[Any]:
        """What the sync function of a stream gives, inside of its tail function.

        Raises:
            StreamError: the tail function is not declared so, or has asked for it before.
        """
        self._check(stream, "catch_up")
        caught_up = partial(self._worker.writing.caught_up, self._task, stream)
        return self._task.catch_up(stream, lambda: self._act(stream, "catch_up", caught_up))

    def stopping(self) -> bool:
        """Whether the function is to come to its end."""
        worker = self._worker
        if worker.task is not self._task:
            return True
        worker.told = worker.told or worker.stopping
        return worker.told

    def wait(self, seconds: float) -> bool:
        """Sleep no longer than until then; whether it is."""
        self._worker.pause(seconds, self.stopping)
        return self.stopping()

    def in_hook(self) -> bool:
        """Whether code that runs here now is a hook, called for rows on their way out."""
        return self._worker.writing.at_work_here()
