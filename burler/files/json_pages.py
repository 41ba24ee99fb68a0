"""JSON files as pages of bytes: lines in pieces that end with a line, documents whole. Rows never become dicts here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from burler.errors import FileError
from burler.formats.compression import PIECE_BYTES
from burler.log_settings import near
from burler.pages import JsonPage

_BOM = b"\xef\xbb\xbf"
_BROKEN = (msgspec.DecodeError, UnicodeError, RecursionError)
_lines = msgspec.json.Decoder(msgspec.Raw).decode_lines
_one = msgspec.json.Decoder(msgspec.Raw).decode


def json_line_pages(source: Any, file: str, *, max_line_bytes: int) -> Iterator[JsonPage]:
    """JSON lines, about a megabyte at a time.

    Args:
        source: an object with ``read(size)``.
        file: its name, for errors.

    Raises:
        FileError: a line that is no JSON object, one longer than ``max_line_bytes``, a file that ends within a line;
            with the line's number. The rows before it were given.
    """
    number = 1
    for piece in _pieces(source, file, max_line_bytes):
        good, fact = _checked(piece, number)
        if good.strip():
            yield JsonPage(good, ())
        if fact:
            raise FileError(f"file '{file}', {fact}")
        number += piece.count(b"\n")


def _pieces(source: Any, file: str, limit: int) -> Iterator[bytes]:
    """The file in pieces that end with a line."""
    begun: list[bytes] = []
    size, first = 0, True
    while block := source.read(PIECE_BYTES):
        if first:
            while len(block) < len(_BOM) and (more := source.read(PIECE_BYTES)):
                block += more
            block, first = block.removeprefix(_BOM), False
        cut = block.rfind(b"\n") + 1
        if not cut:
            begun.append(block)
            size += len(block)
            if size > limit:
                raise FileError(
                    f"file '{file}' has a line of more than {limit:,} bytes: is it one document, format='json'?\n"
                    "  If the line is right, raise max_line_bytes."
                )
            continue
        yield b"".join((*begun, block[:cut]))
        begun, size = [block[cut:]], len(block) - cut
    if last := b"".join(begun):
        yield last


def _checked(piece: bytes, number: int) -> tuple[bytes, str]:
    """What of a piece can be given, and what is wrong with the line behind it."""
    try:
        piece.decode()
        rows = _lines(piece)
        if all(bytes(row)[:1] == b"{" for row in rows):
            return piece, ""
    except _BROKEN:
        pass
    return _first_bad_line(piece, number)


def _first_bad_line(piece: bytes, number: int) -> tuple[bytes, str]:
    at = 0
    for count, line in enumerate(piece.split(b"\n")):
        fact = _fact(line) if line.strip() else ""
        if fact:
            ends = " The file ends there." if at + len(line) == len(piece) else ""
            return piece[:at], f"line {number + count}: {fact}{near(line.strip())}.{ends}"
        at += len(line) + 1
    return piece, ""


def _fact(line: bytes) -> str:
    """What is wrong with a line; "" for an object."""
    try:
        line.decode()
        row = bytes(_one(line))
    except UnicodeDecodeError as error:
        return f"byte {error.start} is not UTF-8"
    except RecursionError:
        return "nested too deep"
    except msgspec.DecodeError as error:
        try:  # NaN and the like: whether such a row fits is said for the row alone
            found = json.loads(line)
        except (ValueError, RecursionError):
            return "it breaks off" if "truncated" in str(error) else f"no JSON: {error}"
        return "" if isinstance(found, dict) else "no JSON object"
    return "" if row.lstrip()[:1] == b"{" else "no JSON object"


def json_document_page(
    source: Any, file: str, *, records_path: tuple[str, ...], max_document_bytes: int
) -> Iterator[JsonPage]:
    """A file that is one JSON document: an array of rows, an object that leads to them, or one row.

    Raises:
        FileError: no JSON, no way to the rows, a document of more than ``max_document_bytes``.
    """
    parts, size = [], 0
    while block := source.read(PIECE_BYTES):
        parts.append(block)
        size += len(block)
        if size > max_document_bytes:
            raise FileError(
                f"file '{file}' is a JSON document of more than {max_document_bytes:,} bytes, which is read as a "
                "whole.\n  If it holds an object a line: format='jsonl'. Else raise max_document_bytes."
            )
    data = b"".join(parts).removeprefix(_BOM)
    if not data.strip():
        raise FileError(f"file '{file}' is empty; a JSON document should be there.")
    _check_document(data, file, records_path)
    yield JsonPage(data, records_path)


def _check_document(data: bytes, file: str, records_path: tuple[str, ...]) -> None:
    """Refuse what the page's reader would refuse without knowing which file it is in."""
    from burler.pages import PageError, json_rows

    try:
        data.decode()
        found = _one(data)
        for name in records_path:
            found = msgspec.json.decode(found, type=dict[str, msgspec.Raw])[name]
        begin = bytes(found).lstrip()[:1]
        if begin == b"[" or (begin == b"{" and not records_path) or bytes(found).strip() == b"null":
            if begin == b"[" and not all(
                bytes(row)[:1] == b"{" for row in msgspec.json.decode(found, type=list[msgspec.Raw])
            ):
                raise KeyError
            return
    except (*_BROKEN, KeyError, msgspec.ValidationError):
        pass
    try:
        json_rows(JsonPage(data, records_path))
    except PageError as error:
        raise FileError(f"file '{file}': {error}.") from None


_SNIFFED_BYTES = 1 << 20
_FIRST_LINE = re.compile(rb"\s*(\{[^\r\n]*\})[ \t\r]*\n\s*\S")


class Peeked:
    """A source whose first bytes were looked at."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self.head = source.read(_SNIFFED_BYTES)
        self._given = 0

    def read(self, size: int) -> bytes:
        """The next bytes."""
        if self._given < len(self.head):
            piece: bytes = self.head[self._given : self._given + size]
            self._given += len(piece)
            return piece
        rest: bytes = self._source.read(size)
        return rest

    def has_lines(self) -> bool:
        """Whether the first line is an object by itself, and more stands below: JSON lines, whatever the name says."""
        found = _FIRST_LINE.match(self.head.removeprefix(_BOM))
        return found is not None and not _fact(found[1])
