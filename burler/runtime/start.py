"""Where a unit begins: what the state says of its streams, and what their authors are told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from burler.declare.spec import StreamSpec
from burler.errors import StreamError
from burler.pipeline.lookback import before
from burler.runtime import entries
from burler.singer.bookmark_values import least

if TYPE_CHECKING:
    from burler.runtime.stream import SyncRun


class Start:
    """The beginning of one unit; ``key`` names its partition. Partitions that have no bookmark begin at the streams'
    own, as it was when the run began (``flat``).

    ``afresh`` says that the root must not see what it has saved: some stream that is wanted has not had what lies
    before it.
    """

    def __init__(self, sync: SyncRun, key: str | None) -> None:
        self._state = sync.engine.state
        self._start_date = sync.engine.settings.start_date
        self._line = sync.line
        self._flat = sync.flat
        self._interrupted = sync.interrupted
        self._coverage = sync.coverage
        self._key = key
        self.afresh = self._coverage.afresh if self._coverage is not None else self._covers_too_little()

    def _covers_too_little(self) -> bool:
        """Whether what the state says of this partition is not true of all streams that are wanted now."""
        entry = entries.entry_of(self._state, self._line.root, self._key)
        if not self._line.declares_children or not entry:
            return False
        return not self._line.selected <= entries.covers_of(entry, self._line.root)

    def saved(self, name: str, key: str | None) -> Any:
        """The bookmark of a stream, as it stands in the state."""
        if self._coverage is None and self.afresh:
            return None
        if self._coverage is not None and name in self._coverage.behind:
            return None
        if name == self._line.root and self._coverage is not None:
            return self._coverage.start
        value = entries.value_of(self._state, name, key, self._key)
        if value is None and self._key is not None:
            return self._flat.get(name)
        return value

    def resume_value(self) -> Any:
        """Where an interrupted full table goes on; None if it begins anew."""
        return self._interrupted.value if self._interrupted is not None else None

    def bookmark(self, name: str, spec: StreamSpec) -> Any:
        """What the author sees as ``stream.bookmark``."""
        planned = self._line.planned.get(name)
        if planned is not None and planned.resume_key is not None:
            return self.resume_value()
        key = planned.bookmark_key if planned is not None else spec.bookmark_key
        if key is None:
            return None
        saved = self.saved(name, key)
        if saved is not None:
            saved = self._rolled_up(name, saved)
        if saved is None:
            return self._start_date if planned is None else planned.first_bookmark(self._start_date)
        return (
            saved
            if spec.lookback is None
            else before(saved, spec.lookback, stream=name, textual=self._line.textual(name))
        )

    def _rolled_up(self, stream: str, saved: Any) -> Any:
        """The oldest of a stream's bookmark and those of substreams below it that roll up, less their lookback."""
        values = [saved]
        for name, planned in self._line.planned.items():
            spec = planned.spec
            if not spec.rollup or name == stream or name not in self._line.below(stream):
                continue
            value = entries.value_of(self._state, name, planned.bookmark_key, self._key)
            if value is None:
                return None
            values.append(
                value
                if spec.lookback is None
                else before(value, spec.lookback, stream=name, textual=self._line.textual(name))
            )
        if len(values) == 1:
            return saved
        oldest = least(values, self._line.textual(stream))
        if oldest is None:
            raise StreamError(
                stream,
                f"stream '{stream}': its bookmark and those of its substreams with rollup=True are of different kinds: "
                f"{values!r:.200}. Leave rollup out, or give them keys of one kind.",
            )
        return oldest

    def position(self, name: str) -> dict[str, Any]:
        """A copy of what a stream has saved in ``stream.state``."""
        if name == self._line.root:
            if self.afresh:
                return {}
            if self._coverage is not None and self._coverage.position is not None:
                return self._coverage.position
        found = entries.value_of(self._state, name, entries.POSITION, self._key)
        return msgspec.json.decode(msgspec.json.encode(found)) if isinstance(found, dict) else {}
