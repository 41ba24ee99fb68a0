"""SIGTERM and SIGINT: stop at once, lose nothing (specs 6).

The handler writes nothing. It sets a flag, and raises :class:`Stop` only while user code runs; while a
page is written it waits. A second signal, or 10 seconds in which the reader of stdout takes
nothing, ends the process without a STATE.

SIGURG is how a thread of ours wakes the main thread out of user code: nothing else uses it, it is ignored
by default, and so it can't be taken for somebody's wish to end the process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

STUCK_SECONDS = 10.0


class Stop(BaseException):
    """Raised inside user code when the run must end. Not an Exception, so that no ``except Exception`` eats it."""


class Stopper:
    """Whether to stop, and how that is told to user code.

    ``blocked_since`` gives the monotonic time since which a write to stdout has made no progress, or None.

    ``signal`` is the one that asked for the end; ``failure`` an error of another thread of ours after
    which nothing can go on; ``raised`` says whether Stop was raised in the last ``user_code`` block, since
    user code may have caught it.
    """

    def __init__(self, blocked_since: Callable[[], float | None] = lambda: None) -> None:
        self.signal: int | None = None
        self.failure: BaseException | None = None
        self.raised = False
        self._woken = False
        self._in_user_code = False
        self._installed = False
        self._over = threading.Event()
        self._blocked_since = blocked_since

    @property
    def requested(self) -> bool:
        """Whether the run is to end."""
        return self.signal is not None or self.failure is not None

    @contextlib.contextmanager
    def user_code(self) -> Iterator[None]:
        """While this is entered (on the main thread), a signal raises Stop."""
        self.raised = False
        self._in_user_code = True
        try:
            if self.requested or self._woken:
                self._interrupt()
            yield
        finally:
            self._in_user_code = False

    def _interrupt(self) -> None:
        if self._in_user_code:
            self._in_user_code = False
            self._woken = False
            self.raised = True
            raise Stop

    def fail(self, failure: BaseException) -> None:
        """Another thread of ours can't go on: the whole run ends."""
        self.failure = failure
        self.wake()

    def wake(self) -> None:
        """Raise Stop in the user code that runs now, or else as soon as user code is entered again."""
        self._woken = True
        if self._installed and self._in_user_code:
            with contextlib.suppress(OSError, ValueError):
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGURG)

    def calm(self) -> None:
        """Forget a ``wake`` that found no user code: the stream it was meant for has ended."""
        self._woken = False

    def handle(self, number: int, frame: FrameType | None) -> None:
        """The signal handler."""
        if self.signal is not None:
            os._exit(128 + number)
        self.signal = number
        threading.Thread(target=self._watch, name="burler-watchdog", daemon=True).start()
        self._interrupt()

    def _handle_wake(self, number: int, frame: FrameType | None) -> None:
        if self._woken:
            self._interrupt()

    def _watch(self) -> None:
        """End the process where the reader takes nothing for 10 s after the signal."""
        begun = time.monotonic()
        while not self._over.wait(0.1):
            since = self._blocked_since()
            if since is not None and time.monotonic() - max(since, begun) >= STUCK_SECONDS:
                os._exit(128 + (self.signal or signal.SIGTERM))

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Handle SIGTERM and SIGINT; the handlers before are put back. Elsewhere than on the main thread
        nothing is installed: Python runs handlers there only."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {signal.SIGURG: signal.signal(signal.SIGURG, self._handle_wake)}
        before |= {number: signal.signal(number, self.handle) for number in (signal.SIGTERM, signal.SIGINT)}
        self._installed = True
        try:
            yield
        finally:
            self._installed = False
            self._over.set()
            for number, handler in before.items():
                signal.signal(number, handler)
