"""The columns of CSV files, which are those of a schema: lines of JSON to the text of their rows (``CsvLayout``), and
their cells to lines of JSON (``CsvLines``), a column at a time. Nearly all of it runs in C, and what is spelled in
another way is read cell by cell.

A column is for a declared field, in their order. ``text`` is text as it is, in quotes; ``number`` and ``boolean`` the
JSON source text, bare; ``json`` JSON text in quotes. A field that takes text and other scalars is ``text`` (its numbers
are read back as text), one that takes objects or arrays, or says nothing of its type, is ``json``, which reads back as
it was. Of numbers and texts whose columns in Parquet are narrower a column knows that, too: its cells are held against
it.
"""

from __future__ import annotations

import functools
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from itertools import chain, repeat
from typing import Any

import msgspec

from burler.errors import BatchError
from burler.formats import csv_write
from burler.formats.csv import Column, Dialect, Narrow
from burler.formats.csv_write import NOTHING, Cells, CsvText, is_whole
from burler.formats.jsonl import line_cuts
from burler.log_settings import near, value
from burler.records.columns.converters import ColumnMisfit, Report, converter, row_type
from burler.records.columns.file_check import FileCheck
from burler.records.columns.types import DATE, TIMESTAMP, FieldType, Scalar, SchemaNode, column_type, fields_of
from burler.surrogates import decode_veiled

_INTEGER = r"^-?(?:0|[1-9][0-9]*)$"
_NUMBER = r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$"
_ODD_NUMBER = re.compile(r"\s*+([+-]?)(\d*)(?:\.(\d*))?([eE][+-]?\d+)?\s*", re.ASCII)
_MOMENTS: dict[FieldType, Narrow] = {TIMESTAMP: "date-time", DATE: "date"}
_SCALARS = {"integer", "number", "string", "boolean"}
_TRUE = {"true", "t", "1", "yes", "y", "on"}
_FALSE = {"false", "f", "0", "no", "n", "off"}
_PART_BYTES = 1 << 16  # of lines that are taken at once, so that few values are in memory
_rows_of = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode_lines
_row_of = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_bracketed = msgspec.json.Decoder(list[msgspec.Raw]).decode_lines


def columns_of(schema: Mapping[str, Any]) -> tuple[Column, ...]:
    """The columns of a schema's rows: none if it declares no fields."""
    return tuple(_column(name, node) for name, node in fields_of(schema).items())


def _column(name: str, node: SchemaNode) -> Column:
    types = node.names - {"null"}
    if types and types <= {"integer", "number"}:
        return Column(name, "number", None if "number" in types else "integer")
    if types == {"boolean"}:
        return Column(name, "boolean")
    if "string" not in types or not types <= _SCALARS:
        return Column(name, "json")
    return Column(name, "text", _MOMENTS.get(column_type(node)))


# ---- lines to rows ---------------------------------------------------------------------------------------------------


class CsvLayout:
    """The columns of a stream's CSV files, and what of its rows has none.

    Attributes:
        header: the row of names.
    """

    def __init__(self, columns: tuple[Column, ...], dialect: Dialect, stream: str) -> None:
        self.header = CsvText(dialect).header([column.name for column in columns])
        self._text, self._columns, self._stream = CsvText(dialect), columns, stream
        self._names = {column.name for column in columns}
        row = row_type((column.name for column in columns), repeat(msgspec.Raw), NOTHING)
        self._typed = None if row is None else msgspec.json.Decoder(row)
        self._report = Report()

    def text(self, lines: bytes | bytearray | memoryview, count: int) -> bytes:
        """Rows as they stand in the file.

        Raises:
            BatchError: a value that its column can't hold.
        """
        dropped: Counter[str] = Counter()
        taken, made = 0, []
        for part in line_cuts(lines, _PART_BYTES):
            rows, values, veiled = self._values(part, dropped)
            taken += rows
            try:
                made.append(self._text.rows(self._columns, values, veiled=veiled))
            except csv_write.CsvMisfit as misfit:
                raise BatchError(
                    f"stream '{self._stream}': field '{misfit.column.name}': {value(f'{misfit.value!r:.80}')} can't "
                    f"stand in its csv column: {misfit.fact}.\n  Correct the schema, or take the format jsonl."
                ) from None
        if taken != count:
            raise BatchError(f"stream '{self._stream}': {taken:,} rows came where {count:,} were announced")
        self._report.dropped.update(dropped)
        return b"".join(made)

    def remarks(self) -> list[str]:
        """One sentence for each field without a column, since it was asked last."""
        report, self._report = self._report, Report()
        return report.remarks(", or take the format jsonl")

    def _values(self, lines: bytes, dropped: Counter[str]) -> tuple[int, list[Cells], bool]:
        """The number of rows, each column's values, and whether half surrogate pairs in them are veiled."""
        if self._typed is not None:
            try:
                rows = self._typed.decode_lines(lines)
            except (msgspec.DecodeError, RecursionError):  # a field that is not declared, or what follows below
                pass
            else:
                values: list[Cells] = list(zip(*map(msgspec.structs.astuple, rows), strict=True))
                return len(rows), values or [()] * len(self._columns), False
        found, veiled = _decoded(lines, self._stream)
        if not self._names.issuperset(chain.from_iterable(found)):
            dropped.update(name for row in found for name in row if name not in self._names)
        return len(found), [[row.get(column.name, NOTHING) for row in found] for column in self._columns], veiled


def _decoded(lines: bytes, stream: str) -> tuple[list[dict[str, Any]], bool]:
    try:
        return _rows_of(lines), False
    except (msgspec.DecodeError, RecursionError):
        pass
    found = []
    for line in filter(None, lines.split(b"\n")):
        try:
            found.append(decode_veiled(_row_of, line)[0])
        except (msgspec.DecodeError, RecursionError) as error:
            raise BatchError(
                f"stream '{stream}': a row can't be read ({error}){near(line)}.\n"
                "  It is no JSON object, or nested too deeply for csv; the format jsonl takes rows as they are."
            ) from None
    return found, True


# ---- rows to lines ---------------------------------------------------------------------------------------------------


class _OddCell(Exception):
    """A cell that is no value of its field. ``place``: of its row in the block, from 0; ``fact``: what it is not."""

    def __init__(self, place: int, fact: str) -> None:
        super().__init__(fact)
        self.place, self.fact = place, fact


class CsvLines:
    """Makes lines of JSON of the columns of a CSV file, which are texts.

    Args:
        columns: of the lines, in their order; those that a file does not have are null.
        null: the text that means it.
    """

    def __init__(self, columns: tuple[Column, ...], null: str, check: FileCheck) -> None:
        self._columns, self._null, self._check = columns, null, check

    def lines(self, batch: Any, row: int) -> bytes:
        """The lines of some rows.

        Args:
            row: how many rows of the file are before them.

        Raises:
            BatchError: a value that is none of its field, or none where there must be one; names the row.
        """
        from burler.records.arrow.json_text import bytes_of, join, string_parts

        there = {name: place for place, name in enumerate(batch.schema.names)}
        parts: list[Any] = []
        for column in self._columns:
            parts.append(("," if parts else "{") + msgspec.json.encode(column.name).decode() + ":")
            if column.name not in there:
                parts.append("null")
                continue
            try:
                cells = _READ[column.narrow or column.kind](batch.column(there[column.name]), self._null)
            except _OddCell as odd:
                raise BatchError(
                    f"row {row + odd.place + 1:,}: field '{column.name}': its value is {odd.fact}. "
                    "Correct the file, or the schema of its stream."
                ) from None
            self._check.check_nulls(column.name, cells, row)
            parts += string_parts(cells) if column.kind == "text" else [cells]
        return bytes(bytes_of(join([*parts, "}\n"], batch.num_rows)))


def _numbers(column: Any, null: str, *, narrow: bool) -> Any:
    if all_match(column, _INTEGER if narrow else _NUMBER):
        return column
    return _each(column, null, _integer, "no integer") if narrow else _each(column, null, _number, "no number")


def all_match(column: Any, pattern: str) -> bool:
    """Whether all cells of a column look like that; nulls do not count."""
    import pyarrow.compute as pc

    return pc.all(pc.match_substring_regex(column, pattern)).as_py() is not False


def _times(column: Any, null: str, *, kind: Scalar, fact: str) -> Any:
    """Texts as they are, each of which a column of Parquet could hold."""
    import pyarrow as pa

    from burler.records.arrow.json_text import Unsure, read_days, read_moments

    quick = read_moments if kind == TIMESTAMP else read_days
    convert = converter(kind, ())

    def read(cell: str) -> str | None:
        try:
            convert(msgspec.json.encode(cell), Report())
        except ColumnMisfit:
            return None
        return cell

    try:
        quick(column)
    except (Unsure, pa.ArrowInvalid):
        return _each(column, null, read, fact)
    return column


def _booleans(column: Any, null: str) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    known = pa.array(["true", "false", None])
    if pc.all(pc.is_in(column, value_set=known)).as_py() is not False:
        return column
    return _each(column, null, _truth, "neither true nor false")


def _as_documents(column: Any, null: str) -> Any:
    from burler.records.arrow.json_text import bytes_of, join

    # In brackets each, so that no line has two documents, and none goes on in the next line.
    data = bytes(bytes_of(join(["[", column, "]\n"], len(column))))
    if data.count(b"\n") == len(column) and b"\r" not in data:
        try:
            sizes = list(map(len, _bracketed(data)))
        except (msgspec.DecodeError, RecursionError):
            pass
        else:
            if len(sizes) == len(column) and set(sizes) == {1}:
                return column
    return _each(column, null, _document, "no JSON")


def _each(column: Any, null: str, read: Callable[[str], str | None], fact: str) -> Any:
    """A column cell by cell.

    Args:
        read: gives what a cell becomes: its JSON text, or the text itself; None if it is none.
        fact: what a cell is that is none.
    """
    import pyarrow as pa

    once = functools.lru_cache(maxsize=1024)(read)
    made: list[str | None] = []
    for place, cell in enumerate(column.to_pylist()):
        if cell is None or not cell.strip() or cell == null:  # some tools put all cells in quotes
            made.append(None)
            continue
        text = once(cell)
        if text is None:
            raise _OddCell(place, fact)
        made.append(text)
    return pa.array(made, pa.string())


def _number(cell: str) -> str | None:
    """A number in JSON's spelling: no plus, no zeros in front, digits on both sides of a point."""
    found = _ODD_NUMBER.fullmatch(cell)
    if found is None or not (found[2] or found[3]):
        return None
    sign, whole, behind, exponent = found.groups(default="")
    point = f".{behind}" if behind else ""
    return f"{sign.strip('+')}{whole.lstrip('0') or '0'}{point}{exponent}"


def _integer(cell: str) -> str | None:
    number = _number(cell)
    return number if number is not None and is_whole(number) else None


def _truth(cell: str) -> str | None:
    word = cell.strip().lower()
    return "true" if word in _TRUE else "false" if word in _FALSE else None


def _document(cell: str) -> str | None:
    """JSON on one line."""
    line = cell.encode()
    try:
        decode_veiled(_bracketed, b"[" + line + b"]")
        json.loads(cell)
    except (ValueError, RecursionError):  # msgspec's errors are ValueErrors as well
        return None
    return cell.replace("\n", " ").replace("\r", " ")  # JSON text has them between values alone


_READ: dict[str, Callable[[Any, str], Any]] = {
    "text": lambda column, _null: column,
    "number": partial(_numbers, narrow=False),
    "integer": partial(_numbers, narrow=True),
    "date-time": partial(_times, kind=TIMESTAMP, fact="no date-time in years 1 to 9999"),
    "date": partial(_times, kind=DATE, fact="no date (YYYY-MM-DD)"),
    "boolean": _booleans,
    "json": _as_documents,
}
