"""Partitions: one call of the sync function for each dict that the author's partitions function gives.

Each has a bookmark of its own in the state, under its key (specs 11.27). Where partitions rise (``order="asc"``), those
that are finished collapse into the stream's bookmark, as soon as all before them are finished, too.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any, Protocol

from burler.context import StreamRun
from burler.declare.strategies import Manual
from burler.errors import UnsortedStreamError
from burler.pipeline.bookmark import comparable, key_text
from burler.runtime import entries
from burler.runtime.flat import Flat
from burler.runtime.partition_source import PartitionSource
from burler.runtime.tracking import save
from burler.runtime.unit import Unit

if TYPE_CHECKING:
    from burler.runtime.stream import SyncRun

logger = logging.getLogger(__name__)


class Units(Protocol):
    """Where lanes get their work from; ``next`` may be called by several threads, the rest under the engine's lock."""

    @property
    def exhausted(self) -> bool:
        """Whether the last unit there is has been given."""

    def next(self) -> Unit | None:
        """The next unit, None when there are no more."""

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

    @property
    def exhausted(self) -> bool:
        """Whether it was given."""
        return self._unit is None

    def next(self) -> Unit | None:
        """The unit, once."""
        unit, self._unit = self._unit, None
        return unit

    def save(self, unit: Unit) -> None:
        """Into the stream's own entry."""
        engine, coverage = self._sync.engine, self._sync.coverage
        if engine.limit is None:
            save(unit, engine.state)
            if coverage is not None:
                coverage.note(unit.trackers.get(self._sync.name), unit.safe_states.get(self._sync.name))

    def ended(self, unit: Unit) -> None:
        """Nothing more than saving."""
        self.save(unit)

    def finish(self) -> None:
        """Nothing is left to do."""


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
        self._rising = self._spec.partition_order == "asc"
        self._front = 0  # all before this one are finished
        self._flat = Flat(self._state, sync.line, sync.flat.get(sync.name))
        self._stuck: int | None = None  # the foremost one that has failed: those behind it don't collapse in this run
        self._waiting: dict[int, Unit] = {}  # finished out of turn
        self._greatest: tuple[Any, Any] | None = None  # rank and value of the greatest key of those before the front
        self._pending: Any = None  # an exclusive stream's bookmark that waits for a greater value

    def next(self) -> Unit | None:
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
            unit = self._sync.unit(partition=partition, key=key)
            self._numbers[id(unit)] = self._given
            self._given += 1
            return unit

    # ---- taking back (under the engine's lock) ------------------------------------------------------------

    def save(self, unit: Unit) -> None:
        """Into the partition's entry; of the foremost one of rising partitions, into the stream's own."""
        if self._sync.engine.limit is not None:
            return
        save(unit, self._state)
        if self._rising and self._numbers.get(id(unit)) == self._front:
            self._raise_by(unit)
            entry = entries.entry_of(self._state, self._name, unit.key)
            if entry == {unit.keys.get(self._name): self._flat.value}:
                self._drop(unit)  # the stream's own says the same

    def ended(self, unit: Unit) -> None:
        """Save it, and collapse what can be.

        Raises:
            UnsortedStreamError: partitions don't rise as declared.
        """
        number = self._numbers.pop(id(unit))
        if self._sync.engine.limit is not None:
            return
        save(unit, self._state)
        if not self._rising or (self._stuck is not None and number > self._stuck):
            return
        if unit.error is not None or unit.behind:
            self._stuck = number
            self._waiting = {at: one for at, one in self._waiting.items() if at < number}
        else:
            self._waiting[number] = unit
        while self._front in self._waiting:
            done = self._waiting.pop(self._front)
            if not self._rises(done):
                self._rising = False
                return
            self._raise_by(done)
            self._drop(done)
            self._front += 1

    def _raise_by(self, unit: Unit) -> None:
        """The stream's bookmark follows the foremost unit."""
        tracker = unit.trackers.get(self._name)
        if tracker is None or tracker.safe is None:
            return
        value = tracker.safe
        vouched = unit.complete or isinstance(self._spec.strategy, Manual)
        if vouched and self._spec.resume == "exclusive":
            # The next partition may begin with the same value, which a run from there would not get again.
            if self._pending is not None and self._rank(self._pending) < self._rank(value):
                self._raise_to(self._pending)
            self._pending = value
        else:
            self._raise_to(value)

    def _rank(self, value: Any) -> Any:
        return comparable(value, self._sync.line.textual(self._name))[1]

    def _raise_to(self, value: Any) -> None:
        if self._flat.value is None or self._rank(self._flat.value) < self._rank(value):
            self._flat.set(value)

    def _drop(self, unit: Unit) -> None:
        for name in unit.line.names:
            entries.drop(self._state, name, unit.key or "")

    def _rises(self, unit: Unit) -> bool:
        """Whether a unit's rows come after those of the units before it.

        Raises:
            UnsortedStreamError: they don't, and the stream says that this is an error.
        """
        if unit.least is None or unit.greatest is None:
            return True
        if self._greatest is not None and unit.least[0] < self._greatest[0]:
            fact = (
                f"stream '{self._name}': order='asc' of its partitions is declared, but {unit.where} holds "
                f"{key_text(unit.least[1])!r:.60}, less than {key_text(self._greatest[1])!r:.60} in those before it."
            )
            if self._spec.on_unsorted != "end_of_sync":
                cure = "Give them in order, or leave order out: each then keeps a bookmark of its own."
                raise UnsortedStreamError(self._name, f"{fact}\n  {cure}")
            logger.warning("%s Each keeps a bookmark of its own from here on.", fact)
            return False
        if self._greatest is None or unit.greatest[0] > self._greatest[0]:
            self._greatest = unit.greatest
        return True

    def finish(self) -> None:
        """A flat bookmark, of a state from before there were partitions, is done with once each has its own."""
        if self._spec.partition_order == "asc" and self._rising:
            if self._pending is not None:
                self._raise_to(self._pending)
            for name in self._sync.line.names:  # those that were finished out of turn, and are not there any more
                entries.put(self._state, name, entries.PARTITIONS, None)
            return
        if entries.partitions_of(self._state, self._name):
            self._flat.drop()


def own_run(sync: SyncRun) -> StreamRun:
    """What the partitions function gets as ``stream``: the stream as a whole."""
    planned, engine = sync.line.planned.get(sync.name), sync.engine
    saved = sync.flat.get(sync.name)
    keeps_one = (planned.bookmark_key if planned is not None else sync.spec.bookmark_key) is not None
    return StreamRun(
        engine.session.tap,
        sync.name,
        bookmark=saved if saved is not None or not keeps_one else engine.settings.start_date,
        selected=sync.line.selected,
        schema=planned.schema if planned is not None else None,
        metadata=planned.metadata if planned is not None else None,
        config=engine.session.config,
        client=engine.session.client,
        key_properties=sync.spec.key_properties,
        replication_key=planned.replication_key if planned is not None else sync.spec.replication_key,
        replication_method=planned.replication_method if planned is not None else sync.spec.replication_method,
        start_date=engine.settings.start_date,
    )
