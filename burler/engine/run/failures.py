"""What failed in the run of a stream, and what is missing for it; the rest goes on."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from burler.engine.run.stop import Reason
from burler.errors import Failure, PartialError, StreamError
from burler.events import Failed
from burler.logs import short

if TYPE_CHECKING:
    from burler.engine.run.stream import SyncRun
    from burler.engine.run.task import Task

logger = logging.getLogger(__name__)

_LOGGED = 10  # of a stream, one by one


class Failures:
    """Collects them. ``error`` is what ended the stream as a whole, if something did."""

    def __init__(self, sync: SyncRun) -> None:
        self._sync = sync
        self.error: BaseException | None = None
        self._ended: dict[str, BaseException] = {}
        self._parts: dict[str, list[Failure]] = {}
        self._behind: set[str] = set()
        self.incomplete: dict[str, str] = {}
        """Streams of which rows may be missing, though nothing has failed: what their sources said."""
        self._streams_ended: list[str] = []
        self._calls: dict[str, int] = {}
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self.error or self._ended or self._parts)

    def errors(self) -> dict[str, BaseException]:
        """The error of each stream that has one."""
        found: dict[str, BaseException] = {name: PartialError(name, parts) for name, parts in self._parts.items()}
        for name, error in self._ended.items():
            parts = self._parts.get(name)
            whole = [Failure(name, "its end", error), *parts] if parts else []
            found[name] = PartialError(name, whole) if whole else error
        if self.error is not None:
            found[self._sync.name] = self.error
        return found

    def behind(self) -> set[str]:
        """The streams of which rows are missing."""
        return set(self._sync.line.names) if self.error is not None else self._behind

    def end(self, error: BaseException) -> None:
        """The stream can't go on."""
        if self.error is None:
            self.error = error
            self._sync.engine.events.tell(Failed(self._sync.name, None, error))
        self._sync.stop.stop(Reason.ENDED)

    def end_of(self, name: str, error: BaseException) -> None:
        """A stream of the line can't go on; a substream ends alone."""
        if self._sync.line.is_substream(name):
            self.of_substream(name, error)
        else:
            self.end(error)

    def of_partition(self, where: str, error: BaseException) -> None:
        """A partition has failed, perhaps before it began."""
        self._behind |= set(self._sync.line.names)
        if self._part(self._sync.name, where, error):
            self.end(self._too_many(self._sync.name, error))

    def of_partitions(self, why: str) -> None:
        """The partitions function has ended, and its source said that there is more: partitions may be missing."""
        if why:
            self._behind |= set(self._sync.line.names)
            self.incomplete[self._sync.name] = why

    def of_task(self, task: Task) -> None:
        """Take over what a task that has ended lacks."""
        self._behind |= task.behind
        for name, why in task.incomplete.items():
            self.incomplete.setdefault(name, why)
        if task.error is None:
            return
        if task.key is None:
            self.end(task.error)
            return
        self.of_partition(task.where, task.error)

    def too_many_calls(self, stream: str) -> bool:
        """Count a call of a substream's function that failed, in whichever worker; True if they are too many now."""
        with self._lock:
            self._calls[stream] = self._calls.get(stream, 0) + 1
            return self._calls[stream] > self._sync.engine.settings.max_failures

    def of_call(self, stream: str, where: str, error: BaseException) -> None:
        """A substream's function failed for one row of its parent."""
        if self._part(stream, where, error):
            self.of_substream(stream, self._too_many(stream, error))

    def of_substream(self, stream: str, error: BaseException) -> None:
        """A substream has ended: a row of it did not fit, or too many calls have failed. Nothing more of it comes, in
        no task, so no bookmark passes what is still to come."""
        sync = self._sync
        ended = sync.line.giver(stream)
        self._ended.setdefault(stream, error)
        sync.line.closed |= sync.line.below(ended)
        sync.line.dropped |= sync.line.below(ended)
        self._streams_ended.append(ended)
        for task in sync.open_tasks:
            task.miss(ended, None)
        self._sync.engine.events.tell(Failed(stream, None, error))
        logger.warning("stream '%s': has ended; the other streams of its line go on. %s", stream, short(error))

    def misses(self, task: Task) -> None:
        """A task begins: what has ended does not come in it."""
        for stream in self._streams_ended:
            task.miss(stream, None)

    def _part(self, stream: str, where: str, error: BaseException) -> bool:
        """Note it; True if it is one too many."""
        parts = self._parts.setdefault(stream, [])
        parts.append(Failure(stream, where, error))
        self._sync.engine.events.tell(Failed(stream, where, error))
        if len(parts) <= _LOGGED:
            logger.warning("stream '%s': %s failed, the others go on: %s", stream, where, short(error))
        return len(parts) == self._sync.engine.settings.max_failures + 1

    def _too_many(self, stream: str, error: BaseException) -> StreamError:
        first, most = self._parts[stream][0], self._sync.engine.settings.max_failures
        ended = StreamError(
            stream,
            f"stream '{stream}': more than {most} of its parts have failed (max_failures), so it ends. "
            f"The first: {first.where}: {short(first.error)}",
        )
        ended.__cause__ = error
        return ended
