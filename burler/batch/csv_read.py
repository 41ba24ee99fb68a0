"""CSV files of a BATCH back to rows of JSON, by the types of the stream's schema: a block of rows at a time.

What ``csv_write`` writes comes back as it was, digit for digit. Exports of databases and other tools are read as well:
columns in any order, numbers in other spellings, ``t`` and ``1`` for true.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from burler.batch.csv_columns import Column, columns_of
from burler.batch.csv_cut import Blocks, Text
from burler.batch.csv_options import BOM, CsvOptions
from burler.batch.csv_values import OddCell, cells_of
from burler.batch.demands import Demands, listed
from burler.errors import BatchError
from burler.extras import require

Report = Callable[[str], object]

OPEN_END = "the last row of a file has no line end; if it was cut off there, its last value is not whole"
NO_NAMES = "it is empty, and should begin with a row of names. Or say 'header': false."


def pages(
    text: Text, options: CsvOptions, schema: Mapping[str, Any] | None, report: Report, *, are_shaped: bool = False
) -> Iterator[tuple[bytes, int]]:
    """Yield the rows as lines of JSON, each with every field that the schema declares, and how many there are.

    Args:
        schema: the stream's; None: the header's columns, all of them text.
        report: takes a sentence on columns that the schema does not know, on those that are not there, and on a last
            row that may be cut off.
        are_shaped: whoever gets the rows looks at integers, dates and date-times, and knows what to do with odd ones.

    Raises:
        BatchError: no CSV as it should be, other columns, a value that is none of its field, or none where there must
            be one; names the row.
    """
    require("pyarrow", extra="batch", needed_for="reading BATCH files in csv")
    blocks = Blocks(text, options)
    declared = None if schema is None else columns_of(schema)
    width = 0 if options.header else len(options.columns or declared or ())
    first = blocks.first(may_be_empty=width == 1)  # a row of one column is an empty line where it is null
    if first is None:
        if options.header:
            raise BatchError(NO_NAMES)
        return
    names = _names(blocks, first, options, declared, report)
    demands = Demands(schema or {})
    demands.check_columns(names, report)
    columns = declared or tuple(Column(name, "text") for name in names)
    made = _Lines(names, _wide(columns) if are_shaped else columns, options, demands)
    for block in blocks:
        if not block.endswith(b"\n"):
            report(OPEN_END)
        lines, count = made.lines(block, blocks.row)
        blocks.row += count
        if count:
            yield lines, count


def _wide(columns: tuple[Column, ...]) -> tuple[Column, ...]:
    return tuple(dataclasses.replace(column, narrow=None) for column in columns)


def _names(
    blocks: Blocks, first: bytes, options: CsvOptions, declared: tuple[Column, ...] | None, report: Report
) -> list[str]:
    """The names of the file's columns in their order; the header is dropped."""
    if not options.header:
        return _by_place(blocks, first, options, declared)
    names = blocks.fields(first)
    blocks.drop_first()
    known = set(names) if declared is None else {column.name for column in declared}
    twice = next((i for i, name in enumerate(names) if name in known and name in names[:i]), None)
    if twice is not None:
        once = names.index(names[twice])
        raise BatchError(f"its columns {once + 1} and {twice + 1} have one name, and a row has one field of a name.")
    if not known & set(names):
        raise BatchError(
            f"none of its columns is a field of the stream ({listed(sorted(known))}). Is the delimiter "
            f"{options.delimiter!r}? Has the file no header? Then say 'header': false."
        )
    strange = [name for name in names if name not in known]
    if strange:
        report(f"columns that the schema does not know are left out: {listed(strange)}")
    return names


def _by_place(blocks: Blocks, first: bytes, options: CsvOptions, declared: tuple[Column, ...] | None) -> list[str]:
    """The names of columns without a header."""
    if not options.columns and declared is None:
        raise BatchError("it has no header, so its columns have no names. Read it with the stream's schema.")
    names = list(options.columns) or [column.name for column in declared or ()]
    width = blocks.width(first)
    if width != len(names):
        raise BatchError(
            f"row 1 has {width} fields, where {len(names)} columns are expected: {listed(names)}. "
            f"Is the delimiter {options.delimiter!r}?"
        )
    is_text = len(names) == 1 and (declared is None or declared[0].kind == "text")
    if not is_text and len(first) < 1 << 16 and blocks.fields(first) == names:
        raise BatchError("row 1 holds the names of the columns, and the message says 'header': false. Say true.")
    return names


class _Lines:
    """Makes lines of JSON of blocks of CSV."""

    def __init__(self, names: list[str], columns: tuple[Column, ...], options: CsvOptions, demands: Demands) -> None:
        from pyarrow import csv

        self._csv = csv
        self._options = options
        self._columns = columns
        self._demands = demands
        self._width = len(names)
        places = {name: f"f{place}" for place, name in enumerate(names)}
        self._places = [places.get(column.name) for column in columns]

    def lines(self, block: bytes, row: int) -> tuple[bytes, int]:
        """The lines of a block of whole rows, and how many.

        Args:
            row: how many rows of the file are before the block.
        """
        from burler.records.arrow.kernels import bytes_of, join, string_parts

        table = self._table(block, row)
        parts: list[Any] = []
        for column, place in zip(self._columns, self._places, strict=True):
            parts.append(("," if parts else "{") + msgspec.json.encode(column.name).decode() + ":")
            if place is None:
                parts.append("null")
                continue
            try:
                cells = cells_of(column, table.column(place).combine_chunks(), self._options)
            except OddCell as odd:
                raise BatchError(
                    f"row {row + odd.place + 1:,}: field '{column.name}': its value is {odd.fact}. "
                    "Correct the file, or the schema of its stream."
                ) from None
            self._check_nulls(column, cells, row)
            parts += string_parts(cells) if column.kind == "text" else [cells]
        count: int = table.num_rows
        return bytes(bytes_of(join([*parts, "}\n"], count))) if count else b"", count

    def _check_nulls(self, column: Column, cells: Any, row: int) -> None:
        if column.name in self._demands.filled and cells.null_count:
            raise self._demands.error_of_null(column.name, row + cells.is_null().index(True).as_py() + 1)

    def _table(self, block: bytes, row: int) -> Any:
        """The columns of a block that are wanted, as text; null where the null text stands without quotes."""
        import pyarrow as pa

        if block.startswith(BOM.encode()):
            block = BOM.encode() + block  # of a field: pyarrow takes one off
        wanted = [place for place in self._places if place is not None]
        names = [f"f{place}" for place in range(self._width)]
        csv, options = self._csv, self._options
        try:
            return csv.read_csv(
                pa.BufferReader(block),
                csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=names),
                csv.ParseOptions(
                    delimiter=options.delimiter,
                    quote_char=options.quote_char or False,
                    newlines_in_values=True,
                    ignore_empty_lines=self._width > 1,
                ),
                csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()),
                    null_values=[options.null],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                    include_columns=wanted,
                    check_utf8=False,  # the whole block is UTF-8
                ),
            )
        except pa.ArrowInvalid as error:
            raise BatchError(_broken(str(error), row)) from None


def _broken(error: str, row: int) -> str:
    """What pyarrow says of a broken row."""
    found = re.search(r"Row #(\d+): Expected (\d+) columns?, got (\d+)", error)
    if found is None:
        return f"behind row {row:,} it is no CSV as it should be."
    return (
        f"row {row + int(found[1]):,} has {found[3]} fields, where {found[2]} columns are expected. "
        "Is it cut off there, or is the delimiter another one?"
    )
