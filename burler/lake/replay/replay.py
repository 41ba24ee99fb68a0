"""A lake as a Singer tap: its files out as messages again, from where the last run ended.

The one promise: a STATE covers only what has gone out before it. It comes after a file that is out as a whole, never in
one; a stream whose file is broken keeps the position before it, whatever the other streams do.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from burler.errors import BurlerError, DataError, StorageError, UsageError
from burler.lake.reading.lines import FileLines, Wanted
from burler.lake.replay.plan import ReplayStream
from burler.lake.replay.state import Part, Plan, Position, plan, position_of
from burler.singer.messages import State, to_line
from burler.singer.state import entry_of
from burler.storage.base import Store

_log = logging.getLogger("burler.lake")
STATE_SECONDS = 1.0
_UNREADABLE = (DataError, StorageError, UsageError)
"""What a file that can't be read raises; the last where we have no right to."""


@dataclass(slots=True)
class Replayed:
    """What came out: RECORDs and files of each stream; ``errors``: of the streams that could not be read to their end.
    ``stopped``: told to, before the end."""

    records: dict[str, int] = field(default_factory=dict)
    files: dict[str, int] = field(default_factory=dict)
    errors: dict[str, BurlerError] = field(default_factory=dict)
    stopped: bool = False


class _Broken(Exception):
    """A file can't be read; the reason is its cause."""

    def __init__(self, reason: BurlerError) -> None:
        super().__init__()
        self.reason = reason


class _Stopped(Exception):
    pass


class Replay:
    """One run.

    Args:
        streams: in the order in which they go out.
        state: of an earlier run; what it says of other streams is handed on.
        write: gets complete lines. Its errors end the run.
        flush: called behind each STATE.
        monotonic: seconds of a clock that never goes back; for the time between two STATEs.
        should_stop: asked between blocks of about a MiB.
    """

    def __init__(
        self,
        store: Store,
        streams: Sequence[ReplayStream],
        *,
        write: Callable[[bytes], object],
        monotonic: Callable[[], float],
        state: Mapping[str, Any] | None = None,
        flush: Callable[[], object] = lambda: None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._store = store
        self._streams = streams
        self._write = write
        self._flush = flush
        self._monotonic = monotonic
        self._should_stop = should_stop
        self._state: dict[str, Any] = copy.deepcopy(dict(state or {}))
        self._state["bookmarks"] = self._state.get("bookmarks") or {}
        self._written: bytes | None = None
        self._due = monotonic() + STATE_SECONDS
        self.done = Replayed()

    def run(self) -> Replayed:
        """Write everything that is new. A stream that can't be read ends there, and the others go on.

        Raises:
            OutputClosed, StorageError: what ``write`` raises.
        """
        plans = [(one, self._plan(one)) for one in self._streams]
        try:
            for stream, its_plan in plans:
                try:
                    self._stream(stream, its_plan)
                except _Broken as broken:
                    self.done.errors[stream.id] = broken.reason
                self._say(stream)
        except _Stopped:
            self.done.stopped = True
        self._emit_state(last=True)
        return self.done

    def _plan(self, stream: ReplayStream) -> Plan:
        """What is left of a stream; said aloud where it is more than what is new."""
        snapshot = stream.snapshot
        start, why_not = position_of(entry_of(self._state, stream.id), snapshot, stream.only)
        if why_not is not None:
            _log.warning("stream '%s' is read from the start: %s", stream.id, why_not)
            self._state["bookmarks"].pop(stream.id, None)
        elif snapshot.generation is None:
            _log.warning(
                "stream '%s' has no manifest with commits to count, so each run reads it from the start. "
                "Make one: burler lake rebuild",
                stream.id,
            )
        made = plan(snapshot, stream.choice, start)
        for path in made.again:
            _log.warning("stream '%s': %s was compacted of old and new rows; the old ones come again", stream.id, path)
        return made

    def _stream(self, stream: ReplayStream, its_plan: Plan) -> None:
        self.done.records[stream.id] = self.done.files[stream.id] = 0
        if not its_plan.parts:
            self._newest_schema(stream)
        before: bytes | None = None
        for part, position in zip(its_plan.parts, its_plan.after, strict=True):
            before = self._part(stream, part, before)
            self.done.files[stream.id] += 1
            self._move(stream, position)
            self._emit_state()
        self._move(stream, its_plan.end)
        self._emit_state()

    def _newest_schema(self, stream: ReplayStream) -> None:
        try:
            head = stream.newest(self._store)
        except _UNREADABLE as error:
            raise _Broken(error) from error
        if head is not None:
            self._write(stream.shaped(head)[0])

    def _part(self, stream: ReplayStream, part: Part, before: bytes | None) -> bytes:
        """One file. ``before``: line 1 of the file before it; gives that of this one."""
        if self._should_stop():
            raise _Stopped
        try:
            opened = FileLines(self._store, part.file)
        except _UNREADABLE as error:
            raise _Broken(error) from error
        with opened:
            line, cut = stream.shaped(opened.head)
            if opened.head.line != before:
                self._write(line)
            wanted = Wanted(
                times=stream.choice.times, cut=cut or None, name=stream.name, activations=not stream.is_part
            )
            pages = opened.lines(wanted)
            while True:
                try:
                    page = next(pages, None)
                except _UNREADABLE as error:
                    raise _Broken(error) from error
                if page is None:
                    break
                self._write(page[0])
                self.done.records[stream.id] += page[1]
                if self._should_stop():
                    raise _Stopped
        for kind, number in opened.skipped.items():
            _log.warning("%s, line %d: %s does not belong there and is left out", part.file.path, number, kind)
        return opened.head.line

    def _move(self, stream: ReplayStream, position: Position | None) -> None:
        if position is not None and stream.snapshot.generation is not None:
            self._state["bookmarks"][stream.id] = position.to_wire(stream.snapshot, stream.only)

    def _emit_state(self, *, last: bool = False) -> None:
        """A STATE, if one is due and says something new; the last one comes in any case."""
        if not last and self._monotonic() < self._due:
            return
        line = to_line(State(self._state))
        if line != self._written:
            self._write(line)
            self._written = line
        self._flush()
        self._due = self._monotonic() + STATE_SECONDS

    def _say(self, stream: ReplayStream) -> None:
        _log.info(
            "stream '%s': %s row(s) of %s file(s)", stream.id, self.done.records[stream.id], self.done.files[stream.id]
        )
