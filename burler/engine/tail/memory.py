"""What a tail remembers of a family of streams from one round to the next."""

from __future__ import annotations

from typing import Any, Literal

from burler.engine.catalog.plan import PlannedRun, PlannedStream
from burler.engine.family import Family
from burler.engine.writer.writer import StreamWriter
from burler.pipeline.repeats import Repeats

_MOST, _MOST_OF_PARTITION = 100_000, 2_000
_ROUNDS = 16


class Memory:
    """Of one sync function, or of a stream's sync and tail functions together: what is dear to make, and the rows that
    may come again.

    Attributes:
        since: rows, pages and the moment of the last STATE that the stream's strategy has asked for.
        writers: by stream; they hold the shapers.
        opened: streams whose SCHEMA is out.
        rounds: how many have begun.
    """

    def __init__(self, now: float) -> None:
        self.since = 0, 0, now
        self.writers: dict[str, StreamWriter] = {}
        self.opened: set[str] = set()
        self.rounds = 0
        self._planned: dict[str, PlannedStream] = {}
        self._pushes = False
        self._repeats: dict[tuple[str, str | None], Repeats] = {}
        self._last: dict[str, dict[Any, bytes]] = {}
        self._used: dict[tuple[str, str | None], int] = {}  # in which round last
        self._begun: set[tuple[str, str | None]] = set()

    def begin_round(self, planned: PlannedRun) -> None:
        """A round begins."""
        self.rounds += 1
        self._planned, self._pushes = {one.tap_stream_id: one for one in planned.streams}, planned.pushes
        self._begun.clear()
        if self.rounds % _ROUNDS == 0:  # partitions that are there no more
            latest: dict[str, int] = {}
            for (name, _key), used in self._used.items():
                latest[name] = max(used, latest.get(name, 0))
            for one in [one for one, used in self._used.items() if one[1] and used < latest[one[0]] - _ROUNDS]:
                del self._used[one]
                self._repeats.pop(one, None)

    def repeats(self, family: Family, name: str, key: str | None) -> Repeats | None:
        """What is known of a stream's rows in a partition; None where none can come again: those of a full table are
        all wanted, and of a source that gives only what lies behind the bookmark none do."""
        planned = self._planned[name]
        if self._pushes and not planned.key_properties:
            return None  # two equal messages are two
        found = self._repeats.get((name, key))
        if found is None:
            keeps = _keeps(family, planned, self._planned.get(family.root))
            if keeps is None:
                return None
            found = self._repeats[name, key] = Repeats(
                name,
                planned.key_properties,
                textual=family.key_formats.get(name),
                rises=planned.order == "asc" and planned.spec.on_unsorted == "error",
                by_key=keeps == "top",
                most=_MOST if key is None else _MOST_OF_PARTITION,
                last=None if key is None else self._last.setdefault(name, {}),
            )
        self._used[name, key] = self.rounds
        if (name, key) not in self._begun:
            found.begin()
            self._begun.add((name, key))
        return found

    def again(self, key: str | None) -> None:
        """A task begins once more: what came out in its first try is known now."""
        self._begun = {one for one in self._begun if one[1] != key}

    def ended(self, key: str | None, behind: set[str]) -> None:
        """A task came whole, but for streams that are ``behind``. One that did not forgets nothing."""
        for one in [one for one in self._begun if one[1] == key and one[0] not in behind]:
            self._repeats[one].end()
            self._begun.discard(one)

    def forget(self, stream: str | None = None) -> None:
        """All rows of a stream, or of all streams, are wanted once more."""
        for one in [one for one in self._repeats if stream in (None, one[0])]:
            del self._repeats[one]
            self._begun.discard(one)


def _keeps(family: Family, planned: PlannedStream, root: PlannedStream | None) -> Literal["top", "all"] | None:
    """Which rows of a stream may come again: those at its bookmark, or any of the last ones."""
    spec, name = planned.spec, planned.tap_stream_id
    if planned.versions or (root is not None and root.versions):
        return None
    if not planned.key_properties and (name != family.root or spec.bookmark is not None):
        return None  # equal rows may be two: of two parents
    if name != family.root:
        return "all" if any(family.keys[one] is not None for one in family.above[name]) else None
    if planned.bookmark_key is None or (spec.resume == "exclusive" and spec.lookback is None and not spec.signpost):
        return None
    made = spec.bookmark is not None or spec.post_transform is not None
    # Where a key may come twice in one reading, newest first, or in two partitions, all of them must be known.
    anywhere = planned.key_properties and (planned.order != "asc" or spec.partitions is not None)
    return "all" if made or anywhere or spec.lookback is not None or spec.signpost else "top"
