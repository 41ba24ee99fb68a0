"""What a manifest says about a data file, found out by reading it (for files no manifest knows)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from burler.errors import LakeError
from burler.lake.clean import CleanCheck
from burler.lake.datafile import read_blocks
from burler.lake.layout import parse_file_name
from burler.lake.snapshot import FileStats
from burler.lake.store import Store
from burler.lake.timestamps import normalise_time
from burler.singer.messages import format_time


class _Line(msgspec.Struct, gc=False):
    type: str
    time_extracted: str | None = None
    version: int | None = None


class _SchemaLine(msgspec.Struct, gc=False):
    stream: str
    schema: msgspec.Raw


_decode_line = msgspec.json.Decoder(_Line).decode
_decode_schema = msgspec.json.Decoder(_SchemaLine).decode


def measure(store: Store, path: str) -> tuple[bytes, FileStats]:
    """Line 1 of a data file (without its line end), and the file's statistics; the sequence is left 0.

    Raises:
        LakeError: the file is truncated, corrupt, or holds a line that is no message.
    """
    blocks = read_blocks(store, path)
    first_line = next(blocks)[:-1]
    tally = _Tally(first_line)
    for number, line in enumerate(_lines(blocks), start=2):
        try:
            tally.add(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
            place = store.locate(path)
            raise LakeError(f"{place}, line {number}: no Singer message ({error}). Move the file away.") from None
    named = parse_file_name(path.rpartition("/")[2])
    assert named is not None
    return first_line, tally.stats(format_time(named.first), format_time(named.last))


def _lines(blocks: Iterable[bytes]) -> Iterable[bytes]:
    for block in blocks:
        yield from block[:-1].split(b"\n")


class _Tally:
    """Statistics of one file, a line at a time."""

    def __init__(self, first_line: bytes) -> None:
        self._check = _clean_check(first_line)
        self._clean = self._check is not None
        self._bytes = len(first_line) + 1
        self._records = 0
        self._times: tuple[str, str] | None = None
        self._versions: set[int] = set()
        self._activated: int | None = None

    def add(self, line: bytes) -> None:
        message = _decode_line(line)
        kind = message.type.upper()
        self._bytes += len(line) + 1
        if kind == "ACTIVATE_VERSION":
            self._activated = message.version
        if kind != "RECORD":
            return
        self._records += 1
        if message.version is not None:
            self._versions.add(message.version)
        if message.time_extracted is None:
            self._clean = False
        else:
            time, _ = normalise_time(message.time_extracted)
            low, high = self._times or (time, time)
            self._times = (min(low, time), max(high, time))
        self._clean = self._clean and self._check is not None and self._check.page(line + b"\n")

    def stats(self, first: str, last: str) -> FileStats:
        """``first`` and ``last`` serve where no record has a time."""
        low, high = self._times or (first, last)
        return FileStats(
            records=self._records,
            bytes=self._bytes,
            first=low,
            last=high,
            clean=self._clean,
            activate_version=self._activated,
            versions=tuple(sorted(self._versions)) or None,
        )


def _clean_check(first_line: bytes) -> CleanCheck | None:
    """The check by the file's own schema; None where line 1 has none that can be read."""
    try:
        schema = msgspec.json.decode(_decode_schema(first_line).schema)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return CleanCheck(schema) if isinstance(schema, dict) else None
