"""Files of columns, Parquet and Arrow, whoever made them: read as record batches, one part in memory at a time; written
in groups of a bounded size, never the file as a whole. The one reader and the one writer of both.

What pyarrow takes without a word is found here and in ``parquet`` and ``arrow_ipc``: a stream of Arrow that breaks off
between two batches, values that lie outside of their file, and INT96 timestamps that nanoseconds have no room for.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

import pyarrow as pa

from burler.formats import FormatError, arrow_ipc, parquet
from burler.formats.names import HEAD_BYTES, kind_of, shown_kind
from burler.formats.source import Source

_BUFFER_BYTES = 1 << 20
_COPY_BYTES = 16 << 20
_GROUP_ROWS = 100_000
_GROUP_BYTES = {"parquet": 8 * 1024 * 1024, "arrow": 2 * 1024 * 1024}
"""A group of rows is written once it holds so many, or columns of so many bytes: the memory of a run hangs on it."""
_SMALL_ROWS, _SMALL_ONES = 500, 100
_PIECE_BYTES = 256 * 1024
_HUGE_GROUPS = 4
_MODULES: dict[str, Any] = {"parquet": parquet, "arrow": arrow_ipc}

Choose = Callable[[pa.Schema], Sequence[str]]
"""Says which columns of a file's schema are read, in their order."""
Write = Callable[[bytes], object]
"""Takes the bytes of a file, in order. They may be kept, and are never changed afterwards."""


# ---- reading ---------------------------------------------------------------------------------------------------------


def record_batches(raw: IO[bytes], format: str, choose: Choose | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file.

    Args:
        raw: the file; one that can't seek is copied into a temporary file first. It stays open.
        format: "parquet" or "arrow".
        choose: is called once, before the first row; None: all columns of the file.

    Raises:
        FormatError: another kind of file (``kind`` "format"), or a broken one. Errors of ``raw`` and of ``choose`` go
            through.
    """
    file = raw if raw.seekable() else _copy(raw)
    source = Source(file)
    try:
        check_head(source.read(HEAD_BYTES), format)
        source.seek(0)
        found = _MODULES[format].batches(source, choose)
        looked_at: pa.Schema | None = None
        while True:
            with _translated(source, format):
                batch = next(found, None)
                if batch is not None and batch.schema is not looked_at:
                    looked_at = batch.schema
                    _read_names(list(looked_at))
            if batch is None:
                return
            yield batch
    finally:
        source.release()
        if file is not raw:
            file.close()


@dataclass(frozen=True, slots=True)
class Footer:
    """What a file says of itself: ``rows`` and the ``codec`` of the first column of Parquet alone."""

    schema: pa.Schema
    rows: int | None = None
    codec: str | None = None


def read_footer(raw: IO[bytes], format: str) -> Footer:
    """What a file that can seek says of itself, without its rows.

    Raises:
        FormatError: see ``record_batches``.
    """
    source = Source(raw)
    try:
        check_head(source.read(HEAD_BYTES), format)
        source.seek(0)
        with _translated(source, format):
            schema, rows, codec = _MODULES[format].footer(source)
            _read_names(list(schema))
        return Footer(schema, rows, codec)
    finally:
        source.release()


def check_head(head: bytes, format: str) -> None:
    """Hold the first bytes of a file against its format.

    Raises:
        FormatError: another kind of file, or an empty one.
    """
    if not head:
        raise FormatError(
            f"it is empty, which no {shown_kind(format)} file is: at least its columns stand in it", kind="empty"
        )
    kind = kind_of(head)
    if kind == format or (format == "arrow" and head.startswith(arrow_ipc.CONTINUES)):
        return
    if kind in _MODULES:
        found = f"{'an' if kind == 'arrow' else 'a'} {shown_kind(kind)} file"
    elif kind is not None:
        found = shown_kind(kind) if kind == "zip" else f"packed with {kind} as a whole"
    else:
        found = "JSON" if head[:1] == b"{" else "something else"
    raise FormatError(f"it is no {shown_kind(format)} file but {found}", kind="format")


@contextlib.contextmanager
def _translated(source: Source, format: str) -> Iterator[None]:
    """pyarrow's errors as ours; those of the file beneath as they were."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeError, ValueError, KeyError) as error:
        if source.error is not None:
            raise source.error from None
        # What pyarrow says, up to where it may begin to name values.
        said = " ".join(re.split(r"[\d'\"]", str(error), maxsplit=1)[0].split()).rstrip(" :(-.")
        why = f": {said[:200]}" if said else ""
        raise FormatError(
            f"it is damaged or broken off, and no whole {shown_kind(format)} file{why}", kind="damaged"
        ) from None


def _read_names(fields: list[pa.Field]) -> None:
    """Raise ``UnicodeDecodeError`` now if a name is no text, at any depth."""
    for field in fields:
        str(field.name)
        _read_names([field.type.field(i) for i in range(field.type.num_fields)])


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


# ---- writing ---------------------------------------------------------------------------------------------------------


class Writer:
    """Gathers batches to groups and writes those.

    Args:
        format: "parquet" or "arrow".
        schema: of every batch.
        write: takes the file's bytes.
        codec: the compression inside of the file; ``level``: of it, None for its own.
    """

    def __init__(
        self, format: str, schema: pa.Schema, write: Write, *, codec: str | None = None, level: int | None = None
    ) -> None:
        self._format, self._codec, self._level = format, codec, level
        self._group_bytes = _GROUP_BYTES[format]
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
        if self._rows >= _GROUP_ROWS or self._bytes >= self._group_bytes:
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
        if self._small:
            self._batches += pa.Table.from_batches(self._small, self._schema).combine_chunks().to_batches()
            self._small = []

    def _write_out(self) -> None:
        self._put_together()
        table = pa.Table.from_batches(self._batches, self._schema)
        rows = max(1, min(_GROUP_ROWS, self._group_bytes * self._rows // max(1, self._bytes)))
        is_huge = self._bytes > _HUGE_GROUPS * self._group_bytes
        self._batches, self._rows, self._bytes = [], 0, 0
        file = self._opened(table)
        for start in range(0, table.num_rows, rows):
            part = table.slice(start, rows)
            _MODULES[self._format].write_group(file, part)
            self._sink.check()
        del table, part
        if is_huge:
            _release()

    def _opened(self, first: pa.Table | None) -> Any:
        """The file's writer, made when the first rows are there to judge by."""
        if self._file is None:
            out = pa.PythonFile(self._sink, mode="w")
            self._file = _MODULES[self._format].open_writer(out, self._schema, self._codec, self._level, first)
        return self._file


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


def _release() -> None:
    """Give back what Arrow keeps of the memory of the largest group: once a file, since its pages cost to get again,
    and after a huge group."""
    pa.default_memory_pool().release_unused()
