"""The locks that one writer holds: one thread keeps them alive, and what it finds out the writer's next call hears."""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
import weakref
from collections.abc import Callable

from burler.clock import Clock, briefly
from burler.errors import BurlerError, LockLost
from burler.lake.locking.lock import BEATS_PER_TTL, LockSettings, StreamLock, WaitStopped, describe
from burler.storage.base import Store

_log = logging.getLogger("burler.lake")
_FIRST_LOOK_SECONDS, _LONGEST_LOOK_SECONDS = 0.05, 1.0
_REMIND_SECONDS = 60.0
_BEAT_SECONDS = 10.0
"""The longest that the renewal of one lock is tried."""


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

    def acquire(
        self, path: str, name: str, *, epoch: int = 0, before_wait: Callable[[], object] | None = None
    ) -> StreamLock:
        """Take a lock, waiting for it as long as the settings say.

        Args:
            name: the stream, for messages.
            epoch: of an earlier claim to it.
            before_wait: called once where it is not free. What is held is to be given back there: two writers that
                each have what the other waits for would wait for ever.

        Raises:
            LockTimeout: it did not become free. WaitStopped: told to stop. LockLost: of another lock, meanwhile.
            StorageError: the store fails.
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
        if not lock.try_once():
            if before_wait is not None:
                before_wait()
            self._wait(lock)
        self._held[path] = lock
        self._begin_to_beat()
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

    def _wait(self, lock: StreamLock) -> None:
        began = told = self._clock.monotonic()
        self._tell(lock, 0.0)
        look = _FIRST_LOOK_SECONDS
        while not lock.try_once():
            now = self._clock.monotonic()
            if self._should_stop():
                raise WaitStopped(
                    f"stream '{lock.name}': stopped while waiting for the lock of {describe(lock.holder)}."
                )
            if now - began >= self.settings.timeout_seconds:
                raise lock.timeout(now - began)
            if now - told >= _REMIND_SECONDS:
                told = now
                self._tell(lock, now - began)
            left = began + self.settings.timeout_seconds - now
            self._clock.sleep(min(left, self._clock.uniform(look / 2, look)))
            look = min(_LONGEST_LOOK_SECONDS, look * 1.5)

    def _tell(self, lock: StreamLock, waited: float) -> None:
        waiting = "waiting" if not waited else f"still waiting, {waited:.0f} s so far,"
        _log.info("stream '%s': %s for the lock of %s", lock.name, waiting, describe(lock.holder))

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

    def _begin_to_beat(self) -> None:
        if not self._heartbeat or self._thread is not None:
            return
        self._ended = threading.Event()
        seconds = self.settings.ttl_seconds / BEATS_PER_TTL
        arguments = (weakref.ref(self), self._ended, seconds)
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
