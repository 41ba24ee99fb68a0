"""Partitions whose rows rise from one to the next: those that are finished collapse into the stream's bookmark, as soon
as all before them are."""

from __future__ import annotations

import logging
from typing import Any

from msgspec.structs import replace

from burler.engine.family import Family, PartitionOrder, Progress
from burler.errors import UnsortedStreamError
from burler.pipeline.bookmark import NOWHERE
from burler.singer.bookmark_values import comparable, greater, key_text
from burler.singer.state import COVERS, PARTITIONS, State, drop, entry_of, put

logger = logging.getLogger(__name__)


class OrderedPartitions:
    """Follows them, by their numbers from 0 on, in the order in which they were given.

    ``_base`` is what the finished ones allow the stream's bookmark to be. While the foremost one runs it is what that
    one allows, if that is more; it goes back with it where its rows turn out not to be sorted.

    Args:
        begun: the stream's bookmark as the run began.
    """

    def __init__(self, state: State, family: Family, order: PartitionOrder, begun: Any) -> None:
        self._state, self._family, self._order = state, family, order
        self._name, self._key = family.root, family.key or ""
        self._begun = self._base = self._out = begun  # the last one stands in the state
        self._front = 0  # all before this one are finished
        self._latest: dict[int, Progress] = {}  # of those from there on that have begun
        self._broken = False  # they don't rise, and the stream says to go on
        self._last = NOWHERE  # the greatest key of those before the front
        self._pending: Any = None  # an exclusive stream's bookmark that waits for a greater value
        self._above: list[str] = []  # partitions whose own bookmark is that one, or between
        self._greatest: Any = None  # of all bookmarks of those that are finished

    def follow(self, progress: Progress) -> None:
        """A partition has got on, or has come to its end. Behind one that fails none collapses in this run.

        Raises:
            UnsortedStreamError: they don't rise as declared, and the stream says that this is an error.
        """
        if progress.is_complete:  # before that, its author may take it back
            self._greatest = self._greater(self._greatest, progress.bookmarks.get(self._name))
        if self._broken or progress.partition.number < self._front:
            return
        # Thousands may wait for one before them.
        self._latest[progress.partition.number] = replace(progress, positions={}, sources={}, versions={})
        while (front := self._latest.get(self._front)) is not None:
            if front.behind or not front.is_complete:
                self._follow_front(front)
                return
            if not self._rises(front):
                return
            self._collapse(front)
            del self._latest[self._front]
            self._front += 1

    def _follow_front(self, front: Progress) -> None:
        """Its own entry in the state goes where the stream's bookmark says the same."""
        value = None if self._order.is_vouched else front.bookmarks.get(self._name)
        self._set(self._greater(self._base, value))
        entry, out = entry_of(self._state, self._name, front.partition.key), self._out
        if entry.keys() == {self._key} and out is not None and self._greater(out, entry[self._key]) == out:
            self._drop(front.partition.key or "")

    def finish(self) -> None:
        """All have come whole: one bookmark is left."""
        self._set(self._greater(self._base, self._greatest))
        for name in self._family.names:  # those that were finished out of turn, and are not there any more
            put(self._state, name, PARTITIONS, None)

    def _collapse(self, done: Progress) -> None:
        value = done.bookmarks.get(self._name)
        said = [done.partition.key or ""]
        if value is not None and self._order.is_exclusive:
            # The next partition may begin with the same value, which a run from there would not get again. Until one
            # with a greater one has come, this partition's own entry says more than the stream's.
            self._above, said = [*self._above, *said], []
            if self._pending is not None and self._rank(self._pending) < self._rank(value):
                self._base = self._greater(self._base, self._pending)
                said, self._above = self._above[:-1], self._above[-1:]
            self._pending = self._greater(self._pending, value)
        elif value is not None:
            self._base = self._greater(self._base, value)
        self._set(self._base)
        for partition in said:
            self._drop(partition)

    def _rises(self, done: Progress) -> bool:
        """Whether a partition's rows come after those of the ones before it. If not, rows of those to come may lie
        before what is out by now: the bookmark goes back to where the run began."""
        if done.least.rank is None or not self._last.over(done.least):
            self._last = self._last.raised(done.greatest)
            return True
        fact = (
            f"stream '{self._name}': order='asc' of its partitions is declared, but {done.partition.where} holds "
            f"{key_text(done.least.value)!r:.60}, less than {key_text(self._last.value)!r:.60} in those before it."
        )
        self._broken = True
        self._set(self._begun)
        if not self._order.ends_unsorted:
            cure = "Give them in order, or leave order out: each then keeps a bookmark of its own."
            raise UnsortedStreamError(self._name, f"{fact}\n  {cure}")
        logger.warning("%s The bookmark moves at the end.", fact)
        return False

    def _greater(self, one: Any, other: Any) -> Any:
        return greater(one, other, self._family.key_format)

    def _rank(self, value: Any) -> Any:
        return comparable(value, self._family.key_format)[1]

    def _set(self, value: Any) -> None:
        """Put the stream's bookmark into the state, with the streams that it is true of now. One of a run that had
        fewer streams goes: it may go back by that."""
        if value != self._out:
            self._out = value
            put(self._state, self._name, self._key, value)
            put(self._state, self._name, COVERS, self._family.covers)

    def _drop(self, partition: str) -> None:
        for name in self._family.names:
            drop(self._state, name, partition)
