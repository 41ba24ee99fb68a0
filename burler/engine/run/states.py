"""STATE: when one may come, and what is in it.

There is one state for the whole run; whoever writes one says what is safe of all streams.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from burler.events import StateWritten
from burler.singer.messages import State

if TYPE_CHECKING:
    from burler.engine.run.sync import Engine

_BIG_STATE = 1024  # bytes of a STATE's value, from which on it is spaced between small streams
_TIMES = 4
_LATEST_SECONDS = 60.0
_SOON_SECONDS = 5.0  # the longest that such a STATE is put off


class States:
    """Writes STATEs into the sink, each only if it differs from the last one."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        # Where nothing comes in a tail, there is nothing to say (tail-mode proposal: "assuming 1 or more records").
        tail = engine.settings.tail and engine.limit is None
        self._written: bytes | None = msgspec.json.encode(engine.state) if tail else None
        self._size = len(msgspec.json.encode(engine.state)) if engine.state else 0
        self._written_at = engine.clock.monotonic()
        self.bytes_since = 0
        """Bytes of records since the last STATE."""
        self.is_put_off = False
        """Whether a stream has ended since, and its STATE was put off."""
        self.uncovered_since: float | None = None
        """When the first record went out that no STATE covers, by the engine's clock; None if there is none."""

    @property
    def size(self) -> int:
        """Bytes of the last STATE's value; before the first one, of the state that the run was given."""
        return self._size

    @property
    def seconds_since(self) -> float:
        """How long ago the last STATE was."""
        return self._engine.clock.monotonic() - self._written_at

    def add(self, count: int) -> None:
        """So many bytes of records were written."""
        self.bytes_since += count
        self.note()

    def note(self) -> None:
        """There is something that no STATE covers: a record, or what else a STATE would say anew."""
        if self.uncovered_since is None:
            self.uncovered_since = self._engine.clock.monotonic()

    def has_room(self) -> bool:
        """Whether the records since the last STATE outweigh its line: a big one several times, since making it takes
        time, too; in a slow stream, whether long enough has passed."""
        wanted = self.size if self.size <= _BIG_STATE else _TIMES * self.size
        return self.bytes_since >= wanted or (self.bytes_since > 0 and self.seconds_since >= _LATEST_SECONDS)

    @property
    def is_small(self) -> bool:
        """Whether a STATE costs next to nothing."""
        return self.size <= _BIG_STATE

    def write(self) -> None:
        """STATE, if it differs from the last one. A run up to a limit has none: it leaves rows out."""
        engine = self._engine
        if engine.limit is not None:
            return
        self.is_put_off = False
        engine.note_syncing()
        encoded = msgspec.json.encode(engine.state)
        # In a tail each covers what came since, also where it says the same.
        anyway = engine.settings.tail and self.uncovered_since is not None
        if encoded != self._written or anyway:
            engine.sink.write(State(msgspec.json.decode(encoded)))
            self._written, self._size = encoded, len(encoded)
            self.bytes_since, self._written_at = 0, engine.clock.monotonic()
            engine.events.tell(StateWritten(len(encoded)))
            self.uncovered_since = None

    def write_between(self) -> None:
        """STATE between two streams. Where there are thousands of small ones and the line is big, it is put off until
        the rows since the last one outweigh it or some time has passed; the run's last STATE always comes."""
        if self.is_small or self.has_room() or self.seconds_since >= _SOON_SECONDS:
            self.write()
        else:
            self.is_put_off = True
