"""CSV files as Arrow batches of text, then of the types that the schema asks for. Flat memory for files of any size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from burler.errors import FileError
from burler.extras import require
from burler.files.csv_options import Csv
from burler.formats.csv_read import CsvReader
from burler.log_settings import log_settings
from burler.records.columns.from_csv import narrowing

if TYPE_CHECKING:
    import pyarrow as pa

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


def csv_batches(source: Any, file: str, csv: Csv, table: Table, *, max_line_bytes: int) -> Iterator[pa.RecordBatch]:
    """The rows of a CSV file, in batches.

    Args:
        source: an object with ``read(size)``.
        file: its name, for errors.

    Raises:
        FormatError: no CSV as it should be (see ``CsvReader``). FileError: other columns.
    """
    require("pyarrow", extra="files", needed_for="burler.files (CSV)")
    reader = CsvReader(source, csv.dialect(), block_bytes=csv.block_bytes, most_row_bytes=max_line_bytes)
    first = reader.first()
    if first is None:
        return
    names = _names(first, csv, file)
    table.check([name for name in names if name], file, csv.delimiter)
    if csv.header is True:
        reader.drop_first()
    if reader.is_at_end(blank_lines=True):
        return
    wanted = set(table.wanted(names)) - {""}
    narrow = narrowing(table.schema, csv.words())
    for batch in reader.batches(names, [place for place, name in enumerate(names) if name in wanted]):
        yield from narrow(batch)


def _names(first: list[str], csv: Csv, file: str) -> list[str]:
    """The names of the columns; those without one are not read."""
    if csv.header is True:
        twice = next((name for i, name in enumerate(first) if name and name in first[:i]), None)
        if twice is not None:
            raise FileError(
                f"file '{file}': two columns are named {twice[:60]!r}, and a row has one field of a name.\n"
                "  csv=burler.files.Csv(header=(...), skip_rows=1) names the columns anew."
            )
        return first
    if csv.header is False:
        return [f"column{number}" for number in range(1, len(first) + 1)]
    if len(csv.header) != len(first):
        raise FileError(
            f"file '{file}' has {len(first)} columns, and Csv(header=...) names {len(csv.header)}.\n"
            "  Name all columns, in the order of the file; is the delimiter right?"
        )
    return list(csv.header)
