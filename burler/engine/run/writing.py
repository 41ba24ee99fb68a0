"""Writing: what becomes of what a task has given, and of what its functions say of their streams. All of it runs under
the engine's lock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from burler.engine.run.engine import FATAL
from burler.engine.run.job import Job
from burler.engine.run.task import Row, Task
from burler.errors import StreamError
from burler.pipeline.pull import not_emitted, refused
from burler.pipeline.yielded import split
from burler.singer.bookmark_values import spelled

Above = Mapping[str, Row]
"""A row of a parent, that of its own parent, and so on, by their streams."""


class Writing:
    """Hands the rows of tasks to the writers of their streams, and lets the bookmarks follow."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._engine = job.engine
        self.family = job.family
        self._thread = 0

    def write(self, task: Task, given: dict[str, list[Any]]) -> None:
        """Shape what was gathered, and write it. An error of the task stands in ``task.error``.

        Raises:
            errors of the sink, and of the program itself.
        """
        self._thread = threading.get_ident()
        try:
            self.guarded(task, lambda: self._rows(task, given))
        finally:
            self._thread = 0
        self._job.wrote()

    def at_work_here(self) -> bool:
        """Whether this thread is writing just now: whoever asks is a hook, called with rows on their way out."""
        return self._thread == threading.get_ident()

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
            if self._engine.stop.error is error:  # the sink's
                raise
            task.error = error

    def _rows(self, task: Task, given: dict[str, list[Any]]) -> None:
        job, family, root = self._job, self.family, self._job.name
        task.check_overlap()
        parts: dict[str, list[Any]] = {}
        strange: StreamError | None = None
        for owner, items in given.items():
            found, odd = split(items, owner)
            for name, some in found.items():
                parts[name] = [*parts[name], *some] if name in parts else some
            if odd is not None:
                strange = strange or refused(odd, owner, task.members[owner].place)
        errors: list[tuple[str, StreamError]] = []
        written: list[tuple[str, list[Any]]] = []
        for name in sorted(parts, key=family.rank) if len(parts) > 1 else parts:
            writer = job.writers.get(name)
            before = writer.rows if writer is not None else 0
            if writer is not None and name not in job.failures.dropped:
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
        self._observe(task, written, errors, several=len(parts) > 1)
        if strange is not None:
            raise strange

    def _observe(
        self, task: Task, written: list[tuple[str, list[Any]]], errors: list[tuple[str, StreamError]], *, several: bool
    ) -> None:
        """The bookmarks follow what is out. In a page of several streams the rows of one before another's bad row
        can't be told from those after it: there the bookmarks stay, and the page comes again."""
        family, failures = self.family, self._job.failures
        own = [error for name, error in errors if not family.is_substream(name)]
        for name, error in errors:
            if error not in own:
                failures.of_substream(name, error)
        for name, keys in written if not own or not several else ():
            try:
                task.observe(name, keys)
            except StreamError as error:
                if not family.is_substream(name):
                    raise
                failures.of_substream(name, error)
        if own:
            raise own[0]

    def ask(self, task: Task) -> None:
        """What belongs to some parents is out: their bookmark functions are told what it was."""
        asked, task.asked = task.asked, []
        for name, row, children in asked:
            writer = self._job.writers.get(name)
            if writer is not None:
                task.observe(name, writer.ask_bookmark(row, children, task.given_to(name)))

    def values_above(self, task: Task, above: Above) -> dict[str, Any]:
        """Where every stream above a call is held whose rows are missing: at its row. What can't be told is left out,
        and stays where it is."""
        values: dict[str, Any] = {}
        for name, row in above.items():
            writer, unseen = self._job.writers.get(name), self._job.unseen
            if writer is not None:
                found = writer.key_of(row, task.given_to(name))
                if found is not msgspec.UNSET:
                    values[name] = found
            elif name == self.family.root and unseen is not None:
                values[name] = spelled(unseen.of([row]), 0)
        return values

    def incomplete(self, task: Task, stream: str, why: str, above: Above) -> None:
        """A substream's function has ended for one row of its parent, and its source said that there is more."""
        task.miss(stream, self.values_above(task, above))
        task.incomplete.setdefault(stream, why)

    # ---- what functions say of their streams --------------------------------------------------------------

    def save_here(self, task: Task, stream: str, value: Any) -> None:
        """A STATE where the author asks for one. Rows of a parent whose substreams are still to come are not covered
        yet: there the STATE comes, and the bookmark follows. What ``stream.state`` says is safe here, but not where
        rows are read ahead of what belongs to them."""
        if value is not msgspec.UNSET:
            task.save_bookmark(stream, value)
        if not self.family.has_children:
            task.keep_states(task.states())
        self._job.save_state()

    def begin_version(self, stream: str) -> None:
        """A ``with stream.full_table()`` block begins."""
        self._job.writers[stream].begin_block()

    def end_version(self, task: Task, stream: str, *, whole: bool) -> None:
        """The block has ended; ``whole`` says that it did so without an error."""
        self._job.writers[stream].versions.end_block(whole=whole and stream not in task.behind)

    def caught_up(self, task: Task, stream: str) -> None:
        """A tail function has handed on all that its job function gave."""
        task.note_incomplete()
        if stream in task.trackers:
            task.trackers[stream].reached()

    def drop_source(self, task: Task, stream: str) -> None:
        """What was saved of a source no longer counts."""
        task.drop_sources(stream)
        if self._engine.ledger.is_small:
            self._job.save_state()
        else:  # of thousands of partitions each would write all of them: it goes with the next one that is due
            task.source_changed = True

    def not_modified(self, stream: str) -> None:
        """The source says that nothing has changed. Rows of substreams hang on rows that do not come. What the function
        gives by other names may still come: if nothing does, that means nothing, either."""
        family, job = self.family, self._job
        for name in family.below(stream) & job.writers.keys():
            writer = job.writers[name]
            by_name = any(job.planned.specs[one].emitted_by for one in family.above[name] if one != stream)
            for_parent = family.is_substream(stream)
            writer.versions.not_changed(writer.rows, job.place, by_name=by_name, for_parent=for_parent)


def _rows(parts: list[Any]) -> list[dict[str, Any]]:
    """The rows of a stream that were yielded as such."""
    lists = [part for part in parts if type(part) is list]
    return lists[0] if len(lists) == 1 else [row for rows in lists for row in rows]
