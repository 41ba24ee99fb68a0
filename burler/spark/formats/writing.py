"""Rows to Parquet files in a fresh folder: a DataFrame by Spark's own writer, an Arrow table by pyarrow.

Timestamps are microseconds, never INT96; ``mode("overwrite")`` is never used. Partitioned rows lie in files of their
own for each combination of values, named by a digest: a value may be null, empty, longer than a file name or hold any
character. The partition columns stay in the files, so nothing has to be guessed from a path.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from burler.errors import ExportError
from burler.extras import require
from burler.spark.columns import named, quoted, refuse_names
from burler.spark.confs import job_confs
from burler.spark.formats.base import Change
from burler.spark.formats.folders import unwritable

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import Column, DataFrame

PARTITION = "_burler_part"
"""Name of the column that only names folders; export adds such names itself and no stream may use them."""
_EXACT_TIMES = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
WRITING: Mapping[str, Mapping[str, str]] = {
    # By itself Spark cuts times to milliseconds here, leaves out null fields, gives a CSV no names, takes its empty
    # text for null, trims texts, takes a line break in one for the end of the row, and makes XML attributes of columns
    # that begin with _.
    "json": {**_EXACT_TIMES, "ignoreNullFields": "false"},
    "csv": {
        **_EXACT_TIMES,
        "header": "true",
        "escape": '"',
        "nullValue": "\\N",
        "ignoreLeadingWhiteSpace": "false",
        "ignoreTrailingWhiteSpace": "false",
        "multiLine": "true",
    },
    "xml": {
        **_EXACT_TIMES,
        "rowTag": "row",
        "rootTag": "rows",
        "attributePrefix": "burler-attribute-",
        "valueTag": "burler-value",
        "ignoreSurroundingSpaces": "false",
        "nullValue": "\\N",
    },
}
"""Options that a format needs to lose nothing; the user's own come after them."""


def is_arrow(rows: object) -> bool:
    """Whether rows are a pyarrow Table and not a DataFrame."""
    return type(rows).__module__.partition(".")[0] == "pyarrow"


def write_parquet(
    rows: DataFrame | pyarrow.Table | None, folder: Path, change: Change, partition_by: Sequence[str]
) -> None:
    """Write rows as Parquet to a folder that does not exist yet; without rows there may be no folder afterwards.

    Raises:
        ExportError: the disk is full, or the folder can't be written (Arrow rows; Spark's own exceptions go through
            as they are: who knows the rows' sources says what they mean).
    """
    if rows is None:
        return
    if not is_arrow(rows):
        write_files(rows, folder, change, "parquet", {}, partition_by)
        return
    try:
        _write_arrow(rows, folder, partition_by)
    except OSError as error:
        raise unwritable(folder.parent, error) from None


def write_files(
    rows: DataFrame,
    folder: Path,
    change: Change,
    kind: str,
    options: Mapping[str, str],
    partition_by: Sequence[str],
) -> None:
    """Write a DataFrame by Spark's writer of a format to a folder that does not exist yet.

    Raises:
        ExportError: Spark has no such format, or would bend a name.
    """
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as f

    refuse_names(change.columns, str(folder.parent))
    rows = in_order(rows, change)
    if partition_by:
        digest = f.md5(f.concat(*(_text(name) for name in partition_by)))
        rows = rows.withColumn(PARTITION, digest).repartition(PARTITION)
    elif change.file_count is not None:
        rows = rows.coalesce(max(1, change.file_count))
    writer = rows.write.format(kind).options(**{**WRITING.get(kind, {}), **options})
    writer = writer.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
    if partition_by:
        writer = writer.partitionBy(PARTITION)
    with job_confs(rows.sparkSession):
        try:
            writer.save(str(folder))
        except AnalysisException as error:
            raise refused_by_spark(error, kind, str(folder.parent)) from None
    for part in folder.glob(f"{PARTITION}=*"):
        # Flat: a reader that takes folder names of this form for a column finds none.
        for file in part.iterdir():
            if file.name.startswith((".", "_")):
                file.unlink()  # Hadoop's checksums
            else:
                file.rename(folder / f"{part.name.partition('=')[2]}-{file.name}")
        part.rmdir()


def in_order(rows: DataFrame, change: Change) -> DataFrame:
    """The table's columns alone, in its order."""
    names = [name for name, _ in change.columns.fields]
    return rows if rows.columns == names else rows.select(*map(quoted, names))


def refused_by_spark(error: Exception, kind: str, place: str) -> ExportError:
    """The error for a format that Spark does not have, or that can't hold the columns."""
    text = str(error).partition("\n")[0]
    if "DATA_SOURCE_NOT_FOUND" in str(error) or "Failed to find data source" in str(error):
        return ExportError(
            f"{place}: this Spark has no format '{kind}'. Nothing was published.\n"
            f"Add its JAR (--conf spark.jars.packages=..., or spark.jars=...), or choose another --format"
        )
    return ExportError(f"{place}: Spark's writer of format '{kind}' refuses these rows: {text}. Nothing was published.")


def _text(name: str) -> Column:
    """A column as text that differs where values differ, null and empty text too."""
    from pyspark.sql import functions as f

    text = named(name).cast("string")
    return f.coalesce(f.concat(f.lit("v"), f.length(text).cast("string"), f.lit(":"), text), f.lit("n"))


def _write_arrow(rows: Any, folder: Path, partition_by: Sequence[str]) -> None:
    parquet = require("pyarrow.parquet", extra="spark", needed_for="burler export")
    if not rows.num_rows:
        return
    folder.mkdir(parents=True)
    # Without NaN a double's bounds would be wrong for readers to whom NaN is the greatest number (Spark).
    exact = [name for name, kind in zip(rows.column_names, rows.schema.types, strict=True) if str(kind) != "double"]
    for name, part in _parts(rows, partition_by):
        path = folder / f"{name}part-00000.parquet"
        parquet.write_table(part, path, compression="snappy", write_statistics=exact or False)


def _parts(rows: Any, partition_by: Sequence[str]) -> list[tuple[str, Any]]:
    """Rows by partition: (start of the file name, rows)."""
    if not partition_by:
        return [("", rows)]
    arrow = require("pyarrow", extra="spark", needed_for="burler export")
    at: dict[tuple[Any, ...], list[int]] = {}
    for row, values in enumerate(zip(*(rows.column(name).to_pylist() for name in partition_by), strict=True)):
        at.setdefault(values, []).append(row)
    return [
        (f"{hashlib.md5(repr(values).encode(), usedforsecurity=False).hexdigest()}-", rows.take(arrow.array(found)))
        for values, found in at.items()
    ]
