"""How CSV files are written: the dialect as data, the columns, and where fields in quotes begin and end."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["text", "number", "boolean", "json"]
Narrow = Literal["integer", "date", "date-time"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        kind: ``text`` as it is, in quotes; ``number`` and ``boolean`` as JSON's source text, bare; ``json`` as JSON
            text in quotes.
        narrow: what alone its cells may hold, of the numbers or texts that its kind takes.
    """

    name: str
    kind: Kind
    narrow: Narrow | None = None


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a CSV file is written; as RFC 4180 has it if nothing is said.

    Attributes:
        delimiter: one letter of ASCII between fields.
        quote_char: one letter of ASCII round fields; None: quotes are letters like others.
        doubled: whether a quote in a field in quotes is written twice.
        escape_char: a letter that takes the meaning from the next one.
        strict: whether quotes stand at the begin and the end of a field and doubled inside of it, and nowhere else, and
            rows end with a line feed. Else a quote that begins no field is a letter, a field goes on behind the quote
            that ends it, and a carriage return ends a row as well.
        encoding: of the text, as Python names it.
        nulls: texts that mean null where they stand without quotes.
        skip_lines: how many lines before the first row are no CSV.
        blank_is_null: whether a blank line is a row of a file of one column; else it is none in any file.
        line_end: what a row ends with where it is written.

    Raises:
        ValueError: a dialect that can't be; says which part.
    """

    delimiter: str = ","
    quote_char: str | None = '"'
    doubled: bool = True
    escape_char: str | None = None
    strict: bool = True
    encoding: str = "utf-8"
    nulls: tuple[str, ...] = ("",)
    skip_lines: int = 0
    blank_is_null: bool = False
    line_end: str = "\n"

    def __post_init__(self) -> None:
        for name, value in (
            ("delimiter", self.delimiter),
            ("quote_char", self.quote_char),
            ("escape_char", self.escape_char),
        ):
            if value is None and name != "delimiter":
                continue
            if not isinstance(value, str) or len(value) != 1 or not value.isascii() or value in "\r\n\0":
                raise ValueError(f"{name} must be one letter of ASCII, such as ',', a tab or '|', not {value!r:.60}")
        if self.delimiter in (self.quote_char, self.escape_char):
            raise ValueError(f"delimiter and quote can't both be {self.delimiter!r}")
        try:
            if not codecs.lookup(self.encoding)._is_text_encoding:  # "base64" and the like are codecs, too
                raise LookupError
        except (LookupError, TypeError):
            raise ValueError(f"encoding {self.encoding!r:.60} is not known to Python") from None


class Lexer:
    """Finds rows and fields in quotes in the text of a dialect. One rule for all CSV that burler reads."""

    def __init__(self, dialect: Dialect) -> None:
        self._quote, self._is_strict = (dialect.quote_char or "").encode(), dialect.strict
        self._escaped = (
            re.compile(re.escape(dialect.escape_char.encode()) + b".", re.DOTALL) if dialect.escape_char else None
        )
        self._delimiter, self._is_doubled = re.compile(re.escape(dialect.delimiter.encode())), dialect.doubled
        self._line_end = re.compile(b"\n" if dialect.strict else b"\r\n?|\n")
        self._whole = ""
        if self._quote:
            self._quoted, self._begun = _fields(dialect)
            self._whole = _whole_text(dialect)

    def plain(self, text: bytes) -> bytes:
        """Text with dots in place of escapes and what they escape. All other methods take such text."""
        return text if self._escaped is None else self._escaped.sub(b"..", text)

    def bare(self, text: bytes) -> bytes:
        """Text with a dot in place of each field in quotes."""
        return self._quoted.sub(b".", text) if self._quote and self._quote in text else text

    def end_of_line(self, text: bytes) -> int:
        """Where the first line ends, whatever is in it; 0 if that is not to be seen."""
        found = self._line_end.search(text)
        return found.end() if found else 0

    def end_of_first(self, text: bytes) -> int:
        """Where the first row ends; 0 if that is not to be seen."""
        if not self._is_strict:
            return self.end_of_line(self._covered(text))
        at = inside = 0
        while end := text.find(b"\n", at) + 1:
            inside += text.count(self._quote, at, end) if self._quote else 0
            if inside % 2 == 0:
                return end
            at = end
        return 0

    def end_of_last(self, text: bytes) -> int:
        """Where the last whole row ends; 0 if there is none."""
        if not self._is_strict:
            end = _last_line_end(text)
            return end if self.is_whole(text[:end]) else _last_line_end(self._covered(text))
        end = text.rfind(b"\n") + 1
        if not self._quote:
            return end
        odd = text.count(self._quote, 0, end) % 2
        while odd:  # within quotes: go back to a line end before them
            before = text.rfind(b"\n", 0, text.rfind(self._quote, 0, end)) + 1
            odd = (odd - text.count(self._quote, before, end)) % 2
            end = before
        return end

    def is_whole(self, text: bytes) -> bool:
        """Whether all quotes stand where they may, and none opens a field that does not end. pyarrow looks at it,
        thirty times as fast as ``re``."""
        if not self._quote or self._quote not in text:
            return True
        import pyarrow as pa
        import pyarrow.compute as pc

        return bool(pc.match_substring_regex(pa.array([text], pa.binary()), self._whole)[0].as_py())

    def stray(self, text: bytes) -> int:
        """Where the first quote stands that belongs to no field in quotes; -1 if none does."""
        if not self._quote:
            return -1
        at = 0
        for found in self._quoted.finditer(text):
            if found.lastgroup == "never":
                return found.start()
            if self._is_strict and (place := text.find(self._quote, at, found.start())) >= 0:
                return place
            at = found.end()
        return text.find(self._quote, at) if self._is_strict else -1

    def opens(self, text: bytes, at: int) -> bool:
        """Whether a quote begins a field that does not end in the text."""
        begun = self._begun.match(text, at)
        return begun is not None and begun.end() == len(text)

    def lone_return(self, text: bytes) -> int:
        """Where a carriage return stands outside of quotes that ends no row; or -1."""
        if not self._is_strict or b"\r" not in text:
            return -1
        ends = re.compile(rb"\r(?!\n|\Z)")
        if not ends.search(self.bare(text)):
            return -1
        at = 0
        for found in self._quoted.finditer(text) if self._quote else ():
            if lone := re.search(rb"\r(?!\n)", text[at : found.start()]):
                return at + lone.start()
            at = found.end()
        lone = ends.search(text, at)
        return lone.start() if lone else at

    def fields(self, row: bytes) -> list[bytes]:
        """The fields of a row without its line end."""
        plain = self.plain(row)
        cuts = [found.start() for found in self._delimiter.finditer(self._covered(plain))]
        begins, ends = [0, *(cut + 1 for cut in cuts)], [*cuts, len(row)]
        return [self._field(row[begin:end], plain[begin:end]) for begin, end in zip(begins, ends, strict=True)]

    def _field(self, cell: bytes, plain: bytes) -> bytes:
        begun = self._begun.match(plain) if self._quote else None
        if begun is not None:
            inside, behind = cell[1 : begun.end()], cell[begun.end() + 1 :]
            cell = (inside.replace(self._quote * 2, self._quote) if self._is_doubled else inside) + behind
        return cell if self._escaped is None else self._escaped.sub(lambda found: found[0][1:], cell)

    def _covered(self, text: bytes) -> bytes:
        """Text of the same length with dots over each field in quotes."""
        if not self._quote or self._quote not in text:
            return text
        return self._quoted.sub(lambda found: b"." * (found.end() - found.start()), text)


def _last_line_end(text: bytes) -> int:
    """Where the last line ends, with line feeds and carriage returns; one at the very end may be half of two."""
    return max(text.rfind(b"\n"), text.rfind(b"\r", 0, max(0, len(text) - 1))) + 1


def _fields(dialect: Dialect) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """A field in quotes, and the begin of one: from a quote behind a delimiter or a line end to one before such,
    doubled quotes inside. Where it need not end with its quote, one that never ends goes on to the end."""
    names = {
        b"q": re.escape((dialect.quote_char or "").encode()),
        b"a": re.escape(dialect.delimiter.encode() + b"\r\n"),
    }
    doubled = b"(?:%(q)s%(q)s[^%(q)s]*+)*+" if dialect.doubled else b""
    begun = (rb"%(q)s(?<![^%(a)s]%(q)s)[^%(q)s]*+" + doubled) % names
    end = rb"%(q)s(?![^%(a)s])" if dialect.strict else rb"(?:%(q)s[^%(a)s]*+|(?P<never>\Z))"
    return re.compile(begun + end % names), re.compile(begun)


def _whole_text(dialect: Dialect) -> str:
    """The pattern of text in which all fields in quotes are whole, for pyarrow."""
    quote, delimiter = (f"\\x{ord(one):02x}" for one in (dialect.quote_char or "", dialect.delimiter))
    around = rf"{delimiter}\r\n"
    begun = rf"{quote}[^{quote}]*" + (rf"(?:{quote}{quote}[^{quote}]*)*" if dialect.doubled else "")
    if dialect.strict:
        field = rf"(?:[^{quote}{around}]*|{begun}{quote})"
    else:
        behind = rf"(?:[^{quote}{around}][^{around}]*)?" if dialect.doubled else rf"[^{around}]*"
        field = rf"(?:(?:[^{quote}{around}][^{around}]*)?|{begun}{quote}{behind})"
    return rf"(?s)\A(?:{field}[{around}])*{field}\z"
