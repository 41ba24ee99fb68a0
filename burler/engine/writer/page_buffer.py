"""One stream's pages on their way to the sink: as lines, or as columns where they can be."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from burler.errors import BatchError
from burler.pipeline.repeats import Page, Repeats
from burler.records.shape.lines import FIRST_ROWS, SPILL_BYTES, Output
from burler.singer.messages import ArrowPage, Message, Records, Vouched, record_prefix_suffix
from burler.sinks import Form, Sink

if TYPE_CHECKING:
    from burler.records.columns.from_structs import RowsDirect


class PageBuffer(Output):
    """Takes the rows of one page at a time, between ``begin`` and ``end``, and hands them to the sink.

    Args:
        stream: the name in its messages.
        form: how the sink wants the rows.
        shape: the schema by which they were shaped.
        wrote: told how many bytes went out.

    Attributes:
        rows, bytes: that are out.
    """

    def __init__(
        self, stream: str, sink: Sink, *, form: Form, shape: Mapping[str, Any], wrote: Callable[[int], None]
    ) -> None:
        super().__init__(bytearray(), b"", b"\n")
        self._stream, self._sink, self._shape, self._wrote = stream, sink, shape, wrote
        self.form = form
        self._repeats: Repeats | None = None
        self._direct: RowsDirect | None = None
        self.reset()

    def reset(self) -> None:
        """Count anew."""
        self.rows = self.bytes = 0

    def begin(self, moment: dt.datetime, version: int | None, repeats: Repeats | None = None) -> None:
        """A page follows.

        Args:
            repeats: rows that are out already are left out, once the page is whole.
        """
        del self.buffer[:]
        self.count, self.vouched, self._rows = 0, None, FIRST_ROWS
        self._moment, self._version, self._repeats = moment, version, repeats
        # Columns are made of whole pages: each call costs the same, however few rows it has.
        holds = repeats is not None or self.form == "columns"
        self.most_bytes = sys.maxsize if holds else SPILL_BYTES
        if self.form == "messages":
            self.prefix, self.suffix = record_prefix_suffix(self._stream, moment, version)

    def end(self, keys: list[Any]) -> int:
        """The page is whole; gives how many of its rows were out already.

        Args:
            keys: the values of the replication key, one for each row.
        """
        repeated = 0
        if self._repeats is not None and self.count:
            page = self._repeats.compare(Page(bytes(self.buffer), self.prefix, self.suffix))
            self._repeats.note(page, keys)
            if page.repeats:
                repeated = len(page.repeats)
                self.count -= repeated
                self.buffer[:] = page.without_repeats()
        self.flush()
        self.vouched = self._repeats = None
        return repeated

    @property
    def takes_columns(self) -> bool:
        """Whether the page may be given as columns."""
        return self.form == "columns" and self._repeats is None

    @property
    def columns(self) -> Any:
        """The columns of the files that the rows go into, as an Arrow schema."""
        return self._sink.columns(self._stream)

    def append(
        self,
        rows: list[Any],
        further: Mapping[int, Mapping[str, Any]] | None = None,
        vouched: Vouched | None = None,
    ) -> int:
        """See ``Output.append``."""
        if self.takes_columns and not further and rows and isinstance(rows[0], msgspec.Struct):
            if self._direct is None:
                from burler.records.columns.from_structs import RowsDirect

                self._direct = RowsDirect(self._shape, self.columns)
            made = self._direct.batch(rows)
            if made is not None:
                self.give(made)
                return len(rows)
        return super().append(rows, further, vouched)

    def give(self, columns: Any) -> None:
        """Hand on a RecordBatch or Table, behind the lines of rows before it."""
        self.flush()
        self._sink.write(ArrowPage(self._stream, columns, self._moment, self._version))
        self._count(columns.num_rows, columns.nbytes)

    def pass_on(self, lines: bytes, count: int) -> None:
        """Take lines that were made elsewhere."""
        if self.most_bytes == sys.maxsize:
            super().pass_on(lines, count)
        else:
            self.flush()
            self.vouched = None
            self._write(lines, count)

    def flush(self) -> None:
        """Hand on what is in the buffer."""
        if self.count:
            self._write(self.buffer, self.count)
            del self.buffer[:]
            self.count = 0

    def pass_files(self, messages: Iterable[Message], *, rows: int, size: int) -> None:
        """Hand on files that the source has made."""
        for message in messages:
            self._sink.write(message)
        self._count(rows, size)

    def _write(self, lines: Any, count: int) -> None:
        bare, vouched = self.form != "messages", self.vouched
        try:
            self._sink.write(Records(self._stream, lines, count, self._moment, self._version, bare, vouched))
        except BatchError as error:
            self._count(error.rows_taken, 0)
            raise
        self._count(count, len(lines))

    def _count(self, rows: int, size: int) -> None:
        self.rows += rows
        self.bytes += size
        self._wrote(size)
