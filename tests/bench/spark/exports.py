"""A warm session: burler's export beside the same work by hand, by DuckDB and by Polars; and 1 % of new rows."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import jobs
import lakes
import same
from figures import Bar, Found
from taking import Clock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

BURLER, INCREMENT = "burler export", "burler export, 1 % new rows"
PARTS = {"std": "latest row of each key", "log": "every row"}
WARM_UP_ROWS, MOST_WARM_UP_ROUNDS = 6_000_000, 6
"""Rounds that don't count, until each candidate has read so many rows: Java's compilers are at it for that long. Round
by round, Spark by hand is at its level after 2 rounds of a million rows, the longer plan of an export after 6."""
FULL_BAR = 1.1  # times the best hand-written Spark job
INCREMENT_BARS = {"std": 0.3, "log": 0.1}  # times the full export


def measure(
    spark: SparkSession, folder: Path, lake_folder: Path, sizes: Sequence[int], rounds: int, streams: Sequence[str]
) -> Found:
    """All sizes and streams; the candidates take turns, after some rounds of each that do not count.

    Raises:
        same.Differ: the tables that came out don't hold the same rows.
    """
    found = Found()
    if find_spec("polars") is None:
        found.left_out.append("Polars: it is not installed")
    threads = len(os.sched_getaffinity(0))
    for stream in streams:
        for rows in sizes:
            _measure_one(found, _Work(spark, folder, lakes.made(lake_folder, stream, rows), threads), rounds)
    return found


class _Work:
    """One lake, and the folders that its candidates write to."""

    def __init__(self, spark: SparkSession, folder: Path, given: lakes.Lakes, threads: int) -> None:
        self.spark = spark
        self.lakes = given
        self.folder = folder / f"{given.stream}-{given.rows}"
        self.table = str(self.folder / "burler" / lakes.TAP / given.stream)
        self.jobs = jobs.candidates(spark, keyed=given.stream == "std", threads=threads)
        self._link = self.folder / "lake"

    def out(self, candidate: str) -> Path:
        """Where the Parquet of one that is not burler goes."""
        return self.folder / "".join(letter if letter.isalnum() else "-" for letter in candidate)

    def show(self, lake: Path) -> None:
        """Let the lake that burler reads be that one: the same lake, before its last commit and after it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._link.unlink(missing_ok=True)
        self._link.symlink_to(lake.absolute())

    def export(self) -> None:
        """burler's export of the lake that is shown."""
        from burler.spark import export

        export(self.spark, str(self._link), str(self.folder / "burler"))

    def marks(self) -> dict[str, same.Mark]:
        """What each candidate's table holds."""
        found = {BURLER: same.mark(same.delta_files(self.table), "_sdc_extracted_at")}
        for name in self.jobs:
            found[name] = same.mark(same.parquet_files(self.out(name)))
        return found


def _measure_one(found: Found, work: _Work, rounds: int) -> None:
    part, given = PARTS[work.lakes.stream], work.lakes
    files = lakes.data_files(given.base)
    todo = {BURLER: work.export} | {
        name: lambda name=name, job=job: job(files, str(work.out(name))) for name, job in work.jobs.items()
    }
    warm_up_rounds = min(MOST_WARM_UP_ROUNDS, -(-WARM_UP_ROWS // given.rows))
    for round_ in range(warm_up_rounds + rounds):
        shutil.rmtree(work.folder, ignore_errors=True)
        work.show(given.base)
        names, took = list(todo), {}
        for name in names[round_ % len(names) :] + names[: round_ % len(names)]:  # each comes first in its turn
            with Clock() as clock:
                todo[name]()
            took[name] = clock.took
        if not round_:
            same.check(work.marks(), _rows(given.stream, given.rows, 0))
        work.show(given.more)
        with Clock() as clock:
            work.export()
        took[INCREMENT] = clock.took
        if not round_:
            _check_increment(work)
            found.checked.append(f"{part}, {given.rows:,} rows: {len(work.jobs) + 1} tables, and after 1 % more")
        if round_ < warm_up_rounds:
            continue
        for name, one in took.items():
            found.add(part, given.rows, name, one)
    _judge(found, part, work)
    shutil.rmtree(work.folder, ignore_errors=True)


def _check_increment(work: _Work) -> None:
    """The table after the 1 % is what DuckDB makes of the whole lake."""
    given = work.lakes
    out = work.folder / "more"
    jobs.duckdb(lakes.data_files(given.more), str(out), keyed=given.stream == "std", threads=2)
    marks = {
        INCREMENT: same.mark(same.delta_files(work.table), "_sdc_extracted_at"),
        "DuckDB": same.mark(same.parquet_files(out)),
    }
    same.check(marks, _rows(given.stream, given.rows, given.added))


def _rows(stream: str, rows: int, added: int) -> int:
    """How many rows the table has. Of the keyed stream: its keys, and every second row that was added."""
    if stream == "log":
        return rows + added
    return max(1, rows * 5 // 6) + added // 2


def _judge(found: Found, part: str, work: _Work) -> None:
    rows, stream = work.lakes.rows, work.lakes.stream
    by_hand = [name for name in work.jobs if name.startswith("Spark")]
    best = min(by_hand, key=lambda name: found.wall(part, rows, name))
    full = found.wall(part, rows, BURLER)
    said = f"{part}, {rows:,} rows"
    found.bars += [
        Bar(f"{said}: burler's wall seconds x {best}", full / found.wall(part, rows, best), FULL_BAR),
        Bar(
            f"{said}: 1 % new rows x the full export",
            found.wall(part, rows, INCREMENT) / full,
            INCREMENT_BARS[stream],
        ),
    ]
    cpu = found.cpu(part, rows, BURLER) / min(found.cpu(part, rows, name) for name in by_hand)
    found.bars.append(Bar(f"{said}: burler's CPU seconds x the least by hand (told, not asked for)", cpu, FULL_BAR))
