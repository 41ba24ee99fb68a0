"""``--sink``: from its text to a sink."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burler.batch.rolling import RollSettings
from burler.batch_config import BatchConfig
from burler.errors import UsageError
from burler.settings import Settings
from burler.sinks.base import Sink
from burler.sinks.batch import BatchSink
from burler.sinks.lake import LakeSink
from burler.sinks.stdout import StdoutSink
from burler.sinks.touched import TouchedStates
from burler.suggest import nearest

KINDS = "stdout, lake:URL, spark:OUT"


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
