"""Writing: what becomes of the items that a lane has gathered. All of it runs under the engine's lock."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from burler.errors import StreamError
from burler.pipeline import markers as mk
from burler.pipeline.yielded import split
from burler.runtime.outlet import Outlet
from burler.runtime.unit import Unit
from burler.singer.bookmark_values import spelled

if TYPE_CHECKING:
    from burler.runtime.lane import Lane
    from burler.runtime.stream import SyncRun


class Writing:
    """Hands a lane's rows to the outlets, and acts on the markers between them.

    ``unit`` is the one whose rows are being written, None between two. Once something of a unit did not fit, nothing
    that was yielded after it goes out: its bookmark may not pass it.
    """

    def __init__(self, sync: SyncRun, lane: Lane) -> None:
        self._sync = sync
        self._lane = lane
        self.unit: Unit | None = None
        self._thread = 0

    def process(self) -> None:
        """Take what the lane has gathered, shape it, write it. An error of a unit stands in ``unit.error``.

        Raises:
            errors of the sink, and of the program itself.
        """
        items = self._lane.pull.take()
        if not items or self._sync.engine.broken or self._sync.abandoned or self._lane.abandoned:
            return
        self._thread = threading.get_ident()
        some = False
        try:
            for part, marker in mk.cut(items):
                if part and self.unit is not None and self.unit.error is None:
                    self._guarded(self.unit, self._rows, part)
                    some = True
                if marker is not None:
                    self._act(marker)
        finally:
            self._thread = 0
        if some:
            self._sync.wrote()

    def at_work_here(self) -> bool:
        """Whether this thread is writing just now: whoever asks is a hook, called with rows on their way out."""
        return self._thread == threading.get_ident()

    def _guarded(self, unit: Unit, action: Any, *args: Any) -> None:
        try:
            action(unit, *args)
        except self._sync.fatal:
            raise
        except Exception as error:
            if self._sync.engine.broken:
                raise
            unit.error = error

    # ---- rows ------------------------------------------------------------------------------------------

    def _rows(self, unit: Unit, items: Sequence[Any]) -> None:
        sync = self._sync
        unit.catching_up.check()
        line, root = sync.line, sync.name
        parts, strange = split(items if isinstance(items, list) else list(items), root)
        errors: list[tuple[str, StreamError]] = []
        written: list[tuple[str, list[Any]]] = []
        for name in sorted(parts, key=line.rank) if len(parts) > 1 else parts:
            outlet = sync.outlets.get(name)
            before = outlet.rows if outlet is not None else 0
            if outlet is not None and name not in line.dropped:
                for part in outlet.joined(parts[name]):
                    repeats = None if outlet.versions.in_block else unit.repeats(name)
                    keys, error = outlet.write(part, unit.given_to(name), repeats)
                    written.append((name, keys))
                    if error is not None:
                        errors.append((name, error))
                        break
            elif name not in line.names:
                errors.append((root, self._not_declared(name)))
            given_rows = _rows(parts[name])
            if outlet is None and name == root:
                written.append((name, self._unseen(unit, given_rows)))
            # Rows that were left out count as well; how many a page of another kind holds is seen by what came of it.
            sync.since_rows += max(len(given_rows), outlet.rows - before if outlet is not None else 0)
            sync.at = name
        self._observe(unit, written, errors, several=len(parts) > 1)
        if strange is not None:
            raise self._lane.pull.refuse(strange)

    def _observe(
        self, unit: Unit, written: list[tuple[str, list[Any]]], errors: list[tuple[str, StreamError]], *, several: bool
    ) -> None:
        """The bookmarks follow what is out. In a page of several streams the rows of one before another's bad row
        can't be told from those after it: there the bookmarks stay, and the page comes again."""
        line = self._sync.line
        own = [error for name, error in errors if not line.is_substream(name)]
        for name, error in errors:
            if error not in own:
                self._sync.failures.of_substream(name, error)
        for name, keys in written if not own or not several else ():
            try:
                unit.observe(name, keys)
            except StreamError as error:
                if not line.is_substream(name):
                    raise
                self._sync.failures.of_substream(name, error)
        if own:
            raise own[0]

    def _unseen(self, unit: Unit, rows: list[dict[str, Any]]) -> list[Any]:
        """The keys of a parent that runs unseen."""
        unseen = self._sync.line.unseen
        return unseen.of(rows) if unseen is not None and self._sync.name in unit.trackers else []

    def _not_declared(self, name: str) -> StreamError:
        sync = self._sync
        return StreamError(
            sync.name,
            f"stream '{sync.name}' ({sync.place}): yielded rows of '{name}', which it does not emit. "
            f"Declare it: tap.stream({name!r}, emitted_by={sync.name!r}, ...)",
        )

    # ---- markers ---------------------------------------------------------------------------------------

    def _act(self, marker: mk.Marker) -> None:
        sync, unit = self._sync, self.unit
        if isinstance(marker, mk.UnitBegins):
            self.unit = marker.unit
            sync.unit_began(marker.unit)
        elif isinstance(marker, mk.UnitEnds):
            self.unit = None
            self._end(marker.unit, marker.states)
        elif isinstance(marker, mk.UnitBroken):
            sync.failures.of_partition(marker.where, marker.error)
            sync.units.broken(marker.number)
        elif unit is None or unit.error is not None:
            return
        elif isinstance(marker, mk.Released):
            self._guarded(unit, self._release, marker)
        elif isinstance(marker, mk.Asked):
            self._guarded(unit, self._asked, marker.asked)
        elif isinstance(marker, mk.CallFailed):
            self._guarded(unit, self._call_failed, marker)
        elif isinstance(marker, mk.CallIncomplete):
            self._guarded(unit, self._call_incomplete, marker)
        elif isinstance(marker, mk.Skipped):
            unit.miss(marker.stream, None)
        elif isinstance(marker, mk.SaveHere):
            self._guarded(unit, self._save_here, marker)
        elif isinstance(marker, mk.Kept):
            unit.keep_states(marker.states)
        elif isinstance(marker, mk.CaughtUp):
            self._guarded(unit, self._caught_up, marker.stream)
        elif isinstance(marker, mk.NotModified):
            self._guarded(unit, self._not_modified, marker.stream)
        elif isinstance(marker, mk.SourceDropped):
            unit.drop_sources(marker.stream, marker.left)
            if sync.engine.states.is_small:
                sync.save_state()
            else:  # of thousands of partitions each would write all of them: it goes with the next one that is due
                sync.source_changed = True
        elif isinstance(marker, mk.VersionBegins):
            sync.outlets[marker.stream].versions.begin_block()
            if sync.kept is not None:
                sync.kept.forget(marker.stream)  # targets drop what went out before it
        elif isinstance(marker, mk.VersionEnds):
            sync.outlets[marker.stream].versions.end_block(whole=marker.whole and marker.stream not in unit.behind)

    def _caught_up(self, unit: Unit, stream: str) -> None:
        unit.note_incomplete()
        if stream in unit.trackers:
            unit.trackers[stream].reached()

    def _not_modified(self, unit: Unit, stream: str) -> None:
        """Rows of substreams hang on rows that do not come. What the function gives by other names may still come: if
        nothing does, that means nothing, either."""
        line = self._sync.line
        for name in line.below(stream) & self._sync.outlets.keys():
            outlet = self._sync.outlets[name]
            by_name = any(line.spec(one).emitted_by for one in line.above(name) if one != stream)
            versions = outlet.versions
            begun = outlet.rows > versions.rows_before and outlet.planned.versions and not versions.continued
            if by_name:
                versions.only_with_rows = True
            elif begun and line.is_substream(stream):
                versions.leave()  # nothing has changed for one parent, and something has for one before it
            elif begun:
                raise StreamError(
                    name,
                    f"stream '{name}' ({self._sync.place}): 'nothing has changed' (not_modified, 304) came behind "
                    f"{outlet.rows} rows of a full table, which no ACTIVATE_VERSION may follow then.\n"
                    "Say so, and call client.conditional for all resources, before the first row is yielded.",
                )
            else:
                versions.keep()

    def _end(self, unit: Unit, states: mk.Snapshot) -> None:
        if unit.error is None:
            self._guarded(unit, lambda unit: unit.catching_up.check())
        if unit.error is None:
            unit.note_incomplete()
            unit.keep_states(states)
            unit.finish()
        self._sync.unit_ended(unit)

    def _release(self, unit: Unit, marker: mk.Released) -> None:
        self._asked(unit, marker.asked)
        if unit.release(marker.states):
            self._sync.save_state()

    def _asked(self, unit: Unit, asked: list[tuple[str, Any, dict[str, Any]]]) -> None:
        for name, row, children in asked:
            outlet: Outlet | None = self._sync.outlets.get(name)
            if outlet is not None:
                unit.observe(name, outlet.ask_bookmark(row, children, unit.given_to(name)))

    def _call_failed(self, unit: Unit, marker: mk.CallFailed) -> None:
        unit.miss(marker.stream, self._values_above(unit, marker.above))
        self._sync.failures.of_call(marker.stream, _within(unit, marker.where), marker.error)

    def _call_incomplete(self, unit: Unit, marker: mk.CallIncomplete) -> None:
        unit.miss(marker.stream, self._values_above(unit, marker.above))
        unit.incomplete.setdefault(marker.stream, marker.why)

    def _values_above(self, unit: Unit, above: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Where every stream above a call is held whose rows are missing: at its row. What can't be told is left out,
        and stays where it is."""
        values: dict[str, Any] = {}
        for name, row in above.items():
            outlet = self._sync.outlets.get(name)
            if name not in unit.trackers or name in self._sync.line.asks_children:
                continue  # what the author's function would say depends on what is missing
            if outlet is None:
                unseen = self._sync.line.unseen
                values[name] = spelled(unseen.of([row]), 0) if unseen is not None else None
            else:
                found = outlet.key_of(row, unit.given_to(name))
                if found is not msgspec.UNSET:
                    values[name] = found
        return values

    def _save_here(self, unit: Unit, marker: mk.SaveHere) -> None:
        """A STATE where the author asks for one. Rows of a parent whose substreams are still to come are not covered
        yet: there the STATE comes, and the bookmark follows."""
        if marker.value is not msgspec.UNSET:
            unit.save_bookmark(marker.stream, marker.value)
        if marker.states is not None:
            unit.keep_states(marker.states)
        self._sync.save_state()


def _within(unit: Unit, where: str) -> str:
    return f"{unit.where}, parent {where}" if unit.where else f"parent {where}"


def _rows(parts: list[Any]) -> list[dict[str, Any]]:
    """The rows of a stream that were yielded as such."""
    lists = [part for part in parts if type(part) is list]
    return lists[0] if len(lists) == 1 else [row for rows in lists for row in rows]
