"""CSV files, written from JSON values a column at a time: nearly all of it runs in C.

What stands in a cell: numbers, ``true`` and ``false`` as in the JSON of the row, bare and digit for digit; text in
quotes; objects, arrays and fields of any type as JSON text in quotes; null, and a field that is not there, as the null
text without quotes. So the empty text (``""``) and null (nothing) differ, in the way that PostgreSQL's COPY, DuckDB
and others read them.

Values come as JSON source text (``msgspec.Raw``), so numbers are never parsed. A column's values are looked at, and
changed, as one text with a line end behind each: JSON text on one line holds none.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import msgspec

from burler.formats.csv import Column, Dialect
from burler.surrogates import unveil

Cells = Sequence[Any]
"""``bytes`` or ``msgspec.Raw``: what ``bytes.join`` takes."""

NOTHING = msgspec.Raw(b"")
"""Stands for a field that a row does not have."""

_NULL = msgspec.Raw(b"null")
_OF_NUMBERS = b"0123456789+-.eE\n"
_OF_INTEGERS = b"0123456789-\n"
_UNDATED = re.compile(rb'(?:\A|\n)"(?![0-9])')
_string = msgspec.json.Decoder(str)


class CsvMisfit(Exception):
    """A value that its column can't hold. ``fact`` says why; ``value`` is its JSON text."""

    def __init__(self, column: Column, value: bytes, fact: str) -> None:
        super().__init__(fact)
        self.column, self.fact = column, fact
        self.value = value.decode("utf-8", "replace")


class CsvText:
    """Makes the text of rows of a dialect, which has a quote and one null text."""

    def __init__(self, dialect: Dialect) -> None:
        self._null = dialect.nulls[0].encode()
        self._quote = (dialect.quote_char or '"').encode()
        self._delimiter, self._end = dialect.delimiter.encode(), dialect.line_end.encode()

    def header(self, names: Sequence[str]) -> bytes:
        """The row of names, in quotes where they need them."""
        return self._delimiter.join(map(self._name, names)) + self._end

    def _name(self, name: str) -> bytes:
        text = name.encode()
        hostile = (self._delimiter, self._quote, b"\n", b"\r", codecs.BOM_UTF8)
        if text and text != self._null and name.strip() == name and not any(one in text for one in hostile):
            return text
        return self._quote + text.replace(self._quote, self._quote * 2) + self._quote

    def rows(self, columns: Sequence[Column], values: Sequence[Cells], *, veiled: bool = False) -> bytes:
        """The text of some rows.

        Args:
            values: of each column.
            veiled: whether halves of surrogate pairs in the values are veiled (see ``burler.surrogates``).

        Raises:
            CsvMisfit: the first value that can't be held.
        """
        made = [self._cells(column, cells, veiled) for column, cells in zip(columns, values, strict=True)]
        text = self._end.join(map(self._delimiter.join, zip(*made, strict=True)))
        return text + self._end if len(made[0]) else b""

    def _cells(self, column: Column, values: Cells, veiled: bool) -> Cells:
        joined = b"\n".join(values)
        if b"null" in joined:
            values = [NOTHING if value == _NULL else value for value in values]
            joined = b"\n".join(values)
        if column.kind == "text":
            made = self._texts(column, values, joined, veiled)
        elif column.kind == "json":
            made = self._documents(unveil(joined) if veiled else joined)
        else:
            _check(column, joined)
            made = values
        return made if not self._null else [cell if len(cell) else self._null for cell in made]

    def _texts(self, column: Column, values: Cells, joined: bytes, veiled: bool) -> Cells:
        begun = joined.count(b'\n"')
        if column.narrow:
            # Nearly all dates are of these two thousands of years, and counting is quick.
            usual = joined[1:2] in (b"1", b"2") and begun == joined.count(b'\n"2') + joined.count(b'\n"1')
            if (not usual and _UNDATED.search(joined)) or (self._null and self._null in joined):
                self._refuse_blank(column, joined)
        others = len(values) - begun - joined.startswith(b'"')
        if self._quote == b'"' and not veiled and (not others or others == values.count(NOTHING)):
            if b"\\" not in joined:
                return values  # JSON text without escapes, in its quotes, is a cell
            return [self._text(column, cell) if b"\\" in cell else cell for cell in joined.split(b"\n")]
        return [self._text(column, cell, veiled) for cell in joined.split(b"\n")]

    def _refuse_blank(self, column: Column, joined: bytes) -> None:
        """Readers take nothing in quotes for null where dates stand, as tools write it that put all in quotes."""
        for value in joined.split(b"\n"):
            text = _string.decode(value) if value.startswith(b'"') else "a"
            if not text.strip() or text.encode() == self._null:
                raise CsvMisfit(column, value, "it is no date, and would be read as null")

    def _text(self, column: Column, value: bytes, veiled: bool = False) -> bytes:
        """One value as text in quotes: a text as it is, others as their source text."""
        if not value:
            return value
        if value[:1] == b'"':
            if veiled and unveil(value) != value:
                raise CsvMisfit(
                    column, unveil(value), "half of a surrogate pair is no character, so no file of text can hold it"
                )
            value = _string.decode(value).encode()
        return self._quote + value.replace(self._quote, self._quote * 2) + self._quote

    def _documents(self, joined: bytes) -> list[bytes]:
        """JSON text in quotes."""
        quote = self._quote
        doubled = joined.replace(quote, quote * 2)
        return [quote + cell + quote if cell else cell for cell in doubled.split(b"\n")]


def _check(column: Column, joined: bytes) -> None:
    """Refuse what is no number in a column of numbers, neither true nor false in one of truth values."""
    if column.kind == "number":
        if not joined.translate(None, _OF_INTEGERS if column.narrow == "integer" else _OF_NUMBERS):
            return
        wrong = _no_integer if column.narrow == "integer" else _no_number
        fact = "no integer" if column.narrow == "integer" else "no number"
        found = next((cell for cell in joined.split(b"\n") if cell and wrong(cell)), None)
        if found is None:
            return
        bad = found
    else:
        if not joined.replace(b"true", b"").replace(b"false", b"").strip(b"\n"):
            return
        fact = "neither true nor false"
        bad = next(cell for cell in joined.split(b"\n") if cell not in (b"true", b"false", b""))
    raise CsvMisfit(column, bad, f"it is {fact}, and the schema has nothing else in this field")


def _no_number(cell: bytes) -> bool:
    return bool(cell.translate(None, _OF_NUMBERS))


def _no_integer(cell: bytes) -> bool:
    """``3.0`` and ``1e2`` are integers."""
    return _no_number(cell) or not is_whole(cell.decode())


def is_whole(number: str) -> bool:
    """Whether a number in JSON's spelling is an integer."""
    try:
        value = Decimal(number)
        return value == value.to_integral_value()
    except ArithmeticError:  # an exponent of more digits than any number needs
        return False
