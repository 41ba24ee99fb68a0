"""Whatever else Spark writes to: databases by its JDBC writer, and formats that are no files.

Such a place keeps no numbers beside its rows and has no step in which everything becomes visible, so nothing can be
said about it after a crash: each export writes the whole content again (``overwrite``), and readers may see it half.
Options may hold ``{tap}`` and ``{stream}``, which stand for the names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from burler.config.secrets import hide, masked, raw_secrets
from burler.errors import ExportError
from burler.spark.columns import quoted
from burler.spark.confs import job_confs
from burler.spark.formats.base import Change, Published, TableState, Target
from burler.spark.formats.writing import is_arrow, refused_by_spark

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession


class OtherTarget(Target):
    """A place that Spark's own writer of a format replaces as a whole."""

    name: ClassVar[str] = "other"

    def __init__(self, kind: str, place: str, source: str, options: Mapping[str, str]) -> None:
        """``place``: given to the writer as ``path``, unless the options hold one. ``source``: ``tap/stream``."""
        self.place = place
        self._kind = kind
        self._source = source
        tap, _, stream = source.partition("/")
        for secret in raw_secrets(dict(options)):
            hide(secret)
        self._options = {
            name: value.replace("{tap}", tap).replace("{stream}", stream) for name, value in options.items()
        }
        self._options.setdefault("path", place)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._kind!r}, {self.place!r}, {self._source!r})"

    def open(self) -> TableState:
        """Nothing is known of such a place: it always counts as empty."""
        return TableState()

    def rows(self, spark: SparkSession) -> DataFrame:
        """See ``Target.rows``; nobody asks, since ``open`` never finds a table."""
        raise ExportError(f"{self.place}: format {self._kind} gives no rows back to an export")

    def publish(self, rows: DataFrame | pyarrow.Table | None, change: Change) -> Published:
        """See ``Target.publish``; it is not atomic. ``change.check`` comes first: what is written is visible."""
        if rows is None:
            change.check()
            return Published(0, 0)
        if is_arrow(rows):
            raise TypeError(f"format {self._kind} takes DataFrames only")
        if change.partition_by:
            raise ExportError(f"format {self._kind} is given to Spark's writer as it is: leave partition_by out")
        return Published(0, self._write(rows, change))

    def _write(self, rows: DataFrame, change: Change) -> int:
        """Keep the rows, count and check them, then write: the check needs an action, and the rows be read once."""
        rows = rows.select(*(quoted(name) for name, _ in change.columns.fields))
        if change.file_count is not None:
            rows = rows.coalesce(max(1, change.file_count))
        with job_confs(rows.sparkSession):
            kept = rows.persist()
            try:
                count = kept.count()
                change.check()
                self._save(kept.write.mode("overwrite"))
            finally:
                kept.unpersist()
        return int(count)

    def _save(self, writer: Any) -> None:
        from pyspark.errors import AnalysisException

        failure: ExportError | None = None
        try:
            writer.format(self._kind).options(**self._options).save()
        except Exception as error:  # Spark's kinds, and py4j's with the Java stack in its text
            if isinstance(error, AnalysisException) or "DATA_SOURCE_NOT_FOUND" in str(error):
                failure = refused_by_spark(error, self._kind, self.place)
            else:
                failure = ExportError(f"{self.place}: Spark's writer of format '{self._kind}' failed: {_short(error)}")
        if failure is not None:  # out here, so that py4j's exception is not kept with it
            raise failure


class JdbcTarget(OtherTarget):
    """A table of another database than PostgreSQL, by Spark's JDBC writer and a driver that the session must have."""

    name: ClassVar[str] = "jdbc"

    def __init__(self, url: str, tap_id: str, stream: str, source: str, options: Mapping[str, str]) -> None:
        """``options``: Spark's (``user``, ``password``, ``driver``, ``dbtable``, ``batchsize``, ...)."""
        super().__init__("jdbc", "", source, {"url": url, "dbtable": _table(tap_id, stream), **options})
        del self._options["path"]
        self.place = f"{url.partition(';')[0]} {self._options['dbtable']}"


def _table(tap_id: str, stream: str) -> str:
    """A name for a database of which nothing is known: letters, digits and ``_``."""
    return "".join(one if one.isascii() and one.isalnum() else "_" for one in f"{tap_id}_{stream}")


def _short(error: Exception) -> str:
    """The line of an error that says what is wrong: the last cause of a Java error."""
    lines = [line.strip() for line in masked(str(error)).splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    thrown = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
    return (causes[-1:] or thrown or lines or [type(error).__name__])[0][:300]
