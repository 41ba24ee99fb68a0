"""Partitions whose rows rise from one to the next: those that are finished collapse into the stream's bookmark, as soon
as all before them are."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any

from burler.engine.family import Family
from burler.engine.state.progress import Progress, Ranked
from burler.errors import UnsortedStreamError
from burler.singer.bookmark_values import comparable, greater, key_text
from burler.singer.state import COVERS, PARTITIONS, State, drop, entry_of, put

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PartitionOrder:
    """What is declared of partitions that rise (``order="asc"``).

    Attributes:
        is_exclusive: the source gives only what lies behind a bookmark.
        is_vouched: the bookmark moves by the author's word alone, and that of such a source is for whole partitions.
        ends_unsorted: where they turn out not to rise, the bookmark moves at the end; else that is an error.
    """

    is_exclusive: bool = False
    is_vouched: bool = False
    ends_unsorted: bool = False


class FlatBookmark:
    """The bookmark of a partitioned stream as a whole: where partitions begin that have none of their own. It is what
    rising partitions collapse into, or comes from a state of before there were partitions. ``covers`` beside it says
    which streams of the family it is true of: a substream that is selected later must get its past.

    Attributes:
        value: where it stands; None: there is none.
    """

    def __init__(self, state: State, family: Family, value: Any = None) -> None:
        self._state, self._family, self.value = state, family, value

    def set(self, value: Any) -> None:
        """Put it into the state, with the streams that it is true of now. One of a run that had fewer streams goes: it
        may go back by that."""
        root, key = self._family.root, self._family.key
        if key is None:
            return
        self.value = value
        covers = sorted(self._family.selected)
        put(self._state, root, key, value)
        put(self._state, root, COVERS, covers if covers != [root] else None)

    def drop(self) -> None:
        """Each partition has a bookmark of its own by now."""
        for name in self._family.names:
            key = self._family.keys.get(name)
            if key is not None and name in self._family.selected:
                put(self._state, name, key, None)
        put(self._state, self._family.root, COVERS, None)


class OrderedPartitions:
    """Follows them, by their numbers from 0 on, in the order in which they were given.

    ``_base`` is what the finished ones allow the stream's bookmark to be. While the foremost one runs it is what that
    one allows, if that is more; it goes back with it where its rows turn out not to be sorted.

    Args:
        begun: the flat bookmark as the run began.
    """

    def __init__(self, state: State, family: Family, order: PartitionOrder, begun: Any) -> None:
        self._state, self._family, self._order = state, family, order
        self._name = family.root
        self._flat = FlatBookmark(state, family, begun)
        self._begun = self._base = begun
        self._front = 0  # all before this one are finished
        self._failed: Progress | None = None  # of the one that is stuck, where it has begun
        self._stuck: int | None = None  # the foremost one that has failed: those behind it don't collapse in this run
        self._broken = False  # they don't rise, and the stream says to go on
        self._waiting: dict[int, Progress] = {}  # finished out of turn
        self._last: Ranked | None = None  # the greatest key of those before the front
        self._pending: Any = None  # an exclusive stream's bookmark that waits for a greater value
        self._above: list[str] = []  # partitions whose own bookmark is that one, or between
        self._greatest: Any = None  # of all bookmarks so far

    def follow(self, progress: Progress) -> None:
        """A partition has got on. Its own entry in the state goes where the stream's bookmark says the same."""
        if self._broken or progress.partition.number != self._front:
            return
        safe = None if self._order.is_vouched else progress.bookmarks.get(self._name)
        self._set(self._greater(self._base, safe))
        entry, flat = entry_of(self._state, self._name, progress.partition.key), self._flat.value
        key = self._family.key or ""
        if set(entry) == {key} and flat is not None and self._greater(flat, entry[key]) == flat:
            self._drop(progress.partition.key or "")

    def ended(self, progress: Progress) -> None:
        """A partition has come to its end; it may have failed.

        Raises:
            UnsortedStreamError: they don't rise as declared, and the stream says that this is an error.
        """
        number = progress.partition.number
        self._greatest = self._greater(self._greatest, progress.bookmarks.get(self._name))
        if self._broken or (self._stuck is not None and number > self._stuck):
            return
        if progress.behind or not progress.is_complete:
            self.stop_at(number, progress)
        elif number == self._front:
            self._waiting[number] = progress
        else:  # thousands may wait for one before them
            self._waiting[number] = replace(progress, positions={}, sources={}, versions={})
        while self._front in self._waiting:
            done = self._waiting.pop(self._front)
            if not self._rises(done):
                return
            self._collapse(done)
            self._front += 1
        if self._failed is not None and self._stuck == self._front:
            self.follow(self._failed)

    def stop_at(self, number: int, progress: Progress | None = None) -> None:
        """One has failed: those behind it don't collapse in this run."""
        if self._stuck is None or number < self._stuck:
            self._stuck, self._failed = number, progress
            self._waiting = {at: one for at, one in self._waiting.items() if at < number}

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
        if done.least is None or done.greatest is None:
            return True
        if self._last is None or done.least[0] >= self._last[0]:
            self._last = done.greatest
            return True
        fact = (
            f"stream '{self._name}': order='asc' of its partitions is declared, but {done.partition.where} holds "
            f"{key_text(done.least[1])!r:.60}, less than {key_text(self._last[1])!r:.60} in those before it."
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
        if value != self._flat.value:
            self._flat.set(value)

    def _drop(self, partition: str) -> None:
        for name in self._family.names:
            drop(self._state, name, partition)
