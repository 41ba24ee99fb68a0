"""Signals: a tap as a process, a reader that is fast, slow or stopped, a signal at a random moment, SIGKILL several
times over; and the run that goes on from the last STATE."""

from __future__ import annotations

import contextlib
import json
import random
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from storm.harness import Program
from storm.signals_checks import Check, Output, Ran
from storm.signals_plan import SLOW_BYTES_PER_SECOND, Plan, plan
from storm.signals_source import Source
from support.cli import PYTHON

PROGRAM = Path(__file__).with_name("signals_taps.py")


@dataclass(frozen=True)
class Signals:
    """The world. ``tail``: runs that poll and follow; else plain ones. ``kill``: SIGKILL, up to four times in a row.
    ``limit_seconds``: how long a run may take to stop, beside what the reader takes."""

    tail: bool
    kill: bool = False
    limit_seconds: float = 1.0
    at_a_time: int = 6

    def plan(self, seed: int) -> Plan:
        """See ``World``."""
        return plan(seed, tail=self.tail, kill=self.kill)

    def check(self, made: Plan) -> Check:
        """See ``World``."""
        return Check(made, self.limit_seconds)

    def run(self, made: Plan, folder: Path, check: Check) -> Iterator[Ran]:
        """See ``World``."""
        rng = random.Random(f"run {made.seed}")
        big = made.size > 1000
        with Source(folder, made.places, made.rows) as source:
            for number in range(made.kills):
                # Each run has a place of its own where it blocks, among the rows that it will still meet.
                stuck = rng.randrange(max(1, made.rows)) if made.stuck >= 0 else -1
                source.keep_growing(rng, *((1, 6) if big else (20, 500)))
                yield _killed(replace(made, stuck=stuck), source, f"run-{number}", check.state, rng)
            if not made.kills:
                source.keep_growing(rng, *((1, 12) if big else (20, 2000)))
                yield _stopped(made, source, rng)
            yield _rest(made, source, check.state)


def _tap(
    made: Plan,
    source: Source,
    name: str,
    state: Mapping[str, Any],
    *,
    rest: bool = False,
    tail: bool = True,
    fast: bool = True,
) -> Program:
    """The tap. ``rest``: nothing blocks, one round, and then it ends."""
    folder = source.folder
    told = asdict(made) | {"places": made.places, "page_rows": made.page_rows, "rest": rest}
    told |= {"folder": str(folder), "port": source.port}
    # Tail functions end with the last round of polled streams: where there are both, it has to be stopped.
    config = made.settings() | ({"tail_max_rounds": 1} if rest and not made.beside else {})
    args: list[Any] = [PYTHON, PROGRAM]
    if tail and made.flag:
        args.append("--tail")
    elif tail:
        config["tail"] = True
    for flag, document in (("config", config), *([("state", dict(state))] if state else [])):
        path = folder / f"{flag}-{name}.json"
        path.write_text(json.dumps(document))
        args += [f"--{flag}", path]
    # A signal may leave a socket half made: that is no fault of anybody's.
    variables = {"STORM_PLAN": json.dumps(told), "PYTHONWARNINGS": "error,ignore::ResourceWarning"}
    variables |= {"PYTHONUNBUFFERED": "1"} if made.unbuffered else {}
    slow, stops = made.reader == "slow" and not fast, made.reader == "stopped" and not fast
    reading = {
        "bytes_per_second": SLOW_BYTES_PER_SECOND if slow else None,
        "stop_at": made.stop_at if stops else None,
    }
    return Program(args, folder, name, variables=variables, reading=reading)


def _begun(tap: Program) -> None:
    assert tap.until(tap.reader.begun.is_set), f"nothing has come, exit code {tap.code}"


def _at_work(said: str) -> bool:
    return said.count("BEGIN") > said.count("FINALLY")


def _ran(ending: str, tap: Program, name: str, source: Source, **more: Any) -> Ran:
    got = bytes(tap.reader.got)
    (source.folder / f"stdout-{name}.jsonl").write_bytes(got)  # for whoever wants to see what came
    code = tap.code
    assert code is not None
    return Ran(ending, got, code, tap.stderr, dict(source.rows), **more)


def _stopped(made: Plan, source: Source, rng: random.Random) -> Ran:
    """A run that a signal meets as planned."""
    with _tap(made, source, "first", {}, tail=made.tail, fast=False) as tap:
        _begun(tap)
        if made.moment == "stuck":
            source.stuck.wait(1.5)
        time.sleep(made.after)
        assert not made.tail or tap.code is None, f"it ended by itself with {tap.code}"
        if made.paused:
            tap.send(signal.SIGSTOP)
            time.sleep(0.05)
            tap.send(signal.SIGCONT)
        if made.hangups:
            _hung_up(made, tap, source, rng)
        inside, delays = _at_work(tap.stderr), Delays(tap.pid)
        had, taken, begun = len(tap.reader.got), tap.reader.seconds, time.monotonic()
        tap.send(signal.SIGTERM if made.hangups else signal.Signals[made.signal])
        if made.hiccup:
            threading.Timer(made.hiccup, tap.reader.go_on).start()
        if not made.tail and made.reader == "stopped" and not inside:
            tap.reader.go_on()  # it may be at its end, where nothing but the reader is waited for
        while tap.code is None and time.monotonic() < begun + 240:
            delays.look()
            time.sleep(0.005)
        seconds = time.monotonic() - begun
        own = seconds - made.hiccup - (tap.reader.seconds - taken) - delays.seconds()
        tap.ended(1)
        behind, clients = len(tap.reader.got) - had, source.connections("client", tap.pid)
        source.stop_growing()
        return _ran(
            "stopped", tap, "first", source, seconds=seconds, own=own, behind=behind, inside=inside, clients=clients
        )


def _hung_up(made: Plan, tap: Program, source: Source, rng: random.Random) -> None:
    """SIGHUP: the run goes on, with a new client, and brings everything that the source holds."""
    for _ in range(made.hangups):
        tap.send(signal.SIGHUP)
        time.sleep(rng.choice([0.0, 0.01, 0.2]))
    if made.reader == "stopped":
        time.sleep(made.hold)
        assert tap.code is None, f"SIGHUP ended it with {tap.code}: its reader had stopped"
        tap.reader.go_on()
    if not made.abrupt:
        renewed = tap.until(lambda: source.connections("client", tap.pid) > 1)
        assert renewed, f"no new client after SIGHUP: {tap.code}"
        tap.reader.hurry()
        source.stop_growing()
        for place in made.places:
            source.grow(place, 2)
        _all_out(tap, source.rows)
    tap.reader.hurry()


def _killed(made: Plan, source: Source, name: str, state: Mapping[str, Any], rng: random.Random) -> Ran:
    """A run that is killed: what had come through until then, or what a reader took of it that was killed as well."""
    source.stuck.clear()
    with _tap(made, source, name, state) as tap:
        when = rng.random()
        if when > 0.15:  # else perhaps before the first byte
            _begun(tap)
        if when > 0.6:
            source.stuck.wait(1.0)
        time.sleep(rng.choice([0.02, 0.2, 0.6]) * rng.random())
        assert tap.code is None, f"it ended by itself with {tap.code}"
        inside = _at_work(tap.stderr)
        tap.send(signal.SIGKILL)
        tap.ended()
        source.stop_growing()
        ran = _ran("killed", tap, name, source, inside=inside)
    if rng.random() < 0.3:
        ran.got, ran.cut = ran.got[: rng.randrange(len(ran.got) + 1)], True
    return ran


def _rest(made: Plan, source: Source, state: Mapping[str, Any]) -> Ran:
    """A run that brings everything that is left; where tail functions stand beside polled streams it is stopped then,
    else it ends by itself."""
    with _tap(made, source, "rest", state, rest=True, tail=made.tail_at_rest) as tap:
        if made.beside:
            before = Output(b"", made, state)
            _begun(tap)
            _all_out(tap, {place: rows for place, rows in source.rows.items() if before.covered(place) < rows - 1})
            tap.send(signal.SIGTERM)
        tap.ended()
        return _ran("rest", tap, "rest", source)


def _all_out(tap: Program, rows: Mapping[str, int]) -> None:
    """Wait until the last row of each place is out.

    Raises:
        AssertionError: one is not, and the tap has ended or time is up.
    """
    wanted = [_last_row(place, count) for place, count in rows.items()]
    seen = 0

    def out() -> bool:
        nonlocal seen
        so_far = bytes(tap.reader.got[seen:])
        wanted[:] = [mark for mark in wanted if not _has(so_far, mark)]
        seen += max(0, len(so_far) - 1_000_000)
        return not wanted

    assert tap.until(out) or out(), f"not all is out: {wanted}, exit code {tap.code}"


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


class Delays:
    """How long the threads of a process have waited for a processor that others were using, where Linux tells it."""

    def __init__(self, pid: int) -> None:
        self._tasks = Path(f"/proc/{pid}/task")
        self._before: dict[str, float] = {}
        self._now = self._before = self.look()

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
