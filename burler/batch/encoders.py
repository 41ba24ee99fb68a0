"""What writes the rows of one batch file: JSON lines, CSV, Parquet, Arrow; compressed as a whole or inside.

Rows become text or typed columns exactly, or it is an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from burler.batch.csv_options import columns_of, writing_options
from burler.batch_config import Encoding
from burler.errors import BatchError, ConfigError, DataError
from burler.extras import require
from burler.formats import FormatError
from burler.formats.compression import compressor
from burler.formats.csv import Column
from burler.formats.csv_write import NOTHING, Cells, CsvText, Misfit
from burler.log_settings import near, value
from burler.surrogates import decode_veiled

if TYPE_CHECKING:
    import pyarrow as pa

    from burler.records.columns.from_json import ColumnarLayout

Write = Callable[[bytes | bytearray | memoryview], object]
"""Takes the bytes of a file, in order. They may be kept, and are never changed afterwards."""

_PART_BYTES = 1 << 16
_OTHER_FORMAT = ", or take another format: batch_config.encoding.format 'jsonl' holds any row"
_rows_of = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode_lines
_row_of = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class Layout(Protocol):
    """What a format makes of a stream's schema: once for each SCHEMA, kept from file to file."""

    def open_file(self, write: Write) -> Encoder:
        """Begin a file."""

    def remarks(self) -> list[str]:
        """One sentence for each thing that could not be kept (fields without a column, digits that were cut), since it
        was asked last."""


class Encoder(Protocol):
    """One file on its way."""

    @property
    def size_bytes(self) -> int:
        """How much came in, uncompressed."""

    def rows(self, lines: bytes | bytearray | memoryview, count: int) -> None:
        """Take rows: one JSON object a line, nothing around it. The buffer is free once this returns.

        Raises:
            BatchError: a value that its column can't hold; then none of these rows was taken, and the file goes on with
                others. StorageError: what ``write`` raises.
        """

    def table(self, batch: Any) -> None:
        """Take a RecordBatch with exactly the columns of the layout; formats of columns only."""

    def finish(self) -> None:
        """The end of the file: the rest goes to ``write``."""

    def abandon(self) -> None:
        """The file is given up; nothing more is written."""


def layout_of(encoding: Encoding, schema: Mapping[str, Any], stream: str) -> Layout:
    """The layout of a stream's files.

    Raises:
        BatchError: a schema that the format has no form for. ConfigError: options that can't be. MissingExtra: a
            package is missing.
    """
    if encoding.is_columnar:
        return _ColumnarLayout(encoding, schema, stream)
    return _CsvLayout(encoding, schema, stream) if encoding.format == "csv" else _TextLayout(encoding)


def prepare(encoding: Encoding) -> None:
    """Import what the encoding needs, and try it: what is wrong with it shows before the first message.

    Raises:
        MissingExtra: a package is missing. ConfigError: options that can't be.
    """
    layout_of(encoding, {"properties": {"a": {"type": "string"}}}, "").open_file(lambda _data: None).abandon()


# ---- text ----------------------------------------------------------------------------------------------------


class _TextLayout:
    """JSON lines: each row as it came. The proposal's default, which every target of BATCH reads."""

    header = b""

    def __init__(self, encoding: Encoding) -> None:
        self.encoding = encoding

    def open_file(self, write: Write) -> Encoder:
        return _TextFile(self, write)

    def text(self, lines: bytes | bytearray | memoryview, count: int) -> bytes | bytearray | memoryview:
        """Rows as they stand in the file."""
        return lines

    def remarks(self) -> list[str]:
        return []


class _TextFile:
    """One file of text, compressed or not."""

    def __init__(self, layout: _TextLayout, write: Write) -> None:
        encoding = layout.encoding
        try:
            self._compressor = compressor(encoding.packing, encoding.compression_options.get("level"))
        except FormatError as error:
            raise ConfigError(f"batch_config.encoding.compression_options.{error}") from None
        self._layout, self._write = layout, write
        self._add(layout.header)
        self.size_bytes = 0

    def rows(self, lines: bytes | bytearray | memoryview, count: int) -> None:
        self._add(self._layout.text(lines, count))
        self.size_bytes += len(lines)

    def table(self, batch: Any) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        if rest := self._compressor.flush():
            self._write(rest)

    def abandon(self) -> None:
        pass

    def _add(self, text: bytes | bytearray | memoryview) -> None:
        if ready := self._compressor.compress(text):
            self._write(ready)


# ---- CSV -----------------------------------------------------------------------------------------------------


class _CsvLayout(_TextLayout):
    """CSV: the columns of a stream's files, which databases load as they are, and what of its rows has none."""

    def __init__(self, encoding: Encoding, schema: Mapping[str, Any], stream: str) -> None:
        super().__init__(encoding)
        try:
            options = writing_options(encoding.format_options)
        except ValueError as error:
            raise ConfigError(f"batch_config.encoding.format_options: {error}.") from None
        self.stream = stream
        self.columns = columns_of(schema)
        if not self.columns:
            raise BatchError(
                f"stream '{stream}': its schema declares no properties, so there are no columns for csv.\n"
                "  Declare them, or take the format jsonl."
            )
        self.names = {column.name for column in self.columns}
        self.typed = _typed_decoder(self.columns)
        self._text = CsvText(options.dialect)
        self.header = self._text.header([column.name for column in self.columns]) if options.header else b""
        self._dropped: Counter[str] = Counter()

    def text(self, lines: bytes | bytearray | memoryview, count: int) -> bytes:
        dropped: Counter[str] = Counter()
        taken, made = 0, []
        for part in _csv_parts(bytes(lines)):
            rows, values, veiled = _columns(part, self, dropped)
            taken += rows
            try:
                made.append(self._text.rows(self.columns, values, veiled=veiled))
            except Misfit as misfit:
                raise BatchError(
                    f"stream '{self.stream}': field '{misfit.column.name}': {value(f'{misfit.value!r:.80}')} can't "
                    f"stand in its csv column: {misfit.fact}.\n  Correct the schema, or take the format jsonl."
                ) from None
        if taken != count:
            raise BatchError(f"stream '{self.stream}': {taken:,} rows came where {count:,} were announced")
        self._dropped += dropped
        return b"".join(made)

    def remarks(self) -> list[str]:
        given = [
            f"field '{name}' is not in the schema and has no column: left out of {count:,} "
            f"{'row' if count == 1 else 'rows'}. Declare it in the tap, or take the format jsonl"
            for name, count in sorted(self._dropped.items())
        ]
        self._dropped.clear()
        return given


def _csv_parts(lines: bytes) -> Iterator[bytes]:
    """Lines in parts, so that few values are in memory at once."""
    at = 0
    while at < len(lines):
        end = lines.rfind(b"\n", at, at + _PART_BYTES) + 1 or lines.find(b"\n", at) + 1 or len(lines)
        yield lines[at:end]
        at = end


def _columns(lines: bytes, layout: _CsvLayout, dropped: Counter[str]) -> tuple[int, list[Cells], bool]:
    """The number of rows, each column's values, and whether half surrogate pairs in them are veiled."""
    if layout.typed is not None:
        try:
            rows = layout.typed.decode_lines(lines)
        except (msgspec.DecodeError, RecursionError):  # a field that is not declared, or what follows below
            pass
        else:
            return (
                len(rows),
                list(zip(*map(msgspec.structs.astuple, rows), strict=True)) or [()] * len(layout.columns),
                False,
            )
    found, veiled = _decoded(lines, layout.stream)
    if not layout.names.issuperset(chain.from_iterable(found)):
        dropped.update(name for row in found for name in row if name not in layout.names)
    return len(found), [[row.get(column.name, NOTHING) for row in found] for column in layout.columns], veiled


def _decoded(lines: bytes, stream: str) -> tuple[list[dict[str, Any]], bool]:
    try:
        return _rows_of(lines), False
    except (msgspec.DecodeError, RecursionError):
        pass
    found = []
    for line in filter(None, lines.split(b"\n")):
        try:
            found.append(decode_veiled(_row_of, line)[0])
        except (msgspec.DecodeError, RecursionError) as error:
            raise BatchError(
                f"stream '{stream}': a row can't be read ({error}){near(line)}.\n"
                "  It is no JSON object, or nested too deeply for csv; the format jsonl takes rows as they are."
            ) from None
    return found, True


def _typed_decoder(columns: tuple[Column, ...]) -> Any:
    """A decoder to objects that have the columns' values in order, which is faster than one to dicts, and stops at
    fields that are no columns; None where a name is not to be had in one."""
    names = {f"f{place}": column.name for place, column in enumerate(columns)}
    fields = [(field, msgspec.Raw, NOTHING) for field in names]
    try:
        row = msgspec.defstruct("Row", fields, rename=names, forbid_unknown_fields=True, gc=False)
    except ValueError:  # quotes, backslashes and control characters
        return None
    return msgspec.json.Decoder(row)


# ---- columns -------------------------------------------------------------------------------------------------


def columnar_layout(schema: Mapping[str, Any], stream: str) -> ColumnarLayout:
    """What makes columns of a stream's rows. pyarrow must be there.

    Raises:
        BatchError: the schema has no form in columns.
    """
    from burler.records.columns import from_json

    try:
        return from_json.layout_of(schema, stream, _OTHER_FORMAT)
    except DataError as error:
        raise BatchError(f"{error}.\nCorrect the schema in the tap{_OTHER_FORMAT}") from None


class _ColumnarLayout:
    """Parquet and Arrow: typed columns."""

    def __init__(self, encoding: Encoding, schema: Mapping[str, Any], stream: str) -> None:
        _check_codec(encoding)
        self.encoding, self.columns = encoding, columnar_layout(schema, stream)
        self.arrow_schema = self.columns.arrow_schema
        self.remarks = self.columns.remarks

    def open_file(self, write: Write) -> Encoder:
        return _ColumnarFile(self, write)


class _ColumnarFile:
    """One Parquet or Arrow file. Rows become columns at once, so that a wrong one is an error of the call that brings
    it, and nothing of that call is taken."""

    def __init__(self, layout: _ColumnarLayout, write: Write) -> None:
        from burler.formats.columnar import Writer

        encoding = layout.encoding
        level = encoding.compression_options.get("level")
        self._columns = layout.columns
        self._file = Writer(encoding.format, layout.arrow_schema, write, codec=encoding.codec, level=level)
        self.size_bytes = 0
        self.finish, self.abandon = self._file.finish, self._file.abandon

    def rows(self, lines: bytes | bytearray | memoryview, count: int) -> None:
        for batch in self._columns.batches(lines, count):
            self._file.add(batch)
        self.size_bytes += len(lines)

    def table(self, batch: pa.RecordBatch) -> None:
        self._file.add(batch)
        self.size_bytes += batch.nbytes


def _check_codec(encoding: Encoding) -> None:
    """Refuse what would only fail once the first rows are written."""
    arrow = require("pyarrow", extra="batch", needed_for=f"batch_config.encoding.format '{encoding.format}'")
    codec, level = encoding.codec, encoding.compression_options.get("level")
    if codec is None:
        return
    place = "batch_config.encoding.compression"
    if not arrow.Codec.is_available(codec):
        raise ConfigError(f"{place} '{codec}': this pyarrow was built without it. Take another, for example 'zstd'")
    if level is None:
        return
    if not arrow.Codec.supports_compression_level(codec):
        raise ConfigError(f"{place}_options.level {level}: '{codec}' has no levels. Remove it")
    least, most = arrow.Codec.minimum_compression_level(codec), arrow.Codec.maximum_compression_level(codec)
    if not least <= level <= most:
        raise ConfigError(f"{place}_options.level {level}: levels of '{codec}' go from {least} to {most}")
