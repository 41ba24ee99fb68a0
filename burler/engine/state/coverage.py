"""Where the run of a family begins, so that no substream misses what came while it was left out.

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
from typing import Any

import msgspec

from burler.engine.family import Family
from burler.singer.bookmark_values import least
from burler.singer.state import PARENT_BOOKMARK, POSITION, State, put, value_of


class ChildCoverage:
    """What the substreams of one run have had.

    Attributes:
        start: the bookmark that the parent begins with.
        afresh: the parent must not see the position it has saved in ``stream.state``: some substream has not had what
            lies before it.
        position: what a parent that runs unseen sees in place of its own.
        behind: substreams that some stream below them makes begin anew.
        saves_position: the parent's ``stream.state`` is saved: not where it runs unseen, for its substreams alone.
    """

    def __init__(self, state: State, family: Family) -> None:
        self._state, self._family = state, family
        self._is_seen = family.root in family.selected
        self._children = [name for name in family.names if name in family.selected & family.substreams]
        # Where it runs unseen its own bookmark and position must not move, those of its substreams may.
        self.saves_position = self._is_seen or not self._children
        self.saved = self.start = value_of(state, family.root, family.key)
        self.afresh = False
        self.position: dict[str, Any] | None = None
        self.behind: set[str] = set()
        if not self._children:
            return
        self.start, self.afresh = self._oldest([self._position()] if self._is_seen else [])
        self._note_behind()
        if not self._is_seen and not self.afresh:
            self.position = self._position_of_children()
            self.afresh = self.position is None

    def reads_again(self) -> list[str]:
        """The substreams for which a parent that is seen begins before its bookmark; none where it does not."""
        if not self._is_seen or self.saved is None or self.start == self.saved:
            return []
        own = self._position()
        return [name for name in self._children if self._cover(name) != own]

    def note(self, bookmark: Any, position: dict[str, Any] | None) -> None:
        """Put into the state what each substream has had, as far as it is safe to say now.

        Args:
            bookmark: of the parent; position: what its ``stream.state`` says.
        """
        if not self._children:
            return
        key = self._family.key
        if self._is_seen:
            cover = self._position()
        else:
            cover = {} if bookmark is None or key is None else {key: bookmark}
            if position:
                cover[POSITION] = position
        for name in self._children:
            put(self._state, name, PARENT_BOOKMARK, copy.deepcopy(cover) or None)

    def _cover(self, name: str) -> dict[str, Any]:
        return _comparable(value_of(self._state, name, PARENT_BOOKMARK))

    def _note_behind(self) -> None:
        """A substream with a bookmark of its own would give what is new to itself alone: it begins anew where a stream
        below it has not had the same of the parent as it has, also where it runs unseen itself."""
        for name in self._children:
            above = (one for one in self._family.above[name][1:] if one != self._family.root)
            self.behind |= {one for one in above if self._cover(one) != self._cover(name)}

    def _position(self) -> dict[str, Any]:
        """Where the parent stands in the state: its key and value, and a digest of its ``stream.state``."""
        found: dict[str, Any] = {}
        key, bookmark = self._family.key, value_of(self._state, self._family.root, self._family.key)
        if key is not None and bookmark is not None:
            found[key] = bookmark
        saved = value_of(self._state, self._family.root, POSITION)
        if saved:
            found[POSITION] = _digest(saved)
        return found

    def _position_of_children(self) -> dict[str, Any] | None:
        """The position that all substreams have reached without their parent, for its function to go on from; None if
        it is not known any more."""
        cover = value_of(self._state, self._children[0], PARENT_BOOKMARK) or {}
        position = cover.get(POSITION)
        if position is None or isinstance(position, dict):
            return position or {}
        saved = value_of(self._state, self._family.root, POSITION)
        return copy.deepcopy(saved) if saved and _digest(saved) == position else None

    def _oldest(self, positions: list[dict[str, Any]]) -> tuple[Any, bool]:
        """Where the hindmost of the positions and the substreams stands, and whether that is a beginning afresh."""
        covers = [*positions, *map(self._cover, self._children)]
        key = self._family.key or ""
        if all(cover == covers[0] for cover in covers):
            return covers[0].get(key), False
        if any(POSITION in one or key not in one for one in covers):
            return None, True
        oldest = least([one[key] for one in covers], self._family.key_format)
        return oldest, oldest is None  # None: they can't be compared, since the key has changed its type


def _digest(position: dict[str, Any]) -> str:
    return hashlib.blake2b(msgspec.json.encode(position, order="sorted"), digest_size=8).hexdigest()


def _comparable(cover: Any) -> dict[str, Any]:
    """What a substream has had, with a digest in place of a whole position."""
    if not isinstance(cover, dict):
        return {}
    position = cover.get(POSITION)
    return {**cover, POSITION: _digest(position)} if isinstance(position, dict) else cover
