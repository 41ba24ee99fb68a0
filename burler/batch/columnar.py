"""Parquet and Arrow files: rows become typed columns by ``burler.columns``, exactly, or it is an error.

columnar_rows     lines are cut into columns of source texts
columnar_values   a column's source texts become an Arrow array
columnar_times    date-times and dates
columnar_files    batches become row groups of a file
columnar_read     the way back: files to JSON lines
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from burler.batch.columnar_files import Groups
from burler.batch.columnar_nodes import with_json
from burler.batch.columnar_rows import Splitter
from burler.batch.encoders import Write
from burler.batch_config import Encoding
from burler.columns.kinds import StructOf
from burler.columns.types import arrow_schema, record_type
from burler.columns.values import Misfit, Report, converter
from burler.errors import BatchError, ConfigError, DataError
from burler.extras import require
from burler.log_settings import log_settings, near, value

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCK_BYTES = 256 * 1024  # of lines that are taken at once: their parts stay in the processor's cache
_HALF = re.compile("[\ud800-\udfff]")
_SHOWN = 80  # characters of a value in an error
_CURE = "or take another format: batch_config.encoding.format 'jsonl' holds any row"


class ColumnarLayout:
    """The columns that a stream's rows have, and what makes them.

    Attributes:
        record: the columns' types, neutral. arrow_schema: the same as Arrow has them; of every file.
        report: fields without a column, and times that were cut, since ``remarks`` was asked last.

    Raises:
        BatchError: the schema has no form in columns.
    """

    def __init__(self, schema: Mapping[str, Any], stream: str) -> None:
        self.stream = stream
        try:
            self.record: StructOf = with_json(record_type(schema, stream=stream), schema)
        except DataError as error:
            raise BatchError(f"{error}.\nCorrect the schema in the tap, {_CURE}") from None
        self.arrow_schema = arrow_schema(self.record)
        self.report = Report(Counter(), Counter())
        self._split = Splitter(self.record, ())

    def batches(self, lines: bytes | bytearray | memoryview, count: int) -> list[pa.RecordBatch]:
        """``count`` rows, one a line, as columns: all of them, or an error.

        Raises:
            BatchError: a value that its column can't hold, a line that is no object, not so many rows.
        """
        found = Report(Counter(), Counter())
        made = [self._batch(block, found) for block in blocks(lines)]
        rows = sum(batch.num_rows for batch in made)
        if rows != count:
            raise BatchError(f"stream '{self.stream}': {rows} row(s) came where {count} were announced")
        self.report.add(found)
        return made

    def _batch(self, lines: bytes, report: Report) -> pa.RecordBatch:
        import pyarrow as pa

        try:
            arrays, _ = self._split.arrays(lines, report, lines=True)
            return pa.RecordBatch.from_arrays(arrays, schema=self.arrow_schema)
        except (Misfit, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise self._first_misfit(lines) from None

    def remarks(self) -> list[str]:
        """See ``encoders.Layout.remarks``."""
        report, self.report = self.report, Report(Counter(), Counter())
        lost = [
            f"field '{path}' is not in the schema and has no column: left out of {count} row(s). "
            f"Declare it in the tap, {_CURE}"
            for path, count in report.dropped.items()
        ]
        return lost + [
            f"field '{path}': {count} time(s) cut to microseconds, all that the column holds"
            for path, count in report.truncated.items()
        ]

    def _first_misfit(self, lines: bytes) -> BatchError:
        """What is wrong, in the order of rows: they are looked at one by one."""
        convert, unused = converter(self.record, ()), Report(Counter(), Counter())
        for line in filter(None, lines.split(b"\n")):
            try:
                convert(line, unused)
            except Misfit as misfit:
                if not misfit.path:
                    return self._no_row(line)
                start = f"stream '{self.stream}': field '{'.'.join(misfit.path)}': "
                return BatchError(
                    f"{start}{value(misfit.text[:_SHOWN])} can't be held exactly; the schema wants {misfit.wanted}.\n"
                    f"Correct the schema or the value in the tap, {_CURE}"
                )
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                return self._no_row(line)
        return self._no_row(lines)

    def _no_row(self, line: bytes) -> BatchError:
        path = half_pair(line)
        start = f"stream '{self.stream}': "
        if path is None:
            return BatchError(f"{start}a row that is no object of valid JSON{near(line, _SHOWN)}")
        # Names that the schema does not have are the row's own.
        shown = path if log_settings.values else path[:1] if self.record.get(path[0]) is not None else ()
        field = f"field '{'.'.join(shown)}': " if shown else ""
        return BatchError(
            f"{start}{field}half of a surrogate pair, which is no text that a column can hold{near(line, _SHOWN)}.\n"
            f"Correct the value in the tap, {_CURE}"
        )


def layout(encoding: Encoding, schema: Mapping[str, Any], stream: str) -> ColumnarLayout:
    """See ``encoders.layout_of``.

    Raises:
        ConfigError: a compression, or a level of it, that the installed pyarrow does not have.
    """
    _check_codec(encoding)
    return ColumnarLayout(schema, stream)


def open_file(encoding: Encoding, layout: ColumnarLayout, write: Write) -> ColumnarEncoder:
    """See ``encoders.open_encoder``."""
    return ColumnarEncoder(encoding, layout, write)


class ColumnarEncoder:
    """One Parquet or Arrow file. Rows become columns at once, so that a wrong one is an error of the call that brings
    it, and nothing of that call is taken."""

    def __init__(self, encoding: Encoding, layout: ColumnarLayout, write: Write) -> None:
        self._layout = layout
        self._groups = Groups(encoding, layout.arrow_schema, write)
        self.size_bytes = 0

    def rows(self, lines: bytes | bytearray | memoryview, count: int) -> None:
        """See ``Encoder.rows``. Each call has a cost of its own: many rows at a time are better."""
        for batch in self._layout.batches(lines, count):
            self._groups.add(batch)
        self.size_bytes += len(lines)

    def table(self, batch: pa.RecordBatch) -> None:
        """See ``Encoder.table``."""
        self._groups.add(batch)
        self.size_bytes += batch.nbytes

    def finish(self) -> None:
        """See ``Encoder.finish``."""
        self._groups.finish()

    def abandon(self) -> None:
        """See ``Encoder.abandon``."""
        self._groups.abandon()


def record_batch(layout: ColumnarLayout, lines: bytes | bytearray | memoryview, count: int) -> pa.RecordBatch:
    """``count`` rows, one a line, as one batch with the layout's columns.

    Raises:
        BatchError: see ``ColumnarLayout.batches``.
    """
    import pyarrow as pa

    table = pa.Table.from_batches(layout.batches(lines, count), layout.arrow_schema).combine_chunks()
    return table.to_batches()[0] if table.num_rows else pa.RecordBatch.from_pylist([], schema=layout.arrow_schema)


def blocks(lines: bytes | bytearray | memoryview) -> Iterator[bytes]:
    """Lines in blocks of a bounded size (or one line, if that is larger), cut at their ends."""
    data = bytes(lines)
    start = 0
    while start < len(data):
        end = data.rfind(b"\n", start, start + _BLOCK_BYTES) + 1
        if end <= start:
            end = data.find(b"\n", start) + 1 or len(data)
        yield data[start:end]
        start = end


def half_pair(line: bytes) -> tuple[str, ...] | None:
    """Where a row has text with half of a surrogate pair: JSON's escapes may say so, UTF-8 can't."""
    try:
        return _half_pair_in(json.loads(line), ())
    except (ValueError, RecursionError):
        return None


def _half_pair_in(value: Any, path: tuple[str, ...]) -> tuple[str, ...] | None:
    if isinstance(value, str):
        return None if value.isascii() or not _HALF.search(value) else path
    below = (
        value.items() if isinstance(value, dict) else (("[]", one) for one in value) if isinstance(value, list) else ()
    )
    for name, one in below:
        found = _half_pair_in(one, (*path, name)) or (_half_pair_in(name, (*path, ascii(name))))
        if found:
            return found
    return None


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
