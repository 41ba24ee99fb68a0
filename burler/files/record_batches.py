"""Parquet and Arrow files, whoever made them, as record batches: one part in memory at a time. The one reader of both.

What pyarrow takes without a word is found here: a stream of Arrow that breaks off between two batches, values that
lie outside of their file, and INT96 timestamps that nanoseconds have no room for.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

_PAGE_BYTES = 1 << 20
_MOST_ROWS = 10_000
_BUFFER_BYTES = 1 << 20  # else whole columns of a row group are held
_COPY_BYTES = 16 << 20
_GZIP = b"\x1f\x8b"
_END = b"\xff\xff\xff\xff\0\0\0\0"
_LAST_US = (1 << 63) // 1000
_FIRST_US = -_LAST_US

Choose = Callable[["pa.Schema"], Sequence[str]]
"""Says which columns of a file's schema are read, in their order."""


class NotWhole(Exception):
    """A file is not of its format, damaged or broken off: the fact, without the file's name."""


class OtherFormat(NotWhole):
    """A file is of another format, as its first bytes show."""


def record_batches(raw: IO[bytes], format: str, choose: Choose | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file. pyarrow must be there.

    Args:
        raw: the file; one that can't seek is copied into a temporary file first. It stays open.
        format: "parquet" or "arrow".
        choose: is called once, before the first row; None: all columns of the file.

    Raises:
        NotWhole: no such file, or a broken one. Errors of ``raw`` and of ``choose`` go through.
    """
    file = raw if raw.seekable() else _copy(raw)
    source = _Source(file)
    try:
        yield from _guarded(source, format, choose)
    finally:
        source.detach()
        if file is not raw:
            file.close()


def _guarded(source: _Source, format: str, choose: Choose | None) -> Iterator[pa.RecordBatch]:
    """pyarrow's errors as ours; those of the file beneath as they were."""
    import pyarrow as pa

    _check_head(source, format)
    found = _parquet(source, choose) if format == "parquet" else _arrow(source, choose)
    looked_at: pa.Schema | None = None
    while True:
        try:
            batch = next(found, None)
            if batch is not None and batch.schema is not looked_at:
                looked_at = batch.schema
                _read_names(list(looked_at))
        except (pa.ArrowException, OSError, UnicodeError, ValueError, KeyError) as error:
            if source.error is not None:
                raise source.error from None
            raise NotWhole(f"it is damaged or broken off, and no whole {_name(format)} file{_why(error)}") from None
        if batch is None:
            return
        yield batch


def _why(error: Exception) -> str:
    """What pyarrow says of a file, up to where it may begin to name values."""
    fact = " ".join(re.split(r"[\d'\"]", str(error), maxsplit=1)[0].split()).rstrip(" :(-")
    return f": {fact[:200]}" if fact else ""


def _read_names(fields: list[pa.Field]) -> None:
    """Raise ``UnicodeDecodeError`` now if a name is no text, at any depth."""
    for field in fields:
        str(field.name)
        _read_names([field.type.field(i) for i in range(field.type.num_fields)])


def _check_head(source: _Source, format: str) -> None:
    head = source.read(8)
    source.seek(0)
    if not head:
        raise NotWhole(f"it is empty, which no {_name(format)} file is: at least its columns stand in it")
    if head[:4] == b"PAR1" if format == "parquet" else head[:6] == b"ARROW1" or head[:4] == b"\xff\xff\xff\xff":
        return
    if head[:2] == _GZIP:
        found = "packed with gzip as a whole"
    elif head[:4] == b"PAR1" or head[:6] == b"ARROW1":
        found = "a Parquet file" if head[:4] == b"PAR1" else "an Arrow file"
    elif head[:1] == b"{":
        found = "JSON"
    else:
        found = "something else"
    raise OtherFormat(f"it is no {_name(format)} file but {found}")


def _parquet(source: _Source, choose: Choose | None) -> Iterator[pa.RecordBatch]:
    file = _opened(source, "us")  # nanoseconds have no room for the year 9999
    names = None if choose is None else list(choose(file.schema_arrow))
    said = file.metadata
    fine = _opened(source, "ns", said) if _has_int96(said.schema) else None
    for group in range(said.num_row_groups):
        part = said.row_group(group)
        size = max(1, min(_MOST_ROWS, _PAGE_BYTES * part.num_rows // max(1, part.total_byte_size)))
        batches = _columns(file, group, size, names)
        if fine is None:
            yield from batches
            continue
        timed = [one.name for one in fine.schema_arrow if one.type != file.schema_arrow.field(one.name).type]
        for batch, in_ns in zip(batches, _columns(fine, group, size, timed), strict=True):
            yield from _with_digits(batch, in_ns)


def _opened(source: _Source, unit: str, footer: Any = None) -> Any:
    """``unit``: of INT96 timestamps, which count nanoseconds in years of any number."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    return pq.ParquetFile(
        pa.PythonFile(source, mode="r"),
        metadata=footer,
        pre_buffer=False,
        buffer_size=_BUFFER_BYTES,
        page_checksum_verification=True,
        coerce_int96_timestamp_unit=unit,
    )


def _has_int96(schema: Any) -> bool:
    return any(schema.column(i).physical_type == "INT96" for i in range(len(schema)))


def _columns(file: Any, group: int, size: int, names: list[str] | None) -> Iterator[pa.RecordBatch]:
    for batch in file.iter_batches(batch_size=size, row_groups=[group], columns=names):
        yield batch if names is None else batch.select(names)  # "a.b" finds the field b of a column a as well


def _with_digits(batch: pa.RecordBatch, in_ns: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """A batch with the columns of the other one where nanoseconds have room for all their years. Rows of which some
    need the years and others the digits are parted."""
    import pyarrow as pa

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
    import pyarrow as pa

    try:
        column.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def _loses_digits(column: pa.Array, fine: pa.Array) -> bool:
    """Whether microseconds cut a time that nanoseconds have room for; True also where it can't be seen at once."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_timestamp(column.type):
        return True
    micros, nanos = column.cast(pa.int64()), fine.cast(pa.int64())
    has_room = pc.and_(pc.greater(micros, _FIRST_US), pc.less(micros, _LAST_US))
    whole = pc.multiply(pc.if_else(has_room, micros, 0), 1000)
    return bool(pc.any(pc.and_(has_room, pc.not_equal(whole, nanos))).as_py())


def _arrow(source: _Source, choose: Choose | None) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    file = pa.PythonFile(source, mode="r")
    if source.read(6) == b"ARROW1":
        opened = pa.ipc.open_file(file)
        batches: Iterator[pa.RecordBatch] = map(opened.get_batch, range(opened.num_record_batches))
    else:
        source.seek(0)
        opened = pa.ipc.open_stream(file)
        batches = _whole_stream(opened, source)
    names = None if choose is None else list(choose(opened.schema))
    for batch in batches:
        batch.validate(full=True)  # Arrow files are memory as it is: what a damaged one says is looked at first
        yield batch if names is None else batch.select(names)


def _whole_stream(opened: Iterator[pa.RecordBatch], source: _Source) -> Iterator[pa.RecordBatch]:
    """The batches of a stream. pyarrow takes one that breaks off between two of them for a whole one; all that write
    such streams end them with a mark."""
    yield from opened
    size = source.seek(0, 2)
    source.seek(max(0, size - len(_END)))
    if source.read(len(_END)) != _END:
        raise NotWhole("it is broken off: an Arrow stream ends with a mark of its own, and this one does not")


def _name(format: str) -> str:
    return {"parquet": "Parquet", "arrow": "Arrow"}.get(format, format)


def _copy(raw: IO[bytes]) -> IO[bytes]:
    """A temporary copy that can seek."""
    copy: Any = tempfile.SpooledTemporaryFile(_COPY_BYTES)  # noqa: SIM115  # the caller closes it
    try:
        shutil.copyfileobj(raw, copy, _BUFFER_BYTES)
        copy.seek(0)
    except BaseException:
        copy.close()
        raise
    return copy  # type: ignore[no-any-return]


class _Source:
    """A file for pyarrow, which remembers the error that it raised. pyarrow may close this; the file stays open."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file: IO[bytes] | None = file
        self.error: BaseException | None = None
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        return self._do(lambda file: file.read(size))  # type: ignore[no-any-return]

    def seek(self, place: int, whence: int = 0) -> int:
        return self._do(lambda file: file.seek(place, whence))  # type: ignore[no-any-return]

    def tell(self) -> int:
        return self._do(lambda file: file.tell())  # type: ignore[no-any-return]

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def flush(self) -> None:
        """Nothing is written here."""

    def close(self) -> None:
        self.closed = True

    def detach(self) -> None:
        """The file is its owner's again, whatever pyarrow still holds."""
        self._file = None

    def _do(self, act: Any) -> Any:
        if self._file is None:
            raise ValueError("the file is closed")
        try:
            return act(self._file)
        except BaseException as error:
            self.error = error
            raise
