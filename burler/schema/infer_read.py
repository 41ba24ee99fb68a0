"""Samples as they lie about: JSON lines, arrays, pretty-printed documents, a tap's messages, gzipped or not.

Input is read in blocks. Lines and arrays of any length take flat memory; a single document is held whole.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, BinaryIO, NoReturn

import msgspec

from burler.errors import DataError
from burler.formats import FormatError
from burler.formats.compression import Decompressed
from burler.formats.names import kind_of
from burler.singer.lines import LineCut

BLOCK_BYTES = 1 << 20
_BOM = codecs.BOM_UTF8
_TORN = 12  # characters before the end of a buffer within which a literal or an escape may be cut off
_SPACE = re.compile(r"[ \t\r\n]*")


@dataclass(frozen=True, slots=True)
class Batch:
    """Documents, and the line on which each begins."""

    lines: Sequence[int]
    values: Sequence[Any]


def read_documents(file: BinaryIO) -> Iterator[Batch]:
    """The JSON documents of a file in batches; the elements of an array that is a whole document are documents too.

    Raises:
        DataError: not JSON, cut off, not UTF-8, a broken gzip file; with the line's number.
    """
    blocks = _blocks(file)
    parts = _beginning(blocks)
    text = b"".join(parts)
    stripped = text.lstrip()
    if stripped.startswith(b"[") or _first_line_is_a_part(stripped):
        yield from _Scanner(_chain(text, blocks)).documents()
    else:
        yield from _lines(_chain(text, blocks))


def _beginning(blocks: Iterator[bytes]) -> list[bytes]:
    """Blocks up to the first letter after the first line, or to a first letter that begins an array."""
    parts: list[bytes] = []
    begun = ended = False
    held = b""
    for read in blocks:
        block = held + read
        held = b""
        rest = block
        if not begun:
            if not parts:
                if len(block) < len(_BOM) and _BOM.startswith(block):
                    held = block  # a pipe may give it byte by byte
                    continue
                block = block.removeprefix(_BOM)
            rest = block.lstrip()
            if not rest:  # of spaces before the first letter we keep the number of lines alone
                parts.append(b"\n" * block.count(b"\n"))
                continue
            begun = True
            if rest.startswith(b"["):
                parts.append(block)
                break
        parts.append(block)
        if not ended:
            _, line_end, rest = rest.partition(b"\n")
            ended = bool(line_end)
        if ended and rest.strip():
            break
    return [*parts, held] if held else parts


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _first_line_is_a_part(text: bytes) -> bool:
    """Whether the first line is the beginning of a document that goes on below."""
    line, _, rest = text.partition(b"\n")
    if not rest.strip():
        return False
    try:
        _decode(line)
    except json.JSONDecodeError as error:  # what goes on below is not torn within a word
        return error.pos >= len(line.rstrip().decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return False
    return False


class _AsItComes:
    """A file that gives what it has at hand, as a pipe does. Its end is asked for once: a terminal would wait anew."""

    def __init__(self, file: BinaryIO) -> None:
        self._read = getattr(file, "read1", file.read)
        self._has_ended = False

    def read(self, size: int) -> bytes:
        piece: bytes = b"" if self._has_ended else self._read(size)
        self._has_ended = not piece
        return piece


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    """What a file holds, unzipped if it is gzip (also of several members)."""
    source = Decompressed(_AsItComes(file), None)
    if kind_of(source.head()) == "gzip":
        source = Decompressed(source, "gzip")
    try:
        while block := source.read1(BLOCK_BYTES):
            yield block
    except FormatError as error:
        raise DataError(str(error)) from None


_decode_lines = msgspec.json.Decoder().decode_lines


def _lines(blocks: Iterator[bytes]) -> Iterator[Batch]:
    """Documents of one line each."""
    number, cut = 1, LineCut()
    for block in blocks:
        if whole := cut.take(block):
            yield _batch(whole, number)
            number += whole.count(b"\n")
    last = cut.rest()
    if last.strip():
        yield _batch(last, number, at_end=True)


def _batch(whole: bytes, first: int, *, at_end: bool = False) -> Batch:
    try:
        values = _decode_lines(whole)
        count = whole.count(b"\n") + at_end
        if len(values) == count:
            return Batch(range(first, first + count), values)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        pass  # find out which line, or take what C has no room for
    numbers, values = [], []
    for number, line in enumerate(whole.split(b"\n"), first):
        if line.strip():
            numbers.append(number)
            values.append(_line(line, number, at_end))
    return Batch(numbers, values)


def _line(line: bytes, number: int, at_end: bool) -> Any:
    try:
        return _decode(line)
    except json.JSONDecodeError as error:
        if at_end and _is_torn(error, line.decode("utf-8", "replace")):
            raise DataError(f"line {number}: the input ends in the middle of this line.") from None
        raise DataError(f"line {number}, column {error.pos + 1}: not JSON: {error.msg}.") from None
    except UnicodeDecodeError:
        raise DataError(f"line {number}: not UTF-8.") from None
    except RecursionError:
        raise DataError(f"line {number}: nested too deep.") from None
    except ValueError as error:  # NaN; an integer of thousands of digits
        raise DataError(f"line {number}: {error}.") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number that JSON can write")


_json = json.JSONDecoder(parse_float=Decimal, parse_constant=_refuse_constant)


def _decode(line: bytes) -> Any:
    try:
        return msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return _json.decode(line.decode())


def _is_torn(error: json.JSONDecodeError, text: str) -> bool:
    """Whether a document that could not be read may be whole if more text came."""
    return error.msg.startswith("Unterminated string") or error.pos >= len(text) - _TORN


class _Scanner:
    """Reads documents one after the other, whatever their line ends; arrays element by element."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._text = ""
        self._at = 0
        self._lines_gone = 1
        self._counted = (0, 0)

    def documents(self) -> Iterator[Batch]:
        while letter := self._peek():
            if letter != "[":
                yield Batch([self._line()], [self._value()])
                continue
            yield from self._elements()

    def _elements(self) -> Iterator[Batch]:
        self._at += 1
        if self._peek() == "]":
            self._at += 1
            return
        while True:
            self._need()
            line = self._line()
            yield Batch([line], [self._value()])
            letter = self._need()
            self._at += 1
            if letter == "]":
                return
            if letter != ",":
                raise DataError(f"line {self._line()}: ',' or ']' was expected after an element, not {letter!r}.")

    def _need(self) -> str:
        letter = self._peek()
        if not letter:
            raise DataError(f"line {self._line()}: the input ends in the middle of an array.")
        return letter

    def _peek(self) -> str:
        """The next letter that is no space; empty at the end of input."""
        while True:
            found = _SPACE.match(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def _value(self) -> Any:
        size = BLOCK_BYTES
        while True:
            try:
                value, self._at = _json.raw_decode(self._text, self._at)
                return value
            except json.JSONDecodeError as error:
                if not _is_torn(error, self._text) or not self._more(size):
                    line = self._line(min(error.pos, len(self._text)))
                    torn = error.pos >= len(self._text) or error.msg.startswith("Unterminated")
                    raise DataError(
                        f"line {line}: the input ends in the middle of a document."
                        if torn
                        else f"line {line}: not JSON: {error.msg}."
                    ) from None
                size *= 2
            except RecursionError:
                raise DataError(f"line {self._line()}: nested too deep.") from None
            except ValueError as error:
                raise DataError(f"in the document that begins on line {self._line()}: {error}.") from None

    def _more(self, size: int = 1) -> bool:
        """Read at least so many bytes; False at the end of input."""
        parts, got = [], 0
        while got < size and (block := next(self._blocks, b"")):
            parts.append(block)
            got += len(block)
        try:
            new = self._utf8.decode(b"".join(parts), final=not got)
        except UnicodeDecodeError:
            raise DataError(f"after line {self._line(len(self._text))}: not UTF-8.") from None
        self._lines_gone = self._line()
        self._text, self._at = self._text[self._at :] + new, 0
        self._counted = (0, 0)
        return got > 0

    def _line(self, at: int | None = None) -> int:
        """The number of the line that a place of the buffer is on; counts on from the last time."""
        place = self._at if at is None else at
        start, lines = self._counted if self._counted[0] <= place else (0, 0)
        lines += self._text.count("\n", start, place)
        self._counted = (place, lines)
        return self._lines_gone + lines
