"""What may be said of a task's sources: entries of ``source_state``, by the streams that have any."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Entries = Mapping[str, tuple[Mapping[str, Any], ...]]


class SourceEntries:
    """Those that the state had (``before``), and those that are safe to say now.

    Entries are told apart by who they are: one that was saved anew is another object, if an equal one.
    """

    def __init__(self, before: Entries) -> None:
        self._before = self._safe = before
        self._dropped: dict[str, tuple[Mapping[str, Any], ...]] = {}  # streams with entries that no longer count

    def keep(self, now: Entries) -> bool:
        """What sources said of all that is out; True if that is news."""
        news, self._safe = now != self._safe, now
        return news

    def drop(self, stream: str, left: tuple[Mapping[str, Any], ...]) -> None:
        """Entries of a stream no longer count, whatever else may be said of it."""
        self._dropped[stream] = left

    def restart(self) -> None:
        """A further try."""
        self._safe = self._before

    def to_save(self, *, tables_are_whole: bool, drops_rows: bool) -> dict[str, list[Mapping[str, Any]]]:
        """What is to be saved, of each stream of which it is other than in the state. Of a full table that is nothing
        before it is whole: 304 would else be the answer to a table whose rows no ACTIVATE_VERSION has followed.

        Args:
            drops_rows: by an ACTIVATE_VERSION of this run, targets drop those of sources that it did not read: what an
                earlier run heard of these no longer counts. Entries of other tools, which do not say what they speak
                of, stay.
        """
        found = {name: list(left) for name, left in self._dropped.items()}
        if tables_are_whole:
            names = self._before.keys() | self._safe.keys()
            changed = {name for name in names if self._safe.get(name, ()) != self._before.get(name, ())}
            found |= {name: self._still(name) for name in changed | self._dropped.keys()}
        for name, before in self._before.items() if drops_rows else ():
            old, now = {id(entry) for entry in before}, self._safe.get(name, ())
            kept = [entry for entry in now if id(entry) not in old or "for" not in entry]
            if len(kept) < len(now):
                found[name] = kept
        return found

    def _still(self, stream: str) -> list[Mapping[str, Any]]:
        """Entries without those that were dropped."""
        now = self._safe.get(stream, ())
        if stream not in self._dropped:
            return list(now)
        left = {id(entry) for entry in self._dropped[stream]}
        gone = {id(entry) for entry in self._before.get(stream, ())} - left
        return [entry for entry in now if id(entry) not in gone]
