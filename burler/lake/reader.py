"""Read a lake back: which files a stream has, and the lines in them."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from burler.errors import LakeError
from burler.lake.datafile import read_blocks
from burler.lake.head import head_of
from burler.lake.snapshot import Snapshot
from burler.lake.store import Store
from burler.singer.messages import Schema


class _SchemaLine(msgspec.Struct, gc=False):
    stream: str
    schema: dict[str, object]
    key_properties: list[str] | None = None
    bookmark_properties: list[str] | None = None


_decode_schema = msgspec.json.Decoder(_SchemaLine).decode


def read_lines(store: Store, path: str) -> Iterator[bytes]:
    """The lines of one data file, each with its line end: SCHEMA first, then as they were written.

    Raises:
        LakeError: the file is missing, truncated, corrupt, or not what its folder says; names it and the cure.
    """
    for block in read_blocks(store, path):
        yield from block.splitlines(keepends=True) if b"\r" not in block else _split(block)


def _split(block: bytes) -> Iterator[bytes]:
    """Lines by line feeds alone: a carriage return between tokens of JSON is no line end."""
    yield from (line + b"\n" for line in block[:-1].split(b"\n"))


def schema_message(store: Store, stream: Snapshot, digest: str) -> Schema:
    """The SCHEMA of one schema version: from the manifest, else from line 1 of a file of that version.

    Raises:
        LakeError: neither has it, or it can't be read.
    """
    line = stream.schema_lines.get(digest)
    if line is None:
        path = next((file.path for file in stream.files if file.hash == digest), None)
        if path is None:
            raise LakeError(f"{stream.folder}: nothing in the lake says what schema {digest} is.")
        line = next(read_blocks(store, path))
    try:
        message = _decode_schema(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return head_of(line, f"{stream.folder}: schema {digest}").message  # with numbers beyond floats, or an error
    return Schema(
        message.stream,
        message.schema,
        tuple(message.key_properties or ()),
        tuple(message.bookmark_properties or ()),
    )
