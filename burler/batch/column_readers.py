"""Rows of files with columns, CSV, Parquet and Arrow, as lines of JSON or as columns, by the stream's schema: other
programs' files lack columns, or have them under another name or of another type, and targets take what the SCHEMA says.

What burler writes comes back as it was, digit for digit. Of CSV, exports of databases and other tools are read as well:
columns in any order, numbers in other spellings, ``t`` and ``1`` for true.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc

from burler.batch.message import CsvOptions
from burler.errors import BatchError, DataError
from burler.formats import FormatError
from burler.formats.columnar import record_batches
from burler.formats.csv import Column
from burler.formats.csv_read import CsvReader
from burler.records.columns.csv import CsvLines, columns_of
from burler.records.columns.file_check import FileCheck, Report
from burler.records.columns.from_json import ColumnarLayout, layout_of
from burler.records.columns.to_json import RowText

_PAGE_BYTES = 1 << 20
_MOST_ROWS = 4096
_OTHER_FORMAT = ", or take another format: batch_config.encoding.format 'jsonl' holds any row"
_OPEN_END = "the last row of a file has no line end; if it was cut off there, its last value is not whole"


# ---- CSV -----------------------------------------------------------------------------------------------------


def csv_pages(
    source: Any, options: CsvOptions, schema: Mapping[str, Any] | None, report: Report, *, are_shaped: bool = False
) -> Iterator[tuple[bytes, int]]:
    """Yield the rows as lines of JSON, each with every field that the schema declares, and how many there are.

    Args:
        source: the file, an object with ``read(size)``.
        schema: the stream's; None: the header's columns, all of them text.
        report: takes a sentence on columns that the schema does not know, on those that are not there, and on a last
            row that may be cut off.
        are_shaped: whoever gets the rows looks at integers, dates and date-times, and knows what to do with odd ones.

    Raises:
        FormatError: no CSV as it should be, or other columns. BatchError: a value that is none of its field, or none
            where there must be one; names the row.
    """
    reader = CsvReader(source, options.dialect)
    declared = None if schema is None else columns_of(schema)
    given = options.columns or (None if declared is None else tuple(column.name for column in declared))
    names = reader.names(None if options.header else given, header=options.header)
    if names is None:
        if options.header:
            raise FormatError("it is empty, and should begin with a row of names", kind="names")
        return
    if given is None and not options.header:
        raise BatchError("it has no header, so its columns have no names. Read it with the stream's schema.")
    columns = declared or tuple(Column(name, "text") for name in names)
    check = FileCheck(schema or {})
    check.fit(names, [column.name for column in columns], report, options.dialect.delimiter)
    places = {name: place for place, name in enumerate(names)}
    wanted = [places[column.name] for column in columns if column.name in places]
    if are_shaped:
        columns = tuple(dataclasses.replace(column, narrow=None) for column in columns)
    made = CsvLines(columns, options.null, check)
    for batch in reader.batches(names, wanted):
        if reader.is_open:
            report(_OPEN_END)
        yield made.lines(batch, reader.row), batch.num_rows


# ---- Parquet and Arrow ---------------------------------------------------------------------------------------


def columnar_pages(
    raw: IO[bytes], format: str, schema: Mapping[str, Any] | None, report: Report
) -> Iterator[tuple[bytes, int]]:
    """Yield the rows of a file, about a megabyte at a time. burler's own files have the columns of the schema; of
    others each value must be one that the schema's column holds. It goes on as exact as it stands there.

    Integers and decimals digit for digit, date-times in RFC 3339 and UTC (timestamps without a zone are taken as
    UTC), bytes as base64. Where the schema has an object, an array or a union without text and the column is text,
    the text is JSON and comes out as such; where anything goes, text that reads as JSON does.

    Args:
        raw: the file; one that can't seek is copied into a temporary file first.
        format: "parquet" or "arrow".
        schema: the stream's JSON Schema; every field that it declares is in every row, null where the file has none.

    Raises:
        FormatError: a broken file, or one of other columns. BatchError: a value that JSON has no form for, or that is
            none of the schema's. Errors of ``raw`` go through.
    """
    text = RowText(schema)
    layout = None if schema is None else columnar_layout(schema, "")
    for batch, row, is_own in _parts(raw, format, schema, layout, report):
        lines = text.lines(batch)
        if layout is not None and not is_own:
            _as_own(layout, lines, batch.num_rows, row)
        yield lines, batch.num_rows


def columnar_batches(
    raw: IO[bytes], format: str, schema: Mapping[str, Any], layout: ColumnarLayout, report: Report
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file in the columns of a layout: as they are where they have them, else by way of their text,
    which is exact. The checks are those of ``columnar_pages``.

    Raises:
        FormatError, BatchError: see ``columnar_pages``.
    """
    text = RowText(schema)
    for batch, row, is_own in _parts(raw, format, schema, layout, report):
        if is_own and all(map(_is_finite, batch.columns)):
            yield batch.replace_schema_metadata(None)
        else:
            yield _as_own(layout, text.lines(batch), batch.num_rows, row)


def columnar_layout(schema: Mapping[str, Any], stream: str) -> ColumnarLayout:
    """What makes columns of a stream's rows. pyarrow must be there.

    Raises:
        BatchError: the schema has no form in columns.
    """
    try:
        return layout_of(schema, stream, _OTHER_FORMAT)
    except DataError as error:
        raise BatchError(f"{error}.\nCorrect the schema in the tap{_OTHER_FORMAT}") from None


def own_batches(layout: ColumnarLayout, pages: Iterator[tuple[bytes, int]]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file of text in the columns of a layout.

    Raises:
        BatchError: a value that its column can't hold; names the row.
    """
    row = 0
    for lines, count in pages:
        yield _as_own(layout, lines, count, row)
        row += count


def _as_own(layout: ColumnarLayout, lines: bytes, count: int, before: int) -> pa.RecordBatch:
    """Rows in the columns of burler's own files.

    Args:
        before: how many rows of the file are before them.

    Raises:
        BatchError: a value that its column can't hold; names the row.
    """
    try:
        return layout.batch(lines, count)
    except BatchError as error:
        failure = error
    for number, line in enumerate(lines[:-1].split(b"\n"), before + 1):
        try:
            layout.batch(line + b"\n", 1)
        except BatchError as error:  # who wrote the file is elsewhere: its cures are for the one who writes
            fact = str(error).removeprefix(f"stream '{layout.stream}': ").partition("\n")[0].rstrip(".")
            raise BatchError(f"row {number:,}: {fact}. Correct the file, or the schema of its stream.") from None
    raise failure


def _parts(
    raw: IO[bytes], format: str, schema: Mapping[str, Any] | None, layout: ColumnarLayout | None, report: Report
) -> Iterator[tuple[pa.RecordBatch, int, bool]]:
    """Batches of a page's size with the columns that the schema knows, how many rows are before each, and whether it is
    what burler would write."""
    check, row = FileCheck(schema or {}), 0
    known = [] if layout is None else layout.arrow_schema.names

    def choose(found: pa.Schema) -> list[str]:
        check.fit(found.names, known, report)
        check.check_below(found, report)
        return [name for name in found.names if name in known]

    for batch in record_batches(raw, format, None if layout is None else choose):
        for name in check.filled:
            check.check_nulls(name, batch.column(name), row)
        is_own = layout is not None and batch.schema.equals(layout.arrow_schema)
        step = max(1, min(_MOST_ROWS, _PAGE_BYTES * batch.num_rows // max(1, batch.nbytes)))
        for start in range(0, batch.num_rows, step):
            yield batch.slice(start, step), row + start, is_own
        row += batch.num_rows


def _is_finite(array: pa.Array) -> bool:
    """Whether all floating numbers in a column are some that JSON has, at any depth; False also for a map of which
    only rows beside the array's have others."""
    kind = array.type
    if pa.types.is_floating(kind):
        return pc.all(pc.is_finite(array)).as_py() is not False
    if pa.types.is_struct(kind):
        return all(map(_is_finite, array.flatten()))
    if pa.types.is_list(kind):
        return _is_finite(array.flatten())
    if pa.types.is_map(kind):
        return _is_finite(array.items)
    return True
