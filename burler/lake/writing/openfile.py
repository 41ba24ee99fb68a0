"""One data file while it is written: its bytes, and what the manifest will say about it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from burler import times
from burler.formats.compression import Compressor, compressor
from burler.lake import layout
from burler.lake.clean import CleanCheck
from burler.lake.snapshot import FileStats
from burler.singer.messages import Vouched
from burler.storage.base import NewFile

INT64 = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class SchemaInUse:
    """A schema version of a stream as the writer needs it: line 1, its hash, the check of its records."""

    stream: str
    line: bytes
    hash: str
    check: CleanCheck

    @property
    def key(self) -> tuple[str, str]:
        """(stream, hash)."""
        return self.stream, self.hash


@dataclass(slots=True)
class OpenFile:
    """A data file under its hidden name.

    ``begun`` is the number, in the writer's sequence, of the first message in it; ``opened`` the clock's monotonic
    seconds; ``size`` is in bytes, uncompressed, ``stored`` in bytes that were handed to the store. ``received`` names
    the file if it holds no record.
    """

    schema: SchemaInUse
    new_file: NewFile
    begun: int
    opened: float
    received: str
    compression: str | None
    level: int
    records: int = 0
    size: int = 0
    stored: int = 0
    first: str = ""
    last: str = ""
    clean: bool = True
    activate_version: int | None = None
    versions: set[int] = field(default_factory=set)
    _compressor: Compressor = field(init=False)

    def __post_init__(self) -> None:
        self._compressor = compressor(self.compression, self.level)
        self._write(self.schema.line + b"\n")

    def add_records(
        self,
        lines: bytes | bytearray,
        count: int,
        first: str,
        last: str,
        version: int | None,
        vouched: Vouched | None = None,
    ) -> None:
        """Append complete RECORD lines, extracted between ``first`` and ``last``. ``vouched``: see ``Records``."""
        if self.clean:  # once it is not, there is nothing left to find out
            check, known = self.schema.check, vouched if version is None or version in INT64 else None
            self.clean = (known is not None and check.vouched(lines, known)) or check.page(lines)
        self._write(lines)
        self.first = min(self.first or first, first)
        self.last = max(self.last, last)
        self.records += count
        if version is not None:
            self.versions.add(version)

    def add_activate_version(self, line: bytes, version: int) -> None:
        """Append an ACTIVATE_VERSION line."""
        self._write(line)
        self.activate_version = version

    def publish(
        self, tap_id: str, numbers: dict[str, int], written: str, taken: Collection[str]
    ) -> tuple[str, FileStats]:
        """Make the file durable under its final name: (path relative to the manifest, statistics).

        Args:
            numbers: remembers, per name, where the search for a free ``-n`` goes on.
            written: the time, RFC 3339.
            taken: names that are not free although no such file is there, relative to the manifest.
        """
        self._hand_on(self._compressor.flush())
        stats = self._stats(written)
        first, last = times.moment(stats.first), times.moment(stats.last)
        folder = layout.stream_folder(tap_id, self.schema.stream)
        plain = layout.file_name(self.schema.stream, first, last, compression=self.compression)
        while True:
            n = numbers.get(plain, 0) + 1
            file_name = layout.file_name(self.schema.stream, first, last, n, compression=self.compression)
            name = f"{self.schema.hash}/{file_name}"
            numbers[plain] = n
            if name in taken:
                continue
            try:
                self.new_file.publish(f"{folder}/{name}")
            except FileExistsError:
                continue
            return name, stats

    def discard(self) -> None:
        """Remove what is not published."""
        self.new_file.discard()

    def _write(self, data: bytes | bytearray) -> None:
        self.size += len(data)
        self._hand_on(self._compressor.compress(data))

    def _hand_on(self, ready: bytes | bytearray | memoryview) -> None:
        if ready:
            self.stored += len(ready)
            self.new_file.write(ready)

    def _stats(self, written: str) -> FileStats:
        return FileStats(
            records=self.records,
            bytes=self.size,
            first=self.first or self.received,
            last=self.last or self.received,
            clean=self.clean and self.schema.check.never is None,
            activate_version=self.activate_version,
            versions=tuple(sorted(self.versions)) or None,
            written=written,
            stored_bytes=self.stored,
        )
