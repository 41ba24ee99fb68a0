"""Files of a lake as Arrow, in the columns that batch files have.

A file that is *clean* has no value that a plain JSON reader with the right types gets wrong: its blocks go
through Arrow's own reader as they stand. What that reader has no type for, and every other file, goes through the exact
way of batch files, which gives the same or an error.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.json as reader

from burler.errors import BatchError, DataError, LakeError
from burler.lake.head import Head
from burler.lake.reading.choice import Window
from burler.lake.reading.cut import cut_of
from burler.lake.reading.lines import FileLines, Wanted
from burler.lake.snapshot import DataFile
from burler.records.arrow.kernels import Unsure
from burler.records.columns.from_json import ColumnarLayout, days, layout_of
from burler.records.columns.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    NULL,
    STRING,
    TIMESTAMP,
    DecimalOf,
    FieldType,
    ListOf,
    StructOf,
)
from burler.singer.messages import encode

_log = logging.getLogger("burler.lake")
_READ_BY_ARROW = frozenset((BIGINT, BOOLEAN, DOUBLE, NULL, STRING, TIMESTAMP))
_CURE = "Correct the schema or the value in the tap. pages() and rows() give any value as it is."


class _Line(msgspec.Struct, gc=False):
    record: msgspec.Raw


_decode_lines = msgspec.json.Decoder(_Line).decode_lines


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
            if file.clean and table.quick is not None:
                for lines, count in opened.lines(Wanted(times, activations=False)):
                    made = table.quickly(lines)
                    yield table.exactly(_bare(lines), count) if made is None else made
            else:
                cut = None if self._columns is None else cut_of((), self._columns)
                for lines, count in opened.lines(Wanted(times, cut, activations=False, bare=True)):
                    yield table.exactly(lines, count)
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
    """The columns of one SCHEMA."""

    def __init__(self, schema: Mapping[str, Any], stream: str) -> None:
        self.stream = stream
        try:
            self._layout = layout_of(_plain(schema), stream)
        except DataError as error:
            raise LakeError(f"{error}.\npages() and rows() need no columns.") from None
        self.quick = _quick_schema(self._layout)

    def quickly(self, lines: bytes) -> pa.RecordBatch | None:
        """RECORD lines through Arrow's own reader; None where it can't."""
        options = reader.ParseOptions(explicit_schema=self.quick, unexpected_field_behavior="ignore")
        try:
            table = reader.read_json(
                pa.BufferReader(lines),
                parse_options=options,
                read_options=reader.ReadOptions(use_threads=False, block_size=len(lines) + 1),
            )
            record = table.column("record").combine_chunks()
            arrays = [record.field(at) for at in range(record.type.num_fields)]
            made = [
                days(one) if kind == DATE else one
                for (_, kind), one in zip(self._layout.record.fields, arrays, strict=True)
            ]
            if record.null_count:
                return None
            return pa.RecordBatch.from_arrays(made, schema=self._layout.arrow_schema)
        except (Unsure, pa.ArrowException, ValueError, TypeError):
            return None

    def exactly(self, lines: bytes, count: int) -> pa.RecordBatch:
        """Bare rows, one a line."""
        return self._layout.batch(lines, count)

    def remarks(self) -> list[str]:
        """What was left out or cut since this was asked last."""
        return [one.partition(". Declare")[0] for one in self._layout.remarks()]


def _plain(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema with floats in place of exact Decimals: who makes columns of it looks for those."""
    try:
        plain: dict[str, Any] = msgspec.json.decode(encode(schema))
    except msgspec.DecodeError:  # a number beyond floats
        return schema
    return plain


def _quick_schema(layout: ColumnarLayout) -> pa.Schema | None:
    """What Arrow's reader is told of a RECORD line; None where a column has a type that it does not read exactly."""
    fields = []
    for (name, kind), given in zip(layout.record.fields, layout.arrow_schema, strict=True):
        if kind != DATE and not _is_quick(kind):
            return None
        fields.append(pa.field(name, pa.string() if kind == DATE else given.type))
    return pa.schema([pa.field("record", pa.struct(fields))])


def _is_quick(kind: FieldType) -> bool:
    match kind:
        case ListOf(item):
            return _is_quick(item)
        case StructOf(fields):
            return bool(fields) and all(_is_quick(inner) for _, inner in fields)
        case DecimalOf():
            return True
    return kind in _READ_BY_ARROW


def _bare(lines: bytes) -> bytes:
    return b"\n".join([line.record for line in _decode_lines(lines)]) + b"\n"
