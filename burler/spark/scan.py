"""The rows of a stream's clean files, through Spark's own JSON reader, with proof that none is lost.

Files are read at once with
the united type: a clean file holds nothing that its own schema does not declare, and fields that it lacks are null.
What Spark can't read is marked, and counted in the same pass that writes the table (``readrows``).
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

import msgspec

from burler.errors import BurlerError, ExportError, LakeError
from burler.records.columns.types import FieldType, ListOf, MapOf, StructOf
from burler.singer.lines import decode_head
from burler.spark.columns import BLOCK, EXTRACTED_AT, LINE, RANK, SEQUENCE, SOURCE_FILE, VERSION, quoted
from burler.spark.exact import numbered_lines
from burler.spark.file_facts import FileFacts
from burler.spark.lakefiles import LakeFile
from burler.spark.types import spark_schema
from burler.spark.united import Path
from burler.storage.base import Store

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation, SparkSession
    from pyspark.sql.types import StructType

    from burler.spark.united import United

_CORRUPT = "_corrupt_record"
_PATH = "_burler_path"
_SHOWN = 200
_NO_LIMIT = str(2**31 - 1)

JSON_OPTIONS = {
    "mode": "PERMISSIVE",  # the other modes drop rows or stop without saying where
    "columnNameOfCorruptRecord": _CORRUPT,
    "timeZone": "UTC",
    # No "encoding": with one Spark parses characters, not bytes, and 1.50 read as text becomes 1.5.
    "lineSep": "\n",  # else a lone CR between tokens would split a line
    "maxStringLen": _NO_LIMIT,
    "maxNumLen": "1000000",
    "maxNestingDepth": "10000",
}


@dataclass(frozen=True, slots=True)
class Scan:
    """The RECORD lines of clean files: the columns of ``united.record``, then ``columns.STAGED``; lazy.

    A line that Spark can't read comes as a row too, with the rank ``-1 - rank`` of its file: nothing of what was
    written may be used if there is one. ``counted`` tells, and how many rows fulfil the caller's conditions.
    """

    rows: DataFrame
    seen: Sequence[Observation]

    def counted(self) -> Counter[str]:
        """Rows, flagged ones among them, and the caller's counts; once the rows have been written."""
        found: Counter[str] = Counter()
        for one in self.seen:
            found.update(one.get)
        return found


ROWS, FLAGGED = "burler_rows", "burler_flagged"
Field = Callable[[str], "Column"]
"""From the name of a column (of the stream, EXTRACTED_AT or VERSION) to its value where the rows are counted. Raises
LookupError for any other."""
Watch = Callable[[Field], Mapping[str, "Column"]]
"""Conditions by name; the rows that fulfil them are counted."""


def scan(spark: SparkSession, files: Sequence[LakeFile], united: United, watch: Watch | None = None) -> Scan:
    """See ``Scan``.

    Raises:
        LookupError: ``watch`` wants a column that is not known yet where rows are counted.
    """
    groups: dict[StructOf, list[LakeFile]] = {}
    for file in files:
        groups.setdefault(read_form(united.record, united.mapped(file.hash).names), []).append(file)
    scans = [_scan_group(spark, group, form, united.record, watch) for form, group in groups.items()]
    rows = functools.reduce(lambda one, other: one.unionByName(other), (one for one, _ in scans))
    return Scan(rows, [seen for _, seen in scans])


def read_form(record: StructOf, names: Mapping[Path, str]) -> StructOf:
    """``record`` by the names of one version, field by field; unheard-of names stand for what it does not have."""
    if not names:
        return record
    fillers = (f"_burler_none_{number}" for number in itertools.count(1))

    def form(kind: FieldType, path: Path) -> FieldType:
        match kind:
            case StructOf(fields):
                spelled = {name: names.get((*path, name)) for name, _ in fields}
                used = {source.lower() for source in spelled.values() if source is not None}
                return StructOf(
                    tuple(
                        (spelled[name] or (next(fillers) if name.lower() in used else name), form(one, (*path, name)))
                        for name, one in fields
                    )
                )
            case ListOf(item):
                return ListOf(form(item, (*path, "[]")))
            case MapOf(value):
                return MapOf(form(value, (*path, "{}")))
        return kind

    found = form(record, ())
    assert isinstance(found, StructOf)
    return found


def _scan_group(
    spark: SparkSession, files: Sequence[LakeFile], form: StructOf, record: StructOf, watch: Watch | None
) -> tuple[DataFrame, Observation]:
    """Files that are read with the same names."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    raw = spark.read.schema(_envelope(form)).options(**JSON_OPTIONS).json([escape(file.path) for file in files])
    # Counted right on the scan, where rows are whole already: anywhere above, it would copy each once more (and so
    # would count_if, which first computes its condition in a column).
    is_row, is_flagged = f.col("record").isNotNull(), f.col(_CORRUPT).isNotNull()
    counts = {ROWS: count_where(is_row | is_flagged), FLAGGED: count_where(is_flagged)}
    conditions = watch(_fields_of(form, record)) if watch is not None else {}
    counts |= {name: count_where(is_row & condition) for name, condition in conditions.items()}
    seen = Observation()
    observed = raw.observe(seen, *(count.alias(name) for name, count in counts.items()))
    facts = FileFacts(raw, files)
    one_task_a_file = all(file.path.endswith(".gz") for file in files)
    # Projected right on the scan, where the id follows the lines of a file: one task reads one gz file; others may be
    # split, hence the offset of the block. input_file_name() costs nothing, where _metadata copies each row twice.
    lines = observed.selectExpr(
        "record",
        "time_extracted",
        "version",
        f"{_CORRUPT} is not null as {_CORRUPT}",
        f"{facts.key} as {_PATH}",
        f"{'0L' if one_task_a_file else 'input_file_block_start()'} as {BLOCK}",
        f"monotonically_increasing_id() as {LINE}",
    )
    lines = lines.where(f"(record is not null or {_CORRUPT}) and {facts.found(_PATH)}")
    lines, of_file = facts.beside(lines, _PATH)
    rank = of_file[RANK]
    fields = zip(form.fields, record.fields, strict=True)
    rows = lines.select(
        *(_field(source, held, name, kind) for (source, held), (name, kind) in fields),
        f.col("time_extracted").alias(EXTRACTED_AT),
        f.col("version").alias(VERSION),
        of_file[SEQUENCE].alias(SEQUENCE),
        of_file[SOURCE_FILE].alias(SOURCE_FILE),
        f.when(f.col(_CORRUPT), -1 - rank).otherwise(rank).alias(RANK),
        BLOCK,
        LINE,
    )
    return rows, seen


def _envelope(form: StructOf) -> StructType:
    """A line of a file. No "type": of all lines of a clean file only its RECORDs have a record."""
    from pyspark.sql import types as t

    return t.StructType(
        [
            t.StructField("record", spark_schema(form)),
            t.StructField("time_extracted", t.TimestampType()),
            t.StructField("version", t.LongType()),
            t.StructField(_CORRUPT, t.StringType()),
        ]
    )


def _fields_of(form: StructOf, record: StructOf) -> Field:
    """The columns of a line's row, as they stand in the line."""
    from pyspark.sql import functions as f

    sources = {name: source for (source, _), (name, _) in zip(form.fields, record.fields, strict=True)}

    def field(name: str) -> Column:
        if name in (EXTRACTED_AT, VERSION):
            return f.col({EXTRACTED_AT: "time_extracted", VERSION: "version"}[name])
        return f.col("record").getField(sources[name])

    return field


def _field(source: str, held: FieldType, name: str, kind: FieldType) -> Column | str:
    from pyspark.sql import functions as f

    path = f"record.{quoted(source)}"
    if (source, held) == (name, kind):
        return path  # a name costs one call to the JVM, a column that is named some ten
    column = f.col(path)
    if held != kind:  # names inside differ: a struct is cast field by field, in order
        column = column.cast(spark_schema(StructOf(((name, kind),)))[name].dataType)
    return column.alias(name)


def count_where(condition: Column) -> Column:
    """How many rows fulfil a condition."""
    from pyspark.sql import functions as f

    return f.count(f.when(condition, True))


def escape(path: str) -> str:
    """A path that Spark takes word for word and not as a pattern."""
    return "".join("\\" + one if one in "{}[]*?\\" else one for one in path)


def explain(files: Iterable[LakeFile], store: Store, stream: str, hint: str = "") -> BurlerError | None:
    """The file that is to blame for a failed read, found by reading the files in Python; None if all are well.

    Args:
        hint: Spark's own message; files named in it are looked at first.
    """
    shown = unquote(hint)
    for file in sorted(files, key=lambda one: one.path not in shown):
        try:
            problem = _problem(file, store)
        except LakeError as error:
            return LakeError(f"stream '{stream}': {error}\nNothing was published.")
        if problem is not None:
            return LakeError(
                f"stream '{stream}': {file.path} {problem}.\nNothing was published. Restore the file from a copy; "
                "burler lake rebuild takes it as it is, or drops it where it was moved out of the lake."
            )
    return None


def spark_failure(error: Exception, files: Iterable[LakeFile], store: Store, stream: str) -> BurlerError:
    """One clear error for a Spark job that failed: the lake file to blame, else the first line of Spark's own."""
    text = str(error)
    found = explain(files, store, stream, text)
    if found is not None:
        return found
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    # py4j's first line only says which method was called; the last cause is the fact.
    told = [line for line in lines if not line.startswith("An error occurred while calling")]
    reason = next(iter(causes[-1:] or told[:1] or lines[:1]), type(error).__name__)
    return ExportError(f"stream '{stream}': Spark's job failed: {reason[:300]}\nNothing was published; run it again")


def _problem(file: LakeFile, store: Store) -> str | None:
    """What is wrong with the lines of a data file; None when it is as its manifest says."""
    rows = 0
    for number, line in numbered_lines(store, file.lake_path):
        try:
            rows += decode_head(line).type.upper() == "RECORD"
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return f"line {number} is no Singer message ({error}): {line[:_SHOWN].decode(errors='replace')}"
    if file.records is not None and rows != file.records:
        return f"holds {rows} rows, its manifest says {file.records}"
    return None
