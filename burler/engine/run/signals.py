"""What is to end, and why: one token for a run, children of it for what runs in it. SIGTERM and SIGINT: stop at once,
lose nothing; SIGHUP in a tail run: begin anew with a new client.

The handler writes nothing to stdout. It sets a flag, and raises :class:`Stop` only while user code runs; while a
page is written it waits. A second signal, or 10 seconds in which the reader of stdout takes nothing or a hook stays at
one row, ends the process without a STATE; a function that eats each Stop for so long ends it with one.

A signal can arrive just before the main thread goes to sleep in a system call, or on another thread: Python then
runs the handler only when that call returns, perhaps never. So Python is told to note each signal in a pipe as
well (``signal.set_wakeup_fd``), and a watchdog thread reads it: it interrupts the main thread until the handler has
run, and ends the process at the second signal even if the main thread never comes back. SIGURG does the
interrupting: nothing else uses it, it is ignored by default, and nobody sends it to end a process.
"""

from __future__ import annotations

import contextlib
import enum
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

STUCK_SECONDS = 10.0

_AGAIN_MILLISECONDS = 50
_CLOSING_SECONDS = 1.0
_ONE_SECONDS = 0.3  # the same signal twice within so much time is one
_FRAMES = 30
_SWITCH_SECONDS = 0.0005
_NEARLY_SECONDS = 8.5
_END, _LOOK = 255, 254  # in the pipe, beside the numbers of signals


class Reason(enum.IntEnum):
    """Why something is to end. Of several the greatest counts."""

    NONE = 0
    ENDED = 1
    """It can't go on, or need not; what it has given counts."""
    CUT = 2
    """A round of a tail is to end, and the tail goes on."""
    STOPPED = 3
    """The run is to end."""
    LEFT_BEHIND = 4
    """The run goes on, or has ended, without it: nothing counts that it still gives."""
    FAILED = 5
    """Nothing can be written any more."""


class StopToken:
    """Asked by whoever works, set by whoever knows; what a parent is told holds for all below it.

    Below the process's (``Stopper.stop``) hang the run's (``Run.stop``), which ends with the sink, and in a tail the
    one that lasts until the next SIGHUP. A family's (``Job``) hangs below one of these two, a worker's below that, and
    below that the one of a try of a task.

    Setting it takes no lock, so that a signal's handler may. ``error`` is the first one after which nothing can be
    written.
    """

    __slots__ = ("_error", "_parent", "_reason")

    def __init__(self, parent: StopToken | None = None) -> None:
        self._parent = parent
        self._reason = Reason.NONE
        self._error: BaseException | None = None

    def child(self) -> StopToken:
        """A token of something that runs inside of this."""
        return StopToken(self)

    @property
    def reason(self) -> Reason:
        """Why to end; ``Reason.NONE``, which is false, as long as there is none."""
        found, above = self._reason, self._parent
        while above is not None:
            if above._reason > found:
                found = above._reason
            above = above._parent
        return found

    def stop(self, reason: Reason) -> None:
        """It is to end. A reason that is told already stays if it is the greater one."""
        if reason > self._reason:
            self._reason = reason

    def fail(self, error: BaseException) -> None:
        """Nothing can be written any more, in the whole run: no row, and least of all a STATE."""
        if self._parent is not None:
            self._parent.fail(error)
            return
        if self._error is None:
            self._error = error
        self.stop(Reason.FAILED)

    @property
    def error(self) -> BaseException | None:
        """What the whole run has failed with."""
        return self._parent.error if self._parent is not None else self._error


class Stop(BaseException):
    """Raised inside user code when the run must end. Not an Exception, so that no ``except Exception`` eats it."""


def _nothing() -> None:
    pass


class Stopper:
    """The process's side of stopping: signals end the run's token, and user code on the main thread is interrupted when
    the token ends that it runs under.

    ``blocked_since`` gives the monotonic time since which a write to stdout has made no progress, or None.

    ``stop`` is the run's token, ``signal`` the one that asked for its end. ``hung_up`` says that a SIGHUP has come;
    ``on_hangup`` is called in its handler, so it takes no lock. ``listeners`` are called by the watchdog, a thread like
    any other, whenever there is news. ``on_stuck`` is called before user code that does not come to its end is left
    behind with the process.

    Of user code in other threads it knows nothing: no signal reaches it there, so it looks at its token by itself.
    """

    def __init__(self, blocked_since: Callable[[], float | None] = lambda: None) -> None:
        self.stop = StopToken()
        self.signal: int | None = None
        self._signalled = 0.0
        self.on_stuck: Callable[[], None] = _nothing
        self.hung_up = False
        self.on_hangup: Callable[[], None] = _nothing
        self._is_woken = True  # the main thread, which handles what comes
        self.listeners: list[Callable[[], None]] = []
        self._token = self.stop  # of the user code that runs
        self._on_raise: Callable[[], None] = _nothing
        self._closing_is_late = False
        self._closing_since: float | None = None
        self._ending_since: float | None = None
        self._in_user_code = False
        self._main_thread = threading.main_thread().ident or 0
        self._pipe: int | None = None
        self._blocked_since = blocked_since
        self.hook_since: Callable[[], float | None] = lambda: None
        """Since when a hook of the author's (post_transform, bookmark) has been at one row; it can't be interrupted."""

    @property
    def requested(self) -> bool:
        """Whether the run is to end."""
        return self.stop.reason >= Reason.STOPPED

    def run(self, action: Callable[[], Any], token: StopToken, on_raise: Callable[[], None] = _nothing) -> Any:
        """Call user code. On the main thread Stop is raised in it once the token ends; ``on_raise`` is called right
        before that."""
        if threading.get_ident() != self._main_thread:
            return action()
        self._token, self._on_raise = token, on_raise
        self._in_user_code = True
        try:
            if token.reason:
                self._interrupt()
            return action()
        finally:
            self._in_user_code = False
            self._closing_since = self._ending_since = None

    @contextlib.contextmanager
    def our_code(self) -> Iterator[None]:
        """Inside of user code: while this is entered, nothing is raised; a signal waits until it is left."""
        if not self._in_user_code or threading.get_ident() != self._main_thread:
            yield
            return
        self._in_user_code = False
        try:
            yield
        finally:
            self._in_user_code = True
        if self._token.reason:
            self._interrupt()

    @contextlib.contextmanager
    def closing(self, token: StopToken) -> Iterator[None]:
        """While the author's ``finally`` blocks run. Where the run, or a round of a tail, is to end, those on the main
        thread have a second, as after a second Ctrl-C: then Stop is raised in them."""
        if threading.get_ident() != self._main_thread:
            yield
            return
        self._token = token
        self._closing_since = self._ending_since = time.monotonic()
        try:
            yield
        finally:
            self._closing_since = self._ending_since = None

    def _interrupt(self, frame: FrameType | None = None) -> None:
        """Raise Stop where user code runs. Not in the middle of logging: the lock of a handler could stay taken, and
        every thread that logs would wait for it for ever. Then the watchdog asks again in a moment."""
        if self._in_user_code and not _is_logging(frame):
            self._in_user_code = False
            self._on_raise()
            self._closing_since = time.monotonic()  # its finally blocks run now
            self._ending_since = self._ending_since or self._closing_since
            raise Stop

    def fail(self, error: BaseException) -> None:
        """Nothing can be written any more: the whole run ends."""
        self.stop.fail(error)
        self.look()

    def end(self, *, now: bool = True) -> None:
        """The run ends as if it were told to stop, without a signal. ``now``: user code that runs is interrupted."""
        self.stop.stop(Reason.STOPPED)
        if now:
            self.look()

    def look(self) -> None:
        """A token may have ended: user code that runs under it is interrupted."""
        self._tell(_LOOK)

    def handle(self, number: int, frame: FrameType | None) -> None:
        """The signal handler."""
        if self.signal is not None:
            if number == self.signal and time.monotonic() - self._signalled < _ONE_SECONDS:
                return
            _exit(number)
            raise KeyboardInterrupt
        self.signal, self._signalled = number, time.monotonic()
        self.stop.stop(Reason.STOPPED)
        sys.setswitchinterval(_SWITCH_SECONDS)  # threads that are busy must not keep the main one from ending the run
        try:
            self._interrupt(frame)
        finally:
            self.look()

    def hang_up(self, _number: int = signal.SIGHUP, _frame: FrameType | None = None) -> None:
        """The handler of SIGHUP: a tail is to begin anew. Before it begins, and behind its end, that is noted."""
        self.hung_up = True
        self.on_hangup()
        self.look()

    def _handle_wake(self, number: int, frame: FrameType | None) -> None:
        self._is_woken = True
        if self._closing_is_late and self._closing_since is not None:
            if _is_logging(frame):
                return  # the watchdog asks again
            self._closing_is_late, self._closing_since = False, time.monotonic()
            raise Stop
        if self._token.reason:
            self._interrupt(frame)

    def _tell(self, byte: int) -> None:
        """Wake the watchdog; safe in a signal handler, since it takes no lock that this thread may hold."""
        if self._pipe is not None:
            with contextlib.suppress(BlockingIOError):  # full: it has enough to read
                os.write(self._pipe, bytes([byte]))

    def _watch(self, pipe: int) -> None:
        """The watchdog: sleeps until something is in the pipe, then looks on until all is dealt with."""
        ready = select.poll()
        ready.register(pipe, select.POLLIN)
        first: float | None = None  # when a signal to end came
        begun: float | None = None  # when the run was told to end
        while True:
            in_user_code = self._in_user_code or self._closing_since is not None
            busy = begun is not None or not self._is_woken or (in_user_code and bool(self._token.reason))
            for byte in os.read(pipe, 4096) if ready.poll(_AGAIN_MILLISECONDS if busy else None) else b"":
                if byte == _END:
                    return
                if byte in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                    self._is_woken = False
                if byte in (signal.SIGTERM, signal.SIGINT):
                    # Programs such as timeout signal their child and its group: twice, in the same moment.
                    first = first or time.monotonic()
                    if time.monotonic() - first >= _ONE_SECONDS:
                        _exit(byte)
            if begun is None and (first or self.requested):
                begun = time.monotonic()
            closing = self._closing_since
            if closing is not None and self._token.reason >= Reason.CUT:
                self._closing_is_late = time.monotonic() - closing >= _CLOSING_SECONDS
            for listener in self.listeners:
                listener()
            if not self._is_woken or (self._in_user_code and self._token.reason) or self._closing_is_late:
                signal.pthread_kill(self._main_thread, signal.SIGURG)
            since = self._blocked_since() or self.hook_since()
            ending = self._ending_since if since is None else None
            stuck = since or ending
            if (
                begun is not None
                and stuck is not None
                and _is_stuck(time.monotonic(), stuck, begun)
                and not _at_a_prompt()
            ):
                if ending is not None:  # it eats every Stop, or its finally does not end
                    self.on_stuck()
                os._exit(128 + (self.signal or signal.SIGTERM))

    owns_process = False
    """Whether the process ends with the run: no first signal, nor the same once more, must cut its end short."""

    def _afterwards(self, number: int, former: Any) -> Any:
        """What handles a signal once the run is over and its last STATE is out."""
        if not self.owns_process or number not in (signal.SIGTERM, signal.SIGINT):
            return former
        return signal.SIG_IGN if number == self.signal else self._handle_late

    def _handle_late(self, number: int, frame: FrameType | None) -> None:
        """There is nothing left to stop: client, summary and report have as long as a reader has, and the exit code is
        that of the run. A second signal ends the process at once."""
        if self.signal is None:
            leave = threading.Timer(STUCK_SECONDS, os._exit, (128 + number,))
            leave.daemon = True
            leave.start()
        self.handle(number, frame)

    @contextlib.contextmanager
    def installed(self, *, hangup: bool = False) -> Iterator[None]:
        """Handle SIGTERM and SIGINT, with ``hangup`` SIGHUP too; the handlers before are put back. Elsewhere than on
        the main thread nothing is installed: Python runs handlers there only."""
        if threading.get_ident() != self._main_thread:
            yield
            return
        switch_seconds = sys.getswitchinterval()
        reading, self._pipe = os.pipe()
        os.set_blocking(self._pipe, False)
        watchdog = threading.Thread(target=self._watch, args=(reading,), name="burler-watchdog", daemon=True)
        watchdog.start()
        earlier_fd = signal.set_wakeup_fd(self._pipe, warn_on_full_buffer=False)
        handlers: dict[int, Any] = {
            signal.SIGURG: self._handle_wake,
            signal.SIGTERM: self.handle,
            signal.SIGINT: self.handle,
        }
        if hangup:
            handlers[signal.SIGHUP] = self.hang_up
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        try:
            yield
        finally:
            sys.setswitchinterval(switch_seconds)
            for number, former in before.items():
                signal.signal(number, self._afterwards(number, former))
            signal.set_wakeup_fd(earlier_fd)
            self._tell(_END)
            watchdog.join()
            written, self._pipe = self._pipe, None
            os.close(written)
            os.close(reading)


def _at_a_prompt() -> bool:
    """Whether somebody sits at this interpreter: a notebook, a REPL."""
    return hasattr(sys, "ps1")


def _exit(number: int) -> None:
    """End the process at once; not one that somebody sits at, who wants to go on in it."""
    if not _at_a_prompt():
        os._exit(128 + number)


def _is_stuck(now: float, stuck: float, begun: float) -> bool:
    """Whether what does not get on has been so for long enough. Threads have had a second before pages of theirs are
    written: that counts, or the process would end a second later than it should."""
    if now - max(stuck, begun) >= STUCK_SECONDS:
        return True
    return now - begun >= STUCK_SECONDS and now - stuck >= _NEARLY_SECONDS


def _is_logging(frame: FrameType | None) -> bool:
    """Whether a frame, or one of those around it, is of Python's logging."""
    for _ in range(_FRAMES):
        if frame is None:
            return False
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] == "logging":
            return True
        frame = frame.f_back
    return False
