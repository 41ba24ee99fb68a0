"""Parquet and Arrow files, whoever made them, as record batches or as JSON lines: one part in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any

from burler.errors import BatchError
from burler.extras import require
from burler.files.record_batches import NotWhole, OtherFormat, record_batches

if TYPE_CHECKING:
    import pyarrow as pa

_PAGE_BYTES = 1 << 20
_MOST_ROWS = 4096


def pages(raw: IO[bytes], format: str, schema: Mapping[str, Any] | None = None) -> Iterator[tuple[bytes, int]]:
    """Yield the rows as (complete JSON lines, count), about a megabyte at a time.

    Integers and decimals digit for digit, date-times in RFC 3339 and UTC (timestamps without a zone are taken as
    UTC), bytes as base64. Where the schema has an object, an array or a union without text and the column is text,
    the text is JSON and comes out as such; where anything goes, text that reads as JSON does.

    Args:
        raw: the file; one that can't seek is copied into a temporary file first.
        format: "parquet" or "arrow".
        schema: the stream's JSON Schema; every field that it declares is in every row, null where the file has none.

    Raises:
        BatchError: no such file, a broken one, or a value that JSON has no form for. Errors of ``raw`` go through.
    """
    from burler.records.columns.to_json import RowText

    text = RowText(schema)
    for batch in batches(raw, format):
        step = max(1, min(_MOST_ROWS, _PAGE_BYTES * batch.num_rows // max(1, batch.nbytes)))
        for start in range(0, batch.num_rows, step):
            part = batch.slice(start, step)
            yield text.lines(part), part.num_rows


def batches(raw: IO[bytes], format: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows as record batches, in the columns of the file.

    Raises:
        BatchError: see ``pages``.
    """
    require("pyarrow", extra="batch", needed_for=f"reading a BATCH of format '{format}'")
    try:
        yield from record_batches(raw, format)
    except NotWhole as error:
        cure = ". The message must say what its files are" if isinstance(error, OtherFormat) else ""
        raise BatchError(f"{error}{cure}") from None
