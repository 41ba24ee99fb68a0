"""A stream of a lake, read from Python: as pages of lines, as dicts, as Arrow; the lines of one data file.

The manifest is read once, when ``read`` is called; which files are opened is known from then on. The lines of a file go
out untouched where nothing is left out, else they are read no deeper than needed. Three ways, a block of about a MiB at
a time:

* as it stands, if the block has only RECORD lines in burler's own form (seen by counting their common beginning), of a
  file that a manifest knows, and all of them are wanted;
* decoded by a msgspec type that leaves values as source text, if fields or times are left out;
* line by line, for whatever is not of that form: ACTIVATE_VERSION, lines of other writers.
"""

from __future__ import annotations

import datetime as dt
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, Self

import msgspec
from msgspec import UNSET, Raw, UnsetType

from burler import times
from burler.errors import BatchError, DataError, LakeError, MessageError, UsageError
from burler.extras import require
from burler.lake.choice import ALL_TIMES, Choice, Cut, Fields, Window, cut_of, refuse_unknown_fields, window
from burler.lake.datafile import CURE_CHANGED, CURE_DAMAGED, Head, head_by_hash, head_of, read_blocks
from burler.lake.lake import Lake
from burler.lake.snapshot import DataFile, Snapshot
from burler.lake.store import open_store
from burler.singer.lines import Message, Numbered, bad, decode_all, one_by_one
from burler.singer.messages import Schema, encode
from burler.storage.base import Store

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger("burler.lake")
_decode_exactly = msgspec.json.Decoder(float_hook=Decimal).decode


@dataclass(frozen=True, slots=True)
class Page:
    """``count`` complete RECORD lines of one stream and one schema version (``hash``: its folder)."""

    stream: str
    hash: str
    lines: bytes
    count: int


def read(
    lake: str | Store,
    tap: str | None = None,
    stream: str | None = None,
    schema: str | None = None,
    since: str | dt.date | None = None,
    until: str | dt.date | None = None,
    columns: Sequence[str] | None = None,
) -> LakeReading:
    """One stream of a lake, as it is now.

    Args:
        lake: a path, a URL, or an open store.
        tap, stream: may be left out where there is but one.
        schema: ``v2``, ``v2..`` (that version and all later ones), or a schema's hash.
        since, until: rows extracted from the one on, and before the other. A text in RFC 3339, a date, a datetime; UTC
            where they name no zone.
        columns: these fields of each row alone.

    Raises:
        UsageError: there is no such lake, stream, schema version or column; says which there are.
        LakeError: the manifest is broken.
    """
    times = window(since, until)
    if isinstance(columns, str):
        raise UsageError(f"columns is the text {columns!r}; give a list of names, as [{columns!r}].")
    store = open_store(lake, must_exist=True) if isinstance(lake, str) else lake
    there = Lake(store)
    snapshot = there.snapshot(*there.one(tap, stream))
    choice = Choice.among(snapshot, schema, times)
    reading = LakeReading(store, snapshot, choice, columns)
    reading.check_columns()
    return reading


class LakeReading:
    """A stream, and what of it is wanted. Each call of ``pages``, ``rows`` or ``arrow`` reads the files anew, a page in
    memory at a time.

    Attributes:
        snapshot: the stream as its manifest had it. files: those that will be opened, in replay order.
    """

    def __init__(self, store: Store, snapshot: Snapshot, choice: Choice, columns: Sequence[str] | None = None) -> None:
        self.snapshot = snapshot
        self.files = choice.of(snapshot)
        self._store = store
        self._choice = choice
        self._columns = None if columns is None else tuple(dict.fromkeys(columns))

    @property
    def schema(self) -> Schema:
        """The SCHEMA of the newest of the files; where none will be opened, the newest that the lake knows.

        Raises:
            LakeError: nothing in the lake says it.
        """
        digest = self.files[-1].hash if self.files else self.snapshot.newest(self._choice.hashes)
        if digest is None:
            raise LakeError(f"{self.snapshot.folder}: the lake knows no schema of this stream.")
        return head_by_hash(self._store, self.snapshot, digest).message

    def check_columns(self) -> None:
        """Look whether the columns are there, where the manifest tells.

        Raises:
            UsageError: one is in none of the schema versions.
        """
        refuse_unknown_fields(self._columns or (), [(self._choice, self.snapshot)])

    def pages(self) -> Iterator[Page]:
        """Yield RECORD lines, about a MiB at a time, in replay order; ACTIVATE_VERSION is left out.

        Raises:
            LakeError: a file is missing or damaged; names it and the cure.
        """
        for file, opened in self._opened():
            for lines, count in opened.lines(self._wanted()):
                yield Page(opened.head.message.stream, file.hash, lines, count)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows as dicts; numbers with a point or an exponent as exact Decimals.

        Raises:
            LakeError: see ``pages``.
        """
        for _, opened in self._opened():
            for lines, _count in opened.lines(self._wanted(bare=True)):
                for line in lines[:-1].split(b"\n"):
                    try:
                        row = _decode_exactly(line)
                    except (msgspec.DecodeError, RecursionError):  # half of a surrogate pair, say
                        row = json.loads(line, parse_float=Decimal)
                    yield row

    def arrow(self) -> Iterator[pa.RecordBatch]:
        """Yield RecordBatches in the columns that each file's schema has in batch files.

        Raises:
            LakeError: see ``pages``; or a value that its column can't hold; names the field.
            MissingExtra: pyarrow is not installed.
        """
        require("pyarrow", extra="batch", needed_for="reading a lake as Arrow")
        tables: dict[bytes, _Columns] = {}
        for file, opened in self._opened():
            line = opened.head.line
            table = tables[line] = tables.get(line) or _Columns(opened.head, self._columns)
            clean = Wanted(times=self._choice.times, activations=False)
            yield from table.batches(file, opened, clean if file.clean else self._wanted(bare=True))
        for table in tables.values():
            table.tell()

    def _opened(self) -> Iterator[tuple[DataFile, FileLines]]:
        for file in self.files:
            with FileLines(self._store, file) as opened:
                yield file, opened

    def _wanted(self, *, bare: bool = False) -> Wanted:
        cut = None if self._columns is None else cut_of((), self._columns)
        return Wanted(times=self._choice.times, cut=cut, activations=False, bare=bare)


Lines = tuple[bytes, int]
"""Complete lines, and how many of them are RECORDs."""

_encode_lines = msgspec.json.Encoder().encode_lines
_MOST_TIMES = 10_000


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is wanted of a file.

    ``times``: rows extracted then; a row that does not say when is taken. ``cut``: what is taken out of rows. ``name``:
    the stream's name in the lines, None for that of line 1. ``activations``: whether ACTIVATE_VERSION comes, at its
    place. ``bare``: rows alone, one JSON object a line.
    """

    times: Window = ALL_TIMES
    cut: Cut | None = None
    name: str | None = None
    activations: bool = True
    bare: bool = False


class FileLines:
    """One data file; ``head`` is its line 1, read and checked at once.

    Attributes:
        skipped: types of messages that no data file should hold, each with the number of its first line.

    Raises:
        LakeError: the file is missing or damaged, or its line 1 is no SCHEMA. So may ``lines``.
    """

    def __init__(self, store: Store, file: DataFile) -> None:
        self._place = store.locate(file.path)
        self._file = file
        self._blocks = read_blocks(store, file.path)
        self.skipped: dict[str, int] = {}
        self.head: Head = head_of(next(self._blocks), self._place)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._blocks.close()

    def lines(self, wanted: Wanted) -> Iterator[Lines]:
        """Yield what is wanted of the lines behind the first, about a MiB at a time.

        Raises:
            LakeError: a line is no message of this stream, or not so many rows stand there as the manifest says.
        """
        way = _Way(self._file, self.head, wanted, self.skipped)
        number, records = 2, 0
        for block in self._blocks:
            count = block.count(b"\n")
            try:
                page, seen = way.take(number, block, count)
            except MessageError as error:
                raise LakeError(f"{self._place}, {error}.\n{CURE_DAMAGED}") from None
            number += count
            records += seen
            if page[0]:
                yield page
        stats = self._file.stats
        if stats is not None and records != stats.records:
            raise LakeError(
                f"{self._place} holds {records:,} rows where the manifest says {stats.records:,}.\n{CURE_CHANGED}"
            )


class _Times(dict[Any, bool]):
    """``time_extracted`` as it stands in a line -> whether it is wanted. A file has few different ones."""

    def __init__(self, times: Window) -> None:
        self._window = times

    def __missing__(self, text: Any) -> bool:
        if len(self) > _MOST_TIMES:
            self.clear()
        try:
            wanted = not isinstance(text, str) or self._window.holds(times.lake(text)[0])
        except ValueError as error:
            raise MessageError(f"a row's time_extracted: {error}") from None
        self[text] = wanted
        return wanted


class _Way:
    """How the blocks of one file are read."""

    def __init__(self, file: DataFile, head: Head, wanted: Wanted, skipped: dict[str, int]) -> None:
        stats = file.stats
        self._known = stats is not None
        self._stream = head.message.stream
        self._name = wanted.name or self._stream
        self._filters = not wanted.times.is_all and not (
            stats is not None and wanted.times.covers(stats.first, stats.last)
        )
        self._times = _Times(wanted.times)
        self._cut = wanted.cut or None
        self._wanted = wanted
        self._skipped = skipped
        self._begin = b'{"type":"RECORD","stream":' + encode(self._stream) + b',"record":'
        self._is_plain = not self._cut and not self._filters and self._name == self._stream and not wanted.bare
        names: Iterable[str] | None = None if self._cut is None else self._cut.keep
        if names is None and file.clean:  # no row has a field that the schema does not name
            names = head.properties
        self._row, self._below = _row_type(self._cut, names)
        self._decode: Callable[[bytes], list[Any]] = msgspec.json.Decoder(_line_type(self._row)).decode_lines

    def take(self, number: int, block: bytes, lines: int) -> tuple[Lines, int]:
        """What is wanted of a block of so many lines, whose first one has this number; and how many RECORDs it holds.

        Raises:
            MessageError: a line is no message of this stream.
        """
        if self._known and block.startswith(self._begin) and block.count(b"\n" + self._begin) == lines - 1:
            if self._is_plain:
                return (block, lines), lines
            try:
                return self._typed(block), lines
            except (msgspec.DecodeError, RecursionError):
                pass  # a line wants a closer look
        return self._looked_at(number, block)

    def _typed(self, block: bytes) -> Lines:
        rows = self._decode(block)
        if self._filters:
            holds = self._times
            rows = [row for row in rows if holds[row.time_extracted]]
        if self._row is Fields and self._cut is not None:
            for row in rows:
                self._cut.fields(row.record)
        for attribute, below in self._below:
            for row in rows:
                value = getattr(row.record, attribute)
                if value is not UNSET:
                    setattr(row.record, attribute, below.value(value))
        if not rows:
            return b"", 0
        if self._wanted.bare:
            records = [row.record for row in rows]
            return (_encode_lines(records) if self._cut else b"\n".join(records) + b"\n"), len(rows)
        if self._name != self._stream:
            for row in rows:
                row.stream = self._name
        return _encode_lines(rows), len(rows)

    def _looked_at(self, number: int, block: bytes) -> tuple[Lines, int]:
        lines = block[:-1].split(b"\n")
        messages = decode_all(block, lines)
        if messages is not None and self._is_plain and all(map(self._is_right, messages)):
            return (block, len(lines)), len(lines)
        found: Any = one_by_one(number, lines)
        out: list[bytes] = []
        seen = taken = 0
        for one in found:
            is_record = one[1].type.upper() == "RECORD"
            line = self._record(one) if is_record else self._other(one)
            seen += is_record
            if line:
                out.append(line)
                taken += is_record
        return (b"".join(out), taken), seen

    def _is_right(self, message: Message) -> bool:
        """Whether a line may go out as it is."""
        record = message.record
        return (
            message.type == "RECORD"
            and message.stream == self._stream
            and record is not UNSET
            and bytes(memoryview(record)[:1]) == b"{"
        )

    def _record(self, one: Numbered) -> bytes | None:
        """A RECORD as it goes out; None if it is not wanted."""
        number, message, line, extras = one
        record = b"" if message.record is UNSET else bytes(message.record)
        if record[:1] != b"{":
            raise bad(number, line, "the 'record' of a RECORD must be a JSON object")
        self._check_stream(one)
        if self._filters and not self._times[message.time_extracted]:
            return None
        if self._cut is not None:
            record = self._cut.record(record)
        elif message.type == "RECORD" and self._name == self._stream and not self._wanted.bare:
            return line + b"\n"
        if self._wanted.bare:
            return record + b"\n"
        parts = [b'{"type":"RECORD","stream":', encode(self._name), b',"record":', record]
        if message.time_extracted is not None:
            parts += (b',"time_extracted":', encode(message.time_extracted))
        if message.version is not None:
            parts += (b',"version":', encode(message.version))
        return b"".join((*parts, extras, b"}\n"))

    def _other(self, one: Numbered) -> bytes | None:
        """Another message as it goes out: ACTIVATE_VERSION does, all else does not belong into a data file."""
        number, message, line, _ = one
        if message.type.upper() != "ACTIVATE_VERSION":
            self._skipped.setdefault(message.type.upper()[:40], number)
            return None
        self._check_stream(one)
        if message.version is None:
            raise bad(number, line, "an ACTIVATE_VERSION without 'version'")
        if not self._wanted.activations or self._wanted.bare:
            return None
        if message.type == "ACTIVATE_VERSION" and self._name == self._stream:
            return line + b"\n"
        return encode({"type": "ACTIVATE_VERSION", "stream": self._name, "version": message.version}) + b"\n"

    def _check_stream(self, one: Numbered) -> None:
        number, message, line, _ = one
        if message.stream != self._stream:
            raise bad(number, line, f"a message of stream {message.stream!r} in a file of stream '{self._stream}'")


def _line_type(row: Any) -> Any:
    """A RECORD line, decoded as deep as ``row`` says."""
    return msgspec.defstruct(
        "Line",
        [
            ("type", Literal["RECORD"]),
            ("stream", str),
            ("record", row),
            ("time_extracted", str | UnsetType, UNSET),
            ("version", int | UnsetType, UNSET),
        ],
        forbid_unknown_fields=True,
        gc=False,
    )


def _row_type(cut: Cut | None, names: Iterable[str] | None) -> tuple[Any, list[tuple[str, Cut]]]:
    """The type of ``record``, and what goes inside of which of its attributes: a struct that reads the fields of
    ``names`` that stay and passes over all others; a dict where any field may stay, or a name can't be a struct's.
    """
    if cut is None:
        return Raw, []
    if names is None:
        return Fields, []
    kept = {name: f"f{at}" for at, name in enumerate(filter(cut.stays, dict.fromkeys(names)))}
    try:
        made = msgspec.defstruct(
            "Row",
            [(attribute, Raw | UnsetType, UNSET) for attribute in kept.values()],
            rename={attribute: name for name, attribute in kept.items()},
            gc=False,
        )
        msgspec.json.Decoder(made)
    except (ValueError, TypeError):
        return Fields, []
    return made, [(kept[name], below) for name, below in cut.below.items() if name in kept]


_CURE = "Correct the schema or the value in the tap. pages() and rows() give any value as it is."


class _Columns:
    """Makes batches, in the columns that batch files have, of the files of one SCHEMA.

    RECORD lines of a file that is *clean* are read as they stand; rows of every other file are cut out first. Both go
    the exact way of batch files.
    """

    def __init__(self, head: Head, names: tuple[str, ...] | None) -> None:
        """``names``: these fields alone; None for all that the schema declares.

        Raises:
            LakeError: there are no columns.
        """
        from burler.records.columns.from_json import ColumnarLayout, layout_of

        self._stream = stream = head.message.stream
        schema = head.with_floats
        if names is not None:
            declared = schema.get("properties") or {}
            kept = {name: declared[name] for name in names if name in declared}
            if not kept:
                raise LakeError(
                    f"stream '{stream}': a schema version that is read has none of the columns {', '.join(names)}. "
                    "Leave it out: schema='v2..', or another that has them."
                )
            schema = {**schema, "properties": kept}
        try:
            self._bare = layout_of(schema, stream)
        except DataError as error:
            raise LakeError(f"{error}.\npages() and rows() need no columns.") from None
        self._clean = ColumnarLayout(self._bare.record, stream, within="record", skips=True)

    def batches(self, file: DataFile, opened: FileLines, wanted: Wanted) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file.

        Raises:
            LakeError: the file is damaged, or a column can't hold a value exactly.
        """
        layout = self._bare if wanted.bare else self._clean
        try:
            for lines, count in opened.lines(wanted):
                yield layout.batch(lines, count)
        except BatchError as error:
            raise LakeError(f"{file.path}: {str(error).partition(chr(10))[0]}.\n{_CURE}") from None

    def tell(self) -> None:
        """Say what was left out or cut."""
        for remark in (*self._bare.remarks(), *self._clean.remarks()):
            _log.warning("stream '%s': %s", self._stream, remark.partition(". Declare")[0])
