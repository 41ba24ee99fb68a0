"""Parquet files on pyarrow: INT96 timestamps in years of any number, and dictionaries and statistics where they pay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_PAGE_BYTES = 1 << 20
_MOST_ROWS = 10_000
_BUFFER_BYTES = 1 << 20  # else whole columns of a row group are held
_LAST_US = (1 << 63) // 1000
_SAMPLE_ROWS = 10_000
_HUGE_BYTES = 1024 * 1024
_REPEATS = 4  # how often each value of a sample comes, at least, where a dictionary pays


# ---- reading ---------------------------------------------------------------------------------------------------------


def open_file(source: Any, unit: str = "us", footer: Any = None) -> pq.ParquetFile:
    """A file, or the path of one. ``unit``: of INT96 timestamps, which count nanoseconds in years of any number;
    nanoseconds of 64 bits have no room for the year 9999."""
    return pq.ParquetFile(
        source,
        metadata=footer,
        pre_buffer=False,
        buffer_size=_BUFFER_BYTES,
        page_checksum_verification=True,
        coerce_int96_timestamp_unit=unit,
    )


def read_table(paths: Sequence[Any]) -> pa.Table | None:
    """Files of a disk as one table with the columns of all; None without a file."""
    parts = [open_file(path).read() for path in paths]
    return pa.concat_tables(parts, promote_options="default") if parts else None


def batches(source: Any, choose: Callable[[pa.Schema], Sequence[str]] | None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file, about a megabyte at a time."""
    file = open_file(pa.PythonFile(source, mode="r"))
    names = None if choose is None else list(choose(file.schema_arrow))
    said = file.metadata
    leaves = map(said.schema.column, range(len(said.schema)))
    has_int96 = any(leaf.physical_type == "INT96" for leaf in leaves)
    fine = open_file(pa.PythonFile(source, mode="r"), "ns", said) if has_int96 else None
    for group in range(said.num_row_groups):
        part = said.row_group(group)
        size = max(1, min(_MOST_ROWS, _PAGE_BYTES * part.num_rows // max(1, part.total_byte_size)))
        found = _columns(file, group, size, names)
        if fine is None:
            yield from found
            continue
        timed = [one.name for one in fine.schema_arrow if one.type != file.schema_arrow.field(one.name).type]
        for batch, in_ns in zip(found, _columns(fine, group, size, timed), strict=True):
            yield from _with_digits(batch, in_ns)


def footer(source: Any) -> tuple[pa.Schema, int, str | None]:
    """A file's schema, how many rows it has, and the compression of its first column."""
    said = pq.read_metadata(pa.PythonFile(source, mode="r"))
    codec = str(said.row_group(0).column(0).compression).lower() if said.num_row_groups and said.num_columns else None
    return said.schema.to_arrow_schema(), said.num_rows, codec


def _columns(file: Any, group: int, size: int, names: list[str] | None) -> Iterator[pa.RecordBatch]:
    for batch in file.iter_batches(batch_size=size, row_groups=[group], columns=names):
        yield batch if names is None else batch.select(names)  # "a.b" finds the field b of a column a as well


def _with_digits(batch: pa.RecordBatch, in_ns: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """A batch with the columns of the other one where nanoseconds have room for all their years. Rows of which some
    need the years and others the digits are parted."""
    columns = list(batch.columns)
    for name, fine in zip(in_ns.schema.names, in_ns.columns, strict=True):
        at = batch.schema.get_field_index(name)
        if at < 0:
            continue
        if _has_room(fine.type, columns[at]):
            columns[at] = fine
        elif batch.num_rows > 1 and _loses_digits(columns[at], fine):
            half = batch.num_rows // 2
            yield from _with_digits(batch.slice(0, half), in_ns.slice(0, half))
            yield from _with_digits(batch.slice(half), in_ns.slice(half))
            return
    yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _has_room(kind: pa.DataType, column: pa.Array) -> bool:
    try:
        column.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def _loses_digits(column: pa.Array, fine: pa.Array) -> bool:
    """Whether microseconds cut a time that nanoseconds have room for; True also where it can't be seen at once."""
    if not pa.types.is_timestamp(column.type):
        return True
    micros, nanos = column.cast(pa.int64()), fine.cast(pa.int64())
    has_room = pc.and_(pc.greater(micros, -_LAST_US), pc.less(micros, _LAST_US))
    whole = pc.multiply(pc.if_else(has_room, micros, 0), 1000)
    return bool(pc.any(pc.and_(has_room, pc.not_equal(whole, nanos))).as_py())


# ---- writing ---------------------------------------------------------------------------------------------------------


def open_writer(out: Any, schema: pa.Schema, codec: str | None, level: int | None, first: pa.Table | None) -> Any:
    """Begin a file. ``first``: rows to judge by."""
    return pq.ParquetWriter(
        out,
        schema,
        compression=codec or "none",
        compression_level=level if codec else None,
        use_dictionary=_repeating(first) if first is not None else False,
        write_statistics=_measured(first) if first is not None else True,
        write_page_checksum=True,
    )


def write_group(file: Any, rows: pa.Table) -> None:
    """Write rows as one group."""
    file.write_table(rows, row_group_size=max(1, rows.num_rows))


def _repeating(table: pa.Table) -> list[str] | bool:
    """The columns (Parquet's names of leaves) in which few values come again and again, as far as the first rows
    tell: for those, a dictionary makes a file smaller; for others it costs time alone."""
    found = [
        path
        for path, array in _sampled(table)
        if not pa.types.is_boolean(array.type) and not _is_huge(array) and len(array.unique()) * _REPEATS <= len(array)
    ]
    return found or False


def _measured(table: pa.Table) -> list[str] | bool:
    """The columns (see ``_repeating``) of which a file says the least and the greatest value: all but those of huge
    texts. Those would be copied six times over, and are then too long for the file to name them."""
    leaves = [(path, _is_huge(array)) for path, array in _sampled(table)]
    return [path for path, huge in leaves if not huge] if any(huge for _, huge in leaves) else True


def _sampled(table: pa.Table) -> Iterator[tuple[str, Any]]:
    """The leaves of the first rows."""
    for field, column in zip(table.schema, table.slice(0, _SAMPLE_ROWS).columns, strict=True):
        yield from _leaves(field.name, column)


def _is_huge(array: Any) -> bool:
    if not (pa.types.is_string(array.type) or pa.types.is_binary(array.type)):
        return False
    return bool((pc.max(pc.binary_length(array)).as_py() or 0) > _HUGE_BYTES)


def _leaves(path: str, column: Any) -> Iterator[tuple[str, Any]]:
    """The leaves of a column that are not in lists, by Parquet's name."""
    if pa.types.is_struct(column.type):
        for place, field in enumerate(column.type):
            yield from _leaves(f"{path}.{field.name}", pc.struct_field(column, [place]))
    elif not pa.types.is_nested(column.type):
        yield path, column
