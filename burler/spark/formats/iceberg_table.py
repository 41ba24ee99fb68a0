"""An Iceberg table: Parquet files that Spark or pyarrow wrote, registered by pyiceberg in one commit.

The numbers stand in the table's properties and in the snapshot's summary, set by the same
commit as the files. pyiceberg's own retries of refused commits are off: laid on top of somebody else's rows, a commit
would hold rows twice.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from burler.config.secrets import masked
from burler.errors import ExportError, UsageError
from burler.extras import require
from burler.spark.formats import iceberg_catalog as catalogs
from burler.spark.formats.base import Change, Published, TableState, Target
from burler.spark.formats.checking import check_partitions, check_variants, refuse_dotted_twins
from burler.spark.formats.folders import data_folder, refuse_other_formats, remove_leftovers
from burler.spark.formats.footers import DataFile, data_files
from burler.spark.formats.iceberg_catalog import Names, told
from burler.spark.formats.iceberg_rows import DATA, NUMBERS, SCHEMA, SOURCE, iceberg_rows, path_of, tasks_of
from burler.spark.formats.merging import MERGE_BYTES, merged
from burler.spark.formats.writing import is_arrow, write_parquet
from burler.spark.types import arrow_schema

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

_NO_RETRIES = {"commit.retry.num-retries": "0", "format-version": "2"}
_NEEDED_FOR = "burler export --format iceberg"


class IcebergTarget(Target):
    """The Iceberg table of one stream, in the catalog that the options name."""

    name: ClassVar[str] = "iceberg"
    appends_arrow: ClassVar[bool] = True

    def __init__(self, place: str, source: str, options: Mapping[str, str]) -> None:
        """``place``: ``out/<tap>/<stream>``; tap and stream name the table. ``options``: ``catalog`` (a name),
        ``namespace``, and the catalog's own properties."""
        self._names = Names(place, options)
        self.place = str(self._names)
        self._source = source
        self._catalog: Any = None
        self._table: Any = None

    def __repr__(self) -> str:
        return f"IcebergTarget({self.place!r}, {self._source!r})"

    @property
    def merges_arrow(self) -> bool:  # type: ignore[override]
        """While the table is small enough to be merged in this process."""
        return self._table is None or sum(file.file_size_in_bytes for file in self._files()) <= MERGE_BYTES

    def open(self) -> TableState:
        """See ``Target.open``."""
        self._catalog = catalogs.open_catalog(self._names)
        try:
            self._table = catalogs.load(self._catalog, self._names)
            if self._table is None:
                return TableState()
            said = self._table.properties
            if said.get(SOURCE) != self._source:
                raise ExportError(
                    f"{self.place} is a table that was not made by burler export from {self._source}; it stays "
                    "untouched. Choose another namespace, or drop that table"
                )
            remove_leftovers(self._folder(), self._published)
            schema = json.loads(said[SCHEMA])
            return TableState(
                version=int(self._table.metadata.last_sequence_number),
                schema=schema,
                # Columns that somebody else has changed are not ours to go on from: made anew.
                numbers=json.loads(said[NUMBERS]) if self._has_columns_of(schema) else {},
                partition_by=self._partition_by(),
                bytes=sum(file.file_size_in_bytes for file in self._files()),
            )
        finally:
            catalogs.close(self._catalog)

    def rows(self, spark: SparkSession) -> DataFrame:
        """See ``Target.rows``."""
        if self._table is None:
            raise UsageError(f"{self.place} is no table yet")
        try:
            return iceberg_rows(spark, self._table)
        finally:
            catalogs.close(self._catalog)

    def publish(self, rows: DataFrame | pyarrow.Table | None, change: Change) -> Published:
        """See ``Target.publish``."""
        fresh = self._table is None
        kind = "replace" if fresh and change.kind == "merge" else change.kind
        partition_by = change.partition_by if fresh or kind == "replace" else self._partition_by()
        check_variants(change.columns, self.place, "iceberg")
        refuse_dotted_twins(change.columns, self.place)
        check_partitions(partition_by, change.columns, self.place)
        try:
            if kind == "merge" and rows is not None:
                rows, kind = self._merged(rows, change), "replace"
            transaction = self._created(change) if fresh else self._table.transaction()
            with data_folder(self._folder(), self._holds) as folder:
                write_parquet(rows, folder, change, partition_by)
                files = data_files(folder, self._folder(), partition_by)
                change.check()
                self._commit(transaction, files, change, partition_by, folder.name, replace=kind == "replace")
            return Published(int(self._table.metadata.last_sequence_number), sum(file.rows for file in files))
        finally:
            catalogs.close(self._catalog)

    def _created(self, change: Change) -> Any:
        """The first transaction: the table comes to be with its rows."""
        with told(f"{self.place} can't be made"):
            self._catalog.create_namespace_if_not_exists(self._names.namespace)
            if self._names.is_own:
                refuse_other_formats(Path(self._names.location), "metadata")
            location = {"location": f"file://{self._names.location}"} if self._names.is_own else {}
            made = self._catalog.create_table_transaction(
                self._names.identifier, schema=arrow_schema(change.columns), properties=_NO_RETRIES, **location
            )
        self._table = made._table
        return made

    def _commit(
        self,
        transaction: Any,
        files: Sequence[DataFile],
        change: Change,
        partition_by: tuple[str, ...],
        data: str,
        *,
        replace: bool,
    ) -> None:
        """Everything in one commit: columns, partitions, files, numbers.

        An error after the commit itself (a reply that got lost) is none if the table says that it is there.
        """
        paths = [f"file://{self._folder() / file.path}" for file in files]
        numbers = json.dumps(dict(change.numbers))
        summary = {**change.metadata, DATA: data, NUMBERS: numbers}
        failure = ""
        try:
            if replace:
                made_before = transaction.table_metadata.current_snapshot_id is not None
                if made_before and self._files():  # pyiceberg warns of a deletion that finds nothing
                    everything = require("pyiceberg.expressions", extra="iceberg", needed_for=_NEEDED_FOR).AlwaysTrue()
                    transaction.delete(everything, snapshot_properties=dict(summary))
                _replace(transaction, change, partition_by)
            else:
                _grow(transaction, change)
            about = {SOURCE: self._source, NUMBERS: numbers, SCHEMA: json.dumps(dict(change.schema)), DATA: data}
            transaction.set_properties({**about, **_NO_RETRIES} if replace else about)
            if paths:
                transaction.add_files(paths, snapshot_properties=summary, check_duplicate_files=False)
            else:  # a snapshot all the same: by it a second publisher sees that the table has changed
                with transaction.update_snapshot(snapshot_properties=summary).fast_append():
                    pass
            transaction.commit_transaction()
        except Exception as error:
            failure = masked(f"{type(error).__name__}: {error}").partition("\n")[0][:300]
        table = catalogs.load(self._catalog, self._names)
        if failure and (table is None or data not in _snapshots(table)):
            raise ExportError(
                f"{self.place}: the commit was refused ({failure}): another export of this table was faster, or the "
                "catalog can't be written.\n"
                "The table is as it was, or as that other export left it. Run the export again"
            )
        self._table = table

    def _merged(self, rows: Any, change: Change) -> Any:
        if not is_arrow(rows):
            raise TypeError("an Iceberg table merges Arrow rows only")
        from burler.formats.parquet import read_table

        old = read_table([path_of(file.file_path) for file in self._files()])
        return rows if old is None else merged(old, rows, change.keys, change.newer)

    def _folder(self) -> Path:
        return catalogs.local_folder(self._table.location(), self._names)

    def _files(self) -> list[Any]:
        return [task.file for task in tasks_of(self._table)]

    def _partition_by(self) -> tuple[str, ...]:
        schema = self._table.schema()
        return tuple(schema.find_column_name(one.source_id) for one in self._table.spec().fields)

    def _has_columns_of(self, schema: Mapping[str, Any]) -> bool:
        return [one["name"] for one in schema["fields"]] == [one.name for one in self._table.schema().fields]

    def _holds(self, folder: Path) -> bool:
        """Whether a snapshot refers to ``folder``; also True when that can't be known."""
        try:
            table = catalogs.load(self._catalog, self._names)
        except ExportError:
            return True
        return table is not None and folder.name in _snapshots(table)

    def _published(self) -> set[str]:
        """Names of the data folders that any snapshot refers to."""
        return _snapshots(self._table) | {Path(path_of(file.file_path)).parent.name for file in self._files()}


def _snapshots(table: Any) -> set[str]:
    """Names of the data folders that the table's snapshots were made with."""
    summaries = [one.summary for one in table.metadata.snapshots if one.summary is not None]
    return {one.additional_properties.get(DATA, "") for one in summaries}


def _grow(transaction: Any, change: Change) -> None:
    """New columns at the end."""
    have = {field.name for field in transaction.table_metadata.schema().fields}
    new = [field for field in _schema(change).fields if field.name not in have]
    if new:
        with transaction.update_schema() as update:
            for field in new:
                update.add_column((field.name,), field.field_type)


def _replace(transaction: Any, change: Change, partition_by: tuple[str, ...]) -> None:
    """The columns and partitions that the change has."""
    transforms = require("pyiceberg.transforms", extra="iceberg", needed_for=_NEEDED_FOR)
    metadata, new = transaction.table_metadata, _schema(change)
    have = metadata.schema()
    same = [(one.name, str(one.field_type)) for one in have.fields] == _plain(new)
    spec = tuple(have.find_column_name(one.source_id) for one in metadata.spec().fields)
    if same and spec == partition_by:
        return
    if spec:
        with transaction.update_spec() as update:
            for field in metadata.spec().fields:
                update.remove_field(field.name)
    if not same:
        with transaction.update_schema(allow_incompatible_changes=True) as update:
            for field in have.fields:
                update.delete_column((field.name,))
        with transaction.update_schema(allow_incompatible_changes=True) as update:
            for field in new.fields:
                update.add_column((field.name,), field.field_type)
    if partition_by:
        count = len(metadata.partition_specs)
        with transaction.update_spec() as update:
            for name in partition_by:
                update.add_field(name, transforms.IdentityTransform(), f"{name}_part{count}")


def _schema(change: Change) -> Any:
    """The columns as an Iceberg schema; its field ids mean nothing."""
    schemas = require("pyiceberg.io.pyarrow", extra="iceberg", needed_for=_NEEDED_FOR)
    return schemas._pyarrow_to_schema_without_ids(arrow_schema(change.columns))


def _plain(schema: Any) -> list[tuple[str, str]]:
    return [(one.name, str(one.field_type)) for one in schema.fields]
