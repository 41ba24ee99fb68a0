"""Messages into a lake: files roll, commit, and only then let their STATE go.

The one promise: a STATE is handed to ``emit_state`` only when every record before it is in a
published file that the manifest names. Whatever goes wrong, files not yet committed are dropped, no later STATE
comes out, and a run from the last STATE brings the rows again.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from burler.batch.rolling import HeldStates, RollSettings
from burler.clock import LAST_SECONDS, Clock, briefly
from burler.errors import BurlerError, MessageError
from burler.lake.locking.lock import LockSettings, WaitStopped
from burler.lake.snapshot import FileStats
from burler.lake.writing.claims import Claims
from burler.lake.writing.files import Form
from burler.lake.writing.inlet import Inlet
from burler.lake.writing.notes import Notes, make_known, refuse_case_twin
from burler.lake.writing.openfile import SchemaInUse
from burler.lake.writing.run import Run
from burler.singer.messages import Schema, State
from burler.storage.base import Store

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
