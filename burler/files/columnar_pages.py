"""Parquet and Arrow files as pages of a stream: the columns that are wanted, by name."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from burler.errors import FileError
from burler.extras import require
from burler.files.csv_pages import Table
from burler.formats import FormatError
from burler.storage.location import shown

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger("burler")


def columnar_batches(
    source: Any,
    format: str,
    file: str,
    table: Table,
    warned: set[str],
    on_schema: Callable[[pa.Schema], Any] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of a Parquet or Arrow file.

    Timestamps that know no zone are taken as UTC, with one warning a column.

    Args:
        source: an open file that can seek.
        format: "parquet" or "arrow".
        file: its name, for errors.
        warned: columns that were warned about; more are added.
        on_schema: is given the file's schema before the first row.

    Raises:
        FileError: another format, a broken file, columns of which none is the stream's.
    """
    require("pyarrow", extra="files", needed_for=f"burler.files ({format.capitalize()})")
    from burler.formats.columnar import record_batches

    naive: set[str] = set()

    def choose(schema: pa.Schema) -> list[str]:
        _refuse_twice(schema.names, file)
        table.check(schema.names, file)
        if on_schema is not None:
            on_schema(schema)
        wanted = table.wanted(schema.names)
        naive.update(_naive(schema, wanted, warned, file))
        return wanted

    try:
        for batch in record_batches(source, format, choose):
            yield _zoned(batch, naive)
    except FormatError as error:
        cure = "\n  Say what it is with format=." if error.kind == "format" else ""
        raise FileError(f"file '{file}': {shown(str(error))}{cure}") from None
    except FileNotFoundError:
        raise
    except OSError as error:
        raise FileError(f"file '{file}' can't be read: {shown(str(error))[:200]}.") from None


def _refuse_twice(names: list[str], file: str) -> None:
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise FileError(f"file '{file}': two columns are named {twice!r}, and a row has one field of a name.")


def _naive(schema: pa.Schema, wanted: list[str], warned: set[str], file: str) -> list[str]:
    """The columns with timestamps that have no zone."""
    found = [name for name in wanted if _in_utc(schema.field(name).type) != schema.field(name).type]
    for name in found:
        if name not in warned:
            warned.add(name)
            logger.warning("file '%s': the timestamps of column '%s' have no zone; they are taken as UTC.", file, name)
    return found


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


def _zoned(batch: pa.RecordBatch, naive: set[str]) -> pa.RecordBatch:
    import pyarrow as pa

    if not naive:
        return batch
    names = batch.schema.names
    columns = [
        column.cast(_in_utc(column.type)) if name in naive else column
        for name, column in zip(names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=names)
