"""Where the run of a line of streams begins, so that no substream misses what came while it was left out.

The parent's bookmark says that what belongs to the rows before it is out, of the substreams that were in that run.
What it was true of is noted in each substream's entry of the state, under ``parent_bookmark``: the parent's key and
value (``{"updated_at": "2024-..."}``) and, where the parent keeps a position of its own in ``stream.state``, a digest
of that. A substream that was not there when the parent went on makes the parent begin where the substream stands; where
that can't be told (another key, a position of the author's own), at the beginning.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from burler.declare.checks import line_of
from burler.declare.spec import StreamSpec
from burler.pipeline.bookmark import BookmarkTracker, comparable
from burler.runtime.plan import PlannedStream
from burler.singer import state as st

if TYPE_CHECKING:
    from burler.runtime.sync import Engine

COVERED, POSITION = "parent_bookmark", "stream_state"


class Coverage:
    """What the substreams of one run have had.

    ``start`` is the bookmark that the parent begins with; ``afresh`` says that it must not see the position it has
    saved in ``stream.state``: some substream has not had what lies before it.
    """

    def __init__(self, engine: Engine, root: StreamSpec, planned: Mapping[str, PlannedStream]) -> None:
        self._state = engine.state
        self._root = root.tap_stream_id
        own = planned.get(self._root)
        self._root_is_seen = own is not None
        self._key = own.bookmark_key if own else root.bookmark_key
        specs = engine.session.specs
        self._children = [name for name in planned if any(one.parent for one in line_of(specs[name], specs))]
        bookmark = bookmark_of(self._state, self._root, self._key)
        self.start, self.afresh = bookmark, False
        self._tracker: BookmarkTracker | None = None
        if not self._children:
            return
        if own is not None:
            self.start, self.afresh = self._oldest([self._position()], bookmark)
            return
        # The parent runs unseen: its own bookmark and position must not move, those of its substreams may.
        self.start, self.afresh = self._oldest([], None)[0], True
        if root.replication_key is not None and root.bookmark_key == root.replication_key:
            self._tracker = BookmarkTracker(
                self._root, root.replication_key, initial=self.start, sorted_rows=root.order == "asc"
            )

    @property
    def saves_position(self) -> bool:
        """Whether the parent's ``stream.state`` is saved: not where it runs unseen, for its substreams alone."""
        return self._root_is_seen or not self._children

    def _position(self) -> dict[str, Any]:
        """Where the parent stands in the state: its key and value, and a digest of its ``stream.state``."""
        found: dict[str, Any] = {}
        bookmark = bookmark_of(self._state, self._root, self._key)
        if self._key is not None and bookmark is not None:
            found[self._key] = bookmark
        saved = st.get_bookmark(self._state, self._root, POSITION, None)
        if saved:
            encoded = msgspec.json.encode(saved, order="sorted")
            found[POSITION] = hashlib.blake2b(encoded, digest_size=8).hexdigest()
        return found

    def _oldest(self, positions: list[dict[str, Any]], bookmark: Any) -> tuple[Any, bool]:
        """Where the hindmost of the positions and the substreams stands, and whether that is a beginning afresh."""
        covers = [st.get_bookmark(self._state, name, COVERED, None) for name in self._children]
        all_of_them = [*positions, *(cover if isinstance(cover, dict) else {} for cover in covers)]
        if all(cover == all_of_them[0] for cover in all_of_them):
            return (bookmark if positions else all_of_them[0].get(self._key)), False
        if any(POSITION in one for one in all_of_them) or any(self._key not in one for one in all_of_them):
            return None, True
        marks = [one[self._key] for one in all_of_them]
        ranks = [comparable(mark) for mark in marks]
        if len({kind for kind, _rank in ranks}) > 1 or any(rank is None for _kind, rank in ranks):
            return None, True  # they can't be compared: the key has changed its type
        return min(zip((rank for _kind, rank in ranks), range(len(marks)), marks, strict=True))[2], False

    def observe(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Take in rows of a parent that runs unseen, once what belongs to them is written."""
        key = self._key
        if self._tracker is not None and key is not None:
            self._tracker.observe([row.get(key) for row in rows])

    def complete(self) -> None:
        """The run has come to its end."""
        if self._tracker is not None:
            self._tracker.complete()

    def note(self) -> None:
        """Put into the state what each substream has had, as far as it is safe to say now."""
        if self._root_is_seen:
            position = self._position()
        else:
            safe = self._tracker.safe if self._tracker is not None else None
            position = {} if safe is None or self._key is None else {self._key: msgspec.to_builtins(safe)}
        for name in self._children:
            st.set_bookmark(self._state, name, COVERED, position or None)


def bookmark_of(state: Mapping[str, Any], stream: str, key: str | None) -> Any:
    """A stream's bookmark in a state; None if it keeps none."""
    return st.get_bookmark(dict(state), stream, key) if key else None
