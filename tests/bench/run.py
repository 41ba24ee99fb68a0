"""How fast burler is, measured: a benchmark anyone can run, not a test.

    make bench                                       everything, beside other programs; some twenty minutes
    python tests/bench/run.py --quick --no-peers     a minute or two, against the floor alone
    python tests/bench/run.py --row pages keyed      some rows of the table
    python tests/bench/run.py --profile pages        where the time of a row goes, by function
    python tests/bench/run.py --write-docs           the tables and the picture of docs/performance.md
    python tests/bench/run.py --lake-plan [FILES]    which files of a lake to open: by manifest, and by listing a store

Before anything is timed, burler's output is compared with the reference; a difference is an error (exit code 1).
"""

from __future__ import annotations

import argparse
import pstats
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import batch_checks
import checks
import drawing
import growth
import growth_checks
import growth_report
import growth_run
import lake_checks
import report
import startup
from cases import MEMORY, NAMES, RATES, ROWS, SDK, STARTS, Case, MemoryRow, RateRow
from environments import NotInstalled
from measure import Bench, Failed, Figures, Summary, progress
from results import Results

DOCS = Path(__file__).resolve().parents[2] / "docs"
START_RUNS = 9
PLAN_FILES, PLAN_ROUNDS = 100_000, 3
ALL_NAMES = (*NAMES, *growth.NAMES)
PROFILED = {row.name: row.case for row in RATES} | {row.name: row.case for row in growth.GROWTH}
CHECKS = {
    **dict.fromkeys(growth_checks.CHECKED, growth_checks.check),
    **dict.fromkeys(batch_checks.CHECKED, batch_checks.check),
    **dict.fromkeys(lake_checks.CHECKED, lake_checks.check),
    **dict.fromkeys(lake_checks.READ, lake_checks.check_reading),
}
AnyRow = TypeVar("AnyRow", RateRow, MemoryRow)


def main(args: list[str] | None = None) -> int:
    """Measure and print; gives the exit code."""
    given = _arguments(args)
    if given.lake_plan:
        import lake_plan_bench

        return lake_plan_bench.main(["--files", str(given.lake_plan), "--rounds", str(min(given.runs, PLAN_ROUNDS))])
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        bench = Bench(Path(folder), peers=given.peers)
        if given.profile:
            return _profile(bench, given.profile, given.rows)
        run = Run(bench, base=given.rows, runs=given.runs, wanted=given.row or ALL_NAMES)
        run.measure()
        text = report.markdown(
            run.results,
            bench,
            rates=run.rates,
            more=run.more(),
            memory=run.memory,
            starts=run.starts,
            said=run.said(),
        )
    progress("")
    print(text)
    if given.write_docs and not run.results.problems:
        report.into_docs(DOCS / "performance.md", text)
        if compared := report.comparison(run.results):
            report.into_docs(DOCS / "comparison.md", compared)
        (DOCS / "performance.svg").write_text(drawing.svg(run.results, run.rates), encoding="utf-8")
    return 1 if run.results.problems else 0


def _arguments(args: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--row", nargs="+", choices=ALL_NAMES, metavar="NAME", help=f"rows to measure: {', '.join(ALL_NAMES)}"
    )
    parser.add_argument("--rows", type=_above_0, help=f"records of each case ({ROWS:,}); slow programs get fewer")
    parser.add_argument("--runs", type=_above_0, help="rounds, of which medians are taken (5)")
    parser.add_argument("--quick", action="store_true", help="20,000 records and 3 rounds, unless said otherwise")
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="burler and the floor alone")
    parser.add_argument("--write-docs", action="store_true", help="write docs/performance.md and .svg")
    parser.add_argument(
        "--lake-plan",
        nargs="?",
        type=_above_0,
        const=PLAN_FILES,
        metavar="FILES",
        help=f"plans for a lake of so many files ({PLAN_FILES:,}), and nothing else; needs moto",
    )
    parser.add_argument("--profile", choices=PROFILED, help="profile burler in a row, by function")
    given = parser.parse_args(args)
    given.rows = given.rows or (ROWS // 10 if given.quick else ROWS)
    given.runs = given.runs or (3 if given.quick else 5)
    return given


def _above_0(text: str) -> int:
    number = int(text.replace("_", "").replace(",", ""))
    if number < 1:
        raise argparse.ArgumentTypeError("a whole number above 0")
    return number


class Run:
    """The rows that are wanted, measured: the candidates of all of them interleaved, round by round."""

    def __init__(self, bench: Bench, *, base: int, runs: int, wanted: Sequence[str]) -> None:
        self.bench = bench
        self.base = base
        self.runs = runs
        self.rates = [row for row in RATES if row.name in wanted]
        self.memory = [row for row in MEMORY if row.name in wanted]
        self.starts = [row for row in STARTS if row.name in wanted]
        self.growth = [row for row in growth.GROWTH if row.name in wanted]
        self.workers = [row for row in growth.WORKERS if row.name in wanted]
        self.results = Results(scale=base / ROWS)

    def said(self) -> str:
        """How it was measured, for the head of the report."""
        return f"{self.base:,} rows where nothing else is said, medians of {self.runs} rounds, interleaved."

    def more(self) -> list[str]:
        """Tables of rows about a lot of something."""
        tables = growth_report.growth_tables(self.results, self.growth) if self.growth else []
        return tables + [growth_report.workers_table(self.results, row) for row in self.workers]

    def measure(self) -> None:
        """All of it: first the outputs are compared, then the clock starts."""
        if not self.bench.peers:
            self._note("other programs are left out (--no-peers)")
        self.rates = self._able(self.rates)
        self.memory = self._able(self.memory)
        self._check()
        self._measure_rates()
        growth_run.measure_growth(self, self.growth)
        growth_run.measure_workers(self, self.workers)
        self._measure_memory()
        self._measure_starts()

    def _able(self, rows: list[AnyRow]) -> list[AnyRow]:
        """Without the rows that need a package which is not there."""
        found = []
        for row in rows:
            if row.needs is not None and not _installed(row.needs):
                self._note(f"row '{row.name}' is left out: {row.needs} is not installed")
            else:
                found.append(row)
        return found

    def _note(self, text: str) -> None:
        if text not in self.results.notes:
            self.results.notes.append(text)

    def _check(self) -> None:
        cases = (row.case for rows in (self.rates, self.memory) for row in rows)
        for case in dict.fromkeys(cases):
            self.check(case)
        growth_run.check(self, self.growth, self.workers)

    def check(self, case: Case) -> None:
        """Compare what a case writes with the reference; a difference is a problem."""
        try:
            self.results.checked[case] = CHECKS.get(case.kind, checks.check)(self.bench, case)
        except (checks.Wrong, Failed) as error:
            self.results.problems[case.label] = str(error)
        except (ValueError, LookupError) as error:
            self.results.problems[case.label] = f"its output can't be read: {error!r:.200}"

    def _measure_rates(self) -> None:
        cases = self.ready(case for row in self.rates for case in row.cases)
        taken: dict[Case, list[Figures]] = {case: [] for case in cases}
        for round_ in range(self.runs):
            for number, case in enumerate(cases):
                progress(f"round {round_ + 1} of {self.runs}: {number + 1} of {len(cases)}, {case.label}")
                self.attempt(case, partial(self._take, taken, case))
        for case, figures in taken.items():
            if len(figures) == self.runs:
                self.results.rates[case] = Summary(case, case.rows(self.base), tuple(figures))

    def _take(self, taken: dict[Case, list[Figures]], case: Case) -> None:
        taken[case].append(self.bench.run(case, case.rows(self.base)))

    def _measure_memory(self) -> None:
        for row in self.memory:
            few, many = self.results.few(row), self.results.many(row)
            share = self.results.scale
            peers = [(case, max(2 * few, round(rows * share))) for case, rows in row.peers]
            for case, rows in ((row.case, few), (row.case, many), *((c, n) for c, most in peers for n in (few, most))):
                if (case, rows) not in self.results.memory and self.ready([case]):
                    progress(f"memory: {case.label}, {rows:,} rows")
                    self.attempt(case, partial(self._remember, case, rows))

    def _remember(self, case: Case, rows: int) -> None:
        self.results.memory[case, rows] = Summary(case, rows, (self.bench.run(case, rows),))

    def _measure_starts(self) -> None:
        wanted = dict.fromkeys(name for row in self.starts for name in row.commands)
        if not wanted:
            return
        sdk = None
        if any(row.over for row in self.starts):
            try:
                sdk = self.bench.python(SDK)
            except NotInstalled as error:
                if self.bench.peers:
                    self._note(f"{SDK.environment} is left out: {error}")
        commands = {name: command for name, command in startup.commands(sdk).items() if name in wanted}
        taken: dict[str, list[float]] = {name: [] for name in commands}
        # The first run of each is not counted: it writes the bytecode that all users but the first one have.
        for round_ in range((START_RUNS if self.runs >= 5 else self.runs) + 1):
            for name in list(taken):
                progress(f"start-up, round {round_}: {name}")
                try:
                    spent = startup.seconds(commands[name])
                except subprocess.CalledProcessError as error:
                    self.results.problems[name] = f"exit code {error.returncode}"
                    del taken[name]
                    continue
                if round_:
                    taken[name].append(spent)
        self.results.starts = taken

    def ready(self, cases: Iterable[Case]) -> list[Case]:
        """The cases that can be run: nothing wrong was found in them, and the peer is installed."""
        found = []
        for case in dict.fromkeys(cases):
            if case.label in self.results.problems:
                continue
            if self.attempt(case, partial(self.bench.learn, case)):
                found.append(case)
        return found

    def attempt(self, case: Case, action: Callable[[], object]) -> bool:
        """Do something; an error of burler's or the floor's is a problem, one of a peer's a note."""
        try:
            action()
        except NotInstalled as error:
            if self.bench.peers:
                self._note(f"{case.program.environment} is left out: {error}")
            return False
        except Failed as error:
            if case.program.environment is None:
                self.results.problems[case.label] = str(error)
            else:
                self._note(f"{case.label}: {error}")
            return False
        return True


def _installed(package: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(package) is not None


def _profile(bench: Bench, name: str, rows: int) -> int:
    """Where the time of burler's side of a row goes. cProfile costs most where there are many small Python calls, so
    shares are a hint; C functions have lines of their own."""
    case = PROFILED[name]
    try:
        figures = bench.profile(case, rows)
    except Failed as error:
        print(f"{case.label}: {error}", file=sys.stderr)
        return 1
    stats = pstats.Stats(str(figures))
    stats.strip_dirs().sort_stats("tottime").print_stats(30)
    return 0


if __name__ == "__main__":
    sys.exit(main())
