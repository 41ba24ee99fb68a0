"""BATCH to RECORD: the rows of batch files between any tap and a target that takes rows alone (BATCH proposal).

Everything but BATCH passes byte for byte, at its place: so a STATE that stood behind a BATCH stands behind its rows.
Where a BATCH can't be read, the run ends there: its rows up to that place are out, and no STATE of what follows.

Several processes: each reads one file at a time and writes its rows, page by page, to temporary files, which this
process copies in the order of the messages and removes. A worker that is too far ahead waits until they are gone.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import logging
import multiprocessing
import os
import shutil
import signal
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from burler.batch.allowed import Allowed
from burler.batch.readers import BatchReading, read, record_lines, uncounted
from burler.batch.tap_lines import Found, Piece, TapLines, never, nothing, once
from burler.errors import BatchError, MessageError, MissingExtra, StorageError, UsageError
from burler.singer.lines import blocks
from burler.singer.messages import Batch

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

logger = logging.getLogger(__name__)

_MOST_PROCESSES = 256
_FILES_AHEAD = 2
"""Files that are read, or wait for it, for each worker."""
_WAITING_BYTES = 64 * 1024 * 1024
"""Rows of a file that may wait for their turn."""
_PASSING_BYTES = 8 * 1024 * 1024
_POLL_SECONDS = 0.01


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
            Rows that wait for their turn lie in temporary files, of bounded size. 1: in this process. A script that
            asks for more needs ``if __name__ == "__main__":``, as for all of Python's ``multiprocessing``.
        options: for the library that reaches the files (credentials, an endpoint).
        allow: what manifests may name; see ``burler.batch.read``.
        flush: called when ``source`` has nothing more for now.
        tick: called between blocks, and at least once a second while nothing comes.
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

    def reading(found: Found) -> BatchReading:
        return read(found.batch, found.schema, options=options, allow=allowed, line=found.number, warn=warn)

    def take(piece: Piece) -> None:
        if isinstance(piece, bytes):
            write(piece)
            return
        assert isinstance(piece, Found)
        flush()  # the first row may take a while
        batch = piece.batch
        for page in reading(piece).pages():
            write(record_lines(page.lines, batch.stream, batch.time_extracted, batch.version))
            done.records += page.count
            if should_stop():
                raise Stopped
        done.message_read(batch)

    with contextlib.suppress(Stopped):
        try:
            if processes == 1:
                came.read(source, take, flush=flush, tick=tick, should_stop=should_stop)
            else:
                with _workers(processes) as workers:
                    queue = _Queue(workers, options, allowed, write, done, flush, tick, should_stop, warn)
                    queue.run(source, came)
        except MessageError:
            flush()  # what stands before it
            raise
    flush()
    done.lines = came.lines
    return done


# ---- this process --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Workers:
    executor: concurrent.futures.Executor
    count: int
    folder: Path


@contextlib.contextmanager
def _workers(processes: int) -> Iterator[_Workers]:
    """Processes and the folder of their files. They end when this one does, however that is; at once after an error."""
    spawn = multiprocessing.get_context("spawn")
    ends, lives = spawn.Pipe(duplex=False)  # nothing is ever sent: what ends it is that this process closes it or dies
    with _room_told():
        made = tempfile.TemporaryDirectory(prefix="burler-", ignore_cleanup_errors=True)
    with ends, lives, made as folder:
        executor = concurrent.futures.ProcessPoolExecutor(processes, spawn, _begin, (ends, folder))
        with executor:
            try:
                yield _Workers(executor, processes, Path(folder))
            except BaseException:
                lives.close()
                executor.shutdown(cancel_futures=True)
                raise


@dataclass(slots=True)
class _File:
    """A file of a message. ``part``: the next of its temporary files."""

    number: int
    found: Found
    is_last: bool
    rows: concurrent.futures.Future[tuple[int, list[str]]]
    part: int = 0


@dataclass
class _Queue:
    """What came and is not written yet, in order: lines that pass, files, and at last the error that ends them."""

    workers: _Workers
    options: Mapping[str, Any] | None
    allowed: Allowed
    write: Callable[[bytes], object]
    done: Expanded
    flush: Callable[[], object]
    tick: Callable[[], object]
    should_stop: Callable[[], bool]
    warn: Callable[[str], object]
    waiting: deque[bytes | _File | MessageError] = field(default_factory=deque)
    files: int = 0
    files_waiting: int = 0
    passing_bytes: int = 0

    def run(self, source: BinaryIO | int, came: TapLines) -> None:
        """Until the end of ``source``, and of all that it named."""

        def due() -> float | None:
            return _POLL_SECONDS if self.waiting else None

        for block in blocks(source, tick=self._go_on, due=due, stop=self.should_stop):
            self._take(came.take(block))
        self._take(came.finish(stopped=self.should_stop()))
        while self.waiting:
            self._wait()

    def _take(self, pieces: Iterator[Piece]) -> None:
        for piece in _with_error(pieces):
            if isinstance(piece, Found):
                self._submit(piece)
                continue
            assert isinstance(piece, bytes | MessageError)
            self.waiting.append(piece)
            self.passing_bytes += len(piece) if isinstance(piece, bytes) else 0
            while self.passing_bytes > _PASSING_BYTES or (self.waiting and isinstance(piece, MessageError)):
                self._wait()

    def _submit(self, found: Found) -> None:
        files = len(found.batch.manifest)
        if not files:
            self.done.message_read(found.batch)
        for file in range(files):
            while self.files_waiting >= _FILES_AHEAD * self.workers.count:
                self._wait()
            name = str(self.workers.folder / str(self.files))
            with _death_told(found):
                rows = self.workers.executor.submit(_work, found, file, self.options, self.allowed, name)
            self.waiting.append(_File(self.files, found, file == files - 1, rows))
            self.files += 1
            self.files_waiting += 1

    def _wait(self) -> None:
        """For what is first."""
        if isinstance(self.waiting[0], _File):
            concurrent.futures.wait([self.waiting[0].rows], _POLL_SECONDS)
        self._go_on()

    def _go_on(self) -> None:
        """Write all that is there."""
        self.tick()
        self._check()
        while self.waiting and self._is_written(self.waiting[0]):
            self.waiting.popleft()
        self.flush()

    def _is_written(self, first: bytes | _File | MessageError) -> bool:
        if isinstance(first, MessageError):
            raise first
        if isinstance(first, bytes):
            self.write(first)
            self.passing_bytes -= len(first)
            return True
        is_written = self._is_copied(first)
        self.files_waiting -= is_written
        return is_written

    def _check(self) -> None:
        if self.should_stop():
            raise Stopped

    def _is_copied(self, file: _File) -> bool:
        """Write what there is of a file. Gives whether that is all of it."""
        is_read = file.rows.done()
        while (part := self.workers.folder / f"{file.number}.{file.part}").exists():
            lines = part.read_bytes()
            part.unlink()
            file.part += 1
            self.write(lines)
            self._check()
        if not is_read:
            return False
        with _death_told(file.found):
            rows, warnings = file.rows.result()
        for warning in warnings:
            self.warn(warning)
        self.done.records += rows
        if file.is_last:
            self.done.message_read(file.found.batch)
        return True


def _with_error(pieces: Iterator[Piece]) -> Iterator[Piece | MessageError]:
    """The error that ends them is the last of them: it waits for its turn."""
    try:
        yield from pieces
    except MessageError as error:
        yield error


@contextlib.contextmanager
def _death_told(found: Found) -> Iterator[None]:
    try:
        yield
    except concurrent.futures.BrokenExecutor:
        raise BatchError(
            f"line {found.number}: stream '{found.batch.stream}': BATCH: a process that reads files was killed (is "
            "memory short?). Run again, with fewer --processes"
        ) from None


@contextlib.contextmanager
def _room_told() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"rows that wait for their turn can't be written to temporary files: {error.strerror or error}. Make room, "
            "or set TMPDIR to a folder that has some, or leave out --processes"
        ) from None


# ---- a worker ------------------------------------------------------------------------------------------------


def _begin(parent: Connection, folder: str) -> None:
    """A worker ends when its parent says so or has gone, however that was, also in the middle of a file."""
    for number in (signal.SIGINT, signal.SIGTERM):  # sent to the whole group: our parent ends us in its own time
        signal.signal(number, signal.SIG_IGN)

    def watch() -> None:
        parent.poll(None)
        for _ in range(100):  # others may still be writing
            shutil.rmtree(folder, ignore_errors=True)
            if not Path(folder).exists():
                break
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


def _work(
    found: Found, file: int, options: Mapping[str, Any] | None, allowed: Allowed, name: str
) -> tuple[int, list[str]]:
    """Read one file of a message into ``name.0``, ``name.1``, ...: RECORD lines. Gives the number of rows, and what is
    odd about them."""
    batch, rows, warnings = found.batch, 0, list[str]()
    parts: deque[tuple[Path, int]] = deque()
    waiting = 0
    reading = read(batch, found.schema, options=options, allow=allowed, line=found.number, warn=warnings.append)
    try:
        for number, page in enumerate(reading.file_pages(file)):
            lines = record_lines(page.lines, batch.stream, batch.time_extracted, batch.version)
            while waiting > _WAITING_BYTES:
                if parts[0][0].exists():
                    time.sleep(_POLL_SECONDS)
                else:
                    waiting -= parts.popleft()[1]
            part, begun = Path(f"{name}.{number}"), Path(f"{name}.begun")
            with _room_told():
                begun.write_bytes(lines)
                begun.rename(part)
            parts.append((part, len(lines)))
            rows, waiting = rows + page.count, waiting + len(lines)
    except MissingExtra as error:  # it can't be pickled
        raise UsageError(str(error)) from None
    return rows, warnings
