"""A Delta table: Parquet files that Spark or pyarrow wrote, published by one atomic commit, read without any JAR.

Every publication is one version of the table's log, and carries its numbers as
app transactions. Small upserts are merged by delta-rs itself, without Spark.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from burler.errors import ExportError
from burler.extras import require
from burler.spark.formats import delta_log
from burler.spark.formats.base import Change, Published, TableState, Target
from burler.spark.formats.checking import check_partitions, check_variants
from burler.spark.formats.folders import data_folder, refuse_other_formats, remove_leftovers, unwritable
from burler.spark.formats.footers import data_files
from burler.spark.formats.merging import merged, wins
from burler.spark.formats.reading import delta_rows
from burler.spark.formats.writing import is_arrow, write_parquet

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

MADE_BY = "made by burler export from"
_NEEDED_FOR = "burler export"
_log = logging.getLogger("burler.spark.formats")
_READ_AS_NULL = frozenset(("", "__HIVE_DEFAULT_PARTITION__"))
"""Texts in a partition column that come back as null, from delta-rs or from Spark."""


class DeltaTarget(Target):
    """The Delta table in a folder, made from one stream."""

    name: ClassVar[str] = "delta"
    merges_arrow: ClassVar[bool] = True
    appends_arrow: ClassVar[bool] = True

    def __init__(self, place: str, source: str) -> None:
        """``place``: the table's folder. ``source``: the stream it is made from, as ``tap/stream``."""
        self.place = place
        self._path = Path(place)
        self._source = source
        self._table: Any = None

    def __repr__(self) -> str:
        return f"DeltaTarget({self.place!r}, {self._source!r})"

    def open(self) -> TableState:
        """See ``Target.open``."""
        if "%" in self.place:
            # delta-rs 1.6 decodes the path once too often and would write somewhere else.
            raise ExportError(
                f"tables can't be written to {self.place}: deltalake takes no '%' in a path. Choose another OUT"
            )
        if self._path.exists() and not self._path.is_dir():
            raise ExportError(f"{self.place} is no folder, so it can't hold a table. Choose another OUT")
        refuse_other_formats(self._path, "_delta_log")
        self._table = delta_log.open_delta(self._path)
        if self._table is not None and self._table.metadata().description != f"{MADE_BY} {self._source}":
            raise ExportError(
                f"{self.place} holds a table that was not {MADE_BY} {self._source}; it stays untouched. "
                "Choose another OUT, or move that table away"
            )
        remove_leftovers(self._path, self._published)
        if self._table is None:
            return TableState()
        return TableState(
            version=int(self._table.version()),
            schema=delta_log.schema_of(self._table),
            numbers=delta_log.numbers_of(self._table),
            partition_by=tuple(self._table.metadata().partition_columns),
            bytes=delta_log.size_of(self._table),
        )

    def rows(self, spark: SparkSession) -> DataFrame:
        """See ``Target.rows``."""
        return delta_rows(spark, self._table)

    def publish(self, rows: DataFrame | pyarrow.Table | None, change: Change) -> Published:
        """See ``Target.publish``."""
        partition_by = change.partition_by
        if self._table is not None and change.kind != "replace":
            partition_by = tuple(self._table.metadata().partition_columns)
        check_variants(change.columns, self.place, "delta")
        check_partitions(partition_by, change.columns, self.place, has_decimals=False)
        if change.kind == "merge":
            if rows is not None and not is_arrow(rows):
                raise TypeError("a Delta table merges Arrow rows only")
            if self._table is None:
                change = _as_kind(change, "replace", partition_by)
            elif rows is None:
                change = _as_kind(change, "append", partition_by)
            elif not any("`" in name for name, _ in change.columns.fields):
                return self._merge(rows, _as_kind(change, "merge", partition_by))
            else:  # delta-rs can't parse a name with a backtick
                rows = merged(self._table.to_pyarrow_table(), rows, change.keys, change.newer)
                change = _as_kind(change, "replace", partition_by)
        return self._write(rows, _as_kind(change, change.kind, partition_by))

    def _write(self, rows: DataFrame | pyarrow.Table | None, change: Change) -> Published:
        """New files, then the commit that makes them count."""
        with data_folder(self._path, self._holds) as folder:
            write_parquet(rows, folder, change, change.partition_by)
            files = data_files(folder, self._path, change.partition_by)
            self._refuse_lost(value for file in files for value in file.partition.values())
            change.check()
            version = self._commit(lambda: self._make_version(files, change, folder.name), folder.name)
        return Published(version, sum(file.rows for file in files))

    def _refuse_lost(self, values: Iterable[object]) -> None:
        """Refuse values of partition columns that readers take for null.

        Raises:
            ExportError: there is one.
        """
        for lost in _READ_AS_NULL.intersection(values):
            raise ExportError(
                f"{self.place}: a partition column holds {lost or 'empty text'}, which Delta can't tell from null. "
                "Nothing was published.\nChoose another column to partition by, or the format parquet"
            )

    def _make_version(self, files: list[Any], change: Change, folder: str) -> None:
        if self._table is None:
            delta_log.create(self._path, files, change, folder, f"{MADE_BY} {self._source}")
            return
        if change.kind == "append":
            self._table = delta_log.add_columns(self._table, change.schema)
        elif list(change.partition_by) != self._table.metadata().partition_columns:
            delta_log.replace_layout(self._table, files, change, folder)
            return
        delta_log.write(self._table, files, change, folder, append=change.kind == "append")

    def _merge(self, rows: pyarrow.Table, change: Change) -> Published:
        """One merge by delta-rs; new columns come a version before it (its own way loses the table's description).

        Files of a merge that is killed or refused lie beside those of the table, where nobody can tell them from those
        that another program is about to commit: they are left to a vacuum.
        """
        for name in change.partition_by:
            self._refuse_lost(rows.column(name).unique().to_pylist())
        have = {name for name, _ in change.columns.fields}
        on = " AND ".join(f"t.{_quoted(key)} = s.{_quoted(key)}" for key in change.keys)
        newer = wins(change.newer, have, lambda name: f"s.{_quoted(name)}", lambda name: f"t.{_quoted(name)}")
        counts: dict[str, Any] = {}

        def merge(folder: str) -> None:
            self._table = delta_log.add_columns(self._table, change.schema)
            merger = self._table.merge(
                rows,
                on,
                source_alias="s",
                target_alias="t",
                commit_properties=delta_log.properties(change, folder),
            )
            matched = merger.when_matched_update_all(predicate=newer)
            counts.update(matched.when_not_matched_insert_all().execute())

        with data_folder(self._path, self._holds) as folder:
            change.check()
            version = self._commit(lambda: merge(folder.name), folder.name)
        return Published(version, int(counts.get("num_output_rows", 0)))

    def _commit(self, make: Any, folder: str) -> int:
        """Run what commits; the new version.

        An error after the commit itself (a checkpoint that found no room) is only told: the version is there.
        """
        deltalake = require("deltalake", extra="spark", needed_for=_NEEDED_FOR)
        try:
            make()
        except (deltalake.exceptions.DeltaError, delta_log.AlreadyThere, OSError) as error:
            if not self._is_current(folder):
                if "No space left" in str(error):
                    raise unwritable(self._path, OSError(errno.ENOSPC, "No space left on device")) from None
                raise ExportError(
                    f"{self.place}: the commit was refused ({_short(error)}): another export of this table was faster, "
                    "or the folder can't be written.\n"
                    "The table is as that other export left it. Run the export again"
                ) from None
            _log.warning("%s: published, but its log could not be tidied: %s", self.place, _short(error))
        return int(delta_log.open_delta(self._path).version())

    def _is_current(self, folder: str) -> bool:
        """Whether one of the newest versions is the one that was made with ``folder``."""
        try:
            table = delta_log.open_delta(self._path)
            return table is not None and any(one.get(delta_log.DATA) == folder for one in table.history(20))
        except Exception:
            return False

    def _holds(self, folder: Path) -> bool:
        """Whether the current version refers to files in ``folder``; also True when that can't be known."""
        try:
            table = delta_log.open_delta(self._path)
            return table is not None and any(folder in Path(file).parents for file in delta_log.table_files(table))
        except Exception:
            return True

    def _published(self) -> set[str]:
        """Names of the data folders that any version in the log refers to, the current one at least."""
        if self._table is None:
            return set()
        files = (Path(file).relative_to(self._path).parts[0] for file in delta_log.table_files(self._table))
        return {*files, *(str(one[delta_log.DATA]) for one in self._table.history() if delta_log.DATA in one)}


def _as_kind(change: Change, kind: Any, partition_by: tuple[str, ...]) -> Change:
    return replace(change, kind=kind, partition_by=partition_by)


def _quoted(name: str) -> str:
    """For delta-rs, which reads no doubled backtick as one (``columns.quoted`` is for Spark)."""
    return f"`{name}`"


def _short(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
