"""A PostgreSQL table as a DataFrame, without a JDBC driver: one task reads it by a server-side cursor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from burler.extras import require
from burler.spark.columns import named
from burler.spark.confs import job_confs
from burler.spark.formats import postgres_sql as sql

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class _Read:
    """What the task needs to know; the password in it is never shown."""

    connection: Mapping[str, str] = field(repr=False)
    statement: str
    schema: Any

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow as arrow

        for _ in batches:
            pass
        psycopg = require("psycopg", extra="sql", needed_for="burler export --format jdbc")
        with psycopg.connect(**self.connection) as connection:
            connection.execute("SET timezone = 'UTC'")
            with connection.cursor(name="burler") as cursor:
                cursor.execute(self.statement)
                while found := cursor.fetchmany(_ROWS):
                    columns = zip(*found, strict=True)
                    yield arrow.RecordBatch.from_arrays(
                        [arrow.array(list(one), f.type) for one, f in zip(columns, self.schema, strict=True)],
                        schema=self.schema,
                    )


def postgres_rows(
    spark: SparkSession, connection: Mapping[str, str], table: str, schema: Mapping[str, Any]
) -> DataFrame:
    """The rows of a table whose columns an export described.

    Args:
        connection: psycopg's parameters. table: its quoted name. schema: Spark's JSON form of the columns.
    """
    from pyspark.sql import functions as f
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import ArrayType, MapType, StringType, StructField, StructType

    wanted = StructType.fromJson(dict(schema))
    nested = {one.name for one in wanted if isinstance(one.dataType, ArrayType | MapType | StructType)}
    plain = StructType([StructField(one.name, StringType() if one.name in nested else one.dataType) for one in wanted])
    texts = (f"{sql.quoted(one.name)}::text" if one.name in nested else sql.quoted(one.name) for one in wanted)
    statement = f"SELECT {', '.join(texts)} FROM {table}"
    with job_confs(spark):
        read = (
            spark.range(1)
            .coalesce(1)
            .mapInArrow(_Read(connection, statement, to_arrow_schema(plain, timezone="UTC")), plain)
        )
    return read.select(
        *(
            f.from_json(named(one.name), one.dataType).alias(one.name) if one.name in nested else named(one.name)
            for one in wanted
        )
    )
