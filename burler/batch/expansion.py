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
from burler.batch.readers import Expanded, read
from burler.errors import BatchError, MessageError, MissingExtra, StorageError, UsageError
from burler.singer.messages import Batch
from burler.singer.reader import BatchLine, PassingReader, Stopped

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

logger = logging.getLogger(__name__)

_FILES_AHEAD = 2
"""Files that are read, or wait for it, for each worker."""
_WAITING_BYTES = 64 * 1024 * 1024
"""Rows of a file that may wait for their turn."""
_PASSING_BYTES = 8 * 1024 * 1024
_POLL_SECONDS = 0.01


def expand(
    source: BinaryIO | int,
    write: Callable[[bytes], object],
    *,
    processes: int = 1,
    options: Mapping[str, Any] | None = None,
    allow: Allowed | Iterable[str] | None = None,
    flush: Callable[[], object] = lambda: None,
    tick: Callable[[], object] = lambda: None,
    should_stop: Callable[[], bool] = lambda: False,
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
    done = Expanded()
    access: dict[str, Any] = {"options": options, "allow": Allowed.of(allow)}

    def batch(found: BatchLine) -> None:
        flush()  # the first row may take a while
        reading = read(found.line, found.schema, line=found.number, warn=reader.warn, **access)
        for page in reading.pages():
            write(reading.records(page))
            done.records += page.count
            if should_stop():
                raise Stopped
        done.message_read(reading.batch)

    reader = PassingReader(write, warn, batch=batch)
    if processes == 1:
        reader.read(source, tick=tick, should_stop=should_stop, flush=flush)
    else:
        with contextlib.suppress(Stopped), _workers(processes) as (executor, folder):
            queue = _Queue(executor, processes, folder, access, write, flush, tick, should_stop, done)
            reader = PassingReader(queue.put, warn, batch=queue.submit)
            queue.run(source, reader)
    done.lines = reader.lines
    return done


# ---- this process --------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _workers(processes: int) -> Iterator[tuple[concurrent.futures.Executor, Path]]:
    """Processes and the folder of their files. They end when this one does, however that is; at once after an error."""
    spawn = multiprocessing.get_context("spawn")
    ends, lives = spawn.Pipe(duplex=False)  # nothing is ever sent: what ends it is that this process closes it or dies
    with _room_told():
        made = tempfile.TemporaryDirectory(prefix="burler-", ignore_cleanup_errors=True)
    pool = concurrent.futures.ProcessPoolExecutor
    with ends, lives, made as folder, pool(processes, spawn, _begin, (ends, folder)) as executor:
        try:
            yield executor, Path(folder)
        except BaseException as error:
            lives.close()
            executor.shutdown(cancel_futures=True)
            if isinstance(error, concurrent.futures.BrokenExecutor):
                fact = "a process that reads files was killed (is memory short?). Run again, with fewer --processes"
                raise BatchError(fact) from None
            raise


@dataclass(slots=True)
class _File:
    """A file of a message. ``part``: the next of its temporary files. ``ends``: the message, of its last file."""

    name: Path
    rows: concurrent.futures.Future[tuple[int, list[str]]]
    ends: Batch | None
    part: int = 0


@dataclass
class _Queue:
    """What came and is not written yet, in order: lines that pass, and files."""

    executor: concurrent.futures.Executor
    processes: int
    folder: Path
    access: Mapping[str, Any]
    write: Callable[[bytes], object]
    flush: Callable[[], object]
    tick: Callable[[], object]
    should_stop: Callable[[], bool]
    done: Expanded
    warn: Callable[[str], object] = logger.warning
    waiting: deque[bytes | _File] = field(default_factory=deque)
    bytes_waiting: int = 0

    def run(self, source: BinaryIO | int, reader: PassingReader) -> None:
        """Until the end of ``source``, and of all that it named. An error waits for what stands before it."""
        self.warn = reader.warn
        broken: MessageError | None = None

        def due() -> float | None:
            return _POLL_SECONDS if self.waiting else None

        try:
            reader.read(source, tick=self._go_on, should_stop=self.should_stop, due=due)
        except MessageError as error:
            broken = error
        while self.waiting:
            self._wait()
        if broken is not None:
            raise broken

    def put(self, lines: bytes) -> None:
        """Lines that pass."""
        self.waiting.append(lines)
        self.bytes_waiting += len(lines)
        while self.bytes_waiting > _PASSING_BYTES:
            self._wait()

    def submit(self, found: BatchLine) -> None:
        """A BATCH: workers read its files."""
        batch = read(found.line, found.schema, line=found.number, **self.access).batch
        last = len(batch.manifest) - 1
        if last < 0:
            self.done.message_read(batch)
        for number in range(last + 1):
            while sum(isinstance(one, _File) for one in self.waiting) >= _FILES_AHEAD * self.processes:
                self._wait()
            name = self.folder / f"{found.number}-{number}"
            rows = self.executor.submit(_work, found, number, self.access, name)
            self.waiting.append(_File(name, rows, batch if number == last else None))

    def _wait(self) -> None:
        """For what is first."""
        if isinstance(self.waiting[0], _File):
            concurrent.futures.wait([self.waiting[0].rows], _POLL_SECONDS)
        self._go_on()

    def _go_on(self) -> None:
        """Write all that is there."""
        self.tick()
        if self.should_stop():
            raise Stopped
        try:
            while self.waiting and self._is_written(self.waiting[0]):
                self.waiting.popleft()
        finally:
            self.flush()

    def _is_written(self, first: bytes | _File) -> bool:
        """Write what there is of lines or of a file. Gives whether that is all."""
        if isinstance(first, bytes):
            self.write(first)
            self.bytes_waiting -= len(first)
            return True
        is_read = first.rows.done()
        while (part := first.name.with_suffix(f".{first.part}")).exists():
            lines = part.read_bytes()
            part.unlink()
            first.part += 1
            self.write(lines)
            if self.should_stop():
                raise Stopped
        if is_read:
            rows, warnings = first.rows.result()
            for warning in warnings:
                self.warn(warning)
            self.done.records += rows
            if first.ends is not None:
                self.done.message_read(first.ends)
        return is_read


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


def _work(found: BatchLine, file: int, access: Mapping[str, Any], name: Path) -> tuple[int, list[str]]:
    """Read one file of a message into ``name.0``, ``name.1``, ...: RECORD lines. Gives the number of rows, and what is
    odd about them."""
    warnings: list[str] = []
    parts: deque[tuple[Path, int]] = deque()
    rows = waiting = 0
    reading = read(found.line, found.schema, line=found.number, warn=warnings.append, **access)
    try:
        for number, page in enumerate(reading.file_pages(file)):
            lines = reading.records(page)
            while waiting > _WAITING_BYTES:
                if parts[0][0].exists():
                    time.sleep(_POLL_SECONDS)
                else:
                    waiting -= parts.popleft()[1]
            part, begun = name.with_suffix(f".{number}"), name.with_suffix(".begun")
            with _room_told():
                begun.write_bytes(lines)
                begun.rename(part)
            parts.append((part, len(lines)))
            rows, waiting = rows + page.count, waiting + len(lines)
    except MissingExtra as error:  # it can't be pickled
        raise UsageError(str(error)) from None
    return rows, warnings
