"""A running tap: what it writes is taken as it comes, neither pipe ever blocks, and nothing of it is left behind."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Literal

from burler.verify.program_heard import Heard
from burler.verify.program_processes import Sigterm, disposition, members, shrink

_BLOCK_BYTES, _SMALL_BYTES = 1 << 16, 512
_LOOK_SECONDS = 0.05
_MOMENT_SECONDS = 0.2
_KILL_SECONDS = 2.0
_LEAVE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Disturbance:
    """What is done to a tap in the middle of a run.

    Attributes:
        when: asked after each block that came, until it says yes.
        how: "signal": reading stops for a moment, so that the tap stands at a full pipe, as behind a slow target; then
            it gets SIGTERM, and reading goes on. "close": nobody reads any more.
        within_seconds: so long it may take to end after that.
    """

    when: Callable[[], bool]
    how: Literal["signal", "close"]
    within_seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended.

    Attributes:
        exit_code: negative: the signal that ended it.
        stderr: what it said there; of a long text the beginning and the end. It may hold secrets:
            ``Program.last_words`` gives what may be shown.
        timed_out: it had not ended in its time, and was ended. stopped: so asked by ``stop``.
        disturbed: the disturbance came while it ran.
        sigterm: what it did with SIGTERM when that came: Linux tells; "" elsewhere.
        left: names of the processes that it left running.
        told: the secrets of the config that stood on stderr, by their keys.
        pipe_bytes: so much of what it wrote may have been in the pipe, unread.
    """

    exit_code: int
    seconds: float
    stderr: bytes = b""
    timed_out: bool = False
    stopped: bool = False
    disturbed: bool = False
    sigterm: Sigterm = ""
    left: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    pipe_bytes: int = _BLOCK_BYTES

    @property
    def well(self) -> bool:
        """Whether it ended by itself, and says that all went well."""
        return self.exit_code == 0 and not self.timed_out and not self.stopped


class NotStarted(Exception):
    """The system refused to start a command; the text is its reason."""


class Running:
    """One run of a command; a context manager that leaves no process.

    The command is the first of its own process group, and reads nothing.

    Args:
        words: the program and its arguments.
        environment: all of it.
        needles: see ``Heard``.
        small_pipe: so that the tap stands at a full pipe after few rows, where the system allows it (Linux).
    """

    def __init__(
        self,
        words: Sequence[str],
        *,
        environment: Mapping[str, str],
        needles: Mapping[bytes, str],
        small_pipe: bool = False,
    ) -> None:
        self._words, self._environment = words, environment
        self.heard = Heard(needles)
        self._small = small_pipe
        self.pipe_bytes = _BLOCK_BYTES

    def __enter__(self) -> Running:
        self._out, out = os.pipe()
        self._err, err = os.pipe()
        if self._small:
            self.pipe_bytes = shrink(out)
        try:
            self._process = subprocess.Popen(
                list(self._words),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=dict(self._environment),
                start_new_session=True,
            )
        except BaseException as error:
            os.close(self._out)
            os.close(self._err)
            if isinstance(error, OSError):
                raise NotStarted(error.strerror or str(error)) from None
            raise
        finally:
            os.close(out)
            os.close(err)
        self._started = time.monotonic()
        self._open = {self._out, self._err}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close_output()
        try:
            for number, seconds in ((signal.SIGTERM, _KILL_SECONDS), (signal.SIGKILL, None)):
                if not self.exited or members(self._process.pid):
                    with contextlib.suppress(OSError):
                        os.killpg(self._process.pid, number)
                    until = None if seconds is None else time.monotonic() + seconds
                    self.wait(until)
        finally:
            if self._process.poll() is None:  # a second Ctrl-C cut the wait short
                with contextlib.suppress(OSError):
                    os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
            self._close(self._err)

    @property
    def exited(self) -> bool:
        """Whether the command itself has ended; what it started may go on."""
        return self._process.poll() is not None

    @property
    def exit_code(self) -> int:
        """Negative: by a signal. It must have ended."""
        return int(self._process.returncode)

    @property
    def seconds(self) -> float:
        """Since it was started."""
        return time.monotonic() - self._started

    def read(self, until: float | None, most: int) -> bytes | None:
        """The next piece of its output; b"" at its end; None if nothing came until then.

        Once the command has ended and the pipe is empty, that is the end: a process that it left may hold the pipe for
        hours.
        """
        while True:
            over = self.exited  # first: what it wrote before is in the pipe already
            if self._look(self._out, until):
                block = os.read(self._out, most)
                if not block:
                    self.close_output()
                return block
            if over:
                return b""
            if until is not None and time.monotonic() >= until:
                return None

    def wait(self, until: float | None) -> bool:
        """Listen to its stderr, and read nothing, until it has ended (True) or time is over."""
        while not self.exited:
            if until is not None and time.monotonic() >= until:
                return False
            self._look(None, until)
        while self._look(None, 0.0):
            pass  # its last words
        return True

    def close_output(self) -> None:
        """From here on nobody reads what it writes."""
        self._close(self._out)

    def terminate(self) -> Sigterm:
        """SIGTERM for the command alone, as schedulers and containers do it; what the command does with it."""
        does = disposition(self._process.pid)
        self._process.terminate()
        return does

    def left(self) -> tuple[str, ...]:
        """The processes that the command has left behind, by name, once they had a moment to end."""
        end = time.monotonic() + _LEAVE_SECONDS
        while (names := members(self._process.pid)) and time.monotonic() < end:
            time.sleep(_LOOK_SECONDS)
        return names

    def _look(self, wanted: int | None, until: float | None) -> bool:
        """Wait for a moment at the most, and take what stderr has. Whether there was something: on ``wanted``, or on
        stderr where that is None."""
        seconds = _LOOK_SECONDS if until is None else min(_LOOK_SECONDS, max(0.0, until - time.monotonic()))
        watched = [fd for fd in (wanted, self._err) if fd in self._open]
        if not watched:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)
            return False
        poll = select.poll()
        for fd in watched:
            poll.register(fd, select.POLLIN)
        ready = {fd for fd, _ in poll.poll(seconds * 1000)}
        if self._err in ready:
            block = os.read(self._err, _BLOCK_BYTES)
            self.heard.take(block)
            if not block:
                self._close(self._err)
        return (self._err if wanted is None else wanted) in ready

    def _close(self, fd: int) -> None:
        if fd in self._open:
            self._open.discard(fd)
            os.close(fd)


def follow(
    running: Running,
    *,
    take: Callable[[bytes], object],
    stop: Callable[[], bool],
    deadline_seconds: float | None,
    disturbance: Disturbance | None,
) -> Ended:
    """Hand on what a tap writes until it ends, is no longer wanted, or has had its time.

    Args:
        take: gets each piece as it comes, lines are not kept together.
        stop: asked after each piece.
    """
    until = None if deadline_seconds is None else time.monotonic() + deadline_seconds
    stopped = disturbed = timed_out = False
    waits = disturbance
    sigterm: Sigterm = ""
    while not stopped:
        block = running.read(until, _BLOCK_BYTES if waits is None else _SMALL_BYTES)
        timed_out = block is None
        if not block:
            break
        take(block)
        stopped = stop()
        if waits is None or stopped or not waits.when():
            continue
        disturbed, sigterm = _disturb(running, waits)
        if disturbed:
            until = time.monotonic() + waits.within_seconds
            if waits.how == "close":
                break
        waits = None
    if not stopped and not timed_out:
        timed_out = not running.wait(until)
    return Ended(
        exit_code=running.exit_code if running.exited else -signal.SIGKILL,
        seconds=running.seconds,
        stderr=running.heard.content,
        timed_out=timed_out,
        stopped=stopped,
        disturbed=disturbed,
        sigterm=sigterm,
        left=running.left() if running.exited and not stopped else (),
        told=tuple(running.heard.told),
        pipe_bytes=running.pipe_bytes,
    )


def _disturb(running: Running, what: Disturbance) -> tuple[bool, Sigterm]:
    """Whether it still ran, and what it does with SIGTERM."""
    if what.how == "close":
        runs = not running.exited
        running.close_output()
        return runs, ""
    if running.wait(time.monotonic() + _MOMENT_SECONDS):
        return False, ""
    does = running.terminate()
    running.wait(time.monotonic() + _MOMENT_SECONDS)
    return True, does
