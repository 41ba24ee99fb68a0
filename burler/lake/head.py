"""Line 1 of a data file, read: the SCHEMA that its rows have."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from msgspec import Raw

from burler.errors import LakeError, MessageError
from burler.lake.datafile import CURE_DAMAGED, read_blocks
from burler.lake.snapshot import Snapshot
from burler.singer.lines import decode_one, schema_of
from burler.singer.messages import Schema, to_line
from burler.storage.base import Store


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
