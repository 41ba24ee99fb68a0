"""CSV files as Arrow batches of text, then of the types that the schema asks for. Flat memory for files of any size."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from burler.errors import FileError
from burler.extras import require
from burler.files.csv_header import NAMELESS, Utf8, not_in, read_header
from burler.files.csv_options import Csv
from burler.files.csv_quotes import Quotes
from burler.files.text_columns import narrowing
from burler.log_settings import log_settings, near

if TYPE_CHECKING:
    import pyarrow as pa

_GROWTH = 8
_DELIMITERS = ",;\t|"


@dataclass(frozen=True, slots=True)
class Table:
    """How the columns of a stream's files are told from others.

    Attributes:
        schema: of what is emitted: the fields that are wanted.
        known: all fields that the stream has, also those that are not selected; empty if nobody knows.
        delimiter_option, header_option: what errors advise, of the function that the author has called.
    """

    schema: Mapping[str, Any]
    known: frozenset[str] = frozenset()
    delimiter_option: str = "csv=burler.files.Csv(delimiter={!r})"
    header_option: str = "csv=burler.files.Csv(header=(...))"

    def wanted(self, names: list[str]) -> list[str]:
        """The columns to read: those that are selected, and those that nobody knows, for the warning about them."""
        emitted = self.schema.get("properties") or {}
        return [name for name in names if name in emitted or name not in self.known]

    def check(self, names: list[str], file: str, delimiter: str = "") -> None:
        """Refuse a file none of whose columns the stream has, or whose columns were not told apart.

        Raises:
            FileError: so.
        """
        fields = set(self.schema.get("properties") or {}) | self.known
        if fields & set(names):
            return
        other = next((mark for mark in _DELIMITERS if len(names) == 1 and delimiter and mark in names[0]), None)
        if other is not None:
            raise FileError(
                f"file '{file}' has one column, named {names[0][:60]!r}: its delimiter is not {delimiter!r}.\n"
                f"  {self.delimiter_option.format(other)} tells them apart."
            )
        if fields:
            # Without a header they are a row.
            there = f" Columns: {', '.join(repr(name[:40]) for name in names[:6])}." if log_settings.values else ""
            cure = f"Has the file a header? {self.header_option} names columns." if delimiter else ""
            raise FileError(f"file '{file}': none of its columns is a field of the stream.{there}\n  {cure}".rstrip())


def csv_batches(
    opened: Callable[[], Any], file: str, csv: Csv, table: Table, *, max_line_bytes: int
) -> Iterator[pa.RecordBatch]:
    """The rows of a CSV file, in batches.

    Args:
        opened: opens the file: an object with ``read(size)`` and ``close()``. Called again if a row turns out to be
            longer than a block.
        file: its name, for errors.

    Raises:
        FileError: no header, a row with more or fewer fields, a quote that never ends, text of another encoding, a row
            longer than ``max_line_bytes``; with the row's number, counted from 1 with the header.
    """
    narrow = narrowing(table.schema, csv)
    given, block = 0, csv.block_bytes
    while True:
        source = opened()
        try:
            for batch in _attempt(source, file, csv, table, block, skip=given):
                given += batch.num_rows
                yield from narrow(batch)
            return
        except _TooLongRow:
            if block >= max_line_bytes:
                raise FileError(
                    f"file '{file}': the row behind row {given} is longer than {max_line_bytes:,} bytes: a quote that "
                    "never ends?\n  If it is right, raise max_line_bytes; if quotes are letters like others: "
                    "csv=Csv(quotechar=None)."
                ) from None
            block = min(block * _GROWTH, max_line_bytes)
        finally:
            source.close()


class _TooLongRow(Exception):
    """A row does not fit into a block."""


def _attempt(source: Any, file: str, csv: Csv, table: Table, block: int, *, skip: int) -> Iterator[pa.RecordBatch]:
    """One reading of the file with blocks of a size; ``skip`` rows were given before."""
    pyarrow = require("pyarrow", extra="files", needed_for="burler.files (CSV)")

    text = Utf8(source, csv.encoding)
    quotes = Quotes(csv, file)
    header = read_header(text, csv, file, quotes)
    if header is None:
        return
    names, rows_before = header
    table.check(names, file, csv.delimiter)
    if not text.more():
        return
    wanted = [name for name in table.wanted(names) if not name.startswith(NAMELESS)]
    try:
        reader = _open(text, csv, names, wanted, block)
        while (batch := _next(reader)) is not None:
            if skip < batch.num_rows:
                yield batch.slice(skip)
            skip = max(0, skip - batch.num_rows)
    except pyarrow.ArrowException as error:
        if "straddling" in str(error):
            raise _TooLongRow from None
        raise FileError(_broken(str(error), file, rows_before, csv)) from None
    except UnicodeError as error:
        raise FileError(not_in(csv.encoding, file, error)) from None
    quotes.end()


def _open(text: Utf8, csv: Csv, names: list[str], wanted: list[str], block: int) -> Any:
    """pyarrow's reader: columns as text."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    return arrow_csv.open_csv(
        pa.PythonFile(text, mode="r"),
        read_options=arrow_csv.ReadOptions(use_threads=False, block_size=block, column_names=names),
        parse_options=arrow_csv.ParseOptions(
            delimiter=csv.delimiter,
            quote_char=csv.quotechar or False,
            double_quote=csv.doublequote,
            escape_char=csv.escapechar or False,
            newlines_in_values=True,
        ),
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=list(csv.null_values),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            include_columns=wanted,
        ),
    )


def _next(reader: Any) -> Any:
    try:
        return reader.read_next_batch()
    except StopIteration:
        return None


def _broken(error: str, file: str, rows_before: int, csv: Csv) -> str:
    """What pyarrow says of a broken row, with the row's number in the file."""
    if "UTF8" in error:
        return not_in(csv.encoding, file)
    found = re.search(r"Row #(\d+): Expected (\d+) columns?, got (\d+)(?:: (.*))?", error, re.DOTALL)
    if found is None:
        fact = error if log_settings.values else re.sub(r"( got \d+).*", r"\1", error, flags=re.DOTALL)
        return f"file '{file}': not CSV as it should be: {fact[:200]}"
    number, expected, got, row = int(found[1]) + rows_before, found[2], found[3], found[4] or ""
    return (
        f"file '{file}', row {number}: {got} fields, where the header has {expected}{near(row)}.\n"
        "  Is the file cut off there, or is the delimiter or the quote another one (csv=burler.files.Csv(...))?"
    )
