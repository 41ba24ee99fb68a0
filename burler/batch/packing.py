"""RECORD to BATCH: rows of any tap into batch files, for targets that load those faster (BATCH proposal).

Rows keep their bytes (in JSON lines), their order in the stream and their version; a STATE goes on once the files of
all rows before it are durable and their messages are out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import BinaryIO

from burler.batch.storage import open_storage
from burler.batch.tap_lines import never, nothing
from burler.batch.writer import BatchWriter
from burler.batch_config import BatchConfig
from burler.clock import Clock
from burler.errors import MessageError
from burler.singer.lines import blocks
from burler.singer.messages import ArrowPage, Batch, Message, Records, State, to_line
from burler.singer.reader import BatchLine, Ingested, Reader

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
    storage = open_storage(config.storage, presign_seconds=config.presign_seconds)
    clock = clock or Clock()
    packing = _Packing(write, flush)
    writer = BatchWriter(storage, config, tap=tap, emit=packing.emit, clock=clock, run_id=run_id)
    packing.writer = writer
    reader = Reader(writer, clock, warn, batch=packing.batch, rows=writer.rows, other=packing.other)

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


class _Packing:
    """What goes out: messages of the writer, and lines that pass as they came."""

    writer: BatchWriter

    def __init__(self, write: Callable[[bytes], object], flush: Callable[[], object]) -> None:
        self._write = write
        self._flush = flush
        self._place: tuple[Batch, bytes] | None = None

    def emit(self, message: Message) -> None:
        """A message of the writer."""
        if self._place is not None and message is self._place[0]:
            self._write(self._place[1])
            return
        assert not isinstance(message, Records | ArrowPage), "a packed stream has no RECORDs"
        self._write(to_line(message))
        if isinstance(message, State):
            self._flush()

    def batch(self, found: BatchLine) -> int:
        """A BATCH of the tap's own, behind the rows before it: it goes out as it came, whatever it says."""
        self._place = Batch(found.stream, ()), found.line + b"\n"
        self.writer.batch(self._place[0])
        self._place = None
        return 0

    def other(self, line: bytes, stream: str | None) -> None:
        """A message of an unknown type. Nobody knows what it is about: it keeps its place among all."""
        self.writer.flush()
        self._write(line + b"\n")
