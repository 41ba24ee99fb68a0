"""Tables of plain files: Parquet, or what else Spark writes (ORC, JSON, CSV, ...), with a pointer to the newest
version.

A folder is never overwritten, since readers would see it empty and a failed job would lose it.
Each publication writes a data folder of its own and then a new version (``pointer``) with the list of all its files.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from burler.errors import ExportError, StorageError, UsageError
from burler.spark.formats import pointer
from burler.spark.formats.base import Change, Published, TableState, Target
from burler.spark.formats.checking import check_partitions, refuse_unheld
from burler.spark.formats.folders import data_folder, pending, refuse_other_formats, remove_leftovers, unwritable
from burler.spark.formats.footers import data_files
from burler.spark.formats.merging import MERGE_BYTES, merged
from burler.spark.formats.pointer import TableFile, Version
from burler.spark.formats.reading import version_rows
from burler.spark.formats.roundtrip import Written
from burler.spark.formats.writing import in_order, is_arrow, write_files, write_parquet

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

FILE_FORMATS = ("parquet", "orc", "json", "csv", "avro", "xml", "text")
KEEP = "keep_versions"
_KEEP_VERSIONS = 3
_log = logging.getLogger("burler.spark.formats")


def keep_versions(options: Mapping[str, str]) -> int:
    """The option of that name.

    Raises:
        UsageError: it is no number from 1 on.
    """
    said = options.get(KEEP, str(_KEEP_VERSIONS))
    if not said.isdigit() or int(said) < 1:
        raise UsageError(f"option {KEEP}={said}: it must be a number from 1 on")
    return int(said)


class FileTarget(Target):
    """The table in a folder, made of files of one format, from one stream."""

    name: ClassVar[str] = "files"

    def __init__(self, kind: str, place: str, source: str, options: Mapping[str, str]) -> None:
        """``place``: the table's folder. ``source``: ``tap/stream``. ``options``: Spark's for the format, and
        ``keep_versions``."""
        self.place = place
        self._kind = kind
        self._path = Path(place)
        self._source = source
        self._keep = keep_versions(options)
        self._options = {key: value for key, value in options.items() if key != KEEP}
        self._version: Version | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._kind!r}, {self.place!r}, {self._source!r})"

    def open(self) -> TableState:
        """See ``Target.open``. Mends ``_latest.json`` where a kill came before it was written."""
        if self._path.exists() and not self._path.is_dir():
            raise ExportError(f"{self.place} is no folder, so it can't hold a table. Choose another OUT")
        self._version = found = pointer.newest(self._path)
        if found is None:
            self._refuse_strangers()
        elif (found.source, found.format) != (self._source, self._kind):
            raise ExportError(
                f"{self.place} holds a table of format {found.format} made from {found.source}, not one of format "
                f"{self._kind} from {self._source}; it stays untouched. Choose another OUT, or move that table away"
            )
        remove_leftovers(self._path, self._used)
        if found is None:
            return TableState()
        try:
            pointer.point(self._path)
            self._remove_unused()
        except OSError as error:
            raise unwritable(self._path, error) from None
        return TableState(found.number, found.schema, found.numbers, found.partition_by, found.size)

    def rows(self, spark: SparkSession) -> DataFrame:
        """See ``Target.rows``."""
        if self._version is None:
            raise UsageError(f"{self.place} holds no table yet")
        return version_rows(spark, self._path, self._version)

    def publish(self, rows: DataFrame | pyarrow.Table | None, change: Change) -> Published:
        """See ``Target.publish``."""
        before = self._version
        partition_by = before.partition_by if before is not None and change.kind != "replace" else change.partition_by
        check_partitions(partition_by, change.columns, self.place)
        if change.kind == "merge":
            rows = self._merged(rows, change)
        kept: tuple[TableFile, ...] = ()
        if before is not None and (change.kind == "append" or (change.kind == "merge" and rows is None)):
            kept = before.files
            if rows is not None and self._kind == "csv" and before.schema != change.schema:
                # Fields of a line are told by their place: a file with fewer can't stand beside one with more.
                rows, kept = self.rows(rows.sparkSession).unionByName(rows, allowMissingColumns=True), ()
        with data_folder(self._path, self._holds) as folder:
            files = self._write(rows, folder, change, partition_by)
            change.check()
            version = Version(
                number=0 if before is None else before.number + 1,
                source=self._source,
                format=self._kind,
                schema=change.schema,
                files=(*kept, *files),
                numbers=dict(change.numbers),
                partition_by=partition_by,
                options=self._options,
                metadata=dict(change.metadata),
            )
            self._publish(version)
        return Published(version.number, sum(file.rows or 0 for file in files))

    def _write(self, rows: Any, folder: Path, change: Change, partition_by: tuple[str, ...]) -> list[TableFile]:
        """Write the rows; the files they are in."""
        if rows is None:
            return []
        refuse_unheld(change.columns, self.place, self._kind)
        written = Written(in_order(rows, change), change.columns)
        write_files(written.frame, folder, change, self._kind, self._options, partition_by)
        found = sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else []
        files = []
        for path in found:
            if path.name.startswith((".", "_")):
                path.unlink()
            else:
                files.append(TableFile(path.relative_to(self._path).as_posix(), path.stat().st_size))
        if files:
            # Read once: what does not come back as it was must not be published.
            version = Version(0, "", self._kind, change.schema, tuple(files), {}, options=self._options)
            count = written.against(version_rows(rows.sparkSession, self._path, version), self.place, self._kind)
            files[0] = TableFile(files[0].path, files[0].size, count)
        return files

    def _merged(self, rows: Any, change: Change) -> Any:
        raise TypeError(f"tables of format {self._kind} are not merged: read their rows and replace them")

    def _publish(self, version: Version) -> None:
        """The version, then the pointer; an error behind the first is only told."""
        try:
            pointer.publish(self._path, version)
        except pointer.Taken:
            raise ExportError(
                f"{self.place}: another export of this table was faster. Nothing was published.\n"
                "The table is as that other export left it. Run the export again"
            ) from None
        except OSError as error:
            raise unwritable(self._path, error) from None
        try:
            pointer.point(self._path)
            self._remove_unused()
        except (OSError, StorageError) as error:
            _log.warning("%s: published, but its folder could not be tidied: %s", self.place, error)

    def _refuse_strangers(self) -> None:
        """A folder with data that no export made is not to be mixed with ours."""
        refuse_other_formats(self._path, pointer.VERSIONS)
        strange = sorted(one.name for one in self._path.glob("*") if not one.name.startswith(("_", ".", "data-")))
        if strange:
            raise ExportError(
                f"{self.place} holds something that was not made by burler export ({strange[0]}); it stays untouched. "
                "Choose another OUT, or move it away"
            )

    def _used(self) -> set[str]:
        """Names of the data folders that some version uses."""
        used: set[str] = set()
        for number in pointer.numbers(self._path):
            used |= pointer.read_version(pointer.version_path(self._path, number)).folders()
        return used

    def _holds(self, folder: Path) -> bool:
        """Whether a version refers to ``folder``; also True when that can't be known."""
        try:
            return folder.name in self._used()
        except ExportError:
            return True

    def _remove_unused(self) -> None:
        """Forget versions beyond the last ``keep_versions``, and remove data folders that none uses any more.

        The order matters: a folder that was there before the notes and the versions were read, and is in neither, is
        nobody's.
        """
        for number in pointer.numbers(self._path)[: -self._keep]:
            pointer.version_path(self._path, number).unlink(missing_ok=True)
        folders = [path for path in self._path.glob("data-*") if path.is_dir()]
        waiting = pending(self._path)
        used = self._used()
        for folder in folders:
            if folder.name not in used and folder.name not in waiting:
                shutil.rmtree(folder, ignore_errors=True)


class ParquetTarget(FileTarget):
    """The same for Parquet, which pyarrow reads and writes too: small increments need no Spark."""

    name: ClassVar[str] = "parquet"
    appends_arrow: ClassVar[bool] = True

    @property
    def merges_arrow(self) -> bool:  # type: ignore[override]
        """While the table is small enough to be merged in this process."""
        return self._version is None or self._version.size <= MERGE_BYTES

    def _write(self, rows: Any, folder: Path, change: Change, partition_by: tuple[str, ...]) -> list[TableFile]:
        write_parquet(rows, folder, change, partition_by)
        return [TableFile(file.path, file.size, file.rows) for file in data_files(folder, self._path, partition_by)]

    def _merged(self, rows: Any, change: Change) -> Any:
        if rows is None:
            return None
        if not is_arrow(rows):
            raise TypeError("a Parquet table merges Arrow rows only")
        if self._version is None:
            return rows
        from burler.formats.parquet import read_table

        old = read_table([self._path / file.path for file in self._version.files])
        return rows if old is None else merged(old, rows, change.keys, change.newer)
