"""``--sink``: from its text to a sink; the sink of a lake."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from burler.batch.rolling import RollSettings
from burler.batch_config import BatchConfig
from burler.errors import UsageError
from burler.settings import Settings
from burler.singer.messages import Message, State
from burler.sinks.base import Forward, Sink
from burler.sinks.batch import BatchSink
from burler.sinks.stdout import StdoutSink, TouchedStates
from burler.suggest import nearest

if TYPE_CHECKING:
    from burler.lake.writing.writer import LakeWriter

logger = logging.getLogger(__name__)

KINDS = "stdout, lake:URL, spark:OUT"


class LakeSink(Forward):
    """Messages into a raw lake; each STATE goes on to the next sink once its data is committed.

    Where a run is told to stop while it waits for another writer's lock, it takes nothing from there on: what came
    before is committed at the end, with the STATE of that.
    """

    def __init__(self, writer: LakeWriter, states: Sink) -> None:
        super().__init__(states)
        self._writer = writer
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

    def settle(self) -> None:
        """All files are committed, and the STATE of them goes on."""
        self._writer.flush()
        super().settle()

    def tick(self) -> None:
        """Files that are old enough are committed, with their STATE."""
        self._writer.tick()
        super().tick()

    def close(self, *, complete: bool) -> None:
        """Commit all files and let the last STATE go; after an error of the lake itself, give up what is open."""
        if complete:
            self._writer.close()
        else:
            self._writer.abort()
        super().close(complete=complete)


def open_sink(
    text: str,
    stdout: StdoutSink,
    *,
    tap_id: str,
    settings: Settings,
    state: dict[str, Any] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Sink:
    """``stdout`` or ``lake:URL``.

    Args:
        state: the one that the run is given.
        should_stop: whether the run is to end; it ends the wait for another writer's lock.

    Raises:
        UsageError: an unknown kind, or a lake that can't be written.
    """
    kind, colon, rest = text.partition(":")
    states: Sink = TouchedStates(stdout, state) if settings.state_scope == "touched" else stdout
    if text == "stdout":
        return with_batches(states, settings, tap=tap_id)
    if kind == "lake" and colon and rest:
        return _lake(rest, states, tap_id, settings, should_stop)
    mistyped = kind == "file" or (colon and nearest(kind, ("lake",)) is not None)
    near = f" Did you mean 'lake:{rest if mistyped else text}'?" if mistyped or "/" in text else ""
    raise UsageError(f"--sink {text!r} is unknown. Known: {KINDS}.{near}")


def _lake(url: str, states: Sink, tap_id: str, settings: Settings, should_stop: Callable[[], bool]) -> LakeSink:
    from burler.lake.locking.lock import LockSettings
    from burler.lake.store import open_store
    from burler.lake.writing.writer import LakeWriter

    writer = LakeWriter(
        open_store(url, options=settings.lake_options),
        tap_id,
        emit_state=states.write,
        settings=roll_of(settings),
        compression=compression_of(settings),
        encoding=settings.lake_encoding,
        locks=LockSettings(settings.lock_ttl_seconds, settings.lock_timeout_seconds),
        tail=settings.tail,
        should_stop=should_stop,
    )
    return LakeSink(writer, states)


def roll_of(settings: Settings) -> RollSettings:
    """When files of a lake roll."""
    return RollSettings(
        max_file_bytes=settings.max_file_bytes,
        max_file_records=settings.max_file_records,
        max_file_age_seconds=settings.max_file_age_seconds,
        max_open_files=settings.max_open_files,
        max_open_bytes=settings.max_open_bytes,
    )


def compression_of(settings: Settings) -> str | None:
    """How files of a lake are compressed."""
    return None if settings.lake_compression == "none" else settings.lake_compression


def with_batches(sink: Sink, settings: Settings, *, tap: str) -> Sink:
    """A sink with batch files before it, where settings leave room for them: a stream's metadata may ask for some."""
    if settings.batch is False:
        return sink
    return BatchSink(sink, settings.batch_config or BatchConfig(), on=settings.wants_batches, tap=tap)
