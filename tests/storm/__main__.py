"""Storms from the command line.

    python -m storm run --runs 500            signals at random moments of plain runs
    python -m storm tail --kill --seconds 60  SIGKILL, several times in a row, over tails
    python -m storm lake --s3 --seconds 300   a lake on an S3 server of this machine
    python -m storm spark --only export       stories of one kind
    python -m storm batch --seed 24           one story again

PYTHONPATH is tests. Exit code 1: a story was not as it must be; its seed and how to tell it again are printed.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import shutil
import sys
import tempfile
import time
from itertools import count
from pathlib import Path
from typing import Any

from storm.harness import Told, storm, summed
from storm.worlds import FEW, KINDS, RUNS, Asked, world_of


def main(args: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m storm", description="Many random stories, and what must hold.")
    parser.add_argument("world", choices=KINDS)
    parser.add_argument("--runs", type=int, help="so many stories of each kind")
    parser.add_argument("--seconds", type=float, help="no story of a kind begins after so many")
    parser.add_argument("--seed", type=int, help="this story, again")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--s3", action="store_true", help="files on an S3 server (batch, lake)")
    parser.add_argument("--kill", action="store_true", help="SIGKILL, several times in a row (run, tail)")
    parser.add_argument(
        "--only", nargs="+", metavar="KIND", help="kinds of stories: " + "; ".join(map(", ".join, KINDS.values()))
    )
    parser.add_argument("--at-a-time", type=int, help="so many stories side by side")
    said = parser.parse_args(args)
    kinds = said.only or (["kill"] if said.kill else KINDS["spark"] if said.world == "spark" else KINDS[said.world][:1])
    if strange := set(kinds) - set(KINDS[said.world]):
        parser.error(f"{said.world} has no stories of {', '.join(strange)}; it has {', '.join(KINDS[said.world])}")
    if said.s3 and said.world not in ("batch", "lake"):
        parser.error(f"{said.world} has no files on S3")
    failed = 0
    with contextlib.ExitStack() as stack:
        endpoint = None
        if said.s3:
            from storm.places import s3_endpoint

            endpoint = stack.enter_context(s3_endpoint())
        for kind in kinds:
            failed += _tell(Asked(said.world, kind, endpoint, said.seconds), said)
    return bool(failed)


def _tell(asked: Asked, said: Any) -> int:
    """All stories of a kind, and their sum; how many have failed."""
    make = functools.partial(world_of, asked)
    begun, folder = time.monotonic(), Path(tempfile.mkdtemp(prefix=f"storm-{asked.world}-"))
    runs = said.runs or FEW.get(asked.kind) or RUNS[asked.world]
    seeds: Any = count(said.first) if said.seconds and not said.runs else range(said.first, said.first + runs)
    seeds = seeds if said.seed is None else [said.seed]
    again = f"python -m storm {asked.world} --only {asked.kind}{' --s3' if asked.s3 else ''} --seed"

    def heard(told: Told) -> None:
        if told.failure:
            print(f"{told.failure}\nagain: {again} {told.seed}\n", flush=True)

    def tell(seeds: Any, at_a_time: int, seconds: float | None) -> list[Told]:
        return storm(make, seeds, folder, at_a_time=at_a_time, seconds=seconds, heard=heard)

    found = tell(seeds, said.at_a_time or make().at_a_time, said.seconds)
    for number, told in enumerate(found):
        if told.late:  # once more, alone: several at a time may take each other's time
            print(f"seed {told.seed} once more, alone", flush=True)
            found[number] = tell([told.seed], 1, None)[0]
    for what, number in summed(found).items():
        print(f"{number:9}  {what}")
    failed = sorted(told.seed for told in found if told.failure)
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    print(
        f"{asked.world}, {asked.kind}: {len(found)} stories, {time.monotonic() - begun:.0f} s (load {load}), "
        f"{len(failed)} finds {failed or ''}",
        flush=True,
    )
    if not failed:
        shutil.rmtree(folder)
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
