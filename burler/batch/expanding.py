"""BATCH to RECORD: the rows of batch files between any tap and a target that takes rows alone (BATCH proposal).

Everything but BATCH passes byte for byte, at its place: so a STATE that stood behind a BATCH stands behind its rows.
Where a BATCH can't be read, the run ends there: its rows up to that place are out, and no STATE of what follows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from burler.batch.allowed import Allowed
from burler.batch.reading import read, record_lines, uncounted
from burler.batch.tap_lines import Found, Piece, TapLines, never, nothing, once
from burler.errors import MessageError, UsageError
from burler.singer.messages import Batch

logger = logging.getLogger(__name__)

_MOST_PROCESSES = 256


@dataclass(slots=True)
class Expanded:
    """What was done: lines that came in, BATCH messages among them, and RECORDs that were made of those.

    Attributes:
        uncounted: files of which nothing says how many rows they have, so that one may be cut off at a line end.
        first_uncounted: one of them.
    """

    lines: int = 0
    batches: int = 0
    records: int = 0
    uncounted: int = 0
    first_uncounted: str = ""

    def message_read(self, batch: Batch) -> None:
        """All files of a message were read."""
        self.batches += 1
        files = uncounted(batch)
        self.uncounted += len(files)
        self.first_uncounted = self.first_uncounted or next(iter(files), "")


class Stopped(Exception):
    """Told to stop between two pages of a BATCH: what stands behind it is not written."""


def expand(
    source: BinaryIO | int,
    write: Callable[[bytes], object],
    *,
    processes: int = 1,
    options: Mapping[str, Any] | None = None,
    allow: Allowed | Iterable[str] | None = None,
    flush: Callable[[], object] = nothing,
    tick: Callable[[], object] = nothing,
    should_stop: Callable[[], bool] = never,
    warn: Callable[[str], object] = logger.warning,
) -> Expanded:
    """Write messages of any tap with RECORDs in place of BATCH, until the end of ``source``.

    Args:
        source: a binary stream or a file descriptor.
        write: gets complete lines, in order.
        processes: files are read by so many worker processes, those of later messages while earlier ones are written.
            Rows that wait for their turn lie in temporary files, of bounded size. 1: in this process.
        options: for the library that reaches the files (credentials, an endpoint).
        allow: what manifests may name; see ``burler.batch.read``.
        flush: called when ``source`` has nothing more for now.
        tick: called between blocks, and about once a second while nothing comes.
        should_stop: asked between blocks and pages; True ends the run, without an error.
        warn: gets a sentence for each kind of oddity.

    Raises:
        BatchError: a BATCH that can't be read, with the number of its line; rows before the place are written.
        MessageError: a line that may be a BATCH is no JSON.
    """
    if not 1 <= processes <= _MOST_PROCESSES:
        raise UsageError(f"processes is {processes}; it must be 1 to {_MOST_PROCESSES}.")
    done, warn, allowed = Expanded(), once(warn), Allowed.of(allow)
    came = TapLines(warn=warn)
    try:
        if processes == 1:
            _expand_here(source, write, came, done, options, allowed, flush, tick, should_stop, warn)
        else:
            from burler.batch.expanding_pool import Pool

            with Pool(processes, write, done, options, allowed, flush, should_stop, warn) as pool:
                pool.run(source, came, tick)
    except Stopped:
        pass
    except MessageError:
        flush()  # what stands before it
        raise
    flush()
    done.lines = came.lines
    return done


def _expand_here(
    source: BinaryIO | int,
    write: Callable[[bytes], object],
    came: TapLines,
    done: Expanded,
    options: Mapping[str, Any] | None,
    allowed: Allowed,
    flush: Callable[[], object],
    tick: Callable[[], object],
    should_stop: Callable[[], bool],
    warn: Callable[[str], object],
) -> None:
    def take(piece: Piece) -> None:
        if isinstance(piece, bytes):
            write(piece)
            return
        assert isinstance(piece, Found)
        flush()  # the first row may take a while
        batch = piece.batch
        for page in read(batch, piece.schema, options=options, allow=allowed, line=piece.number, warn=warn).pages():
            write(record_lines(page.lines, batch.stream, batch.time_extracted, batch.version))
            done.records += page.count
            if should_stop():
                raise Stopped
        done.message_read(batch)

    came.read(source, take, flush=flush, tick=tick, should_stop=should_stop)
