"""Messages as lines on stdout, through one writer that owns its file descriptor.

``sys.stdout`` is not used: with PYTHONUNBUFFERED a signal during a blocked write makes it drop the
rest of a line. An ``os.write`` loop is exact.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from typing import Any

from burler.errors import OutputClosed, StorageError
from burler.singer.messages import ArrowPage, Batch, Message, Records, Schema, State, to_line
from burler.singer.state import state_diff
from burler.sinks.base import Forward, Sink

_GONE = "the program reading our output has gone; stopped."
_CHUNK_BYTES = 64 * 1024  # one pipe buffer: progress shows after each
_BUFFER_BYTES = 64 * 1024  # a bigger one would be memory that was not used before, at each page anew


class LineWriter:
    """Writes whole lines to a file descriptor.

    ``blocked_since`` is the monotonic time at which the write now under way last got on, None between
    writes: a watchdog reads it. Raises OutputClosed once the reader has gone.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._buffer = bytearray()
        self.blocked_since: float | None = None

    def write(self, lines: bytes | bytearray | memoryview) -> None:
        """Take complete lines; they go out when enough has come together, or at ``flush``."""
        if len(lines) >= _BUFFER_BYTES // 2:
            self.flush()
            self._write_out(lines)
            return
        self._buffer += lines
        if len(self._buffer) >= _BUFFER_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what is kept."""
        lines, self._buffer = self._buffer, bytearray()
        if lines:
            self._write_out(lines)

    def check_reader(self) -> None:
        """Look whether somebody still reads.

        Raises:
            OutputClosed: the other end of the pipe is closed.
        """
        look = select.poll()
        look.register(self._fd, 0)
        if any(events & select.POLLERR for _fd, events in look.poll(0)):
            raise OutputClosed(_GONE)

    def _write_out(self, lines: bytes | bytearray | memoryview) -> None:
        """Write all of it; what could not be written is kept."""
        done = 0
        try:
            # The views are released here even if the write fails: else the buffer of the lines could not change.
            with memoryview(lines) as view:
                while done < len(view):
                    self.blocked_since = time.monotonic()
                    with view[done : done + _CHUNK_BYTES] as part:
                        done += self._write_some(part)
        except BrokenPipeError:
            raise OutputClosed(_GONE) from None
        except OSError as error:
            raise StorageError(f"stdout can't be written: {error.strerror}.") from None
        finally:
            self.blocked_since = None
            if done < len(lines):
                self._buffer[:0] = lines[done:]

    def _write_some(self, part: memoryview) -> int:
        while True:
            try:
                return os.write(self._fd, part)
            except BlockingIOError:  # somebody who shares our stdout has made it non-blocking
                ready = select.poll()
                ready.register(self._fd, select.POLLOUT)
                ready.poll(1000)


class StdoutSink(Sink):
    """Prints messages. ``on_state`` is called with each STATE's value just before its line goes out."""

    def __init__(self, writer: LineWriter, on_state: Callable[[dict[str, Any]], None] | None = None) -> None:
        self._writer = writer
        self._on_state = on_state

    def write(self, message: Message) -> None:
        """Take a message. SCHEMA, BATCH and STATE flush: a target can prepare or load, an orchestrator waits for it."""
        if isinstance(message, Records):
            self._writer.write(message.lines)
            return
        assert not isinstance(message, ArrowPage)  # nobody makes one for this sink
        if isinstance(message, State) and self._on_state is not None:
            self._writer.flush()
            self._on_state(message.whole)
        self._writer.write(to_line(message))
        if isinstance(message, Schema | Batch | State):
            self._writer.flush()
        if isinstance(message, State) and self._told is not None:
            self._told(message.whole)

    def flush(self) -> None:
        """Write what is buffered. Lines are durable, for all that we can do, once they are written."""
        self._writer.flush()

    def tick(self) -> None:
        """Lines older than a tick go out. A reader that has gone shows here, also where nothing is to be written."""
        self._writer.flush()
        self._writer.check_reader()


class TouchedStates(Forward):
    """STATEs that carry only what has changed since the last one (``state_scope: touched``). It stands before the sink
    that prints: what counts as the last STATE is the last one that went there.

    The first STATE of a run carries everything, so that nothing rests on what somebody else has kept, and null for what
    was in the state that the run was ``given`` and is gone.
    """

    def __init__(self, sink: Sink, given: dict[str, Any] | None = None) -> None:
        super().__init__(sink)
        self._given = given or {}
        self._last: dict[str, Any] | None = None

    def write(self, message: Message) -> None:
        """Take a message; a STATE shrinks to what has changed."""
        if isinstance(message, State):
            whole = message.whole
            change = _everything(self._given, whole) if self._last is None else state_diff(self._last, whole)
            message, self._last = State(change, whole), whole
        super().write(message)


def _everything(given: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    """A whole state, with null for what it lacks of the one before it."""
    return _with_nulls(state_diff({}, whole), state_diff(given, whole), levels=4)


def _with_nulls(into: dict[str, Any], change: dict[str, Any], *, levels: int) -> dict[str, Any]:
    """At most so many levels down: top, streams, their keys, partitions. Nulls of an author's own, deeper, are data."""
    for key, value in change.items():
        if value is None:
            into.setdefault(key, None)
        elif isinstance(value, dict) and levels > 1:
            inner = into.setdefault(key, {})
            if isinstance(inner, dict) and (levels != 2 or key == "partitions"):
                _with_nulls(inner, value, levels=levels - 1)
    return into
