"""CSV files as record batches of text, a block of whole rows at a time, each checked to be CSV as it should be: so
that nothing behind needs to guess where a row ends."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from burler.formats import FormatError
from burler.formats.csv import Dialect, Lexer
from burler.formats.names import HEAD_BYTES, kind_of, shown_kind
from burler.log_settings import near

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK_BYTES = 1 << 20
MOST_ROW_BYTES = 1 << 28
_READ_BYTES = 1 << 16
_NEAR_BYTES = 20
_BOM = codecs.BOM_UTF8
_WHOLE = 1 << 30


class CsvReader:
    """The rows of a file.

    Args:
        source: an object with ``read(size)``.
        block_bytes: how much is read at once, at the least.
        most_row_bytes: a row that is longer is an error.

    Attributes:
        row: how many rows are before those that were given last, with the header.
        is_open: whether the last row of the file, which was given, has no line end.
        line_end: of the first row, once ``first`` or ``names`` was called.

    All errors are ``FormatError``, of the kinds ``quote`` (one within a field), ``open`` (one that never ends),
    ``return`` (a carriage return alone), ``width``, ``names`` (a header, where none should be), ``encoding``, ``long``,
    ``other`` (another kind of file).
    """

    def __init__(
        self,
        source: Any,
        dialect: Dialect,
        *,
        block_bytes: int = BLOCK_BYTES,
        most_row_bytes: int = MOST_ROW_BYTES,
    ) -> None:
        self._text = _Utf8(source, dialect.encoding)
        self._dialect, self._lexer = dialect, Lexer(dialect)
        self._block_bytes, self._most = block_bytes, most_row_bytes
        self._ahead = b""
        self._at_end = self._has_begun = False
        self._given = 0
        self.row = 0
        self.is_open = False
        self.line_end = "\n"

    @property
    def is_marked(self) -> bool:
        """Whether the file begins with a byte order mark."""
        self._begin()
        return self._text.is_marked

    def first(self, *, may_be_blank: bool = False) -> list[str] | None:
        """The fields of the first row, which stays where it is; None for a file without rows.

        Args:
            may_be_blank: a line with nothing in it is a row, as in files of one column; else such lines before the
                first row are left out.
        """
        self._begin()
        if not may_be_blank:
            self._skip_blank()
        if not self._ahead:
            return None
        end = self._grown(self._lexer.end_of_first)
        row = self._ahead[:end]
        self._check_text(row)
        self._refuse(self._lexer.plain(row))
        self.line_end = "\r\n" if row.endswith(b"\r\n") else "\n"
        return [str(field, "utf-8") for field in self._lexer.fields(row.removesuffix(b"\n").removesuffix(b"\r"))]

    def names(self, given: Sequence[str] | None, *, header: bool) -> list[str] | None:
        """The names of the columns, one for each field of the first row; None for a file without rows.

        Args:
            given: of a file without header; None: the fields of its first row come in their place.
            header: whether the first row has the names. It is left out then.

        Raises:
            FormatError: the first row has more or fewer fields (of the kind ``width``), or is a header after all
            (``names``).
        """
        is_one = given is None or len(given) == 1  # a row of one column is an empty line where it is null
        first = self.first(may_be_blank=is_one and not header and self._dialect.blank_is_null)
        if first is None or (given is None and not header):
            return first
        if header or given is None:
            self.drop_first()
            return first
        if len(first) != len(given):
            raise FormatError(f"{len(first)} fields, where {len(given)} columns are expected", "row 1", "width")
        if len(first) > 1 and first == list(given):
            raise FormatError("it holds the names of the columns, and should be data", "row 1", "names")
        return list(given)

    def drop_first(self) -> None:
        """Leave the first row out, once ``first`` was called: it is the header."""
        end = self._lexer.end_of_first(self._lexer.plain(self._ahead)) or len(self._ahead)
        self._ahead = self._ahead[end:]
        self._given += 1

    def is_at_end(self, *, blank_lines: bool = False) -> bool:
        """Whether there is nothing more.

        Args:
            blank_lines: line ends alone are nothing either.
        """
        self._fill(1)
        if blank_lines:
            self._skip_blank()
        return not self._ahead

    def batches(self, names: Sequence[str], wanted: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """Yield the rows: columns of text, null where a null text stands without quotes. pyarrow must be there.

        Args:
            names: of all columns of the file.
            wanted: the places of those that are read; none: the first one, for the number of rows.
        """
        import pyarrow as pa

        parser = _Parser(self._dialect, len(names), wanted or (0,))
        chosen = [names[place] for place in wanted or (0,)]
        for block in self._blocks():
            self.is_open = self._at_end and not self._ahead and not block.endswith((b"\n", b"\r"))
            self.row = self._given
            for columns in parser.columns(block, self._given):
                self._given += len(columns[0])
                yield pa.RecordBatch.from_arrays(columns, names=chosen)
                self.row = self._given

    # ---- blocks of whole rows ------------------------------------------------------------------------------

    def _begin(self) -> None:
        if self._has_begun:
            return
        self._has_begun = True
        self._fill(self._block_bytes)
        other = kind_of(self._ahead[:HEAD_BYTES])
        if other is not None:
            raise FormatError(f"it is {shown_kind(other)}", kind="other")
        for _ in range(self._dialect.skip_lines):
            end = self._grown(self._lexer.end_of_line, plain=False)
            self._ahead = self._ahead[end:]

    def _skip_blank(self) -> None:
        while not (rest := self._ahead.lstrip(b"\r\n")) and not self._at_end:
            self._ahead = b""
            self._fill(self._block_bytes)
        self._ahead = rest

    def _blocks(self) -> Iterator[bytes]:
        self._begin()
        while True:
            self._fill(self._block_bytes)
            if not self._ahead:
                return
            end = len(self._ahead) if self._at_end else self._grown(self._lexer.end_of_last)
            block, self._ahead = self._ahead[:end], self._ahead[end:]
            self._check(block)
            yield block

    def _grown(self, end_of: Any, *, plain: bool = True) -> int:
        """Where something ends that begins here, as far as that takes; at the end of the file its end."""
        while not (end := end_of(self._lexer.plain(self._ahead) if plain else self._ahead)):
            if self._at_end:
                return len(self._ahead)
            if plain:
                self._refuse(self._lexer.plain(self._ahead), goes_on=True)
            if len(self._ahead) >= self._most:
                raise FormatError(
                    f"it is longer than {self._most:,} bytes: a quote that never ends?", self._place(0), "long"
                )
            self._fill(min(2 * len(self._ahead), self._most))
        return int(end)

    def _fill(self, size: int) -> None:
        """Have so many bytes ahead, fewer only at the end."""
        pieces, there = [self._ahead], len(self._ahead)
        while not self._at_end and there < size:
            piece = self._text.read(max(1, size - there))
            self._at_end = not piece
            pieces.append(piece)
            there += len(piece)
        self._ahead = b"".join(pieces)

    # ---- what is wrong -------------------------------------------------------------------------------------

    def _check(self, block: bytes) -> None:
        self._check_text(block)
        plain = self._lexer.plain(block)
        is_cut_well = not self._dialect.strict and not self._at_end  # only there a field may never end
        if not (is_cut_well or self._lexer.is_whole(plain)) or b"\r" in plain:
            self._refuse(plain)

    def _check_text(self, block: bytes) -> None:
        try:
            str(block, "utf-8")
        except UnicodeDecodeError as error:
            raise FormatError(
                f"it is no text in {_shown(self._dialect.encoding)} ({error.reason})",
                self._place(error.start, block),
                "encoding",
            ) from None

    def _refuse(self, text: bytes, *, goes_on: bool = False) -> None:
        """Refuse quotes and carriage returns that stand where none may; unless a quote is the begin of a field, and the
        file ``goes_on``."""
        at = self._lexer.stray(text)
        if at < 0:
            self._refuse_return(text)
            return
        around = near(text[max(0, at - _NEAR_BYTES) : at + 2 * _NEAR_BYTES])
        if not self._lexer.opens(text, at):
            raise FormatError(
                f"a quote within a field{around}. A field with quotes stands in quotes, each quote in it doubled",
                self._place(at, text),
                "quote",
            )
        if not goes_on:
            raise FormatError(f"a quote that never ends{around}. The file is cut off", self._place(at, text), "open")

    def _refuse_return(self, text: bytes) -> None:
        at = self._lexer.lone_return(text)
        if at >= 0:
            raise FormatError(
                "a carriage return outside of quotes that ends no row. Rows end with a line feed, or with both",
                self._place(at, text),
                "return",
            )

    def _place(self, at: int, text: bytes = b"") -> str:
        rows = self._lexer.bare(text[:at]).count(b"\n")
        return f"row {self._given + 1 + rows:,}"


class _Parser:
    """pyarrow's, for blocks of whole rows. Its streaming reader works in this thread; the other one hands each block to
    another thread and back."""

    def __init__(self, dialect: Dialect, width: int, wanted: Sequence[int]) -> None:
        import pyarrow as pa
        from pyarrow import csv

        places = [f"f{place}" for place in range(width)]
        self._open = csv.open_csv
        self._read = csv.ReadOptions(use_threads=False, block_size=_WHOLE, column_names=places)
        self._parse = csv.ParseOptions(
            delimiter=dialect.delimiter,
            quote_char=dialect.quote_char or False,
            double_quote=dialect.doubled,
            escape_char=dialect.escape_char or False,
            newlines_in_values=True,
            ignore_empty_lines=width > 1 or not dialect.blank_is_null,
        )
        self._convert = csv.ConvertOptions(
            column_types=dict.fromkeys(places, pa.string()),
            null_values=list(dialect.nulls),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            include_columns=[places[place] for place in wanted],
            check_utf8=False,  # the whole block is UTF-8
        )

    def columns(self, block: bytes, row: int) -> Iterator[list[pa.Array]]:
        """The columns of a block, which comes after ``row`` rows."""
        import pyarrow as pa

        if block.startswith(_BOM):
            block = _BOM + block  # of a field: pyarrow takes one off
        try:
            for batch in self._open(pa.BufferReader(block), self._read, self._parse, self._convert):
                if batch.num_rows:
                    yield batch.columns
        except pa.ArrowInvalid as error:
            raise _broken(str(error), row) from None


def _broken(error: str, row: int) -> FormatError:
    """What pyarrow says of a broken row."""
    found = re.search(r"Row #(\d+): Expected (\d+) columns?, got (\d+)(?:: (.*))?", error, re.DOTALL)
    if found is None:
        return FormatError("it is no CSV as it should be", f"behind row {row:,}")
    return FormatError(
        f"{found[3]} fields, where {found[2]} columns are expected{near(found[4] or '')}",
        f"row {row + int(found[1]):,}",
        "width",
    )


def _shown(encoding: str) -> str:
    return encoding.upper() if encoding.isascii() else encoding


class _Utf8:
    """A text file's bytes in UTF-8, whatever it is written in, without byte order mark."""

    def __init__(self, source: Any, encoding: str) -> None:
        self._source, self._encoding = source, encoding
        same = codecs.lookup(encoding).name in ("utf-8", "utf-8-sig", "ascii")
        self._decoder = None if same else codecs.getincrementaldecoder(encoding)()
        self._begin: bytes | None = None
        self.is_marked = False

    def read(self, size: int) -> bytes:
        """Some bytes; b"" at the end."""
        if self._begin is None:
            begin = b""
            while len(begin) < HEAD_BYTES and (piece := self._some(max(size, HEAD_BYTES))):
                begin += piece
            self.is_marked = begin.startswith(_BOM)
            self._begin = begin.removeprefix(_BOM)
        if self._begin:
            given, self._begin = self._begin, b""
            return given
        return self._some(size)

    def _some(self, size: int) -> bytes:
        while True:
            piece: bytes = self._source.read(max(size, _READ_BYTES) if self._decoder else size)
            if self._decoder is None:
                return piece
            try:
                text = self._decoder.decode(piece, not piece).encode("utf-8", "surrogatepass")
            except UnicodeError as error:
                reason = getattr(error, "reason", error)
                raise FormatError(f"it is no text in {_shown(self._encoding)} ({reason})", kind="encoding") from None
            if text or not piece:
                return text
