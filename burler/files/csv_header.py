"""The beginning of a CSV file: its encoding, the lines to leave out, the names of its columns."""

from __future__ import annotations

import codecs
import csv as python_csv
import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from burler.errors import FileError
from burler.files.csv_options import Csv
from burler.files.csv_quotes import Quotes

NAMELESS = "\0"
"""Begins the names of columns that have none; they are not read."""

_BOM = codecs.BOM_UTF8
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_READ_BYTES = 1 << 16
_LONGEST_HEAD_BYTES = 16 << 20


class Utf8(io.RawIOBase):
    """A text file's bytes in UTF-8, whatever it is written in, without byte order mark.

    Args:
        source: an object with ``read(size)``.
    """

    def __init__(self, source: Any, encoding: str) -> None:
        super().__init__()
        self._source = source
        same = codecs.lookup(encoding).name in ("utf-8", "utf-8-sig", "ascii")
        self._decoder = None if same else codecs.getincrementaldecoder(encoding)()
        self._ended = False
        self._ahead = bytearray()
        self._begun = False
        self.watch: Callable[[bytes], None] | None = None
        """Is given all that is read from now on."""

    def readable(self) -> bool:
        """True."""
        return True

    def read(self, size: int = -1) -> bytes:
        """``size`` bytes, fewer only at the end.

        Raises:
            UnicodeError: it is not in that encoding.
        """
        self._fill(size)
        given = bytes(self._ahead if size < 0 else memoryview(self._ahead)[:size])
        del self._ahead[: len(given)]
        if self.watch is not None:
            self.watch(given)
        return given

    def look(self, size: int) -> bytes:
        """The next bytes, which stay where they are."""
        self._fill(size)
        return bytes(memoryview(self._ahead)[:size])

    def _fill(self, size: int) -> None:
        if not self._begun:
            self._begun = True
            self._fill(len(_BOM))
            if self._ahead.startswith(_BOM):
                del self._ahead[: len(_BOM)]
        while not self._ended and (size < 0 or len(self._ahead) < size):
            piece: bytes = self._source.read(max(size - len(self._ahead), _READ_BYTES))
            self._ended = not piece
            if self._decoder is not None:
                piece = self._decoder.decode(piece, self._ended).encode("utf-8", "surrogatepass")
            self._ahead += piece

    def more(self) -> bool:
        """Whether anything but line ends is left."""
        size = _READ_BYTES
        while not (seen := self.look(size)).strip(b"\r\n"):
            if len(seen) < size:
                return False
            self.read(size)
        return True


@dataclass(frozen=True, slots=True)
class _First:
    """The first row of a file: its fields, and where it stands."""

    fields: list[str]
    begins_at_byte: int
    ends_at_byte: int


def read_header(text: Utf8, csv: Csv, file: str, quotes: Quotes) -> tuple[list[str], int] | None:
    """The names of the columns, and how many rows stand before the first one of data; None for a file without rows.
    What is behind them is left to be read.

    Args:
        quotes: looks at the first row, and at what is read behind it.

    Raises:
        FileError: a name that stands twice, a row that never ends, text in another encoding.
    """
    try:
        first = _first_row(text, csv, file)
    except UnicodeError as error:
        raise FileError(not_in(csv.encoding, file, error)) from None
    if first is None:
        return None
    quotes.skip(text.read(first.begins_at_byte))
    text.watch = quotes.look
    if csv.header is True:
        text.read(first.ends_at_byte - first.begins_at_byte)
        return _named(first.fields, file), 1
    if csv.header is False:
        return [f"column{number}" for number in range(1, len(first.fields) + 1)], 0
    if len(csv.header) != len(first.fields):
        raise FileError(
            f"file '{file}' has {len(first.fields)} columns, and Csv(header=...) names {len(csv.header)}.\n"
            "  Name all columns, in the order of the file; is the delimiter right?"
        )
    return list(csv.header), 0


def _first_row(text: Utf8, csv: Csv, file: str) -> _First | None:
    size = _READ_BYTES
    while True:
        head = text.look(size)
        ended = len(head) < size
        lines = _LINE.findall(codecs.getincrementaldecoder("utf-8")().decode(head, ended))
        found, whole = _parsed(lines, csv, file)
        if ended and not whole:
            _check_ended(lines, csv, file)
        if whole or ended:
            return found
        if size >= _LONGEST_HEAD_BYTES:
            raise FileError(f"file '{file}': its first row does not end within {size:,} bytes: is it CSV?")
        size *= 4


def _parsed(lines: list[str], csv: Csv, file: str) -> tuple[_First | None, bool]:
    """The first row, and whether there is a line behind it, so that it is whole."""
    before = csv.skip_rows
    while before < len(lines) and not lines[before].strip("\r\n"):
        before += 1
    rows = _reader(lines[before:], csv)
    try:
        fields = next(rows, None)
    except python_csv.Error as error:
        raise FileError(f"file '{file}', first row: not CSV as it should be: {error}.") from None
    if fields is None:
        return None, False
    after = before + rows.line_num
    begin, end = (len("".join(lines[:count]).encode("utf-8", "surrogatepass")) for count in (before, after))
    return _First(fields, begin, end), after < len(lines)


def _check_ended(lines: list[str], csv: Csv, file: str) -> None:
    """Refuse a first row that goes to the end of the file because its quote never ends: all rows are in it."""
    try:
        list(_reader(lines[csv.skip_rows :], csv, strict=True))
    except python_csv.Error as error:
        if "unexpected end" in str(error):
            raise FileError(
                f"file '{file}': its first row has a quote that never ends: the file is cut off, or a quote in it is a "
                "letter like others (csv=Csv(quotechar=None))."
            ) from None


def _reader(lines: list[str], csv: Csv, *, strict: bool = False) -> Any:
    return python_csv.reader(
        lines,
        delimiter=csv.delimiter,
        quotechar=csv.quotechar,
        quoting=python_csv.QUOTE_NONE if csv.quotechar is None else python_csv.QUOTE_MINIMAL,
        doublequote=csv.doublequote,
        escapechar=csv.escapechar,
        strict=strict,
    )


def _named(fields: list[str], file: str) -> list[str]:
    """The names of columns; those without one get a name that nobody reads."""
    twice = next((name for i, name in enumerate(fields) if name and name in fields[:i]), None)
    if twice is not None:
        raise FileError(
            f"file '{file}': two columns are named {twice[:60]!r}, and a row has one field of a name.\n"
            "  csv=burler.files.Csv(header=(...), skip_rows=1) names the columns anew."
        )
    return [name or f"{NAMELESS}{i}" for i, name in enumerate(fields)]


def not_in(encoding: str, file: str, error: UnicodeError | None = None) -> str:
    """The sentence for text in another encoding."""
    place = "" if error is None else f" ({getattr(error, 'reason', error)})"
    return (
        f"file '{file}' is no text in {encoding}{place}.\n"
        "  Say which encoding it is in: csv=burler.files.Csv(encoding='latin-1'), 'cp1252', 'utf-16'."
    )
