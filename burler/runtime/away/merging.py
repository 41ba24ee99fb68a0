"""The ends of parts, put together on the driver: what one local run of all of them would have written.

Parts may end in any order. What a partition has reached goes into its own entry; where partitions rise, those that are
finished collapse into the stream's bookmark by the very code that a local run has for it (``runtime/rising``).
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

from burler.declare.strategies import EndOfSync, Manual
from burler.errors import StreamError
from burler.runtime import entries
from burler.runtime.away.ends import PartEnd, PartError, as_errors
from burler.runtime.away.parts import Line, Part
from burler.runtime.flat import Flat
from burler.runtime.rising import Rising
from burler.singer import state as st
from burler.singer.bookmark_values import comparable, greater
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

    def begin(self, line: Line, state: Mapping[str, Any]) -> bool:
        """The parts of a stream were found: what that took out of the state they begin with goes here, too. True if
        there was something: a STATE without it must be out before rows that are committed now."""
        before = copy.deepcopy(self.state.get("bookmarks"))
        for name in line.names:
            _set_whole(self.state, name, entries.entry_of(state, name, None))
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
            self._streams[part.stream] = _Stream(self.state, part.line, part.count, whole=part.key is None)
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

    def __init__(self, state: dict[str, Any], line: Line, count: int, *, whole: bool) -> None:
        self.count, self.ended = count, 0
        self._state, self._line, self._whole = state, line, whole
        self._failed = line.incomplete
        self._behind: set[str] = set(line.names) if line.incomplete else set()
        self._kept: set[str] = set()
        self._greatest: Any = None
        self._sync: Any = _as_run(state, line)
        self._rising = Rising(self._sync) if line.rises else None
        self._done = False

    def add(self, end: PartEnd) -> StreamError | None:
        """Take in an end; the error of partitions that don't rise as declared."""
        self.ended += 1
        self._failed |= bool(end.errors) or end.failed
        self._behind |= end.behind
        self._kept |= end.kept
        for name, entry in end.entries.items():
            self._put(name, end.part.key, entry)
        for name, version in end.versions.items():
            if version > (st.get_version(self._state, name) or 0):
                st.set_bookmark(self._state, name, "version", version)
        if self._rising is None:
            return None
        if not end.begun:
            self._rising.stop_at(end.part.number)
            return None
        self._note(end.safe)
        try:
            self._rising.ended(_as_unit(end), end.part.number)
        except StreamError as error:
            self._failed = True
            self._behind |= set(self._line.names)
            return error
        return None

    def lost(self, part: Part) -> None:
        """A part has come to nothing."""
        self.ended += 1
        self._failed = True
        self._behind |= set(self._line.names)
        if self._rising is not None:
            self._rising.stop_at(part.number)

    def finish(self) -> list[ActivateVersion]:
        """See ``Merge.finish``."""
        if self._whole or self._done:
            return []
        self._done = True
        messages = []
        for name, table in self._line.tables.items():
            if name not in self._behind | self._kept:
                messages.append(ActivateVersion(table.stream, table.version))
                st.set_bookmark(self._state, name, "version", table.version)
        if not self._failed:
            if self._rising is not None:
                self._rising.finish(self._greatest)
            elif entries.partitions_of(self._state, self._line.root):
                Flat(self._state, self._sync.line, None).drop()
        return messages

    def _put(self, name: str, key: str | None, entry: Mapping[str, Any] | None) -> None:
        if key is not None:
            if entry is None:
                entries.drop(self._state, name, key)
            else:
                for field, value in entry.items():
                    entries.put(self._state, name, field, copy.deepcopy(value), key)
                for field in entries.entry_of(self._state, name, key).keys() - entry.keys():
                    entries.put(self._state, name, field, None, key)
            return
        _set_whole(self._state, name, entry)

    def _note(self, value: Any) -> None:
        self._greatest = greater(self._greatest, value, self._line.textual)


def _set_whole(state: dict[str, Any], name: str, entry: Mapping[str, Any] | None) -> None:
    """A stream's whole entry; None and an empty one take it away."""
    if entry:
        state.setdefault("bookmarks", {})[name] = copy.deepcopy(dict(entry))
    elif name in state.get("bookmarks", {}):
        del state["bookmarks"][name]
        if not state["bookmarks"]:
            del state["bookmarks"]


def _as_run(state: dict[str, Any], line: Line) -> Any:
    """What ``Rising`` and ``Flat`` look at of a run and its line."""
    strategy = Manual() if line.manual else EndOfSync()
    spec = SimpleNamespace(resume=line.resume, strategy=strategy, on_unsorted=line.on_unsorted)
    planned = {name: SimpleNamespace(bookmark_key=key) for name, key in line.keys.items()}
    return SimpleNamespace(
        spec=spec,
        name=line.root,
        engine=SimpleNamespace(state=state),
        flat={line.root: line.flat},
        line=SimpleNamespace(
            root=line.root,
            names=line.names,
            selected=line.selected,
            planned=planned,
            spec=lambda _name: SimpleNamespace(bookmark_key=line.root_key),
            textual=lambda _name: line.textual,
        ),
    )


def _as_unit(end: PartEnd) -> Any:
    """What ``Rising`` looks at of a unit."""
    part, textual = end.part, end.part.line.textual

    def ranked(value: Any) -> tuple[Any, Any] | None:
        return None if value is None else (comparable(value, textual)[1], value)

    key = part.line.keys.get(part.stream) or part.line.root_key or ""
    return SimpleNamespace(
        key=part.key,
        where=part.where,
        error=next(iter(end.errors), None) if end.failed else None,
        behind=end.behind,
        keys={part.stream: key},
        trackers={part.stream: SimpleNamespace(safe=end.safe)} if end.safe is not None else {},
        span=SimpleNamespace(least=ranked(end.least), greatest=ranked(end.greatest)),
    )
