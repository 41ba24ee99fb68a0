"""The files that one writer has open, at most one a stream: rows go in, files are ended when it is time.

Nothing here knows of manifests, locks or STATEs: whoever uses it says what comes before a file and behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from burler import times
from burler.batch.rolling import OpenFiles, RollSettings, fitting
from burler.clock import Clock
from burler.errors import MessageError, UsageError
from burler.lake import layout
from burler.lake.snapshot import FileStats
from burler.lake.writing.openfile import OpenFile, SchemaInUse
from burler.singer.messages import Vouched
from burler.storage.base import Store

COMPRESSIONS = ("gz", "bz2", None)
_REMEMBERED_NAMES = 10_000


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
