"""The DataFrame that becomes a table's new content: new lake rows, old table rows, the latest of each key."""

from __future__ import annotations

import datetime as dt
import functools
import json
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING

from burler.errors import ExportError
from burler.records.columns.types import DOUBLE
from burler.spark.columns import (
    BATCHED_AT,
    BLOCK,
    EXTRACTED_AT,
    LINE,
    ORDER,
    RANK,
    ROW_NUMBER,
    SEQUENCE,
    SOURCE_FILE,
    VERSION,
    named,
    quoted,
)
from burler.spark.file_facts import frame_of, of_place
from burler.spark.lakefiles import Activation, LakeFile
from burler.spark.plan import TABLE_RANK, Plan
from burler.spark.types import spark_schema
from burler.words import counted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from burler.spark.scan import Field, Watch

_MOST_IN_PLAN = 5_000
"""More files than this are joined to their rows; fewer stand in the plan itself."""
EXACT = 2**53
"""Below it a double holds each whole number; at it two of them are one."""


def key_error(stream: str, keys: Sequence[str], keyless: int, blurred: int) -> ExportError | None:
    """The error for so many rows without a key, or with a key that a double can't tell from another."""
    if keyless:
        return ExportError(
            f"stream '{stream}': {counted(keyless, 'row')} without a value in the key ({', '.join(keys)}): only "
            "one of them could be kept. Nothing was published.\n"
            "Correct key_properties in the tap; then move the files that hold them out of the lake, remove the "
            "stream's manifest.json (it is made anew), and extract again. Or keep every row: mode append"
        )
    if blurred:
        return ExportError(
            f"stream '{stream}': key numbers from 2^53 on stand in a field of type number, where "
            f"different ones become equal ({', '.join(keys)}). Nothing was published. "
            "Declare the key as integer or string."
        )
    return None


def watch(plan: Plan) -> Watch | None:
    """Conditions on the lake's rows that tell of keys at fault: for ``read_rows``; then ``key_error``.

    Rows without a key would replace each other, and all but one be lost in silence; the Singer texts say that a key is
    never null.
    """
    from pyspark.sql import functions as f

    if not plan.keys:
        return None

    def conditions(column: Field) -> dict[str, Column]:
        doubles = [key for key in plan.keys if plan.columns.get(key) is DOUBLE]
        found = {"keyless": [column(key).isNull() for key in plan.keys]}
        if doubles:
            found["blurred"] = [f.coalesce(f.abs(column(key)) >= EXACT, f.lit(False)) for key in doubles]
        anywhere = {name: functools.reduce(operator.or_, one) for name, one in found.items()}
        if plan.active is None:
            return anywhere
        return {name: one & _counts(plan.active, column) for name, one in anywhere.items()}

    return conditions


def make(read: DataFrame | None, old: DataFrame | None, plan: Plan, *, batched_at: dt.datetime) -> DataFrame:
    """The rows to write for ``plan``, with its columns in order; lazy.

    Args:
        read: the lake's rows as ``readrows`` gives them. old: the table's rows, where it is written whole from both.
            One of the two is there.
        plan: with the last activation that the read files have.
    """
    names = [name for name, _ in plan.columns.fields]
    if old is None and read is not None and plan.keys:
        order = [EXTRACTED_AT, RANK, *([BLOCK] if _is_split(plan.files) else []), LINE]
        rows = read if plan.active is None else read.where(_counts(plan.active))
        # What follows from a row's file is added behind the shuffle, so that Spark does not carry it through. All in
        # one step: each has Spark look at the whole plan again, which takes longer than it seems.
        latest, of_file = _of_its_file(_latest(rows, plan, order), plan.files)
        added = {BATCHED_AT: _moment(batched_at), **of_file}
        return latest.select(*(added[name].alias(name) if name in added else quoted(name) for name in names))
    parts = []
    if read is not None:
        stamp = _moment(batched_at).alias(BATCHED_AT)
        parts.append(read.select(*(stamp if name == BATCHED_AT else quoted(name) for name in (*names, *ORDER_NAMES))))
    if old is not None:
        parts.append(_table_rows(old, plan))
    rows = parts[0] if len(parts) == 1 else parts[0].union(parts[1])
    rows = rows.where(_counts(plan.active))
    if plan.keys:
        rows = _latest(rows, plan, [EXTRACTED_AT, SEQUENCE, RANK, BLOCK, LINE])
    return rows.select(*map(quoted, names))


def _moment(batched_at: dt.datetime) -> Column:
    """The moment of the export, in a form that Spark can't take for a constant.

    A constant number or time is written into the code that Spark generates. Each export of a session would have new
    code then, to be compiled and warmed up from nothing: half a second, or more.
    """
    from pyspark.sql import functions as f

    micros = (batched_at - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
    always_0 = named(RANK).isNull().cast("int")
    return f.timestamp_micros(f.get(f.from_json(f.lit(json.dumps([micros])), "array<bigint>"), always_0))


ORDER_NAMES = tuple(name for name, _ in ORDER.fields)


def _is_split(files: Sequence[LakeFile]) -> bool:
    """Whether Spark may read one of the files in several tasks: lines are then counted from the start of a block."""
    return any(not file.name.endswith(".gz") for file in files)


def _table_rows(old: DataFrame, plan: Plan) -> DataFrame:
    """The table as it is, older than every new row, and younger than an activation that it has seen already."""
    from pyspark.sql import functions as f

    have, types = set(old.columns), spark_schema(plan.columns)
    known = [named(one.name) if one.name in have else f.lit(None).cast(one.dataType).alias(one.name) for one in types]
    order = [f.lit(TABLE_RANK if name == RANK else 0).cast("bigint").alias(name) for name in ORDER_NAMES]
    return old.select(*known, *order)


def _counts(active: Activation | None, column: Field = named) -> Column:
    """Whether a row counts: of the active version; of a later one, unless the activation came after it (a clock
    that was set back); without version only if it came after. A lake file holds no row without version
    behind an ACTIVATE_VERSION (see ``LakeWriter``), so whole files can be compared."""
    from pyspark.sql import functions as f

    if active is None:
        return f.lit(True)
    version, rank = column(VERSION), column(RANK)
    return (
        (version == active.version)
        | ((version > active.version) & (rank >= active.rank))
        | (version.isNull() & (rank > active.rank))
    )


def _latest(rows: DataFrame, plan: Plan, order: Sequence[str]) -> DataFrame:
    """One row a key: by replication key, time_extracted, commit sequence, file, line."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    latest_first = (named(name).desc_nulls_last() for name in (*plan.order, *order))
    window = Window.partitionBy(*map(named, plan.keys)).orderBy(*latest_first)
    return rows.withColumn(ROW_NUMBER, f.row_number().over(window)).where(f.col(ROW_NUMBER) == 1)


def _of_its_file(rows: DataFrame, files: Sequence[LakeFile]) -> tuple[DataFrame, dict[str, Column]]:
    """The columns that follow from the rank of a row's file, and the rows to take them from."""
    from pyspark.sql import functions as f

    if len(files) > _MOST_IN_PLAN:
        joined = rows.drop(SEQUENCE, SOURCE_FILE).join(
            f.broadcast(frame_of(rows.sparkSession, files, {})), RANK, "left"
        )
        return joined, {name: named(name) for name in (SEQUENCE, SOURCE_FILE)}
    first = min(file.rank for file in files)
    by_rank = {file.rank: file for file in files}
    spread = [by_rank.get(rank) for rank in range(first, max(by_rank) + 1)]
    at = (named(RANK) - first).cast("int")
    return rows, {name: of_place(spread, name, at) for name in (SEQUENCE, SOURCE_FILE)}
