"""The bytes of a CSV file in blocks of whole rows, each checked to be CSV as it should be.

Quotes that stand elsewhere than ``burler.files.csv_quotes`` has them are refused here, so that nothing behind needs to
guess where a row ends.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from typing import Any, Protocol

from burler.batch.csv_options import CsvOptions
from burler.errors import BatchError
from burler.files.csv_quotes import Lexer

_BLOCK_BYTES = 1 << 20


class Text(Protocol):
    """Bytes of text without byte order mark."""

    def read(self, size: int, /) -> bytes:
        """Some of them, at most so many; b"" at the end."""


class Blocks:
    """The rows of a file.

    Args:
        block_bytes: how much is read at once, at the least.

    Attributes:
        row: how many rows are behind us, with the header; whoever takes a block adds its rows.
    """

    def __init__(self, text: Text, options: CsvOptions, block_bytes: int | None = None) -> None:
        self._text = text
        self._options = options
        self._block_bytes = block_bytes or _BLOCK_BYTES
        self._lexer = Lexer(options.delimiter, options.quote_char)
        self._ahead = b""
        self._at_end = False
        self.row = 0

    def first(self, *, may_be_empty: bool = False) -> bytes | None:
        """The first row without its line end, which stays where it is; None for a file without rows.

        Args:
            may_be_empty: a line with nothing in it is a row, as in files of one column; else such lines before the
                first row are left out.
        """
        if may_be_empty:
            self._fill(self._block_bytes)
        else:
            self._skip_empty()
        if not self._ahead:
            return None
        while not (end := self._lexer.end_of_first(self._ahead)):
            if self._at_end:
                end = len(self._ahead)
                break
            self._refuse_stray(self._ahead, goes_on=True)
            self._fill(2 * len(self._ahead))
        self._check(self._ahead[:end])
        return _without_end(self._ahead[:end])

    def line_end(self) -> str:
        """What ends the first row, once that is known."""
        end = self._lexer.end_of_first(self._ahead)
        return "\r\n" if self._ahead[:end].endswith(b"\r\n") else "\n"

    def drop_first(self) -> None:
        """Leave the first row out: it is the header."""
        end = self._lexer.end_of_first(self._ahead) or len(self._ahead)
        self._ahead = self._ahead[end:]
        self.row += 1

    def is_at_end(self) -> bool:
        """Whether there is nothing more."""
        self._fill(1)
        return not self._ahead

    def fields(self, row: bytes) -> list[str]:
        """The fields of a header."""
        quote = self._options.quote_char
        lines = re.findall(r"[^\n]*\n|[^\n]+", str(row, "utf-8"))
        quoting: Any = csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE
        rows = csv.reader(lines, delimiter=self._options.delimiter, quotechar=quote, quoting=quoting, strict=True)
        try:
            return next(rows, [])
        except csv.Error as error:
            raise BatchError(f"row 1 is no CSV as it should be: {error}.") from None

    def width(self, row: bytes) -> int:
        """How many fields a row has."""
        return self._lexer.bare(row).count(self._options.delimiter.encode()) + 1

    def __iter__(self) -> Iterator[bytes]:
        """Yield blocks of whole rows; the last row may have no line end.

        Raises:
            BatchError: a quote where none may stand, or one that never ends; text that is no UTF-8.
        """
        while True:
            self._fill(self._block_bytes)
            while not self._at_end and not (end := self._lexer.end_of_last(self._ahead)):
                self._refuse_stray(self._ahead, goes_on=True)
                self._fill(2 * len(self._ahead))
            if self._at_end:
                end = len(self._ahead)
            if not end:
                return
            block, self._ahead = self._ahead[:end], self._ahead[end:]
            self._check(block)
            yield block

    def _skip_empty(self) -> None:
        """Leave out lines with nothing in them before the first row."""
        self._fill(self._block_bytes)
        while not (rest := self._ahead.lstrip(b"\r\n")) and not self._at_end:
            self._ahead = b""
            self._fill(self._block_bytes)
        self._ahead = rest

    def _fill(self, size: int) -> None:
        """Have so many bytes ahead, fewer only at the end."""
        pieces, there = [self._ahead], len(self._ahead)
        while not self._at_end and there < size:
            piece = self._text.read(size - there)
            self._at_end = not piece
            pieces.append(piece)
            there += len(piece)
        self._ahead = b"".join(pieces)

    def _check(self, block: bytes) -> None:
        try:
            str(block, "utf-8")
        except UnicodeDecodeError as error:
            raise BatchError(
                f"{self._near(block, error.start)}: it is no text in UTF-8 ({error.reason}). Write the file in UTF-8."
            ) from None
        self._refuse_stray(block)
        if b"\r" in block and (lone := self._lexer.lone_return(block)) >= 0:
            raise BatchError(
                f"{self._near(block, lone)}: a carriage return outside of quotes that ends no row. "
                "Rows end with a line feed, or with both."
            )

    def _refuse_stray(self, block: bytes, *, goes_on: bool = False) -> None:
        """Refuse quotes that belong to no field in quotes; unless it is the begin of one, and the file ``goes_on``."""
        at = self._lexer.stray(block)
        if at < 0:
            return
        if not self._lexer.opens(block, at):
            raise BatchError(
                f"{self._near(block, at)}: a quote within a field. A field with quotes stands in quotes, each quote in "
                "it doubled; where quotes are letters like others, the message says 'quote_char': null."
            )
        if not goes_on:
            raise BatchError(f"{self._near(block, at)}: a quote that never ends. The file is cut off.")

    def _near(self, block: bytes, at: int) -> str:
        """The place in words."""
        row = self.row + 1 + self._lexer.bare(block[:at]).count(b"\n")
        return f"row {row:,}"


def _without_end(row: bytes) -> bytes:
    return row.removesuffix(b"\n").removesuffix(b"\r")
