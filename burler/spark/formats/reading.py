"""Tables read into Spark without any JAR: by the list of files that the table's own log or pointer gives."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from burler.errors import UsageError
from burler.spark.columns import named
from burler.spark.formats.delta_log import actions_of, open_delta, schema_of, table_files
from burler.spark.formats.iceberg_catalog import OWN_CATALOG
from burler.spark.formats.iceberg_rows import own_iceberg_rows
from burler.spark.formats.pointer import LATEST, Version, read_version
from burler.spark.formats.writing import WRITING
from burler.spark.scan import escape

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OWN_FILE = re.compile(r"/data-[0-9a-f]{16}/")
_AT, _FILE = "_burler_at", "_burler_file"


def table(spark: SparkSession, path: str | Path) -> DataFrame:
    """The rows of the table at ``path``: Delta, burler's files with ``_latest.json``, Iceberg with the catalog beside
    it that an export makes by itself, or plain Parquet files.

    The DataFrame is of the version that is current now, also after later exports (until its files are removed: a
    Delta table's by a vacuum, those of format parquet after some more exports).

    Raises:
        UsageError: there is none, or the Delta table uses deletion vectors or column mapping, which only Delta's
            own reader understands.
        MissingExtra: deltalake is not installed.
    """
    folder = Path(path).absolute()
    if "%" not in str(folder):
        delta = open_delta(folder)
        if delta is not None:
            return delta_rows(spark, delta)
    if (folder / LATEST).exists():
        return version_rows(spark, folder, read_version(folder / LATEST))
    if (folder.parent.parent / OWN_CATALOG).exists():
        rows = own_iceberg_rows(spark, folder)
        if rows is not None:
            return rows
    files = sorted(str(file) for file in folder.glob("*.parquet") if not file.name.startswith((".", "_")))
    if not files:
        raise UsageError(f"{folder} holds no table: neither a Delta log nor Parquet files. Was the export run?")
    return spark.read.parquet(*map(escape, files))


def version_rows(spark: SparkSession, folder: Path, version: Version) -> DataFrame:
    """The rows of one version of a table of plain files. Columns that a file lacks (added later) are null."""
    from pyspark.sql.types import StructType

    schema = StructType.fromJson(dict(version.schema))
    if not version.files:
        return spark.createDataFrame([], schema)
    options = {**WRITING.get(version.format, {}), **version.options}
    if version.format != "parquet":
        options.setdefault("mode", "FAILFAST")  # a value that can't be read is no null
    reader = spark.read.format(version.format).schema(schema).options(**options)
    return reader.load([escape(str(folder / file.path)) for file in version.files])


def delta_rows(spark: SparkSession, delta: Any) -> DataFrame:
    """The rows of an open DeltaTable. Columns that a file lacks (added later) are null.

    Raises:
        UsageError: see ``table``.
    """
    from pyspark.sql.types import StructType

    features = set(delta.protocol().reader_features or ())
    if "deletionVectors" in features or "columnMapping" in features:
        raise UsageError(
            f"{delta.table_uri} is a Delta table with deletion vectors or column mapping. "
            "burler reads only tables without; use a Spark session that has Delta's own JARs"
        )
    schema = StructType.fromJson(schema_of(delta))
    files, partition_by = table_files(delta), delta.metadata().partition_columns
    # burler's own files hold the partition columns too; those of others (delta-rs' merge, say) only the log has.
    lacking = [file for file in files if partition_by and not _OWN_FILE.search(file)]
    whole = sorted(set(files) - set(lacking))
    if not files:
        return spark.createDataFrame([], schema)
    parts = [spark.read.schema(schema).parquet(*map(escape, whole))] if whole else []
    if lacking:
        parts.append(_with_partitions(spark, delta, lacking, schema, partition_by))
    return parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])


def _with_partitions(
    spark: SparkSession, delta: Any, files: list[str], schema: Any, partition_by: list[str]
) -> DataFrame:
    """Rows of files without their partition columns, which are looked up by the file's path in the log."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import StringType, StructField, StructType

    actions, wanted = actions_of(delta), set(files)
    columns = [table_files(delta), *(actions.column(f"partition.{name}").to_pylist() for name in partition_by)]
    known = [row for row in zip(*columns, strict=True) if row[0] in wanted]
    kept = [one for one in schema.fields if one.name not in partition_by]
    read = spark.read.schema(StructType(kept)).parquet(*map(escape, files))
    # The path as Spark shows it is percent-encoded; "+" stands for itself there.
    shown = f.url_decode(f.replace(f.col("_metadata.file_path"), f.lit("+"), f.lit("%2B")))
    rows = read.withColumn(_AT, f.regexp_replace(shown, "^file:/+", "/"))
    names = StructType([StructField(_FILE, StringType()), *(schema[name] for name in partition_by)])
    found = rows.join(f.broadcast(spark.createDataFrame(known, names)), rows[_AT] == f.col(_FILE), "left")
    # A row whose file is not in the list must never pass with nulls: that would be a fault of the decoding above.
    lost = f.raise_error(f.concat(f.lit("no partition values are known of "), f.col(_AT)))
    return found.select(
        *(
            f.when(f.col(_FILE).isNull(), lost).otherwise(named(one.name)).cast(one.dataType).alias(one.name)
            if one.name in partition_by
            else named(one.name)
            for one in schema.fields
        )
    )
