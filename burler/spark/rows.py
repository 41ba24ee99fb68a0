"""The DataFrame that becomes a table's new content: new lake rows, old table rows, the latest of each key.

Source: specs 11.26 (which row is the latest), 11.30, 11.31; Spark facts E.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from burler.columns.kinds import DOUBLE, StructOf
from burler.errors import ExportError
from burler.lake.store import Store
from burler.spark.columns import (
    BATCHED_AT,
    BLOCK,
    EXTRACTED_AT,
    LINE,
    ORDER,
    RANK,
    ROW_NUMBER,
    SEQUENCE,
    VERSION,
    named,
)
from burler.spark.delta import DeltaState
from burler.spark.exact import STAGED, Exact
from burler.spark.plan import TABLE_RANK, Activation, Plan
from burler.spark.scan import Scan, escape, scan
from burler.spark.table import delta_rows
from burler.spark.types import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation, SparkSession

_FILE_BYTES = 128 << 20
"""Uncompressed lake bytes for each file of a table (about 20 MB of Parquet)."""
_PARQUET_RATIO = 5
"""How much smaller a table's Parquet is than the lake's JSON lines, for the same guess."""


@dataclass(frozen=True, slots=True)
class Made:
    """Rows to write, and what proves afterwards that they are all there."""

    rows: DataFrame
    scan: Scan | None
    keyless: Observation | None
    stream: str
    keys: tuple[str, ...]

    def verify(self) -> int:
        """Rows read by Spark from the lake, once ``rows`` has been written.

        Raises:
            LakeError: see ``Scan.verify``. ExportError: rows without a key. They would replace each
                other, and all but one be lost in silence; the Singer texts say that a key is never null.
        """
        read = self.scan.verify() if self.scan else 0
        keyless = self.keyless.get["keyless"] if self.keyless else 0
        if keyless:
            raise ExportError(
                f"stream '{self.stream}': {keyless} row(s) have no value in the key ({', '.join(self.keys)}), so only "
                "one of them could be kept. Nothing was published.\n"
                "Correct key_properties in the tap; then move the files that hold them out of the lake, remove the "
                "stream's manifest.json (it is made anew), and extract again."
            )
        if self.keyless and self.keyless.get["blurred"]:
            raise ExportError(
                f"stream '{self.stream}': key numbers from 2^53 on stand in a field of type number, where "
                f"different ones become equal ({', '.join(self.keys)}). Nothing was published. "
                "Declare the key as integer or string."
            )
        return read


_EXACT = 2**53
"""Below it a double holds each whole number; at it two of them are one."""


def make(
    spark: SparkSession,
    plan: Plan,
    state: DeltaState,
    *,
    store: Store,
    stream: str,
    exact: Exact | None,
    active: Activation | None,
    batched_at: dt.datetime,
) -> Made:
    """The rows to write for ``plan``; lazy."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    names = [name for name, _ in plan.columns.fields + ORDER.fields]
    parts: list[DataFrame] = []
    clean = [file for file in plan.files if file.clean]
    scanned = scan(spark, clean, plan.record, store=store, stream=stream) if clean else None
    stamp = f.timestamp_micros(f.lit(int(batched_at.timestamp() * 1_000_000)))
    for new in (scanned.rows if scanned else None, _staged(spark, exact.path, plan.record) if exact else None):
        if new is not None:
            parts.append(new.withColumn(BATCHED_AT, stamp).select(*map(named, names)))
    if plan.kind == "upsert":
        parts.append(_table_rows(spark, state, plan.columns))
    rows = parts[0]
    for part in parts[1:]:
        rows = rows.union(part)
    if active is not None:
        rows = rows.where(_belongs(active))
    keyless = None
    if plan.keys:
        keyless = Observation()
        missing = f.greatest(*(named(key).isNull().cast("int") for key in plan.keys), f.lit(0), f.lit(0))
        wide = [f.abs(named(key)) >= _EXACT for key in plan.keys if plan.record.get(key) is DOUBLE]
        blurred = f.greatest(*(one.cast("int") for one in wide), f.lit(0), f.lit(0))
        rows = rows.observe(
            keyless,
            f.count(f.when(missing == 1, 1)).alias("keyless"),
            f.count(f.when(blurred == 1, 1)).alias("blurred"),
        )
        rows = _latest(rows, plan)
    rows = rows.select(*(named(name) for name, _ in plan.columns.fields))
    return Made(rows.coalesce(_file_count(plan, state)), scanned, keyless, stream, plan.keys)


def write(rows: DataFrame, folder: Path) -> None:
    """Write Parquet files into a folder that does not exist yet."""
    rows.write.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false").parquet(str(folder))


def _staged(spark: SparkSession, path: Path, record: StructOf) -> DataFrame:
    return spark.read.schema(spark_schema(StructOf(record.fields + STAGED))).parquet(escape(str(path)))


def _table_rows(spark: SparkSession, state: DeltaState, columns: StructOf) -> DataFrame:
    """The table as it is, older than every new row, and younger than an activation that it has seen already."""
    from pyspark.sql import functions as f

    old = delta_rows(spark, state.table)
    have, types = set(old.columns), spark_schema(columns)
    known = [named(one.name) if one.name in have else f.lit(None).cast(one.dataType).alias(one.name) for one in types]
    order = [f.lit(TABLE_RANK if name == RANK else 0).cast("bigint").alias(name) for name, _ in ORDER.fields]
    return old.select(*known, *order)


def _belongs(active: Activation) -> Column:
    """Whether a row counts: of the active version; of a later one, unless the activation came after it (a clock
    that was set back); without version only if it came after. A lake file holds no row without version
    behind an ACTIVATE_VERSION (see ``LakeWriter``), so whole files can be compared."""
    version, rank = named(VERSION), named(RANK)
    return (
        (version == active.version)
        | ((version > active.version) & (rank >= active.rank))
        | (version.isNull() & (rank > active.rank))
    )


def _latest(rows: DataFrame, plan: Plan) -> DataFrame:
    """One row a key: by replication key, time_extracted, commit sequence, file, line (specs 11.26)."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    order = [*plan.order, EXTRACTED_AT, SEQUENCE, RANK, BLOCK, LINE]
    window = Window.partitionBy(*map(named, plan.keys)).orderBy(*(named(name).desc_nulls_last() for name in order))
    return rows.withColumn(ROW_NUMBER, f.row_number().over(window)).where(f.col(ROW_NUMBER) == 1)


def _file_count(plan: Plan, state: DeltaState) -> int:
    """How many files to write: a small table is one file."""
    size = sum(file.bytes or 0 for file in plan.files)
    if plan.kind == "upsert":
        size += _PARQUET_RATIO * sum(Path(file).stat().st_size for file in state.files())
    return 1 + size // _FILE_BYTES
