"""What ``foreachBatch`` is given so that a stream's sink is a table with the latest row of each key, exactly right.

Spark repeats a batch after a crash, with the same number. The rows of a batch and that number are published in one
atomic commit, so a batch that is there already changes nothing.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from burler.errors import ExportError, UsageError
from burler.records.columns.types import StructOf
from burler.spark.columns import EXTRACTED_AT, SEQUENCE, named
from burler.spark.formats.base import Change, Published, TableState, Target
from burler.spark.formats.opening import check_format, open_target
from burler.spark.lakesource.kinds_of import columns_of
from burler.spark.lakesource.shape import POSITION
from burler.spark.types import arrow_schema, spark_schema
from burler.spark.united import spell

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

_log = logging.getLogger("burler.spark.upsert")

_ORDER = (EXTRACTED_AT, SEQUENCE, POSITION)
_ARROW_ROWS = 100_000
"""Batches up to so many rows are merged without another Spark job, where the format can."""
_ROW, _OLD, _GONE = "_burler_row", "_burler_old", "_burler_gone"
_QUERY_ID = "sql.streaming.queryId"


def upsert(
    place: str | Path,
    *,
    keys: str | Sequence[str],
    order_by: str | Sequence[str] | None = None,
    format: str = "delta",
    options: Mapping[str, str] | None = None,
    delete_where: str | None = None,
    query_id: str | None = None,
) -> Upsert:
    """A function for ``writeStream.foreachBatch``: keeps the latest row of each key in the table at ``place``.

    Args:
        place: the table's folder, or what names it in its format; made by the first batch.
        keys: the columns that tell rows apart; never null.
        order_by: which row of a key is the latest, compared one after the other; null is oldest. By default the order
            in which the tap sent them (``_sdc_extracted_at``, ``_sdc_sequence``, ``_sdc_position``).
        format, options: as those of ``burler.spark.export``.
        delete_where: an SQL condition; where it holds of the latest row of a key, the key is removed.
        query_id: names the query in the table; by default Spark's own id of the query, which lives in its
            checkpoint. Needed on Spark Connect.

    Raises:
        UsageError: no keys, an unknown format or option.
    """
    names = _names(keys)
    if not names:
        raise UsageError("upsert needs keys: the columns that tell rows apart, as keys=['id'].")
    check_format(format, options or {})
    order = None if order_by is None else _names(order_by)
    return Upsert(str(place), names, order, format, dict(options or {}), delete_where, query_id)


@dataclass(frozen=True, slots=True)
class Upsert:
    """What ``upsert`` gives. Plain data: it travels to a Connect server as it is."""

    place: str
    keys: tuple[str, ...]
    order_by: tuple[str, ...] | None = None
    format: str = "delta"
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    delete_where: str | None = None
    query_id: str | None = None

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Publish one batch, unless the table has it.

        Raises:
            ExportError: rows without a key, columns that do not fit the table, a batch that is older than the table's
                last of this query. Nothing is published then.
        """
        self._check(batch)
        spark = batch.sparkSession
        target = self._target(spark)
        state = target.open()
        mark = f"burler-query:{self.query_id or _query_id(spark)}"
        if self._is_there(state, mark, batch_id):
            _log.info("%s: batch %d is there already", self.place, batch_id)
            return
        columns = _united(state, columns_of(batch.schema), self.place)
        change = Change(
            kind="merge",
            columns=columns,
            schema=json.loads(spark_schema(columns).json()),
            numbers={**state.numbers, mark: batch_id},
            keys=self.keys,
            newer=self._order(columns),
            metadata={"burler.batch": str(batch_id)},
            partition_by=state.partition_by,
        )
        done = self._publish(spark, target, state, batch, change)
        _log.info("%s: batch %d is version %d", self.place, batch_id, done.version)

    def _target(self, spark: SparkSession) -> Target:
        source = f"a streaming query with keys {', '.join(self.keys)}"
        return open_target(self.format, self.place, source=source, options=self.options, spark=lambda: spark)

    def _is_there(self, state: TableState, mark: str, batch_id: int) -> bool:
        last = state.numbers.get(mark)
        if last is not None and last > batch_id:
            raise ExportError(
                f"{self.place}: batch {batch_id} comes after batch {last} of the same query is in the table: its "
                "checkpoint is older than the table, or new.\nNothing was published. Restore the checkpoint; or give "
                "upsert(..., query_id=...) another name, and rows may come again (an upsert takes that)"
            )
        return last == batch_id

    def _check(self, batch: DataFrame) -> None:
        have = set(batch.columns)
        for name in (*self.keys, *(self.order_by or ())):
            if name not in have:
                raise UsageError(
                    f"{self.place}: upsert names the column '{name}', which the stream does not have. "
                    f"It has: {', '.join(batch.columns)}."
                )

    def _order(self, columns: StructOf) -> tuple[str, ...]:
        if self.order_by is not None:
            return self.order_by
        order = tuple(name for name in _ORDER if columns.get(name) is not None)
        if not order:
            raise UsageError(
                f"{self.place}: the stream has none of the columns {', '.join(_ORDER)}, so nothing says which row of a "
                "key is the latest. Name what does: upsert(..., order_by=['updated_at'])"
            )
        return order

    def _publish(
        self, spark: SparkSession, target: Target, state: TableState, batch: DataFrame, change: Change
    ) -> Published:
        new = self._latest(_as_columns(batch, change.columns), change)
        if self.delete_where is not None:
            new = new.withColumn(_GONE, _condition(self.delete_where))
        new = new.persist()  # it is looked at before it is written, and a batch is read from its source once
        try:
            rows = new.limit(_ARROW_ROWS + 1).toArrow()
            if rows.num_rows <= _ARROW_ROWS:
                return self._publish_arrow(spark, target, state, new, rows, change)
            self._check_keys(not new.where(_any([named(key).isNull() for key in self.keys])).isEmpty())
            deletes = self.delete_where is not None and not new.where(named(_GONE)).isEmpty()
            if not deletes and state.version is not None and target.merges_frames:
                return target.publish(new.drop(_GONE), change)
            return self._replace(spark, target, state, new, change)
        finally:
            new.unpersist()

    def _publish_arrow(
        self,
        spark: SparkSession,
        target: Target,
        state: TableState,
        new: DataFrame,
        rows: pyarrow.Table,
        change: Change,
    ) -> Published:
        """A small batch: without another Spark job, where the format can."""
        self._check_keys(any(rows.column(key).null_count for key in self.keys))
        gone = [] if self.delete_where is None else rows.column(_GONE).to_pylist()
        if state.version is None and target.appends_arrow:
            left = rows.filter([not one for one in gone]) if gone else rows
            return target.publish(_plain(left, change.columns), replace(change, kind="replace", keys=(), newer=()))
        if state.version is not None and True not in gone and target.merges_arrow:
            return target.publish(_plain(rows, change.columns), change)
        return self._replace(spark, target, state, new, change)

    def _replace(
        self, spark: SparkSession, target: Target, state: TableState, new: DataFrame, change: Change
    ) -> Published:
        """All rows anew: the first batch, a large one, or one that removes keys."""
        from pyspark.sql import functions as f

        every = new if self.delete_where is not None else new.withColumn(_GONE, f.lit(False))
        every = every.withColumn(_OLD, f.lit(0))
        if state.version is not None:
            old = _as_columns(target.rows(spark), change.columns)
            every = every.unionByName(old.withColumn(_GONE, f.lit(False)).withColumn(_OLD, f.lit(1)))
            every = self._latest(every, change)
        left = every.where(~f.coalesce(named(_GONE), f.lit(False))).drop(_GONE, _OLD)
        return target.publish(left, replace(change, kind="replace", keys=(), newer=()))

    def _latest(self, rows: DataFrame, change: Change) -> DataFrame:
        """One row a key; where all is equal the one of the batch, and of the table's own the one that is there."""
        from pyspark.sql import Window
        from pyspark.sql import functions as f

        order = [named(name).desc_nulls_last() for name in change.newer]
        if _OLD in rows.columns:
            order.append(named(_OLD).asc())
        window = Window.partitionBy(*map(named, self.keys)).orderBy(*order)
        return rows.withColumn(_ROW, f.row_number().over(window)).where(named(_ROW) == 1).drop(_ROW)

    def _check_keys(self, are_missing: bool) -> None:
        if are_missing:
            raise ExportError(
                f"{self.place}: the batch has rows without a value in the key ({', '.join(self.keys)}): they would "
                "replace each other. Nothing was published.\nLeave them out (df.where), or choose other keys"
            )


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _query_id(spark: SparkSession) -> str:
    """Spark's id of the query whose batch this is.

    Raises:
        UsageError: nothing tells.
    """
    found = None
    if type(spark).__module__.startswith("pyspark.sql.session"):
        found = spark.sparkContext.getLocalProperty(_QUERY_ID)
    if not found:
        raise UsageError(
            "upsert can't tell which query this batch is of (Spark Connect does not say, and outside of foreachBatch "
            "there is none). Name it: upsert(..., query_id='orders'), another name for each checkpoint."
        )
    return str(found)


def _united(state: TableState, new: StructOf, place: str) -> StructOf:
    """The table's columns, then those that are new.

    Raises:
        ExportError: a column of the batch has another type than the table's, or its name in other letters.
    """
    if state.schema is None:
        return new
    from pyspark.sql.types import StructType

    have = dict(columns_of(StructType.fromJson(dict(state.schema))).fields)
    spelled = {name.lower(): name for name in have}
    for name, kind in new.fields:
        twin = spelled.setdefault(name.lower(), name)
        if twin != name:
            raise ExportError(
                f"{place}: column '{name}' of the batch and '{twin}' of the table differ in case alone. "
                f"Nothing was published.\nRename it in the query: withColumnRenamed('{name}', '{twin}')"
            )
        if have.setdefault(name, kind) != kind:
            raise ExportError(
                f"{place}: column '{name}' of the batch is {spell(kind)}, and {spell(have[name])} in the table. "
                "Nothing was published.\nCast it in the query, or write to another table"
            )
    return StructOf(tuple(have.items()))


def _as_columns(rows: DataFrame, columns: StructOf) -> DataFrame:
    """The same rows in all of these columns, each of its type."""
    from pyspark.sql import functions as f

    have = set(rows.columns)
    return rows.select(
        *(
            (named(one.name) if one.name in have else f.lit(None)).cast(one.dataType).alias(one.name)
            for one in spark_schema(columns)
        )
    )


def _plain(rows: pyarrow.Table, columns: StructOf) -> pyarrow.Table:
    """An Arrow table in exactly these columns."""
    schema = arrow_schema(columns)
    return rows.select(schema.names).cast(schema)


def _condition(text: str) -> Any:
    from pyspark.sql import functions as f

    return f.coalesce(f.expr(text).cast("boolean"), f.lit(False))


def _any(conditions: Sequence[Any]) -> Any:
    found = conditions[0]
    for one in conditions[1:]:
        found = found | one
    return found
