"""One data file: its bytes as a reader gets them (unpacked, checked, cut into lines), its line 1, and what a manifest
says of it, found out by reading it.

A data file is one SCHEMA line, then RECORD and ACTIVATE_VERSION lines of that stream, each ended by
``\n``. The package isal makes gzip several times faster; without it the same
files are written and read through zlib.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
from msgspec import Raw

from burler import times
from burler.errors import LakeError, MessageError
from burler.formats import FormatError
from burler.formats.compression import Decompressed
from burler.formats.jsonl import line_blocks
from burler.formats.names import COMPRESSIONS
from burler.lake.clean import CleanCheck
from burler.lake.hashing import folder_mismatch
from burler.lake.layout import folder_hash, parse_file_name
from burler.lake.snapshot import FileStats, Snapshot
from burler.singer.lines import MessageHead, decode_head, decode_one, decode_outermost, schema_of
from burler.singer.messages import Schema, encode, to_line
from burler.storage.base import Store

CURE_DAMAGED = (
    "Restore it from a copy. Else move it out of the lake, run burler lake rebuild, and extract that time again "
    "(docs/lake-care.md)."
)
CURE_MOVED = "Restore it from a copy, or move it to the folder it belongs to; then burler lake rebuild."
CURE_CHANGED = "If it was changed, restore it from a copy; burler lake rebuild takes it as it is."
CURE_MISSING = (
    "If burler lake vacuum took it during this run: run again, and give vacuum a longer --older-than. Restore it from "
    "a copy otherwise; else run burler lake rebuild, which drops it, and extract that time again (docs/lake-care.md)."
)


Damage = Literal["missing", "hash", "torn", "message"]


class DamagedFile(LakeError):
    """A data file that can't be used. ``damage``: missing; ``hash``: line 1 is not what the folder says; torn
    (truncated, corrupt); ``message``: a line that is no message."""

    def __init__(self, text: str, damage: Damage) -> None:
        super().__init__(text)
        self.damage: Damage = damage

    def __reduce__(self) -> tuple[type[DamagedFile], tuple[str, Damage]]:
        return DamagedFile, (str(self), self.damage)


def read_blocks(store: Store, path: str) -> Generator[bytes, None, None]:
    """The file's lines in blocks of about a MiB, each block ending with a line end.

    The first block is line 1 alone, and has been checked: it is a SCHEMA message, and it hashes to the folder's
    name where that is a hash in base58 or base85 (other folder names are opaque).

    Raises:
        DamagedFile: it is missing, truncated, corrupt, or in the wrong folder; names it and the cure.
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
        DamagedFile: see ``read_blocks``.
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
        text = f"{store.locate(path)} is missing although the lake lists it.\n{CURE_MISSING}"
        raise DamagedFile(text, "missing") from None
    except FormatError as error:
        text = f"{store.locate(path)} is truncated or corrupt: {error}\n{CURE_DAMAGED}"
        raise DamagedFile(text, "torn") from error
    except OSError as error:
        raise DamagedFile(f"{store.locate(path)} can't be read: {error}.\n{CURE_DAMAGED}", "torn") from error


def _opened(store: Store, path: str) -> Decompressed:
    """A file's bytes, decompressed."""
    parsed = parse_file_name(path.rpartition("/")[2])
    compression = parsed.compression if parsed else None
    return Decompressed(store.open(path), COMPRESSIONS.get(compression or ""))


def _check_first_line(path: str, line: bytes) -> None:
    if b'"SCHEMA"' not in line.upper():
        text = f"{path}: line 1 is no SCHEMA message.\nThe file is no data file of a lake: move it away."
        raise DamagedFile(text, "message")
    folder = folder_hash(path)
    actual = folder_mismatch(folder, line)
    if actual is not None:
        raise DamagedFile(
            f"{path}: line 1 hashes to {actual}, not to its folder {folder}: the file was changed or moved.\n"
            f"{CURE_MOVED}",
            "hash",
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

    @property
    def properties(self) -> dict[str, Any]:
        """The fields that the schema declares."""
        found = self.message.schema.get("properties")
        return found if isinstance(found, dict) else {}

    @property
    def with_floats(self) -> dict[str, Any]:
        """The schema with floats in place of exact Decimals, as who makes columns of it looks for them; as it is where
        a number is beyond floats."""
        try:
            schema: dict[str, Any] = msgspec.json.decode(encode(self.message.schema))
        except (msgspec.DecodeError, RecursionError):
            return self.message.schema
        return schema


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


@dataclass(frozen=True, slots=True)
class Measured:
    """A data file as it is.

    ``line``: line 1, without its end. ``stream``: the one that it names, if it does. ``timed``: some record has a
    ``time_extracted``; else the statistics have the times of the name. ``stranger``: number of the first line that is
    a message of another stream.
    """

    line: bytes
    stream: str | None
    stats: FileStats
    timed: bool
    stranger: int | None


_UNFIT = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError)


def measure(store: Store, path: str) -> Measured:
    """Read a data file to its end. The sequence of its statistics is left 0.

    Raises:
        DamagedFile: it is missing, truncated, corrupt, in the wrong folder, or holds a line that is no message.
        StorageError: the store fails.
    """
    blocks = read_blocks(store, path)
    counts = _Counts(next(blocks)[:-1])
    for block in blocks:
        try:
            counts.add(block)
        except _UNFIT:
            number, error = counts.first_unfit(block)
            text = f"{store.locate(path)}, line {number}: no Singer message ({error}).\n{CURE_DAMAGED}"
            raise DamagedFile(text, "message") from None
    return counts.measured(path)


class _Counts:
    """Statistics of one file, a block of lines at a time."""

    def __init__(self, first_line: bytes) -> None:
        self._line = first_line
        self._stream, self._check = _schema(first_line)
        self._clean = self._check is not None
        self._bytes = len(first_line) + 1
        self._lines = 1
        self._records = 0
        self._times: tuple[str, str] | None = None
        self._versions: set[int] = set()
        self._activated: int | None = None
        self._stranger: int | None = None

    def add(self, block: bytes) -> None:
        """Lines, each with its end. Raises one of _UNFIT, and is as before then."""
        messages = _messages(block[:-1].split(b"\n"))
        kinds = [message.type.upper() for message in messages]
        records = [message for message, kind in zip(messages, kinds, strict=True) if kind == "RECORD"]
        texts = {message.time_extracted for message in records}
        known = {times.lake(text)[0] for text in texts if text is not None}

        if self._stranger is None and self._stream is not None:
            strange = (at for at, message in enumerate(messages, 1) if message.stream not in (None, self._stream))
            at = next(strange, None)
            self._stranger = None if at is None else self._lines + at
        for message, kind in zip(messages, kinds, strict=True):
            if kind == "ACTIVATE_VERSION":
                self._activated = message.version
        self._clean = self._clean and None not in texts and self._fits(block, kinds, len(records))
        if known:
            low, high = self._times or (min(known), max(known))
            self._times = (min(low, *known), max(high, *known))
        self._versions.update(message.version for message in records if message.version is not None)
        self._records += len(records)
        self._lines += len(messages)
        self._bytes += len(block)

    def first_unfit(self, block: bytes) -> tuple[int, Exception]:
        """Number of the first line of a block that ``add`` refused, and why."""
        for number, line in enumerate(block[:-1].split(b"\n"), self._lines + 1):
            try:
                message = decode_outermost(decode_head, line)
                if message.type.upper() == "RECORD" and message.time_extracted is not None:
                    times.lake(message.time_extracted)
            except _UNFIT as error:
                return number, error
        raise AssertionError("each line fits, and all together do not")

    def measured(self, path: str) -> Measured:
        """All of it; times are those of the name where no record has one."""
        named = parse_file_name(path.rpartition("/")[2])
        assert named is not None
        low, high = self._times or (times.format_time(named.first), times.format_time(named.last))
        stats = FileStats(
            records=self._records,
            bytes=self._bytes,
            first=low,
            last=high,
            clean=self._clean,
            activate_version=self._activated,
            versions=tuple(sorted(self._versions)) or None,
        )
        return Measured(self._line, self._stream, stats, self._times is not None, self._stranger)

    def _fits(self, block: bytes, kinds: list[str], records: int) -> bool:
        if self._check is None:
            return False
        if records == len(kinds):
            return self._check.page(block)
        lines = zip(block[:-1].split(b"\n"), kinds, strict=True)
        return self._check.page([line for line, kind in lines if kind == "RECORD"])


def _messages(lines: list[bytes]) -> list[MessageHead]:
    try:
        return [decode_head(line) for line in lines]
    except (msgspec.DecodeError, RecursionError):  # one is odd, or no message
        return [decode_outermost(decode_head, line) for line in lines]


@functools.lru_cache(maxsize=64)  # of thousands of files, few have a schema of their own
def _schema(first_line: bytes) -> tuple[str | None, CleanCheck | None]:
    """The stream that line 1 names, and the check by its schema; None where it has none that can be read."""
    try:
        head = head_of(first_line, "")
    except LakeError:
        return None, None
    return head.message.stream, CleanCheck(head.with_floats)
