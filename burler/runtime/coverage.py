"""Where the run of a line of streams begins, so that no substream misses what came while it was left out.

The parent's bookmark says that what belongs to the rows before it is out, of the substreams that were in that run.
What it was true of is noted in each substream's entry of the state, under ``parent_bookmark``: the parent's key and
value (``{"updated_at": "2024-..."}``) and, where the parent keeps a position of its own in ``stream.state``, a digest
of that; the position itself where the parent ran unseen, since the state has it nowhere else. A substream that was not
there when the parent went on makes the parent begin where the substream stands; where that can't be told (another key,
a position of the author's own), at the beginning.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from burler.pipeline.bookmark import BookmarkTracker
from burler.singer import state as st
from burler.singer.bookmark_values import least

if TYPE_CHECKING:
    from burler.runtime.line import Line

COVERED, POSITION = "parent_bookmark", "stream_state"


class Coverage:
    """What the substreams of one run have had.

    ``start`` is the bookmark that the parent begins with; ``afresh`` says that it must not see the position it has
    saved in ``stream.state``: some substream has not had what lies before it.
    """

    def __init__(self, state: dict[str, Any], line: Line) -> None:
        self._state = state
        self._root = line.root
        root, own = line.spec(line.root), line.planned.get(line.root)
        self._root_is_seen = own is not None
        self._key = own.bookmark_key if own else root.bookmark_key
        self._textual = line.textual(line.root)
        self._children = [name for name in line.planned if line.is_substream(name)]
        self.saved = bookmark = bookmark_of(self._state, self._root, self._key)
        self.start, self.afresh = bookmark, False
        self.position: dict[str, Any] | None = None
        self.behind: set[str] = set()  # substreams that some stream below them makes begin anew
        if not self._children:
            return
        if own is not None:
            self.start, self.afresh = self._oldest([self._position()], bookmark)
            self._note_behind(line)
            return
        # The parent runs unseen: its own bookmark and position must not move, those of its substreams may.
        self.start, self.afresh = self._oldest([], None)
        self._note_behind(line)
        if not self.afresh:
            self.position = self._position_of_children()
            self.afresh = self.position is None

    def reads_again(self) -> list[str]:
        """The substreams for which a parent that is seen begins before its bookmark; none where it does not."""
        if not self._root_is_seen or self.saved is None or self.start == self.saved:
            return []
        own = self._position()
        return [name for name in self._children if self._cover(name) != own]

    def _cover(self, name: str) -> dict[str, Any]:
        return _comparable(st.get_bookmark(self._state, name, COVERED, None))

    @property
    def saves_position(self) -> bool:
        """Whether the parent's ``stream.state`` is saved: not where it runs unseen, for its substreams alone."""
        return self._root_is_seen or not self._children

    def _note_behind(self, line: Line) -> None:
        """A substream with a bookmark of its own would give what is new to itself alone: it begins anew where a stream
        below it has not had the same of the parent as it has, also where it runs unseen itself."""

        for name in self._children:
            above = (one for one in line.above(name)[1:] if one != line.root)
            self.behind |= {one for one in above if self._cover(one) != self._cover(name)}

    def _position(self) -> dict[str, Any]:
        """Where the parent stands in the state: its key and value, and a digest of its ``stream.state``."""
        found: dict[str, Any] = {}
        bookmark = bookmark_of(self._state, self._root, self._key)
        if self._key is not None and bookmark is not None:
            found[self._key] = bookmark
        saved = st.get_bookmark(self._state, self._root, POSITION, None)
        if saved:
            found[POSITION] = _digest(saved)
        return found

    def _position_of_children(self) -> dict[str, Any] | None:
        """The position that all substreams have reached without their parent, for its function to go on from; None if
        it is not known any more."""
        cover = st.get_bookmark(self._state, self._children[0], COVERED, None) or {}
        position = cover.get(POSITION)
        if position is None or isinstance(position, dict):
            return position or {}
        saved = st.get_bookmark(self._state, self._root, POSITION, None)
        return copy.deepcopy(saved) if saved and _digest(saved) == position else None

    def _oldest(self, positions: list[dict[str, Any]], bookmark: Any) -> tuple[Any, bool]:
        """Where the hindmost of the positions and the substreams stands, and whether that is a beginning afresh."""
        covers = [st.get_bookmark(self._state, name, COVERED, None) for name in self._children]
        all_of_them = [*positions, *(_comparable(cover) for cover in covers)]
        if all(cover == all_of_them[0] for cover in all_of_them):
            return (bookmark if positions else all_of_them[0].get(self._key or "")), False
        key = self._key
        if key is None or any(POSITION in one or key not in one for one in all_of_them):
            return None, True
        marks = [one[key] for one in all_of_them]
        oldest = least(marks, self._textual)
        return oldest, oldest is None  # None: they can't be compared, since the key has changed its type

    def note(self, tracker: BookmarkTracker | None, position: dict[str, Any] | None) -> None:
        """Put into the state what each substream has had, as far as it is safe to say now; ``tracker`` is the
        parent's, ``position`` what its ``stream.state`` says."""
        if not self._children:
            return
        if self._root_is_seen:
            cover = self._position()
        else:
            safe = tracker.safe if tracker is not None else None
            cover = {} if safe is None or self._key is None else {self._key: msgspec.to_builtins(safe)}
            if position:
                cover[POSITION] = position
        for name in self._children:
            st.set_bookmark(self._state, name, COVERED, copy.deepcopy(cover) or None)


def _digest(position: dict[str, Any]) -> str:
    return hashlib.blake2b(msgspec.json.encode(position, order="sorted"), digest_size=8).hexdigest()


def _comparable(cover: Any) -> dict[str, Any]:
    """What a substream has had, with a digest in place of a whole position."""
    if not isinstance(cover, dict):
        return {}
    position = cover.get(POSITION)
    return {**cover, POSITION: _digest(position)} if isinstance(position, dict) else cover


def bookmark_of(state: Mapping[str, Any], stream: str, key: str | None) -> Any:
    """A stream's bookmark in a state; None if it keeps none."""
    return st.get_bookmark(dict(state), stream, key) if key else None
