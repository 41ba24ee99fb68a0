"""One run of the tail storm: a tap as a process, a reader, a signal, and the run that goes on from its last STATE."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tail_storm_checks import Output, missing
from tail_storm_plan import SLOW_BYTES_PER_SECOND, Plan, plan
from tail_storm_reader import Reader
from tail_storm_world import Hub, World
from tapprocess import PYTHON, environment

PROGRAM = Path(__file__).with_name("tail_storm_taps.py")
PATIENCE_SECONDS = 90.0
STUCK_SECONDS = 11.0
"""A run whose reader has stopped ends after this time, at the latest."""


@dataclass
class Told:
    """How a run went.

    ``seconds``: from the signal to the end of the process; ``own``: without what the slow reader took of it.
    ``behind``: bytes that came after the signal. ``inside``: a function of the tap's was at work when it came.
    ``clients``: how many it made. ``twice``: rows that came more than once.
    """

    plan: Plan
    code: int = 0
    seconds: float = 0.0
    own: float = 0.0
    behind: int = 0
    inside: bool = False
    clients: int = 0
    twice: int = 0
    rows: int = 0
    torn: bool = False
    ended: str = ""
    failure: str = ""
    notes: list[str] = field(default_factory=list)


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
        with self.process(rest=True, tail=made.mode in ("tail", "tails") or made.seed % 2 == 0) as process:
            reader = reading(process, made, fast=True)
            if made.beside:
                before = Output(b"", made, self.state)
                wanted = {place: count for place, count in self.world.rows.items() if before.covered(place) < count - 1}
                left = all_out(process, reader, wanted)
                assert not left, f"not all is out: {left}, exit code {process.returncode}\n{self.stderr}"
                process.send_signal(signal.SIGTERM)
            code = ended(process, reader, PATIENCE_SECONDS)
            self.keep(bytes(reader.got))
            assert code == 0, f"the run that goes on ended with {code}\n{self.stderr}"
            output = Output(bytes(reader.got), made, self.state)
            output.check_last_state()
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


def _number(made: Plan) -> int:
    return int(signal.Signals[made.signal])


def until_the_moment(made: Plan, world: World, process: subprocess.Popen[bytes], reader: Reader) -> None:
    """Wait until the signal is due.

    Raises:
        AssertionError: nothing has come in time, or the tap has ended.
    """
    assert while_alive(process, reader.begun.is_set), f"nothing has come, exit code {process.returncode}"
    if made.moment == "stuck":
        world.stuck.wait(1.5)
    time.sleep(made.after)
    assert process.poll() is None, f"it ended by itself with {process.returncode}"
    if made.paused:
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.05)
        process.send_signal(signal.SIGCONT)


def run(seed: int, hub: Hub, folder: Path, *, limit_seconds: float = 1.0) -> Told:
    """One run, stopped as planned, and its continuation; what is wrong stands in ``failure``.

    Args:
        limit_seconds: how long it may take to stop, beside what the reader takes.
    """
    made = plan(seed)
    told = Told(made)
    own = folder / f"seed-{made.seed}"
    own.mkdir(parents=True)
    with hub.world(made.seed, own, made.places) as world:
        for place in made.places:
            world.grow(place, made.rows)
        world.keep_growing(random.Random(made.seed), *((1, 12) if made.size > 1000 else (20, 2000)))
        first = Run(made, world, hub, "first")
        try:
            output = _stopped(first, told, limit_seconds)
            world.stop_growing()
            again = Run(made, world, hub, "again", dict(output.state))
            try:
                rest = again.to_the_end()
            except AssertionError as error:
                raise AssertionError(f"gone on from {json.dumps(again.state)}: {error}") from None
            lost = missing([output, rest], world.rows)
            assert not lost, f"lost: {lost}, gone on from {json.dumps(again.state)}"
        except AssertionError as error:
            told.failure = f"seed {made.seed}: {error}\n{made}\n{own}\n{first.stderr[-3000:]}"
            return told
    shutil.rmtree(own)
    return told


def _stopped(first: Run, told: Told, limit_seconds: float) -> Output:
    made, world = first.plan, first.world
    with first.process() as process:
        reader = reading(process, made)
        until_the_moment(made, world, process, reader)
        if made.hangups:
            reader = _hung_up(first, process, reader, told)
        number = signal.SIGTERM if made.hangups else _number(made)
        told.inside = first.stderr.count("BEGIN") > first.stderr.count("FINALLY")
        had, slept, begun = len(reader.got), reader.slept, time.monotonic()
        process.send_signal(number)
        stopped = made.reader == "stopped" and not made.hangups
        told.code = ended_in(process, PATIENCE_SECONDS)
        told.seconds = time.monotonic() - begun
        told.own = told.seconds - (reader.slept - slept)
        told.behind = len(reader.got) - had
        ended(process, reader, 1)
        told.clients = world.connections("client", process.pid)
        got = bytes(reader.got)
        first.keep(got)
    said = first.stderr
    killed = stopped and told.code != 0
    if killed:
        assert told.code in (143, 130), f"exit code {told.code}"
        assert told.code == 128 + number, f"exit code {told.code} after signal {number}"
        told.ended = "killed by the stopped reader"
    else:
        assert told.code == 0, f"exit code {told.code}"
        told.ended = "clean"
    assert "Traceback" not in said, "a traceback"
    assert "CRITICAL" not in said, "CRITICAL"
    assert "tried again" not in said, "a stream has failed"
    output = Output(got, made, None, torn=killed)
    told.rows, told.twice, told.torn = sum(map(len, output.rows.values())), output.twice(), output.torn
    assert len(output.schemas) == len(set(output.schemas)), f"SCHEMA came twice: {output.schemas}"
    if not made.hangups:
        output.check_order()
        assert told.clients <= 1, f"{told.clients} clients"
    if not killed:
        output.check_last_state()
        if made.lanes == 1:
            assert said.count("BEGIN") == said.count("FINALLY"), "its finally has not run"
    _in_time(told, killed, limit_seconds)
    return output


def ended_in(process: subprocess.Popen[bytes], seconds: float) -> int:
    """Its exit code.

    Raises:
        AssertionError: it has not ended after so many seconds.
    """
    deadline = time.monotonic() + seconds
    while process.poll() is None:
        assert time.monotonic() < deadline, f"it has not ended after {seconds:.0f} s"
        time.sleep(0.002)
    assert process.returncode is not None
    return process.returncode


def _in_time(told: Told, killed: bool, limit_seconds: float) -> None:
    """It has stopped in time; what a slow reader takes does not count. Functions in threads get two seconds more."""
    made = told.plan
    if killed:
        allowed, took = STUCK_SECONDS - 1 + limit_seconds, told.seconds
    else:
        allowed, took = limit_seconds + (2.0 if made.blocks_workers else 0.0), told.own
        if made.reader == "stopped" and not made.hangups:
            allowed = STUCK_SECONDS - 1 + limit_seconds
    assert took <= allowed, f"it took {took:.2f} s to stop"


def _hung_up(first: Run, process: subprocess.Popen[bytes], reader: Reader, told: Told) -> Reader:
    """SIGHUP: the run goes on, with a new client, and brings everything that the source holds."""
    made, world = first.plan, first.world
    rng = random.Random(made.seed)
    for _ in range(made.hangups):
        process.send_signal(signal.SIGHUP)
        time.sleep(rng.choice([0.0, 0.01, 0.2]))
    if made.reader == "stopped":
        time.sleep(made.hold)
        assert process.poll() is None, f"SIGHUP ended it with {process.returncode}: its reader had stopped"
        reader.go_on()
    if made.abrupt:
        told.notes.append("SIGTERM right after SIGHUP")
        reader.hurry()
        return reader
    assert while_alive(process, lambda: world.connections("client", process.pid) > 1), (
        f"no new client after SIGHUP: {process.returncode}"
    )
    reader.hurry()
    world.stop_growing()
    for place in made.places:
        world.grow(place, 2)
    left = all_out(process, reader, world.rows)
    assert not left, f"not all is out after SIGHUP: {left}, exit code {process.returncode}"
    return reader


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


def while_alive(process: subprocess.Popen[bytes], true: Callable[[], bool], seconds: float = 30.0) -> bool:
    """Wait until something is true; False: the process has ended before, or time is up."""
    deadline = time.monotonic() + seconds
    while not true():
        if process.poll() is not None or time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
