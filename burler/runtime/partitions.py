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

from burler.errors import StreamError
from burler.pipeline.markers import UnitBroken
from burler.runtime import entries
from burler.runtime.flat import Flat
from burler.runtime.partition_source import PartitionSource
from burler.runtime.rising import Rising
from burler.runtime.sources import forget_others
from burler.runtime.tracking import save
from burler.runtime.unit import Unit
from burler.singer.bookmark_values import greater

if TYPE_CHECKING:
    from burler.runtime.stream import SyncRun

logger = logging.getLogger(__name__)


class Units(Protocol):
    """Where lanes get their work from; ``next`` may be called by several threads, the rest under the engine's lock."""

    @property
    def exhausted(self) -> bool:
        """Whether the last unit there is has been given."""

    def next(self) -> Unit | UnitBroken | None:
        """The next unit, None when there are no more."""

    def broken(self, number: int) -> None:
        """A unit could not begin."""

    def save(self, unit: Unit) -> None:
        """Put into the state what is safe to say of a unit."""

    def ended(self, unit: Unit) -> None:
        """A unit has come to its end; it may have failed."""

    def finish(self) -> None:
        """All units have ended, and none has failed."""


class One:
    """The only unit of a stream without partitions."""

    def __init__(self, sync: SyncRun) -> None:
        self._sync = sync
        self._unit: Unit | None = sync.unit()
        self._ended: Unit | None = None

    @property
    def exhausted(self) -> bool:
        """Whether it was given."""
        return self._unit is None

    def next(self) -> Unit | None:
        """The unit, once."""
        unit, self._unit = self._unit, None
        return unit

    def broken(self, number: int) -> None:
        """There is none but the one."""

    def save(self, unit: Unit) -> None:
        """Into the stream's own entry."""
        engine, coverage = self._sync.engine, self._sync.coverage
        if engine.limit is None:
            save(unit, engine.state)
            if coverage is not None:
                coverage.note(unit.trackers.get(self._sync.name), unit.safe_states.get(self._sync.name))

    def ended(self, unit: Unit) -> None:
        """Nothing more than saving."""
        self._ended = unit
        self.save(unit)

    def finish(self) -> None:
        """What may be said only once the whole table counts."""
        if self._ended is not None:
            self.save(self._ended)
            forget_others(self._ended, self._sync.engine.state)


@dataclass(frozen=True, slots=True)
class GivenPartition:
    """The one partition of a run that is a part of another one (``runtime/away``), which knows the others, chose the
    ``versions`` of full tables and says when they count. ``ended`` is told how it went."""

    partition: Mapping[str, Any]
    key: str
    versions: Mapping[str, int]
    ended: Callable[[SyncRun, Unit], None]


class Only:
    """The only unit of a run that is a part: a partition that somebody else has found. What it has reached stands in
    the partition's own entry; where partitions rise, it is that somebody who lets entries collapse."""

    def __init__(self, sync: SyncRun, given: GivenPartition) -> None:
        self._sync, self._given = sync, given
        self.exhausted = False

    def next(self) -> Unit | UnitBroken | None:
        """The unit, once; ``UnitBroken`` where it can't begin."""
        if self.exhausted:
            return None
        self.exhausted = True
        try:
            return self._sync.unit(partition=copy.deepcopy(dict(self._given.partition)), key=self._given.key)
        except StreamError as error:
            return UnitBroken(0, f"partition {self._given.key}", error)

    def broken(self, number: int) -> None:
        """There is none behind it."""

    def save(self, unit: Unit) -> None:
        """Into the partition's entry."""
        if self._sync.engine.limit is None:
            save(unit, self._sync.engine.state)

    def ended(self, unit: Unit) -> None:
        """Save it, and say how it went."""
        self.save(unit)
        self._given.ended(self._sync, unit)

    def finish(self) -> None:
        """Whether all have come whole is known elsewhere."""


class Partitions:
    """The units of a partitioned stream."""

    def __init__(self, sync: SyncRun) -> None:
        self._sync = sync
        self._state = sync.engine.state
        self._spec = sync.spec
        self._name = sync.name
        self._lock = threading.Lock()
        self._over = self.exhausted = False
        self._source = PartitionSource(sync)
        self._numbers: dict[int, int] = {}  # id of a unit that has not ended -> which one it is
        self._given = 0
        self._rising = Rising(sync) if self._spec.partition_order == "asc" else None
        self._greatest: Any = None  # of their bookmarks so far

    def next(self) -> Unit | UnitBroken | None:
        """The unit of the next partition.

        Raises:
            StreamError: the partitions function failed, or gave something that is no partition.
        """
        with self._lock:
            if self._over or self._sync.ending:
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
                unit = self._sync.unit(partition=partition, key=key)
            except StreamError as error:
                return UnitBroken(number, f"partition {key}", error)
            self._numbers[id(unit)] = number
            return unit

    # ---- taking back (under the engine's lock) ------------------------------------------------------------

    def broken(self, number: int) -> None:
        """Those behind it don't collapse."""
        if self._rising is not None:
            self._rising.stop_at(number)

    def save(self, unit: Unit) -> None:
        """Into the partition's entry; of the foremost one of rising partitions, into the stream's own."""
        if self._sync.engine.limit is None:
            save(unit, self._state)
            if self._rising is not None:
                self._rising.follow(unit, self._numbers[id(unit)])

    def ended(self, unit: Unit) -> None:
        """Save it, and collapse what can be.

        Raises:
            UnsortedStreamError: partitions don't rise as declared.
        """
        number = self._numbers.pop(id(unit))
        if self._sync.engine.limit is not None:
            return
        save(unit, self._state)
        tracker = unit.trackers.get(self._name)
        if self._rising is not None:
            self._note(tracker.safe if tracker is not None else None)
            self._rising.ended(unit, number)

    def _note(self, value: Any) -> None:
        self._greatest = greater(self._greatest, value, self._sync.line.textual(self._name))

    def finish(self) -> None:
        """All have come whole. A flat bookmark, of a state from before there were partitions, is done with once each
        has its own; those that rise leave one behind."""
        if self._rising is not None:
            self._rising.finish(self._greatest)
        elif entries.partitions_of(self._state, self._name):
            Flat(self._state, self._sync.line, None).drop()


def units_of(sync: SyncRun) -> Units:
    """The units of a stream: one, its partitions, or the one partition that this run is of."""
    part = sync.engine.part
    if sync.spec.partitions is None:
        return One(sync)
    if part is None:
        return Partitions(sync)
    for name, version in part.versions.items():
        if name in sync.outlets:
            sync.outlets[name].versions.belong_to(version)
    return Only(sync, part)
