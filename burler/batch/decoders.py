"""Text files of a BATCH, JSON lines and csv, as pages of rows: lines of JSON."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple

import msgspec

from burler.batch.csv_options import CsvOptions, reading_options
from burler.errors import BatchError
from burler.formats import FormatError
from burler.formats.compression import Decompressed
from burler.formats.jsonl import veil
from burler.formats.names import HEAD_BYTES, kind_of, shown_kind
from burler.singer.messages import Batch

_PAGE_BYTES = 1 << 20
MOST_LINE_BYTES = 1 << 28
_BOM = b"\xef\xbb\xbf"
_log = logging.getLogger(__name__)


class _Row(msgspec.Struct, gc=False):
    """An object none of whose fields is kept: the cheapest look at a row that sees each byte of it."""


_objects = msgspec.json.Decoder(_Row).decode_lines
_object = msgspec.json.Decoder(_Row).decode


class Page(NamedTuple):
    """Rows: complete lines, a JSON object on each and nothing around it."""

    lines: bytes
    count: int  # type: ignore[assignment]  # of rows; a tuple's own method of that name is of no use here


def decode(
    raw: BinaryIO,
    batch: Batch,
    schema: Mapping[str, Any] | None,
    *,
    report: Callable[[str], object] | None = None,
    are_shaped: bool = False,
) -> Iterator[Page]:
    """Yield the rows of one file, in pages of about a MiB, as they come: rows before a broken one are given.

    JSON lines come byte for byte as they stand in the file. csv gives each row all fields that the schema declares,
    null for those without a value.

    Args:
        raw: the file as it is stored, open for reading. Who opened it closes it.
        batch: the message: format, compression, options.
        schema: the stream's JSON Schema. JSON lines need none, csv without one is all text.
        report: takes a sentence on what was left out; None: it is logged.
        are_shaped: whoever gets the rows holds their values against the schema: csv leaves that to him.

    Raises:
        BatchError: the file is not what the message says, or broken; says which row. The caller adds stream and URL.
        MissingExtra: a package for the format is missing.
    """
    if batch.format not in ("jsonl", "csv"):
        raise BatchError(f"format '{batch.format:.60}' is unknown. Known: jsonl, csv, parquet, arrow.")
    try:
        source = Decompressed(raw, batch.compression)
        if batch.format == "jsonl":
            yield from _json_lines(_Text(source, batch))
            return
        from burler.batch import csv_read

        options = csv_options(batch.format_options)
        for lines, count in csv_read.pages(source, options, schema, report or _log.warning, are_shaped=are_shaped):
            yield Page(lines, count)
    except FormatError as error:
        raise batch_error(error, batch) from None


_CURES = {
    "quote": "Where quotes are letters like others, the message says 'quote_char': null.",
    "encoding": "Write the file in UTF-8.",
    "width": "Is it cut off there, or is the delimiter another one?",
}


def batch_error(error: FormatError, batch: Batch) -> BatchError:
    """What is wrong with the bytes of a file, with what to do about it."""
    if error.kind == "other":
        packed = f"packed with {batch.compression}" if batch.compression else "not packed"
        return BatchError(f"{error.fact}, and the message says {batch.format}, {packed}. Correct the message.")
    cure = _CURES.get(error.kind)
    return BatchError(f"{error} {cure}" if cure else str(error))


def csv_options(given: Mapping[str, Any]) -> CsvOptions:
    """The options of a message, as they are understood.

    Raises:
        BatchError: options that can't be.
    """
    try:
        return reading_options(given)
    except ValueError as error:
        raise BatchError(f"csv: {error}.") from None


class _Text:
    """A file that should be text, without byte order mark; one that begins as some other kind of file is refused."""

    def __init__(self, source: Decompressed, batch: Batch) -> None:
        self._source = source
        self._begin = b""
        while len(self._begin) < HEAD_BYTES and (piece := source.read(HEAD_BYTES - len(self._begin))):
            self._begin += piece
        other = kind_of(self._begin)
        if other is not None:
            packed = f"packed with {batch.compression}" if batch.compression else "not packed"
            raise BatchError(
                f"it is {shown_kind(other)}, and the message says {batch.format}, {packed}. Correct the message."
            )
        self._begin = self._begin.removeprefix(_BOM)

    def read(self, size: int) -> bytes:
        """Some bytes, at most so many; b"" at the end."""
        if not self._begin:
            return self._source.read(size)
        given, self._begin = self._begin[:size], self._begin[size:]
        return given + self._source.read(size - len(given)) if len(given) < size else given


def _json_lines(text: _Text) -> Iterator[Page]:
    before = held = 0  # lines that were given; bytes of the line that has begun
    begun: list[bytes] = []  # the line that the last piece broke off in: a list, since it may be huge
    while piece := text.read(_PAGE_BYTES):
        cut = piece.rfind(b"\n") + 1
        if cut:
            block = b"".join((*begun, piece[:cut]))
            begun, held = [], 0
            yield from _pages(block, before)
            before += block.count(b"\n")
        begun.append(piece[cut:])
        held += len(piece) - cut
        if held > MOST_LINE_BYTES:  # 2 MB of gzip may be 2 GB without an end of line
            raise BatchError(f"line {before + 1} does not end within {MOST_LINE_BYTES >> 20} MiB: no row is that long.")
    rest = b"".join(begun)
    if rest:
        yield from _pages(rest + b"\n", before, is_open=True)


def _pages(block: bytes, before: int, *, is_open: bool = False) -> Iterator[Page]:
    """Lines, each of which is one JSON object; those before one that is none come before the error.

    Args:
        before: how many lines of the file are before them.
        is_open: the line had no end: the file has one line more, or is cut off.
    """
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n")
    count = block.count(b"\n")
    # A line that ends with } can't go on in one that begins with {, so so many objects as lines are one on each.
    if block.startswith(b"{") and block.endswith(b"}\n") and block.count(b"}\n{") == count - 1 and _is_text(block):
        try:
            if len(_objects(block)) == count:
                yield Page(block, count)
                return
        except (msgspec.DecodeError, RecursionError):
            pass
    kept: list[bytes] = []
    failure: BatchError | None = None
    for number, line in enumerate(block[:-1].split(b"\n"), before + 1):
        try:
            if _has_object(line, number, is_open=is_open):
                kept.append(line)
        except BatchError as error:
            failure = error
            break
    if kept:
        yield Page(b"\n".join(kept) + b"\n", len(kept))
    if failure is not None:
        raise failure


def _is_text(block: bytes) -> bool:
    try:
        str(block, "utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _has_object(line: bytes, number: int, *, is_open: bool) -> bool:
    """Whether a line holds a JSON object; False for an empty one."""
    if not line.strip():
        return False
    try:
        str(line, "utf-8")
    except UnicodeDecodeError as error:
        raise BatchError(f"line {number:,} is no text in UTF-8 ({error.reason}).") from None
    try:
        _object(line if (veiled := veil(line)) is None else veiled)
    except (msgspec.DecodeError, RecursionError) as error:
        if is_open:
            raise BatchError(f"line {number:,}, the last one, is cut off.") from None
        fact = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise BatchError(f"line {number:,} is no JSON object ({fact}).") from None
    return True
