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
from burler.runtime.partition_source import PartitionSource
from burler.runtime.sources import left_of_others
from burler.runtime.unit import Unit

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
        self._sync.saved.merge(unit.progress())

    def ended(self, unit: Unit) -> None:
        """Nothing more than saving."""
        self._ended = unit
        self.save(unit)

    def finish(self) -> None:
        """What may be said only once the whole table counts."""
        if self._ended is not None:
            self.save(self._ended)
            self._sync.saved.drop_sources(None, left_of_others(self._ended))


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
        self._sync.saved.merge(unit.progress())

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
        self._spec = sync.spec
        self._name = sync.name
        self._lock = threading.Lock()
        self._over = self.exhausted = False
        self._source = PartitionSource(sync)
        self._numbers: dict[int, int] = {}  # id of a unit that has not ended -> which one it is
        self._given = 0

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
        self._sync.saved.stop_at(number)

    def save(self, unit: Unit) -> None:
        """Into the partition's entry; of the foremost one of rising partitions, into the stream's own."""
        self._sync.saved.merge(unit.progress(), self._numbers[id(unit)])

    def ended(self, unit: Unit) -> None:
        """Save it, and collapse what can be.

        Raises:
            UnsortedStreamError: partitions don't rise as declared.
        """
        self._sync.saved.ended(unit.progress(), self._numbers.pop(id(unit)))

    def finish(self) -> None:
        """All have come whole."""
        self._sync.saved.finish()


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
