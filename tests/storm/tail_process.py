"""A tap of the tail storm as a process, and how to wait for what comes out of it."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tail_storm_checks import Output
from tail_storm_plan import SLOW_BYTES_PER_SECOND, Plan
from tail_storm_reader import Reader
from tail_storm_world import Hub, World
from tapprocess import PYTHON, environment

PROGRAM = Path(__file__).with_name("tail_storm_taps.py")
PATIENCE_SECONDS = 240.0


class Run:
    """A tap of a plan as a process, and what comes out of it."""

    def __init__(self, made: Plan, world: World, hub: Hub, name: str, state: dict[str, Any] | None = None) -> None:
        self.plan = made
        self.world = world
        self.state = state
        self._hub = hub
        self._errors = world.folder / f"stderr-{name}.txt"
        self._name = name

    @contextlib.contextmanager
    def process(self, *, rest: bool = False, tail: bool = True) -> Iterator[subprocess.Popen[bytes]]:
        """The tap, killed at the end if it still runs. ``rest``: nothing blocks, one round, and then it ends."""
        made, folder = self.plan, self.world.folder
        told = asdict(made) | {"places": made.places, "page_rows": made.page_rows, "rest": rest}
        told |= {"folder": str(folder), "port": self._hub.port, "world": self.world.number}
        # Tail functions end with the last round of polled streams: where there are both, it has to be stopped.
        config = made.settings() | ({"tail_max_rounds": 1} if rest and not made.beside else {})
        args = []
        if tail and made.flag:
            args.append("--tail")
        elif tail:
            config["tail"] = True
        path = folder / f"config-{self._name}.json"
        path.write_text(json.dumps(config))
        args += ["--config", str(path)]
        if self.state:
            path = folder / f"state-{self._name}.json"
            path.write_text(json.dumps(self.state))
            args += ["--state", str(path)]
        # A signal may leave a socket half made: that is no fault of anybody's.
        variables = {"STORM_PLAN": json.dumps(told), "PYTHONWARNINGS": "error,ignore::ResourceWarning"}
        if made.unbuffered:
            variables["PYTHONUNBUFFERED"] = "1"
        with self._errors.open("wb") as errors:
            process = subprocess.Popen(
                [PYTHON, str(PROGRAM), *args], stdout=subprocess.PIPE, stderr=errors, env=environment(**variables)
            )
        assert process.stdout is not None
        try:
            yield process
        finally:
            process.kill()
            process.wait()
            process.stdout.close()

    @property
    def stderr(self) -> str:
        """What it has said."""
        return self._errors.read_text()

    def to_the_end(self) -> Output:
        """A run that brings everything that is left; where tail functions stand beside polled streams it is stopped
        then, else it ends by itself.

        Raises:
            AssertionError: it does not end, or not in peace.
        """
        made = self.plan
        tail = made.mode in ("tail", "tails") or made.seed % 2 == 0
        with self.process(rest=True, tail=tail) as process:
            reader = reading(process, made, fast=True)
            if made.beside:
                before = Output(b"", made, self.state)
                wanted = {place: count for place, count in self.world.rows.items() if before.covered(place) < count - 1}
                while_alive(process, reader.begun.is_set)
                left = all_out(process, reader, wanted)
                assert not left, f"not all is out: {left}, exit code {process.returncode}\n{self.stderr}"
                process.send_signal(signal.SIGTERM)
            code = ended(process, reader, PATIENCE_SECONDS)
            self.keep(bytes(reader.got))
            assert code == 0, f"the run that goes on ended with {code}\n{self.stderr}"
            output = Output(bytes(reader.got), made, self.state)
            # In a plain run rows that only came again need no other STATE than the one that was given.
            output.check_last_state(all_covered=tail)
            return output

    def keep(self, got: bytes) -> None:
        """For whoever wants to see what came."""
        (self.world.folder / f"stdout-{self._name}.jsonl").write_bytes(got)


def reading(process: subprocess.Popen[bytes], made: Plan, *, fast: bool = False) -> Reader:
    """The reader that the plan says."""
    assert process.stdout is not None
    slow = made.reader == "slow" and not fast
    reader = Reader(
        process.stdout.fileno(),
        bytes_per_second=SLOW_BYTES_PER_SECOND if slow else None,
        stop_at=made.stop_at if made.reader == "stopped" and not fast else None,
    )
    reader.start()
    return reader


def ended(process: subprocess.Popen[bytes], reader: Reader, seconds: float) -> int:
    """Its exit code, once it has ended and all is read.

    Raises:
        AssertionError: it has not ended after so many seconds.
    """
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"it has not ended after {seconds:.0f} s") from None
    reader.go_on()
    reader.hurry()
    reader.join(PATIENCE_SECONDS)
    assert not reader.is_alive(), "somebody else holds its stdout"
    return code


class Delays:
    """How long the threads of a process have waited for a processor that others were using, where Linux tells it."""

    def __init__(self, pid: int) -> None:
        self._tasks = Path(f"/proc/{pid}/task")
        self._before: dict[str, float] = {}
        self._before = self.look()
        self._now = self._before

    def look(self) -> dict[str, float]:
        """Seconds of each thread that is there."""
        found = {}
        with contextlib.suppress(OSError, ValueError):  # it has ended meanwhile
            for task in self._tasks.iterdir():
                found[task.name] = int((task / "schedstat").read_text().split()[1]) / 1e9
        self._now = found or self._before
        return found

    def seconds(self) -> float:
        """Of the thread that has waited longest since this was made, at the last look."""
        return max((waited - self._before.get(task, 0.0) for task, waited in self._now.items()), default=0.0)


def ended_in(process: subprocess.Popen[bytes], seconds: float, delays: Delays) -> int:
    """Its exit code; looks at its delays meanwhile.

    Raises:
        AssertionError: it has not ended after so many seconds.
    """
    deadline = time.monotonic() + seconds
    while process.poll() is None:
        assert time.monotonic() < deadline, f"it has not ended after {seconds:.0f} s"
        delays.look()
        time.sleep(0.005)
    assert process.returncode is not None
    return process.returncode


def all_out(process: subprocess.Popen[bytes], reader: Reader, rows: Mapping[str, int]) -> list[tuple[bytes, bytes]]:
    """Wait until the last row of each place is out; those that are not, if it has ended or time is up."""
    wanted = [_last_row(place, count) for place, count in rows.items()]
    seen = 0

    def out() -> bool:
        nonlocal seen
        so_far = bytes(reader.got[seen:])
        wanted[:] = [mark for mark in wanted if not _has(so_far, mark)]
        seen += max(0, len(so_far) - 1_000_000)
        return not wanted

    while_alive(process, out)
    return wanted


def _last_row(place: str, count: int) -> tuple[bytes, bytes]:
    stream, _, part = place.partition("-")
    return f'"stream":"{stream}"'.encode(), (f'"part":"{part}",' if part else "").encode() + b'"id":%d,' % (count - 1)


def _has(got: bytes, mark: tuple[bytes, bytes]) -> bool:
    stream, row = mark
    at = -1
    while (at := got.find(row, at + 1)) >= 0:
        if stream in got[got.rfind(b"\n", 0, at) + 1 : at]:
            return True
    return False


def while_alive(process: subprocess.Popen[bytes], true: Callable[[], bool], seconds: float = 120) -> bool:
    """Wait until something is true; False: the process has ended before, or time is up."""
    deadline = time.monotonic() + seconds
    while not true():
        if process.poll() is not None or time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
