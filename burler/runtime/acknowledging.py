"""Acknowledgements: telling sources what a written STATE covers (docs/replication.md)."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from burler.context import call_bound
from burler.declare.spec import UserFunction
from burler.errors import StreamError
from burler.runtime import entries
from burler.runtime.logs import short

if TYPE_CHECKING:
    from burler.runtime.sync import Engine


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
