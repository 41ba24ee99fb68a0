"""The ends of parts, put together on the driver: what one local run of all of them would have written.

Parts may end in any order. What a partition has reached goes into its own entry; where partitions rise, those that are
finished collapse into the stream's bookmark by the very code that a local run has for it (``engine/state/ordered``).
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from burler.engine.family import Family
from burler.engine.remote.ends import PartEnd, PartError, as_errors
from burler.engine.remote.parts import Part
from burler.engine.state.ordered import FlatBookmark, OrderedPartitions
from burler.errors import StreamError
from burler.singer import state as st
from burler.singer.messages import ActivateVersion


class Merge:
    """Takes ends as they come; ``state`` says at any time what is safe to say of what was taken in.

    One thread at a time. ``errors`` are those of the parts, as a local run has them in its result.
    """

    def __init__(self, state: Mapping[str, Any] | None = None) -> None:
        self.state: dict[str, Any] = copy.deepcopy(dict(state or {}))
        st.set_currently_syncing(self.state, None)
        self.rows: dict[str, int] = {}
        self._streams: dict[str, _Stream] = {}
        self._errors: list[PartError] = []

    @property
    def errors(self) -> dict[str, BaseException]:
        """The errors of the parts, by stream."""
        return as_errors(self._errors)

    def begin(self, family: Family, state: Mapping[str, Any]) -> bool:
        """The parts of a stream were found: what that took out of the state they begin with goes here, too. True if
        there was something: a STATE without it must be out before rows that are committed now."""
        before = copy.deepcopy(self.state.get("bookmarks"))
        for name in family.names:
            st.put_entry(self.state, name, st.entry_of(state, name))
        return bool(before != self.state.get("bookmarks"))

    def add(self, end: PartEnd) -> None:
        """A part has ended, and what it gave is durable."""
        self._errors += end.errors
        for name, rows in end.rows.items():
            self.rows[name] = self.rows.get(name, 0) + rows
        error = self._of(end.part).add(end)
        if error is not None:
            self._errors.append(PartError(end.part.stream, "", str(error).removeprefix(f"stream '{error.stream}': ")))

    def lost(self, part: Part, error: str) -> None:
        """A part has come to nothing: whoever ran it is gone, and what it gave is lost."""
        self._errors.append(PartError(part.stream, part.where, error))
        self._of(part).lost(part)

    def is_whole(self, stream: str) -> bool:
        """Whether all parts of a stream have ended, well or not."""
        found = self._streams.get(stream)
        return found is not None and found.ended == found.count

    def finish(self, stream: str) -> list[ActivateVersion]:
        """All parts of a stream have ended: what can be said of the stream as a whole goes into ``state``.

        Returns the messages that must be durable before that state is told: full tables that count from here on.
        Nothing where parts are missing.
        """
        found = self._streams.get(stream)
        return found.finish() if found is not None and found.ended == found.count else []

    def _of(self, part: Part) -> _Stream:
        if part.stream not in self._streams:
            self._streams[part.stream] = _Stream(self.state, part)
        return self._streams[part.stream]


def merge_states(state: Mapping[str, Any] | None, ends: Iterable[PartEnd]) -> dict[str, Any]:
    """The state after these parts, of any streams: what one local run would have written into its last STATE.

    Where all parts of a full table are here and whole, its version is in it: ACTIVATE_VERSION must go out before.
    """
    merge = Merge(state)
    streams: dict[str, None] = {}
    for end in ends:
        merge.add(end)
        streams[end.part.stream] = None
    for stream in streams:
        merge.finish(stream)
    return merge.state


class _Stream:
    """The parts of one stream."""

    def __init__(self, state: dict[str, Any], part: Part) -> None:
        shared = part.shared
        self.count, self.ended = part.count, 0
        self._state, self._family, self._tables = state, shared.family, shared.tables
        self._is_whole = part.key is None
        self._failed = shared.incomplete
        self._behind: set[str] = set(self._family.names) if shared.incomplete else set()
        self._kept: set[str] = set()
        self._ordered = OrderedPartitions(state, shared.family, shared.order, shared.flat) if shared.order else None
        self._done = False

    def add(self, end: PartEnd) -> StreamError | None:
        """Take in an end; the error of partitions that don't rise as declared."""
        self.ended += 1
        self._failed |= bool(end.errors) or end.failed
        self._behind |= end.behind
        self._kept |= end.kept
        for name, entry in end.entries.items():
            st.put_entry(self._state, name, entry, end.part.key)
        for name, version in end.versions.items():
            if version > (st.get_version(self._state, name) or 0):
                st.put(self._state, name, st.VERSION, version)
        if self._ordered is None:
            return None
        if end.progress is None:
            self._ordered.stop_at(end.part.number)
            return None
        try:
            self._ordered.ended(end.progress, end.part.number)
        except StreamError as error:
            self._failed = True
            self._behind |= set(self._family.names)
            return error
        return None

    def lost(self, part: Part) -> None:
        """A part has come to nothing."""
        self.ended += 1
        self._failed = True
        self._behind |= set(self._family.names)
        if self._ordered is not None:
            self._ordered.stop_at(part.number)

    def finish(self) -> list[ActivateVersion]:
        """See ``Merge.finish``."""
        if self._is_whole or self._done:
            return []
        self._done = True
        messages = []
        for name, table in self._tables.items():
            if name not in self._behind | self._kept:
                messages.append(ActivateVersion(table.stream, table.version))
                st.put(self._state, name, st.VERSION, table.version)
        if self._failed:
            return messages
        if self._ordered is not None:
            self._ordered.finish()
        elif st.partitions_of(self._state, self._family.root):
            FlatBookmark(self._state, self._family).drop()
        return messages
