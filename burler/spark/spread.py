"""Files that want the exact path, read to a staging folder: on the driver where they are few, else on executors.

What Spark reads back is Parquet, and what could not be held stands beside it, so all of it is known before a table is
touched. Workers get strings alone: the store's URL, and of each file its description.
"""

from __future__ import annotations

import functools
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from burler.errors import BurlerError, LakeError
from burler.extras import require
from burler.lake.store import open_store
from burler.records.columns.converters import WANTED_WIDE
from burler.records.columns.types import STRING, VARIANT, StructOf, replaced
from burler.spark import united as uniting
from burler.spark.columns import STAGED, named
from burler.spark.exact import Outcome, exact_batches
from burler.spark.lakefiles import LakeFile
from burler.spark.quarantine import write_bad
from burler.spark.readoptions import ReadOptions
from burler.spark.remote import capabilities
from burler.spark.scan import escape
from burler.spark.types import arrow_schema, spark_schema
from burler.spark.united import United
from burler.spark.variants import with_variants
from burler.storage.base import Store

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

_NOTE = "_burler_note"
"""A staged row has either values, or this: an outcome, a bad row, or an error, as JSON."""
_FEW_FILES, _FEW_BYTES = 4, 64 << 20
"""So much is read by the driver itself: a Spark job takes longer."""
_MOST_TASKS = 10_000


@dataclass(slots=True)
class Staged:
    """What the exact path made. ``frame``: its rows, None if there were no files; the rest as in ``exact.Outcome``.

    ``activated``: by rank of the file. ``as_text``: columns of doubles that met an integer which no double holds.
    """

    frame: DataFrame | None = None
    rows: int = 0
    repaired: int = 0
    bad_rows: int = 0
    bad: Path | None = None
    truncated: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    activated: dict[int, int] = field(default_factory=dict)
    as_text: set[uniting.Path] = field(default_factory=set)

    def add(self, file: LakeFile, outcome: Outcome, united: United) -> None:
        """Count what became of some lines; ``bad`` rows are only counted."""
        self.rows += outcome.rows
        self.repaired += outcome.repaired
        self.truncated.update(outcome.truncated)
        self.dropped.update(outcome.dropped)
        if outcome.activated is not None:
            self.activated[file.rank] = outcome.activated
        self.bad_rows += len(outcome.bad)
        if any(row.wanted == WANTED_WIDE for row in outcome.bad):
            wide = {united.mapped(file.hash).source_place(path): path for path in united.mapped(file.hash).wide}
            self.as_text.update(wide[row.field] for row in outcome.bad if row.wanted == WANTED_WIDE)


class _Note(msgspec.Struct, omit_defaults=True):
    file: LakeFile | None = None
    outcome: Outcome | None = None
    error: str | None = None


def stage(
    spark: SparkSession,
    files: Sequence[LakeFile],
    united: United,
    *,
    store: Store,
    stream: str,
    options: ReadOptions,
    staging: Path,
) -> Staged:
    """Read ``files`` exactly; their rows go to a new folder inside of ``staging``.

    Raises:
        LakeError: a file is damaged, or has not the rows that its manifest says. ExportError: an unknown schema.
        StorageError: the staging folder can't be written.
    """
    done = Staged()
    if not files:
        return done
    folder = staging / f"exact-{uuid.uuid4().hex[:12]}"
    bad = folder.with_suffix(".bad.jsonl")
    few = len(files) <= _FEW_FILES and sum(file.bytes or 0 for file in files) <= _FEW_BYTES
    here = few or store.url.startswith("memory:") or not capabilities(spark).runs_python
    if here:
        for file, outcome in _on_driver(files, united, store, stream, options, folder):
            done.add(file, outcome, united)
            write_bad(outcome.bad, bad)
    else:
        for file, outcome in _on_executors(spark, files, united, store, stream, options, folder):
            done.add(file, outcome, united)
            write_bad(outcome.bad, bad)
    done.bad = bad if done.bad_rows else None
    done.frame = _frame(spark, folder, united, noted=not here)
    return done


def _text_form(united: United) -> StructOf:
    """The columns as they are staged: a VARIANT is text until Spark has it."""
    columns = replaced(united.record, VARIANT, STRING)
    assert isinstance(columns, StructOf)
    return StructOf(columns.fields + STAGED.fields)


def _frame(spark: SparkSession, folder: Path, united: United, *, noted: bool) -> DataFrame:
    from pyspark.sql import types as t

    schema = spark_schema(_text_form(united))
    whole = t.StructType([*schema.fields, t.StructField(_NOTE, t.StringType())]) if noted else schema
    rows = spark.read.schema(whole).parquet(escape(str(folder)))
    if noted:
        rows = rows.where(named(_NOTE).isNull()).drop(_NOTE)
    return with_variants(rows, united.record)


# ---- on the driver --------------------------------------------------------------------------------


def _on_driver(
    files: Sequence[LakeFile], united: United, store: Store, stream: str, options: ReadOptions, folder: Path
) -> Iterator[tuple[LakeFile, Outcome]]:
    require("pyarrow", extra="spark", needed_for="burler.spark")
    from burler.formats.columnar import Writer

    folder.mkdir(parents=True)
    with (folder / "rows.parquet").open("wb") as out:
        writer = Writer("parquet", arrow_schema(_text_form(united)), out.write, codec="snappy")
        for file in files:
            for batch, outcome in exact_batches(store, file, united, stream=stream, options=options):
                writer.add(batch)
                yield file, outcome
        writer.finish()


# ---- on executors ---------------------------------------------------------------------------------


def _on_executors(
    spark: SparkSession,
    files: Sequence[LakeFile],
    united: United,
    store: Store,
    stream: str,
    options: ReadOptions,
    folder: Path,
) -> Iterator[tuple[LakeFile, Outcome]]:
    from pyspark.sql import types as t

    pa = require("pyarrow", extra="spark", needed_for="burler.spark")
    described = pa.table({"file": pa.array([msgspec.json.encode(file).decode() for file in files], pa.string())})
    schema = t.StructType([*spark_schema(_text_form(united)).fields, t.StructField(_NOTE, t.StringType())])
    read = functools.partial(read_described, url=store.url, united=united, stream=stream, options=options)
    tasks = spark.createDataFrame(described).repartition(min(len(files), _MOST_TASKS))
    tasks.mapInArrow(read, schema).write.parquet(str(folder))
    notes = spark.read.schema(schema).parquet(escape(str(folder))).where(named(_NOTE).isNotNull()).select(_NOTE)
    decode = msgspec.json.Decoder(_Note).decode
    for row in notes.toLocalIterator():
        note = decode(row[0])
        if note.error is not None:
            raise LakeError(note.error)
        if note.file is not None and note.outcome is not None:
            yield note.file, note.outcome


def read_described(
    described: Iterable[pyarrow.RecordBatch], *, url: str, united: United, stream: str, options: ReadOptions
) -> Iterator[pyarrow.RecordBatch]:
    """Runs in a worker: files described in one text column to their rows, and notes of what became of them."""
    import pyarrow as pa

    store = open_store(url, must_exist=True)
    schema = arrow_schema(_text_form(united)).append(pa.field(_NOTE, pa.string()))

    def noted(note: _Note) -> pyarrow.RecordBatch:
        return pa.RecordBatch.from_pylist([{_NOTE: msgspec.json.encode(note).decode()}], schema=schema)

    for batch in described:
        for text in batch.column(0).to_pylist():
            file = msgspec.json.decode(text, type=LakeFile)
            try:
                for rows, outcome in exact_batches(store, file, united, stream=stream, options=options):
                    nothing = pa.nulls(rows.num_rows, pa.string())
                    if rows.num_rows:
                        yield pa.RecordBatch.from_arrays([*rows.columns, nothing], schema=schema)
                    if outcome != Outcome():
                        yield noted(_Note(file, outcome))
            except BurlerError as error:
                yield noted(_Note(error=str(error)))


__all__ = ["Staged", "read_described", "stage"]
