"""One run of the tail storm: a tap as a process, a reader, a signal, and the run that goes on from its last STATE."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from tail_storm_checks import Output, missing
from tail_storm_plan import Plan, plan
from tail_storm_process import PATIENCE_SECONDS, Delays, Run, all_out, ended, ended_in, reading, while_alive
from tail_storm_reader import Reader
from tail_storm_world import Hub, World

STUCK_SECONDS = 11.0
"""A run whose reader has stopped ends after this time, at the latest."""


class Late(AssertionError):
    """All was as it must be, but it took too long."""


@dataclass
class Told:
    """How a run went.

    ``seconds``: from the signal to the end of the process; ``own``: without what a slow or stopped reader took of it,
    and without what the tap waited for a processor that other programs were using.
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
    late: bool = False
    notes: list[str] = field(default_factory=list)


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
            told.late = isinstance(error, Late)
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
        delays = Delays(process.pid)
        had, taken, begun = len(reader.got), reader.seconds, time.monotonic()
        process.send_signal(number)
        stopped = made.reader == "stopped" and not made.hangups and not made.hiccup
        if made.hiccup:
            threading.Timer(made.hiccup, reader.go_on).start()
        told.code = ended_in(process, PATIENCE_SECONDS, delays)
        told.seconds = time.monotonic() - begun
        told.own = told.seconds - made.hiccup - (reader.seconds - taken) - delays.seconds()
        ended(process, reader, 1)
        told.behind = len(reader.got) - had
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
    if made.order == "asc" and made.batch != "overlap":
        # What was read again because of SIGHUP: rows at the boundary of those rounds, no others.
        assert told.twice <= made.hangups * len(made.places), f"{told.twice} rows came again"
    if not made.hangups:
        output.check_order()
        assert told.clients <= 1, f"{told.clients} clients"
    if not killed:
        output.check_last_state()
        if made.lanes == 1:
            assert said.count("BEGIN") <= said.count("FINALLY"), "its finally has not run"
    _in_time(told, killed, limit_seconds)
    return output


def _in_time(told: Told, killed: bool, limit_seconds: float) -> None:
    """It has stopped in time (see ``Told.own``). Functions in threads get two seconds more."""
    made = told.plan
    if made.reader == "slow":
        assert told.behind <= made.most_behind, f"{told.behind} bytes came behind the signal"
    if killed:
        allowed, took = STUCK_SECONDS - 1 + limit_seconds, told.seconds
    else:
        allowed, took = limit_seconds + (2.0 if made.blocks_workers else 0.0), told.own
        if made.reader == "stopped" and not made.hangups:
            allowed = allowed if made.hiccup else STUCK_SECONDS - 1 + limit_seconds
    if took > allowed:
        raise Late(
            f"it took {took:.2f} s to stop, {told.seconds:.2f} s with all that others took; {allowed:.1f} s allowed"
        )


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
