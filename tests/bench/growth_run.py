"""Measures the rows of ``growth``: candidates of all of them take turns, round by round."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING

from growth import REPLY_SECONDS, GrowthRow, WorkersRow
from growth_checks import CHECKED
from measure import PROGRAMS, Bench, Failed, Figures, Summary, progress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cases import Case
    from run import Run

_QUICK_SECONDS = 0.002  # of a reply, where nothing is measured


@contextlib.contextmanager
def serving(bench: Bench, rows: int, seconds: float) -> Iterator[None]:
    """A source that replies after so many seconds; programs find its address in their environment.

    Raises:
        Failed: it does not start.
    """
    command = [sys.executable, str(PROGRAMS / "source.py"), str(rows), str(seconds)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as source:
        assert source.stdin is not None and source.stdout is not None
        try:
            address = source.stdout.readline().strip()
            if not address:
                raise Failed("the source over HTTP did not start")
            bench.environment["BENCH_SOURCE"] = address
            yield
        finally:
            bench.environment.pop("BENCH_SOURCE", None)
            source.stdin.close()  # which ends it


def check(run: Run, growth: list[GrowthRow], workers: list[WorkersRow]) -> None:
    """Compare what burler writes with what it should be; what is wrong is not measured."""
    for row in growth:
        run.check(row.case)
    for waiting in workers:
        try:
            with serving(run.bench, CHECKED["workers"], _QUICK_SECONDS):
                for _number, case in waiting.cases:
                    run.check(case)
        except Failed as error:
            run.results.problems[waiting.name] = str(error)


def measure_growth(run: Run, rows: list[GrowthRow]) -> None:
    """CPU, memory and STATE bytes with one thing, with few and with many."""
    results, ready = run.results, set(run.ready(case for row in rows for case in row.cases))
    todo = {
        (case, things): things * row.rows_each
        for row in rows
        for case in row.cases
        if case in ready
        for things in (1, *row.counts(case, results.scale))
    }
    taken: dict[tuple[Case, int], list[Figures]] = {key: [] for key in todo}
    for round_ in range(run.runs):
        for number, ((case, things), count) in enumerate(todo.items(), 1):
            progress(f"growth, round {round_ + 1}: {number} of {len(todo)}, {case.label}, {things:,}")
            run.attempt(case, partial(_take, taken[case, things], run.bench, case, count, count_states=True))
    for (case, things), figures in taken.items():
        if len(figures) == run.runs:
            results.growth[case, things] = Summary(case, todo[case, things], tuple(figures))


def _take(taken: list[Figures], bench: Bench, case: Case, count: int, *, count_states: bool) -> None:
    taken.append(bench.run(case, count, count_states=count_states))


def measure_workers(run: Run, rows: list[WorkersRow]) -> None:
    """Wall seconds with more and more workers."""
    for row in rows:
        if row.name in run.results.problems:
            continue
        try:
            _measure_workers(run, row)
        except Failed as error:
            run.results.problems[row.name] = str(error)


def _measure_workers(run: Run, row: WorkersRow) -> None:
    count = row.scaled_rows(run.results.scale)
    with serving(run.bench, CHECKED["workers"], _QUICK_SECONDS):
        cases = run.ready(case for _number, case in (*row.cases, *row.bare))
    taken: dict[Case, list[Figures]] = {case: [] for case in cases}
    with serving(run.bench, count, REPLY_SECONDS):
        for round_ in range(run.runs):
            for case in cases:
                progress(f"workers, round {round_ + 1}: {case.label}")
                run.attempt(case, partial(_take, taken[case], run.bench, case, count, count_states=False))
    for case, figures in taken.items():
        if len(figures) == run.runs:
            run.results.workers[case] = Summary(case, count, tuple(figures))
