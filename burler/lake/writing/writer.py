"""Messages into a lake: files roll, commit, and only then let their STATE go (specs 1, 3, 11.29).

The one promise: a STATE is handed to ``emit_state`` only when every record before it is in a
published file that the manifest names. Whatever goes wrong, files not yet committed are dropped, no later STATE
comes out, and a run from the last STATE brings the rows again.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from burler.errors import BurlerError, MessageError
from burler.lake import layout
from burler.lake.canonical import schema_hash, schema_line
from burler.lake.clean import CleanCheck
from burler.lake.locking.lock import LockSettings, WaitStopped
from burler.lake.locking.locks import Locks, new_writer_id
from burler.lake.manifests import manifest
from burler.lake.pace import LAST_SECONDS, Pace, briefly
from burler.lake.snapshot import FileStats
from burler.lake.store import Store
from burler.lake.writing.claims import Claims
from burler.lake.writing.files import Form, OpenFiles, Owner
from burler.lake.writing.notes import Notes, refuse_case_twin
from burler.lake.writing.openfile import SchemaInUse
from burler.singer.messages import ActivateVersion, Records, Schema, State, Vouched, format_time, to_line
from burler.target.held import HeldStates
from burler.target.roll import Clock, RollSettings, SystemClock

__all__ = ["Clock", "LakeWriter", "RollSettings", "SystemClock"]


@dataclass(slots=True)
class Tally:
    """Data files of a stream, and the RECORDs in them."""

    files: int = 0
    records: int = 0

    def add(self, file: FileStats) -> None:
        """One more file."""
        self.files += 1
        self.records += file.records


class LakeWriter:
    """Takes the messages of one tap in sequence, from one thread or several.

    Args:
        tap_id: the tap's folder in the lake.
        emit_state: gets each STATE that is safe, in sequence; called with the writer's lock held.
        writer_id: names this run in locks and the manifest; of its own by default. No other that lives may have it.
        compression: ``gz``, ``bz2`` or None.
        compression_level: see ``burler.target.compressor``.
        encoding: how a new lake spells schema hashes in its folders: ``base58``, ``base85``; None: as the lake has it.
        locks: how long to wait for other writers.
        tail: input never ends: a lock is given back after each commit, and taken again for the next file (specs 11.22).
        should_stop: ends a wait for a lock (``WaitStopped``); asked about once a second.
        pace: time and chance of locks and commits; ``clock`` is what files roll by.

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
        pace: Pace | None = None,
    ) -> None:
        layout.component(tap_id)
        self._store, self._tap_id = store, tap_id
        self._emit_state = emit_state
        self._pace = pace or Pace()
        self._tail = tail
        writer_id = writer_id or new_writer_id()
        clock, settings = clock or SystemClock(), settings or RollSettings()
        owned = Locks(store, writer_id=writer_id, settings=locks, pace=self._pace, should_stop=should_stop)
        most = settings.max_open_files  # a lock takes as much of the process and of the store as a file
        self._claims = Claims(store, tap_id, writer_id=writer_id, locks=owned, pace=self._pace, most=most)
        owner = Owner(self._before, self._published, settled=self._release, taken=self._claims.taken)
        self._files = OpenFiles(
            store, tap_id, owner=owner, clock=clock, settings=settings, form=Form(compression, compression_level)
        )
        self._notes = Notes(store, tap_id, writer_id=writer_id, clock=clock, pace=self._pace, encoding=encoding)
        self._lock = threading.RLock()
        self._dead = False
        self._held = HeldStates()
        self._unregistered: dict[tuple[str, str], SchemaInUse] = {}
        self.committed: defaultdict[str, Tally] = defaultdict(Tally)

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
            known = self._files.schemas.get(message.stream)
            if known is not None and known.line == line:
                return
            if known is None:
                refuse_case_twin(self._store, self._tap_id, message.stream, self._files.schemas)
            digest = schema_hash(line, self._notes.begin())
            schema = SchemaInUse(message.stream, line, digest, CleanCheck(message.schema))
            self._files.use(schema)
            self._unregistered[schema.key] = schema
            self._notes.add(message)

    def records(self, page: Records) -> None:
        """A page of complete RECORD lines as burler makes them."""
        times = [format_time(page.time_extracted)]
        self.page(page.stream, page.lines, page.count, times, page.version, vouched=page.vouched)

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

    def state(self, message: State) -> None:
        """A STATE: goes out at once if all data before it is committed, else when it is; newest only."""
        with self._working():
            self._files.place += 1
            self._held.add(self._files.place, message, self._files.begun)
            self._files.end_old()
            self._release()

    def tick(self) -> None:
        """End the files that are old enough. For a timer, or whoever waits for input."""
        if self._dead:
            return
        with self._working():
            self._files.end_old()
            self._release()

    def flush(self) -> None:
        """End and commit every open file, make known the schemas without data, let the newest STATE go."""
        with self._working():
            self._files.end_all()
            for schema in list(self._unregistered.values()):
                manifest.register(
                    self._store,
                    self._tap_id,
                    schema.stream,
                    schema_line=schema.line,
                    hash=schema.hash,
                    pace=self._pace,
                )
            self._unregistered.clear()
            self._notes.describe()
            self._release()

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

    def _before(self, schema: SchemaInUse) -> None:
        self._claims.take(schema, before_wait=self._settle, needed=self._files.is_open)

    def _settle(self) -> None:
        self._files.end_all()
        self._release()

    def _published(self, schema: SchemaInUse, name: str, stats: FileStats) -> None:
        self._claims.commit(schema, [(name, stats)])
        self.committed[schema.stream].add(stats)
        self._unregistered.pop(schema.key, None)
        self._notes.describe(schema.stream)
        if self._tail:
            self._claims.release(schema.key)

    def _release(self) -> None:
        state = self._held.release(self._files.begun)
        if state is not None:
            self._emit_state(state)
