"""CSV files of a BATCH back to rows of JSON, by the types of the stream's schema: a block of rows at a time.

What ``encoders`` write comes back as it was, digit for digit. Exports of databases and other tools are read as well:
columns in any order, numbers in other spellings, ``t`` and ``1`` for true.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from burler.batch.csv_options import CsvOptions, columns_of
from burler.batch.demands import Demands, listed
from burler.errors import BatchError
from burler.extras import require
from burler.formats.csv import Column
from burler.formats.csv_read import CsvReader
from burler.records.columns.from_csv import OddCell, cells_of

Report = Callable[[str], object]

OPEN_END = "the last row of a file has no line end; if it was cut off there, its last value is not whole"
NO_NAMES = "it is empty, and should begin with a row of names. Or say 'header': false."


def pages(
    source: Any, options: CsvOptions, schema: Mapping[str, Any] | None, report: Report, *, are_shaped: bool = False
) -> Iterator[tuple[bytes, int]]:
    """Yield the rows as lines of JSON, each with every field that the schema declares, and how many there are.

    Args:
        source: the file, an object with ``read(size)``.
        schema: the stream's; None: the header's columns, all of them text.
        report: takes a sentence on columns that the schema does not know, on those that are not there, and on a last
            row that may be cut off.
        are_shaped: whoever gets the rows looks at integers, dates and date-times, and knows what to do with odd ones.

    Raises:
        FormatError: no CSV as it should be. BatchError: other columns, a value that is none of its field, or none where
            there must be one; names the row.
    """
    require("pyarrow", extra="batch", needed_for="reading BATCH files in csv")
    reader = CsvReader(source, options.dialect)
    declared = None if schema is None else columns_of(schema)
    width = 0 if options.header else len(options.columns or declared or ())
    first = reader.first(may_be_blank=width == 1)  # a row of one column is an empty line where it is null
    if first is None:
        if options.header:
            raise BatchError(NO_NAMES)
        return
    if options.header:
        names = _named(first, options, declared, report)
        reader.drop_first()
    else:
        names = _by_place(first, options, declared)
    demands = Demands(schema or {})
    demands.check_columns(names, report)
    columns = declared or tuple(Column(name, "text") for name in names)
    places = {name: place for place, name in enumerate(names)}
    wanted = [places[column.name] for column in columns if column.name in places]
    made = _Lines(_wide(columns) if are_shaped else columns, options.null, demands)
    for batch in reader.batches(names, wanted):
        if reader.is_open:
            report(OPEN_END)
        yield made.lines(batch, reader.row), batch.num_rows


def _wide(columns: tuple[Column, ...]) -> tuple[Column, ...]:
    return tuple(dataclasses.replace(column, narrow=None) for column in columns)


def _named(names: list[str], options: CsvOptions, declared: tuple[Column, ...] | None, report: Report) -> list[str]:
    """The names in a header, if they are columns of the stream."""
    known = set(names) if declared is None else {column.name for column in declared}
    twice = next((i for i, name in enumerate(names) if name in known and name in names[:i]), None)
    if twice is not None:
        once = names.index(names[twice])
        raise BatchError(f"its columns {once + 1} and {twice + 1} have one name, and a row has one field of a name.")
    if not known & set(names):
        raise BatchError(
            f"none of its columns is a field of the stream ({listed(sorted(known))}). Is the delimiter "
            f"{options.dialect.delimiter!r}? Has the file no header? Then say 'header': false."
        )
    strange = [name for name in names if name not in known]
    if strange:
        report(f"columns that the schema does not know are left out: {listed(strange)}")
    return names


def _by_place(first: list[str], options: CsvOptions, declared: tuple[Column, ...] | None) -> list[str]:
    """The names of columns without a header."""
    if not options.columns and declared is None:
        raise BatchError("it has no header, so its columns have no names. Read it with the stream's schema.")
    names = list(options.columns) or [column.name for column in declared or ()]
    if len(first) != len(names):
        raise BatchError(
            f"row 1 has {len(first)} fields, where {len(names)} columns are expected: {listed(names)}. "
            f"Is the delimiter {options.dialect.delimiter!r}?"
        )
    is_text = len(names) == 1 and (declared is None or declared[0].kind == "text")
    if not is_text and first == names:
        raise BatchError("row 1 holds the names of the columns, and the message says 'header': false. Say true.")
    return names


class _Lines:
    """Makes lines of JSON of columns of text."""

    def __init__(self, columns: tuple[Column, ...], null: str, demands: Demands) -> None:
        self._columns, self._null, self._demands = columns, null, demands

    def lines(self, batch: Any, row: int) -> bytes:
        """The lines of some rows.

        Args:
            row: how many rows of the file are before them.
        """
        from burler.records.arrow.kernels import bytes_of, join, string_parts

        there = {name: place for place, name in enumerate(batch.schema.names)}
        parts: list[Any] = []
        for column in self._columns:
            parts.append(("," if parts else "{") + msgspec.json.encode(column.name).decode() + ":")
            if column.name not in there:
                parts.append("null")
                continue
            try:
                cells = cells_of(column, batch.column(there[column.name]), self._null)
            except OddCell as odd:
                raise BatchError(
                    f"row {row + odd.place + 1:,}: field '{column.name}': its value is {odd.fact}. "
                    "Correct the file, or the schema of its stream."
                ) from None
            self._check_nulls(column, cells, row)
            parts += string_parts(cells) if column.kind == "text" else [cells]
        return bytes(bytes_of(join([*parts, "}\n"], batch.num_rows)))

    def _check_nulls(self, column: Column, cells: Any, row: int) -> None:
        if column.name in self._demands.filled and cells.null_count:
            raise self._demands.error_of_null(column.name, row + cells.is_null().index(True).as_py() + 1)
