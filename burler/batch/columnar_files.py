"""Record batches into the bytes of a Parquet or Arrow file: groups of a bounded size, never the file as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from burler.batch.encoders import Write
from burler.batch_config import Encoding

if TYPE_CHECKING:
    import pyarrow as pa

GROUP_ROWS = 100_000
GROUP_BYTES = {"parquet": 8 * 1024 * 1024, "arrow": 2 * 1024 * 1024}
"""A group of rows is written once it holds so many, or columns of so many bytes: the memory of a run hangs on it."""
_SMALL_ROWS, _SMALL_ONES = 500, 100
_PIECE_BYTES = 256 * 1024
_SAMPLE_ROWS = 10_000
_HUGE_BYTES = 1024 * 1024
_HUGE_GROUPS = 4
_REPEATS = 4  # how often each value of a sample comes, at least, where a dictionary pays


class Groups:
    """Gathers batches to groups and writes those.

    Args:
        schema: of every batch.
        write: takes the file's bytes.
    """

    def __init__(self, encoding: Encoding, schema: pa.Schema, write: Write) -> None:
        self._encoding = encoding
        self._group_bytes = GROUP_BYTES[encoding.format]
        self._schema = schema
        self._sink = _Sink(write)
        self._file: Any = None
        self._batches: list[pa.RecordBatch] = []
        self._small: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take a batch. One that is larger than a group is cut; small ones are put together: each has its cost."""
        if batch.num_rows < _SMALL_ROWS:
            self._small.append(batch)
            if len(self._small) >= _SMALL_ONES:
                self._put_together()
        else:
            self._put_together()
            self._batches.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= GROUP_ROWS or self._bytes >= self._group_bytes:
            self._write_out()

    def finish(self) -> None:
        """Write the rest, and what ends the file."""
        if self._rows:
            self._write_out()
        self._opened(None).close()
        self._sink.end()
        self._sink.check()
        _release()

    def abandon(self) -> None:
        """Nothing more is written."""
        self._sink.write_to = None
        self._batches, self._small = [], []
        if self._file is not None:
            self._file.close()
        _release()

    def _put_together(self) -> None:
        import pyarrow as pa

        if self._small:
            self._batches += pa.Table.from_batches(self._small, self._schema).combine_chunks().to_batches()
            self._small = []

    def _write_out(self) -> None:
        import pyarrow as pa

        self._put_together()
        table = pa.Table.from_batches(self._batches, self._schema)
        rows = max(1, min(GROUP_ROWS, self._group_bytes * self._rows // max(1, self._bytes)))
        is_huge = self._bytes > _HUGE_GROUPS * self._group_bytes
        self._batches, self._rows, self._bytes = [], 0, 0
        file = self._opened(table)
        for start in range(0, table.num_rows, rows):
            part = table.slice(start, rows)
            if self._encoding.format == "parquet":
                file.write_table(part, row_group_size=rows)
            else:
                file.write_table(part.combine_chunks())
            self._sink.check()
        del table, part
        if is_huge:
            _release()

    def _opened(self, first: pa.Table | None) -> Any:
        """The file's writer, made when the first rows are there to judge by."""
        import pyarrow as pa

        if self._file is None:
            out = pa.PythonFile(self._sink, mode="w")
            parquet = self._encoding.format == "parquet"
            self._file = self._parquet(out, first) if parquet else self._arrow(out)
        return self._file

    def _parquet(self, out: Any, first: pa.Table | None) -> Any:
        import pyarrow.parquet as pq

        codec = self._encoding.codec
        return pq.ParquetWriter(
            out,
            self._schema,
            compression=codec or "none",
            compression_level=self._encoding.compression_options.get("level") if codec else None,
            use_dictionary=repeating(first) if first is not None else False,
            write_statistics=measured(first) if first is not None else True,
            write_page_checksum=True,
        )

    def _arrow(self, out: Any) -> Any:
        import pyarrow as pa

        codec, level = self._encoding.codec, self._encoding.compression_options.get("level")
        packed = None if codec is None else pa.Codec(codec, level)
        return pa.ipc.new_file(out, self._schema, options=pa.ipc.IpcWriteOptions(compression=packed))


class _Sink:
    """What pyarrow writes into: small writes are put together, and an error of the store comes out as it was."""

    def __init__(self, write: Write) -> None:
        self.write_to: Write | None = write
        self._parts: list[bytes] = []
        self._held = 0
        self._error: BaseException | None = None
        self.closed = False

    def write(self, data: Any) -> int:
        if self.write_to is not None:
            self._parts.append(bytes(data))
            self._held += len(data)
            if self._held >= _PIECE_BYTES:
                self.end()
        return len(data)

    def end(self) -> None:
        """Hand on what is held. An error is kept for ``check``: between it and here is C++."""
        if self.write_to is None or not self._parts:
            return
        data, self._parts, self._held = b"".join(self._parts), [], 0
        try:
            self.write_to(data)
        except BaseException as error:
            self._error, self.write_to = error, None

    def check(self) -> None:
        """Raise what went wrong meanwhile."""
        if self._error is not None:
            raise self._error

    def flush(self) -> None:
        """Nothing is due before the end."""

    def close(self) -> None:
        self.closed = True


def repeating(table: pa.Table) -> list[str] | bool:
    """The columns (Parquet's names of leaves) in which few values come again and again, as far as the first rows
    tell: for those, a dictionary makes a file smaller; for others it costs time alone."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = []
    for field, column in zip(table.schema, table.slice(0, _SAMPLE_ROWS).columns, strict=True):
        for path, array in _leaves(field.name, column):
            if (
                not pa.types.is_boolean(array.type)
                and not _is_huge(array)
                and pc.count_distinct(array).as_py() * _REPEATS <= len(array)
            ):
                found.append(path)
    return found or False


def measured(table: pa.Table) -> list[str] | bool:
    """The columns (see ``repeating``) of which a file says the least and the greatest value: all but those of huge
    texts. Those would be copied six times over, and are then too long for the file to name them."""
    leaves = [
        (path, _is_huge(array))
        for field, column in zip(table.schema, table.slice(0, _SAMPLE_ROWS).columns, strict=True)
        for path, array in _leaves(field.name, column)
    ]
    return [path for path, huge in leaves if not huge] if any(huge for _, huge in leaves) else True


def _is_huge(array: Any) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_string(array.type) or pa.types.is_binary(array.type)):
        return False
    return bool((pc.max(pc.binary_length(array)).as_py() or 0) > _HUGE_BYTES)


def _leaves(path: str, column: Any) -> Iterator[tuple[str, Any]]:
    """The leaves of a column that are not in lists, by Parquet's name."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_struct(column.type):
        for place, field in enumerate(column.type):
            yield from _leaves(f"{path}.{field.name}", pc.struct_field(column, [place]))
    elif not pa.types.is_nested(column.type):
        yield path, column


def _release() -> None:
    """Give back what Arrow keeps of the memory of the largest group: once a file, since its pages cost to get again,
    and after a huge group."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
