"""Rows of Parquet and Arrow files as lines or as columns, held against the stream's schema: other programs' files
change theirs from one to the next, and targets take what the SCHEMA says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc

from burler.batch.decoders import Page
from burler.batch.demands import Demands, listed
from burler.batch.encoders import columnar_layout
from burler.errors import BatchError
from burler.formats import FormatError
from burler.formats.columnar import record_batches
from burler.records.columns.from_json import ColumnarLayout
from burler.records.columns.to_json import RowText

_PAGE_BYTES = 1 << 20
_MOST_ROWS = 4096

Report = Callable[[str], object]
"""Takes a sentence: columns that the schema does not know and that are left out, as those of csv are, and columns that
are not there."""


def pages(raw: IO[bytes], format: str, schema: Mapping[str, Any] | None, report: Report) -> Iterator[Page]:
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
        BatchError: no such file, a broken one, a value that JSON has no form for, a value or a file of another schema.
            Errors of ``raw`` go through.
    """
    text, row = RowText(schema), 0
    layout = None if schema is None else columnar_layout(schema, "")
    for batch, is_own in _parts(raw, format, schema, layout, report):
        lines = text.lines(batch)
        if layout is not None and not is_own:
            as_own(layout, lines, batch.num_rows, row)
        yield Page(lines, batch.num_rows)
        row += batch.num_rows


def batches(raw: IO[bytes], format: str, schema: Mapping[str, Any], report: Report) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file in the columns that burler's own files have: as they are where they have them, else by
    way of their text, which is exact. The checks are those of ``pages``.

    Raises:
        BatchError: see ``pages``.
    """
    layout, text, row = columnar_layout(schema, ""), RowText(schema), 0
    for batch, is_own in _parts(raw, format, schema, layout, report):
        if is_own and _are_finite(batch):
            yield batch.replace_schema_metadata(None)
        else:
            yield as_own(layout, text.lines(batch), batch.num_rows, row)
        row += batch.num_rows
    for remark in layout.remarks():
        report(remark)


def as_own(layout: ColumnarLayout, lines: bytes, count: int, before: int) -> pa.RecordBatch:
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
) -> Iterator[tuple[pa.RecordBatch, bool]]:
    """Batches of a page's size with the columns that the schema knows, and whether they are what burler would write."""
    demands, row = Demands(schema or {}), 0
    for batch in _batches(raw, format):
        is_own = layout is not None and batch.schema.equals(layout.arrow_schema)
        known = batch if layout is None or is_own else _known(batch, demands, layout.arrow_schema.names, report)
        _refuse_null(known, demands, row)
        step = max(1, min(_MOST_ROWS, _PAGE_BYTES * known.num_rows // max(1, known.nbytes)))
        for start in range(0, known.num_rows, step):
            yield known.slice(start, step), is_own
        row += batch.num_rows


def _batches(raw: IO[bytes], format: str) -> Iterator[pa.RecordBatch]:
    try:
        yield from record_batches(raw, format)
    except FormatError as error:
        cure = ". The message must say what its files are" if error.kind == "format" else ""
        raise BatchError(f"{error.fact}{cure}") from None


def _known(batch: pa.RecordBatch, demands: Demands, names: list[str], report: Report) -> pa.RecordBatch:
    """The columns that the schema knows."""
    found = batch.schema.names
    left_out = sorted(set(found) - set(names))
    if left_out and len(left_out) == len(set(found)):
        raise BatchError(
            f"none of its columns is a field of the stream ({listed(names)}). Is it a file of another stream?"
        )
    demands.check_columns(found, report)
    demands.check_below(batch.schema, report)
    if not left_out:
        return batch
    report(f"columns that the schema does not know are left out: {listed(left_out)}")
    return batch.select([number for number, name in enumerate(found) if name in names])


def _refuse_null(batch: pa.RecordBatch, demands: Demands, before: int) -> None:
    """``before``: rows of the file before the batch."""
    for name in demands.filled:
        column = batch.column(name)
        if column.null_count:
            raise demands.error_of_null(name, before + column.is_null().index(True).as_py() + 1)


def _are_finite(batch: pa.RecordBatch) -> bool:
    return all(map(_is_finite, batch.columns))


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
