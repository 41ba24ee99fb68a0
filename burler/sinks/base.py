"""What a sink is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from burler.batch_config import BatchConfig
from burler.singer.messages import Message

Form = Literal["messages", "rows", "columns"]
"""How a sink wants the rows of a stream: as RECORD lines; as lines of the rows alone (``Records.bare``); or as these
and, where a page has columns already, as these (``ArrowPage``)."""


class Sink:
    """Takes messages in sequence. Before it hands a STATE on, everything before it must be durable. This one holds
    nothing, and makes no files."""

    _told: Callable[[dict[str, Any]], None] | None = None

    def write(self, message: Message) -> None:
        """Take one message. A ``Records`` page's buffer is free to be reused once this returns."""
        raise NotImplementedError

    def flush(self) -> None:
        """Hand on what is buffered, where that needs no new file."""

    def settle(self) -> None:
        """Make all that was written durable now and hand the STATEs of it on, also where a file is closed for that."""
        self.flush()

    def tick(self) -> None:
        """Called about once a second from the engine's timer, under its lock: do what is due by age."""

    def tell_states(self, told: Callable[[dict[str, Any]], None]) -> None:
        """Call ``told`` with the whole state of each STATE whose line has been written."""
        self._told = told

    def close(self, *, complete: bool) -> None:
        """The end. ``complete`` is False where an error ends the run: what can be kept is kept."""
        self.flush()

    # ---- files, in place of rows -----------------------------------------------------------------------

    def choose(self, stream: str, said: bool | None) -> Form:
        """How the rows of a stream are wanted, from here on and for the whole run.

        Args:
            said: what metadata say of this stream alone (``batch-enabled``); None: nothing.
        """
        return "messages"

    @property
    def config(self) -> BatchConfig | None:
        """How files are made that BATCH messages name; None where none are."""
        return None

    @property
    def made(self) -> dict[str, Any] | None:
        """Of the files that messages have named: ``files``, ``rows``, ``bytes`` as stored, and ``root``, the place as a
        URL without credentials. None where there are none."""
        return None

    def columns(self, stream: str) -> Any:
        """The columns of a stream's files, as an Arrow schema; once its SCHEMA has come."""
        return None


class Forward(Sink):
    """A sink before another one, that hands on whatever it does not deal with itself."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def write(self, message: Message) -> None:
        """See ``Sink.write``."""
        self._sink.write(message)

    def flush(self) -> None:
        """See ``Sink.flush``."""
        self._sink.flush()

    def settle(self) -> None:
        """See ``Sink.settle``."""
        self._sink.settle()

    def tick(self) -> None:
        """See ``Sink.tick``."""
        self._sink.tick()

    def tell_states(self, told: Callable[[dict[str, Any]], None]) -> None:
        """See ``Sink.tell_states``: what comes first holds a STATE back until the one behind may have it."""
        self._sink.tell_states(told)

    def close(self, *, complete: bool) -> None:
        """See ``Sink.close``."""
        self._sink.close(complete=complete)

    def choose(self, stream: str, said: bool | None) -> Form:
        """See ``Sink.choose``."""
        return self._sink.choose(stream, said)

    @property
    def config(self) -> BatchConfig | None:
        """See ``Sink.config``."""
        return self._sink.config

    @property
    def made(self) -> dict[str, Any] | None:
        """See ``Sink.made``."""
        return self._sink.made

    def columns(self, stream: str) -> Any:
        """See ``Sink.columns``."""
        return self._sink.columns(stream)
