"""JSON lines: files in blocks that end with a line, each line one object; whatever is broken is named with its line."""

from __future__ import annotations

import codecs
import json
import math
from collections.abc import Iterator
from typing import Any

import msgspec

from burler.formats import FormatError
from burler.formats.names import HEAD_BYTES, kind_of, shown_kind
from burler.log_settings import near
from burler.surrogates import decode_veiled

MOST_LINE_BYTES = 1 << 28
_BLOCK_BYTES = 896 << 10  # a MiB at most, with a last piece: more costs page faults
_PIECE_BYTES = 128 << 10  # asked of a decompressor at once: what it makes of more leaves holes in the process's memory


class _Row(msgspec.Struct, gc=False):
    """An object none of whose fields is kept: the cheapest look at a row that sees each byte of it."""


_objects = msgspec.json.Decoder(_Row).decode_lines
_object = msgspec.json.Decoder(_Row).decode
_broken = (msgspec.DecodeError, RecursionError)


def line_blocks(source: Any, *, begin: bytes = b"", most_line_bytes: int | None = None) -> Iterator[bytes]:
    """Yield a text in blocks of about a MiB that end with a line; the last may have no end. A byte order mark is left
    out.

    Args:
        source: an object with ``read(size)``.
        begin: what was read of it already.
        most_line_bytes: a line that is longer is an error; None: of any length.

    Raises:
        FormatError: a line does not end (of the kind ``long``); what stands before it was given.
    """
    parts: list[bytes] = []  # what was read and not given; a list, since a line may be huge
    size = open_bytes = 0  # of all parts; of the line that has begun
    has_begun = False
    most = math.inf if most_line_bytes is None else most_line_bytes
    while open_bytes <= most and (piece := begin or source.read(_PIECE_BYTES)):
        begin = b""
        if not has_begun:
            while len(piece) < HEAD_BYTES and (more := source.read(_PIECE_BYTES)):
                piece += more
            piece, has_begun = piece.removeprefix(codecs.BOM_UTF8), True
        cut = piece.rfind(b"\n") + 1
        open_bytes = len(piece) - cut + (0 if cut else open_bytes)
        if cut and size + cut >= _BLOCK_BYTES:
            yield b"".join((*parts, piece[:cut]))
            parts, size = [piece[cut:]], open_bytes
        else:
            parts.append(piece)
            size += len(piece)
    rest = b"".join(parts)
    cut = rest.rfind(b"\n") + 1
    if cut:
        yield rest[:cut]
    if open_bytes > most:
        raise FormatError(f"it does not end within {most:,} bytes: no row is that long", kind="long")
    if cut < len(rest):
        yield rest[cut:]


def line_cuts(lines: bytes | bytearray | memoryview, most_bytes: int) -> Iterator[bytes]:
    """Lines in parts of a bounded size (or one line, if that is larger), cut at their ends."""
    data = bytes(lines)
    start = 0
    while start < len(data):
        end = data.rfind(b"\n", start, start + most_bytes) + 1
        if end <= start:
            end = data.find(b"\n", start) + 1 or len(data)
        yield data[start:end]
        start = end


def json_lines(
    source: Any, *, begin: bytes = b"", most_line_bytes: int = MOST_LINE_BYTES, allow_nan: bool = False
) -> Iterator[tuple[bytes, int]]:
    """Yield the rows of a file as ``(lines, count)``: complete lines with an object on each and nothing around it, byte
    for byte as they stand in the file.

    Args:
        source: an object with ``read(size)``.
        begin: what was read of it already.
        allow_nan: whether objects may hold ``NaN`` and infinities: whoever gets the rows knows what to do with them.

    Raises:
        FormatError: another kind of file (of the kind ``other``), a line that is no object, or does not end (``long``).
            The rows before it were given.
    """
    before = 0
    try:
        for block in line_blocks(source, begin=begin, most_line_bytes=most_line_bytes):
            other = kind_of(block[:HEAD_BYTES]) if not before else None
            if other is not None:
                raise FormatError(f"it is {shown_kind(other)}", kind="other")
            is_open = not block.endswith(b"\n")
            yield from _rows(block + b"\n" if is_open else block, before, is_open=is_open, allow_nan=allow_nan)
            before += block.count(b"\n")
    except FormatError as error:
        raise FormatError(error.fact, f"line {before + 1:,}", "long") if error.kind == "long" else error from None


def _rows(block: bytes, before: int, *, is_open: bool, allow_nan: bool) -> Iterator[tuple[bytes, int]]:
    """The rows of some lines; those before one that is none come before the error.

    Args:
        before: how many lines of the file are before them.
        is_open: the last line had no end: the file has one line more, or is cut off.
    """
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n")
    count = block.count(b"\n")
    # A line that ends with } can't go on in one that begins with {, so so many objects as lines are one on each.
    if block.startswith(b"{") and block.endswith(b"}\n") and block.count(b"}\n{") == count - 1 and not _not_utf8(block):
        try:
            if len(_objects(block)) == count:
                yield block, count
                return
        except _broken:
            pass
    kept: list[bytes] = []
    failure: FormatError | None = None
    for number, line in enumerate(block[:-1].split(b"\n"), before + 1):
        if not line.strip():
            continue
        if fact := why_no_object(line, is_open=is_open, allow_nan=allow_nan):
            kind = "" if kept or before else "lines"  # behind a row it is damaged, and no other format
            failure = FormatError(f"{fact}{near(line.strip())}", f"line {number:,}", kind)
            break
        kept.append(line)
    if kept:
        yield b"\n".join(kept) + b"\n", len(kept)
    if failure is not None:
        raise failure


def why_no_object(line: bytes, *, is_open: bool = False, allow_nan: bool = False) -> str:
    """What is wrong with a line; "" if it is a JSON object.

    Args:
        is_open: it has no end, and may be cut off.
    """
    if reason := _not_utf8(line):
        return f"it is no text in UTF-8 ({reason})"
    try:
        decode_veiled(_object, line)
    except _broken as error:
        if allow_nan and _is_object_with_nan(line):
            return ""
        if is_open:
            return "it is cut off: the file ends there"
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        return f"it is no JSON object ({reason})"
    return ""


def _is_object_with_nan(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _not_utf8(text: bytes) -> str:
    try:
        str(text, "utf-8")
    except UnicodeDecodeError as error:
        return error.reason
    return ""
