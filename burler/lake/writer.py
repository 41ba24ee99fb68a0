"""Messages into a lake: files roll, commit, and only then let their STATE go.

The one promise: a STATE is handed to ``emit_state`` only when every record before it is in a
published file that the manifest names. Whatever goes wrong, files not yet committed are dropped, no later STATE
comes out, and a run from the last STATE brings the rows again.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import threading
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from burler import times
from burler.batch.rolling import HeldStates, RollSettings
from burler.clock import LAST_SECONDS, Clock, briefly
from burler.errors import BurlerError, MessageError
from burler.lake import catalogue, manifest
from burler.lake.clean import CleanCheck
from burler.lake.committer import Claims, Notes, Run, make_known, refuse_case_twin
from burler.lake.hashing import schema_hash, schema_line
from burler.lake.locks import LockSettings, WaitStopped
from burler.lake.rolling import Form, LakeFiles, Owner, SchemaInUse, WrittenFile
from burler.lake.snapshot import FileStats
from burler.singer.messages import ActivateVersion, Message, Records, Schema, State, Vouched, to_line
from burler.storage.base import Store


class Inlet(ABC):
    """Takes the messages of one tap in sequence, from one thread or several. What becomes of files is the heir's."""

    def __init__(
        self, store: Store, tap_id: str, *, clock: Clock | None, settings: RollSettings | None, form: Form
    ) -> None:
        self._store, self._tap_id = store, tap_id
        self._lock = threading.RLock()
        self._files = LakeFiles(
            store,
            tap_id,
            owner=Owner(self._before, self._published, settled=self._settled, taken=self._taken),
            clock=clock or Clock(),
            settings=settings or RollSettings(),
            form=form,
        )

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

    def schema(self, message: Schema) -> None:
        """The schema of a stream from here on. The same as before: its file goes on. Another: a new file.

        Raises:
            MessageError: the schema has no exact JSON text.
            UsageError: the stream's name differs only in case from another's (``LakeWriter`` alone looks).
        """
        with self._working():
            line = schema_line(message)
            known = self._files.schemas.get(message.stream)
            if known is not None and known.line == line:
                return
            digest = schema_hash(line, self._encoding_for(message.stream))
            schema = SchemaInUse(message.stream, line, digest, CleanCheck(message.schema))
            self._files.use(schema)
            self._in_use(schema, message)

    def records(self, page: Records) -> None:
        """A page of complete RECORD lines as burler makes them."""
        extracted = [times.format_time(page.time_extracted)]
        self.page(page.stream, page.lines, page.count, extracted, page.version, vouched=page.vouched)

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
            self._files.page(stream, lines, count, times, version, vouched)

    def activate_version(self, message: ActivateVersion) -> None:
        """ACTIVATE_VERSION, kept at its place among the records."""
        with self._working():
            self._files.place += 1
            self._files.activate_version(message.stream, to_line(message), message.version)

    def tick(self) -> None:
        """End the files that are old enough. For a timer, or whoever waits for input."""
        with self._working():
            self._files.end_old()
            self._settled()

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

    @abstractmethod
    def _encoding_for(self, stream: str) -> str:
        """How the lake spells schema hashes, asked before a stream takes another schema."""

    def _in_use(self, schema: SchemaInUse, message: Schema) -> None:  # noqa: B027  not all have to know
        """A stream has taken another schema."""

    # ---- see ``Owner`` ---------------------------------------------------------------------------------

    @abstractmethod
    def _before(self, schema: SchemaInUse) -> None: ...

    @abstractmethod
    def _published(self, schema: SchemaInUse, name: str, stats: FileStats) -> None: ...

    @abstractmethod
    def _settled(self) -> None: ...

    @abstractmethod
    def _taken(self, schema: SchemaInUse) -> Collection[str]: ...


__all__ = ["Clock", "LakeWriter", "RollSettings"]


@dataclass(slots=True)
class Tally:
    """Data files of a stream, and the RECORDs in them."""

    files: int = 0
    records: int = 0

    def add(self, file: FileStats) -> None:
        """One more file."""
        self.files += 1
        self.records += file.records


class LakeWriter(Inlet):
    """Takes the messages of one tap in sequence, from one thread or several.

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
    ) -> None:
        run = Run.of(store, tap_id, writer_id, clock, locks, tail, should_stop, encoding)
        settings = settings or RollSettings()
        super().__init__(store, tap_id, clock=run.clock, settings=settings, form=Form(compression, compression_level))
        self._run, self._emit_state = run, emit_state
        # A lock takes as much of the process and of the store as a file.
        self._claims = Claims(run, most=settings.max_open_files)
        self._notes = Notes(run)
        self._dead = False
        self._held = HeldStates()
        self._unregistered: dict[tuple[str, str], SchemaInUse] = {}
        self.committed: defaultdict[str, Tally] = defaultdict(Tally)

    def state(self, message: State) -> None:
        """A STATE: goes out at once if all data before it is committed, else when it is; newest only."""
        with self._working():
            self._files.place += 1
            self._held.add(self._files.place, message, self._files.begun)
            self._files.end_old()
            self._settled()

    def tick(self) -> None:
        """End the files that are old enough. For a timer, or whoever waits for input; nothing happens after the end."""
        if not self._dead:
            super().tick()

    def flush(self) -> None:
        """End and commit every open file, make known the schemas without data, let the newest STATE go."""
        with self._working():
            self._files.end_all()
            make_known(self._run, list(self._unregistered.values()))
            self._unregistered.clear()
            self._notes.describe()
            self._settled()

    def close(self) -> None:
        """The end: ``flush``, and locks are given back; afterwards the writer takes nothing more. Nothing happens after
        an error."""
        with self._lock:
            if not self._dead:
                self.flush()
                self._end("complete")

    def abort(self) -> None:
        """The end after an error elsewhere: what is not committed is dropped, with the STATEs that cover it."""
        with self._lock:
            if not self._dead:
                self._files.discard()
                self._end("failed")

    @property
    def next_due_seconds(self) -> float | None:
        """Seconds until the oldest open file is due by age; None when no file is open."""
        return self._files.next_due_seconds

    def _end(self, state: str) -> None:
        self._dead = True
        with briefly(LAST_SECONDS) if state == "failed" else contextlib.nullcontext():
            if self._claims.release_all():
                self._notes.end(state)

    @contextlib.contextmanager
    def _working(self) -> Iterator[None]:
        """One call at a time; an error that may have left something half done ends the writer."""
        with self._lock:
            if self._dead:
                raise BurlerError("this lake writer has ended, by close or by an earlier error: make a new one.")
            try:
                self._claims.check()
                yield
            except (MessageError, WaitStopped):
                raise
            except BaseException:
                self.abort()
                raise

    def _finish(self) -> None:
        self.close()

    def _encoding_for(self, stream: str) -> str:
        if stream not in self._files.schemas:
            refuse_case_twin(self._store, self._tap_id, stream, self._files.schemas)
        return self._notes.begin()

    def _in_use(self, schema: SchemaInUse, message: Schema) -> None:
        self._unregistered[schema.key] = schema
        self._notes.add(message)

    def _before(self, schema: SchemaInUse) -> None:
        self._claims.take(schema, before_wait=self._commit_all, needed=self._files.is_open)

    def _commit_all(self) -> None:
        self._files.end_all()
        self._settled()

    def _published(self, schema: SchemaInUse, name: str, stats: FileStats) -> None:
        self._claims.commit(schema, [(name, stats)])
        self.committed[schema.stream].add(stats)
        self._unregistered.pop(schema.key, None)
        self._notes.describe(schema.stream)
        if self._run.tail:
            self._claims.release(schema.key)

    def _settled(self) -> None:
        state = self._held.release(self._files.begun)
        if state is not None:
            self._emit_state(state)

    def _taken(self, schema: SchemaInUse) -> frozenset[str]:
        return self._claims.taken(schema)


class PartWriter(Inlet):
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
        super().__init__(store, tap_id, clock=clock, settings=settings, form=Form(compression, compression_level))
        self._encoding: str | None = None
        self._done: list[WrittenFile] = []
        self._names: dict[tuple[str, str], frozenset[str]] = {}

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
                self._files.end_all()
            except BaseException:
                self._files.discard()
                raise

    def _encoding_for(self, stream: str) -> str:
        if self._encoding is None:
            self._encoding = catalogue.encoding_of(self._store)
        return self._encoding

    def _before(self, schema: SchemaInUse) -> None:
        """Locks are the driver's."""

    def _published(self, schema: SchemaInUse, name: str, stats: FileStats) -> None:
        self._done.append(WrittenFile(self._tap_id, schema.stream, schema.hash, schema.line, name, stats))

    def _settled(self) -> None:
        """So are STATEs."""

    def _taken(self, schema: SchemaInUse) -> frozenset[str]:
        """As the manifest says when the first file is done: the driver has begun by then."""
        if schema.key not in self._names:
            names = manifest.names_taken(self._store, self._tap_id, schema.stream, schema.hash)
            self._names[schema.key] = names
        return self._names[schema.key]
