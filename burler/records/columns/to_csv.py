"""JSON lines to the text of CSV, by the columns of a stream's schema."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any

import msgspec

from burler.errors import BatchError
from burler.formats.csv import Column, Dialect
from burler.formats.csv_write import NOTHING, Cells, CsvText, Misfit
from burler.log_settings import near, value
from burler.surrogates import decode_veiled

_PART_BYTES = 1 << 16
_rows_of = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode_lines
_row_of = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class CsvLayout:
    """The columns of a stream's CSV files, and what of its rows has none.

    Attributes:
        header: the row of names.
    """

    def __init__(self, columns: tuple[Column, ...], dialect: Dialect, stream: str) -> None:
        self.header = CsvText(dialect).header([column.name for column in columns])
        self._text, self._columns, self._stream = CsvText(dialect), columns, stream
        self._names = {column.name for column in columns}
        self._typed = _typed_decoder(columns)
        self._dropped: Counter[str] = Counter()

    def text(self, lines: bytes | bytearray | memoryview, count: int) -> bytes:
        """Rows as they stand in the file.

        Raises:
            BatchError: a value that its column can't hold.
        """
        dropped: Counter[str] = Counter()
        taken, made = 0, []
        for part in _parts(bytes(lines)):
            rows, values, veiled = self._values(part, dropped)
            taken += rows
            try:
                made.append(self._text.rows(self._columns, values, veiled=veiled))
            except Misfit as misfit:
                raise BatchError(
                    f"stream '{self._stream}': field '{misfit.column.name}': {value(f'{misfit.value!r:.80}')} can't "
                    f"stand in its csv column: {misfit.fact}.\n  Correct the schema, or take the format jsonl."
                ) from None
        if taken != count:
            raise BatchError(f"stream '{self._stream}': {taken:,} rows came where {count:,} were announced")
        self._dropped += dropped
        return b"".join(made)

    def remarks(self) -> list[str]:
        """One sentence for each field without a column, since it was asked last."""
        given = [
            f"field '{name}' is not in the schema and has no column: left out of {count:,} "
            f"{'row' if count == 1 else 'rows'}. Declare it in the tap, or take the format jsonl"
            for name, count in sorted(self._dropped.items())
        ]
        self._dropped.clear()
        return given

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


def _parts(lines: bytes) -> Iterator[bytes]:
    """Lines in parts, so that few values are in memory at once."""
    at = 0
    while at < len(lines):
        end = lines.rfind(b"\n", at, at + _PART_BYTES) + 1 or lines.find(b"\n", at) + 1 or len(lines)
        yield lines[at:end]
        at = end


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


def _typed_decoder(columns: tuple[Column, ...]) -> Any:
    """A decoder to objects that have the columns' values in order, which is faster than one to dicts, and stops at
    fields that are no columns; None where a name is not to be had in one."""
    names = {f"f{place}": column.name for place, column in enumerate(columns)}
    fields = [(field, msgspec.Raw, NOTHING) for field in names]
    try:
        row = msgspec.defstruct("Row", fields, rename=names, forbid_unknown_fields=True, gc=False)
    except ValueError:  # quotes, backslashes and control characters
        return None
    return msgspec.json.Decoder(row)
