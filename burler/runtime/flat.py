"""The bookmark of a partitioned stream as a whole: where partitions begin that have none of their own.

It is what rising partitions collapse into, or comes from a state of before there were partitions. ``covers`` beside it
says which streams of the line it is true of: a substream that is selected later must get its past.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from burler.runtime import entries
from burler.runtime.coverage import COVERED
from burler.runtime.line import Line

State = dict[str, Any]


def flat_bookmarks(state: Mapping[str, Any], line: Line) -> dict[str, Any]:
    """The flat bookmark of each stream of a line, as the run begins; none where some stream that is wanted has
    not had what lies before it."""
    found = {name: entries.value_of(state, name, planned.bookmark_key) for name, planned in line.planned.items()}
    key = _key(line)
    found[line.root] = entries.value_of(state, line.root, key)
    if line.declares_children and not line.selected <= _covered(state, line, key, found[line.root]):
        return dict.fromkeys(found)
    return found


def _key(line: Line) -> str | None:
    planned = line.planned.get(line.root)
    return planned.bookmark_key if planned is not None else line.spec(line.root).bookmark_key


def _covered(state: Mapping[str, Any], line: Line, key: str | None, value: Any) -> set[str]:
    covers = entries.value_of(state, line.root, entries.COVERS)
    covered = entries.covers_of(entries.entry_of(state, line.root, None), line.root)
    if key is not None and value is not None and not isinstance(covers, list):
        # Without partitions each substream notes how far its parent had come.
        noted = (name for name in line.names if entries.value_of(state, name, COVERED) == {key: value})
        covered.update(noted)
    return covered


class Flat:
    """Raises the flat bookmark of rising partitions. Under the engine's lock."""

    def __init__(self, state: State, line: Line, begun_with: Any) -> None:
        self._state = state
        self._line = line
        self._key = _key(line)
        self.value = begun_with
        """Where it stands; None if the run began without."""

    def set(self, value: Any) -> None:
        """Put it into the state, with the streams that it is true of now. One of a run that had fewer streams goes: it
        may go back by that."""
        if self._key is None:
            return
        self.value = msgspec.to_builtins(value)
        root, covers = self._line.root, sorted(self._line.selected)
        entries.put(self._state, root, self._key, self.value)
        entries.put(self._state, root, entries.COVERS, covers if covers != [root] else None)

    def drop(self) -> None:
        """Each partition has a bookmark of its own by now."""
        for name, planned in self._line.planned.items():
            if planned.bookmark_key is not None:
                entries.put(self._state, name, planned.bookmark_key, None)
        entries.put(self._state, self._line.root, entries.COVERS, None)
