"""Where fields in quotes begin and end, and whether quotes stand where they may: at the begin and the end of a field,
and doubled inside of it. One rule for all CSV that burler reads: whatever else there is, nobody knows where its row
ends."""

from __future__ import annotations

import re
from dataclasses import dataclass

from burler.errors import FileError
from burler.files.csv_options import Csv
from burler.log_settings import near

_NEAR_BYTES = 20


class Lexer:
    """Finds fields in quotes.

    Args:
        quote: None: there are none.
        is_doubled: whether a quote inside of a field stands twice; else none may stand there.
        is_strict: whether a field ends with its quote; else with the delimiter or line end behind it.
    """

    def __init__(self, delimiter: str, quote: str | None, *, is_doubled: bool = True, is_strict: bool = True) -> None:
        self._quote, self._is_strict = (quote or "").encode(), is_strict
        if self._quote:
            names = {b"q": re.escape(self._quote), b"a": re.escape(delimiter.encode() + b"\r\n")}
            # From a quote behind a delimiter or a line end to one before such, doubled quotes inside.
            doubled = b"(?:%(q)s%(q)s[^%(q)s]*+)*+" if is_doubled else b""
            begun = (rb"%(q)s(?<![^%(a)s]%(q)s)[^%(q)s]*+" + doubled) % names
            self._begun = re.compile(begun)
            end = rb"%(q)s(?![^%(a)s])" if is_strict else rb"(?:%(q)s[^%(a)s]*+|(?P<never>\Z))"
            self._quoted = re.compile(begun + end % names)

    def bare(self, block: bytes) -> bytes:
        """A block with a dot in place of each field in quotes."""
        return self._quoted.sub(b".", block) if self._quote and self._quote in block else block

    def end_of_first(self, data: bytes) -> int:
        """Where the first row ends; 0 if that is not to be seen."""
        at = inside = 0
        while end := data.find(b"\n", at) + 1:
            inside += data.count(self._quote, at, end) if self._quote else 0
            if inside % 2 == 0:
                return end
            at = end
        return 0

    def end_of_last(self, data: bytes) -> int:
        """Where the last whole row ends; 0 if there is none."""
        end = data.rfind(b"\n") + 1
        if not self._quote:
            return end
        odd = data.count(self._quote, 0, end) % 2
        while odd:  # within quotes: go back to a line end before them
            before = data.rfind(b"\n", 0, data.rfind(self._quote, 0, end)) + 1
            odd = (odd - data.count(self._quote, before, end)) % 2
            end = before
        return end

    def stray(self, block: bytes) -> int:
        """Where the first quote stands that belongs to no field in quotes (where that is not strict: the quote of a
        field that does not end); -1 if none does."""
        if not self._quote or (self._is_strict and self._quote not in self.bare(block)):
            return -1
        at = 0
        for found in self._quoted.finditer(block):
            if found.lastgroup == "never":
                return found.start()
            if self._is_strict and (place := block.find(self._quote, at, found.start())) >= 0:
                return place
            at = found.end()
        return block.find(self._quote, at) if self._is_strict else -1

    def opens(self, block: bytes, at: int) -> bool:
        """Whether a quote begins a field that does not end in the block."""
        begun = self._begun.match(block, at)
        return begun is not None and begun.end() == len(block)

    def lone_return(self, block: bytes) -> int:
        """Where a carriage return stands outside of quotes that is not before a line feed or the end; or -1."""
        ends = re.compile(rb"\r(?!\n|\Z)")
        if not ends.search(self.bare(block)):
            return -1
        at = 0
        for found in self._quoted.finditer(block) if self._quote else ():
            if lone := re.search(rb"\r(?!\n)", block[at : found.start()]):
                return at + lone.start()
            at = found.end()
        lone = ends.search(block, at)
        return lone.start() if lone else at


class Quotes:
    """Looks at the quotes of a file, while pyarrow reads it: pyarrow takes any. Needs pyarrow.

    Args:
        file: its name, for errors.
    """

    def __init__(self, csv: Csv, file: str) -> None:
        self._file = file
        self._is_strict = csv.strict_quotes
        self._lexer = Lexer(csv.delimiter, csv.quotechar, is_doubled=csv.doublequote, is_strict=csv.strict_quotes)
        self._quote, self._escape = (one.encode() if one else b"" for one in (csv.quotechar, csv.escapechar))
        self._escaped = re.compile(re.escape(self._escape) + b".", re.DOTALL)
        self._half = b""  # an escape whose letter comes with the next piece
        self._whole, self._begun = _patterns(csv) if csv.quotechar else ("", "")
        self._context = b"\n"  # says what the next bytes may be: the last one, or the begin of a field that goes on
        self._held = b""  # quotes of which the next bytes say what they are
        self._near = b""  # the last bytes, for errors
        self._lines = 0  # line ends in all bytes before
        self._open: _Text | None = None  # in which a field began that has not ended

    def skip(self, piece: bytes) -> None:
        """Leave out bytes before the first row."""
        self._lines += _line_ends(piece)

    def look(self, piece: bytes) -> None:
        """Look at the next bytes.

        Raises:
            FileError: a quote within a field.
        """
        if not self._quote:
            return
        text = self._held + self._unescaped(piece)
        body = text.rstrip(self._quote)
        self._held = text[len(body) :]
        if self._quote in body:
            self._check(body)
        self._lines += _line_ends(body)
        self._near = (self._near + body[-_NEAR_BYTES:])[-_NEAR_BYTES:]
        self._context = b"\n" + self._quote if self._open else body[-1:] or self._context

    def end(self) -> None:
        """The file has ended.

        Raises:
            FileError: a quote within a field, or one that never ends.
        """
        if self._held:
            self._check(self._held)
        if self._open:
            raise FileError(
                f"file '{self._file}': its last row has a quote that never ends, in {self._place(self._open)}: the "
                "file is cut off, or a quote in it is a letter like others (csv=Csv(quotechar=None))."
            )

    def _unescaped(self, piece: bytes) -> bytes:
        """Dots in place of escapes and what they escape."""
        if not self._escape:
            return piece
        text = self._escaped.sub(b"..", self._half + piece)
        self._half = self._escape if text.endswith(self._escape) else b""
        return text.removesuffix(self._escape)

    def _check(self, body: bytes) -> None:
        text = _Text(self._context + body, len(self._context), self._lines, self._near)
        if not self._is_strict:
            is_open = not _matches(self._whole, text.data)
        elif is_open := text.data.count(self._quote) % 2 == 1:
            self._refuse_stray(self._begun, text)
        else:
            self._refuse_stray(self._whole, text)
        if not is_open:
            self._open = None
        elif self._open is None or not self._lexer.opens(text.data, 1):
            self._open = text

    def _refuse_stray(self, pattern: str, text: _Text) -> None:
        if _matches(pattern, text.data):
            return
        if self._open and self._lexer.stray(text.data) == 1:
            text = self._open
        raise FileError(
            f"file '{self._file}', {self._place(text)}: a quote within a field. A field with quotes in it stands in "
            "quotes, each of them twice.\n"
            "  Where quotes are letters like others: csv=burler.files.Csv(quotechar=None). Where more may stand behind "
            "the quote that ends a field: strict_quotes=False.",
        )

    def _place(self, text: _Text) -> str:
        """Where the first quote stands that is wrong."""
        at = self._lexer.stray(text.data)
        line = text.lines_before + _line_ends(text.data[text.begin : at]) + 1
        place = len(text.near) + at - text.begin
        around = (text.near + text.data[text.begin :])[max(0, place - _NEAR_BYTES) : place + 2 * _NEAR_BYTES]
        return f"line {line:,}{near(around)}"


@dataclass(frozen=True, slots=True)
class _Text:
    """Some text, behind what decides what its first byte may be.

    Attributes:
        begin: of the text in ``data``.
        lines_before: how many line ends are before it in the file.
        near: the bytes before it.
    """

    data: bytes
    begin: int
    lines_before: int
    near: bytes


def _patterns(csv: Csv) -> tuple[str, str]:
    """What text without escapes is, for pyarrow, which looks at it thirty times as fast as ``re``: whole fields; and
    those with the begin of one in quotes."""
    quote, delimiter = (f"\\x{ord(one):02x}" for one in (csv.quotechar or "", csv.delimiter))
    around = rf"{delimiter}\r\n"
    begun = rf"{quote}[^{quote}]*" + (rf"(?:{quote}{quote}[^{quote}]*)*" if csv.doublequote else "")
    if csv.strict_quotes:
        field = rf"(?:[^{quote}{around}]*|{begun}{quote})"
    else:
        behind = rf"(?:[^{quote}{around}][^{around}]*)?" if csv.doublequote else rf"[^{around}]*"
        field = rf"(?:(?:[^{quote}{around}][^{around}]*)?|{begun}{quote}{behind})"
    fields = rf"(?s)\A(?:{field}[{around}])*"
    return rf"{fields}{field}\z", rf"{fields}{begun}\z"


def _matches(pattern: str, text: bytes) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    return bool(pc.match_substring_regex(pa.array([text], pa.binary()), pattern)[0].as_py())


def _line_ends(text: bytes) -> int:
    return text.count(b"\n") or text.count(b"\r")
