"""What a manifest says about a data file, found out by reading it (for files no manifest knows, and to check)."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Literal

import msgspec

from burler import times
from burler.errors import LakeError
from burler.lake.clean import CleanCheck
from burler.lake.datafile import CURE_DAMAGED, head_of, read_blocks
from burler.lake.layout import parse_file_name
from burler.lake.snapshot import FileStats
from burler.singer.lines import MessageHead, decode_head, decode_outermost
from burler.storage.base import Store

Damage = Literal["missing", "hash", "torn", "message"]


class DamagedFile(LakeError):
    """A data file that can't be used. ``damage``: missing; ``hash``: line 1 is not what the folder says; torn
    (truncated, corrupt); ``message``: a line that is no message."""

    def __init__(self, text: str, damage: Damage) -> None:
        super().__init__(text)
        self.damage: Damage = damage

    def __reduce__(self) -> tuple[type[DamagedFile], tuple[str, Damage]]:
        return DamagedFile, (str(self), self.damage)


@dataclass(frozen=True, slots=True)
class Measured:
    """A data file as it is.

    ``line``: line 1, without its end. ``timed``: some record has a ``time_extracted``; else the statistics have the
    times of the name. ``stranger``: number of the first line that is a message of another stream.
    """

    line: bytes
    stats: FileStats
    timed: bool
    stranger: int | None


class _SchemaLine(msgspec.Struct, gc=False):
    stream: str
    schema: msgspec.Raw


_decode_schema = msgspec.json.Decoder(_SchemaLine).decode
_UNFIT = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError)


def measure(store: Store, path: str) -> tuple[bytes, FileStats]:
    """Line 1 of a data file (without its line end), and the file's statistics; the sequence is left 0.

    Raises:
        LakeError: the file is truncated, corrupt, or holds a line that is no message.
    """
    found = examine(store, path)
    return found.line, found.stats


def examine(store: Store, path: str) -> Measured:
    """Read a data file to its end.

    Raises:
        DamagedFile: it is missing, truncated, corrupt, in the wrong folder, or holds a line that is no message.
        StorageError: the store fails.
    """
    try:
        return _examine(store, path)
    except DamagedFile:
        raise
    except LakeError as error:
        raise DamagedFile(str(error), _damage(error)) from error


def _examine(store: Store, path: str) -> Measured:
    blocks = read_blocks(store, path)
    tally = _Tally(next(blocks)[:-1])
    for block in blocks:
        try:
            tally.add(block)
        except _UNFIT:
            number, error = tally.first_unfit(block)
            text = f"{store.locate(path)}, line {number}: no Singer message ({error}).\n{CURE_DAMAGED}"
            raise DamagedFile(text, "message") from None
    return tally.measured(path)


def _damage(error: LakeError) -> Damage:
    if isinstance(error.__context__, FileNotFoundError):
        return "missing"
    if error.__cause__ is not None:
        return "torn"
    return "hash" if "hashes to" in str(error) else "message"


class _Tally:
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
        return Measured(self._line, stats, self._times is not None, self._stranger)

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
        line = _decode_schema(first_line)
        schema = msgspec.json.decode(line.schema)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        try:
            message = head_of(first_line, "").message  # it may hold numbers beyond floats
        except LakeError:
            return None, None
        return message.stream, CleanCheck(message.schema)
    return line.stream, CleanCheck(schema) if isinstance(schema, dict) else None
