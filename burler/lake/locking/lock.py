"""The lock of one schema version of a stream: taken, kept alive, taken over, given back (Singerlake Pt2, 5).

It orders writers and saves them work; nothing is unsafe without it: what a writer may commit the manifest decides
(``burler.lake.manifests.manifest``). Whether a holder is gone a waiter judges by its own clock alone: it has seen
the file unchanged for so long. On a local disk the kernel tells at once (``Store.hold``).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass

from burler import times
from burler.clock import Clock
from burler.errors import BurlerError, LockLost, UsageError
from burler.lake.locking.lock_file import LockFile, this_machine
from burler.storage.base import Blob, Conflict, Hold, OutcomeUnknown, Store

BEATS_PER_TTL = 10


@dataclass(frozen=True, slots=True)
class LockSettings:
    """How long locks wait.

    ``ttl_seconds``: a lock that did not change for so long is taken over; its holder changes it each tenth of that.
    ``timeout_seconds``: the longest wait for a lock; 0: it must be free at once.
    """

    ttl_seconds: float = 300.0
    timeout_seconds: float = 600.0

    def __post_init__(self) -> None:
        if not (self.ttl_seconds > 0 and math.isfinite(self.ttl_seconds)):  # so that NaN does not pass
            raise UsageError(f"lock_ttl_seconds is {self.ttl_seconds}; it must be greater than 0.")
        if not self.timeout_seconds >= 0:
            raise UsageError(f"lock_timeout_seconds is {self.timeout_seconds}; it must be 0 or greater.")


class LockTimeout(LockLost):
    """Another writer has had a lock for longer than we are to wait. What was committed before stands."""


class WaitStopped(BurlerError):
    """The wait for a lock ended because the run is to end. Nothing is broken: what came before can be committed."""


class StreamLock:
    """One ``singerlake.lock``, from the first look until it is given back. Safe among threads.

    Args:
        path: of the lock, relative to the lake.
        name: the stream, for messages.
        epoch: of the claim that goes with it, as far as it is known.
        clock: time and chance.
    """

    def __init__(
        self,
        store: Store,
        path: str,
        *,
        name: str,
        writer_id: str,
        settings: LockSettings,
        clock: Clock,
        epoch: int = 0,
    ) -> None:
        self.path, self.name = path, name
        self._store, self._clock, self._settings = store, clock, settings
        self._writer_id, self._epoch = writer_id, epoch
        self._mutex = threading.Lock()
        self._hold: Hold | None = None
        self._tag: str | None = None
        self._file = LockFile(writer_id)
        self._written: set[bytes] = set()  # all that may stand there by our hand: replies get lost, writes come late
        self._seen: tuple[str, LockFile, float] | None = None  # what another holds: tag, content, since when unchanged

    @property
    def held(self) -> bool:
        """Whether it is ours, as far as we know."""
        return self._tag is not None

    @property
    def holder(self) -> LockFile | None:
        """Who had it when we last looked and did not get it."""
        return self._seen[1] if self._seen else None

    def try_once(self) -> bool:
        """Take it, if it is free or its holder is gone; without waiting. Whether it is ours now.

        Raises:
            StorageError: the store fails.
        """
        with self._mutex:
            if self._tag is not None:
                return True
            # Before the lock is read: whoever wrote "machine" into it had the hold, and has not any more if we get it.
            hold = self._store.hold(self.path)
            try:
                alive = hold is not None and hold.taken
                if self._take(alive):
                    self._hold, hold = (hold, None) if alive else (None, hold)
                    return True
                return False
            finally:
                if hold is not None:
                    hold.release()

    def _take(self, alive: bool) -> bool:
        """``alive``: we have the sign of life, so nobody else of this machine has."""
        blob = self._store.read(self.path)
        if blob is None:
            self._seen = None
            return self._write(lambda data: self._store.create(self.path, data), self._epoch or 1, alive)
        if blob.data in self._written:
            return self._mine(blob)
        found = LockFile.from_bytes(blob.data)
        now = self._clock.monotonic()
        if self._seen is None or self._seen[0] != blob.tag:
            self._seen = (blob.tag, found, now)
        dead = alive and found.machine is not None and found.machine == this_machine()
        ttl = self._settings.ttl_seconds if found.ttl_ms is None else found.ttl_ms / 1000
        if not dead and now - self._seen[2] < ttl:
            return False
        epoch = max(found.epoch + 1, self._epoch)
        return self._write(lambda data: self._store.replace(self.path, data, tag=blob.tag), epoch, alive)

    def _write(self, write: Callable[[bytes], str], epoch: int, alive: bool) -> bool:
        now = times.format_time(self._clock.now())
        ttl_ms = max(1, round(self._settings.ttl_seconds * 1000))
        file = LockFile(self._writer_id, now, now, epoch, ttl_ms, this_machine() if alive else None)
        data = file.to_bytes()
        self._written.add(data)
        self._file = file
        try:
            return self._mine(Blob(data, write(data)))
        except (Conflict, FileExistsError, OutcomeUnknown):
            blob = self._store.read(self.path)  # the store may refuse a second try of a write that has succeeded
            return blob is not None and blob.data in self._written and self._mine(blob)

    def _mine(self, blob: Blob) -> bool:
        self._tag, self._seen = blob.tag, None
        self._file = LockFile.from_bytes(blob.data)
        self._epoch = max(self._epoch, self._file.epoch)
        self._written = {blob.data}
        return True

    def confirm(self, epoch: int) -> None:
        """Read it once more, after the claim: it must still be ours. ``epoch``: of the claim.

        Raises:
            LockLost: it is not.
        """
        with self._mutex:
            if self._tag is None:
                raise self._lost(None)
            blob = self._store.read(self.path)
            if blob is None or blob.data not in self._written:
                raise self._lost(blob)
            self._tag, self._epoch = blob.tag, epoch

    def renew(self) -> None:
        """A heartbeat: ``updated`` changes. Nothing happens if it is not held any more.

        Raises:
            LockLost: somebody has taken it over, or removed it.
            StorageError: the store fails; it may be ours still.
        """
        with self._mutex:
            for _ in range(2):
                if self._tag is None:
                    return
                file = self._file.beaten(self._clock.now(), self._epoch)
                data = file.to_bytes()
                self._written.add(data)
                self._file = file
                try:
                    self._tag = self._store.replace(self.path, data, tag=self._tag)
                except (Conflict, OutcomeUnknown):
                    blob = self._store.read(self.path)
                    if blob is None or blob.data not in self._written:
                        raise self._lost(blob) from None
                    self._tag = blob.tag
                    if blob.data != data:
                        continue  # ours, but not changed: once more
                self._written = {data}
                return

    def release(self) -> None:
        """Give it back, if it is still ours. It is ours no more in any case.

        Raises:
            StorageError: the store fails; the lock stays, and grows stale.
        """
        with self._mutex:
            tag, self._tag = self._tag, None
            hold, self._hold = self._hold, None
            try:
                for _ in range(2):
                    if tag is None:
                        return
                    try:
                        self._store.delete(self.path, tag=tag)
                        return
                    except (Conflict, OutcomeUnknown):
                        blob = self._store.read(self.path)
                        tag = blob.tag if blob is not None and blob.data in self._written else None
            finally:
                if hold is not None:  # after the file: who gets the hold and sees our lock takes us for dead
                    hold.release()

    def drop(self) -> None:
        """Have it no more, without asking the store: the lock stays, and grows stale."""
        with self._mutex:
            hold, self._tag, self._hold = self._hold, None, None
            if hold is not None:
                hold.release()

    def _lost(self, blob: Blob | None) -> LockLost:
        self._tag = None
        if self._hold is not None:
            self._hold.release()
            self._hold = None
        now = "it is gone" if blob is None else f"{LockFile.from_bytes(blob.data).writer_id} has it"
        return LockLost(
            f"{self._store.locate(self.path)}: the lock of stream '{self.name}' is not ours any more: {now}. "
            "Nothing was lost: run again from the last STATE."
        )

    def timeout(self, waited_seconds: float) -> LockTimeout:
        """The error for a wait that was too long."""
        return LockTimeout(
            f"stream '{self.name}': waited {waited_seconds:.0f} s for the lock of {describe(self.holder)}.\n"
            "Run again when that writer is done, or let it take longer (lock_timeout_seconds). If it is gone for good, "
            f"remove {self._store.locate(self.path)}"
        )


def describe(holder: LockFile | None) -> str:
    """Who has a lock, since when, and when it last said so, by its own clock."""
    if holder is None:
        return "another writer"
    since, beat = holder.acquired or "an unknown time", holder.updated or "unknown"
    return f"{holder.writer_id} (since {since}, last heartbeat {beat})"
