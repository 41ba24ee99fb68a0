"""STATE: when one may come, and what is in it.

There is one state for the whole run; whoever writes one says what is safe of all streams (specs 11.27, 11.29).
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from burler.context import call_bound
from burler.declare.spec import UserFunction
from burler.errors import StreamError
from burler.runtime import entries
from burler.runtime.logs import short
from burler.singer.messages import State

if TYPE_CHECKING:
    from burler.runtime.sync import Engine

_BIG_STATE = 1024  # bytes of a STATE's value, from which on it is spaced between small streams
_TIMES = 4
_LATEST_SECONDS = 60.0
_SOON_SECONDS = 5.0  # the longest that such a STATE is put off


class States:
    """Writes STATEs into the sink, each only if it differs from the last one."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._written: bytes | None = None
        self._size = len(msgspec.json.encode(engine.state)) if engine.state else 0
        self._written_at = time.monotonic()
        self.bytes_since = 0
        """Bytes of records since the last STATE."""

    @property
    def size(self) -> int:
        """Bytes of the last STATE's value; before the first one, of the state that the run was given."""
        return self._size

    @property
    def seconds_since(self) -> float:
        """How long ago the last STATE was."""
        return time.monotonic() - self._written_at

    def add(self, count: int) -> None:
        """So many bytes of records were written."""
        self.bytes_since += count

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
        engine.note_syncing()
        encoded = msgspec.json.encode(engine.state)
        if encoded != self._written:
            engine.sink.write(State(msgspec.json.decode(encoded)))
            self._written, self._size = encoded, len(encoded)
            self.bytes_since, self._written_at = 0, time.monotonic()

    def write_between(self) -> None:
        """STATE between two streams. Where there are thousands of small ones and the line is big, it is put off until
        the rows since the last one outweigh it or some time has passed; the run's last STATE always comes."""
        if self.is_small or self.has_room() or self.seconds_since >= _SOON_SECONDS:
            self.write()


class Acknowledgements:
    """Calls the authors' ``@tap.acknowledge`` functions, for STATEs whose lines have been written.

    The sink tells of them, perhaps much later (a lake commits first); they are called where user code runs.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._functions = {
            name: spec.acknowledge for name, spec in engine.session.specs.items() if spec.acknowledge is not None
        }
        self._out: deque[dict[str, Any]] = deque(maxlen=1)  # a later STATE says all that an earlier one said
        self._telling = threading.Lock()
        self._told = {name: self._of(engine.state, name) for name in self._functions}
        self.partitions: dict[str, dict[str, Any]] = {name: {} for name in self._functions}
        """The partitions of this run, by their keys in the state: what a function is told of."""

    @property
    def waiting(self) -> bool:
        """Whether there is something to tell."""
        return bool(self._out)

    def state_is_out(self, value: dict[str, Any]) -> None:
        """A STATE's line has been written; called by the sink."""
        if self._functions:
            self._out.append(value)

    def _of(self, state: dict[str, Any], name: str) -> dict[str | None, tuple[Any, Any]]:
        """The bookmark and the position of a stream (under None) and of each of its partitions."""
        spec, planned = self._engine.session.specs[name], self._engine.planned(name)
        key = planned.bookmark_key if planned is not None else spec.bookmark_key
        found: dict[str | None, tuple[Any, Any]] = {}
        for partition in (None, *entries.partitions_of(state, name)):
            entry = entries.entry_of(state, name, partition)
            position = msgspec.json.decode(msgspec.json.encode(entry.get(entries.POSITION) or {}))
            found[partition] = (entry.get(key) if key else None), position
        return found

    def call(self) -> None:
        """Tell the functions of streams that have moved since they were told last. One thread at a time: what a
        function is told never goes back. One that fails is told no more, and its stream has failed."""
        if not self._telling.acquire(blocking=False):
            return
        try:
            while self._out:
                state = self._out[0]
                for name, function in list(self._functions.items()):
                    try:
                        self._tell_all(name, function, self._of(state, name))
                    except StreamError as error:
                        del self._functions[name]
                        self._engine.stream_failed(name, error)
                # Only now: one that a signal has cut off is told again at the end of the run.
                if self._out and self._out[0] is state:
                    self._out.popleft()
        finally:
            self._telling.release()

    def _tell_all(self, name: str, function: UserFunction, now: dict[str | None, tuple[Any, Any]]) -> None:
        told = self._told[name]
        for partition, (bookmark, position) in now.items():
            if (bookmark, position) != told.get(partition, (None, {})):
                self._tell(name, function, partition, bookmark, position)
                told[partition] = (bookmark, position)

    def _tell(
        self, name: str, function: UserFunction, key: str | None, bookmark: Any, position: dict[str, Any]
    ) -> None:
        session = self._engine.session
        partition = self.partitions[name].get(key) if key is not None else None
        run = session.describing(name, bookmark=bookmark, state=position, partition=partition)
        given: dict[str, Callable[[], Any]] = session.given(
            bookmark=lambda: bookmark, state=lambda: position, stream=lambda: run
        )
        try:
            call_bound(run, lambda: session.invoke(function, given, stream=name))
        except (Exception, SystemExit) as error:
            fact = f"stream '{name}': its acknowledge function ({function.place}) failed: {short(error)}"
            raise StreamError(name, fact) from error
