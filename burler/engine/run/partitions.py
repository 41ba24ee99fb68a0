"""Partitions: one call of the sync function for each dict that the author's partitions function gives.

Each has a bookmark of its own in the state, under its key. Where partitions rise (``order="asc"``), those
that are finished collapse into the stream's bookmark, as soon as all before them are finished, too.
"""

from __future__ import annotations

import copy
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from burler.engine.run.partition_source import PartitionSource
from burler.engine.run.task import Task
from burler.errors import StreamError

if TYPE_CHECKING:
    from burler.engine.run.stream import SyncRun

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BrokenPartition:
    """A partition that can't begin: what the state says of it is no bookmark."""

    number: int
    where: str
    error: BaseException


class Tasks(Protocol):
    """Where workers get their work; ``next`` may be called by several threads, the rest under the engine's lock."""

    @property
    def exhausted(self) -> bool:
        """Whether the last task there is has been given."""

    def next(self) -> Task | BrokenPartition | None:
        """The next task, None when there are no more."""

    def broken(self, number: int) -> None:
        """A task could not begin."""

    def save(self, task: Task) -> None:
        """Put into the state what is safe to say of a task."""

    def ended(self, task: Task) -> None:
        """A task has come to its end; it may have failed."""

    def finish(self) -> None:
        """All tasks have ended, and none has failed."""


class One:
    """The only task of a stream without partitions."""

    def __init__(self, sync: SyncRun) -> None:
        self._sync = sync
        self._task: Task | None = sync.task()
        self._ended: Task | None = None

    @property
    def exhausted(self) -> bool:
        """Whether it was given."""
        return self._task is None

    def next(self) -> Task | None:
        """The task, once."""
        task, self._task = self._task, None
        return task

    def broken(self, number: int) -> None:
        """There is none but the one."""

    def save(self, task: Task) -> None:
        """Into the stream's own entry."""
        self._sync.saved.merge(task.progress())

    def ended(self, task: Task) -> None:
        """Nothing more than saving."""
        self._ended = task
        self.save(task)

    def finish(self) -> None:
        """What may be said only once the whole table counts."""
        if self._ended is not None:
            self.save(self._ended)
            tables = [self._sync.writers[name] for name in self._sync.line.family.tables]
            if any(table.versions.activated for table in tables):
                self._sync.saved.drop_sources(None, self._ended.sources.left_of_others())


@dataclass(frozen=True, slots=True)
class GivenPartition:
    """The one partition of a run that is a part of another one (``engine/remote``), which knows the others, chose the
    ``versions`` of full tables and says when they count. ``ended`` is told how it went."""

    partition: Mapping[str, Any]
    key: str
    versions: Mapping[str, int]
    ended: Callable[[SyncRun, Task], None]


class Only:
    """The only task of a run that is a part: a partition that somebody else has found. What it has reached stands in
    the partition's own entry; where partitions rise, it is that somebody who lets entries collapse."""

    def __init__(self, sync: SyncRun, given: GivenPartition) -> None:
        self._sync, self._given = sync, given
        self.exhausted = False

    def next(self) -> Task | BrokenPartition | None:
        """The task, once; ``BrokenPartition`` where it can't begin."""
        if self.exhausted:
            return None
        self.exhausted = True
        try:
            return self._sync.task(partition=copy.deepcopy(dict(self._given.partition)), key=self._given.key)
        except StreamError as error:
            return BrokenPartition(0, f"partition {self._given.key}", error)

    def broken(self, number: int) -> None:
        """There is none behind it."""

    def save(self, task: Task) -> None:
        """Into the partition's entry."""
        self._sync.saved.merge(task.progress())

    def ended(self, task: Task) -> None:
        """Save it, and say how it went."""
        self.save(task)
        self._given.ended(self._sync, task)

    def finish(self) -> None:
        """Whether all have come whole is known elsewhere."""


class Partitions:
    """The tasks of a partitioned stream."""

    def __init__(self, sync: SyncRun) -> None:
        self._sync = sync
        self._spec = sync.spec
        self._name = sync.name
        self._lock = threading.Lock()
        self._over = self.exhausted = False
        self._source = PartitionSource(sync)
        self._numbers: dict[int, int] = {}  # id of a task that has not ended -> which one it is
        self._given = 0

    def next(self) -> Task | BrokenPartition | None:
        """The task of the next partition.

        Raises:
            StreamError: the partitions function failed, or gave something that is no partition.
        """
        with self._lock:
            if self._over or self._sync.stop.reason:
                return None
            try:
                found = self._source.next()
            except BaseException:
                self._over = True
                raise
            if found is None:
                self._over = self.exhausted = True
                return None
            partition, key = found
            if self._sync.spec.acknowledge is not None:
                self._sync.engine.acknowledgements.partitions[self._name][key] = partition
            number, self._given = self._given, self._given + 1
            try:
                task = self._sync.task(partition=partition, key=key)
            except StreamError as error:
                return BrokenPartition(number, f"partition {key}", error)
            self._numbers[id(task)] = number
            return task

    # ---- taking back (under the engine's lock) ------------------------------------------------------------

    def broken(self, number: int) -> None:
        """Those behind it don't collapse."""
        self._sync.saved.stop_at(number)

    def save(self, task: Task) -> None:
        """Into the partition's entry; of the foremost one of rising partitions, into the stream's own."""
        self._sync.saved.merge(task.progress(), self._numbers[id(task)])

    def ended(self, task: Task) -> None:
        """Save it, and collapse what can be.

        Raises:
            UnsortedStreamError: partitions don't rise as declared.
        """
        self._sync.saved.ended(task.progress(), self._numbers.pop(id(task)))

    def finish(self) -> None:
        """All have come whole."""
        self._sync.saved.finish()


def tasks_of(sync: SyncRun) -> Tasks:
    """The tasks of a stream: one, its partitions, or the one partition that this run is of."""
    part = sync.engine.part
    if sync.spec.partitions is None:
        return One(sync)
    if part is None:
        return Partitions(sync)
    for name, version in part.versions.items():
        if name in sync.writers:
            sync.writers[name].versions.belong_to(version)
    return Only(sync, part)
