"""The rows of a stream's clean files, through Spark's own JSON reader, with proof that none is lost.

Source: Spark facts C2 (what Spark's reader does in silence), D (paths), 11.26 (line order). All files are read at once
with the united type: a clean file holds nothing that its own schema does not declare, and fields that
it lacks are null. What Spark can't read is counted in the same pass that writes the table.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec

from burler.columns.kinds import StructOf
from burler.errors import BurlerError, ExportError, LakeError
from burler.lake.store import Store
from burler.spark.columns import BLOCK, EXTRACTED_AT, LINE, RANK, SEQUENCE, SOURCE_FILE, VERSION
from burler.spark.exact import numbered_lines
from burler.spark.lakefiles import LakeFile
from burler.spark.types import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation, SparkSession

_CORRUPT = "_corrupt_record"
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
    """Rows of clean files, and what must be looked at once they have been written."""

    rows: DataFrame
    seen: Observation
    files: Sequence[LakeFile]
    store: Store
    stream: str

    def verify(self) -> int:
        """Rows read, after the action that read them has ended well.

        Raises:
            LakeError: a line that is no JSON or does not fit its schema, or a file that holds more or
                fewer rows than its manifest says.
        """
        got = self.seen.get
        if got["corrupt"]:
            path, line = got["sample"]
            raise LakeError(
                f"stream '{self.stream}': {got['corrupt']} line(s) do not fit their schema, "
                f"the first in {local_path(path)}:\n{line[:_SHOWN]}\n"
                "The manifest calls this file clean, so it was changed since. Nothing was published. Restore it "
                "from a copy; burler lake rebuild takes it as it is."
            )
        expected = sum(file.records or 0 for file in self.files)
        if got["rows"] != expected or got["strangers"]:
            raise explain(self.files, self.store, self.stream) or LakeError(
                f"stream '{self.stream}': Spark read {got['rows']} rows where the manifest has {expected}. "
                "Nothing was published; run it again"
            )
        return int(got["rows"])


def scan(spark: SparkSession, files: Sequence[LakeFile], record: StructOf, *, store: Store, stream: str) -> Scan:
    """A DataFrame of the RECORD lines of ``files``: the stream's columns, ``_sdc_*`` and line order.

    Lazy: nothing is read until the caller writes ``rows`` (call ``Scan.verify`` after that).
    """
    from pyspark.sql import Observation
    from pyspark.sql import functions as f
    from pyspark.sql import types as t

    envelope = t.StructType(
        [
            t.StructField("type", t.StringType()),
            t.StructField("record", spark_schema(record)),
            t.StructField("time_extracted", t.TimestampType()),
            t.StructField("version", t.LongType()),
            t.StructField(_CORRUPT, t.StringType()),
        ]
    )
    paths = [escape(file.path) for file in files]
    raw = spark.read.schema(envelope).options(**JSON_OPTIONS).json(paths)
    # Projected right on the scan, where the id follows the lines of a file (one task reads one gz file;
    # plain and bz2 files may be split, hence the offset of the block).
    lines = raw.select(
        f.upper("type").alias("type"),
        "record",
        "time_extracted",
        "version",
        _CORRUPT,
        f.col("_metadata.file_path").alias("path"),
        f.col("_metadata.file_block_start").alias(BLOCK),
        f.monotonically_increasing_id().alias(LINE),
    )
    lines = lines.join(f.broadcast(_file_table(spark, raw, files)), "path", "left")
    is_row = (f.col("type") == "RECORD") & f.col("record").isNotNull()
    is_corrupt = f.col(_CORRUPT).isNotNull()
    seen = Observation()
    lines = lines.observe(
        seen,
        f.count(f.when(is_row, 1)).alias("rows"),
        f.count(f.when(is_corrupt, 1)).alias("corrupt"),
        f.min(f.when(is_corrupt, f.struct("path", _CORRUPT))).alias("sample"),
        f.count(f.when(f.col(RANK).isNull(), 1)).alias("strangers"),
    )
    rows = lines.where(is_row).select(
        *(f.col("record").getField(name).alias(name) for name, _ in record.fields),
        f.col("time_extracted").alias(EXTRACTED_AT),
        f.col("version").alias(VERSION),
        SEQUENCE,
        SOURCE_FILE,
        RANK,
        BLOCK,
        LINE,
    )
    return Scan(rows, seen, files, store, stream)


def escape(path: str) -> str:
    """A path that Spark takes word for word and not as a pattern (Spark facts D)."""
    return "".join("\\" + one if one in "{}[]*?\\" else one for one in path)


def local_path(uri: str) -> str:
    """A path as the file system knows it, from the percent-encoded URI that Spark shows."""
    return re.sub(r"\Afile:/+", "/", unquote(uri))


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
            rows += msgspec.json.decode(line, type=_Typed).type.upper() == "RECORD"
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return f"line {number} is no Singer message ({error}): {line[:_SHOWN].decode(errors='replace')}"
    if file.records is not None and rows != file.records:
        return f"holds {rows} rows, its manifest says {file.records}"
    return None


class _Typed(msgspec.Struct):
    type: str


def _file_table(spark: SparkSession, raw: DataFrame, files: Sequence[LakeFile]) -> Any:
    """Spark's spelling of each file's path beside what the manifest knows of it."""
    import pyarrow as pa

    by_path = {os.path.normpath(file.path): file for file in files}
    known = ((uri, by_path.get(os.path.normpath(local_path(uri)))) for uri in raw.inputFiles())
    # inputFiles() says file:///x where _metadata.file_path says file:/x: both go in, whichever Spark uses.
    spelled = [
        (spelling, file)
        for uri, file in known
        if file is not None
        for spelling in dict.fromkeys((uri, re.sub(r"\Afile:/+", "file:/", uri)))
    ]
    table = pa.table(
        {
            "path": pa.array([uri for uri, _ in spelled], pa.string()),
            RANK: pa.array([file.rank for _, file in spelled], pa.int64()),
            SEQUENCE: pa.array([file.sequence for _, file in spelled], pa.int64()),
            SOURCE_FILE: pa.array([file.name for _, file in spelled], pa.string()),
        }
    )
    return spark.createDataFrame(table)
