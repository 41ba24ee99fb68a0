"""One stream out of what a tap prints: its RECORD and BATCH messages as columns that were declared before the run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from burler.errors import BadRecordError, BatchError, StreamError
from burler.singer.lines import LineCut, Message, bad, exact, numbered
from burler.spark.source.declared import Declared, layout_of, unknown_fields
from burler.words import counted, some

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_ROWS = 10_000
_MOST_BYTES = 4 << 20
_CURE = "The columns are those of the tap's discovery; give a corrected catalog (option 'catalog')"


class StreamRows:
    """Takes a tap's output block by block, and gives the rows of one stream.

    Args:
        declared: the columns.
        drop_unknown: fields that came with the run's SCHEMA alone are left out; else they are an error.
        warn: gets one sentence for what was left out.

    Attributes:
        rows: how many were given. state: the value of the last STATE, None before there is one. schema_seen: whether
            the stream's SCHEMA has come.
    """

    def __init__(self, declared: Declared, *, drop_unknown: bool, warn: Callable[[str], object]) -> None:
        self._declared = declared
        self._drop_unknown = drop_unknown
        self._warn = warn
        self._layout = layout_of(declared)
        self._cut = LineCut()
        self._lines = 0
        self._records: list[Any] = []
        self._size = 0
        self.rows = 0
        self.state: dict[str, Any] | None = None
        self.schema_seen = False

    @property
    def seen(self) -> int:
        """How many rows have come, those that are not given yet among them."""
        return self.rows + len(self._records)

    def take(self, block: bytes) -> Iterator[pa.RecordBatch]:
        """Yield the rows that are whole by now, some thousands at a time.

        Raises:
            MessageError: a line that is no message. StreamError: a row, batch file or schema that does not fit.
        """
        if whole := self._cut.take(block):
            yield from self._whole(whole)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Yield the rest: the tap has ended well."""
        last = self._cut.rest()
        if last.strip():
            yield from self._whole(last + b"\n")
        yield from self._given()
        for remark in self._remarks():
            self._warn(f"stream '{self._declared.stream}': {remark}")

    def _whole(self, whole: bytes) -> Iterator[pa.RecordBatch]:
        first, self._lines = self._lines + 1, self._lines + whole.count(b"\n")
        names, records = self._declared.names, self._records
        for number, message, line, _extras in numbered(first, whole):
            if message.type == "RECORD" and message.stream in names and message.record is not UNSET:
                records.append(message.record)
                self._size += len(line)
                if len(records) >= _MOST_ROWS or self._size >= _MOST_BYTES:
                    yield from self._given()
            else:
                yield from self._other(number, message, line)

    def _other(self, number: int, message: Message, line: bytes) -> Iterator[pa.RecordBatch]:
        """A message that is no ordinary row of the stream."""
        kind = message.type.upper()
        if kind == "STATE":
            value = exact(number, line, message.value)
            self.state = value if isinstance(value, dict) else None
        elif message.stream in self._declared.names:
            if kind == "RECORD":
                if message.record is UNSET:
                    raise bad(number, line, "a RECORD without 'record'")
                self._records.append(message.record)
            elif kind == "SCHEMA":
                yield from self._given()
                self._check_schema(number, line, message)
            elif kind == "BATCH":
                yield from self._given()
                yield from self._batch_files(number, line)

    def _check_schema(self, number: int, line: bytes, message: Message) -> None:
        schema = exact(number, line, message.schema)
        if not isinstance(schema, dict):
            raise bad(number, line, "the 'schema' of a SCHEMA must be a JSON object")
        self.schema_seen = True
        unknown = unknown_fields(self._declared, schema)
        if unknown and not self._drop_unknown:
            stream = self._declared.stream
            raise StreamError(
                stream,
                f"stream '{stream}': the tap's SCHEMA has fields that its discovery had not: {some(unknown)}. "
                "They have no columns and would be lost: load the DataFrame anew, give a catalog that has them (option "
                "'catalog'), or leave them out (option unknown_fields=drop)",
            )

    def _batch_files(self, number: int, line: bytes) -> Iterator[pa.RecordBatch]:
        from burler.batch.readers import read

        stream = self._declared.stream
        reading = read(line, self._declared.schema, line=number, warn=self._warn)
        try:
            if self._declared.is_plain:
                batches = reading.arrow()
            else:
                files = range(len(reading.batch.manifest))
                batches = chain.from_iterable(reading.file_columns(number, self._layout) for number in files)
            for batch in batches:
                self.rows += batch.num_rows
                yield batch
        except BatchError as error:
            fact = str(error).replace("\n", " ")
            raise StreamError(stream, fact if f"'{stream}'" in fact else f"stream '{stream}': {fact}") from None

    def _given(self) -> Iterator[pa.RecordBatch]:
        """The rows that have been gathered."""
        if not self._records:
            return
        lines = b"\n".join(self._records) + b"\n"
        try:
            made = self._layout.batch(lines, len(self._records))
        except BatchError as error:
            raise self._placed(error) from None
        self.rows += len(self._records)
        self._records.clear()
        self._size = 0
        yield made

    def _placed(self, error: BatchError) -> BadRecordError:
        """The error with its place: which row, by number and key."""
        stream, place = self._declared.stream, ""
        for number, record in enumerate(self._records, self.rows + 1):
            try:
                self._layout.batches(bytes(record) + b"\n", 1)
            except BatchError as first:
                error, place = first, f"row {number}{self._key_of(bytes(record))}: "
                break
        fact = str(error).partition("\n")[0].removeprefix(f"stream '{stream}': ").rstrip(".")
        return BadRecordError(stream, f"stream '{stream}': {place}{fact}. {_CURE}")

    def _key_of(self, record: bytes) -> str:
        try:
            row = json.loads(record, parse_float=Decimal)
            shown = ", ".join(f"{key}={row[key]!s:.60}" for key in self._declared.keys if key in row)
        except (ValueError, RecursionError, TypeError):
            return ""
        return f" ({shown})" if shown else ""

    def _remarks(self) -> list[str]:
        """What was lost on the way: fields that no schema has, digits that no column has. What was deselected is not
        lost."""
        report = self._layout.report
        dropped = [
            f"field '{path}' is in no schema and has no column: left out of {counted(count, 'row')}"
            for path, count in report.dropped.items()
            if ".".join(part for part in path.split(".") if part not in ("[]", "{}")) not in self._declared.known
        ]
        return dropped + [
            f"field '{path}': {counted(count, 'time')} cut to microseconds, all that the column holds"
            for path, count in report.truncated.items()
        ]
