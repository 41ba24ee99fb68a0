"""How fast burler is beside itself at an older commit: which rows have lost.

    make bench BEFORE=<commit>                         all rows
    make bench BEFORE=<commit> ARGS="--row pages"      some of them
    python tests/bench/before.py <commit> --quick      a look

Both run the present programs on the same data, in turns, each in an environment of its own in ``.venv-bench``. A row
has lost if its median is under 0.97 of the older one's in two series; where the figures of a series lie over 5 % apart,
if the mean of both medians is under 0.95. A second series is run for rows that the first one puts in doubt.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import environments
import growth
import startup
from cases import RATES, ROWS, Case
from measure import Bench, Figures, progress

LEAST, LEAST_MEAN, STEADY = 0.97, 0.95, 0.05
STARTS = {
    "import": "import burler",
    "help": "burler --help",
    "empty": "run of an empty stream",
    "discover": "discover 200 x 50, burler",
}
START_RUNS = 4
"""A process of a tenth of a second is measured so many times in a round."""


@dataclass(frozen=True)
class Row:
    """One thing that is measured: seconds (of CPU; of a start, of wall time), now or before."""

    name: str
    seconds: Callable[[bool], float]


@dataclass(frozen=True)
class Series:
    """Rounds of a row, each with the seconds before and now.

    Attributes:
        ratio: how many times as fast as before; the medians' ratio.
        spread: how far apart the figures lie, as a part of their median: the quarter of them at either end left out.
    """

    ratio: float
    spread: float


def main(args: Sequence[str] | None = None) -> int:
    """Measure and print; 1 if a row has lost."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("commit", help="any name that git knows it by")
    parser.add_argument("--row", nargs="+", metavar="NAME", help="rows to measure")
    parser.add_argument("--rows", type=int, help=f"records of each row ({ROWS:,})")
    parser.add_argument("--runs", type=int, help="rounds of a series (5)")
    parser.add_argument("--quick", action="store_true", help="20,000 records and 3 rounds, unless said otherwise")
    given = parser.parse_args(args)
    base, rounds = given.rows or (ROWS // 10 if given.quick else ROWS), given.runs or (3 if given.quick else 5)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        bench = Bench(Path(folder), peers=False)
        python = environments.python_of_commit(given.commit)
        bench.use(environments.BEFORE, python)
        bench.use(environments.NOW, environments.python_now())
        rows = [row for row in _rows(bench, python, base) if not given.row or row.name in given.row]
        if unknown := set(given.row or ()) - {row.name for row in rows}:
            parser.error(f"no such row: {', '.join(sorted(unknown))}")
        lost = _compare(rows, rounds)
    return 1 if lost else 0


def _rows(bench: Bench, python: str, base: int) -> list[Row]:
    found = [Row(row.name, _cpu_seconds(bench, row.case, row.case.rows(base))) for row in RATES]
    for many in growth.GROWTH:
        things = max(2, base // 4 // many.rows_each)
        found.append(Row(many.name, _cpu_seconds(bench, many.case, things)))
    for name, command in STARTS.items():
        found.append(Row(name, _wall_seconds(python, command)))
    return found


def _cpu_seconds(bench: Bench, case: Case, rows: int) -> Callable[[bool], float]:
    both = {
        is_before: replace(case, program=replace(case.program, environment=environment))
        for is_before, environment in ((True, environments.BEFORE), (False, environments.NOW))
    }

    def seconds(is_before: bool) -> float:
        figures: Figures = bench.run(both[is_before], rows)
        return figures.cpu

    return seconds


def _wall_seconds(python: str, command: str) -> Callable[[bool], float]:
    pythons = {True: python, False: environments.python_now()}
    commands = {is_before: startup.commands(None, one)[command] for is_before, one in pythons.items()}
    return lambda is_before: min(startup.seconds(commands[is_before]) for _run in range(START_RUNS))


def _compare(rows: list[Row], rounds: int) -> list[str]:
    """Print a line for each row; gives the rows that have lost."""
    lost = []
    print(f"{'row':<28} {'now/before':>10} {'spread':>8}   verdict", flush=True)
    first = _series(rows, rounds)
    doubtful = [row for row in rows if first[row.name].ratio < LEAST]
    second = _series(doubtful, rounds)
    for row in rows:
        one, two = first[row.name], second.get(row.name)
        verdict_ = verdict(one, two)
        if verdict_ == "LOST":
            lost.append(row.name)
        for series in (one,) if two is None else (one, two):
            shown = verdict_ if series is (two or one) else "again"
            print(f"{row.name:<28} {series.ratio:>10.3f} {series.spread:>8.1%}   {shown}", flush=True)
    return lost


def verdict(one: Series, two: Series | None) -> str:
    """Whether a row has lost; the second series is None if the first one has put it in no doubt."""
    if two is None:
        return "held"
    if max(one.spread, two.spread) > STEADY:
        return "LOST" if (one.ratio + two.ratio) / 2 < LEAST_MEAN else "held (unsteady)"
    return "LOST" if max(one.ratio, two.ratio) < LEAST else "held"


def _series(rows: list[Row], rounds: int) -> dict[str, Series]:
    """All rows in turns, round by round; which of the two comes first changes with each round."""
    taken: dict[str, dict[bool, list[float]]] = {row.name: {True: [], False: []} for row in rows}
    for number in range(rounds):
        for row in rows:
            progress(f"round {number + 1} of {rounds}: {row.name}")
            for is_before in (True, False) if number % 2 else (False, True):
                taken[row.name][is_before].append(row.seconds(is_before))
    progress("")
    return {name: _summary(seconds) for name, seconds in taken.items()}


def _summary(seconds: dict[bool, list[float]]) -> Series:
    before, now = (statistics.median(seconds[which]) for which in (True, False))
    spread = max(_spread(some) for some in seconds.values())
    return Series(before / max(now, 1e-6), spread)


def _spread(some: list[float]) -> float:
    least, _middle, greatest = statistics.quantiles(some, n=4, method="inclusive") if len(some) > 1 else (some * 3)
    return (greatest - least) / max(statistics.median(some), 1e-6)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (environments.NotInstalled, subprocess.CalledProcessError) as error:
        sys.exit(str(error))
