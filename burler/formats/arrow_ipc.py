"""Arrow's own files, and its streams, on pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.ipc

from burler.formats import FormatError

CONTINUES = b"\xff\xff\xff\xff"
"""What each part of a stream begins with."""
_FILE = b"ARROW1"
_END = CONTINUES + b"\0\0\0\0"


def batches(source: Any, choose: Callable[[pa.Schema], Sequence[str]] | None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file or of a stream.

    Raises:
        FormatError: a stream that is broken off. pyarrow's own errors: it is damaged.
    """
    opened = _opened(source)
    names = None if choose is None else list(choose(opened.schema))
    found = (
        opened
        if isinstance(opened, pa.RecordBatchStreamReader)
        else map(opened.get_batch, range(opened.num_record_batches))
    )
    for batch in found:
        batch.validate(full=True)  # Arrow files are memory as it is: what a damaged one says is looked at first
        yield batch if names is None else batch.select(names)
    if isinstance(opened, pa.RecordBatchStreamReader):
        _check_end(source)


def _check_end(source: Any) -> None:
    """pyarrow takes a stream that breaks off between two batches for a whole one; all that write such streams end them
    with a mark."""
    size = source.seek(0, 2)
    source.seek(max(0, size - len(_END)))
    if source.read(len(_END)) != _END:
        raise FormatError(
            "it is broken off: an Arrow stream ends with a mark of its own, and this one does not", kind="damaged"
        )


def footer(source: Any) -> tuple[pa.Schema, None, None]:
    """A file's schema. How many rows it has nobody knows."""
    return _opened(source).schema, None, None


def _opened(source: Any) -> Any:
    is_file = source.read(len(_FILE)) == _FILE
    source.seek(0)
    return (pa.ipc.open_file if is_file else pa.ipc.open_stream)(pa.PythonFile(source, mode="r"))


def open_writer(out: Any, schema: pa.Schema, codec: str | None, level: int | None, _first: pa.Table | None) -> Any:
    """Begin a file."""
    packed = None if codec is None else pa.Codec(codec, level)
    return pa.ipc.new_file(out, schema, options=pa.ipc.IpcWriteOptions(compression=packed))


def write_group(file: Any, rows: pa.Table) -> None:
    """Write rows as one batch."""
    file.write_table(rows.combine_chunks())
