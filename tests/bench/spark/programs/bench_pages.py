"""A burler app and a bare Spark DataSource that read the same pages of dicts: ``BENCH_ROWS`` rows in so many
``BENCH_PARTS``.

The bare one is what people write who know how: date-times parsed by ``fromisoformat``, the rest handed to
``RecordBatch.from_pylist`` with Spark's own schema. It selects nothing and checks nothing.
"""

from __future__ import annotations

import datetime as dt
import os
import time
from typing import TYPE_CHECKING, Any

import standard

import burler

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = int(os.environ.get("BENCH_ROWS", "100000"))
PARTS = int(os.environ.get("BENCH_PARTS", "2"))
WAIT = float(os.environ.get("BENCH_WAIT", "1"))

tap = burler.tap("tap-pages")


def pages_of(part: int) -> Iterator[list[dict[str, Any]]]:
    """The pages of one part: each has as many, and no two have the same."""
    count = -(-ROWS // standard.PAGE_ROWS)
    for number in range(part, count, PARTS):
        yield standard.page(number, min(standard.PAGE_ROWS, ROWS - number * standard.PAGE_ROWS))


@tap.partitions("std", key="part")
def std_parts() -> list[dict[str, int]]:
    """The parts."""
    return [{"part": number} for number in range(PARTS)]


@tap.sync("std", key_properties="id", schema=standard.SCHEMA)
def std(partition: dict[str, int]) -> Iterator[list[dict[str, Any]]]:
    """Their pages."""
    yield from pages_of(partition["part"])


@tap.partitions("waiting", key="part")
def waiting_parts() -> list[dict[str, int]]:
    """Eight that wait."""
    return [{"part": number} for number in range(8)]


@tap.sync("waiting", key_properties="id", schema={"properties": {"id": {"type": "integer"}}})
def waiting(partition: dict[str, int]) -> Iterator[dict[str, int]]:
    """One row, after a while."""
    time.sleep(WAIT)
    yield {"id": partition["part"]}


def bare_batches(part: int, schema: Any) -> Iterator[Any]:
    """The RecordBatches of a part, the bare way."""
    import pyarrow as pa

    for page in pages_of(part):
        for row in page:
            row["ts"] = dt.datetime.fromisoformat(row["ts"])
        yield pa.RecordBatch.from_pylist(page, schema=schema)


def spark_schema() -> Any:
    """The columns, as Spark names their types."""
    from pyspark.sql import types as T

    text, whole, real = T.StringType(), T.LongType(), T.DoubleType()
    nested = T.StructType().add("x", whole).add("y", text).add("w", real)
    made = T.StructType().add("id", whole)
    for name in ("a", "b", "c", "email", "long"):
        made.add(name, text)
    made.add("f1", real).add("f2", real).add("ok", T.BooleanType()).add("ts", T.TimestampType())
    return made.add("nested", nested).add("arr", T.ArrayType(whole))


def bare_source() -> type[Any]:
    """The bare DataSource, of whichever pyspark there is."""
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
    from pyspark.sql.pandas.types import to_arrow_schema

    class Reader(DataSourceReader):
        def __init__(self, schema: Any) -> None:
            self.schema = schema

        def partitions(self) -> list[InputPartition]:
            return [InputPartition(number) for number in range(PARTS)]

        def read(self, partition: InputPartition) -> Iterator[Any]:
            import bench_pages

            return bench_pages.bare_batches(partition.value, to_arrow_schema(self.schema, timezone="UTC"))

    class Bare(DataSource):
        @classmethod
        def name(cls) -> str:
            return "bare"

        def schema(self) -> Any:
            return spark_schema()

        def reader(self, schema: Any) -> Any:
            return Reader(schema)

    return Bare
