"""The same work by others: the Spark job that one writes by hand, DuckDB and Polars, all on a lake's gz files.

None of them checks anything: no manifest, no count, no line that does not parse, no second schema, and what they write
is a folder of Parquet that nobody sees half-written only because nobody looks. ``latest`` keeps the row of each key
with the latest ``ts``, then the latest ``time_extracted``.
"""

from __future__ import annotations

import gzip
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

_RECORD = (
    "id: bigint, a: string, b: string, c: string, email: string, `long`: string, f1: double, f2: double, ok: boolean, "
    "ts: timestamp, nested: struct<x: bigint, y: string, w: double>, arr: array<bigint>"
)
_DUCK_RECORD = (
    'STRUCT(id BIGINT, a VARCHAR, b VARCHAR, c VARCHAR, email VARCHAR, "long" VARCHAR, f1 DOUBLE, f2 DOUBLE, '
    "ok BOOLEAN, ts TIMESTAMPTZ, nested STRUCT(x BIGINT, y VARCHAR, w DOUBLE), arr BIGINT[])"
)


def rows_of(spark: SparkSession, files: Sequence[str]) -> DataFrame:
    """The records of the files, and when they were extracted."""
    envelope = f"type string, record struct<{_RECORD}>, time_extracted timestamp"
    read = spark.read.schema(envelope).json(list(files))
    return read.where("type = 'RECORD'").select("record.*", "time_extracted")


def spark_window(spark: SparkSession, files: Sequence[str], out: str) -> None:
    """``row_number`` over the key: what most people write."""
    rows = rows_of(spark, files)
    rows.createOrReplaceTempView("bench_rows")
    latest = spark.sql(
        "select * except (place) from (select *, row_number() over (partition by id order by ts desc, "
        "time_extracted desc) as place from bench_rows) where place = 1"
    )
    latest.write.mode("overwrite").parquet(out)


def spark_max_by(spark: SparkSession, files: Sequence[str], out: str) -> None:
    """``max`` of a struct that begins with the order: an aggregate, with no sort of whole rows."""
    from pyspark.sql import functions as F

    rows = rows_of(spark, files)
    others = [name for name in rows.columns if name not in ("id", "ts", "time_extracted")]
    newest = rows.groupBy("id").agg(F.max(F.struct("ts", "time_extracted", *others)).alias("row"))
    newest.select("id", "row.*").write.mode("overwrite").parquet(out)


def spark_all(spark: SparkSession, files: Sequence[str], out: str) -> None:
    """Every row."""
    rows_of(spark, files).write.mode("overwrite").parquet(out)


def duckdb(files: Sequence[str], out: str, *, keyed: bool, threads: int) -> None:
    """DuckDB, in this process."""
    import duckdb as engine

    listed = ", ".join("'" + name.replace("'", "''") + "'" for name in files)
    columns = f"{{type: 'VARCHAR', record: '{_DUCK_RECORD}', time_extracted: 'TIMESTAMPTZ'}}"
    read = (
        f"select record.*, time_extracted from read_json([{listed}], format = 'newline_delimited', "
        f"compression = 'gzip', columns = {columns}) where type = 'RECORD'"
    )
    if keyed:
        read += " qualify row_number() over (partition by record.id order by record.ts desc, time_extracted desc) = 1"
    _fresh(out)
    with engine.connect(config={"threads": str(threads)}) as connection:
        connection.execute("set timezone = 'UTC'")
        connection.execute(f"copy ({read}) to '{out}/part.parquet' (format parquet, compression snappy)")


def polars(files: Sequence[str], out: str, *, keyed: bool) -> None:
    """Polars, in this process: a file is unpacked into memory and parsed there."""
    import polars as pl

    texts = [pl.String] * 5
    record = pl.Struct(
        dict(
            zip(
                ("id", "a", "b", "c", "email", "long", "f1", "f2", "ok", "ts", "nested", "arr"),
                (
                    *(pl.Int64, *texts, pl.Float64, pl.Float64, pl.Boolean, pl.String),
                    *(pl.Struct({"x": pl.Int64, "y": pl.String, "w": pl.Float64}), pl.List(pl.Int64)),
                ),
                strict=True,
            )
        )
    )
    schema = {"type": pl.String, "record": record, "time_extracted": pl.String}
    moment = pl.col("ts", "time_extracted").str.to_datetime(time_unit="us", time_zone="UTC")
    frames = []
    for name in files:
        with gzip.open(name) as file:
            lines = pl.read_ndjson(file.read(), schema=schema)
        frames.append(lines.filter(pl.col("type") == "RECORD").unnest("record").drop("type").with_columns(moment))
    rows = pl.concat(frames)
    if keyed:
        rows = rows.sort("ts", "time_extracted").unique("id", keep="last", maintain_order=False)
    _fresh(out)
    rows.write_parquet(f"{out}/part.parquet", compression="snappy")


def candidates(spark: SparkSession, *, keyed: bool, threads: int) -> dict[str, Callable[[Sequence[str], str], None]]:
    """The jobs by name; each is given the files and a folder for the Parquet."""
    by_hand: dict[str, Callable[[SparkSession, Sequence[str], str], None]] = (
        {"Spark by hand, row_number": spark_window, "Spark by hand, max of a struct": spark_max_by}
        if keyed
        else {"Spark by hand": spark_all}
    )
    jobs: dict[str, Callable[[Sequence[str], str], None]] = {
        name: lambda files, out, job=job: job(spark, files, out) for name, job in by_hand.items()
    }
    jobs["DuckDB"] = lambda files, out: duckdb(files, out, keyed=keyed, threads=threads)
    if find_spec("polars") is not None:
        jobs["Polars"] = lambda files, out: polars(files, out, keyed=keyed)
    return jobs


def _fresh(out: str) -> None:
    shutil.rmtree(out, ignore_errors=True)
    Path(out).mkdir(parents=True)
