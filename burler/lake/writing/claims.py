"""What a writer owns of each schema version that it writes: the lock and the claim."""

from __future__ import annotations

import logging
from collections.abc import Callable

from burler.lake import layout
from burler.lake.locking.locks import Locks
from burler.lake.manifests import manifest
from burler.lake.snapshot import FileStats
from burler.lake.writing.openfile import SchemaInUse
from burler.lake.writing.run import Run

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
