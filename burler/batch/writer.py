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
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from burler.batch.message import writing_options
from burler.batch.rolling import HeldStates, OpenFiles, fitting
from burler.batch.storage import NewBatchFile, drawn, file_name, open_storage, plain
from burler.batch_config import BatchConfig, Encoding
from burler.clock import Clock
from burler.errors import BatchError, BurlerError, ConfigError, MessageError, OutputClosed
from burler.extras import require
from burler.formats import FormatError
from burler.formats.compression import compressor
from burler.formats.names import ending
from burler.records.columns.csv import CsvLayout, columns_of
from burler.singer.messages import ActivateVersion, ArrowPage, Batch, Message, Schema, State
from burler.words import counted

if TYPE_CHECKING:
    from burler.formats.columnar import Writer

logger = logging.getLogger(__name__)

MOST_OPEN_FILES = 200
"""At a time; then the one that was begun first ends early."""
Write = Callable[[bytes | bytearray | memoryview], object]
"""Takes the bytes of a file, in order. They may be kept, and are never changed afterwards."""


class Layout:
    """What a format makes of a stream's schema: once for each SCHEMA, kept from file to file.

    Attributes:
        encoding: of the files.
        keys: the key of the rows.
        arrow_schema: their columns; None for formats of text.
        parts: makes of rows (one JSON object a line, nothing around it) and their number what a file takes. A
            ``BatchError`` is a value that its column can't hold; then none of these rows is taken.
        remarks: one sentence for each thing that could not be kept (fields without a column, digits that were cut),
            since it was asked last.

    Raises:
        BatchError: a schema that the format has no form for. ConfigError: options that can't be. MissingExtra: a
            package is missing.
    """

    parts: Callable[[bytes | bytearray | memoryview, int], Iterable[Any]]
    remarks: Callable[[], list[str]]

    def __init__(self, encoding: Encoding, message: Schema) -> None:
        self.encoding, self.keys = encoding, message.key_properties
        schema, stream = message.schema, message.stream
        self.arrow_schema: Any = None
        self._header, self._level = b"", encoding.compression_options.get("level")
        try:
            compressor(encoding.packing, self._level)
        except FormatError as error:
            raise ConfigError(f"batch_config.encoding.compression_options.{error}") from None
        if encoding.is_columnar:
            _check_codec(encoding)
            from burler.batch.column_readers import columnar_layout

            columns = columnar_layout(schema, stream)
            self.arrow_schema, self.parts, self.remarks = columns.arrow_schema, columns.batches, columns.remarks
        elif encoding.format == "csv":
            csv = self._csv(schema, stream)
            self.parts, self.remarks = lambda lines, count: (csv.text(lines, count),), csv.remarks
        else:  # each row as it came: the proposal's default, which every target of BATCH reads
            self.parts, self.remarks = lambda lines, _count: (lines,), list

    def begin(self, write: Write) -> Writer | None:
        """Begin a file; gives what takes the batches of ``parts``, and any other batch of its columns; None where parts
        are text, for ``write`` itself."""
        if self.encoding.is_columnar:
            from burler.formats.columnar import Writer

            return Writer(self.encoding.format, self.arrow_schema, write, codec=self.encoding.codec, level=self._level)
        write(self._header)
        return None

    def _csv(self, schema: Mapping[str, Any], stream: str) -> CsvLayout:
        try:
            options = writing_options(self.encoding.format_options)
        except ValueError as error:
            raise ConfigError(f"batch_config.encoding.format_options: {error}.") from None
        columns = columns_of(schema)
        if not columns:
            raise BatchError(
                f"stream '{stream}': its schema declares no properties, so there are no columns for csv.\n"
                "  Declare them, or take the format jsonl."
            )
        made = CsvLayout(columns, options.dialect, stream)
        self._header = made.header if options.header else b""
        return made


def _check_codec(encoding: Encoding) -> None:
    """Refuse what would only fail once the first rows are written."""
    arrow = require("pyarrow", extra="batch", needed_for=f"batch_config.encoding.format '{encoding.format}'")
    codec, level = encoding.codec, encoding.compression_options.get("level")
    if codec is None or level is None:
        return
    levels = range(0)
    if arrow.Codec.supports_compression_level(codec):
        levels = range(arrow.Codec.minimum_compression_level(codec), arrow.Codec.maximum_compression_level(codec) + 1)
    if level not in levels:
        fact = f"levels of '{codec}' go from {levels[0]} to {levels[-1]}" if levels else f"'{codec}' has no levels"
        raise ConfigError(f"batch_config.encoding.compression_options.level {level}: {fact}")


class _BatchFile:
    """A file of one stream and version while it is written.

    Args:
        stored: where its bytes go.
        begun: the number, in the writer's sequence, of the first message in it.
        opened: monotonic seconds of the writer's clock.

    Attributes:
        size_bytes: how much came in, uncompressed.
    """

    def __init__(
        self, stored: NewBatchFile, layout: Layout, stream: str, version: int | None, begun: int, opened: float
    ) -> None:
        self.stream, self.version, self.begun, self.opened = stream, version, begun, opened
        self.records = self.size_bytes = 0
        self.stored, self._layout = stored, layout
        self._first: dt.datetime | None = None
        self._columns = layout.begin(stored.write)
        self._add: Callable[[Any], object] = stored.write if self._columns is None else self._columns.add

    def rows(self, lines: bytes | bytearray | memoryview, count: int, time_extracted: dt.datetime | None) -> None:
        """Append bare rows.

        Raises:
            BatchError: a value that its column can't hold, with the key of its row; the rows before it were taken.
        """
        try:
            for part in self._layout.parts(lines, count):
                self._add(part)
        except BatchError as error:
            if count == 1:
                raise self._naming(str(error), bytes(lines)) from None
            whole, half = bytes(lines), count // 2
            cut = 0
            for _ in range(half):
                cut = whole.index(b"\n", cut) + 1
            self.rows(whole[:cut], half, time_extracted)
            self.rows(whole[cut:], count - half, time_extracted)
            return
        self._took(count, len(lines), time_extracted)

    def table(self, batch: Any, time_extracted: dt.datetime | None) -> None:
        """Append columns."""
        self._add(batch)
        self._took(batch.num_rows, batch.nbytes, time_extracted)

    def finish(self) -> None:
        """All rows are in the stored file."""
        if self._columns is not None:
            self._columns.finish()

    def message(self, url: str, dialect: str) -> Batch:
        """The message that names the file."""
        encoding = self._layout.encoding
        options = dict(encoding.format_options)
        if encoding.is_columnar:
            options["compression"] = encoding.codec or "none"
        return Batch(
            self.stream,
            (url,),
            encoding.format,
            encoding.packing,
            options,
            {} if encoding.packing is None else dict(encoding.compression_options),
            size=self.records,
            time_extracted=self._first,
            version=self.version,
            file_stats=((self.records, self.stored.size_bytes),),
            dialect=dialect,
        )

    def discard(self) -> None:
        """Give the file up."""
        if self._columns is not None:
            self._columns.abandon()
        self.stored.discard()

    def _naming(self, fact: str, line: bytes) -> BatchError:
        """An error that names its row by its key, as errors of RECORDs do."""
        start, which = f"stream '{self.stream}'", ""
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # no row that has a key
            row = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
            keys = [(key, row[key]) for key in self._layout.keys if key in row]
            which = ", ".join(f"{key}={bytes(value).decode('utf-8', 'replace'):.60}" for key, value in keys)
        return BatchError(f"{start}, row {which}{fact.removeprefix(start)}" if which else fact)

    def _took(self, count: int, size_bytes: int, time_extracted: dt.datetime | None) -> None:
        self.records += count
        self.size_bytes += size_bytes
        if time_extracted is not None and (self._first is None or time_extracted < self._first):
            self._first = time_extracted


class BatchWriter(OpenFiles[_BatchFile]):
    """Takes the messages of one tap in sequence, and hands on SCHEMA, BATCH, ACTIVATE_VERSION and STATE. The storage is
    opened, and looked at, first (see ``open_storage``).

    Args:
        tap: stands in the names of files.
        emit: takes each message that goes out, in order; called with the writer's lock held.
        run_id: stands in the names of files, too, so that those of two runs never meet; random by default.

    After an error other than a ``MessageError`` the writer is dead: open files are gone, ``close`` does nothing.
    """

    def __init__(
        self,
        config: BatchConfig,
        *,
        tap: str,
        emit: Callable[[Message], object],
        clock: Clock | None = None,
        run_id: str | None = None,
    ) -> None:
        super().__init__(clock or Clock(), most=MOST_OPEN_FILES, age_seconds=config.batch_age_seconds)
        self.config = config
        Layout(config.encoding, Schema("", {"properties": {"a": {}}}))  # what is wrong with it shows now
        self._storage = open_storage(config.storage, presign_seconds=config.presign_seconds)
        self._tap, self._emit, self._run_id = tap, emit, run_id or drawn()
        self._numbers: dict[str, int] = {}
        self._made: dict[str, Any] = {"files": 0, "rows": 0, "bytes": 0, "root": self._storage.root}
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
            if self._schemas.get(message.stream) != message:
                self._end_of(message.stream)
                self._remark(message.stream)
                self._layouts[message.stream] = Layout(self.config.encoding, message)
                self._schemas[message.stream] = message
            self._emit(message)

    def arrow_schema(self, stream: str) -> Any:
        """The columns of a stream's files as an Arrow schema; None for formats of text."""
        layout = self._layouts.get(stream)
        return None if layout is None else layout.arrow_schema

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
        if isinstance(lines, memoryview):
            lines = bytes(lines)  # they are cut and searched
        with self._working():
            start = done = 0
            while done < count:
                file = self._file(stream, version)
                end, taken = fitting(
                    lines,
                    start,
                    count - done,
                    room_bytes=self.config.batch_bytes - file.size_bytes,
                    room_records=self.config.batch_size - file.records,
                    fresh=not file.records,
                )
                if taken:
                    before = file.records
                    try:
                        # Released also where that fails: else the buffer of the lines could not change.
                        with memoryview(lines) as view, view[start:end] as part:
                            file.rows(part, taken, time_extracted)
                    except BatchError as error:
                        error.rows_taken = done + file.records - before
                        raise
                    start, done = end, done + taken
                if not taken or self._is_full(file):
                    self.end(file)

    def table(self, page: ArrowPage) -> None:
        """A page of columns, exactly those of the stream's layout."""
        with self._working():
            done, count = 0, page.table.num_rows
            while done < count:
                file = self._file(page.stream, page.version)
                room_bytes = self.config.batch_bytes - file.size_bytes
                fitting_rows = room_bytes * count // max(1, page.table.nbytes)  # by the mean size of the page's rows
                taken = max(1, min(count - done, self.config.batch_size - file.records, fitting_rows))
                part = page.table if taken == count else page.table.slice(done, taken)
                file.table(part, page.time_extracted)
                done += taken
                if self._is_full(file):
                    self.end(file)

    def batch(self, message: Batch) -> None:
        """Files that somebody else has made, at their place in the stream."""
        with self._working():
            self._end_of(message.stream)
            self._emit(message)
            self._passed += len(message.manifest)

    def activate_version(self, message: ActivateVersion) -> None:
        """ACTIVATE_VERSION, behind the rows before it."""
        with self._working():
            self._end_of(message.stream)
            if self.config.activates:
                self._emit(message)
            elif not self._told:
                self._told = True
                logger.info(
                    "BATCH: ACTIVATE_VERSION is kept back: targets that read the dialect '%s' do not know the "
                    "version of batched rows, and would drop them all. batch_config.activate_version: true sends it.",
                    self.config.dialect,
                )

    def pass_on(self, message: Message) -> None:
        """A message of a stream that is not batched: it goes on at once."""
        with self._working():
            self._emit(message)

    def state(self, message: State) -> None:
        """A STATE: goes on at once if all before it is out, else when it is; newest only."""
        with self._working():
            self._held.add(self._place, message, self.begun)
            self._end(self.old())

    # ---- when files end --------------------------------------------------------------------------------

    def tick(self) -> None:
        """End the files that are old enough. For a timer, or whoever waits for input."""
        if self._dead:
            return
        with self._working():
            self._end(self.old())

    def flush(self) -> None:
        """End every open file, send its message, let the newest STATE go."""
        with self._working():
            self._end(self.in_order())

    def close(self) -> None:
        """The end: ``flush``; afterwards the writer takes nothing more. Nothing happens after an error."""
        with self._lock:
            if not self._dead:
                self.flush()
                self.report()
                self._dead = True
                if self._passed:
                    logger.info("BATCH: %s of the source went out as they are", counted(self._passed, "file"))
                if made := self.made:
                    files, rows = counted(made["files"], "file"), counted(made["rows"], "row")
                    logger.info("BATCH: %s of %s, %d bytes, in %s", files, rows, made["bytes"], made["root"])

    def report(self) -> None:
        """Log what could not be kept since the last time: one line for each stream and kind, however many files."""
        for stream in self._layouts:
            self._remark(stream)

    def abort(self) -> None:
        """The end after an error elsewhere: rows that no message has named are dropped, with the STATEs behind them."""
        with self._lock:
            self._dead = True
            self.discard()

    @property
    def made(self) -> dict[str, Any] | None:
        """Files whose messages went out: how many, their rows, their bytes as stored, and where they lie."""
        return dict(self._made) if self._made["files"] else None

    def end(self, file: _BatchFile) -> None:
        """Publish a file, and send its message; one without rows is dropped."""
        if not file.records:
            del self._open[file.stream]
            file.discard()
            return
        file.finish()
        try:
            url = file.stored.publish()
        except FileExistsError:  # another run has drawn the same number
            url = file.stored.publish(self._name(file.stream, drawn()))
        del self._open[file.stream]
        self._send(file, url)
        self._made["files"] += 1
        self._made["rows"] += file.records
        self._made["bytes"] += file.stored.size_bytes

    # ---- inside ----------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _working(self) -> Iterator[None]:
        """One call at a time, and the STATE that it freed behind it; an error that may have left something half done
        ends the writer."""
        with self._lock:
            if self._dead:
                raise BurlerError("this batch writer has ended, by close or by an earlier error: make a new one.")
            self._place += 1
            try:
                yield
                if (state := self._held.release(self.begun)) is not None:
                    self._emit(state)
            except MessageError:
                raise  # about what came in, of which nothing was taken
            except BaseException:
                self.abort()
                raise

    def _file(self, stream: str, version: int | None) -> _BatchFile:
        """The open file of a stream for rows of a version, begun if there is none that will do."""
        file = self._open.get(stream)
        if file is not None and file.version == version and not self._is_old(file):
            return file
        self._end_of(stream)
        if stream not in self._layouts:
            raise MessageError(f"stream '{stream}': data came before its SCHEMA. The tap must send SCHEMA first.")
        self._end(self.surplus())
        name = plain(stream)  # two streams may have the same in the names of files
        self._numbers[name] = self._numbers.get(name, 0) + 1
        encoding = self.config.encoding
        level = encoding.compression_options.get("level")
        stored = self._storage.new_file(self._name(stream, self._run_id), encoding.packing, level)
        file = _BatchFile(stored, self._layouts[stream], stream, version, self._place, self._clock.monotonic())
        self._open[stream] = file
        return file

    def _name(self, stream: str, run_id: str) -> str:
        """Of the file of a stream that was begun last."""
        encoding, number = self.config.encoding, self._numbers[plain(stream)]
        return file_name(self._tap, stream, run_id, number, ending(encoding.format, encoding.packing))

    def _is_full(self, file: _BatchFile) -> bool:
        """Whether no more rows belong into it."""
        return file.records >= self.config.batch_size or file.size_bytes >= self.config.batch_bytes

    def _end(self, files: list[_BatchFile]) -> None:
        for file in files:
            self.end(file)

    def _end_of(self, stream: str) -> None:
        if stream in self._open:
            self.end(self._open[stream])

    def _send(self, file: _BatchFile, url: str) -> None:
        """The message of a file. Where it surely did not go out, the file is removed. After other errors the line may
        be out, or what is kept of it still get out (a disk has room again): then the file stays."""
        try:
            if self.config.presign_seconds is not None:
                url = self._storage.presign(url, self.config.presign_seconds)
            message = file.message(url, self.config.dialect)
        except BaseException:
            file.stored.withdraw()
            raise
        try:
            self._emit(message)
        except OutputClosed:  # nobody read the whole line, and nobody will
            file.stored.withdraw()
            raise

    def _remark(self, stream: str) -> None:
        for remark in self._layouts[stream].remarks() if stream in self._layouts else ():
            logger.warning("stream '%s': %s", stream, remark)
