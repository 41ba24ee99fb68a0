"""What stands in the files of a project."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

IGNORED = "storage/\nwarehouse/\nmetastore_db/\nderby.log\n__pycache__/\n"


def spec(name: str, folder: Path) -> str:
    """``spark-pipeline.yml``. A JSON text is a YAML text, too, whatever stands in it."""
    return f"""\
# A pipeline of Spark: `spark-pipelines run` beside this file (README.md says how).
name: {json.dumps(name)}
storage: {json.dumps((folder / "storage").as_uri())}
configuration:
  spark.sql.session.timeZone: UTC
  spark.sql.parquet.outputTimestampType: TIMESTAMP_MICROS
libraries:
  - glob:
      include: transformations/**
"""


def conf(folder: Path) -> str:
    """``spark.conf``: what must be set before Spark starts. Without a catalog that lasts, a second run fails."""
    metastore = f"jdbc:derby:;databaseName={folder / 'metastore_db'};create=true"
    return f"""\
spark.sql.catalogImplementation=hive
spark.sql.warehouse.dir={_escaped((folder / "warehouse").as_uri())}
spark.hadoop.javax.jdo.option.ConnectionURL={_escaped(metastore)}
spark.ui.enabled=false
"""


def transformation(
    *, name: str, lake: str, tap: str, stream: str, keys: Sequence[str], order: Sequence[str], full_table: bool
) -> str:
    """The Python file of one stream: its rows as a stream, and what counts of them as a view."""
    view = bool(keys) or full_table
    rows = f"{name}_rows" if view else name
    head = [
        f'"""Stream {stream!r} of {tap!r}, from a lake of Singer messages."""'.replace("\\", "\\\\"),
        "",
        "from pyspark import pipelines as dp",
        "from pyspark.sql import DataFrame, SparkSession" + (", Window" if keys else ""),
        *(["from pyspark.sql import functions as f"] if view else []),
        "",
        *(["from burler.spark.pipelines import active_version", ""] if full_table else []),
        "spark = SparkSession.active()",
        f"LAKE = {lake!r}",
        "",
        "",
        f"@dp.table(name={rows!r})",
        "def rows() -> DataFrame:",
        '    """Every row, as it came: a run reads the commits that are new since the last one."""',
        '    source = spark.readStream.format("singerlake")',
        f'    return source.option("tap", {tap!r}).option("stream", {stream!r}).load(LAKE)',
    ]
    if view:
        head += ["", "", f"@dp.materialized_view(name={name!r})", "def table() -> DataFrame:"]
        head += [f'    """{"The latest row of each key." if keys else "The rows that count."}"""']
        head += [f"    found = spark.read.table({rows!r})"]
    if full_table:
        head += [
            "    # Of a full table, rows of older versions are gone once a newer one is whole.",
            f"    active = active_version(LAKE, tap={tap!r}, stream={stream!r})",
            "    if active is not None:",
            '        is_new = (f.col("_sdc_version") >= active.version) | (f.col("_sdc_sequence") > active.sequence)',
            "        found = found.where(f.coalesce(is_new, f.lit(False)))",
        ]
    if keys:
        head += _latest(keys, order)
    elif view:
        head += ["    return found"]
    return "\n".join(head) + "\n"


def _latest(keys: Sequence[str], order: Sequence[str]) -> list[str]:
    by = [*map(_quoted, order), "_sdc_extracted_at", "_sdc_sequence", "_sdc_position"]
    return [
        f"    newest = Window.partitionBy({', '.join(repr(_quoted(key)) for key in keys)}).orderBy(",
        *(f"        f.col({one!r}).desc_nulls_last()," for one in by),
        "    )",
        '    ranked = found.select("*", f.row_number().over(newest).alias("_burler_row"))',
        # drop() would have Spark look for the table at once, while it is only being declared.
        '    return ranked.where("_burler_row = 1").selectExpr("* EXCEPT (_burler_row)")',
    ]


def readme(tables: Sequence[str], lake: str) -> str:
    """``README.md``."""
    return f"""\
# Tables of a lake, by Spark's declarative pipelines

    pip install '/path/to/burler[spark]' 'pyspark[pipelines]>=4.1,<5'     # burler's clone; and a Java 17+
    export PYSPARK_PYTHON=python3                                # the Python that has burler
    spark-pipelines dry-run --properties-file spark.conf         # checks the files, reads nothing
    spark-pipelines run --properties-file spark.conf             # fills the tables; again: only what is new

The lake: `{lake}`. Tables: {", ".join(f"`{name}`" for name in tables)}, one file each in `transformations/`.
`..._rows` holds every row as it came, read by the lake's manifest; the table beside it holds what counts now (the
latest row of each key; of full tables, rows of the active version), and is computed anew by each run.

`spark.conf` names the catalog (Derby, in `metastore_db`) and the warehouse by their full paths: after moving this
folder, correct them there and in `spark-pipeline.yml`. A stream whose schema has changed is filled anew with
`spark-pipelines run --properties-file spark.conf --full-refresh <table>_rows`. A table of a new stream: copy a file.

These files are yours; burler does not look at them again. `burler export` makes tables as well, without this project:
exactly once, each version whole, with a quarantine for rows that can't be held.
"""


def _quoted(name: str) -> str:
    """A column name as Spark parses it."""
    return name if name.isidentifier() and name.isascii() else "`" + name.replace("`", "``") + "`"


def _escaped(text: str) -> str:
    """For a file of Java properties."""
    return text.replace("\\", "\\\\")
