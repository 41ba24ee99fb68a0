"""Spark's stream reader over whatever follows commits: a lake's stream, or the spool of an app."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from burler.spark.lakesource.options import FollowOptions
from burler.spark.lakesource.rows import read_task
from burler.spark.lakesource.tasks import ReadTask
from burler.spark.source.telling import one_line
from burler.spark.streaming.offsets import Offset, from_wire

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql.types import StructType

_WHERE = "readStream"


class Follower(Protocol):
    """What a reader of Spark's asks; it lives on the driver as long as the query."""

    @property
    def follow(self) -> FollowOptions:
        """The limits of a batch."""

    def initial(self) -> Offset:
        """Where a new query begins."""

    def latest(self, start: Offset, *, limited: bool) -> Offset:
        """How far the next batch goes; ``start`` itself where there is nothing new."""

    def prepare_available_now(self) -> None:
        """The query takes what is there now, and ends."""

    def tasks(self, start: Offset, end: Offset, schema: StructType) -> list[ReadTask]:
        """What is read for the rows of (start, end]: the same rows whenever it is asked."""

    def committed(self, end: Offset) -> None:
        """The sink has everything up to here."""

    def stop(self) -> None:
        """The query has ended."""


@functools.cache
def follower_reader() -> Any:
    """The class of stream readers; the kind that this pyspark knows."""
    from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

    class FollowerReader(DataSourceStreamReader):  # type: ignore[misc]
        """Spark's methods, over a follower.

        It is made when it is first asked something: what goes wrong while the reader itself is made, Spark buries under
        an error of its own.
        """

        def __init__(self, make: Callable[[], Follower], schema: StructType) -> None:
            self._make = make
            self._follower: Follower | None = None
            self.schema = schema

        @property
        def follower(self) -> Follower:
            if self._follower is None:
                self._follower = self._make()
            return self._follower

        @one_line(where=_WHERE)
        def initialOffset(self) -> dict[str, Any]:
            return self.follower.initial().to_wire()

        @one_line(where=_WHERE)
        def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Any]:
            if start == end:
                return []
            tasks = self.follower.tasks(from_wire(start), from_wire(end), self.schema)
            return [InputPartition(task) for task in tasks]

        def read(self, partition: Any) -> Iterator[pyarrow.RecordBatch]:
            with one_line(where=_WHERE):
                yield from read_task(partition.value)

        @one_line(where=_WHERE)
        def commit(self, end: dict[str, Any]) -> None:
            self.follower.committed(from_wire(end))

        def stop(self) -> None:
            if self._follower is not None:
                self._follower.stop()

    made = _with_limits(FollowerReader)
    made.__module__, made.__qualname__ = __name__, "FollowerReader"
    return made


def _with_limits(reader: Any) -> Any:
    """The reader with limits and availableNow, or, before pyspark 4.2, with the plain question alone."""
    try:
        from pyspark.sql.streaming.datasource import (
            ReadAllAvailable,
            ReadMaxBytes,
            ReadMaxFiles,
            ReadMaxRows,
            SupportsTriggerAvailableNow,
        )
    except ImportError:
        return _plain(reader)

    class LimitedReader(reader, SupportsTriggerAvailableNow):  # type: ignore[misc]
        """Asks for no more than a batch may hold."""

        @one_line(where=_WHERE)
        def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
            follower: Follower = self.follower
            limited = not isinstance(limit, ReadAllAvailable)
            return follower.latest(from_wire(start), limited=limited).to_wire()

        @one_line(where=_WHERE)
        def getDefaultReadLimit(self) -> Any:
            # Which one does not matter: all limits of the options are kept, wherever Spark lets limits be kept.
            follow = self.follower.follow
            for made, value in (
                (ReadMaxRows, follow.max_rows),
                (ReadMaxFiles, follow.max_files),
                (ReadMaxBytes, follow.max_bytes),
            ):
                if value is not None:
                    return made(value)
            return ReadAllAvailable()

        @one_line(where=_WHERE)
        def prepareForTriggerAvailableNow(self) -> None:
            self.follower.prepare_available_now()

    return LimitedReader


def _plain(reader: Any) -> Any:
    class PlainReader(reader):  # type: ignore[misc]
        """Remembers where it was: older Sparks do not say."""

        _start: Offset | None = None

        @one_line(where=_WHERE)
        def latestOffset(self) -> dict[str, Any]:
            follower: Follower = self.follower
            return follower.latest(self._start or follower.initial(), limited=False).to_wire()

        def commit(self, end: dict[str, Any]) -> None:
            self._start = from_wire(end)
            super().commit(end)

    return PlainReader


def __getattr__(name: str) -> Any:
    if name != "FollowerReader":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return follower_reader()
