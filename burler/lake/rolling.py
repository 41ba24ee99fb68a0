"""The files that one writer has open, at most one a stream: rows go in, files are ended when it is time.

Nothing here knows of manifests, locks or STATEs: whoever uses it says what comes before a file and behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from burler import times
from burler.batch.rolling import OpenFiles, RollSettings, fitting
from burler.clock import Clock
from burler.errors import MessageError, UsageError
from burler.formats.compression import Compressor, compressor
from burler.lake import layout
from burler.lake.clean import CleanCheck
from burler.lake.snapshot import FileStats
from burler.singer.messages import Vouched
from burler.storage.base import NewFile, Store

COMPRESSIONS = ("gz", "bz2", None)
_REMEMBERED_NAMES = 10_000
INT64 = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class Form:
    """How data files are compressed: ``gz``, ``bz2`` or None, and the level (see ``burler.formats.compression``).

    Raises:
        UsageError: another compression.
    """

    compression: str | None = "gz"
    level: int = 1

    def __post_init__(self) -> None:
        if self.compression not in COMPRESSIONS:
            raise UsageError(f"compression {self.compression!r} is unknown. Known: gz, bz2, none.")


@dataclass(frozen=True, slots=True)
class Owner:
    """What the user of ``LakeFiles`` does at each step of a file's life.

    ``before(schema)``: the first byte of a file is about to be written. ``published(schema, name, stats)``: a file is
    durable under its name, relative to the manifest; until this returns it counts as open. ``settled()``: such steps
    are over, and all that is open is as it should be. ``taken(schema)``: names that no file may have, relative to the
    manifest.
    """

    before: Callable[[SchemaInUse], object]
    published: Callable[[SchemaInUse, str, FileStats], object]
    settled: Callable[[], object]
    taken: Callable[[SchemaInUse], Collection[str]]


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
    def from_wire(cls, wire: Mapping[str, Any]) -> WrittenFile:
        """From JSON.

        Raises:
            KeyError, TypeError, ValueError: it is not of this shape.
        """
        texts = {key: str(wire[key]) for key in ("tap_id", "stream", "hash", "name")}
        return cls(**texts, schema_line=str(wire["schema_line"]).encode(), stats=FileStats.from_wire(wire["stats"]))


class LakeFiles(OpenFiles[OpenFile]):
    """The data files of one tap that are open.

    Attributes:
        place: the number of the message that is being taken: whoever uses this counts it up.
        schemas: the schema of each stream from here on.
    """

    def __init__(
        self, store: Store, tap_id: str, *, owner: Owner, clock: Clock, settings: RollSettings, form: Form
    ) -> None:
        super().__init__(clock, most=settings.max_open_files, age_seconds=settings.max_file_age_seconds)
        self.place = 0
        self.schemas: dict[str, SchemaInUse] = {}
        self._store, self._tap_id, self._owner = store, tap_id, owner
        self._settings, self._form = settings, form
        self._numbers: dict[str, int] = {}

    def of(self, stream: str) -> SchemaInUse:
        """The schema of a stream.

        Raises:
            MessageError: none came yet.
        """
        try:
            return self.schemas[stream]
        except KeyError:
            raise MessageError(
                f"stream '{stream}': data came before its SCHEMA. The tap must send SCHEMA first."
            ) from None

    def is_open(self, key: tuple[str, str]) -> bool:
        """Whether a file of (stream, hash) is open."""
        file = self._open.get(key[0])
        return file is not None and file.schema.key == key

    def use(self, schema: SchemaInUse) -> None:
        """The schema of its stream from here on; a file of another one is ended."""
        file = self._open.get(schema.stream)
        if file is not None:
            self.end(file)
            self._owner.settled()
        self.schemas[schema.stream] = schema

    def page(
        self,
        stream: str,
        lines: bytes | bytearray,
        count: int,
        times: Sequence[str],
        version: int | None,
        vouched: Vouched | None = None,
    ) -> None:
        """Append ``count`` complete RECORD lines, to as many files as they need."""
        settings = self._settings
        start = done = 0
        while done < count:
            file = self._file(stream)
            if version is None and file.activate_version is not None:
                # Which rows without version an activation drops is told by files: those after it start one.
                self._end_and_settle(file)
                continue
            end, taken = fitting(
                lines,
                start,
                count - done,
                room_bytes=settings.max_file_bytes - file.size,
                room_records=None if settings.max_file_records is None else settings.max_file_records - file.records,
                fresh=not file.records,
            )
            if taken:
                chunk = lines if taken == count else bytes(memoryview(lines)[start:end])
                part = times if len(times) == 1 else times[done : done + taken]
                file.add_records(chunk, taken, min(part), max(part), version, vouched)
                start, done = end, done + taken
            if not taken or self._is_full(file):
                self._end_and_settle(file)
        self._make_room()

    def activate_version(self, stream: str, line: bytes, version: int) -> None:
        """Append an ACTIVATE_VERSION line."""
        self._file(stream).add_activate_version(line, version)

    def end(self, file: OpenFile) -> None:
        """Publish a file."""
        written = times.format_time(self._clock.now())
        name, stats = file.publish(self._tap_id, self._numbers, written, self._owner.taken(file.schema))
        self._owner.published(file.schema, name, stats)
        del self._open[file.schema.stream]
        if len(self._numbers) > _REMEMBERED_NAMES:
            self._numbers.clear()

    def _end_and_settle(self, file: OpenFile) -> None:
        self.end(file)
        self._owner.settled()

    def _file(self, stream: str) -> OpenFile:
        """The open file of a stream, begun if there is none (or only one that is too old)."""
        file = self._open.get(stream)
        if file is not None and self._is_old(file):
            self._end_and_settle(file)
            file = None
        return file or self._begin(self.of(stream))

    def _begin(self, schema: SchemaInUse) -> OpenFile:
        self._make_place()
        self._owner.before(schema)
        new_file = self._store.new_file(f"{layout.stream_folder(self._tap_id, schema.stream)}/{schema.hash}")
        try:
            file = OpenFile(
                schema=schema,
                new_file=new_file,
                begun=self.place,
                opened=self._clock.monotonic(),
                received=times.format_time(self._clock.now()),
                compression=self._form.compression,
                level=self._form.level,
            )
        except BaseException:
            new_file.discard()
            raise
        self._open[schema.stream] = file
        return file

    def _make_room(self) -> None:
        """What open files keep in memory and on disk stays bounded: the greatest go first."""
        if sum(file.stored for file in self._open.values()) <= self._settings.max_open_bytes:
            return
        while self._open and sum(file.stored for file in self._open.values()) > self._settings.max_open_bytes:
            self.end(max(self._open.values(), key=lambda file: file.stored))
        self._owner.settled()

    def _is_full(self, file: OpenFile) -> bool:
        most = self._settings.max_file_records
        return file.size >= self._settings.max_file_bytes or (most is not None and file.records >= most)
