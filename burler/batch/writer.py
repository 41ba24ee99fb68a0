"""Rows into batch files: a file ends, becomes durable, then its message goes out, then the STATE that it held.

The promises: a BATCH message is handed on only once its files are whole and durable under their final names; a STATE
only once the messages of all rows before it are out. Whatever goes wrong, files whose message did not go out are
removed, no later STATE comes out, and a run from the last STATE brings the rows again.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from burler.batch.batch_file import BatchFile
from burler.batch.encoders import Layout, layout_of
from burler.batch.open_files import BatchFiles
from burler.batch.storage import Storage
from burler.batch_config import BatchConfig
from burler.errors import BatchError, BurlerError, MessageError
from burler.singer.messages import ActivateVersion, ArrowPage, Batch, Message, Records, Schema, State
from burler.target.held import HeldStates
from burler.target.roll import Clock, SystemClock, fitting
from burler.words import counted

logger = logging.getLogger(__name__)


class BatchWriter:
    """Takes the messages of one tap in sequence, and hands on SCHEMA, BATCH, ACTIVATE_VERSION and STATE.

    Args:
        tap: stands in the names of files.
        emit: takes each message that goes out, in order; called with the writer's lock held.
        run_id: stands in the names of files, too, so that those of two runs never meet; random by default.

    After an error other than a ``MessageError`` the writer is dead: open files are gone, ``close`` does nothing.
    """

    def __init__(
        self,
        storage: Storage,
        config: BatchConfig,
        *,
        tap: str,
        emit: Callable[[Message], object],
        clock: Clock | None = None,
        run_id: str | None = None,
    ) -> None:
        self.config = config
        self._emit = emit
        self._files = BatchFiles(storage, config, tap=tap, emit=emit, clock=clock or SystemClock(), run_id=run_id)
        self._lock = threading.RLock()
        self._place = 0
        self._dead = False
        self._schemas: dict[str, Schema] = {}
        self._layouts: dict[str, Layout] = {}
        self._held = HeldStates()
        self._told = False
        self._passed = 0  # files of the source

    # ---- what comes in ---------------------------------------------------------------------------------

    def schema(self, message: Schema) -> None:
        """The schema of a batched stream from here on. Another one than before ends its file.

        Raises:
            BatchError: the format has no form for it.
        """
        with self._working():
            self._place += 1
            if self._schemas.get(message.stream) != message:
                self._files.end_of(message.stream)
                self._remark(message.stream)
                self._layouts[message.stream] = layout_of(self.config.encoding, message.schema, message.stream)
                self._schemas[message.stream] = message
            self._emit(message)

    def arrow_schema(self, stream: str) -> Any:
        """The columns of a stream's files as an Arrow schema; None for formats of text."""
        return getattr(self._layouts.get(stream), "arrow_schema", None)

    def records(self, page: Records) -> None:
        """A page of bare rows."""
        self.rows(page.stream, page.lines, page.count, page.time_extracted, page.version)

    def rows(
        self,
        stream: str,
        lines: bytes | bytearray | memoryview,
        count: int,
        time_extracted: dt.datetime | None,
        version: int | None = None,
    ) -> None:
        """``count`` rows of one stream and version: a JSON object a line, each line ended by ``\\n``.

        Args:
            time_extracted: of all of them; None where nobody knows.

        Raises:
            BatchError: a value that its column can't hold; a row before its SCHEMA. StorageError: see the class.
        """
        with self._working():
            self._place += 1
            start = done = 0
            while done < count:
                file = self._file(stream, version)
                end, taken = fitting(
                    lines,  # type: ignore[arg-type]  # it takes whatever has bytes
                    start,
                    count - done,
                    room_bytes=self.config.batch_bytes - file.size_bytes,
                    room_records=self.config.batch_size - file.records,
                    fresh=not file.records,
                )
                if taken:
                    self._append(file, lines, start, end, taken, time_extracted, done)
                    start, done = end, done + taken
                if not taken or self._files.is_full(file):
                    self._files.end(file)
                    self._release()

    def _append(
        self, file: BatchFile, lines: Any, start: int, end: int, count: int, time: dt.datetime | None, done: int
    ) -> None:
        """A part of a page's lines, of which ``done`` rows are in files already."""
        before = file.records
        try:
            # Released also where that fails: else the buffer of the lines could not change.
            with memoryview(lines) as view, view[start:end] as part:
                file.rows(part, count, time)
        except BatchError as error:
            taken = file.records - before
            text = self._naming(str(error), file.stream, bytes(lines[start:end]), taken)
            named = BatchError(text)
            named.rows_taken = done + taken
            raise named from None

    def table(self, page: ArrowPage) -> None:
        """A page of columns, exactly those of the stream's layout."""
        with self._working():
            self._place += 1
            done, count = 0, page.table.num_rows
            while done < count:
                file = self._file(page.stream, page.version)
                room_bytes = self.config.batch_bytes - file.size_bytes
                fitting_rows = room_bytes * count // max(1, page.table.nbytes)  # by the mean size of the page's rows
                taken = max(1, min(count - done, self.config.batch_size - file.records, fitting_rows))
                part = page.table if taken == count else page.table.slice(done, taken)
                file.table(part, page.time_extracted)
                done += taken
                if self._files.is_full(file):
                    self._files.end(file)
                    self._release()

    def batch(self, message: Batch) -> None:
        """Files that somebody else has made, at their place in the stream."""
        with self._working():
            self._place += 1
            self._files.end_of(message.stream)
            self._emit(message)
            self._passed += len(message.manifest)
            self._release()

    def activate_version(self, message: ActivateVersion) -> None:
        """ACTIVATE_VERSION, behind the rows before it."""
        with self._working():
            self._place += 1
            self._files.end_of(message.stream)
            if self.config.activates:
                self._emit(message)
            elif not self._told:
                self._told = True
                logger.info(
                    "BATCH: ACTIVATE_VERSION is kept back: targets that read the dialect '%s' do not know the "
                    "version of batched rows, and would drop them all. batch_config.activate_version: true sends it.",
                    self.config.dialect,
                )
            self._release()

    def pass_on(self, message: Message) -> None:
        """A message of a stream that is not batched: it goes on at once."""
        with self._working():
            self._place += 1
            self._emit(message)

    def state(self, message: State) -> None:
        """A STATE: goes on at once if all before it is out, else when it is; newest only."""
        with self._working():
            self._place += 1
            self._held.add(self._place, message, self._files.begun)
            self._files.end_old()
            self._release()

    # ---- when files end --------------------------------------------------------------------------------

    def tick(self) -> None:
        """End the files that are old enough. For a timer, or whoever waits for input."""
        if self._dead:
            return
        with self._working():
            self._files.end_old()
            self._release()

    def flush(self) -> None:
        """End every open file, send its message, let the newest STATE go."""
        with self._working():
            self._files.end_all()
            self._release()

    def close(self) -> None:
        """The end: ``flush``; afterwards the writer takes nothing more. Nothing happens after an error."""
        with self._lock:
            if not self._dead:
                self.flush()
                self.report()
                self._dead = True
                if self._passed:
                    logger.info("BATCH: %s of the source went out as they are", counted(self._passed, "file"))
                made = self._files.made
                if made.files:
                    said = (counted(made.files, "file"), counted(made.rows, "row"), made.stored_bytes, self._files.root)
                    logger.info("BATCH: %s of %s, %d bytes, in %s", *said)

    def report(self) -> None:
        """Log what could not be kept since the last time: one line for each stream and kind, however many files."""
        for stream in self._layouts:
            self._remark(stream)

    def abort(self) -> None:
        """The end after an error elsewhere: rows that no message has named are dropped, with the STATEs behind them."""
        with self._lock:
            self._dead = True
            self._files.discard()

    @property
    def made(self) -> dict[str, Any] | None:
        """See ``burler.sinks.base.files_made``."""
        made = self._files.made
        if not made.files:
            return None
        return {"files": made.files, "rows": made.rows, "bytes": made.stored_bytes, "root": self._files.root}

    @property
    def next_due_seconds(self) -> float | None:
        """Seconds until the oldest open file is due by age; None when no file is open."""
        return self._files.next_due_seconds

    # ---- inside ----------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _working(self) -> Iterator[None]:
        """One call at a time; an error that may have left something half done ends the writer."""
        with self._lock:
            if self._dead:
                raise BurlerError("this batch writer has ended, by close or by an earlier error: make a new one.")
            try:
                yield
            except MessageError:
                raise  # about what came in, of which nothing was taken
            except BaseException:
                self.abort()
                raise

    def _file(self, stream: str, version: int | None) -> BatchFile:
        """The open file of a stream for rows of a version, begun if there is none that will do."""
        file = self._files.usable(stream, version)
        if file is not None:
            return file
        self._release()
        if stream not in self._layouts:
            raise MessageError(f"stream '{stream}': data came before its SCHEMA. The tap must send SCHEMA first.")
        return self._files.begin(stream, self._layouts[stream], version, self._place)

    def _naming(self, fact: str, stream: str, part: bytes, taken: int) -> str:
        """An error that names its row by its key, as errors of RECORDs do. Rows are taken in order, so it is the first
        that was not."""
        try:
            row = msgspec.json.decode(part.split(b"\n", taken + 1)[taken], type=dict[str, msgspec.Raw])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, IndexError):  # no row that has a key
            return fact
        keys = [(key, row[key]) for key in self._schemas[stream].key_properties if key in row]
        which = ", ".join(f"{key}={bytes(value).decode('utf-8', 'replace'):.60}" for key, value in keys)
        start = f"stream '{stream}'"
        return f"{start}, row {which}{fact.removeprefix(start)}" if which and fact.startswith(start) else fact

    def _remark(self, stream: str) -> None:
        for remark in self._layouts[stream].remarks() if stream in self._layouts else ():
            logger.warning("stream '%s': %s", stream, remark)

    def _release(self) -> None:
        state = self._held.release(self._files.begun)
        if state is not None:
            self._emit(state)
