"""BATCH to BATCH: files rewritten between a tap and a target that disagree about format, compression or storage (BATCH
proposal: storage transforms)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, BinaryIO

from burler.batch.allowed import Allowed
from burler.batch.expansion import Expanded
from burler.batch.readers import BatchReading, read
from burler.batch.storage import open_storage
from burler.batch.writer import BatchWriter
from burler.batch_config import CODECS, BatchConfig
from burler.clock import Clock
from burler.errors import BatchError
from burler.singer.messages import ActivateVersion, ArrowPage, Batch, Message, Schema, to_line
from burler.singer.reader import BatchLine, PassingReader, Stopped

logger = logging.getLogger(__name__)


def convert(
    source: BinaryIO | int,
    write: Callable[[bytes], object],
    config: BatchConfig,
    *,
    tap: str = "tap",
    options: Mapping[str, Any] | None = None,
    allow: Allowed | Iterable[str] | None = None,
    flush: Callable[[], object] = lambda: None,
    tick: Callable[[], object] = lambda: None,
    should_stop: Callable[[], bool] = lambda: False,
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
    allowed, done = Allowed.of(allow), Expanded()
    schemas: dict[str, Schema] = {}

    def emit(message: Message) -> None:
        if isinstance(message, Batch):  # the SCHEMA has passed as it came
            write(to_line(message))

    storage = open_storage(config.storage, presign_seconds=config.presign_seconds)
    writer = BatchWriter(storage, config, tap=tap, emit=emit, clock=clock, run_id=run_id)

    def batch(found: BatchLine) -> None:
        flush()  # a target may go on meanwhile
        reading = read(found.line, found.schema, options=options, allow=allowed, line=found.number, warn=reader.warn)
        count = 0
        try:
            if schemas.get(found.stream) is not found.schema:
                writer.schema(Schema(found.stream, found.schema.schema))  # errors show no keys of rows
                schemas[found.stream] = found.schema
            for rows in _rewritten(reading, writer):
                count += rows
                if should_stop():
                    raise Stopped
            writer.flush()
        except BatchError as error:
            where = f"line {found.number}: "
            raise BatchError(f"{where}{str(error).removeprefix(where)}") from None
        done.records += count
        done.message_read(reading.batch)

    def keeps_back(stream: str) -> bool:
        """Where a stream had a BATCH: targets that do not know the version of batched rows would drop them all."""
        if stream in schemas:
            writer.activate_version(ActivateVersion(stream, 0))  # the log says so
        return stream in schemas

    reader = PassingReader(write, warn, batch=batch, keeps_back=None if config.activates else keeps_back)
    try:
        reader.read(source, tick=tick, should_stop=should_stop, flush=flush)
        writer.report()
    finally:
        writer.abort()  # rows of a BATCH that was not read to its end
    done.lines = reader.lines
    return done


def _rewritten(reading: BatchReading, writer: BatchWriter) -> Iterator[int]:
    """Give the rows of a message to a writer; yield how many, page by page."""
    batch = reading.batch
    if batch.format in CODECS and writer.config.encoding.is_columnar:
        for table in reading.arrow():
            writer.table(ArrowPage(batch.stream, table, batch.time_extracted, batch.version))  # type: ignore[arg-type]
            yield table.num_rows
        return
    for number in range(len(batch.manifest)):
        row = 0
        for page in reading.file_pages(number):
            try:
                writer.rows(batch.stream, page.lines, page.count, batch.time_extracted, batch.version)
            except BatchError as error:
                fact = str(error).removeprefix(f"stream '{batch.stream}': ")
                raise reading.failure(number, f": row {row + error.rows_taken + 1:,}: {fact}") from None
            yield page.count
            row += page.count
