"""Parquet files as Arrow batches: the columns that are wanted, by name."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from burler.errors import FileError
from burler.extras import require
from burler.files.csv_pages import Table
from burler.files.names import shown

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger("burler")

_ROWS = 10_000
_BUFFER_BYTES = 1 << 20  # else whole columns of a row group are held


def parquet_batches(
    source: Any, file: str, table: Table, warned: set[str], on_footer: Callable[[pa.Schema], Any] | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a Parquet file.

    Timestamps that know no zone are taken as UTC, with one warning a column (specs 8).

    Args:
        source: an open file that can seek.
        file: its name, for errors.
        warned: columns that were warned about; more are added.
        on_footer: is given the file's schema before the first row.

    Raises:
        FileError: no Parquet, a broken file, columns of which none is the stream's.
    """
    pyarrow = require("pyarrow", extra="files", needed_for="burler.files (Parquet)")
    parquet = require("pyarrow.parquet", extra="files", needed_for="burler.files (Parquet)")
    try:
        opened = parquet.ParquetFile(
            source, pre_buffer=False, buffer_size=_BUFFER_BYTES, page_checksum_verification=True
        )
        names = opened.schema_arrow.names
        _refuse_twice(names, file)
        table.check(names, file)
        if on_footer is not None:
            on_footer(opened.schema_arrow)
        wanted = table.wanted(names)
        casts = _zoned(opened.schema_arrow, wanted, warned, file)
        for batch in opened.iter_batches(batch_size=_ROWS, columns=wanted):
            yield _cast(
                batch.select(wanted), casts
            )  # a path "a.b" in a struct is read, too, where a column is named so
    except (pyarrow.ArrowException, UnicodeError) as error:
        raise FileError(f"file '{file}' is no Parquet that can be read: {shown(str(error))[:200]}.") from None
    except OSError as error:  # pyarrow's word for a page that is broken
        if isinstance(error, FileNotFoundError):
            raise
        raise FileError(f"file '{file}' can't be read: {shown(str(error))[:200]}.") from None


def _refuse_twice(names: list[str], file: str) -> None:
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise FileError(f"file '{file}': two columns are named {twice!r}, and a row has one field of a name.")


def _zoned(schema: pa.Schema, wanted: list[str], warned: set[str], file: str) -> dict[str, pa.DataType]:
    """Columns whose type changes, with the new one."""
    casts = {}
    for name in wanted:
        kind = schema.field(name).type
        zoned = _in_utc(kind)
        if zoned != kind:
            casts[name] = zoned
            if name not in warned:
                warned.add(name)
                logger.warning(
                    "file '%s': the timestamps of column '%s' have no zone; they are taken as UTC.", file, name
                )
    return casts


def _in_utc(kind: pa.DataType) -> pa.DataType:
    """The type with UTC in each timestamp that has no zone, at every depth."""
    import pyarrow as pa

    if pa.types.is_timestamp(kind) and kind.tz is None:
        return pa.timestamp(kind.unit, "UTC")
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_in_utc(field.type)) for field in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        make = pa.list_ if pa.types.is_list(kind) else pa.large_list
        return make(kind.value_field.with_type(_in_utc(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, kind.item_field.with_type(_in_utc(kind.item_type)))
    return kind


def _cast(batch: pa.RecordBatch, casts: dict[str, pa.DataType]) -> pa.RecordBatch:
    import pyarrow as pa

    if not casts:
        return batch
    names = batch.schema.names
    columns = [
        column.cast(casts[name]) if name in casts else column for name, column in zip(names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=names)
