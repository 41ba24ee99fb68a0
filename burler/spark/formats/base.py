"""What every table format promises to an export: its state, its rows, and one atomic, numbered publication.

An export (``burler.spark.export``) computes rows and knows what they mean;
a format knows how to make them a new whole version of a table that readers see at once or not at all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from burler.records.columns.types import StructOf

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

Kind = Literal["append", "replace", "merge"]


@dataclass(frozen=True, slots=True)
class TableState:
    """A table as it was when an export began; a publication succeeds only if it still is.

    ``version``: what readers see now; None where there is no table yet (numbers and schema are empty then).
    ``schema``: Spark's JSON form of the columns. ``numbers``: what the last publication stored beside its rows, by
    name: that is how an export knows after a crash what the table holds (exactly once).
    ``partition_by``: the table's partition columns. ``bytes``: size of its data, 0 where that is not known.
    """

    version: int | None = None
    schema: Mapping[str, Any] | None = None
    numbers: Mapping[str, int] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Change:
    """What a publication is to do.

    ``kind``: ``append`` adds rows, ``replace`` makes the given rows the whole content (and ``columns`` the schema),
    ``merge`` takes one row a key and keeps, for each key, the newer of the row given and the row that is there.
    ``columns``: all columns of the table afterwards, in order; ``append`` and ``merge`` may add columns at the end
    (null in older rows), ``replace`` may change anything.
    ``keys``, ``newer``: for ``merge``, the key columns and the columns that say which row is newer: compared one after
    the other, null is oldest, and where all are equal the given row wins.
    ``numbers``: stored in the same atomic step. ``metadata``: texts for the table's history, where it has one.
    ``partition_by``: for a table that is made or replaced. ``file_count``: how many files to aim at (None: as the
    frame's partitions are).
    ``check``: called once after all rows are written and before they are published; what it raises stops it all.
    """

    kind: Kind
    columns: StructOf
    schema: Mapping[str, Any]
    numbers: Mapping[str, int]
    keys: tuple[str, ...] = ()
    newer: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    file_count: int | None = None
    check: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True)
class Published:
    """The version that readers see now, and how many rows were written for it (those of rewritten files too)."""

    version: int
    rows_written: int


class Target(ABC):
    """One table of one stream, open for one export. Made by ``formats.opening.open_target``."""

    name: ClassVar[str]
    merges_frames: ClassVar[bool] = False
    """Whether ``publish`` takes a DataFrame for ``merge``. Where not, an export reads ``rows`` and replaces all."""
    merges_arrow: ClassVar[bool] = False
    """Whether ``publish`` takes a pyarrow Table for ``merge``: small increments then need no Spark."""
    appends_arrow: ClassVar[bool] = False
    """The same for ``append``."""
    place: str
    """Path or name of the table, as a person would write it."""

    @abstractmethod
    def open(self) -> TableState:
        """The state now. Removes what killed exports left behind.

        Raises:
            ExportError: the place can't hold a table, or holds one that this stream's export did not make.
            MissingExtra: a package is not installed.
        """

    @abstractmethod
    def rows(self, spark: SparkSession) -> DataFrame:
        """The table's present content, as it was at ``open``, with the columns it has."""

    @abstractmethod
    def publish(self, rows: DataFrame | pyarrow.Table | None, change: Change) -> Published:
        """Write ``rows`` (None: none), call ``change.check``, then make them visible in one atomic step.

        Raises:
            ExportError: somebody else has published since ``open``, or the table can't be written. Nothing is
                visible then, and the files written are removed.
        """
