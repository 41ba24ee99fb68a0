"""Read a table into Spark without any JAR: a Delta table's own file list, or a folder of Parquet files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from burler.errors import UsageError
from burler.extras import require
from burler.spark.delta import table_files
from burler.spark.scan import escape

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def table(spark: SparkSession, path: str | Path) -> DataFrame:
    """The rows of the Delta table, or of the plain Parquet files, at ``path``.

    The DataFrame is of the version that is current now, also after later exports (until the table is vacuumed).

    Raises:
        UsageError: there is neither, or the Delta table uses deletion vectors or partitions, which only Delta's
            own reader understands.
        MissingExtra: deltalake is not installed.
    """
    deltalake = require("deltalake", extra="spark", needed_for="burler.spark.table")
    folder = Path(path).absolute()
    if "%" not in str(folder) and deltalake.DeltaTable.is_deltatable(str(folder)):
        return delta_rows(spark, deltalake.DeltaTable(str(folder)))
    files = sorted(str(file) for file in folder.glob("*.parquet") if not file.name.startswith((".", "_")))
    if not files:
        raise UsageError(f"{folder} holds no table: neither a Delta log nor Parquet files. Was the export run?")
    return spark.read.parquet(*map(escape, files))


def delta_rows(spark: SparkSession, delta: Any) -> DataFrame:
    """The rows of an open DeltaTable. Columns that a file lacks (added later) are null."""
    from pyspark.sql.types import StructType

    protocol = delta.protocol()
    features = set(protocol.reader_features or ())
    if "deletionVectors" in features or "columnMapping" in features or delta.metadata().partition_columns:
        raise UsageError(
            f"{delta.table_uri} is a Delta table with deletion vectors, column mapping or partitions. "
            "burler reads only tables without; use a Spark session that has Delta's own JARs"
        )
    schema = StructType.fromJson(json.loads(delta.schema().to_json()))
    files = table_files(delta)
    if not files:
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).parquet(*map(escape, files))
