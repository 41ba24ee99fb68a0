"""Rows of Parquet and Arrow files as lines, held against the stream's schema: other programs' files change theirs from
one to the next, and targets take what the SCHEMA says (specs 5, 12)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any

from burler.batch import columnar_read
from burler.batch.decoders import Page
from burler.errors import BatchError

if TYPE_CHECKING:
    import pyarrow as pa

_PAGE_BYTES = 1 << 20
_MOST_ROWS = 4096
_SHOWN = 5


def pages(
    raw: IO[bytes], format: str, schema: Mapping[str, Any] | None, report: Callable[[str], object]
) -> Iterator[Page]:
    """Yield the rows of a file. burler's own files have the columns of the schema, and are not looked into; of others
    each value must be one that the schema's column holds. It goes on as exact as it stands there.

    Args:
        report: takes a sentence on columns that the schema does not know: they are left out, as those of csv are.

    Raises:
        BatchError: see ``columnar_read.pages``; a value, or a file, of another schema.
    """
    if schema is None:
        for lines, count in columnar_read.pages(raw, format):
            yield Page(lines, count)
        return
    from burler.batch.columnar import ColumnarLayout, record_batch
    from burler.batch.columnar_text import RowText

    layout, text = ColumnarLayout(schema, ""), RowText(schema)
    for batch in columnar_read.batches(raw, format):
        is_own = batch.schema.equals(layout.arrow_schema)
        known = batch if is_own else _known(batch, layout.arrow_schema.names, report)
        step = max(1, min(_MOST_ROWS, _PAGE_BYTES * known.num_rows // max(1, known.nbytes)))
        for start in range(0, known.num_rows, step):
            part = known.slice(start, step)
            lines = text.lines(part)
            if not is_own:
                record_batch(layout, lines, part.num_rows)
            yield Page(lines, part.num_rows)


def _known(batch: pa.RecordBatch, names: list[str], report: Callable[[str], object]) -> pa.RecordBatch:
    """The columns that the schema knows."""
    found = batch.schema.names
    left_out = sorted(set(found) - set(names))
    if not left_out:
        return batch
    shown = ", ".join(f"'{name:.60}'" for name in left_out[:_SHOWN]) + (", ..." if len(left_out) > _SHOWN else "")
    if len(left_out) == len(set(found)):
        raise BatchError(f"none of its columns is a field of the stream: {shown}. Is it a file of another stream?")
    report(f"columns that the schema does not know are left out: {shown}")
    return batch.select([number for number, name in enumerate(found) if name in names])
