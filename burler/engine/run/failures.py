"""What failed in the run of a stream, what is tried once more, and what is missing; the rest goes on."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Any

from burler.call import Given
from burler.declare.spec import StreamSpec
from burler.engine.family import Family, Partition
from burler.engine.run.signals import Reason, StopToken
from burler.engine.run.task import Task
from burler.errors import Failure, PartialError, StreamError
from burler.events import Events, Failed
from burler.logs import short

logger = logging.getLogger(__name__)

_LOGGED = 10  # of a stream, one by one


class Failures:
    """Collects them. ``error`` is what ended the stream as a whole, if something did.

    Args:
        most: parts of a stream that may fail before it ends (``max_failures``).
        stop: of the stream; what ends it says so here.
        open_tasks: whose rows may be out; whoever drives them keeps them.
    """

    def __init__(
        self, family: Family, *, most: int, events: Events, stop: StopToken, open_tasks: Collection[Task]
    ) -> None:
        self._family, self._most, self._events, self._open_tasks = family, most, events, open_tasks
        self._stop = stop
        self.closed: set[str] = set()
        """Substreams whose functions are called no more, nor do rows of them go out: a row did not fit, too many calls
        failed."""
        self.error: BaseException | None = None
        self._ended: dict[str, BaseException] = {}
        self._parts: dict[str, list[Failure]] = {}
        self._behind: set[str] = set()
        self.incomplete: dict[str, str] = {}
        """Streams of which rows may be missing, though nothing has failed: what their sources said."""

    def __bool__(self) -> bool:
        return bool(self.error or self._ended or self._parts)

    def errors(self) -> dict[str, BaseException]:
        """The error of each stream that has one."""
        ended = [Failure(name, "", error) for name, error in self._ended.items()]
        found = errors_of([*(one for parts in self._parts.values() for one in parts), *ended])
        if self.error is not None:
            found[self._family.root] = self.error
        return found

    def behind(self) -> set[str]:
        """The streams of which rows are missing."""
        return set(self._family.names) if self.error is not None else self._behind

    def end(self, error: BaseException) -> None:
        """The stream can't go on."""
        self.of_partitions_function(error)
        self._stop.stop(Reason.ENDED)

    def of_partitions_function(self, error: BaseException) -> None:
        """No more partitions are found; those that have begun go on."""
        if self.error is None:
            self.error = error
            self._events.tell(Failed(self._family.root, None, error))

    def end_of(self, name: str, error: BaseException) -> None:
        """A stream of the family can't go on; a substream ends alone."""
        if name in self._family.substreams:
            self.of_substream(name, error)
        else:
            self.end(error)

    def of_call_of_root(self, partition: Partition, error: BaseException) -> None:
        """The call of the root's function has failed, or that of one of its partitions, perhaps before it began."""
        if partition.key is None:
            self.end(error)
            return
        self._behind |= set(self._family.names)
        if self._part(self._family.root, partition.where, error):
            self.end(self._too_many(self._family.root, error))

    def of_partitions(self, why: str) -> None:
        """The partitions function has ended, and its source said that there is more: partitions may be missing."""
        if why:
            self._behind |= set(self._family.names)
            self.incomplete[self._family.root] = why

    def of_task(self, task: Task) -> None:
        """Take over what a task that has ended lacks."""
        self._behind |= task.behind
        for name, why in task.incomplete.items():
            self.incomplete.setdefault(name, why)
        if task.error is not None:
            self.of_call_of_root(task.partition, task.error)

    def of_call(self, stream: str, where: str, error: BaseException) -> None:
        """A substream's function failed for one row of its parent."""
        if self._part(stream, where, error):
            self.of_substream(stream, self._too_many(stream, error))

    def of_substream(self, stream: str, error: BaseException) -> None:
        """A substream has ended: a row of it did not fit, or too many calls have failed. Nothing more of it comes, in
        no task, so no bookmark passes what is still to come."""
        self._ended.setdefault(stream, error)
        self.closed |= self._family.below(self._family.givers[stream])
        for task in self._open_tasks:
            self.misses(task)
        self._events.tell(Failed(stream, None, error))
        logger.warning("stream '%s': has ended; the other streams of its line go on. %s", stream, short(error))

    def misses(self, task: Task) -> None:
        """What has ended does not come in a task any more."""
        for stream in self.closed:
            task.miss(stream, None)

    def _part(self, stream: str, where: str, error: BaseException) -> bool:
        """Note it; True if it is one too many."""
        parts = self._parts.setdefault(stream, [])
        parts.append(Failure(stream, where, error))
        self._events.tell(Failed(stream, where, error))
        if len(parts) <= _LOGGED:
            logger.warning("stream '%s': %s failed, the others go on: %s", stream, where, short(error))
        return len(parts) == self._most + 1

    def _too_many(self, stream: str, error: BaseException) -> StreamError:
        first = self._parts[stream][0]
        ended = StreamError(
            stream,
            f"stream '{stream}': more than {self._most} of its parts have failed (max_failures), so it ends. "
            f"The first: {first.where}: {short(first.error)}",
        )
        ended.__cause__ = error
        return ended


def errors_of(failures: Iterable[Failure]) -> dict[str, BaseException]:
    """The error of each stream: what ended it, with no ``where``, or those of its parts, and of its end, in one."""
    streams: dict[str, list[Failure]] = {}
    for one in failures:
        streams.setdefault(one.stream, []).append(one)
    found: dict[str, BaseException] = {}
    for name, several in streams.items():
        parts = [one for one in several if one.where]
        ends = [one for one in several if not one.where][:1]
        whole = [replace(one, where="its end") for one in ends]
        found[name] = PartialError(name, [*whole, *parts]) if parts else ends[0].error
    return found


class Retries:
    """Further tries of functions of the streams of a family (``retry_sync_on``).

    Args:
        invoke: calls a function of the author's with what it may ask for, for a ``stream`` (``Session.invoke``).
    """

    def __init__(self, invoke: Callable[..., Any]) -> None:
        self._invoke = invoke
        self._told: Counter[str] = Counter()

    def begin(self, spec: StreamSpec, where: str, error: BaseException, number: int, given: Given) -> Any:
        """A further try begins: it is told, and the author's ``setup_retry`` is called. Gives the bookmark that it
        gives; None for the original one.

        Args:
            number: of the retry, from 1 on.

        Raises:
            StreamError: it failed; its cause is what it raised.
        """
        assert spec.retry is not None
        name, setup = spec.tap_stream_id, spec.retry.setup
        self._tell(name, where, error, number, spec.retry.most)
        if setup is None:
            return None
        nothing = dict.fromkeys(("parent", "partition"), lambda: None)
        asked = {**nothing, **given, "error": lambda: error, "retry": lambda: number}
        try:
            return self._invoke(setup, asked, stream=name)
        except (Exception, SystemExit) as failed:
            fact = f"stream '{name}': its setup_retry ({setup.place}) failed: {short(failed)}"
            raise StreamError(name, fact) from failed

    def _tell(self, name: str, where: str, error: BaseException, number: int, most: int) -> None:
        """A warning for each of the first ones of a stream, so that a run that takes long says why."""
        self._told[name] += 1
        level = logging.WARNING if self._told[name] <= _LOGGED else logging.DEBUG
        text = "stream '%s'%s: %s; begins anew, retry %d of %d"
        logger.log(level, text, name, f", {where}" if where else "", short(error), number, most)
        if self._told[name] == _LOGGED:
            logger.warning("stream '%s': further retries are not told one by one", name)


def is_retried(spec: StreamSpec, error: BaseException, retries: int) -> bool:
    """Whether what raised ``error`` is called once more, after so many further tries."""
    retry = spec.retry
    return retry is not None and isinstance(error, retry.on) and retries < retry.most
