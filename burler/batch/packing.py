"""RECORD to BATCH: rows of any tap into batch files, for targets that load those faster (BATCH proposal).

Rows keep their bytes (in JSON lines), their order in the stream and their version; a STATE goes on once the files of
all rows before it are durable and their messages are out.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

from burler.batch.storage import open_storage
from burler.batch.writer import BatchWriter
from burler.batch_config import BatchConfig
from burler.clock import Clock
from burler.errors import MessageError
from burler.singer.messages import ArrowPage, Batch, Message, Records, State, to_line
from burler.singer.reader import BatchLine, Ingested, PageReader

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

    storage = open_storage(config.storage, presign_seconds=config.presign_seconds)
    writer = BatchWriter(storage, config, tap=tap, emit=emit, clock=clock, run_id=run_id)

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
