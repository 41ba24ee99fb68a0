"""RECORD to BATCH: rows of any tap into batch files, for targets that load those faster (BATCH proposal; specs 5).

Rows keep their bytes (in JSON lines), their order in the stream and their version; a STATE goes on once the files of
all rows before it are durable and their messages are out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import BinaryIO

from burler.batch.passing import never, nothing
from burler.batch.storage import open_storage
from burler.batch.writer import BatchWriter
from burler.batch_config import BatchConfig
from burler.errors import MessageError
from burler.lake.foreign import BatchLine, Ingested, Reader
from burler.lake.intake import blocks
from burler.lake.roll import Clock, SystemClock
from burler.singer.messages import ArrowPage, Batch, Message, Records, State, to_line

logger = logging.getLogger(__name__)


def pack(
    source: BinaryIO | int,
    write: Callable[[bytes], object],
    config: BatchConfig,
    *,
    tap: str = "tap",
    flush: Callable[[], object] = nothing,
    tick: Callable[[], object] = nothing,
    should_stop: Callable[[], bool] = never,
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
    passing: dict[int, bytes] = {}

    def emit(message: Message) -> None:
        if id(message) in passing:
            write(passing[id(message)])
            return
        assert not isinstance(message, Records | ArrowPage), "a packed stream has no RECORDs"
        write(to_line(message))
        if isinstance(message, State):
            flush()

    def batch(found: BatchLine) -> int:
        place = Batch(found.stream, ())
        passing[id(place)] = found.line + b"\n"
        writer.batch(place)
        passing.clear()
        return 0

    def other(line: bytes, stream: str | None) -> None:
        writer.flush()  # nobody knows what it is about: it keeps its place among all
        write(line + b"\n")

    storage = open_storage(config.storage, presign_seconds=config.presign_seconds)
    clock = clock or SystemClock()
    writer = BatchWriter(storage, config, tap=tap, emit=emit, clock=clock, run_id=run_id)
    reader = Reader(writer, clock, warn, batch=batch, rows=writer.rows, other=other)

    def due() -> None:
        writer.tick()
        tick()

    try:
        try:
            for block in blocks(source, tick=due, due=lambda: writer.next_due_seconds, stop=should_stop):
                reader.take(block)
                flush()
            reader.finish(stopped=should_stop())
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
