"""Messages of any tap, as lines of bytes, into a lake.

The bytes of each ``record`` go into the lake as they came, also those of files that a BATCH names. What is made uniform
is around them: the type in upper case, ``time_extracted`` in UTC with six digits. A line that is no message ends the
run with its number; what came before it is committed, and its STATE goes out.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from burler import times
from burler.clock import Clock
from burler.errors import MessageError
from burler.lake.locks import WaitStopped
from burler.singer.reader import BatchLine, Ingested, PageReader, Stopped, Taker

if TYPE_CHECKING:
    from burler.batch.allowed import Allowed

_log = logging.getLogger("burler.lake")


class IngestingWriter(Taker, Protocol):
    """What ``ingest`` needs of a writer: see ``LakeWriter``."""

    def page(
        self, stream: str, lines: bytes | bytearray, count: int, times: Sequence[str], version: int | None = None
    ) -> None:
        """A page of RECORD lines."""

    def tick(self) -> None:
        """End the files that are old enough."""

    @property
    def next_due_seconds(self) -> float | None:
        """Seconds until a file is due by age."""

    def close(self) -> object:
        """The end: what has come is kept."""

    def abort(self) -> None:
        """The end after an error."""


def ingest(
    source: BinaryIO | int,
    writer: IngestingWriter,
    *,
    clock: Clock | None = None,
    warn: Callable[[str], object] = _log.warning,
    should_stop: Callable[[], bool] = lambda: False,
    storage_options: Mapping[str, Any] | None = None,
    allow: Allowed | Iterable[str] | None = None,
) -> Ingested:
    """Read messages until the end of ``source``, then close the writer.

    Args:
        source: a binary stream or a file descriptor. While a descriptor has nothing to read, files still roll by age.
        clock: gives the received time to records that have none.
        warn: gets one line for each kind of oddity, once.
        should_stop: asked about once a second, between blocks and between pages of a BATCH; True ends the run as the
            end of input does. Of a writer that waits for a lock its own is asked; what waits there is given up, and no
            STATE covers it.
        storage_options: for the library that reads the files of BATCH messages (credentials, an endpoint).
        allow: what manifests may name; see ``burler.batch.read``.

    Raises:
        MessageError: a line is no message, data came before its SCHEMA, or a BATCH can't be read (``BatchError``); with
            the line's number. All before it is committed, and the STATE that covers it is out.
        BurlerError: the lake can't be written; nothing uncommitted is covered by a STATE.
    """
    told = False

    def batch(found: BatchLine, received: dt.datetime) -> int:
        """The rows of files as RECORD lines. A BATCH without ``time_extracted`` has the time at which it was received,
        as RECORDs beside it have: so the order of messages decides which row is the latest."""
        from burler.batch.readers import read, uncounted

        nonlocal told
        reading = read(
            found.line, found.schema, options=storage_options, allow=allow, line=found.number, warn=reader.warn
        )
        message, count = reading.batch, 0
        moment = message.time_extracted or received
        for page in reading.pages():
            lines = reading.records(page, received)
            writer.page(message.stream, lines, page.count, [times.format_time(moment)], message.version)
            count += page.count
            if should_stop():
                raise Stopped
            writer.tick()
        if not told and (files := uncounted(message)):
            told = True
            warn(
                f"line {found.number}: stream '{message.stream}': rows not counted: {files[0]} has no file_stats, so a "
                "cut at a line end is not seen"
            )
        return count

    reader = PageReader(writer, clock or Clock(), warn, batch=batch)
    try:
        reader.read(source, tick=writer.tick, should_stop=should_stop, due=lambda: writer.next_due_seconds)
    except MessageError:
        writer.close()
        raise
    except WaitStopped as stop:
        warn(str(stop))
    except BaseException:
        writer.abort()
        raise
    writer.close()
    return reader.done
