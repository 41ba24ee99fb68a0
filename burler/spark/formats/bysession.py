"""Tables that the session's own Delta or Iceberg writes: ``engine="session"``, for sessions that have their JARs.

Upserts go by ``MERGE INTO``; everything else replaces the table by its data source, in one commit with the table's
properties, where the numbers stand (``export.numbers``). After a merge they come in a commit of their own, since Spark
SQL has no other way: a kill between the two leaves rows whose numbers are not there yet, and the next export merges the
same rows once more, which changes nothing. An append would add them twice, so it reads and replaces all rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from burler.config.secrets import masked
from burler.errors import ExportError, UsageError
from burler.spark.columns import quoted
from burler.spark.confs import job_confs
from burler.spark.formats.base import Change, Published, TableState, Target
from burler.spark.formats.checking import check_partitions, check_variants
from burler.spark.formats.merging import wins
from burler.spark.formats.writing import is_arrow

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

CATALOG = "catalog"
# Spark shows "*********(redacted)" for properties with "url" in name or value, as in "burler": so neither has it, and
# values are in hexadecimal.
_SOURCE, _NUMBERS, _VERSION = "export.source", "export.numbers", "export.version"
_PACKAGES = {
    "delta": "io.delta:delta-spark_4.x_2.13, and spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension",
    "iceberg": "org.apache.iceberg:iceberg-spark-runtime-4.x_2.13, and spark.sql.extensions="
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
}
_GIVEN = "_burler_given"


class SessionTarget(Target):
    """The table of one stream, written by the session's own data source."""

    name: ClassVar[str] = "session"
    merges_frames: ClassVar[bool] = True

    def __init__(
        self, kind: str, place: str, source: str, options: Mapping[str, str], spark: Callable[[], SparkSession]
    ) -> None:
        """``kind``: delta or iceberg. ``place``: ``out/<tap>/<stream>``. ``options``: for Iceberg ``catalog``, the
        session catalog's name and namespace (``lake.raw``); without it, the table is the path (Delta)."""
        self._kind = kind
        self._source = source
        self._spark = spark
        unknown = set(options) - {CATALOG}
        if unknown:
            raise UsageError(
                f"engine 'session' takes the option {CATALOG} only, and was given {', '.join(sorted(unknown))}"
            )
        tap, stream = place.rstrip("/").rsplit("/", 2)[-2:]
        if CATALOG in options:
            self._table = ".".join(quoted(part) for part in (*options[CATALOG].split("."), f"{tap}__{stream}"))
        elif kind == "delta":
            self._table = f"delta.{quoted(place)}"
        else:
            raise UsageError("engine 'session' needs --option catalog=CATALOG.NAMESPACE for Iceberg tables")
        self.place = self._table.replace("`", "")
        self._state = TableState()

    def __repr__(self) -> str:
        return f"SessionTarget({self._kind!r}, {self.place!r}, {self._source!r})"

    def open(self) -> TableState:
        """See ``Target.open``.

        Raises:
            UsageError: the session lacks the format's JARs.
        """
        self._state = TableState()
        spark = self._spark()
        self._need(spark)
        said = self._properties(spark)
        if said is None:
            return self._state
        if said.get(_SOURCE) != self._source:
            raise ExportError(
                f"{self.place} is a table that was not made by burler export from {self._source}; it stays untouched. "
                "Choose another OUT or catalog, or drop that table"
            )
        schema = json.loads(spark.table(self._table).schema.json())
        parts = [row["col_name"] for row in spark.sql(f"DESCRIBE TABLE {self._table}").collect()]
        at = parts.index("# Partition Information") + 2 if "# Partition Information" in parts else len(parts)
        numbers = {name: int(number) for name, number in json.loads(said.get(_NUMBERS, "{}")).items()}
        partition_by = tuple(name for name in parts[at:] if name in {one["name"] for one in schema["fields"]})
        self._state = TableState(int(said.get(_VERSION, "0")), schema, numbers, partition_by)
        return self._state

    def rows(self, spark: SparkSession) -> DataFrame:
        """See ``Target.rows``."""
        return spark.table(self._table)

    def publish(self, rows: DataFrame | pyarrow.Table | None, change: Change) -> Published:
        """See ``Target.publish``; the module's text says what is less than elsewhere."""
        if rows is not None and is_arrow(rows):
            raise TypeError("engine 'session' takes DataFrames only")
        check_variants(change.columns, self.place, self._kind)
        check_partitions(change.partition_by, change.columns, self.place)
        spark = self._spark()
        version = 0 if self._state.version is None else self._state.version + 1
        with job_confs(spark):
            now = self._properties(spark)
            if (now is not None) != (self._state.version is not None) or (
                now is not None and int(now.get(_VERSION, "0")) != self._state.version
            ):
                raise ExportError(
                    f"{self.place}: another export of this table was faster. Nothing was published.\n"
                    "The table is as that other export left it. Run the export again"
                )
            return Published(version, self._write(spark, rows, change, version))

    def _write(self, spark: SparkSession, rows: Any, change: Change, version: int) -> int:
        """Keep the rows, count and check them, then write them by the data source or ``MERGE``."""
        if rows is None:
            rows = spark.createDataFrame([], _schema(change))
        kept = rows.select(*(quoted(name) for name, _ in change.columns.fields)).persist()
        try:
            count = int(kept.count())
            change.check()
            if change.kind == "merge" and self._state.version is not None:
                have = [one["name"] for one in (self._state.schema or {}).get("fields", [])]
                for statement in columns_sql(self._table, change, have):
                    spark.sql(statement)
                kept.createOrReplaceTempView(_GIVEN)
                spark.sql(merge_sql(self._table, _GIVEN, change))
                spark.sql(properties_sql(self._table, self._about(change, version)))
                return count
            if change.kind == "append" and self._state.version is not None:
                old = spark.table(self._table)
                self._save(old.unionByName(kept, allowMissingColumns=True), change, version)
            else:
                self._save(kept, change, version)
        finally:
            spark.catalog.dropTempView(_GIVEN)
            kept.unpersist()
        return count

    def _save(self, rows: DataFrame, change: Change, version: int) -> None:
        """All rows and columns in one commit: the table's own data source replaces atomically."""
        writer = rows.writeTo(self._table).using(self._kind)
        for name, value in self._about(change, version).items():
            writer = writer.tableProperty(name, value)
        if change.partition_by or self._state.partition_by:
            from pyspark.sql import functions as f

            names = change.partition_by or self._state.partition_by
            writer = writer.partitionedBy(*(f.col(quoted(name)) for name in names))
        writer.createOrReplace()

    def _about(self, change: Change, version: int) -> dict[str, str]:
        said = {_SOURCE: self._source, _NUMBERS: json.dumps(dict(change.numbers)), _VERSION: str(version)}
        return {name: value.encode().hex() for name, value in said.items()}

    def _need(self, spark: SparkSession) -> None:
        """Whether the session has the format at all.

        Raises:
            UsageError: it has not.
        """
        failure = ""
        try:
            spark.read.format(self._kind).load("/burler/no/such/table").schema  # noqa: B018
        except Exception as error:
            failure = str(error)
        if "DATA_SOURCE_NOT_FOUND" in failure or "ClassNotFound" in failure or "Failed to find" in failure:
            raise UsageError(
                f"engine 'session': this Spark session has no format '{self._kind}'. Start it with its JAR "
                f"({_PACKAGES[self._kind]}), or leave the engine out: burler writes {self._kind} without JARs"
            )

    def _properties(self, spark: SparkSession) -> dict[str, str] | None:
        """The table's properties; None where there is no table."""
        failure = ""
        try:
            rows = spark.sql(f"SHOW TBLPROPERTIES {self._table}").collect()
        except Exception as error:
            failure = str(error)
        if not failure:
            return {row["key"]: _plain(row["value"]) for row in rows if row["key"] in (_SOURCE, _NUMBERS, _VERSION)}
        if "NOT_FOUND" in failure or "not a Delta table" in failure or "doesn't exist" in failure:
            return None
        raise ExportError(f"{self.place}: {masked(failure).partition(chr(10))[0][:300]}")


def _plain(value: str) -> str:
    try:
        return bytes.fromhex(value).decode()
    except ValueError:
        return ""  # not ours


def merge_sql(table: str, given: str, change: Change) -> str:
    """``MERGE INTO`` by which the newer row of each key stays.

    Args:
        table: its quoted name. given: the view with one row a key, of all the table's columns.
    """
    names = [name for name, _ in change.columns.fields]
    on = " AND ".join(f"t.{quoted(key)} = s.{quoted(key)}" for key in change.keys)
    newer = wins(change.newer, names, lambda name: f"s.{quoted(name)}", lambda name: f"t.{quoted(name)}")
    sets = ", ".join(f"t.{quoted(name)} = s.{quoted(name)}" for name in names)
    columns, values = ", ".join(map(quoted, names)), ", ".join(f"s.{quoted(name)}" for name in names)
    return (
        f"MERGE INTO {table} AS t USING {given} AS s ON {on} WHEN MATCHED AND {newer} THEN UPDATE SET {sets} "
        f"WHEN NOT MATCHED THEN INSERT ({columns}) VALUES ({values})"
    )


def columns_sql(table: str, change: Change, have: Sequence[str]) -> list[str]:
    """The statement that adds the columns that a table lacks; none if it has all."""
    new = [field for field in _schema(change).fields if field.name not in have]
    told = ", ".join(f"{quoted(field.name)} {field.dataType.simpleString()}" for field in new)
    return [f"ALTER TABLE {table} ADD COLUMNS ({told})"] if new else []


def properties_sql(table: str, about: Mapping[str, str]) -> str:
    """The statement that sets table properties."""
    pairs = ", ".join(f"'{_escaped(name)}' = '{_escaped(value)}'" for name, value in about.items())
    return f"ALTER TABLE {table} SET TBLPROPERTIES ({pairs})"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")


def _schema(change: Change) -> Any:
    from pyspark.sql.types import StructType

    return StructType.fromJson(dict(change.schema))
