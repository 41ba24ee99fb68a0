"""A storm over batch files: taps of random kinds, killed, told to stop, cut off, without a disk, and gone on with.

    python tests/runtime/batch_storm.py 200 [first seed]
    python tests/runtime/batch_storm.py --seed 17         one story, again
    python tests/runtime/batch_storm.py --s3 50           files on an S3 server of this machine

What the stories are like stands in ``batch_storm_plan``. What must hold:

- No message names a file that is missing, short or torn: each is read whole by plain means, and each row compared with
  the source; at the moment its message comes, each file is there.
- No torn line, but behind a SIGKILL and in a pipe that nobody reads.
- A STATE covers only rows in files whose message came before it; ACTIVATE_VERSION comes behind all of its version.
- What came before the STATE that a story goes on from, and what came after, together hold every row of the source.
- Temporary files are left by SIGKILL alone, and are gone after the next run. Of final files without a message it leaves
  no more than were on their way.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from batch_storm_plan import ENDINGS, Plan, plan
from batch_storm_run import Told, story, summed
from batch_storm_store import s3_server


def storm(
    seeds: Iterable[int],
    folder: Path,
    *,
    make: Callable[[int], Plan] = plan,
    server: Any = None,
    workers: int = 2,
    tell: Callable[[Told], None] = lambda _told: None,
) -> list[Told]:
    """A story for each seed; how they went.

    Args:
        server: an S3 server, if files are to lie there.
        tell: called as each one ends.
    """

    def one(seed: int) -> Told:
        told = story(seed, folder, make=make, server=server)
        tell(told)
        return told

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(one, seeds))


def main(args: list[str] | None = None) -> int:
    """The storm from the command line; the exit code is 1 if a story was not clean."""
    parser = argparse.ArgumentParser(description="A storm over batch files.")
    parser.add_argument("stories", nargs="?", type=int, default=200)
    parser.add_argument("first", nargs="?", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, nargs="+", help="these stories, again")
    parser.add_argument("--workers", type=int, default=2, help="stories at a time")
    parser.add_argument("--endings", nargs="+", choices=ENDINGS, default=list(ENDINGS), help="runs end like this")
    parser.add_argument("--s3", action="store_true", help="files on an S3 server")
    said = parser.parse_args(args)
    seeds = said.seed or range(said.first, said.first + said.stories)
    begun = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="batch-storm-"))
    make = partial(plan, endings=tuple(said.endings))

    def tell(told: Told) -> None:
        if told.failure:
            print(told.failure, "\n", flush=True)

    with s3_server() if said.s3 else contextlib.nullcontext() as server:
        found = storm(seeds, folder, make=make, server=server, workers=said.workers, tell=tell)
    for what, count in summed(found).items():
        print(f"{count:9}  {what}")
    failed = [told.plan.seed for told in found if told.failure]
    print(f"{len(found)} stories, {time.monotonic() - begun:.0f} s, {len(failed)} failed {failed or ''}")
    if not failed:
        shutil.rmtree(folder)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
