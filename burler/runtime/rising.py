"""Partitions that rise: those that are finished collapse into the stream's bookmark, as soon as all before them are."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from burler.declare.strategies import Manual
from burler.errors import UnsortedStreamError
from burler.runtime import entries
from burler.runtime.flat import Flat
from burler.runtime.unit import Unit
from burler.singer.bookmark_values import comparable, greater, key_text

if TYPE_CHECKING:
    from burler.runtime.stream import SyncRun

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Done:
    """What is left to know of a unit that came whole: thousands may wait for one before them."""

    key: str
    where: str
    least: tuple[Any, Any] | None
    greatest: tuple[Any, Any] | None
    safe: Any


class Rising:
    """Follows them, under the engine's lock. Units are known by their number, from 0 on, in the order they were given.

    ``_base`` is what the finished ones allow the stream's bookmark to be. While the foremost one runs it is what that
    one allows, if that is more; it goes back with it where its rows turn out not to be sorted.
    """

    def __init__(self, sync: SyncRun) -> None:
        self._spec = sync.spec
        self._name = sync.name
        self._line = sync.line
        self._state = sync.engine.state
        self._flat = Flat(self._state, sync.line, sync.flat.get(sync.name))
        self._begun = self._base = self._flat.value
        self._front = 0  # all before this one are finished
        self._failed: Unit | None = None  # that one, where it has begun
        self._stuck: int | None = None  # the foremost one that has failed: those behind it don't collapse in this run
        self._broken = False  # they don't rise, and the stream says to go on
        self._waiting: dict[int, Done] = {}  # finished out of turn
        self._greatest: tuple[Any, Any] | None = None  # rank and value of the greatest key of those before the front
        self._pending: Any = None  # an exclusive stream's bookmark that waits for a greater value

    def follow(self, unit: Unit, number: int) -> None:
        """A unit has got on. Its own entry in the state goes where the stream's bookmark says the same."""
        if self._broken or number != self._front:
            return
        tracker = unit.trackers.get(self._name)
        vouched = self._spec.resume == "exclusive" and isinstance(self._spec.strategy, Manual)
        safe = None if tracker is None or vouched else tracker.safe
        self._set(self._greater(self._base, safe))
        entry, key = entries.entry_of(self._state, self._name, unit.key), unit.keys.get(self._name, "")
        flat = self._flat.value
        if set(entry) == {key} and flat is not None and self._greater(flat, entry[key]) == flat:
            self._drop(unit.key or "")

    def ended(self, unit: Unit, number: int) -> None:
        """A unit has come to its end; it may have failed.

        Raises:
            UnsortedStreamError: they don't rise as declared, and the stream says that this is an error.
        """
        if self._broken or (self._stuck is not None and number > self._stuck):
            return
        if unit.error is not None or unit.behind:
            self.stop_at(number, unit)
        else:
            tracker = unit.trackers.get(self._name)
            safe = tracker.safe if tracker is not None else None
            self._waiting[number] = Done(unit.key or "", unit.where, unit.span.least, unit.span.greatest, safe)
        while self._front in self._waiting:
            done = self._waiting.pop(self._front)
            if not self._rises(done):
                return
            self._collapse(done)
            self._front += 1
        if self._failed is not None and self._stuck == self._front:
            self.follow(self._failed, self._front)

    def stop_at(self, number: int, unit: Unit | None = None) -> None:
        """One has failed: those behind it don't collapse in this run."""
        if self._stuck is None or number < self._stuck:
            self._stuck, self._failed = number, unit
            self._waiting = {at: one for at, one in self._waiting.items() if at < number}

    def _collapse(self, done: Done) -> None:
        value = done.safe
        if value is not None and self._spec.resume == "exclusive":
            # The next partition may begin with the same value, which a run from there would not get again.
            if self._pending is not None and self._rank(self._pending) < self._rank(value):
                self._base = self._greater(self._base, self._pending)
            self._pending = self._greater(self._pending, value)
        elif value is not None:
            self._base = self._greater(self._base, value)
        self._set(self._base)
        self._drop(done.key)

    def _rises(self, unit: Done) -> bool:
        """Whether a unit's rows come after those of the units before it. If not, rows of those to come may lie before
        what is out by now: the bookmark goes back to where the run began."""
        if unit.least is None or unit.greatest is None:
            return True
        if self._greatest is None or unit.least[0] >= self._greatest[0]:
            self._greatest = unit.greatest
            return True
        fact = (
            f"stream '{self._name}': order='asc' of its partitions is declared, but {unit.where} holds "
            f"{key_text(unit.least[1])!r:.60}, less than {key_text(self._greatest[1])!r:.60} in those before it."
        )
        self._broken = True
        self._set(self._begun)
        if self._spec.on_unsorted != "end_of_sync":
            cure = "Give them in order, or leave order out: each then keeps a bookmark of its own."
            raise UnsortedStreamError(self._name, f"{fact}\n  {cure}")
        logger.warning("%s The bookmark moves at the end.", fact)
        return False

    def finish(self, greatest: Any) -> None:
        """All have come whole: one bookmark is left. ``greatest`` is the greatest of theirs."""
        self._set(self._greater(self._base, greatest))
        for name in self._line.names:  # those that were finished out of turn, and are not there any more
            entries.put(self._state, name, entries.PARTITIONS, None)

    def _greater(self, one: Any, other: Any) -> Any:
        return greater(one, other, self._line.textual(self._name))

    def _rank(self, value: Any) -> Any:
        return comparable(value, self._line.textual(self._name))[1]

    def _set(self, value: Any) -> None:
        if value != self._flat.value:
            self._flat.set(value)

    def _drop(self, key: str) -> None:
        for name in self._line.names:
            entries.drop(self._state, name, key)
