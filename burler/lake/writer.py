"""Messages into a lake: files roll, commit, and only then let their STATE go.

The one promise: a STATE is handed to ``emit_state`` only when every record before it is in a
published file that the manifest names. Whatever goes wrong, files not yet committed are dropped, no later STATE
comes out, and a run from the last STATE brings the rows again.

The walk of a RECORD line: ``ingest`` gathers it into a page with its neighbours (``burler.singer.reader``), and the
writer asks for the open file of its stream. If there is none, it ends the oldest where too many are open, owns the
schema version (``Committer.take``) and begins one. The line goes into that file (``RollingFiles.add``). Once the file
is full or old, or the input ends, it is ended; what it has become is committed (``Committer.commit``), and the newest
STATE goes out that no open file holds back.

``PartWriter`` does the same without locks, commits and STATEs: its files are for a ``LakeDriver`` to commit. So several
processes write one stream::

    with LakeDriver(store, "tap-crm") as driver:       # the main process: it has the lock and the claim
        driver.begin(schema)
        driver.commit(files)                            # what the workers made, as often as you like

    with PartWriter(store, "tap-crm") as writer:        # each worker, in its own process or on another machine
        writer.schema(schema)
        writer.records(page)
    files = writer.close()                              # list[WrittenFile], to be sent to the main process

No row counts before the driver has committed its file: a worker that dies leaves files that no manifest names
(``burler lake check`` finds them), and whoever keeps STATE hands it on only after ``commit``.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import logging
import threading
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from burler import times
from burler.batch.rolling import HeldStates, RollSettings
from burler.clock import Clock
from burler.errors import BurlerError, LakeError, MessageError, UsageError
from burler.lake import catalogue, layout, manifest
from burler.lake.committer import Committed, Committer
from burler.lake.datafile import head_of
from burler.lake.hashing import schema_hash, schema_line
from burler.lake.locks import LockSettings, WaitStopped
from burler.lake.rolling import Key, LakeSchema, OpenDataFile, PageLines, RollingFiles, WrittenFile
from burler.lake.state import StateKeeper
from burler.singer.messages import ActivateVersion, Message, Records, Schema, State, Vouched, to_line
from burler.singer.reader import BatchLine, Ingested, PageReader, Stopped
from burler.storage.base import Store

if TYPE_CHECKING:
    from burler.batch.allowed import Allowed

_log = logging.getLogger("burler.lake")


class RowWriter(ABC):
    """Takes the messages of one tap in sequence, from one thread or several, into open files.

    How a file is begun, and what becomes of one that is ended, ``_begin`` and ``_end`` say.
    """

    def __init__(self, files: RollingFiles) -> None:
        self._files, self._lock = files, threading.RLock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._finish()
        else:
            self.abort()

    def take(self, message: Message) -> None:
        """A message by its kind; one that says nothing of rows is passed over.

        Raises:
            MessageError, UsageError, LockLost, StorageError, LockTimeout, WaitStopped: see ``schema`` and ``page``.
        """
        if isinstance(message, Records):
            self.records(message)
        elif isinstance(message, Schema):
            self.schema(message)
        elif isinstance(message, ActivateVersion):
            self.activate_version(message)

    @abstractmethod
    def schema(self, message: Schema) -> None:
        """The schema of a stream from here on. The same as before: its file goes on. Another: a new file.

        Raises:
            MessageError: the schema has no exact JSON text.
            UsageError: the stream's name differs only in case from another's (``LakeWriter`` alone looks).
        """

    @abstractmethod
    def state(self, message: State) -> None:
        """A STATE."""

    def records(self, page: Records) -> None:
        """A page of complete RECORD lines as burler makes them."""
        extracted = [times.format_time(page.time_extracted)]
        lines = bytes(page.lines) if isinstance(page.lines, memoryview) else page.lines  # they are cut and searched
        self.page(page.stream, lines, page.count, extracted, page.version, vouched=page.vouched)

    def record_line(self, stream: str, line: bytes, time_extracted: dt.datetime, version: int | None = None) -> None:
        """One complete RECORD line, ended by a line end, whose ``time_extracted`` is in burler's one form."""
        self.page(stream, line, 1, [times.format_time(time_extracted)], version)

    def page(
        self,
        stream: str,
        lines: bytes | bytearray,
        count: int,
        times: Sequence[str],
        version: int | None = None,
        *,
        vouched: Vouched | None = None,
    ) -> None:
        """A page of ``count`` complete RECORD lines of one stream and one ``version``.

        ``times`` are the lines' ``time_extracted`` in burler's one form, or a single one for all of them. ``vouched``:
        what their maker knows of the rows (see ``Records``): if enough, they are not read to see if they are clean.

        Raises:
            MessageError: no SCHEMA came before. LockLost, StorageError: see ``LakeWriter``.
            LockTimeout: another writer had the stream's lock for too long. WaitStopped: told to stop meanwhile.
        """
        with self._working():
            self._files.place += 1
            page = PageLines(lines, count, times, version, vouched)
            while page.left:
                self._end(self._files.add(self._file(stream), page))

    def activate_version(self, message: ActivateVersion) -> None:
        """ACTIVATE_VERSION, kept at its place among the records."""
        with self._working():
            self._files.place += 1
            self._file(message.stream).add_activate_version(to_line(message), message.version)

    def tick(self) -> None:
        """End the files that are old enough. For a timer, or whoever waits for input."""
        with self._working():
            self._end(self._files.old())

    @property
    def next_due_seconds(self) -> float | None:
        """Seconds until the oldest open file is due by age; None when no file is open."""
        return self._files.next_due_seconds

    @abstractmethod
    def close(self) -> object:
        """The end: what has come is kept."""

    @abstractmethod
    def abort(self) -> None:
        """The end after an error: drop what is not published."""

    @abstractmethod
    def _finish(self) -> None:
        """The end of a ``with`` that went well."""

    @contextlib.contextmanager
    def _working(self) -> Iterator[None]:
        """One call at a time."""
        with self._lock:
            yield

    def _file(self, stream: str) -> OpenDataFile:
        """The open file of a stream, begun if there is none that will do."""
        return self._files.current(stream) or self._begin(stream)

    @abstractmethod
    def _begin(self, stream: str) -> OpenDataFile:
        """Begin a file, and end those that are in its way."""

    @abstractmethod
    def _end(self, files: Sequence[OpenDataFile]) -> None:
        """End files."""


class LakeWriter(RowWriter):
    """Takes the messages of one tap in sequence, from one thread or several: open files, and a committer.

    Args:
        tap_id: the tap's folder in the lake.
        emit_state: gets each STATE that is safe, in sequence; called with the writer's lock held.
        writer_id: names this run in locks and the manifest; of its own by default. No other that lives may have it.
        compression: ``gz``, ``bz2`` or None.
        compression_level: see ``burler.formats.compression``.
        encoding: how a new lake spells schema hashes in its folders: ``base58``, ``base85``; None: as the lake has it.
        locks: how long to wait for other writers.
        tail: input never ends: a lock is given back after each commit, and taken again for the next file.
        should_stop: ends a wait for a lock (``WaitStopped``); asked about once a second.
        clock: time and chance: what files roll by, locks and commits wait by.
        keeper: keeps each STATE in the lake, before ``emit_state`` gets it, and names the run.

    After an error other than a ``MessageError`` or ``WaitStopped`` the writer is dead: open files are gone, ``close``
    does nothing.

    Attributes:
        committed: what this writer has committed, by stream.
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
        encoding: str | None = None,
        locks: LockSettings | None = None,
        tail: bool = False,
        should_stop: Callable[[], bool] = lambda: False,
        keeper: StateKeeper | None = None,
    ) -> None:
        clock, settings = clock or Clock(), settings or RollSettings()
        super().__init__(RollingFiles(store, tap_id, clock, settings, compression, compression_level))
        self._committer = Committer(
            store,
            tap_id,
            writer_id=writer_id,
            clock=clock,
            encoding=encoding,
            locks=locks,
            tail=tail,
            should_stop=should_stop,
            keeper=keeper,
            most_locks=settings.max_open_files,  # a lock takes as much of the process and of the store as a file
        )
        self._emit_state, self._keeper, self._held, self._dead = emit_state, keeper, HeldStates(), False
        self.committed: dict[str, Committed] = self._committer.committed

    def schema(self, message: Schema) -> None:
        """See ``RowWriter.schema``."""
        with self._working():
            line = schema_line(message)
            if self._files.uses(message.stream, line):
                return
            schema = self._committer.version_of(message, line)
            self._end(self._files.of(message.stream))
            self._files.use(schema)
            self._committer.note(schema)

    def state(self, message: State) -> None:
        """A STATE: goes out at once if all data before it is committed, else when it is; newest only."""
        with self._working():
            self._files.place += 1
            self._held.add(self._files.place, message, self._files.begun)
            self._end(self._files.old())

    def tick(self) -> None:
        """End the files that are old enough. For a timer, or whoever waits for input; nothing happens after the end."""
        if not self._dead:
            super().tick()

    def flush(self) -> None:
        """End and commit every open file, make known the schemas without data, let the newest STATE go."""
        with self._working():
            for file in self._files.in_order():
                self._commit(file)
            self._committer.register()

    def close(self) -> None:
        """The end: ``flush``, and locks are given back; afterwards the writer takes nothing more. Nothing happens after
        an error."""
        with self._lock:
            if not self._dead:
                self.flush()
                self._dead = True
                self._committer.end(failed=False)

    def abort(self) -> None:
        """The end after an error elsewhere: what is not committed is dropped, with the STATEs that cover it."""
        with self._lock:
            if not self._dead:
                self._files.discard()
                self._dead = True
                self._committer.end(failed=True)

    def _finish(self) -> None:
        self.close()

    @contextlib.contextmanager
    def _working(self) -> Iterator[None]:
        """One call at a time, and the STATE that it has freed behind it; an error that may have left something half
        done ends the writer."""
        with self._lock:
            if self._dead:
                raise BurlerError("this lake writer has ended, by close or by an earlier error: make a new one.")
            try:
                self._committer.check()
                yield
                self._settle()
            except (MessageError, WaitStopped):
                raise
            except BaseException:
                self.abort()
                raise

    def _begin(self, stream: str) -> OpenDataFile:
        schema = self._files.schema_of(stream)
        self._end(self._files.in_the_way(stream))
        lock = self._committer.take(schema.key, needed=self._files.keys)
        if lock is not None:
            self._end(self._files.in_order())
            self._committer.wait(schema.key, lock)
        return self._files.begin(schema, self._committer.names_taken(schema.key))

    def _end(self, files: Sequence[OpenDataFile]) -> None:
        for file in files:
            self._commit(file)
        if files:
            self._settle()

    def _commit(self, file: OpenDataFile) -> None:
        self._committer.commit([self._files.end(file)])

    def _settle(self) -> None:
        """Let the newest STATE go that no open file holds back."""
        state = self._held.release(self._files.begun) if self._held else None
        if state is not None:
            if self._keeper is not None:
                self._keeper.save(state.whole)
            self._emit_state(state)


class PartWriter(RowWriter):
    """Makes files of some of a tap's rows, for a driver to commit: no lock, no claim, no commit, no STATE.

    Args:
        clock: what files roll by, and what names files without rows.
        settings: when files roll.
        compression: ``gz``, ``bz2`` or None; and its level, see ``burler.formats.compression``.

    The driver must have begun: it decides how the lake names its folders.
    """

    def __init__(
        self,
        store: Store,
        tap_id: str,
        *,
        clock: Clock | None = None,
        settings: RollSettings | None = None,
        compression: str | None = "gz",
        compression_level: int = 1,
    ) -> None:
        super().__init__(
            RollingFiles(store, tap_id, clock or Clock(), settings or RollSettings(), compression, compression_level)
        )
        self._store, self._tap_id, self._encoding = store, tap_id, ""
        self._done: list[WrittenFile] = []
        self._taken: dict[Key, frozenset[str]] = {}

    def schema(self, message: Schema) -> None:
        """See ``RowWriter.schema``."""
        with self._lock:
            line = schema_line(message)
            if self._files.uses(message.stream, line):
                return
            self._encoding = self._encoding or catalogue.encoding_of(self._store)
            self._end(self._files.of(message.stream))
            self._files.use(LakeSchema(message, line, schema_hash(line, self._encoding)))

    def state(self, message: State) -> None:
        """It is passed over: who commits the files says STATE."""

    def drain(self) -> list[WrittenFile]:
        """Files that are done and were not handed out yet: for a driver that commits as it goes."""
        with self._lock:
            done, self._done = self._done, []
            return done

    def close(self) -> list[WrittenFile]:
        """End all files; those that ``drain`` did not hand out."""
        self._finish()
        return self.drain()

    def abort(self) -> None:
        """Drop what is not published."""
        with self._lock:
            self._files.discard()

    def _finish(self) -> None:
        with self._lock:
            try:
                self._end(self._files.in_order())
            except BaseException:
                self._files.discard()
                raise

    def _begin(self, stream: str) -> OpenDataFile:
        """What the manifest said when the first file began decides which names are free: the driver has begun then."""
        schema = self._files.schema_of(stream)
        self._end(self._files.in_the_way(stream))
        if schema.key not in self._taken:
            self._taken[schema.key] = self._names_taken(schema)
        return self._files.begin(schema, self._taken[schema.key])

    def _end(self, files: Sequence[OpenDataFile]) -> None:
        for file in files:
            self._done.append(self._files.end(file))

    def _names_taken(self, schema: LakeSchema) -> frozenset[str]:
        """See ``manifest.Claim.taken``; none where there is no manifest, or a broken one: whoever commits will tell."""
        path = layout.manifest_path(self._tap_id, schema.stream)
        blob = self._store.read(path)
        with contextlib.suppress(LakeError):
            if blob is not None:
                return manifest.taken_names(manifest.from_bytes(blob.data, self._store.locate(path)), schema.hash)
        return frozenset()


class LakeDriver:
    """Holds lock and claim of schema versions while others make files of them, and commits these.

    Args:
        tail: workers go on for ever: a lock is given back after each commit.

    The others are as those of ``LakeWriter``.

    An error of ``begin`` or ``commit`` leaves what was committed before; ``close`` gives the locks back. Safe among
    threads.
    """

    def __init__(
        self,
        store: Store,
        tap_id: str,
        *,
        writer_id: str | None = None,
        clock: Clock | None = None,
        encoding: str | None = None,
        locks: LockSettings | None = None,
        tail: bool = False,
        should_stop: Callable[[], bool] = lambda: False,
        keeper: StateKeeper | None = None,
    ) -> None:
        self._store, self._tap_id = store, tap_id
        self._committer = Committer(
            store,
            tap_id,
            writer_id=writer_id,
            clock=clock,
            encoding=encoding,
            locks=locks,
            tail=tail,
            should_stop=should_stop,
            keeper=keeper,
        )
        self._begun: set[Key] = set()
        self._expected: list[LakeSchema] = []
        self._lock = threading.RLock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            with self._lock:
                self._committer.end(failed=True)

    def begin(self, message: Schema) -> None:
        """Own a schema version, before the workers write the first file of it: lock, claim, catalog.

        Raises:
            UsageError: the stream's name differs only in case from another's.
            LockTimeout, WaitStopped: another writer has it. LockLost, StorageError: see ``LakeWriter``.
        """
        with self._lock:
            schema = self._committer.version_of(message)
            if schema.key not in self._begun:
                self._begin(schema)

    def expect(self, message: Schema) -> None:
        """As ``begin``, for a stream whose own SCHEMA only the workers will hear: most likely it is the last one that
        the lake has. This one it gets only if it has none at the end.

        Raises:
            UsageError, LockTimeout, WaitStopped, LockLost, StorageError: see ``begin``.
        """
        with self._lock:
            schema = self._committer.version_of(message)
            newest = self._committer.newest(schema.stream)
            if newest is None:
                self._expected.append(schema)
            else:
                self._own((schema.stream, newest))

    def commit(self, files: Iterable[WrittenFile]) -> None:
        """Files enter the manifest; each counts once, however often it is committed. All of a schema version in one
        step. Schema versions that were not begun are begun here.

        Raises:
            UsageError: a file of another tap.
            LakeError: a file is not in this store: the worker wrote elsewhere.
            LockLost: another writer has taken over: these files are in no manifest.
        """
        with self._lock:
            groups: defaultdict[Key, list[WrittenFile]] = defaultdict(list)
            for file in files:
                self._check(file)
                groups[file.key].append(file)
            for key, group in groups.items():
                self._committer.check()
                if key not in self._begun:
                    first = group[0]
                    message = head_of(first.schema_line, f"stream '{first.stream}': {first.name}").message
                    self._begin(LakeSchema(message, first.schema_line, first.hash))
                self._own(key)  # it may have been given back meanwhile
                self._committer.commit(group)

    def check(self) -> None:
        """For whoever waits for workers: ``LockLost`` where another writer has taken over meanwhile."""
        with self._lock:
            self._committer.check()

    def close(self) -> None:
        """Make known the schemas without data, and give the locks back. What is not committed is in no manifest."""
        with self._lock:
            begun = {stream for stream, _ in self._begun}
            for schema in self._expected:
                if schema.stream not in begun:
                    self._committer.note(schema)
            self._committer.register()
            self._committer.end(failed=False)

    def _begin(self, schema: LakeSchema) -> None:
        self._own(schema.key)
        self._begun.add(schema.key)
        self._committer.note(schema)

    def _own(self, key: Key) -> None:
        lock = self._committer.take(key)
        if lock is not None:
            self._committer.wait(key, lock)

    def _check(self, file: WrittenFile) -> None:
        if file.tap_id != self._tap_id:
            raise UsageError(f"{file.name} is of tap '{file.tap_id}', and this driver commits for '{self._tap_id}'.")
        folder, _, name = file.name.partition("/")
        if folder != file.hash or layout.parse_file_name(name) is None:
            raise UsageError(f"stream '{file.stream}': {file.name!r} is no name of a data file of schema {file.hash}.")
        path = f"{layout.stream_folder(file.tap_id, file.stream)}/{file.name}"
        try:
            self._store.open(path).close()
        except FileNotFoundError:
            raise LakeError(
                f"stream '{file.stream}': {self._store.locate(path)} is not there. Did the worker write to another "
                "disk? All must reach the same lake."
            ) from None


def ingest(
    source: BinaryIO | int,
    writer: RowWriter,
    *,
    clock: Clock | None = None,
    warn: Callable[[str], object] = _log.warning,
    should_stop: Callable[[], bool] = lambda: False,
    storage_options: Mapping[str, Any] | None = None,
    allow: Allowed | Iterable[str] | None = None,
) -> Ingested:
    """Read messages of any tap, as lines of bytes, until the end of ``source``, then close the writer.

    The bytes of each ``record`` go into the lake as they came, also those of files that a BATCH names. What is made
    uniform is around them: the type in upper case, ``time_extracted`` in UTC with six digits.

    Args:
        source: a binary stream or a file descriptor. While a descriptor has nothing to read, files still roll by age.
        clock: gives the received time to records that have none.
        warn: gets one line for each kind of oddity, once.
        should_stop: asked about once a second, between blocks and between pages of a BATCH; True ends the run as the
            end of input does. Of a writer that waits for a lock its own is asked; what waits there is given up, and no
            STATE covers it.
        storage_options: for the library that reads the files of BATCH messages (credentials, an endpoint).
        allow: what manifests may name; see ``burler.batch.read``.

    Raises:
        MessageError: a line is no message, data came before its SCHEMA, or a BATCH can't be read (``BatchError``); with
            the line's number. All before it is committed, and the STATE that covers it is out.
        BurlerError: the lake can't be written; nothing uncommitted is covered by a STATE.
    """
    told = False

    def batch(found: BatchLine, received: dt.datetime) -> int:
        """The rows of files as RECORD lines. A BATCH without ``time_extracted`` has the time at which it was received,
        as RECORDs beside it have: so the order of messages decides which row is the latest."""
        from burler.batch.readers import read, uncounted

        nonlocal told
        reading = read(
            found.line, found.schema, options=storage_options, allow=allow, line=found.number, warn=reader.warn
        )
        message, count = reading.batch, 0
        moment = message.time_extracted or received
        for page in reading.pages():
            lines = reading.records(page, received)
            writer.page(message.stream, lines, page.count, [times.format_time(moment)], message.version)
            count += page.count
            if should_stop():
                raise Stopped
            writer.tick()
        if not told and (files := uncounted(message)):
            told = True
            warn(
                f"line {found.number}: stream '{message.stream}': rows not counted: {files[0]} has no file_stats, so a "
                "cut at a line end is not seen"
            )
        return count

    reader = PageReader(writer, clock or Clock(), warn, batch=batch)
    try:
        reader.read(source, tick=writer.tick, should_stop=should_stop, due=lambda: writer.next_due_seconds)
    except MessageError:
        writer.close()
        raise
    except WaitStopped as stop:
        warn(str(stop))
    except BaseException:
        writer.abort()
        raise
    writer.close()
    return reader.done
