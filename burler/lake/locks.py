"""Locks, one for each schema version of a stream: taken, kept alive, taken over, given back (Singerlake Pt2, 5).

They let writers take turns, and save them work. Nothing is unsafe without them: what a writer may commit the manifest
decides (``burler.lake.manifest``). ``singerlake.lock``, in the folder of the schema version, is a JSON object::

    {"writer-id": "crm-7-1f2e3d4c", "acquired": "2024-01-02T12:00:00.000000Z", "updated": "2024-01-02T12:04:30.000000Z",
     "epoch": 3, "ttl-ms": 300000, "machine": "6b1f..."}

- **Taken**: made where there is none.
- **Renewed**, a tenth of the ttl after the last time: replaced, on condition that it is what its holder has written.
- **Taken over**, with the next epoch: replaced, on condition that it is what the waiter has seen unchanged for the ttl
  that it names, by the waiter's own clock. On a local disk the kernel tells at once that a holder of this machine is
  gone (``Store.hold``): such a lock says which ``machine`` that is, by its last boot.
- **Given back**: deleted, on condition that it is ours.

A store may tell a writer "conflict", or nothing, of a write that was done: so the lock is read again, and ours is what
we have written ourselves. In the model of ``tests/lake/model`` these are ``take_over``, ``renew`` and ``release_own``.
"""

from __future__ import annotations

import datetime as dt
import logging
import math
import os
import secrets
import socket
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from burler import times
from burler.clock import Clock, briefly
from burler.errors import BurlerError, LockLost, UsageError
from burler.storage.base import Blob, Conflict, Hold, OutcomeUnknown, Store

BEATS_PER_TTL = 10
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MICROSECOND = dt.timedelta(microseconds=1)
_log = logging.getLogger("burler.lake")
_FIRST_LOOK_SECONDS, _LONGEST_LOOK_SECONDS = 0.05, 1.0
_REMIND_SECONDS = 60.0
_BEAT_SECONDS = 10.0
"""The longest that the renewal of one lock is tried."""


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


class LockFile(msgspec.Struct, frozen=True, rename={"writer_id": "writer-id", "ttl_ms": "ttl-ms"}):
    """What a lock says of its holder.

    ``acquired`` and ``updated`` are RFC 3339 by the holder's clock: for people, nothing compares them. ``ttl_ms``: how
    long the holder may leave it unchanged; None where it does not say. ``machine``: see the module. ``refreshed``: an
    earlier name of ``updated`` in the Singerlake text.
    """

    writer_id: str = "unknown (the file names nobody)"
    acquired: str = ""
    updated: str = ""
    epoch: Annotated[int, msgspec.Meta(ge=0)] = 0
    ttl_ms: Annotated[int, msgspec.Meta(ge=1)] | None = None
    machine: str | msgspec.UnsetType = msgspec.UNSET
    refreshed: str | msgspec.UnsetType = msgspec.UNSET

    @classmethod
    def from_bytes(cls, data: bytes) -> LockFile:
        """From a store. It never fails: a lock that can't be read is the lock of somebody unknown, and grows stale."""
        try:
            return msgspec.json.decode(data, type=cls)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return cls("unknown (the file can't be read)")

    def to_bytes(self) -> bytes:
        """As it stands in the store."""
        return msgspec.json.encode(self) + b"\n"

    def beaten(self, now: dt.datetime, epoch: int) -> LockFile:
        """The same with a newer ``updated``, also where the clock was put back, and the epoch of the claim: no two
        contents are ever equal, so that tags which stand for contents (ETags) tell them apart."""
        text = times.format_time(now)
        if text <= self.updated:
            text = times.format_time(times.moment(self.updated) + _MICROSECOND)
        return msgspec.structs.replace(self, updated=text, epoch=epoch)


def this_machine() -> str | None:
    """A name of the system that runs now, new after each boot, the same in all its containers; None: there is none."""
    try:
        return _BOOT_ID.read_text("ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


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
    def holder(self) -> str:
        """Who had it when we last looked and did not get it; since when, and when it last said so, by its own clock."""
        if self._seen is None:
            return "another writer"
        file = self._seen[1]
        since, beat = file.acquired or "an unknown time", file.updated or file.refreshed or "unknown"
        return f"{file.writer_id} (since {since}, last heartbeat {beat})"

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
        """``alive``: we have the kernel's hold on it (``Store.hold``): who wrote it on this machine does not live."""
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
        dead = alive and found.machine == this_machine()
        ttl = self._settings.ttl_seconds if found.ttl_ms is None else found.ttl_ms / 1000
        if not dead and now - self._seen[2] < ttl:
            return False
        epoch = max(found.epoch + 1, self._epoch)
        return self._write(lambda data: self._store.replace(self.path, data, tag=blob.tag), epoch, alive)

    def _write(self, write: Callable[[bytes], str], epoch: int, alive: bool) -> bool:
        now = times.format_time(self._clock.now())
        ttl_ms = max(1, round(self._settings.ttl_seconds * 1000))
        file = LockFile(
            self._writer_id, now, now, epoch, ttl_ms, (this_machine() or msgspec.UNSET) if alive else msgspec.UNSET
        )
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
            finally:  # after the file: who gets the hold and sees our lock takes us for dead
                self._forget()

    def drop(self) -> None:
        """Have it no more, without asking the store: the lock stays, and grows stale."""
        with self._mutex:
            self._forget()

    def _lost(self, blob: Blob | None) -> LockLost:
        self._forget()
        now = "it is gone" if blob is None else f"{LockFile.from_bytes(blob.data).writer_id} has it"
        return LockLost(
            f"{self._store.locate(self.path)}: the lock of stream '{self.name}' is not ours any more: {now}. "
            "Nothing was lost: run again from the last STATE."
        )

    def _forget(self) -> None:
        hold, self._hold, self._tag = self._hold, None, None
        if hold is not None:
            hold.release()


def new_writer_id() -> str:
    """Names a writer among all that live: host, process, and eight random digits."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"


class Locks:
    """All locks of one writer.

    Args:
        writer_id: no other writer that lives has it.
        clock: time and chance.
        should_stop: ends a wait for a lock; asked about once a second.
        heartbeat: whether a thread calls ``beat`` each tenth of the ttl; if not, somebody else must.
    """

    def __init__(
        self,
        store: Store,
        *,
        writer_id: str,
        settings: LockSettings | None = None,
        clock: Clock | None = None,
        should_stop: Callable[[], bool] = lambda: False,
        heartbeat: bool = True,
    ) -> None:
        self._store = store
        self._writer_id = writer_id
        self.settings = settings or LockSettings()
        self._clock = clock or Clock()
        self._should_stop = should_stop
        self._heartbeat = heartbeat
        self._held: dict[str, StreamLock] = {}
        self._failure: BaseException | None = None
        self._warned: set[str] = set()
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()

    def __len__(self) -> int:
        return len(self._held)

    def holds(self, path: str) -> bool:
        """Whether a lock is held."""
        return path in self._held

    def attempt(self, path: str, name: str, *, epoch: int = 0) -> StreamLock:
        """Take a lock if it is free, or its holder is gone: ``held`` says whether it is ours. If not, ``wait``.

        Args:
            name: the stream, for messages.
            epoch: of an earlier claim to it.

        Raises:
            LockLost: of another lock, meanwhile. StorageError: the store fails.
        """
        self.check()
        if path in self._held:
            return self._held[path]
        lock = StreamLock(
            self._store,
            path,
            name=name,
            writer_id=self._writer_id,
            settings=self.settings,
            clock=self._clock,
            epoch=epoch,
        )
        if lock.try_once():
            self._keep(lock)
        return lock

    def wait(self, lock: StreamLock) -> StreamLock:
        """Wait for a lock of ``attempt`` as long as the settings say.

        What is held is to be given back before: two writers that each have what the other waits for wait for ever.

        Raises:
            LockTimeout: it did not become free. WaitStopped: told to stop. StorageError: the store fails.
        """
        if lock.held:
            return lock
        began = told = self._clock.monotonic()
        self._tell(lock, 0.0)
        look = _FIRST_LOOK_SECONDS
        while not lock.try_once():
            now = self._clock.monotonic()
            if self._should_stop():
                raise WaitStopped(f"stream '{lock.name}': stopped while waiting for the lock of {lock.holder}.")
            if now - began >= self.settings.timeout_seconds:
                raise LockTimeout(
                    f"stream '{lock.name}': waited {now - began:.0f} s for the lock of {lock.holder}.\n"
                    "Run again when that writer is done, or let it take longer (lock_timeout_seconds). If it is gone "
                    f"for good, remove {self._store.locate(lock.path)}"
                )
            if now - told >= _REMIND_SECONDS:
                told = now
                self._tell(lock, now - began)
            left = began + self.settings.timeout_seconds - now
            self._clock.sleep(min(left, self._clock.uniform(look / 2, look)))
            look = min(_LONGEST_LOOK_SECONDS, look * 1.5)
        self._keep(lock)
        return lock

    def confirm(self, path: str, epoch: int) -> None:
        """Read a lock once more (see ``StreamLock.confirm``). ``epoch``: of the claim that goes with it.

        Raises:
            LockLost: it is not ours, or not any more.
        """
        lock = self._held.get(path)
        if lock is None:
            raise LockLost(f"{self._store.locate(path)}: this writer does not hold the lock. Run again.")
        lock.confirm(epoch)

    def beat(self) -> None:
        """Renew every lock once, none for so long that the others grow stale. What goes wrong ``check`` tells; a store
        that fails may answer again next time."""
        for path, lock in list(self._held.items()):
            try:
                with briefly(min(_BEAT_SECONDS, self.settings.ttl_seconds / BEATS_PER_TTL)):
                    lock.renew()
                self._warned.discard(path)
            except BurlerError as error:
                if not lock.held:
                    self._failure = self._failure or error
                elif path not in self._warned:
                    self._warned.add(path)
                    _log.warning("stream '%s': its lock could not be renewed, tried again: %s", lock.name, error)
            except BaseException as error:  # the thread must not end in silence
                self._failure = self._failure or error

    def check(self) -> None:
        """Raise what a heartbeat found out.

        Raises:
            LockLost: somebody has taken a lock over.
        """
        if self._failure is not None:
            raise self._failure

    def release(self, path: str) -> bool:
        """Give a lock back. A store that fails costs others the wait of a ttl, and us nothing: it is only told. Whether
        it did not fail."""
        lock = self._held.pop(path, None)
        if lock is None:
            return True
        try:
            lock.release()
        except BurlerError as error:
            _log.warning("stream '%s': its lock could not be given back, and grows stale: %s", lock.name, error)
            return False
        return True

    def release_all(self) -> bool:
        """Give everything back; what is acquired later starts the heartbeat again.

        A store that fails once is not asked for the others: these grow stale, too. Whether it did not fail.
        """
        ended, thread, self._thread = self._ended, self._thread, None
        ended.set()
        answers = True
        while self._held and answers:
            answers = self.release(next(iter(self._held)))
        if self._held:
            _log.warning("%d more locks are not given back either, and grow stale", len(self._held))
        while self._held:
            self._held.popitem()[1].drop()
        if thread is not None and thread is not threading.current_thread():
            thread.join(5.0)  # it may be in the middle of a request; it ends behind it
        return answers

    def _tell(self, lock: StreamLock, waited: float) -> None:
        waiting = "waiting" if not waited else f"still waiting, {waited:.0f} s so far,"
        _log.info("stream '%s': %s for the lock of %s", lock.name, waiting, lock.holder)

    def _keep(self, lock: StreamLock) -> None:
        self._held[lock.path] = lock
        if self._heartbeat and self._thread is None:
            self._begin_to_beat()

    def _begin_to_beat(self) -> None:
        self._ended = threading.Event()
        arguments = (weakref.ref(self), self._ended, self.settings.ttl_seconds / BEATS_PER_TTL)
        self._thread = threading.Thread(target=_beat_on, args=arguments, name="burler-lake-locks", daemon=True)
        self._thread.start()


def _beat_on(locks: weakref.ref[Locks], ended: threading.Event, seconds: float) -> None:
    """What the thread does. A writer that was dropped without an end must not keep its locks for ever."""
    while not ended.wait(seconds):
        here = locks()
        if here is None:
            return
        here.beat()
        del here
