"""The DataSource class that Spark finds under ``singerlake``: texts in, plans out.

pyspark's base classes are needed to make ours, and pyspark is imported inside functions only: so the classes are made
here when Spark asks, once in a process, and bear the name under which another process finds them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from burler.lake.store import open_store
from burler.spark.lakesource.chosen import choose, load, united
from burler.spark.lakesource.options import (
    FOLLOW_OPTIONS,
    READ_OPTIONS,
    LakeOptions,
    Texts,
    follow_options,
    lake_options,
)
from burler.spark.lakesource.rows import read_task
from burler.spark.lakesource.shape import frame_columns
from burler.spark.lakesource.tasks import plan_tasks
from burler.spark.source.telling import one_line
from burler.spark.types import spark_schema

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql.types import StructType

FORMAT = "singerlake"
_WHERE = f"format '{FORMAT}'"


@functools.cache
def lake_source() -> Any:
    """The class; found by name as ``burler.spark.lakesource.DefaultSource`` in every process."""
    from pyspark.sql.datasource import DataSource

    class DefaultSource(DataSource):  # type: ignore[misc]
        """One stream of a lake: ``spark.read.format("singerlake").option("stream", "users").load("./lake")``."""

        @classmethod
        def name(cls) -> str:
            return FORMAT

        @one_line(where=_WHERE)
        def schema(self) -> StructType:
            options = _options(self.options)
            lake = load(open_store(options.url, must_exist=True), options)
            whole = united(lake, lake.versions, options)
            return spark_schema(frame_columns(whole.record, options, lake.stream))

        @one_line(where=_WHERE)
        def reader(self, schema: StructType) -> Any:
            return lake_reader()(_options(self.options, batch=True), schema)

        def streamReader(self, schema: StructType) -> Any:
            from burler.spark.streaming.lakestream import stream_reader

            return stream_reader(self.options, schema)

    DefaultSource.__module__, DefaultSource.__qualname__ = "burler.spark.lakesource", "DefaultSource"
    return DefaultSource


def _options(given: Any, *, batch: bool = False) -> LakeOptions:
    """``schema()`` is asked for streams too, so it lets their options pass, where they are right."""
    if not batch:
        follow_options(Texts(given, (*READ_OPTIONS, *FOLLOW_OPTIONS), format=FORMAT))
    return lake_options(Texts(given, READ_OPTIONS, also=() if batch else FOLLOW_OPTIONS, format=FORMAT))


@functools.cache
def lake_reader() -> Any:
    """The class of batch readers."""
    from pyspark.sql.datasource import DataSourceReader, InputPartition

    class LakeReader(DataSourceReader):  # type: ignore[misc]
        """Plans on the driver, from one reading of the manifest; reads on executors."""

        def __init__(self, options: LakeOptions, schema: StructType) -> None:
            self._options = options
            self._schema = schema

        @one_line(where=_WHERE)
        def partitions(self) -> list[Any]:
            options = self._options
            lake = load(open_store(options.url, must_exist=True), options)
            chosen = choose(lake, options)
            tasks = plan_tasks(lake, chosen.files, chosen.active, self._schema, options)
            # Spark reads a plan without partitions as one partition of None.
            return [InputPartition(task) for task in tasks] or [InputPartition(None)]

        def read(self, partition: Any) -> Iterator[pyarrow.RecordBatch]:
            with one_line(where=_WHERE):
                yield from () if partition.value is None else read_task(partition.value)

    LakeReader.__module__, LakeReader.__qualname__ = __name__, "LakeReader"
    return LakeReader


def __getattr__(name: str) -> Any:
    if name != "LakeReader":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return lake_reader()
