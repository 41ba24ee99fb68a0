"""What an executor does: files of a lake as RecordBatches in the columns that Spark has planned with.

Every value is read from its text by the exact path: what a column can't hold is an error with its place, or,
where the options say so, a row of its own that shows it in ``_sdc_bad``. Nothing is nulled, cut or dropped in silence.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from burler.errors import ExportError
from burler.lake.store import open_store
from burler.spark.columns import EXTRACTED_AT, LINE, SEQUENCE, SOURCE_FILE, VERSION
from burler.spark.exact import Outcome, exact_batches
from burler.spark.lakefiles import LakeFile
from burler.spark.lakesource.shape import BAD, POSITION
from burler.spark.lakesource.tasks import ReadTask
from burler.spark.types import arrow_schema
from burler.words import counted

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger("burler.spark.singerlake")

_PLACES = 1 << 32
"""Lines of a file, at the most, for ``_sdc_position``."""
_SHOWN = 80


def read_task(task: ReadTask) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task in the order of its files and their lines.

    Raises:
        ExportError: a value that its column can't hold exactly; names stream, file, line, field and value.
        LakeError: a file is missing or damaged, or holds other rows than its manifest says.
    """
    store = open_store(task.url)
    schema = arrow_schema(task.columns)
    seen: Counter[str] = Counter()
    for file, place in task.files:
        for batch, outcome in exact_batches(store, file, task.united, stream=task.stream, options=task.options):
            if outcome.bad and task.bad == "fail":
                raise _refused(task.stream, outcome)
            _count(seen, outcome, task)
            made = _shaped(task, batch, file, place, schema)
            if made.num_rows:
                yield made
            if outcome.bad:
                yield _bad_rows(outcome, file, place, schema)
    for remark, count in seen.items():
        _log.warning("stream '%s': %s in %s", task.stream, remark, counted(count, "row"))


def _shaped(task: ReadTask, batch: Any, file: LakeFile, place: int, schema: Any) -> pa.RecordBatch:
    """A batch in the columns of the DataFrame, less the rows that nobody wants."""
    import pyarrow as pa
    import pyarrow.compute as pc

    keep = _wanted(batch, task, file)
    if keep is not None:
        batch = batch.filter(keep)
    columns = []
    for field in schema:
        if field.name == POSITION:
            lines = batch.column(LINE)
            columns.append(pc.add(lines, pa.scalar(place * _PLACES, lines.type)))
        elif batch.schema.get_field_index(field.name) < 0:  # a column that no schema version read here has
            columns.append(pa.nulls(batch.num_rows, field.type))
        else:
            columns.append(batch.column(field.name))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _wanted(batch: Any, task: ReadTask, file: LakeFile) -> Any:
    """Which rows count: extracted within the times that are asked for, of the version that is active.
    None: all of them."""
    import pyarrow.compute as pc

    keep = None
    if not task.times.is_all:
        times = batch.column(EXTRACTED_AT)
        for bound, inside in ((task.times.since, pc.greater_equal), (task.times.until, pc.less)):
            if bound is not None:
                # A row that does not say when it was extracted is taken.
                one = pc.fill_null(inside(times, _moment(bound)), True)
                keep = one if keep is None else pc.and_(keep, one)
    if task.active is not None:
        version, active = batch.column(VERSION), task.active
        one = pc.equal(version, active.version)
        if file.rank >= active.rank:
            one = pc.or_(one, pc.greater(version, active.version))
        one = pc.fill_null(one, file.rank > active.rank)
        keep = one if keep is None else pc.and_(keep, one)
    return keep


def _moment(text: str) -> Any:
    import pyarrow as pa

    from burler import times

    return pa.scalar(times.moment(text), pa.timestamp("us", tz="UTC"))


def _bad_rows(outcome: Outcome, file: LakeFile, place: int, schema: Any) -> pa.RecordBatch:
    """The rows that could not be held: everything null but where they stand and what they are."""
    import pyarrow as pa

    rows = [
        {
            SEQUENCE: file.sequence,
            SOURCE_FILE: file.name,
            POSITION: place * _PLACES + bad.line,
            BAD: json.dumps(
                {
                    "file": bad.file,
                    "line": bad.line,
                    "field": bad.field,
                    "value": bad.value,
                    "wanted": bad.wanted,
                    "record": bad.record,
                },
                ensure_ascii=False,
            ),
        }
        for bad in outcome.bad
    ]
    return pa.RecordBatch.from_pylist(rows, schema=schema)


def _refused(stream: str, outcome: Outcome) -> ExportError:
    bad = outcome.bad[0]
    more = f" ({len(outcome.bad)} such rows here)" if len(outcome.bad) > 1 else ""
    return ExportError(
        f"stream '{stream}': {bad.file} line {bad.line}, field '{bad.field}': {str(bad.value)[:_SHOWN]} can't be held "
        f"exactly; the schema wants {bad.wanted}{more}.\n"
        'Correct the schema or the value in the tap; or read on with option("bad", "keep"), which shows such rows in '
        f"column {BAD}."
    )


def _count(seen: Counter[str], outcome: Outcome, task: ReadTask) -> None:
    """What the exact path lets go, and counts: digits beyond the microsecond, fields that no schema declares."""
    for field, count in outcome.truncated.items():
        seen[f"field '{field}' was cut to microseconds"] += count
    for field, count in () if task.is_pruned else outcome.dropped.items():
        seen[f"field '{field}' is not in the schema and was left out"] += count
