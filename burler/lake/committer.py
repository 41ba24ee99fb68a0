"""What a run that commits is given: the lake, its own name, how it waits."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Self

from burler import times
from burler.clock import Clock
from burler.errors import BurlerError, UsageError
from burler.lake import catalogue, layout, manifest
from burler.lake.locks import Locks, LockSettings, new_writer_id
from burler.lake.rolling import SchemaInUse
from burler.lake.snapshot import FileStats
from burler.singer.messages import Schema
from burler.storage.base import Store


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a tap into a lake, by a ``LakeWriter`` or a ``LakeDriver``: see their arguments."""

    store: Store
    tap_id: str
    writer_id: str
    clock: Clock
    locks: LockSettings | None
    tail: bool
    should_stop: Callable[[], bool]
    encoding: str | None

    @classmethod
    def of(
        cls,
        store: Store,
        tap_id: str,
        writer_id: str | None,
        clock: Clock | None,
        locks: LockSettings | None,
        tail: bool,
        should_stop: Callable[[], bool],
        encoding: str | None,
    ) -> Self:
        """With what goes without saying for each None.

        Raises:
            UsageError: the tap's name can't be a folder's.
        """
        layout.component(tap_id)
        writer_id = writer_id or new_writer_id()
        return cls(store, tap_id, writer_id, clock or Clock(), locks, tail, should_stop, encoding)


_log = logging.getLogger("burler.lake")
Key = tuple[str, str]
"""(stream, hash)."""


class Claims:
    """Locks and claims of one writer.

    On a store whose conditions do not hold among processes there are no locks, and nothing fences: one warning says so.

    Args:
        most: beyond so many locks, those that are not needed now are given back.
    """

    def __init__(self, run: Run, *, most: int = 1000) -> None:
        self._run, self._store, self._most = run, run.store, most
        self._locks: Locks | None = Locks(
            run.store, writer_id=run.writer_id, settings=run.locks, clock=run.clock, should_stop=run.should_stop
        )
        self._claims: dict[Key, manifest.Claim] = {}
        self._checked = False

    def check(self) -> None:
        """Raise what a heartbeat found out: ``LockLost``."""
        if self._locks is not None:
            self._locks.check()

    def take(
        self,
        schema: SchemaInUse,
        *,
        before_wait: Callable[[], object],
        needed: Callable[[Key], bool] = lambda _key: False,
    ) -> None:
        """Own a schema version: before the first byte of a file of it.

        Args:
            before_wait: called where the lock is not free: commits all that is open.
            needed: whether a file of a schema version is open.

        Raises:
            LockTimeout, WaitStopped: see ``Locks.acquire``. LockLost: it was taken over again at once.
            StorageError: the store fails.
        """
        if not self._checked:
            self._check_store()
        if self._locks is None:
            if schema.key not in self._claims:
                self._claim(schema)
            return
        path = self._path(schema.key)
        if self._locks.holds(path):
            return
        if len(self._locks) >= self._most:
            self._give_back(lambda key: not needed(key))

        def alone() -> None:
            before_wait()
            self._give_back(lambda _key: True)

        known = self._claims.get(schema.key)
        self._locks.acquire(path, schema.stream, epoch=known.epoch if known else 0, before_wait=alone)
        claim = self._claim(schema)
        self._locks.confirm(path, claim.epoch)

    def commit(self, schema: SchemaInUse, files: list[tuple[str, FileStats]]) -> manifest.Committed:
        """Files enter the manifest, if the claim stands.

        Raises:
            LockLost: it does not. LakeError, StorageError: see ``manifest.commit``.
        """
        done = manifest.commit(
            self._store,
            self._claims[schema.key],
            files,
            schema_line=schema.line,
            confirm=lambda: self._confirm(schema.key),
            clock=self._run.clock,
        )
        self._claims[schema.key] = done.claim
        return done

    def taken(self, schema: SchemaInUse) -> frozenset[str]:
        """Names that no new file may have, as the manifest said last (``manifest.Claim``)."""
        return self._claims[schema.key].taken

    def release(self, key: Key) -> None:
        """Give one lock back. The claim is kept: if nobody else has claimed by then, it serves again."""
        if self._locks is not None:
            self._locks.release(self._path(key))

    def release_all(self) -> bool:
        """Give all locks back, after the last commit. False: the store fails."""
        return self._locks is None or self._locks.release_all()

    def _claim(self, schema: SchemaInUse) -> manifest.Claim:
        claim = manifest.claim(
            self._store,
            self._run.tap_id,
            schema.stream,
            hash=schema.hash,
            writer_id=self._run.writer_id,
            standing=self._claims.get(schema.key),
            clock=self._run.clock,
        )
        self._claims[schema.key] = claim
        return claim

    def _confirm(self, key: Key) -> None:
        if self._locks is not None:
            self._locks.confirm(self._path(key), self._claims[key].epoch)

    def _give_back(self, which: Callable[[Key], bool]) -> None:
        for key in [key for key in self._claims if which(key)]:
            self.release(key)

    def _path(self, key: Key) -> str:
        stream, digest = key
        return layout.lock_path(self._run.tap_id, stream, digest)

    def _check_store(self) -> None:
        self._checked = True
        if self._locks is not None and not self._store.conditional:
            self._locks = None
            _log.warning(
                "%s: THIS STORE KEEPS NO CONDITIONS: no locks, and nothing that keeps two writers from undoing each "
                "other's commits.\nHave one writer in this lake at a time, or use a store with conditional writes.",
                self._store.url,
            )


_log = logging.getLogger("burler.lake")


class Notes:
    """The descriptive files of one tap, as a run of it goes on."""

    def __init__(self, run: Run) -> None:
        self._run, self._store, self._tap_id, self._clock = run, run.store, run.tap_id, run.clock
        self._encoding: str | None = None
        self._started = ""
        self._new: dict[str, Schema] = {}

    def begin(self) -> str:
        """Make the lake known, once: the tap is running. How the lake spells schema hashes.

        Raises:
            UsageError: it does so by rules that were not asked for, or are unknown.
        """
        if self._encoding is None:
            self._started = times.format_time(self._run.clock.now())
            self._encoding = catalogue.describe_lake(
                self._store,
                self._tap_id,
                encoding=self._run.encoding,
                status=self._status("running", None),
                clock=self._clock,
            )
        return self._encoding

    def add(self, schema: Schema) -> None:
        """A schema that the catalog is to have."""
        self._new[schema.stream] = schema

    def describe(self, stream: str | None = None) -> None:
        """Put what is new into the catalog: of one stream, or of all."""
        new = [schema for name, schema in self._new.items() if stream in (None, name)]
        if new:
            catalogue.describe_streams(self._store, self._tap_id, new, clock=self._clock)
            for schema in new:
                del self._new[schema.stream]

    def end(self, state: str) -> None:
        """The run is over: ``complete`` or ``failed``. Where that can't be written, the run is what it is."""
        if self._encoding is None:
            return
        try:
            status = self._status(state, times.format_time(self._run.clock.now()))
            catalogue.end_status(self._store, self._tap_id, status, clock=self._clock)
        except BurlerError as error:
            _log.warning("tap '%s': its status in the lake could not be written: %s", self._tap_id, error)

    def _status(self, state: str, ended: str | None) -> dict[str, str | None]:
        return {
            "state": state,
            "writer-id": self._run.writer_id,
            "started": self._started,
            "ended": ended,
            "link": None,
        }


def refuse_case_twin(store: Store, tap_id: str, stream: str, beside: Iterable[str]) -> None:
    """Of two names that differ only in case the second is refused: see ``layout.case_twin``.

    Args:
        beside: further streams of this tap, which may have no folder yet.

    Raises:
        UsageError: the tap, or the stream, has such a twin.
    """
    names = ((layout.ROOT, tap_id, ()), (layout.tap_folder(tap_id), stream, beside))
    for folder, name, others in names:
        here = layout.component(name)
        there = [*store.folders(folder), *map(layout.component, others)]
        twin = layout.case_twin(here, there)
        if twin is not None:
            raise UsageError(
                f"{store.url}: '{name}' and '{twin}' differ only in upper and lower case, and would be one "
                "folder on many systems. Rename one of them in the tap."
            )


def make_known(run: Run, schemas: Iterable[SchemaInUse]) -> None:
    """Schema versions without a file enter the manifest: who reads the lake knows the stream's columns all the same."""
    for schema in schemas:
        manifest.register(
            run.store, run.tap_id, schema.stream, schema_line=schema.line, hash=schema.hash, clock=run.clock
        )
