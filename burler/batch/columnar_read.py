"""Parquet and Arrow files, whoever made them, as record batches or as JSON lines: one part in memory at a time."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any

from burler.errors import BatchError
from burler.extras import require

if TYPE_CHECKING:
    import pyarrow as pa

_PAGE_BYTES = 1 << 20
_MOST_ROWS = 4096
_BUFFER_BYTES = 1 << 20  # else whole columns of a row group are held
_COPY_BYTES = 16 << 20
_GZIP = b"\x1f\x8b"
_END = b"\xff\xff\xff\xff\0\0\0\0"


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
    from burler.batch.columnar_text import RowText

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
    file = raw if raw.seekable() else _copy(raw)
    source = _Source(file)
    try:
        yield from _guarded(source, format)
    finally:
        source.detach()
        if file is not raw:
            file.close()


def _guarded(source: _Source, format: str) -> Iterator[pa.RecordBatch]:
    """pyarrow's errors as ours; those of the file beneath as they were."""
    import pyarrow as pa

    _check_head(source, format)
    found = _parquet(source) if format == "parquet" else _arrow(source)
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
            fact = " ".join(str(error).split())[:200]
            raise BatchError(f"it is damaged or broken off, and no whole {_name(format)} file: {fact}") from None
        if batch is None:
            return
        yield batch


def _read_names(fields: list[pa.Field]) -> None:
    """Raise ``UnicodeDecodeError`` now if a name is no text, at any depth."""
    for field in fields:
        str(field.name)
        _read_names([field.type.field(i) for i in range(field.type.num_fields)])


def _check_head(source: _Source, format: str) -> None:
    head = source.read(8)
    source.seek(0)
    if not head:
        raise BatchError(f"it is empty, which no {_name(format)} file is: at least its columns stand in it")
    if head[:4] == b"PAR1" if format == "parquet" else head[:6] == b"ARROW1" or head[:4] == b"\xff\xff\xff\xff":
        return
    if head[:2] == _GZIP:
        found = "packed with gzip as a whole"
    elif head[:4] == b"PAR1" or head[:6] == b"ARROW1":
        found = "a Parquet file" if head[:4] == b"PAR1" else "an Arrow file"
    elif head[:1] == b"{":
        found = "JSON"
    else:
        found = f"something that begins with {head!r}"
    raise BatchError(f"it is no {_name(format)} file but {found}. The message must say what its files are")


def _parquet(source: _Source) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(
        pa.PythonFile(source, mode="r"),
        pre_buffer=False,
        buffer_size=_BUFFER_BYTES,
        page_checksum_verification=True,
        coerce_int96_timestamp_unit="us",  # nanoseconds have no room for the year 9999
    )
    said = file.metadata
    for group in range(said.num_row_groups):
        part = said.row_group(group)
        size = max(1, min(_MOST_ROWS, _PAGE_BYTES * part.num_rows // max(1, part.total_byte_size)))
        yield from file.iter_batches(batch_size=size, row_groups=[group])


def _arrow(source: _Source) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    file = pa.PythonFile(source, mode="r")
    if source.read(6) == b"ARROW1":
        opened = pa.ipc.open_file(file)
        for i in range(opened.num_record_batches):
            yield _checked(opened.get_batch(i))
        return
    source.seek(0)
    for batch in pa.ipc.open_stream(file):
        yield _checked(batch)
    _check_end(source)


def _check_end(source: _Source) -> None:
    """pyarrow takes a stream that breaks off between two batches for a whole one. All that write such streams end them
    with a mark."""
    size = source.seek(0, 2)
    source.seek(max(0, size - len(_END)))
    if source.read(len(_END)) != _END:
        raise BatchError("it is broken off: an Arrow stream ends with a mark of its own, and this one does not")


def _checked(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Arrow files are memory as it is: what a damaged one says must be looked at before anything follows it."""
    batch.validate(full=True)
    return batch


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
