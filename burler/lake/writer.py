"""Messages into a lake: files roll, commit, and only then let their STATE go (specs 1, 3, 11.29).

The one promise: a STATE is handed to ``emit_state`` only when every record before it is in a
published file that the manifest names. Whatever goes wrong, files not yet committed are dropped, no later STATE
comes out, and a run from the last STATE brings the rows again.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Self

from burler.errors import BurlerError, MessageError, UsageError
from burler.lake import catalogue, layout, manifest
from burler.lake.canonical import schema_hash, schema_line
from burler.lake.clean import CleanCheck
from burler.lake.held import HeldStates
from burler.lake.openfile import OpenFile, SchemaInUse, fitting
from burler.lake.roll import Clock, RollSettings, SystemClock
from burler.lake.store import Store
from burler.singer.messages import ActivateVersion, Records, Schema, State, format_time, to_line

__all__ = ["Clock", "LakeWriter", "RollSettings", "SystemClock"]

_COMPRESSIONS = ("gz", "bz2", None)
_REMEMBERED_NAMES = 10_000


class LakeWriter:
    """Takes the messages of one tap in sequence, from one thread or several.

    Args:
        tap_id: the tap's folder in the lake.
        emit_state: gets each STATE that is safe, in sequence; called with the writer's lock held.
        writer_id: names this run in the manifest; random by default.
        compression: ``gz``, ``bz2`` or None.
        compression_level: see ``burler.lake.datafile.compressor``.

    After an error other than a ``MessageError`` the writer is dead: open files are gone, ``close`` does nothing.
    """

    def __init__(
        self,
        store: Store,
        tap_id: str,
        *,
        emit_state: Callable[[State], object],
        writer_id: str | None = None,
        clock: Clock | None = None,
        settings: RollSettings | None = None,
        compression: str | None = "gz",
        compression_level: int = 1,
    ) -> None:
        if compression not in _COMPRESSIONS:
            raise UsageError(f"compression {compression!r} is unknown. Known: gz, bz2, none.")
        layout.component(tap_id)
        self._store = store
        self._tap_id = tap_id
        self._emit_state = emit_state
        self._writer_id = writer_id or str(uuid.uuid4())
        self._clock = clock or SystemClock()
        self._settings = settings or RollSettings()
        self._compression = compression
        self._level = compression_level
        self._lock = threading.RLock()
        self._place = 0
        self._dead = False
        self._schemas: dict[str, tuple[Schema, SchemaInUse]] = {}
        self._open: dict[str, OpenFile] = {}
        self._claims: dict[tuple[str, str], manifest.Claim] = {}
        self._unregistered: dict[tuple[str, str], SchemaInUse] = {}
        self._undescribed: set[str] = set()
        self._numbers: dict[str, int] = {}
        self._held = HeldStates()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def schema(self, message: Schema) -> None:
        """The schema of a stream from here on. The same as before: its file goes on. Another: a new file.

        Raises:
            MessageError: the schema has no exact JSON text.
            UsageError: the stream's name differs only in case from another's.
        """
        with self._working():
            line = schema_line(message)
            known = self._schemas.get(message.stream)
            if known is not None and known[1].line == line:
                return
            if known is None:
                self._refuse_case_twin(message.stream)
            if not self._schemas:
                catalogue.describe_lake(self._store, self._tap_id)
            if message.stream in self._open:
                self._end(self._open[message.stream])
                self._release()
            in_use = SchemaInUse(message.stream, line, schema_hash(line), CleanCheck(message.schema))
            self._schemas[message.stream] = (message, in_use)
            self._unregistered[message.stream, in_use.hash] = in_use
            self._undescribed.add(message.stream)

    def records(self, page: Records) -> None:
        """A page of complete RECORD lines as burler makes them."""
        self.page(page.stream, page.lines, page.count, [format_time(page.time_extracted)], page.version)

    def record_line(self, stream: str, line: bytes, time_extracted: dt.datetime, version: int | None = None) -> None:
        """One complete RECORD line, ended by a line end, whose ``time_extracted`` is in burler's one form."""
        self.page(stream, line, 1, [format_time(time_extracted)], version)

    def page(
        self,
        stream: str,
        lines: bytes | bytearray,
        count: int,
        times: Sequence[str],
        version: int | None = None,
    ) -> None:
        """A page of ``count`` complete RECORD lines of one stream and one ``version``.

        ``times`` are the lines' ``time_extracted`` in burler's one form, or a single one for all of them.

        Raises:
            MessageError: no SCHEMA came before. LockLost, StorageError: see ``LakeWriter``.
        """
        with self._working():
            self._place += 1
            start = done = 0
            while done < count:
                file = self._file(stream)
                if version is None and file.activate_version is not None:
                    # Which rows without version an activation drops is told by files: those after it start one.
                    self._end(file)
                    self._release()
                    continue
                end, taken = fitting(
                    lines,
                    start,
                    count - done,
                    room_bytes=self._settings.max_file_bytes - file.size,
                    room_records=self._room_records(file),
                    fresh=not file.records,
                )
                if taken:
                    chunk = lines if taken == count else bytes(memoryview(lines)[start:end])
                    part = times if len(times) == 1 else times[done : done + taken]
                    file.add_records(chunk, taken, min(part), max(part), version)
                    start, done = end, done + taken
                if not taken or self._is_full(file):
                    self._end(file)
                    self._release()

    def activate_version(self, message: ActivateVersion) -> None:
        """ACTIVATE_VERSION, kept at its place among the records."""
        with self._working():
            self._place += 1
            self._file(message.stream).add_activate_version(to_line(message), message.version)

    def state(self, message: State) -> None:
        """A STATE: goes out at once if all data before it is committed, else when it is; newest only."""
        with self._working():
            self._place += 1
            self._held.add(self._place, message, self._open_since())
            self._end_old()
            self._release()

    def tick(self) -> None:
        """End the files that are old enough. For a timer, or whoever waits for input."""
        if self._dead:
            return
        with self._working():
            self._end_old()
            self._release()

    def flush(self) -> None:
        """End and commit every open file, make known the schemas without data, let the newest STATE go."""
        with self._working():
            for file in sorted(self._open.values(), key=lambda file: file.begun):
                self._end(file)
            for in_use in list(self._unregistered.values()):
                manifest.register(self._store, self._tap_id, in_use.stream, schema_line=in_use.line)
            self._unregistered.clear()
            self._describe(set(self._schemas))
            self._release()

    def close(self) -> None:
        """The end: ``flush``; afterwards the writer takes nothing more. Nothing happens after an error."""
        with self._lock:
            if not self._dead:
                self.flush()
                self._dead = True

    def abort(self) -> None:
        """The end after an error elsewhere: what is not committed is dropped, with the STATEs that cover it."""
        with self._lock:
            self._dead = True
            for file in self._open.values():
                file.discard()
            self._open.clear()

    @property
    def next_due_seconds(self) -> float | None:
        """Seconds until the oldest open file is due by age; None when no file is open."""
        opened = min((file.opened for file in list(self._open.values())), default=None)
        if opened is None:
            return None
        return max(0.0, opened + self._settings.max_file_age_seconds - self._clock.monotonic())

    @contextlib.contextmanager
    def _working(self) -> Iterator[None]:
        """One call at a time; an error that may have left something half done ends the writer."""
        with self._lock:
            if self._dead:
                raise BurlerError("this lake writer has ended, by close or by an earlier error: make a new one.")
            try:
                yield
            except MessageError:
                raise
            except BaseException:
                self.abort()
                raise

    def _in_use(self, stream: str) -> SchemaInUse:
        try:
            return self._schemas[stream][1]
        except KeyError:
            raise MessageError(
                f"stream '{stream}': data came before its SCHEMA. The tap must send SCHEMA first."
            ) from None

    def _file(self, stream: str) -> OpenFile:
        """The open file of a stream, begun if there is none (or only one that is too old)."""
        file = self._open.get(stream)
        if file is not None and self._is_old(file):
            self._end(file)
            self._release()
            file = None
        return file or self._begin(self._in_use(stream))

    def _begin(self, in_use: SchemaInUse) -> OpenFile:
        while len(self._open) >= self._settings.max_open_files:
            self._end(min(self._open.values(), key=lambda file: file.begun))
        key = (in_use.stream, in_use.hash)
        if key not in self._claims:
            self._claims[key] = manifest.claim(
                self._store, self._tap_id, in_use.stream, hash=in_use.hash, writer_id=self._writer_id
            )
        folder = f"{layout.stream_folder(self._tap_id, in_use.stream)}/{in_use.hash}"
        new_file = self._store.new_file(folder)
        try:
            self._open[in_use.stream] = OpenFile(
                schema=in_use,
                new_file=new_file,
                begun=self._place,
                opened=self._clock.monotonic(),
                received=format_time(self._clock.now()),
                compression=self._compression,
                level=self._level,
            )
        except BaseException:
            new_file.discard()
            raise
        return self._open[in_use.stream]

    def _end(self, file: OpenFile) -> None:
        """Publish a file and commit it."""
        stream, key = file.schema.stream, (file.schema.stream, file.schema.hash)
        published = file.publish(self._store, self._tap_id, self._numbers)
        done = manifest.commit(self._store, self._claims[key], [published], schema_line=file.schema.line)
        self._claims[key] = done.claim
        del self._open[stream]
        self._unregistered.pop(key, None)
        self._describe({stream})
        if len(self._numbers) > _REMEMBERED_NAMES:
            self._numbers.clear()

    def _describe(self, streams: set[str]) -> None:
        """The tap's catalog: once for each schema that comes in."""
        new = self._undescribed & streams
        if new:
            messages = [message for stream, (message, _) in self._schemas.items() if stream in new]
            catalogue.describe_streams(self._store, self._tap_id, messages)
            self._undescribed -= new

    def _release(self) -> None:
        state = self._held.release(self._open_since())
        if state is not None:
            self._emit_state(state)

    def _open_since(self) -> list[int]:
        return [file.begun for file in self._open.values()]

    def _end_old(self) -> None:
        for file in [file for file in self._open.values() if self._is_old(file)]:
            self._end(file)

    def _is_old(self, file: OpenFile) -> bool:
        return self._clock.monotonic() - file.opened >= self._settings.max_file_age_seconds

    def _is_full(self, file: OpenFile) -> bool:
        most = self._settings.max_file_records
        return file.size >= self._settings.max_file_bytes or (most is not None and file.records >= most)

    def _room_records(self, file: OpenFile) -> int | None:
        most = self._settings.max_file_records
        return None if most is None else most - file.records

    def _refuse_case_twin(self, stream: str) -> None:
        names = ((layout.ROOT, self._tap_id, ()), (layout.tap_folder(self._tap_id), stream, self._schemas))
        for folder, name, others in names:
            here = layout.component(name)
            there = [*self._store.folders(folder), *map(layout.component, others)]
            twin = layout.case_twin(here, there)
            if twin is not None:
                raise UsageError(
                    f"{self._store.url}: '{name}' and '{twin}' differ only in upper and lower case, and would be one "
                    "folder on many systems. Rename one of them in the tap."
                )
