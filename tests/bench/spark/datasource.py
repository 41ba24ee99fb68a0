"""``format("burler")`` from pages of dicts, beside a bare DataSource that checks nothing; and sources that wait.

Two measurements of the first. In one process without Spark, both read functions are asked for all their batches: CPU
seconds, as Spark's part in it is the same for both. And through a warm session, into Spark's ``noop``. Making the dicts
is part of both, as a tap does it; what it takes by itself is told, too.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from figures import Bar, Found
from same import Differ
from taking import Clock, Took

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

HERE = Path(__file__).resolve().parent
PROGRAMS = (HERE / "programs", HERE.parent / "programs")
READ, SPARK, WAITING = "DataSource, read functions", "DataSource, through Spark", "8 partitions that wait 1 s"
BURLER, BARE, DICTS = 'format("burler")', "bare DataSource", "making the dicts alone"
LEAST, MOST_SECONDS = 0.8, 1.6
PARTS = 2


def environment(rows: int) -> dict[str, str]:
    """What a session's workers have to be given: where the module is, and how many rows it makes."""
    return {
        "PYTHONPATH": os.pathsep.join([*map(str, PROGRAMS), os.environ.get("PYTHONPATH", "")]),
        "BENCH_ROWS": str(rows),
        "BENCH_PARTS": str(PARTS),
    }


def _batches(source: Any) -> Iterator[Any]:
    """All batches that a source's read function gives, as Spark would ask for them."""
    reader = source.reader(source.schema())
    for partition in reader.partitions():
        yield from reader.read(partition)


def _sources() -> dict[str, Callable[[], Any]]:
    import bench_pages

    from pyspark_burler import DefaultSource

    bare = bench_pages.bare_source()
    return {
        BURLER: lambda: DefaultSource({"app": "bench_pages:tap", "stream": "std"}),
        BARE: lambda: bare({}),
    }


def read_functions(rows: int, rounds: int) -> Found:
    """The first measurement.

    Raises:
        Differ: the two don't give the same rows.
    """
    found = Found()
    _set(rows)
    sources = _sources()
    _compare({name: list(_batches(source())) for name, source in sources.items()}, rows)
    found.checked.append(f"{READ}, {rows:,} rows: both give the same")
    for _ in range(rounds):
        for name, source in sources.items():
            cpu, wall = time.process_time(), time.perf_counter()
            count = sum(batch.num_rows for batch in _batches(source()))
            found.add(READ, rows, name, Took(time.perf_counter() - wall, time.process_time() - cpu))
            if count != rows:
                raise Differ(f"{name} gave {count:,} rows, not {rows:,}")
        cpu, wall = time.process_time(), time.perf_counter()
        _only_dicts()
        found.add(READ, rows, DICTS, Took(time.perf_counter() - wall, time.process_time() - cpu))
    ratio = found.cpu(READ, rows, BARE) / found.cpu(READ, rows, BURLER)
    found.bars.append(Bar(f"{rows:,} rows: rows per CPU second x {BARE}", ratio, LEAST, least=True))
    return found


def through_spark(spark: SparkSession, rows: int, rounds: int) -> Found:
    """The second. The session's workers were given ``environment(rows)``.

    Raises:
        Differ: the two don't give the same rows.
    """
    found = Found()
    _set(rows)
    import bench_pages

    spark.dataSource.register(bench_pages.bare_source())
    frames = {
        BURLER: spark.read.format("burler").option("app", "bench_pages:tap").option("stream", "std").load(),
        BARE: spark.read.format("bare").load(),
    }
    _compare({name: frame.toArrow().to_batches() for name, frame in frames.items()}, rows)
    found.checked.append(f"{SPARK}, {rows:,} rows: both give the same")
    for round_ in range(rounds + 1):
        for name, frame in frames.items():
            with Clock() as clock:
                frame.write.format("noop").mode("overwrite").save()
            if round_:
                found.add(SPARK, rows, name, clock.took)
    ratio = found.wall(SPARK, rows, BARE) / found.wall(SPARK, rows, BURLER)
    found.bars.append(Bar(f"{rows:,} rows through Spark: rows per second x {BARE}", ratio, LEAST, least=True))
    return found


def waiting(spark: SparkSession, rounds: int) -> Found:
    """Eight partitions that wait a second each, in a session with eight slots.

    Raises:
        Differ: not all rows came.
    """
    found = Found()
    frame = spark.read.format("burler").option("app", "bench_pages:tap").option("stream", "waiting").load()
    for round_ in range(rounds + 1):
        with Clock() as clock:
            count = frame.count()
        if count != 8:
            raise Differ(f"{count} rows came, not 8")
        if round_:
            found.add(WAITING, 8, BURLER, clock.took)
    found.bars.append(Bar(f"{WAITING} each, 8 slots: seconds", found.wall(WAITING, 8, BURLER), MOST_SECONDS))
    return found


def _set(rows: int) -> None:
    """Let this process make so many rows."""
    os.environ |= {"BENCH_ROWS": str(rows), "BENCH_PARTS": str(PARTS)}
    for folder in map(str, PROGRAMS):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    sys.modules.pop("bench_pages", None)


def _only_dicts() -> int:
    import bench_pages

    return sum(len(page) for part in range(PARTS) for page in bench_pages.pages_of(part))


def _compare(given: dict[str, list[Any]], rows: int) -> None:
    import pyarrow as pa

    tables = {name: pa.Table.from_batches(batches) for name, batches in given.items()}
    columns = sorted(tables[BARE].column_names)
    sorted_ = {name: table.select(columns).sort_by("id") for name, table in tables.items()}
    if any(table.num_rows != rows for table in sorted_.values()):
        raise Differ(f"{ {name: table.num_rows for name, table in sorted_.items()} } rows, not {rows:,}")
    if not sorted_[BURLER].equals(sorted_[BARE].cast(sorted_[BURLER].schema)):
        raise Differ("the rows of the two sources differ")
