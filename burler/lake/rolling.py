"""Data files while they are open, at most one a stream: rows go in, and what has become of a file that was ended is
given back, to be committed.

Nothing here knows of locks, claims or STATEs, and no file is begun or ended unasked: which files are to be ended (full,
old, too many, too large together) is said, and whoever writes (``burler.lake.writer``) does it in its own order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from burler import times
from burler.batch.rolling import OpenFiles, RollSettings, fitting
from burler.clock import Clock
from burler.errors import MessageError, UsageError
from burler.formats.compression import Compressor, compressor
from burler.lake import layout
from burler.lake.clean import CleanCheck
from burler.lake.snapshot import FileStats
from burler.singer.messages import Schema, Vouched
from burler.storage.base import NewFile, Store

_INT64 = range(-(2**63), 2**63)
_REMEMBERED_NAMES = 10_000

Key = tuple[str, str]
"""(stream, hash): a schema version of a tap."""


@dataclass(frozen=True, slots=True)
class LakeSchema:
    """A SCHEMA message as a lake has it. ``line``: in canonical form; ``hash``: of that line, the folder's name."""

    message: Schema
    line: bytes
    hash: str

    @property
    def stream(self) -> str:
        """The stream."""
        return self.message.stream

    @property
    def key(self) -> Key:
        """(stream, hash)."""
        return self.stream, self.hash


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A data file that is durable and in no manifest yet. It can be pickled, and be JSON (``to_wire``, ``from_wire``).

    ``name`` is relative to the stream's folder; ``schema_line`` is the canonical SCHEMA line it begins with.
    """

    tap_id: str
    stream: str
    hash: str
    schema_line: bytes
    name: str
    stats: FileStats

    @property
    def key(self) -> Key:
        """(stream, hash)."""
        return self.stream, self.hash

    def to_wire(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "tap_id": self.tap_id,
            "stream": self.stream,
            "hash": self.hash,
            "schema_line": self.schema_line.decode(),
            "name": self.name,
            "stats": self.stats.to_wire(),
        }

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> Self:
        """From JSON.

        Raises:
            KeyError, TypeError, ValueError: it is not of this shape.
        """
        texts = {key: str(wire[key]) for key in ("tap_id", "stream", "hash", "name")}
        return cls(**texts, schema_line=str(wire["schema_line"]).encode(), stats=FileStats.from_wire(wire["stats"]))


def check_compression(compression: str | None) -> None:
    """Raises: UsageError: a lake's files can't be compressed so."""
    if compression not in ("gz", "bz2", None):
        raise UsageError(f"compression {compression!r} is unknown. Known: gz, bz2, none.")


@dataclass(slots=True)
class PageLines:
    """Complete RECORD lines of one version, and how many of them are in files already.

    ``times``: each line's ``time_extracted``, or a single one for all. ``vouched``: see ``Records``.
    """

    lines: bytes | bytearray
    count: int
    times: Sequence[str]
    version: int | None = None
    vouched: Vouched | None = None
    done: int = 0
    start: int = 0

    @property
    def left(self) -> int:
        """How many are in no file yet."""
        return self.count - self.done


@dataclass(slots=True)
class OpenDataFile:
    """A data file under its hidden name.

    ``begun`` is the number, in the writer's sequence, of the first message in it; ``opened`` the clock's monotonic
    seconds; ``received`` names the file if it holds no record. ``taken``: names that it must not get although no such
    file is there, relative to the manifest. ``size`` is in bytes, uncompressed, ``stored`` in bytes that were handed to
    the store.
    """

    schema: LakeSchema
    check: CleanCheck
    new_file: NewFile
    begun: int
    opened: float
    received: str
    taken: Collection[str]
    compressor: Compressor
    records: int = 0
    size: int = 0
    stored: int = 0
    first: str = ""
    last: str = ""
    clean: bool = True
    activate_version: int | None = None
    versions: set[int] = field(default_factory=set)

    def add_records(self, page: PageLines, end: int, count: int) -> None:
        """Append the next ``count`` lines of a page, up to ``end``."""
        whole = count == page.count
        lines = page.lines if whole else bytes(memoryview(page.lines)[page.start : end])
        part = page.times if len(page.times) == 1 else page.times[page.done : page.done + count]
        if self.clean:  # once it is not, there is nothing left to find out
            known = page.vouched if page.version is None or page.version in _INT64 else None
            self.clean = (known is not None and self.check.vouched(lines, known)) or self.check.page(lines)
        self.write(lines)
        first, last = min(part), max(part)
        self.first, self.last = min(self.first or first, first), max(self.last, last)
        self.records += count
        if page.version is not None:
            self.versions.add(page.version)
        page.start, page.done = end, page.done + count

    def write(self, data: bytes | bytearray) -> None:
        """Append complete lines."""
        self.size += len(data)
        self._hand_on(self.compressor.compress(data))

    def add_activate_version(self, line: bytes, version: int) -> None:
        """Append an ACTIVATE_VERSION line."""
        self.write(line)
        self.activate_version = version

    def finish(self, written: str) -> FileStats:
        """All is handed to the store; what the manifest is to say about it.

        Args:
            written: the time, RFC 3339.
        """
        self._hand_on(self.compressor.flush())
        return FileStats(
            records=self.records,
            bytes=self.size,
            first=self.first or self.received,
            last=self.last or self.received,
            clean=self.clean and self.check.never is None,
            activate_version=self.activate_version,
            versions=tuple(sorted(self.versions)) or None,
            written=written,
            stored_bytes=self.stored,
        )

    def discard(self) -> None:
        """Remove what is not published."""
        self.new_file.discard()

    def _hand_on(self, ready: bytes | bytearray | memoryview) -> None:
        if ready:
            self.stored += len(ready)
            self.new_file.write(ready)


class RollingFiles(OpenFiles[OpenDataFile]):
    """The data files of one tap that are open.

    Args:
        compression: ``gz``, ``bz2`` or None; and its level, see ``burler.formats.compression``.

    Attributes:
        place: the number of the message that is being taken: whoever uses this counts it up.

    Raises:
        UsageError: another compression.
    """

    def __init__(
        self,
        store: Store,
        tap_id: str,
        clock: Clock,
        settings: RollSettings,
        compression: str | None,
        compression_level: int,
    ) -> None:
        check_compression(compression)
        super().__init__(clock, most=settings.max_open_files, age_seconds=settings.max_file_age_seconds)
        self.place = 0
        self._store, self._tap_id, self._settings = store, tap_id, settings
        self._compression, self._level = compression, compression_level
        self._schemas: dict[str, tuple[LakeSchema, CleanCheck]] = {}
        self._numbers: dict[str, int] = {}

    def uses(self, stream: str, line: bytes) -> bool:
        """Whether this is the SCHEMA line of a stream already."""
        known = self._schemas.get(stream)
        return known is not None and known[0].line == line

    def use(self, schema: LakeSchema) -> None:
        """The schema of its stream from here on. No file of it is open."""
        self._schemas[schema.stream] = schema, CleanCheck(schema.message.schema)

    def schema_of(self, stream: str) -> LakeSchema:
        """The schema of a stream.

        Raises:
            MessageError: none came yet.
        """
        if stream not in self._schemas:
            raise MessageError(f"stream '{stream}': data came before its SCHEMA. The tap must send SCHEMA first.")
        return self._schemas[stream][0]

    def of(self, stream: str) -> list[OpenDataFile]:
        """The file of a stream, if one is open."""
        return [self._open[stream]] if stream in self._open else []

    def current(self, stream: str) -> OpenDataFile | None:
        """The same, unless it is too old for more rows."""
        file = self._open.get(stream)
        return None if file is None or self._is_old(file) else file

    def in_the_way(self, stream: str) -> list[OpenDataFile]:
        """Those to end before a file of a stream is begun: the one before, or the oldest where too many are open."""
        return self.of(stream) or self.surplus()

    @property
    def keys(self) -> set[tuple[str, str]]:
        """(stream, hash) of each open file."""
        return {file.schema.key for file in self._open.values()}

    def begin(self, schema: LakeSchema, taken: Collection[str]) -> OpenDataFile:
        """Begin a file.

        Args:
            taken: names that it must not get, relative to the manifest.
        """
        new_file = self._store.new_file(f"{layout.stream_folder(self._tap_id, schema.stream)}/{schema.hash}")
        try:
            file = OpenDataFile(
                schema=schema,
                check=self._schemas[schema.stream][1],
                new_file=new_file,
                begun=self.place,
                opened=self._clock.monotonic(),
                received=times.format_time(self._clock.now()),
                taken=taken,
                compressor=compressor(self._compression, self._level),
            )
            file.write(schema.line + b"\n")
        except BaseException:
            new_file.discard()
            raise
        self._open[schema.stream] = file
        return file

    def add(self, file: OpenDataFile, page: PageLines) -> list[OpenDataFile]:
        """Append what fits of a page; the files that are now to be ended: this one if it is full, and the largest where
        all together keep too much in memory or on disk."""
        settings = self._settings
        if page.version is None and file.activate_version is not None:
            # Which rows without version an activation drops is told by files: those after it start one.
            return [file]
        most = settings.max_file_records
        end, count = fitting(
            page.lines,
            page.start,
            page.left,
            room_bytes=settings.max_file_bytes - file.size,
            room_records=None if most is None else most - file.records,
            fresh=not file.records,
        )
        if count:
            file.add_records(page, end, count)
        if not count or file.size >= settings.max_file_bytes or (most is not None and file.records >= most):
            return [file]
        return self._largest()

    def end(self, file: OpenDataFile) -> WrittenFile:
        """Make a file durable under its final name; the file that is to be committed."""
        stats = file.finish(times.format_time(self._clock.now()))
        stream, digest = file.schema.key
        first, last = times.moment(stats.first), times.moment(stats.last)
        plain = layout.file_name(stream, first, last, compression=self._compression)
        while True:
            number = self._numbers[plain] = self._numbers.get(plain, 0) + 1  # where the search goes on next time
            name = f"{digest}/{layout.file_name(stream, first, last, number, compression=self._compression)}"
            if name in file.taken:
                continue
            try:
                file.new_file.publish(f"{layout.stream_folder(self._tap_id, stream)}/{name}")
                break
            except FileExistsError:
                continue
        del self._open[stream]
        if len(self._numbers) > _REMEMBERED_NAMES:
            self._numbers.clear()
        return WrittenFile(self._tap_id, stream, digest, file.schema.line, name, stats)

    def _largest(self) -> list[OpenDataFile]:
        left = sum(file.stored for file in self._open.values())
        if left <= self._settings.max_open_bytes:
            return []
        largest = []
        for file in sorted(self._open.values(), key=lambda file: file.stored, reverse=True):
            if left > self._settings.max_open_bytes:
                largest.append(file)
                left -= file.stored
        return largest
