"""What a walk through a family needs of its unit: calls, retries, names for what fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from burler.declare.spec import StreamSpec
from burler.errors import DataError, LockLost, OutputClosed, StorageError, UsageError
from burler.log_settings import log_settings
from burler.pipeline.markers import CallFailed, Marker
from burler.runtime.family import Member, Walk
from burler.runtime.retries import is_retried, note, set_up

if TYPE_CHECKING:
    from burler.runtime.unit import Unit

# Errors of the whole run: no other stream would fare better, and no STATE may follow them.
FATAL: tuple[type[BaseException], ...] = (OutputClosed, StorageError, DataError, LockLost, UsageError, MemoryError)

_CHARACTERS = 60


def walk_of(unit: Unit) -> Walk:
    """How a unit's family is walked."""
    settings, line = unit.engine.settings, unit.line
    calls = _Calls(unit)
    return Walk(
        call=calls.call,
        put=calls.put,
        snapshot=unit.states,
        retry=calls.retry,
        where=lambda name, row: row_name(line.specs[name], row),
        fatal=FATAL,
        closed=line.closed,
        children={name: kids for member in unit.members.values() for name, kids in member.children.items()},
        emitted=unit.emitted,
        emitting=unit.emitting,
        watched=unit.watched,
        # A run up to a limit asks the source for no more than it shows.
        # Behind a row of one that pushes nothing may come for hours.
        most_rows=1 if unit.engine.limit is not None or unit.pushes else settings.parent_buffer_rows,
        most_seconds=settings.parent_buffer_seconds,
        asks=line.asks_children,
        keys={name: (planned.replication_key, line.textual(name)) for name, planned in line.planned.items()},
    )


def row_name(spec: StreamSpec, row: Mapping[str, Any]) -> str:
    """A row by its key, for errors: ``tickets id=5``. Where it has none, the whole row, cut, if values are shown."""
    keys = [f"{key}={str(row.get(key))[:_CHARACTERS]}" for key in spec.key_properties if key in row]
    whole = str(dict(row))[:_CHARACTERS] if log_settings.values else "(a row without a key)"
    return f"{spec.tap_stream_id} {', '.join(keys) or whole}"


class _Calls:
    """Calls of members' functions, each with the bookmark and the ``stream.state`` it is to see."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._bookmarks: dict[str, Any] = {name: member.run.raw_bookmark for name, member in unit.members.items()}
        self._other: dict[str, Any] = {}
        self._states: dict[str, bytes] = {}

    def call(self, member: Member, parent: Any) -> Any:
        """Call a function for a row of its parent."""
        if parent is not None:
            member.run._call_begins()
            member.run._bookmark = self._other.pop(member.name, self._bookmarks[member.name])
            if self._unit.line.spec(member.name).retry is not None:
                self._states[member.name] = msgspec.json.encode(member.run.state)
        return self._unit.call(member, parent)

    def put(self, marker: Marker) -> None:
        """Pass a marker on. A substream of which too many calls have failed is called no more, at once."""
        unit = self._unit
        if isinstance(marker, CallFailed) and unit.count_failed(marker.stream):
            unit.line.closed |= unit.line.below(marker.stream)
        unit.put(marker)

    def retry(self, member: Member, error: Exception, tries: int, parent: Any) -> bool:
        """Whether a call that failed is made once more; if so, the author's ``setup_retry`` has been called.

        Raises:
            StreamError: that failed.
        """
        spec = self._unit.line.spec(member.name)
        if not is_retried(spec, error, tries - 1):
            return False
        if member.name in self._states:
            member.run.state = msgspec.json.decode(self._states[member.name])
        above = self._unit.line.specs[spec.parent or ""]
        note(spec, row_name(above, parent), error, tries, self._unit.retried)
        given = {**member.given, "parent": lambda: parent}
        bookmark = set_up(self._unit.engine.session, spec, given, error, tries, run=member.context.run)
        if bookmark is not None:
            self._other[member.name] = bookmark
        return True
