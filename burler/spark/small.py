"""A few new rows made ready for their table without Spark: read exactly, the latest of each key, as one Arrow table.

The same rules as in ``rows``, on Arrow; a test holds the two against each other. Starting a Spark
job costs a second or two, and Spark itself some more: what is small is done sooner here.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from burler.errors import BurlerError
from burler.extras import require
from burler.records.columns.types import DOUBLE, DecimalOf, Scalar, arrow_schema
from burler.spark.columns import BATCHED_AT, BLOCK, EXTRACTED_AT, LINE, RANK, SEQUENCE, VERSION
from burler.spark.exact import exact_batches
from burler.spark.export_options import SMALL_BYTES, ExportOptions
from burler.spark.formats.merging import comparable
from burler.spark.lakefiles import Activation, LakeStream
from burler.spark.plan import Plan
from burler.spark.quarantine import BadRow, write_bad
from burler.spark.readrows import Flagged, ReadReport, notes_of
from burler.spark.rows import EXACT, key_error
from burler.spark.spread import Staged
from burler.spark.united import place_of

if TYPE_CHECKING:
    import pyarrow as pa

_NEEDED_FOR = "burler export"


@dataclass(frozen=True, slots=True)
class Small:
    """The rows to publish (the plan's columns, in order), the plan with the last activation, what was found."""

    rows: pa.Table
    plan: Plan
    report: ReadReport


def fits(plan: Plan, options: ExportOptions) -> bool:
    """Whether the rows of a plan are few enough, and their columns such that Arrow can choose among them."""
    if plan.rows is None or plan.rows > options.small_rows or plan.bytes > SMALL_BYTES:
        return False
    if plan.read.open_types != "text":
        return False  # variants are Spark's
    ordered = [plan.united.record.get(name) for name in (*plan.keys, *plan.order)]
    return all(isinstance(kind, Scalar | DecimalOf) for kind in ordered)


def read_small(lake: LakeStream, plan: Plan, *, batched_at: dt.datetime, staging: Callable[[], Path]) -> Small:
    """Read and choose.

    Args:
        staging: gives the folder for rows that no column can hold; called when there is one.

    Raises:
        Flagged: a column must become text; plan anew. LakeError: a damaged file, or not the rows that the manifest
            says. ExportError: rows without a key.
    """
    arrow = require("pyarrow", extra="spark", needed_for=_NEEDED_FOR)

    schema = arrow_schema(plan.columns)
    found, bad = Staged(), list[BadRow]()
    batches = list(_batches(lake, plan, found, bad))
    if found.as_text:
        raise Flagged(as_text=map(place_of, found.as_text))
    plan = plan.activated(found.activated)
    if bad:
        found.bad = staging() / "bad.jsonl"
        write_bad(bad, found.bad)
    report = ReadReport(
        found.rows,
        found.repaired,
        found.bad_rows,
        notes_of(found.dropped, found.truncated, found.repaired),
        found.bad,
        dict(found.truncated),
    )
    if not batches:
        return Small(schema.empty_table(), plan, report)
    rows = _counted(arrow.Table.from_batches(batches), plan.active)
    if plan.keys:
        fault = _fault(rows, plan, lake.stream)
        if fault is not None:
            raise fault
        rows = _latest(rows, plan)
    stamp = arrow.scalar(batched_at, arrow.timestamp("us", tz="UTC"))
    rows = rows.append_column(BATCHED_AT, arrow.repeat(stamp, rows.num_rows))
    return Small(rows.select(schema.names).cast(schema), plan, report)


def _batches(lake: LakeStream, plan: Plan, found: Staged, bad: list[BadRow]) -> Iterator[pa.RecordBatch]:
    for file in plan.files:
        read = exact_batches(lake.store, file, plan.united, stream=lake.stream, options=plan.read)
        for batch, outcome in read:
            found.add(file, outcome, plan.united)
            bad += outcome.bad
            if batch.num_rows:
                yield batch


def _counted(rows: pa.Table, active: Activation | None) -> pa.Table:
    """See ``rows._counted``."""
    if active is None:
        return rows
    compute = require("pyarrow.compute", extra="spark", needed_for=_NEEDED_FOR)
    version, rank = compute.field(VERSION), compute.field(RANK)
    return rows.filter(
        (version == active.version)
        | ((version > active.version) & (rank >= active.rank))
        | (version.is_null() & (rank > active.rank))
    )


def _fault(rows: pa.Table, plan: Plan, stream: str) -> BurlerError | None:
    """The error for keys that tell no row from another."""
    compute = require("pyarrow.compute", extra="spark", needed_for=_NEEDED_FOR)
    keyless = blurred = None
    for key in plan.keys:
        null = compute.is_null(rows[key])
        keyless = null if keyless is None else compute.or_(keyless, null)
        if plan.columns.get(key) is DOUBLE:
            wide = compute.fill_null(compute.greater_equal(compute.abs(rows[key]), float(EXACT)), False)
            blurred = wide if blurred is None else compute.or_(blurred, wide)
    counts = [0 if one is None else compute.sum(one).as_py() or 0 for one in (keyless, blurred)]
    return key_error(stream, plan.keys, *counts)


def _latest(rows: pa.Table, plan: Plan) -> pa.Table:
    """One row a key: the latest by replication key, time_extracted, commit sequence, file, line."""
    arrow = require("pyarrow", extra="spark", needed_for=_NEEDED_FOR)
    compute = require("pyarrow.compute", extra="spark", needed_for=_NEEDED_FOR)
    names = [*plan.order, EXTRACTED_AT, SEQUENCE, RANK, BLOCK, LINE]
    ordered = arrow.table([rows[name] for name in names], names=[str(at) for at in range(len(names))])
    # The latest first; nulls come last, as ``desc_nulls_last`` has it.
    indices = compute.sort_indices(ordered, sort_keys=[(name, "descending") for name in ordered.column_names])
    keys = {str(at): comparable(rows[key]) for at, key in enumerate(plan.keys)}
    place = arrow.array(range(rows.num_rows), arrow.int64())
    sorted_keys = arrow.table(keys).take(indices).append_column("place", place)
    first = sorted_keys.group_by(list(keys), use_threads=False).aggregate([("place", "min")])["place_min"]
    return rows.take(indices.take(first))
