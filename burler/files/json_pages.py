"""JSON documents as pages of bytes, as a whole. Rows never become dicts here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from burler.errors import FileError
from burler.formats.compression import PIECE_BYTES
from burler.formats.jsonl import why_no_object
from burler.pages import JsonPage

_BOM = b"\xef\xbb\xbf"
_BROKEN = (msgspec.DecodeError, UnicodeError, RecursionError)
_one = msgspec.json.Decoder(msgspec.Raw).decode


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
        return found is not None and not why_no_object(found[1], allow_nan=True)
