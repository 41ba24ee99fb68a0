"""A storm of signals over tail runs: each stopped, hung up or killed at a random moment, each gone on with.

    python tests/runtime/tail_storm.py 1080             so many runs with SIGTERM, SIGINT or SIGHUP
    python tests/runtime/tail_storm.py --kill 200       so many stories of SIGKILL
    python tests/runtime/tail_storm.py --peer 32        the same storm over the Singer SDK's handler, side by side
    python tests/runtime/tail_storm.py --seed 17        one run, again

What the runs are like stands in ``tail_storm_plan``; 360 seeds in a row have every combination once. What must hold:

- SIGTERM, SIGINT, and a reader that is fast or slow (1 MB/s): no torn line, the last STATE covers exactly the rows that
  are out (sorted streams), exit code 0, at the latest after a second and the time that the reader takes for what is on
  its way (two seconds more where functions are blocked in threads).
- A reader that has stopped: the process ends within 11 seconds, with 143 or 130; only its very last line may be torn.
- SIGHUP: the run goes on with a new client; SIGTERM ends it as above.
- A run that goes on from the last STATE that came through brings all that is missing, always.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Any

import tail_storm_tables as tables
from tail_storm_kill import Killed, kill
from tail_storm_peer import side_by_side
from tail_storm_run import Told, run
from tail_storm_world import Hub


def storm(
    seeds: Iterable[int],
    folder: Path,
    one: Callable[[int, Hub, Path], Any] = run,
    *,
    workers: int = 4,
    tell: Callable[[Any], None] = lambda _told: None,
) -> list[Any]:
    """A run (``run``) or a story (``kill``) for each seed; how they went.

    Args:
        workers: so many at a time, each in a process of its own: a reader must not wait for others' interpreters.
        tell: called as each one ends.
    """
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=spawned, initializer=_open_hub) as pool:
        tasks = [pool.submit(_with_hub, one, seed, folder) for seed in seeds]
        for task in as_completed(tasks):
            tell(task.result())
        return [task.result() for task in tasks]


_HUBS: list[Hub] = []


def _open_hub() -> None:
    _HUBS.append(Hub().__enter__())  # it ends with its process


def _with_hub(one: Callable[[int, Hub, Path], Any], seed: int, folder: Path) -> Any:
    return one(seed, _HUBS[-1], folder)


def _tell(told: Told | Killed) -> None:
    if told.failure:
        print(told.failure, "\n", flush=True)


def _again(told: Told, folder: Path, one: Callable[[int, Hub, Path], Any]) -> Told:
    """A run that was late once more, alone: six at a time may take each other's time."""
    shutil.rmtree(folder / f"seed-{told.plan.seed}")
    [alone] = storm([told.plan.seed], folder, one, workers=1)
    print(f"seed {told.plan.seed}: again, alone: {alone.failure.splitlines()[0] if alone.failure else 'in time'}\n")
    return alone


def main(args: list[str] | None = None) -> int:
    """The storm from the command line; the exit code is 1 if a run was not clean."""
    parser = argparse.ArgumentParser(description="A storm of signals over tail runs.")
    parser.add_argument("runs", nargs="?", type=int, default=1080)
    parser.add_argument("first", nargs="?", type=int, default=0, help="the first seed")
    parser.add_argument("--kill", action="store_true", help="SIGKILL, several times in a row")
    parser.add_argument("--peer", action="store_true", help="the Singer SDK's handler, side by side")
    parser.add_argument("--seed", type=int, nargs="+", help="these runs, again")
    parser.add_argument("--workers", type=int, default=6, help="runs at a time")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long a run may take to stop")
    said = parser.parse_args(args)
    seeds = said.seed or range(said.first, said.first + said.runs)
    begun = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="tail-storm-"))
    if said.peer:
        print(side_by_side(seeds, folder, workers=said.workers))
        shutil.rmtree(folder)
        return 0
    one = kill if said.kill else partial(run, limit_seconds=said.seconds)
    found = storm(seeds, folder, one, workers=said.workers, tell=_tell)
    if not said.kill:
        found = [_again(told, folder, one) if told.late else told for told in found]
    print(tables.killed(found) if said.kill else tables.stopped(found))
    failed = [told.plan.seed for told in found if told.failure]
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"{len(found)} runs, {time.monotonic() - begun:.0f} s (load {load}), {len(failed)} failed {failed or ''}")
    if not failed:
        shutil.rmtree(folder)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
