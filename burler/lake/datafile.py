"""The bytes of one data file as a reader gets them: unpacked, checked, cut into lines.

A data file is one SCHEMA line, then RECORD and ACTIVATE_VERSION lines of that stream, each ended by
``\n``. The package isal makes gzip several times faster; without it the same
files are written and read through zlib.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass

from msgspec import Raw

from burler.errors import LakeError, MessageError
from burler.formats import FormatError
from burler.formats.compression import Decompressed
from burler.formats.jsonl import line_blocks
from burler.formats.names import COMPRESSIONS
from burler.lake.canonical import folder_mismatch
from burler.lake.layout import folder_hash, parse_file_name
from burler.lake.snapshot import Snapshot
from burler.singer.lines import decode_one, schema_of
from burler.singer.messages import Schema, to_line
from burler.storage.base import Store

CURE_DAMAGED = (
    "Restore it from a copy. Else move it out of the lake, run burler lake rebuild, and extract that time again "
    "(docs/lake-care.md)."
)
CURE_MISSING = (
    "If burler lake vacuum took it during this run: run again, and give vacuum a longer --older-than. Restore it from "
    "a copy otherwise; else run burler lake rebuild, which drops it, and extract that time again (docs/lake-care.md)."
)


def read_blocks(store: Store, path: str) -> Generator[bytes, None, None]:
    """The file's lines in blocks of about a MiB, each block ending with a line end.

    The first block is line 1 alone, and has been checked: it is a SCHEMA message, and it hashes to the folder's
    name where that is a hash in base58 or base85 (other folder names are opaque).

    Raises:
        LakeError: the file is missing, truncated, corrupt, or in the wrong folder; names it and the cure.
    """
    with _reading(store, path), contextlib.closing(_opened(store, path)) as stream:
        blocks = line_blocks(stream)
        block = next(blocks, b"")
        end = block.find(b"\n") + 1
        if not end:
            raise FormatError("it has no complete first line", kind="cut")
        _check_first_line(path, block[: end - 1])
        yield block[:end]
        block = block[end:] or next(blocks, b"")
        while block:
            if not block.endswith(b"\n"):
                raise FormatError("its last line has no end", kind="cut")
            yield block
            block = next(blocks, b"")


def read_lines(store: Store, path: str) -> Generator[bytes, None, None]:
    """The lines of one data file, each with its line end: SCHEMA first, then as they were written.

    Raises:
        LakeError: the file is missing, truncated, corrupt, or not what its folder says; names it and the cure.
    """
    for block in read_blocks(store, path):
        yield from block.splitlines(keepends=True) if b"\r" not in block else _split(block)


def _split(block: bytes) -> Iterator[bytes]:
    """Lines by line feeds alone: a carriage return between tokens of JSON is no line end."""
    yield from (line + b"\n" for line in block[:-1].split(b"\n"))


@contextlib.contextmanager
def _reading(store: Store, path: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise LakeError(f"{store.locate(path)} is missing although the lake lists it.\n{CURE_MISSING}") from None
    except FormatError as error:
        raise LakeError(f"{store.locate(path)} is truncated or corrupt: {error}\n{CURE_DAMAGED}") from error
    except OSError as error:
        raise LakeError(f"{store.locate(path)} can't be read: {error}.\n{CURE_DAMAGED}") from error


def _opened(store: Store, path: str) -> Decompressed:
    """A file's bytes, decompressed."""
    parsed = parse_file_name(path.rpartition("/")[2])
    compression = parsed.compression if parsed else None
    return Decompressed(store.open(path), COMPRESSIONS.get(compression or ""))


def _check_first_line(path: str, line: bytes) -> None:
    if b'"SCHEMA"' not in line.upper():
        raise LakeError(f"{path}: line 1 is no SCHEMA message.\nThe file is no data file of a lake: move it away.")
    folder = folder_hash(path)
    actual = folder_mismatch(folder, line)
    if actual is not None:
        raise LakeError(
            f"{path}: line 1 hashes to {actual}, not to its folder {folder}: the file was changed or moved.\n"
            "Restore it from a copy, or move it to the folder it belongs to; then burler lake rebuild."
        )


@dataclass(frozen=True, slots=True)
class Head:
    """``line``: as it stands in the file, without its end. ``message``: what it says, numbers digit for digit.
    ``is_plain``: every reader of Singer messages takes the line as it is."""

    line: bytes
    message: Schema
    is_plain: bool

    def line_out(self) -> bytes:
        """The line that goes out for it: the same, where it can."""
        return self.line + b"\n" if self.is_plain else to_line(self.message)


def head_of(line: bytes, place: str) -> Head:
    """Line 1 of a file, or the line that a manifest keeps of it.

    Args:
        line: with or without its end.
        place: what is named if it can't be read.

    Raises:
        LakeError: it is no SCHEMA message.
    """
    text = line.rstrip(b"\r\n")
    try:
        found, _ = decode_one(1, text)
        if found.type.upper() != "SCHEMA":
            raise LakeError(f"{place}: line 1 is no SCHEMA message.\n{CURE_DAMAGED}")
        message = schema_of(1, found, text)
    except MessageError as error:
        raise LakeError(f"{place}: {error}.\n{CURE_DAMAGED}") from None
    # Readers compare the type as it is, and ask for key_properties even where there are none.
    keys = found.key_properties
    return Head(text, message, found.type == "SCHEMA" and isinstance(keys, Raw) and bytes(keys)[:1] == b"[")


def head_by_hash(store: Store, stream: Snapshot, digest: str) -> Head:
    """The SCHEMA of one schema version: from the manifest, else from line 1 of a file of that version.

    Raises:
        LakeError: neither has it, or it can't be read.
    """
    line = stream.schema_lines.get(digest)
    if line is not None:
        return head_of(line, f"{stream.folder}: schema {digest}")
    path = next((file.path for file in stream.files if file.hash == digest), None)
    if path is None:
        raise LakeError(f"{stream.folder}: nothing in the lake says what schema {digest} is.")
    with contextlib.closing(read_blocks(store, path)) as blocks:
        return head_of(next(blocks), store.locate(path))


def schema_message(store: Store, stream: Snapshot, digest: str) -> Schema:
    """What ``head_by_hash`` says, numbers with a point or an exponent as Decimals."""
    return head_by_hash(store, stream, digest).message
