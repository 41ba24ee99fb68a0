"""How fast burler's Spark half is, measured beside what people write without it.

    python tests/bench/spark/spark_bench.py                           # everything; an hour, 5 GB of disk
    python tests/bench/spark/spark_bench.py --rows 100000 1000000 --rounds 3
    python tests/bench/spark/spark_bench.py --only source waiting     # some parts

    warm      a warm session: full export and 1 % new rows, beside Spark by hand, DuckDB and Polars on the same gz files
    command   ``burler export`` from the start of its process, beside a default PySpark script; Java 17 and Java 25
    source    ``format("burler")`` from pages of dicts, beside a bare DataSource; read functions, and through Spark
    waiting   8 partitions that wait 1 s each, on 8 slots
    extract   ``burler extract`` of a source that waits, at 1, 4 and 16 slots
    memory    of an export, few rows and many

Candidates take turns, round after round, and medians are compared; the tables that they write are held against each
other before anything is timed, and a difference is an error. Seconds are of the wall and of the CPUs, of all processes
together. Needs the extras spark and test; without Polars that is left out. Lakes are made once and kept in ``--lakes``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

import commands
import datasource
import exports
import memory
import slots
from figures import Found
from same import Differ
from taking import Failed

PARTS = ("warm", "command", "source", "waiting", "extract", "memory")
SIZES = (100_000, 1_000_000, 10_000_000)


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; 1 if something failed or tables differ, else 0: a bar that is missed is no error."""
    given = _arguments(arguments)
    found = Found()
    code = 0
    lakes = Path(given.lakes).absolute()
    lakes.mkdir(parents=True, exist_ok=True)
    os.environ |= datasource.environment(_source_rows(given))  # one JVM serves all parts, and its workers inherit it
    with tempfile.TemporaryDirectory(prefix="spark-bench-", dir=given.work) as folder:
        for part in given.only:
            try:
                found.take(_measure(part, Path(folder), lakes, given))
            except (Failed, Differ) as error:
                print(f"error: {part}: {error}", file=sys.stderr)
                code = 1
            shutil.rmtree(Path(folder) / part, ignore_errors=True)
    print(f"{os.cpu_count()} cores, medians of {given.rounds} rounds\n")
    print(found.markdown())
    if given.json is not None:
        found.write(given.json)
    return code


def _measure(part: str, folder: Path, lakes: Path, given: argparse.Namespace) -> Found:
    """One part. Each that needs a session has its own, so that none pays for what another left behind."""
    sizes, rounds, own = sorted(given.rows), given.rounds, folder / part
    if part == "command":
        return commands.measure(own, lakes, [rows for rows in sizes if rows <= 1_000_000] or sizes[:1], rounds)
    if part == "extract":
        return slots.measure(rounds)
    if part == "memory":
        return memory.measure(own, lakes, sizes)
    if part == "warm":
        session = _session(f"local[{len(os.sched_getaffinity(0))}]")
        try:
            return exports.measure(session, own, lakes, sizes, rounds, tuple(exports.PARTS))
        finally:
            session.stop()
    rows = _source_rows(given)
    session = _session("local[8]" if part == "waiting" else f"local[{datasource.PARTS}]")
    try:
        if part == "waiting":
            return datasource.waiting(session, rounds)
        found = datasource.read_functions(rows, rounds)
        found.take(datasource.through_spark(session, rows, rounds))
        return found
    finally:
        session.stop()


def _source_rows(given: argparse.Namespace) -> int:
    return min(max(given.rows), 1_000_000)


def _session(master: str) -> object:
    from burler import spark

    return spark.session("burler bench", master=master)


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=_thousands, nargs="+", default=list(SIZES), metavar="N", help="of each lake")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--lakes", default=str(Path(tempfile.gettempdir()) / "burler-bench-lakes"), metavar="FOLDER")
    parser.add_argument("--work", metavar="FOLDER", help="where tables are written; a folder for temporary files")
    parser.add_argument("--json", type=Path, metavar="FILE", help="all figures")
    return parser.parse_args(arguments)


def _thousands(text: str) -> int:
    number = int(text.replace("_", "").replace(",", ""))
    if number < 1000 or number % 1000:
        raise argparse.ArgumentTypeError("whole thousands of rows")
    return number


if __name__ == "__main__":
    raise SystemExit(main())
