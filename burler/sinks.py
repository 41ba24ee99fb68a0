"""Where messages go: what a sink is, stdout, batch files, a lake, and a list for tests; ``--sink``."""

from __future__ import annotations

import logging
import os
import select
import time
from collections.abc import Callable, Collection
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal

from burler.batch.rolling import RollSettings
from burler.batch_config import BatchConfig
from burler.errors import OutputClosed, StorageError, UsageError
from burler.settings import Settings
from burler.singer.messages import (
    ActivateVersion,
    ArrowPage,
    Batch,
    Message,
    Records,
    Schema,
    State,
    to_line,
)
from burler.singer.state import state_diff
from burler.suggest import nearest

if TYPE_CHECKING:
    from burler.batch.writer import BatchWriter
    from burler.lake.state import StateKeeper
    from burler.lake.writer import LakeWriter

logger = logging.getLogger(__name__)

_GONE = "the program reading our output has gone; stopped."
_CHUNK_BYTES = 64 * 1024  # one pipe buffer: progress shows after each
_BUFFER_BYTES = 64 * 1024  # a bigger one would be memory that was not used before, at each page anew

Form = Literal["messages", "rows", "columns"]
"""How a sink wants the rows of a stream: as RECORD lines; as lines of the rows alone (``Records.bare``); or as these
and, where a page has columns already, as these (``ArrowPage``)."""


class Sink:
    """Takes messages in sequence. Before it hands a STATE on, everything before it must be durable. This one holds
    nothing, and makes no files.

    Attributes:
        config: how files are made that BATCH messages name; None where none are.
    """

    config: BatchConfig | None = None
    _told: Callable[[State], None] | None = None

    def write(self, message: Message) -> None:
        """Take one message. A ``Records`` page's buffer is free to be reused once this returns."""
        raise NotImplementedError

    def flush(self) -> None:
        """Hand on what is buffered, where that needs no new file."""

    def settle(self) -> None:
        """Make all that was written durable now and hand the STATEs of it on, also where a file is closed for that."""
        self.flush()

    def tick(self) -> None:
        """Called about once a second from the run's timer, under its lock: do what is due by age."""

    def tell_states(self, told: Callable[[State], None]) -> None:
        """Call ``told`` with each STATE whose line has been written."""
        self._told = told

    def note_streams(self, streams: Collection[str], *, unseen: Collection[str] = ()) -> None:
        """The streams whose rows the run brings, and those that it reads ``unseen``, for their substreams alone, by
        their names in the state; before the first message."""

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
        self._sink, self.config = sink, sink.config

    def hand_on(self, action: Callable[..., None], *args: Any) -> None:
        """Whatever goes to the other sink as it is goes this way."""
        action(*args)

    def write(self, message: Message) -> None:
        """See ``Sink.write``."""
        self.hand_on(self._sink.write, message)

    def flush(self) -> None:
        """See ``Sink.flush``."""
        self.hand_on(self._sink.flush)

    def settle(self) -> None:
        """See ``Sink.settle``."""
        self.hand_on(self._sink.settle)

    def tick(self) -> None:
        """See ``Sink.tick``."""
        self.hand_on(self._sink.tick)

    def tell_states(self, told: Callable[[State], None]) -> None:
        """See ``Sink.tell_states``: what comes first holds a STATE back until the one behind may have it."""
        self._sink.tell_states(told)

    def note_streams(self, streams: Collection[str], *, unseen: Collection[str] = ()) -> None:
        """See ``Sink.note_streams``."""
        self._sink.note_streams(streams, unseen=unseen)

    def close(self, *, complete: bool) -> None:
        """See ``Sink.close``."""
        self._sink.close(complete=complete)

    def choose(self, stream: str, said: bool | None) -> Form:
        """See ``Sink.choose``."""
        return self._sink.choose(stream, said)

    def columns(self, stream: str) -> Any:
        """See ``Sink.columns``."""
        return self._sink.columns(stream)


# ---- lines on stdout --------------------------------------------------------------------------------


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
            self._told(message)

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
            if self._last is None:
                change = _with_nulls(state_diff({}, whole), state_diff(self._given, whole), levels=4)
            else:
                change = state_diff(self._last, whole)
            message, self._last = State(change, whole, message.number), whole
        super().write(message)


def _with_nulls(into: dict[str, Any], change: dict[str, Any], *, levels: int) -> dict[str, Any]:
    """A whole state, with null for what it lacks of the one before it; at most so many levels down: top,
    streams, their keys, partitions. Nulls of an author's own, deeper, are data."""
    for key, value in change.items():
        if value is None:
            into.setdefault(key, None)
        elif isinstance(value, dict) and levels > 1:
            inner = into.setdefault(key, {})
            if isinstance(inner, dict) and (levels != 2 or key == "partitions"):
                _with_nulls(inner, value, levels=levels - 1)
    return into


# ---- files --------------------------------------------------------------------------------


class _FileSink(Forward):
    """A sink that writes files: a STATE goes on to the one behind it once all before it is in files that are whole."""

    _writer: Any = None

    def settle(self) -> None:
        """All files are ended, and the STATE of them goes on."""
        if self._writer is not None:
            self._writer.flush()
        super().settle()

    def tick(self) -> None:
        """Files that are old enough are ended, with their STATE."""
        if self._writer is not None:
            self._writer.tick()
        super().tick()

    def close(self, *, complete: bool) -> None:
        """End all files and let the last STATE go; after an error of files or messages, give up what is open."""
        if self._writer is not None:
            if complete:
                self._writer.close()
            else:
                self._writer.abort()
        super().close(complete=complete)


class BatchSink(_FileSink):
    """Rows into batch files, where the config, the command line or a stream's metadata say so; all else goes on as it
    is. A stream goes out either as RECORDs or as BATCHes for the whole run: targets take the order between the two for
    what it is not.

    Args:
        on: whether streams are batched of which nothing is said.
        tap: stands in the names of files.
    """

    _writer: BatchWriter | None

    def __init__(self, sink: Sink, config: BatchConfig, *, on: bool, tap: str) -> None:
        super().__init__(sink)
        self.config: BatchConfig = config
        self._on, self._tap = on, tap
        self._forms: dict[str, Form] = {}

    def choose(self, stream: str, said: bool | None) -> Form:
        """See ``Sink.choose``. The storage is opened, and looked at, before the first message.

        Raises:
            ConfigError, UsageError, StorageError: it can't be written. MissingExtra: it needs a package.
        """
        if stream not in self._forms:
            wanted = self._on if said is None else said
            files: Form = "columns" if self.config.encoding.is_columnar else "rows"
            self._forms[stream] = files if wanted else "messages"
            if wanted and self._writer is None:
                from burler.batch.writer import BatchWriter

                self._writer = BatchWriter(self.config, tap=self._tap, emit=self._sink.write)
        return self._forms[stream]

    @property
    def made(self) -> dict[str, Any] | None:
        """See ``Sink.made``."""
        return None if self._writer is None else self._writer.made

    def columns(self, stream: str) -> Any:
        """See ``Sink.columns``."""
        return None if self._writer is None else self._writer.arrow_schema(stream)

    def write(self, message: Message) -> None:
        """Take a message."""
        writer = self._writer
        if writer is None:
            self._sink.write(message)
        elif isinstance(message, State):
            writer.state(message)
        elif self._forms.get(message.stream, "messages") == "messages":
            writer.pass_on(message)
        elif isinstance(message, Records):
            writer.rows(message.stream, message.lines, message.count, message.time_extracted, message.version)
        elif isinstance(message, ArrowPage):
            writer.table(message)
        elif isinstance(message, Schema):
            writer.schema(message)
        elif isinstance(message, ActivateVersion):
            writer.activate_version(message)
        elif isinstance(message, Batch):
            writer.batch(message)

    def settle(self) -> None:
        """All files are ended, and the STATE of them goes on; what they could not keep is in the log."""
        super().settle()
        if self._writer is not None:
            self._writer.report()


class LakeSink(_FileSink):
    """Messages into a raw lake; each STATE goes on to the next sink once its data is committed.

    Where a run is told to stop while it waits for another writer's lock, it takes nothing from there on: what came
    before is committed at the end, with the STATE of that.
    """

    _writer: LakeWriter

    def __init__(self, writer: LakeWriter, states: Sink, keeper: StateKeeper | None = None) -> None:
        super().__init__(states)
        self._writer, self._keeper = writer, keeper
        self._stopped = False

    def note_streams(self, streams: Collection[str], *, unseen: Collection[str] = ()) -> None:
        """See ``Sink.note_streams``: who keeps the state in the lake hears of it."""
        if self._keeper is not None:
            self._keeper.runs(streams, unseen=unseen)

    def write(self, message: Message) -> None:
        """Take a message."""
        from burler.lake.locks import WaitStopped

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


# ---- --sink ----------------------------------------------------------------------------------------


def open_sink(
    text: str,
    stdout: StdoutSink,
    *,
    tap_id: str,
    settings: Settings,
    state: dict[str, Any] | None = None,
    keeper: StateKeeper | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Sink:
    """``stdout`` or ``lake:URL``.

    Args:
        state: the one that the run is given.
        keeper: keeps each STATE in the lake, before it goes on.
        should_stop: whether the run is to end; it ends the wait for another writer's lock.

    Raises:
        UsageError: an unknown kind, or a lake that can't be written.
    """
    kind, _, rest = text.partition(":")
    if text == "stdout":
        return with_batches(stdout, settings, tap=tap_id, state=state)
    if lake_of_sink(text) is None:
        mistyped = rest and (kind == "file" or nearest(kind, ("lake",)) is not None)
        near = f" Did you mean 'lake:{rest if mistyped else text}'?" if mistyped or "/" in text else ""
        if kind == "batch":
            near = " Files in place of rows are an option of their own: --batch."
        raise UsageError(f"--sink {text!r} is unknown. Known: stdout, lake:URL, spark:OUT.{near}")
    from burler.lake.locks import LockSettings
    from burler.lake.store import open_store
    from burler.lake.writer import LakeWriter

    states = with_touched(stdout, settings, state)
    writer = LakeWriter(
        open_store(rest, options=settings.lake_options) if keeper is None else keeper.state.store,
        tap_id,
        emit_state=states.write,
        settings=roll_of(settings),
        compression=compression_of(settings),
        encoding=settings.lake_encoding,
        locks=LockSettings(settings.lock_ttl_seconds, settings.lock_timeout_seconds),
        tail=settings.tail,
        should_stop=should_stop,
        keeper=keeper,
    )
    return LakeSink(writer, states, keeper)


def lake_of_sink(text: str) -> str | None:
    """The lake that ``lake:URL`` names; None for another sink."""
    kind, _, rest = text.partition(":")
    return rest if kind == "lake" and rest else None


def roll_of(settings: Settings) -> RollSettings:
    """When files of a lake roll."""
    return RollSettings(**{each.name: getattr(settings, each.name) for each in fields(RollSettings)})


def compression_of(settings: Settings) -> str | None:
    """How files of a lake are compressed."""
    return None if settings.lake_compression == "none" else settings.lake_compression


def with_touched(sink: Sink, settings: Settings, state: dict[str, Any] | None) -> Sink:
    """A sink whose STATEs carry only what has changed, where settings say so; ``state`` is given to the run."""
    return TouchedStates(sink, state) if settings.state_scope == "touched" else sink


def with_batches(sink: Sink, settings: Settings, *, tap: str, state: dict[str, Any] | None) -> Sink:
    """As :func:`with_touched`, with batch files before it, where settings leave room for them: a stream's metadata may
    ask for some."""
    sink = with_touched(sink, settings, state)
    if settings.batch is False:
        return sink
    return BatchSink(sink, settings.batch_config or BatchConfig(), on=settings.wants_batches, tap=tap)
