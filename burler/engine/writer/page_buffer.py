"""One stream's pages on their way to the sink: as lines, or as columns where they can be."""

from __future__ import annotations

import datetime as dt
import functools
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from burler.errors import BatchError
from burler.pipeline.repeats import Page, Repeats
from burler.records.shape.shaper import FIRST_ROWS, SPILL_BYTES, Output, Shaper
from burler.singer.messages import ArrowPage, Records, Vouched, record_prefix_suffix
from burler.sinks import Form, Sink

if TYPE_CHECKING:
    from burler.records.columns.from_rows import RowColumns


@dataclass(slots=True)
class RowCounts:
    """What came of the rows of one stream in one round.

    Attributes:
        rows, bytes: that are out, as far as they are known. pages: that are, or lots of a source's files.
        repeated: that were out already, as they are. left_out: by the stream's post_transform function. beyond: behind
            the limit.
        without_value: of the bookmark's key. newer: beyond the bookmark that the stream began with.
    """

    rows: int = 0
    bytes: int = 0
    pages: int = 0
    repeated: int = 0
    left_out: int = 0
    beyond: int = 0
    without_value: int = 0
    newer: int = 0


class PageBuffer(Output):
    """Takes the rows of one page at a time, between ``begin`` and ``end``, and hands them to the sink.

    Args:
        stream: the name in its messages.
        form: how the sink wants the rows.
        shaper: shapes them.

    Attributes:
        counts: of the round that it is in.
        repeats: rows that are out already are left out, once a page is whole.
        takes_columns: the page may be given as columns.
    """

    def __init__(self, stream: str, sink: Sink, *, form: Form, shaper: Shaper) -> None:
        super().__init__(bytearray(), b"", b"\n")
        self._stream, self._sink, self._shaper = stream, sink, shaper
        self.form = form
        self.repeats: Repeats | None = None
        self.counts = RowCounts()

    def begin_part(self, moment: dt.datetime, version: int | None, repeats: Repeats | None) -> None:
        """Pages follow that have all this in common."""
        self._moment, self._version, self.repeats = moment, version, repeats
        self.takes_columns = self.form == "columns" and repeats is None
        # Columns are made of whole pages: each call costs the same, however few rows it has.
        self.most_bytes = SPILL_BYTES if repeats is None and self.form != "columns" else sys.maxsize
        if self.form == "messages":
            self.prefix, self.suffix = record_prefix_suffix(self._stream, moment, version)

    def begin(self) -> None:
        """A page follows."""
        del self.buffer[:]
        self.count, self.vouched, self._rows = 0, None, FIRST_ROWS

    def end(self, keys: list[Any]) -> None:
        """The page is whole.

        Args:
            keys: the values of the replication key, one for each row.
        """
        if self.repeats is not None and self.count:
            page = self.repeats.compare(Page(bytes(self.buffer), self.prefix, self.suffix))
            self.repeats.note(page, keys)
            if page.repeats:
                self.count -= len(page.repeats)
                self.counts.repeated += len(page.repeats)
                self.buffer[:] = page.without_repeats()
        self.flush()
        self.vouched = None

    @functools.cached_property
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
            made = self._from_rows.of_structs(rows)
            if made is not None:
                self.give(made)
                return len(rows)
        return super().append(rows, further, vouched)

    def give_rows(self, rows: list[dict[str, Any]]) -> list[Any] | None:
        """Hand on rows that need no shaping as columns; the values of the key. None: they must be shaped."""
        made = self._from_rows.of_dicts(rows) if self.takes_columns else None
        if made is None:
            return None
        self.give(made[0])
        return made[1]

    @functools.cached_property
    def _from_rows(self) -> RowColumns:
        from burler.records.columns.from_rows import RowColumns

        shaper = self._shaper
        return RowColumns(shaper.schema, self.columns, key=shaper.key, checks=shaper.rules.check_constraints)

    def give(self, columns: Any) -> None:
        """Hand on a RecordBatch or Table, behind the lines of rows before it."""
        self.flush()
        self._sink.write(ArrowPage(self._stream, columns, self._moment, self._version))
        self._count(columns.num_rows, columns.nbytes)

    def pass_on(self, lines: memoryview, count: int) -> None:
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

    def pass_files(self, files: Any) -> None:
        """Hand on files that the source has made."""
        config = self._sink.config
        dialect = "both" if config is None else config.dialect
        for message in files.batches(self._stream, time_extracted=self._moment, version=self._version, dialect=dialect):
            self._sink.write(message)
        self._count(files.count, files.size_bytes)

    def _write(self, lines: Any, count: int) -> None:
        bare, vouched = self.form != "messages", self.vouched
        try:
            self._sink.write(Records(self._stream, lines, count, self._moment, self._version, bare, vouched))
        except BatchError as error:
            self._count(error.rows_taken, 0)
            raise
        self._count(count, len(lines))

    def _count(self, rows: int, size: int) -> None:
        self.counts.rows += rows
        self.counts.bytes += size
        self.counts.pages += 1
