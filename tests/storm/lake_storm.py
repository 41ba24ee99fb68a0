"""A storm over a lake: several writers of the same streams, killed, paused for longer than locks live, told to stop.

    python tests/runtime/lake_storm.py --seconds 300
    python tests/runtime/lake_storm.py --seconds 300 --s3       the lake on an S3 server of this machine
    python tests/runtime/lake_storm.py --seconds 60 --seed 5    other chances (moments are never the same)

What must hold:

- Every row before a STATE that came out is in the lake, by its manifest: acknowledged, and not *lost*.
- A writer that was paused and taken for dead commits nothing when it wakes up: no *zombies*.
- Manifests, catalogue and ``singerlake.json`` are whole JSON at any moment; a manifest forgets no file.
- Whatever has happened, a new writer gets through, and no lock stays behind it.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lake_storm_checks import Verdict, Watch, judged
from lake_storm_slot import PARTS, Part, Slot
from lake_storm_store import Bucket, Folder, Place, s3_server

TTL_SECONDS = 0.8


def storm(
    folder: Path,
    *,
    seconds: float,
    seed: int = 0,
    server: Any = None,
    parts: Sequence[Part] = PARTS,
    ttl_seconds: float = TTL_SECONDS,
) -> Verdict:
    """Writers for so many seconds, then a last run of each; what came of it.

    Args:
        folder: an empty one.
        server: an S3 server, if the lake is to lie there.
    """
    place: Place = Folder(folder / "lake") if server is None else Bucket(server, f"storm/{seed}")
    slots = [
        Slot(part, url=place.url, ttl_seconds=ttl_seconds, variables=place.environment, folder=folder, seed=seed)
        for part in parts
    ]
    watch = Watch(place, sorted({stream for part in parts for stream in part.streams}))
    until = time.monotonic() + seconds
    threads = [threading.Thread(target=slot.go, args=(until,), daemon=True) for slot in slots]
    watch.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for slot in slots:
        slot.rest()
    watch.end()
    verdict = judged(place, [slot.ledger for slot in slots])
    verdict.figures["looks at JSON"] = watch.looks
    verdict.failures += watch.failures
    return verdict


def main(args: list[str] | None = None) -> int:
    """The storm from the command line; the exit code is 1 if something was not as it must be."""
    parser = argparse.ArgumentParser(description="A storm over a lake.")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ttl-seconds", type=float, default=TTL_SECONDS)
    parser.add_argument("--s3", action="store_true", help="the lake on an S3 server")
    said = parser.parse_args(args)
    folder = Path(tempfile.mkdtemp(prefix="lake-storm-"))
    begun = time.monotonic()
    with s3_server() if said.s3 else contextlib.nullcontext() as server:
        found = storm(folder, seconds=said.seconds, seed=said.seed, server=server, ttl_seconds=said.ttl_seconds)
    for what, count in sorted(found.figures.items()):
        print(f"{count:9}  {what}")
    for failure in found.failures:
        print(failure, "\n")
    print(f"{time.monotonic() - begun:.0f} s, {len(found.failures)} failures")
    if found.failures:
        print(f"what is left of it: {folder}")
    else:
        shutil.rmtree(folder)
    return bool(found.failures)


if __name__ == "__main__":
    sys.exit(main())
