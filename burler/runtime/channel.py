"""What functions of the author's emit beside the rows that they yield, on its way into the lane's page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from burler.context import Channel
from burler.pages import misused
from burler.pipeline import markers as mk
from burler.runtime.family import not_emitted

if TYPE_CHECKING:
    from burler.runtime.lane import Lane
    from burler.runtime.unit import Unit


class LaneChannel(Channel):
    """Takes what functions of one unit emit beside their own rows, while its lane is at it."""

    def __init__(self, lane: Lane, unit: Unit) -> None:
        self._lane = lane
        self._unit = unit
        self._parents = unit.parents

    def _check(self, stream: str, what: str) -> None:
        if self._lane.unit is not self._unit or self._lane.writing.at_work_here():
            raise self._refused(stream, what)

    def rows(self, emitter: str, stream: str, rows: Iterable[Any]) -> None:
        """Rows of ``stream`` that the function of ``emitter`` emits, behind all that was yielded so far.

        Raises:
            StreamError: something that is no row, or rows of a stream that the function does not emit.
        """
        lane, unit = self._lane, self._unit
        self._check(emitter, "emit_record")
        member = unit.members[emitter]
        if stream not in member.names:
            raise not_emitted(stream, member)
        for i, row in enumerate(rows):
            if not isinstance(row, Mapping) or misused(row):
                raise lane.pull.refuse((stream, row))
            with unit.emitting:
                self._check(emitter, "emit_record")
                unit.has_emitted = True
                lane.pull.put((stream, row))
                if stream in self._parents:
                    unit.emitted.setdefault(emitter, []).append((stream, row))
            for watched in unit.watched:
                if stream in watched:
                    watched[stream].count_row(row)
            if i % 64 == 63:
                lane.relieve()
        lane.relieve()

    def save_bookmark(self, stream: str, value: Any, *, given: bool) -> None:
        """A STATE is due behind what was yielded so far."""
        self._check(stream, "save_bookmark")
        unit = self._unit
        manual = unit.members[stream].run.manual
        said = value if given else mk.GREATEST if manual else msgspec.UNSET
        # What stream.state says is safe here, but not where rows are read ahead of what belongs to them.
        states = None if unit.line.has_children else unit.states()
        self._lane.pull.put(mk.SaveHere(stream, said, states))

    def version_begins(self, stream: str) -> None:
        """Rows from here on are a full table."""
        self._check(stream, "full_table")
        self._lane.pull.put(mk.VersionBegins(stream))

    def version_ends(self, stream: str, *, whole: bool) -> None:
        """The full table has ended."""
        self._lane.pull.put(mk.VersionEnds(stream, whole))

    def stopping(self) -> bool:
        """Whether the function is to come to its end."""
        lane = self._lane
        if lane.unit is not self._unit:
            return True
        lane.told = lane.told or lane.stopping
        return lane.told

    def wait(self, seconds: float) -> bool:
        """Sleep no longer than until then; whether it is."""
        self._lane.pause(seconds, self.stopping)
        return self.stopping()

    def catch_up(self, stream: str) -> Iterator[Any]:
        """What the sync function of a stream gives, inside of its tail function.

        Raises:
            StreamError: the tail function is not declared so, or has asked for it before.
        """
        self._check(stream, "catch_up")
        return self._unit.catching_up.begin(stream)

    def state_set(self, stream: str) -> None:
        """What a tail function says of its position counts from here on: behind it, nothing may come for hours."""
        if self._lane.pull.one_by_one and self._lane.unit is self._unit and not self._unit.line.has_children:
            self._lane.pull.put(mk.Kept(self._unit.states()))

    def in_hook(self) -> bool:
        """Whether code that runs here now is a hook, called for rows on their way out."""
        return self._lane.writing.at_work_here()

    def source_dropped(self, stream: str) -> None:
        """What was saved of a source of the stream no longer counts."""
        if self._lane.unit is self._unit:
            states = self._unit.members[stream].run.source_state
            self._lane.pull.put(mk.SourceDropped(stream, states.entries()))

    def not_modified(self, stream: str) -> None:
        """The source says that nothing has changed."""
        self._check(stream, "not_modified")
        self._lane.pull.put(mk.NotModified(stream))
