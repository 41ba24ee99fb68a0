"""STATEs that wait until all data before them is committed."""

from __future__ import annotations

from collections.abc import Collection

from burler.singer.messages import State


class HeldStates:
    """STATEs in sequence, each with the number of its place among the messages.

    A STATE is free once no open file holds a message from before it. Of STATEs that wait for the
    same files only the newest is kept; those that wait for fewer are kept too, or a stream
    whose file is always open would hold back every STATE for ever.
    """

    def __init__(self) -> None:
        self._held: list[tuple[int, State]] = []

    def __len__(self) -> int:
        return len(self._held)

    def add(self, place: int, state: State, open_since: Collection[int]) -> None:
        """Hold a STATE. ``open_since``: the place of the first message of each open file."""
        self._held.append((place, state))
        self._forget(open_since)

    def release(self, open_since: Collection[int]) -> State | None:
        """The newest STATE that is free, if any; it and all before it are held no more."""
        oldest = min(open_since, default=None)
        free = [entry for entry in self._held if oldest is None or entry[0] < oldest]
        del self._held[: len(free)]
        self._forget(open_since)
        return free[-1][1] if free else None

    def _forget(self, open_since: Collection[int]) -> None:
        """Drop each STATE whose successor waits for the same files."""
        if len(self._held) < 2:
            return
        starts = sorted(open_since)
        kept = []
        for (place, state), (next_place, _) in zip(self._held, self._held[1:], strict=False):
            if any(place < start < next_place for start in starts):
                kept.append((place, state))
        self._held = [*kept, self._held[-1]]
