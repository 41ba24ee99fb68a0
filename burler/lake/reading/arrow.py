"""Files of a lake as Arrow, in the columns that batch files have.

RECORD lines of a file that is *clean* are read as they stand; rows of every other file are cut out first. Both go the
exact way of batch files.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import pyarrow as pa

from burler.errors import BatchError, DataError, LakeError
from burler.lake.datafile import Head
from burler.lake.reading.choice import Window
from burler.lake.reading.lines import FileLines, Wanted, cut_of
from burler.lake.snapshot import DataFile
from burler.records.columns.from_json import ColumnarLayout, layout_of
from burler.singer.messages import encode

_log = logging.getLogger("burler.lake")
_CURE = "Correct the schema or the value in the tap. pages() and rows() give any value as it is."


class Batches:
    """Makes batches of files. ``columns``: these fields alone; None for all that the schema declares."""

    def __init__(self, columns: tuple[str, ...] | None) -> None:
        self._columns = columns
        self._tables: dict[bytes, _Table] = {}

    def of(self, file: DataFile, opened: FileLines, times: Window) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file that were extracted within ``times``.

        Raises:
            LakeError: the file is damaged, its schema has no columns, or a column can't hold a value exactly.
        """
        table = self._table(opened.head)
        try:
            if file.clean:
                for lines, count in opened.lines(Wanted(times, activations=False)):
                    yield table.clean.batch(lines, count)
            else:
                cut = None if self._columns is None else cut_of((), self._columns)
                for lines, count in opened.lines(Wanted(times, cut, activations=False, bare=True)):
                    yield table.bare.batch(lines, count)
        except BatchError as error:
            raise LakeError(f"{file.path}: {str(error).partition(chr(10))[0]}.\n{_CURE}") from None

    def tell(self) -> None:
        """Say what was left out or cut, once for each schema."""
        for table in self._tables.values():
            for remark in table.remarks():
                _log.warning("stream '%s': %s", table.stream, remark)

    def _table(self, head: Head) -> _Table:
        made = self._tables.get(head.line)
        if made is None:
            made = self._tables[head.line] = _Table(self._narrowed(head), head.message.stream)
        return made

    def _narrowed(self, head: Head) -> Mapping[str, Any]:
        schema = head.message.schema
        if self._columns is None:
            return schema
        declared = schema.get("properties") or {}
        kept = {name: declared[name] for name in self._columns if name in declared}
        if not kept:
            raise LakeError(
                f"stream '{head.message.stream}': a schema version that is read has none of the columns "
                f"{', '.join(self._columns)}. Leave it out: schema='v2..', or another that has them."
            )
        return {**schema, "properties": kept}


class _Table:
    """The columns of one SCHEMA, made of RECORD lines of clean files, or of bare rows."""

    def __init__(self, schema: Mapping[str, Any], stream: str) -> None:
        self.stream = stream
        try:
            self.bare = layout_of(_plain(schema), stream)
        except DataError as error:
            raise LakeError(f"{error}.\npages() and rows() need no columns.") from None
        self.clean = ColumnarLayout(self.bare.record, stream, within="record", skips=True)

    def remarks(self) -> list[str]:
        """What was left out or cut since this was asked last."""
        return [one.partition(". Declare")[0] for one in (*self.bare.remarks(), *self.clean.remarks())]


def _plain(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema with floats in place of exact Decimals: who makes columns of it looks for those."""
    try:
        plain: dict[str, Any] = msgspec.json.decode(encode(schema))
    except msgspec.DecodeError:  # a number beyond floats
        return schema
    return plain
