"""BATCH to BATCH: files rewritten between a tap and a target that disagree about format, compression or storage (BATCH
proposal: storage transforms)."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, BinaryIO

from burler.batch.allowed import Allowed
from burler.batch.expansion import Expanded, Stopped
from burler.batch.readers import BatchReading, read
from burler.batch.storage import open_storage
from burler.batch.tap_lines import Activation, Found, Piece, TapLines, never, nothing, once
from burler.batch.writer import BatchWriter
from burler.batch_config import BatchConfig
from burler.clock import Clock
from burler.errors import BatchError, MessageError
from burler.singer.messages import ActivateVersion, ArrowPage, Batch, Message, Schema, to_line

logger = logging.getLogger(__name__)


def convert(
    source: BinaryIO | int,
    write: Callable[[bytes], object],
    config: BatchConfig,
    *,
    tap: str = "tap",
    options: Mapping[str, Any] | None = None,
    allow: Allowed | Iterable[str] | None = None,
    flush: Callable[[], object] = nothing,
    tick: Callable[[], object] = nothing,
    should_stop: Callable[[], bool] = never,
    warn: Callable[[str], object] = logger.warning,
    clock: Clock | None = None,
    run_id: str | None = None,
) -> Expanded:
    """Write messages of any tap with the files of each BATCH rewritten, until the end of ``source``.

    In place of a BATCH come one or more that name the new files, which are durable by then; everything else passes byte
    for byte, at its place. Columns that stay columns, and JSON lines that stay such, are never taken apart into rows.
    The old files are left as they are.

    Args:
        config: how and where the new files are to be. No file waits for rows of a later BATCH; one that is older than
            ``batch_age_seconds`` ends while its BATCH is rewritten.
        options: for the library that reaches the old files.
        allow: what manifests may name; see ``burler.batch.read``.
        tap, flush, tick, should_stop, warn: see ``burler.batch.pack``.

    Raises:
        BatchError: a BATCH that can't be read, or whose rows the new format can't hold; nothing behind it is written.
    """
    warn, allowed = once(warn), Allowed.of(allow)
    storage = open_storage(config.storage, presign_seconds=config.presign_seconds)
    rewriting = _Rewriting(
        lambda emit: BatchWriter(storage, config, tap=tap, emit=emit, clock=clock, run_id=run_id), write
    )
    came, done = TapLines(activations=not config.activates, warn=warn), Expanded()

    def take(piece: Piece) -> None:
        if isinstance(piece, bytes):
            write(piece)
            return
        if isinstance(piece, Activation):
            rewriting.activate(piece)
            return
        flush()  # a target may go on meanwhile
        reading = read(piece.batch, piece.schema, options=options, allow=allowed, line=piece.number, warn=warn)
        done.records += rewriting.take(piece, reading, should_stop)
        done.message_read(piece.batch)

    try:
        came.read(source, take, flush=flush, tick=tick, should_stop=should_stop)
    except Stopped:
        rewriting.writer.abort()
    except MessageError:
        rewriting.writer.abort()
        flush()  # what stands before it
        raise
    except BaseException:
        rewriting.writer.abort()
        raise
    flush()
    done.lines = came.lines
    return done


class _Rewriting:
    """The rows of one BATCH after the other, in new files."""

    def __init__(
        self, make: Callable[[Callable[[Message], object]], BatchWriter], write: Callable[[bytes], object]
    ) -> None:
        self._write = write
        self.writer = make(self._emit)
        self._schemas: dict[str, Mapping[str, Any]] = {}

    def _emit(self, message: Message) -> None:
        if isinstance(message, Batch):  # the SCHEMA has passed as it came
            self._write(to_line(message))

    def activate(self, found: Activation) -> None:
        """An ACTIVATE_VERSION goes on if its stream had no BATCH: targets that do not know the version of batched rows
        would drop them all."""
        if found.stream not in self._schemas:
            self._write(found.line)
            return
        version = json.loads(found.line).get("version")
        self.writer.activate_version(ActivateVersion(found.stream, version))  # it says that it is kept back

    def take(self, found: Found, reading: BatchReading, should_stop: Callable[[], bool]) -> int:
        """Rewrite all files of a message, and let the messages of the new ones go. Gives the number of rows."""
        batch = reading.batch
        count = 0
        try:
            if self._schemas.get(batch.stream) is not found.schema:
                self.writer.schema(Schema(batch.stream, dict(found.schema)))
                self._schemas[batch.stream] = found.schema
            for rows in self._as_columns(reading) if self._stays_columns(batch) else self._as_lines(reading):
                count += rows
                if should_stop():
                    raise Stopped
            self.writer.flush()
        except BatchError as error:
            where = f"line {found.number}: "
            raise BatchError(f"{where}{str(error).removeprefix(where)}") from None
        return count

    def _stays_columns(self, batch: Batch) -> bool:
        return batch.format in ("parquet", "arrow") and self.writer.config.encoding.is_columnar

    def _as_lines(self, reading: BatchReading) -> Iterator[int]:
        batch = reading.batch
        for number in range(len(batch.manifest)):
            row = 0
            for page in reading.file_pages(number):
                try:
                    self.writer.rows(batch.stream, page.lines, page.count, batch.time_extracted, batch.version)
                except BatchError as error:
                    fact = str(error).removeprefix(f"stream '{batch.stream}': ")
                    raise reading.failure(number, f"row {row + error.rows_taken + 1:,}: {fact}") from None
                yield page.count
                row += page.count

    def _as_columns(self, reading: BatchReading) -> Iterator[int]:
        batch = reading.batch
        for table in reading.arrow():
            self.writer.table(ArrowPage(batch.stream, table, batch.time_extracted, batch.version))  # type: ignore[arg-type]
            yield table.num_rows
