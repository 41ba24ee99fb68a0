"""What all worlds share: stories, processes that are struck, whoever reads their pipes, and the sum of it all."""

from __future__ import annotations

import contextlib
import fcntl
import json
import multiprocessing
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from support.cli import environment

PATIENCE_SECONDS = 240.0


class Check(Protocol):
    """Holds outcomes against a plan: ``take`` and ``finish`` raise AssertionError. ``figures`` is what was seen; those
    that begin with "worst" are the greatest, all others are sums."""

    figures: Counter[str]

    def take(self, outcome: Any) -> None: ...

    def finish(self) -> None: ...


class World(Protocol):
    """``at_a_time``: so many stories side by side."""

    at_a_time: int

    def plan(self, seed: int) -> Any: ...

    def check(self, plan: Any) -> Check: ...

    def run(self, plan: Any, folder: Path, check: Any) -> Iterator[Any]:
        """Outcomes, one by one; ``check`` has taken each before the next is made, and knows the state to go on from."""


class Late(AssertionError):
    """All was as it must be, but it took too long."""


@dataclass
class Told:
    """How a story went. ``failure``: what was wrong, if anything; ``late``: only the time was."""

    seed: int
    figures: Counter[str] = field(default_factory=Counter)
    failure: str = ""
    late: bool = False


def tell(world: World, seed: int, folder: Path) -> Told:
    """One story, in a folder of its own, which stays if something was wrong."""
    own = folder / f"seed-{seed}"
    shutil.rmtree(own, ignore_errors=True)
    own.mkdir(parents=True)
    plan = world.plan(seed)
    check = world.check(plan)
    told = Told(seed, check.figures)
    try:
        with contextlib.closing(world.run(plan, own, check)) as outcomes:
            for outcome in outcomes:
                check.take(outcome)
        check.finish()
    except Exception as error:
        what = str(error) if isinstance(error, AssertionError) else traceback.format_exc()
        errors = sorted(own.glob("stderr-*"), key=lambda path: path.stat().st_mtime)
        said = errors[-1].read_text(errors="replace")[-3000:] if errors else ""
        told.failure = f"seed {seed}: {what}\n{plan}\nwhat is left of it: {own}\n{said}"
        told.late = isinstance(error, Late)
    else:
        shutil.rmtree(own)
    return told


def storm(
    make: Callable[[], World],
    seeds: Iterable[int],
    folder: Path,
    *,
    at_a_time: int,
    seconds: float | None = None,
    heard: Callable[[Told], None] = lambda told: None,
) -> list[Told]:
    """Stories side by side, each in a process of its own: a reader must not wait for others' interpreters.

    Args:
        make: gives the world; called once in each process.
        seconds: no story begins after so many.
        heard: called as each one ends.
    """
    until = None if seconds is None else time.monotonic() + seconds
    left, found = iter(seeds), []
    running: set[Future[Told]] = set()
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(at_a_time, mp_context=spawned, initializer=_open, initargs=(make,)) as pool:
        while True:
            while len(running) < at_a_time and (until is None or time.monotonic() < until):
                seed = next(left, None)
                if seed is None:
                    break
                running.add(pool.submit(_tell, seed, folder))
            if not running:
                return found
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for one in done:
                found.append(one.result())
                heard(found[-1])


_WORLDS: list[World] = []


def _open(make: Callable[[], World]) -> None:
    signal.signal(signal.SIGTERM, lambda *_given: sys.exit(143))  # a story kills its programs then
    _WORLDS.append(make())


def _tell(seed: int, folder: Path) -> Told:
    return tell(_WORLDS[-1], seed, folder)


def summed(found: Iterable[Told]) -> dict[str, Any]:
    """The figures of many stories."""
    made: Counter[str] = Counter()
    for told in found:
        for what, count in told.figures.items():
            made[what] = max(made[what], count) if what.startswith("worst") else made[what] + count
    return dict(sorted(made.items()))


class Reader(threading.Thread):
    """Reads a pipe to its end.

    Args:
        pipe: the file descriptor to read from; whoever made it closes it.
        bytes_per_second: how slow a slow reader is, until it is told to ``hurry``; None: as fast as it can.
        stop_at: after so many bytes it reads nothing more, until it is told to ``go_on``; None: it never stops.
        look: is shown what has come so far, after each bit of it.
    """

    def __init__(
        self,
        pipe: int,
        *,
        bytes_per_second: float | None = None,
        stop_at: int | None = None,
        look: Callable[[bytearray], None] = lambda got: None,
    ) -> None:
        super().__init__(name="storm-reader", daemon=True)
        self._pipe, self._rate, self._stop_at, self._look = pipe, bytes_per_second, stop_at, look
        self._going_on, self._fast, self._gone = (threading.Event() for _ in range(3))
        self.got = bytearray()
        self.seconds = 0.0
        """How long it has been at other things than waiting for bytes: because it is slow, or its machine busy."""
        self.begun = threading.Event()
        """Something has come."""

    def run(self) -> None:
        """Read to the end."""
        while True:
            most = 1 << 16 if self._rate is None else 1 << 14
            if self._stop_at is not None and not self._going_on.is_set():
                if len(self.got) >= self._stop_at:
                    self._going_on.wait()
                most = min(most, max(1, self._stop_at - len(self.got)))
            while not select.select([self._pipe], [], [], 0.05)[0]:
                if self._gone.is_set():
                    return
            chunk = os.read(self._pipe, most)
            if not chunk:
                return
            begun = time.monotonic()
            self.got += chunk
            self.begun.set()
            self._look(self.got)
            if self._rate is not None and not self._fast.is_set():
                self._fast.wait(len(chunk) / self._rate)
            self.seconds += time.monotonic() - begun

    def hurry(self) -> None:
        """Be neither slow nor stopped any longer."""
        self._fast.set()
        self._going_on.set()

    def go_on(self) -> None:
        """Be stopped no longer."""
        self._going_on.set()

    def stop(self) -> None:
        """Read nothing more, until told to ``go_on``."""
        self._stop_at = len(self.got)

    def leave(self) -> None:
        """Go away for good, once the pipe is empty."""
        self._gone.set()
        self.join()


class Program:
    """A program as a process in a group of its own; the group is killed at the end of the block.

    Args:
        args: its words. folder, name: what it says on stderr lies in ``stderr-NAME.txt``.
        variables: more of its environment. small_pipe: stdout holds 4 kB. small_files: most bytes of a file, or None.
        reading: for its ``Reader``; None: whoever has started it calls ``read``, or reads stdout.
    """

    def __init__(
        self,
        args: Sequence[Any],
        folder: Path,
        name: str,
        *,
        variables: dict[str, str] | None = None,
        stdin: bool = False,
        small_pipe: bool = False,
        small_files: int | None = None,
        reading: dict[str, Any] | None = None,
    ) -> None:
        self._errors = folder / f"stderr-{name}.txt"

        def limit() -> None:
            import resource

            resource.setrlimit(resource.RLIMIT_FSIZE, (small_files or 0, small_files or 0))

        with self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [str(arg) for arg in args],
                stdin=subprocess.PIPE if stdin else None,
                stdout=subprocess.PIPE,
                stderr=errors if small_files is None else subprocess.PIPE,
                # A limit of bytes would cut what Python compiles, too.
                env=environment(PYTHONDONTWRITEBYTECODE="1", **(variables or {})),
                start_new_session=True,
                preexec_fn=None if small_files is None else limit,
            )
        self._copying = threading.Thread(target=self._copy, daemon=True)
        if small_files is not None:  # what it says must not fall under its own limit
            self._copying.start()
        self.pid = self.process.pid
        assert self.process.stdout is not None
        self.stdout = self.process.stdout
        if small_pipe:
            fcntl.fcntl(self.stdout.fileno(), fcntl.F_SETPIPE_SZ, 4096)
        self.reader = Reader(self.stdout.fileno())
        if reading is not None:
            self.read(**reading)

    def _copy(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as said, self._errors.open("wb", buffering=0) as errors:
            shutil.copyfileobj(said, errors)

    def read(self, **reading: Any) -> None:
        """Begin to read its stdout; see ``Reader``."""
        self.reader = Reader(self.stdout.fileno(), **reading)
        self.reader.start()

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_error: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()
        if self.reader.is_alive():
            self.reader.hurry()
            self.reader.join(10)
        for pipe in (self.process.stdin, self.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    @property
    def stderr(self) -> str:
        """What it has said so far."""
        return self._errors.read_text(errors="replace")

    @property
    def code(self) -> int | None:
        """Its exit code; None: it runs."""
        return self.process.poll()

    def send(self, number: int) -> None:
        """A signal, if it still runs."""
        if self.code is None:
            self.process.send_signal(number)

    def until(self, true: Callable[[], bool], seconds: float = 120.0) -> bool:
        """Wait until something is true; False: the process has ended before, or time is up."""
        deadline = time.monotonic() + seconds
        while not true():
            if self.code is not None or time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        return True

    def ended(self, seconds: float = PATIENCE_SECONDS, look: Callable[[], object] = lambda: None) -> int:
        """Its exit code, once it has ended and all is read; ``look`` is called meanwhile.

        Raises:
            AssertionError: it has not ended after so many seconds.
        """
        deadline = time.monotonic() + seconds
        while self.code is None:
            assert time.monotonic() < deadline, f"it has not ended after {seconds:.0f} s"
            look()
            time.sleep(0.005)
        code = self.process.returncode
        if self._copying.ident is not None:
            self._copying.join(10)
        if self.reader.ident is not None:
            self.reader.hurry()
            self.reader.join(PATIENCE_SECONDS)
            assert not self.reader.is_alive(), "somebody else holds its stdout"
        return code


def below(pid: int) -> Iterator[tuple[int, int, str]]:
    """(pid, parent, command) of all processes that a process has started, and theirs."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            children.setdefault(int(stat.read_text().rpartition(")")[2].split()[1]), []).append(int(stat.parent.name))
    todo = [(child, pid) for child in children.get(pid, ())]
    while todo:
        one, parent = todo.pop()
        with contextlib.suppress(OSError):
            yield one, parent, Path(f"/proc/{one}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        todo += [(child, one) for child in children.get(one, ())]


def workers_of(pid: int) -> list[int]:
    """The Python workers that Spark has started for a process: children of its daemon."""
    found = list(below(pid))
    daemons = {one for one, _parent, command in found if "pyspark.daemon" in command}
    return [one for one, parent, _command in found if parent in daemons and one not in daemons] or [
        one for one, parent, _command in found if parent in daemons
    ]


def messages_in(got: bytes, *, torn: bool = False) -> list[dict[str, Any]]:
    """The messages of a pipe.

    Raises:
        AssertionError: a line that is no message, or a torn last one, unless it may be ``torn``.
    """
    whole, _end, rest = got.rpartition(b"\n")
    assert torn or not rest, f"a torn line: {rest[-100:]!r}"
    found = []
    for line in whole.split(b"\n") if whole else ():
        try:
            found.append(json.loads(line))
        except ValueError as error:
            raise AssertionError(f"a broken line: {error}: {line[:100]!r} ... {line[-60:]!r}") from error
    return found


def position(state: Any, place: str, key: str = "id") -> int:
    """Up to which number a state covers a place (a stream, or a partition ``stream-part``); -1: none."""
    entry = _entry(state, place)
    return int(entry.get(key, -1))


def noted(state: Any, place: str) -> int:
    """The number that a function has noted in ``stream.state``; -1: none."""
    return int((_entry(state, place).get("stream_state") or {}).get("done", -1))


def _entry(state: Any, place: str) -> dict[str, Any]:
    stream, _, part = place.partition("-")
    entry = ((state or {}).get("bookmarks") or {}).get(stream) or {}
    return (entry.get("partitions") or {}).get(part) or {} if part else entry


def same(what: str, found: Iterable[Any], wanted: Iterable[Any]) -> None:
    """Two multisets of rows are the same.

    Raises:
        AssertionError: they are not; says which rows.
    """
    is_there, should = Counter(found), Counter(wanted)
    less, more = should - is_there, is_there - should
    assert not less and not more, (
        f"{what}: {less.total()} rows are missing {sorted(less)[:5]}, {more.total()} too many {sorted(more)[:5]}"
    )
