"""Iceberg tables read into Spark without any JAR: by the list of files that pyiceberg gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from burler.errors import UsageError
from burler.spark.formats import iceberg_catalog as catalogs
from burler.spark.formats.iceberg_catalog import told
from burler.spark.scan import escape

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SOURCE, NUMBERS, SCHEMA, DATA = "burler.source", "burler.numbers", "burler.schema", "burler.data"
"""Properties of a table that an export made, and parts of its snapshots' summaries."""


def own_iceberg_rows(spark: SparkSession, folder: Path) -> DataFrame | None:
    """The rows of the table that lies in ``folder`` and is registered in the catalog of its OUT; None if it is not."""
    names = catalogs.Names(str(folder), {})
    catalog = catalogs.open_catalog(names)
    try:
        table = catalogs.load(catalog, names)
        return None if table is None else iceberg_rows(spark, table)
    finally:
        catalogs.close(catalog)


def iceberg_rows(spark: SparkSession, table: Any) -> DataFrame:
    """The rows of an Iceberg table, by its list of files. Columns that a file lacks (added later) are null.

    Raises:
        UsageError: the table has delete files, or columns without a burler export's description.
    """
    from pyspark.sql.types import StructType

    tasks = tasks_of(table)
    if any(task.delete_files for task in tasks) or SCHEMA not in table.properties:
        raise UsageError(
            f"{'.'.join(table.name())} has delete files, or was not made by burler export. "
            "burler reads only tables of its own; use a Spark session that has Iceberg's own JARs"
        )
    schema = StructType.fromJson(json.loads(table.properties[SCHEMA]))
    files = sorted(path_of(task.file.file_path) for task in tasks)
    if not files:
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).parquet(*map(escape, files))


def tasks_of(table: Any) -> list[Any]:
    """The table's files as pyiceberg plans to read them.

    Raises:
        ExportError: the metadata can't be read.
    """
    with told(f"{'.'.join(table.name())}: the list of its files can't be read"):
        return list(table.scan().plan_files())


def path_of(location: str) -> str:
    """The path of a file that Iceberg names by a URL."""
    return location.removeprefix("file://")
