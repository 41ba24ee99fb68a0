"""Rows into batch files between any tap and any target (BATCH proposal): ``pack``, RECORD to BATCH, for targets that
load those faster; ``convert``, BATCH to BATCH, for those that disagree with the tap about format, compression, storage.

Rows keep their bytes (in JSON lines), their order in the stream and their version; a STATE goes on once the files of
all rows before it are durable and their messages are out.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from burler.batch.allowed import Allowed
from burler.batch.readers import BatchReading, Expanded, read
from burler.batch.writer import BatchWriter
from burler.batch_config import CODECS, BatchConfig
from burler.clock import Clock
from burler.errors import BatchError, MessageError
from burler.singer.messages import ActivateVersion, ArrowPage, Batch, Message, Records, Schema, State, to_line
from burler.singer.reader import BatchLine, Ingested, PageReader, PassingReader, Stopped

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _AsItCame(Batch):
    """A BATCH of the tap's own: it goes out as it came, whatever it says, behind the rows before it."""

    line: bytes = b""


def pack(
    source: BinaryIO | int,
    write: Callable[[bytes], object],
    config: BatchConfig,
    *,
    tap: str = "tap",
    flush: Callable[[], object] = lambda: None,
    tick: Callable[[], object] = lambda: None,
    should_stop: Callable[[], bool] = lambda: False,
    warn: Callable[[str], object] = logger.warning,
    clock: Clock | None = None,
    run_id: str | None = None,
) -> Ingested:
    """Write messages of any tap with BATCH in place of RECORDs, until the end of ``source``.

    SCHEMA, STATE and ACTIVATE_VERSION are written anew, with the same content. BATCH messages and messages of unknown
    types pass as they are, behind the rows that stood before them.

    Args:
        source: a binary stream or a file descriptor. While a descriptor has nothing to read, files still end by age.
        write: gets complete lines, in order.
        config: format, storage, and when files end: ``burler.batch_config.read_batch_config``.
        tap: stands in the names of files.
        flush, tick, should_stop, warn: see ``burler.batch.expand``.

    Raises:
        MessageError: a line is no message, or came before its SCHEMA; with its number. BatchError: a value that its
            column can't hold. What came before is packed, and the STATE that covers it is out.
        BurlerError: files can't be written; no STATE covers what is not in one.
    """
    clock = clock or Clock()

    def emit(message: Message) -> None:
        assert not isinstance(message, Records | ArrowPage), "a packed stream has no RECORDs"
        write(message.line + b"\n" if isinstance(message, _AsItCame) else to_line(message))
        if isinstance(message, State):
            flush()

    writer = BatchWriter(config, tap=tap, emit=emit, clock=clock, run_id=run_id)

    def batch(found: BatchLine, _received: dt.datetime) -> int:
        writer.batch(_AsItCame(found.stream, (), line=found.line))
        return 0

    def other(line: bytes) -> None:  # nobody knows what it is about: it keeps its place among all
        writer.flush()
        write(line + b"\n")

    def work() -> None:
        writer.tick()
        tick()

    reader = PageReader(writer, clock, warn, batch=batch, rows=writer.rows, other=other)
    try:
        try:
            reader.read(source, tick=work, should_stop=should_stop, flush=flush, due=lambda: writer.next_due_seconds)
        except MessageError:
            writer.close()  # what came before it is whole
            flush()
            raise
        writer.close()
        flush()
    except BaseException:
        writer.abort()
        raise
    return reader.done


# ---- BATCH to BATCH --------------------------------------------------------------------------------------------------


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

    writer = BatchWriter(config, tap=tap, emit=emit, clock=clock, run_id=run_id)

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
