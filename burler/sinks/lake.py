"""Messages into a raw lake; each STATE goes on to stdout once its data is committed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from burler.singer.messages import Message, State
from burler.sinks.base import Sink

if TYPE_CHECKING:
    from burler.lake.writing.writer import LakeWriter


logger = logging.getLogger(__name__)


class LakeSink:
    """Hands messages to a lake writer, and the STATEs that it gives back to the next sink.

    Where a run is told to stop while it waits for another writer's lock, it takes nothing from there on: what came
    before is committed at the end, with the STATE of that.
    """

    def __init__(self, writer: LakeWriter, states: Sink) -> None:
        self._writer = writer
        self._states = states
        self._stopped = False

    def write(self, message: Message) -> None:
        """Take a message."""
        from burler.lake.locking.lock import WaitStopped

        if self._stopped:
            return  # it would stand behind a hole
        try:
            if isinstance(message, State):
                self._writer.state(message)
            else:
                self._writer.take(message)
        except WaitStopped as stop:
            self._stopped = True
            logger.warning("%s", stop)

    def tell_states(self, told: Callable[[dict[str, Any]], None]) -> None:
        """Of those whose data is committed and whose line has gone on."""
        self._states.tell_states(told)

    def flush(self) -> None:
        """STATEs that are free already go out; files stay open."""
        self._states.flush()

    def settle(self) -> None:
        """All files are committed, and the STATE of them goes on."""
        self._writer.flush()
        self._states.flush()

    def tick(self) -> None:
        """Files that are old enough are committed, with their STATE."""
        self._writer.tick()
        self._states.tick()

    def close(self, *, complete: bool) -> None:
        """Commit all files and let the last STATE go; after an error of the lake itself, give up what is open."""
        if complete:
            self._writer.close()
        else:
            self._writer.abort()
        self._states.close(complete=complete)
