"""In which order one run locks, claims, writes and commits. Who may commit, ``burler.lake.manifest`` decides.

A run writes a schema version of a stream in these steps. Each is safe whatever other writers do, and wherever this one
is paused or killed between two of them:

1. **Lock** (``take``, ``burler.lake.locks``): writers take turns. Where another one has the lock, what is open is
   committed first, all other locks are given back, and only then is it waited for (``wait``): so two writers never wait
   for each other.
2. **Claim** (``take``, ``burler.lake.manifest``): the state in the lake is still what this run went on from, or it ends
   here (``StateKeeper.check``). Then the manifest names this writer, with an epoch that is one higher each
   time, and every earlier claim ends. Then the lock is read once more.
3. **Files** are made under names that were free (``burler.lake.rolling``). No manifest names them.
4. **Commit** (``commit``): they enter the manifest in one step, if the claim stands. Who was taken over gets
   ``LockLost``.
5. **STATE**: one that covers them goes out, once it is in the lake itself (``burler.lake.state``).
6. **Release** (``end``): the lock goes at the end of the run; under ``tail`` after each commit.

Who calls is ``burler.lake.writer``: it commits what is open before a wait, makes the files (3), and lets a STATE go (5)
once no open file holds it back (``LakeWriter._settle``); a ``LakeDriver`` leaves both to others.

What is said beside the data, in the tap's catalog and in ``singerlake.json``, is ``catalogue.RunNotes``'.
"""

from __future__ import annotations

import contextlib
import logging
import shlex
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from burler.clock import LAST_SECONDS, Clock, briefly
from burler.lake import layout, manifest
from burler.lake.catalogue import RunNotes
from burler.lake.hashing import schema_hash, schema_line
from burler.lake.lake import Lake
from burler.lake.locks import Locks, LockSettings, StreamLock, new_writer_id
from burler.lake.manifest import Claim
from burler.lake.rolling import Key, LakeSchema, WrittenFile
from burler.lake.snapshot import FileStats
from burler.lake.state import StateKeeper
from burler.singer.messages import Schema
from burler.storage.base import Store

_log = logging.getLogger("burler.lake")


@dataclass(slots=True)
class Committed:
    """Data files of a stream that were committed, and the RECORDs in them."""

    files: int = 0
    records: int = 0

    def add(self, file: FileStats) -> None:
        """One more file."""
        self.files += 1
        self.records += file.records


class Committer:
    """What one run owns in a lake. For one thread at a time.

    On a store whose conditions do not hold among processes there are no locks, and nothing fences: one warning says so.

    Args:
        most_locks: beyond so many, those that are not needed now are given back.

    The others are as those of ``LakeWriter``.

    Attributes:
        committed: what was committed, by stream.

    Raises:
        UsageError: the tap's name can't be a folder's.
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
        most_locks: int = 1000,
        keeper: StateKeeper | None = None,
    ) -> None:
        layout.component(tap_id)
        self._store, self._tap_id, self._tail, self._most, self._keeper = store, tap_id, tail, most_locks, keeper
        self._writer_id = writer_id or (keeper.writer_id if keeper is not None else new_writer_id())
        self._clock = clock or Clock()
        self._locks: Locks | None = Locks(
            store, writer_id=self._writer_id, settings=locks, clock=self._clock, should_stop=should_stop
        )
        self._notes = RunNotes(store, tap_id, writer_id=self._writer_id, encoding=encoding, clock=self._clock)
        self._looked = False
        self._claims: dict[Key, Claim] = {}
        self._streams: set[str] = set()
        self._without_files: dict[Key, LakeSchema] = {}
        self.committed: defaultdict[str, Committed] = defaultdict(Committed)

    # ---- schema versions ---------------------------------------------------------------------------------------------

    def version_of(self, message: Schema, line: bytes | None = None) -> LakeSchema:
        """A schema as this lake names it. The first one makes the lake known, and that the tap is running.

        Raises:
            MessageError: the schema has no exact JSON text.
            UsageError: the stream's name, or the tap's, differs only in case from another's; the lake names schemas by
                rules that were not asked for, or are unknown.
        """
        line = line or schema_line(message)
        if message.stream not in self._streams:
            lake = Lake(self._store)
            lake.refuse_case_twins(self._tap_id, message.stream, self._streams)
            goes_on = self._keeper is not None and self._keeper.goes_on(message.stream)
            if goes_on and not lake.has(self._tap_id, message.stream):
                self._warn_of_missing(message.stream)
        self._notes.begin()
        self._streams.add(message.stream)
        return LakeSchema(message, line, schema_hash(line, self._notes.encoding))

    def note(self, schema: LakeSchema) -> None:
        """A schema version is in use: the catalog is to have it, and the manifest, also where no file of it comes."""
        self._without_files[schema.key] = schema
        self._notes.use(schema.message)

    def newest(self, stream: str) -> str | None:
        """The hash of the newest schema version that the lake has of a stream, which has a manifest from here on."""
        return manifest.ensure(self._store, self._tap_id, stream, clock=self._clock)

    def register(self) -> None:
        """Make known the schemas without data: who reads the lake knows the stream's columns all the same."""
        for schema in self._without_files.values():
            manifest.register(
                self._store, self._tap_id, schema.stream, schema_line=schema.line, hash=schema.hash, clock=self._clock
            )
        self._without_files.clear()
        self._notes.describe()

    # ---- locks and claims --------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raise what a heartbeat found out: ``LockLost``."""
        if self._locks is not None:
            self._locks.check()

    def take(self, key: Key, *, needed: Collection[Key] = ()) -> StreamLock | None:
        """Own a schema version, before the first byte of a file of it: lock and claim.

        Args:
            needed: schema versions of which files are open.

        Returns:
            The lock, where another writer has it: commit what is open, then ``wait`` for it. None: it is ours.

        Raises:
            LockLost: it was taken over again at once. StorageError: the store fails.
        """
        self._notes.begin()
        self._look_at_store()
        if self._locks is None:
            if key not in self._claims:
                self._claim(key)
            return None
        path = self._path(key)
        if self._locks.holds(path) and key in self._claims:  # not where the store failed between the two
            return None
        if len(self._locks) >= self._most:
            self.release([one for one in self._claims if one not in needed])
        known = self._claims.get(key)
        lock = self._locks.attempt(path, key[0], epoch=known.epoch if known else 0)
        if not lock.held:
            return lock
        self._claim(key)
        return None

    def wait(self, key: Key, lock: StreamLock) -> None:
        """Own a schema version that another writer has. All that is ours is given back first: two writers that each
        have what the other waits for would wait for ever.

        Raises:
            LockTimeout, WaitStopped: see ``Locks.wait``. LockLost, StorageError: see ``take``.
        """
        assert self._locks is not None
        self.release(list(self._claims))
        self._locks.wait(lock)
        self._claim(key)

    def names_taken(self, key: Key) -> frozenset[str]:
        """Names that no new file may have, as the manifest said last (``manifest.Claim``)."""
        return self._claims[key].taken

    def release(self, keys: Collection[Key]) -> None:
        """Give locks back. Their claims are kept: if nobody else has claimed by then, they serve again."""
        if self._locks is not None:
            for key in keys:
                self._locks.release(self._path(key))

    # ---- commits -----------------------------------------------------------------------------------------------------

    def commit(self, files: Sequence[WrittenFile]) -> None:
        """Files of one schema version enter the manifest in one step, if the claim stands.

        Raises:
            LockLost: it does not. LakeError, StorageError: see ``manifest.commit``.
        """
        key = files[0].key

        def confirm() -> None:
            if self._locks is not None:
                self._locks.confirm(self._path(key), self._claims[key].epoch)

        self._claims[key] = manifest.commit(
            self._store,
            self._claims[key],
            [(file.name, file.stats) for file in files],
            schema_line=files[0].schema_line,
            confirm=confirm,
            clock=self._clock,
        )
        self._without_files.pop(key, None)
        for file in files:
            self.committed[file.stream].add(file.stats)
        self._notes.describe(key[0])
        if self._tail:
            self.release([key])

    def end(self, *, failed: bool) -> None:
        """The run is over, after its last commit: locks are given back. Where the store fails, they grow stale."""
        with briefly(LAST_SECONDS) if failed else contextlib.nullcontext():
            if self._locks is None or self._locks.release_all():
                self._notes.end(failed=failed)

    # ---- inside ------------------------------------------------------------------------------------------------------

    def _claim(self, key: Key) -> None:
        if self._keeper is not None:
            self._keeper.check()
        stream, digest = key
        claim = self._claims[key] = manifest.claim(
            self._store,
            self._tap_id,
            stream,
            hash=digest,
            writer_id=self._writer_id,
            standing=self._claims.get(key),
            clock=self._clock,
        )
        if self._locks is not None:
            self._locks.confirm(self._path(key), claim.epoch)

    def _warn_of_missing(self, stream: str) -> None:
        _log.warning(
            "stream '%s': the state in the lake says how far it was read, and the lake has nothing of it. If its "
            "folder was removed, what was in there does not come again, but with --full-refresh=%s or after: "
            "burler state reset %s %s --tap-id %s",
            stream,
            *map(shlex.quote, (stream, self._store.url, stream, self._tap_id)),
        )

    def _path(self, key: Key) -> str:
        return layout.lock_path(self._tap_id, *key)

    def _look_at_store(self) -> None:
        if not self._looked and not self._store.conditional:
            self._locks = None
            _log.warning(
                "%s: THIS STORE KEEPS NO CONDITIONS: no locks, and nothing that keeps two writers from undoing each "
                "other's commits.\nHave one writer in this lake at a time, or use a store with conditional writes.",
                self._store.url,
            )
        self._looked = True
