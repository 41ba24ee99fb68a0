"""Messages of any tap, as lines of bytes, into a lake (specs 1 rules 1 and 4; 11.24, 11.25).

The bytes of each ``record`` go into the lake as they came. What is made uniform is around them: the
type in upper case, ``time_extracted`` in UTC with six digits. A line that is no message ends the run with its
number; what came before it is committed, and its STATE goes out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import BinaryIO

from burler.errors import MessageError
from burler.lake.foreign import Ingested, Reader
from burler.lake.intake import blocks
from burler.lake.roll import Clock, SystemClock
from burler.lake.writer import LakeWriter

_log = logging.getLogger("burler.lake")


def ingest(
    source: BinaryIO | int,
    writer: LakeWriter,
    *,
    clock: Clock | None = None,
    warn: Callable[[str], object] = _log.warning,
    should_stop: Callable[[], bool] = lambda: False,
) -> Ingested:
    """Read messages until the end of ``source``, then close the writer.

    Args:
        source: a binary stream or a file descriptor. While a descriptor has nothing to read, files still roll by age.
        clock: gives the received time to records that have none.
        warn: gets one line for each kind of oddity, once.
        should_stop: asked about once a second and between blocks; True ends the run as the end of input does.

    Raises:
        MessageError: a line is no message, data came before its SCHEMA, or BATCH; with the line's number. All
            before it is committed, and the STATE that covers it is out.
        BurlerError: the lake can't be written; nothing uncommitted is covered by a STATE.
    """
    reader = Reader(writer, clock or SystemClock(), warn)
    try:
        for block in blocks(source, tick=writer.tick, due=lambda: writer.next_due_seconds, stop=should_stop):
            reader.take(block)
        reader.finish(stopped=should_stop())
    except MessageError:
        writer.close()
        raise
    except BaseException:
        writer.abort()
        raise
    writer.close()
    return reader.done
