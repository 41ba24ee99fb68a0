"""The classes that Spark calls for ``format("burler")``. They are made when Spark asks for them: importing this loads
no pyspark, and what they do stands in the modules beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from burler.extras import require

if TYPE_CHECKING:
    from burler.spark.source.planning import Found
    from burler.spark.source.pushdown import Narrowed


def make_classes(module: str) -> dict[str, type[Any]]:
    """``DefaultSource`` and its readers.

    Args:
        module: where their names are found: they are pickled by these.

    Raises:
        MissingExtra: pyspark is not installed.
    """
    api: Any = require("pyspark.sql.datasource", extra="spark", needed_for="burler.spark.source")

    reader, pushing = _readers(api)
    made = {"DefaultSource": _source(api, reader, pushing), "Reader": reader, "PushingReader": pushing}
    for name, cls in made.items():
        cls.__module__, cls.__qualname__ = module, name
    return made


def _readers(api: Any) -> tuple[type[Any], type[Any]]:
    """The reader, and the one that looks at filters."""

    class Reader(api.DataSourceReader):  # type: ignore[misc]
        """Lists the tasks of a DataFrame on the driver, and reads one of them on an executor."""

        def __init__(self, found: Found) -> None:
            self._found = found
            self._narrowed: Narrowed | None = None

        def partitions(self) -> list[Any]:
            """One for each task; one that reads nothing where there is none."""
            from burler.spark.source.telling import one_line

            with one_line(self._found.config):
                found = self._found if self._narrowed is None else self._found.narrowed_by(self._narrowed)
                tasks = found.tasks()
            return [api.InputPartition(task) for task in tasks] or [api.InputPartition(None)]

        def read(self, partition: Any) -> Iterator[Any]:
            """Yield the RecordBatches of a task."""
            from burler.spark.source.tasks import run_task

            return iter(()) if partition.value is None else run_task(partition.value)

    class PushingReader(Reader):
        """A reader that looks at filters: Spark asks it only where the user has switched that on, and complains of it
        where not."""

        def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
            """Take in what filters say; all of them stay Spark's to apply."""
            from burler.spark.source.pushdown import narrowed

            self._narrowed = narrowed(filters, self._found.declared.replication_key)
            return filters

    return Reader, PushingReader


def _source(api: Any, reader: type[Any], pushing: type[Any]) -> type[Any]:
    """What ``format("burler")`` stands for."""

    class DefaultSource(api.DataSource):  # type: ignore[misc]
        """Streams of burler apps and of any Singer tap's command, as DataFrames and streams."""

        _found: Found | None = None

        @classmethod
        def name(cls) -> str:
            """The format's name."""
            return "burler"

        def schema(self) -> Any:
            """The columns of the stream, by discovery, which runs once for a DataFrame."""
            from burler.spark.source.telling import one_line

            if "spool" in self.options:  # a stream's columns are those of its spool
                from burler.spark.streaming.appstream import stream_schema

                with one_line():
                    return stream_schema(self.options)

            with one_line():
                return self._stream().declared.spark()

        def reader(self, schema: Any) -> Any:
            """What lists the tasks, and reads one of them."""
            from burler.errors import UsageError
            from burler.spark.source.telling import one_line

            with one_line():
                if "spool" in self.options:
                    raise UsageError("format 'burler': option 'spool' is one of readStream. Leave it out here.")
                found = self._stream().with_columns(schema)
            return (pushing if found.options.pushdown else reader)(found)

        def streamReader(self, schema: Any) -> Any:
            """The same tap as a stream."""
            from burler.spark.streaming.appstream import stream_reader

            return stream_reader(self.options, schema)

        def _stream(self) -> Found:
            from burler.spark.source.options import parse
            from burler.spark.source.planning import find_stream

            if self._found is None:
                self._found = find_stream(parse(self.options))
            return self._found

    return DefaultSource
