"""SIGKILL: tail runs killed at random moments, each gone on with from the last STATE that had reached the reader."""

from __future__ import annotations

import json
import random
import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tail_storm_checks import Output, missing
from tail_storm_plan import Plan, plan
from tail_storm_process import PATIENCE_SECONDS, Run, ended, reading, while_alive
from tail_storm_world import Hub, World


@dataclass
class Killed:
    """How a story went. ``twice``: rows that came more than once, in all runs of it. ``failure``: what was wrong."""

    plan: Plan
    kills: int = 0
    inside: int = 0
    torn: int = 0
    cut: int = 0
    rows: int = 0
    twice: int = 0
    states: int = 0
    failure: str = ""


def kill(seed: int, hub: Hub, folder: Path) -> Killed:
    """One story: up to four kills, then a run to the end; nothing may be missing."""
    made = plan(seed, kill=True)
    rng = random.Random(f"kill {seed}")
    told = Killed(made)
    own = folder / f"kill-{seed}"
    own.mkdir(parents=True)
    outputs: list[Output] = []
    state: dict[str, Any] = {}
    with hub.world(seed, own, made.places) as world:
        for place in made.places:
            world.grow(place, made.rows)
        run = None
        try:
            for number in range(rng.randint(1, 4)):
                # Each run has a place of its own where it blocks, among the rows that it will still meet.
                stuck = rng.randrange(max(1, made.rows)) if made.stuck >= 0 else -1
                run = Run(replace(made, stuck=stuck), world, hub, f"run-{number}", state or None)
                world.keep_growing(rng, *((1, 6) if made.size > 1000 else (20, 500)))
                outputs.append(_killed(run, rng, told))
                world.stop_growing()
                state = dict(outputs[-1].state)
            run = Run(made, world, hub, "last", state or None)
            outputs.append(run.to_the_end())
            lost = missing(outputs, world.rows)
            assert not lost, f"lost: {lost}, gone on from {json.dumps(state)}"
        except AssertionError as error:
            said = run.stderr[-3000:] if run is not None else ""
            told.failure = f"seed {seed}: {error}\n{made}\n{own}\n{said}"
    told.rows = sum(len(rows) for output in outputs for rows in output.rows.values())
    told.twice = told.rows - sum(len(set().union(*(output.rows[place] for output in outputs))) for place in made.places)
    told.states = sum(output.states for output in outputs)
    if not told.failure:
        shutil.rmtree(own)
    return told


def _killed(run: Run, rng: random.Random, told: Killed) -> Output:
    """One run, killed: what had come through until then, or what a reader had taken of it that was killed as well."""
    world: World = run.world
    world.stuck.clear()
    with run.process() as process:
        reader = reading(process, run.plan, fast=True)
        when = rng.random()
        if when > 0.15:  # else perhaps before the first byte
            assert while_alive(process, reader.begun.is_set), f"nothing has come, exit code {process.returncode}"
        if when > 0.6:
            world.stuck.wait(1.0)
        time.sleep(rng.choice([0.02, 0.2, 0.6]) * rng.random())
        assert process.poll() is None, f"it ended by itself with {process.returncode}"
        said = run.stderr
        process.kill()
        ended(process, reader, PATIENCE_SECONDS)
        got = bytes(reader.got)
    told.kills += 1
    told.inside += said.count("BEGIN") > said.count("FINALLY")
    assert "Traceback" not in said, "a traceback"
    assert "tried again" not in said, "a stream has failed"
    if rng.random() < 0.3:
        got = got[: rng.randrange(len(got) + 1)]
        told.cut += 1
    else:
        told.torn += not got.endswith(b"\n") and bool(got)
    run.keep(got)
    output = Output(got, run.plan, run.state, torn=True)
    output.check_order()
    return output
