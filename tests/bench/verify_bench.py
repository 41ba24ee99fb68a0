"""What `burler verify -` costs beside the `burler run` that wrote the messages: `python tests/bench/verify_bench.py`

CPU seconds (user and system) of each process, less those of the same on no rows; medians of interleaved rounds; and the
greatest memory of the process. The bar is 3 times the run.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

PROGRAMS = Path(__file__).parent / "programs"
BAR = 3.0
TAP = """
import os, sys
sys.path.insert(0, {programs!r})
import burler, standard

tap = burler.tap("tap-std")
options = {{}}
if os.environ["KEYED"]:
    options = {{"replication_key": "ts", "bookmark_strategy": "every_n(1000)", "order": "asc"}}

@tap.sync("std", key_properties="id", schema=standard.SCHEMA, **options)
def std():
    yield from standard.pages(int(os.environ["ROWS"]))
"""


class Cost(NamedTuple):
    """CPU seconds, and megabytes at the most."""

    seconds: float
    megabytes: float


def measured(words: list[str], folder: Path, *, given: Path | None = None, out: Path, **environment: str) -> Cost:
    """What a command costs. A small process starts it: Linux counts the pages of the one that starts another as its."""
    program = (
        "import resource, subprocess, sys, json\n"
        "given, out, *words = sys.argv[1:]\n"
        "done = subprocess.run(words, stdin=open(given or '/dev/null'), stdout=open(out, 'wb'))\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(json.dumps([done.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss]))\n"
    )
    command = [sys.executable, "-S", "-c", program, str(given or ""), str(out), *words]
    said = {**os.environ, "BURLER_LOG_LEVEL": "WARNING", **environment}
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, env=said)
    code, seconds, kilobytes = json.loads(done.stdout)
    assert code == 0, done.stderr
    return Cost(seconds, kilobytes / 1024)


def compare(rows: int, rounds: int, *, keyed: bool) -> tuple[Cost, Cost]:
    """(the run, the verification), both less what they cost on no rows; memory whole."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "std_tap.py").write_text(TAP.format(programs=str(PROGRAMS)))
        burler = [sys.executable, "-m", "burler"]
        costs: dict[tuple[str, int], list[Cost]] = {}
        for _ in range(rounds):
            for count in (0, rows):
                lines = folder / f"{count}.jsonl"
                environment = {"ROWS": str(count), "KEYED": "1" if keyed else ""}
                ran = measured([*burler, "run", "std_tap.py"], folder, out=lines, **environment)
                words = [*burler, "verify", "-", "--format", "json"]
                looked = measured(words, folder, given=lines, out=folder / "found.json")
                assert json.loads((folder / "found.json").read_text())["counts"]["error"] == 0
                costs.setdefault(("run", count), []).append(ran)
                costs.setdefault(("verify", count), []).append(looked)
    return _less(costs["run", rows], costs["run", 0]), _less(costs["verify", rows], costs["verify", 0])


def _less(of_rows: list[Cost], of_none: list[Cost]) -> Cost:
    seconds = statistics.median(one.seconds for one in of_rows) - statistics.median(one.seconds for one in of_none)
    return Cost(seconds, max(one.megabytes for one in of_rows))


def main() -> int:
    """Exit code 1 if the bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    flags = parser.parse_args()
    missed = False
    for keyed in (False, True):
        ran, looked = compare(flags.rows, flags.rounds, keyed=keyed)
        ratio = looked.seconds / ran.seconds
        missed |= ratio > BAR
        method = "INCREMENTAL" if keyed else "FULL_TABLE"
        seconds = f"run {ran.seconds:.2f} s, verify {looked.seconds:.2f} s, {ratio:.2f} x (bar {BAR:g})"
        memory = f"memory {ran.megabytes:.0f} and {looked.megabytes:.0f} MB"
        print(f"{method}: {flags.rows:,} rows: {seconds}; {memory}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
