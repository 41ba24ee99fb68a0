"""Rows of files that are not clean: read in Python, line by line, each value exact or an error.

Spark's JSON reader would null, cut or drop some of these values in silence (Spark facts C2). Here every value is
taken from its source text and becomes exactly what specs 12 says; the rows go to a Parquet file in a
staging folder, which Spark reads and unites with the clean part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from burler.columns.kinds import BIGINT, STRING, TIMESTAMP, StructOf
from burler.columns.values import Convert, Misfit, Report, converter, parse_moment
from burler.errors import ExportError, LakeError
from burler.extras import require
from burler.lake.datafile import read_blocks
from burler.lake.store import Store
from burler.spark.columns import BLOCK, EXTRACTED_AT, LINE, RANK, SEQUENCE, SOURCE_FILE, VERSION
from burler.spark.lakefiles import LakeFile
from burler.spark.types import arrow_schema
from burler.spark.unite import restrict

_BATCH_ROWS = 10_000

STAGED = (
    (EXTRACTED_AT, TIMESTAMP),
    (VERSION, BIGINT),
    (SEQUENCE, BIGINT),
    (SOURCE_FILE, STRING),
    (RANK, BIGINT),
    (BLOCK, BIGINT),
    (LINE, BIGINT),
)
"""What stands after the stream's columns in a staged file, in the order of ``scan.scan``."""


@dataclass(slots=True)
class Exact:
    """What the exact path made: a Parquet file, its rows, and what had to be dropped or cut on the way.

    ``activated`` maps a file's rank to the last version it activates.
    """

    path: Path
    rows: int = 0
    report: Report = field(default_factory=lambda: Report(Counter(), Counter()))
    activated: dict[int, int] = field(default_factory=dict)

    def notes(self) -> tuple[str, ...]:
        """One line per field that lost something, for the user."""
        dropped = (
            f"field '{path}' is not in the schema: dropped from {n} row(s)" for path, n in self.report.dropped.items()
        )
        cut = (f"field '{path}': {n} time(s) cut to microseconds" for path, n in self.report.truncated.items())
        return (*dropped, *cut)


class _Line(msgspec.Struct):
    """A line's envelope; the record stays source text."""

    type: str
    record: msgspec.Raw = msgspec.Raw(b"null")
    time_extracted: str | None = None
    version: int | None = None


def stage(
    files: Sequence[LakeFile],
    record: StructOf,
    own: Mapping[str, StructOf],
    folder: Path,
    *,
    store: Store,
    stream: str,
) -> Exact:
    """Write the rows of ``files`` to one Parquet file in ``folder`` (made if missing).

    Args:
        record: the united columns. own: each schema version's columns, by hash; a field that a file's own
            version does not declare is dropped and counted.

    Raises:
        ExportError: a value that its column can't hold exactly; names stream, file, line, field and value.
        LakeError: a damaged file, a line that is no message, or not the rows that the manifest says.
    """
    parquet = require("pyarrow.parquet", extra="spark", needed_for="burler.spark")
    arrow = require("pyarrow", extra="spark", needed_for="burler.spark")
    folder.mkdir(parents=True, exist_ok=True)
    done = Exact(folder / "exact.parquet")
    schema = arrow_schema(StructOf(record.fields + STAGED))
    batch: list[dict[str, Any]] = []
    with parquet.ParquetWriter(done.path, schema) as writer:
        for file in files:
            convert = converter(restrict(record, own[file.hash]), ())
            for row in _rows(file, convert, done, store, stream):
                batch.append(row)
                if len(batch) >= _BATCH_ROWS:
                    writer.write_batch(arrow.RecordBatch.from_pylist(batch, schema=schema))
                    batch.clear()
        if batch:
            writer.write_batch(arrow.RecordBatch.from_pylist(batch, schema=schema))
    return done


def _rows(file: LakeFile, convert: Convert, done: Exact, store: Store, stream: str) -> Iterator[dict[str, Any]]:
    """The rows of one file as Python values."""
    rows = 0
    for number, line in _messages(file, store, stream):
        kind = line.type.upper()
        if kind == "ACTIVATE_VERSION" and line.version is not None:
            done.activated[file.rank] = line.version
        if kind != "RECORD":
            continue
        try:
            row = convert(bytes(line.record), done.report)
            row[EXTRACTED_AT] = None if line.time_extracted is None else parse_moment(line.time_extracted)[0]
        except Misfit as misfit:
            raise _fatal(stream, file, number, misfit.path, misfit.text, misfit.wanted) from None
        except ValueError:
            raise _fatal(
                stream, file, number, ("time_extracted",), line.time_extracted or "", "RFC 3339 time"
            ) from None
        rows += 1
        row |= {VERSION: line.version, SEQUENCE: file.sequence, SOURCE_FILE: file.name}
        row |= {RANK: file.rank, BLOCK: 0, LINE: number}
        yield row
    if file.records is not None and rows != file.records:
        raise LakeError(
            f"stream '{stream}': {file.path} holds {rows} rows, its manifest says {file.records}. "
            "Restore it from a copy; burler lake rebuild takes it as it is."
        )
    done.rows += rows


def numbered_lines(store: Store, lake_path: str) -> Iterator[tuple[int, bytes]]:
    """The lines of a data file without their ends, numbered from 1; empty lines are passed over.

    Raises:
        LakeError: the file is missing, truncated or corrupt.
    """
    number = 0
    for block in read_blocks(store, lake_path):
        for line in block[:-1].split(b"\n"):
            number += 1
            if line and not line.isspace():
                yield number, line


def _messages(file: LakeFile, store: Store, stream: str) -> Iterator[tuple[int, _Line]]:
    decoder = msgspec.json.Decoder(_Line)
    lines = numbered_lines(store, file.lake_path)
    while True:
        try:
            number, line = next(lines)
        except StopIteration:
            return
        except LakeError as error:
            raise LakeError(f"stream '{stream}': {error}\nNothing was published.") from None
        try:
            yield number, decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise LakeError(
                f"stream '{stream}': {file.path} line {number} is no Singer message ({error}): "
                f"{line[:80].decode('utf-8', 'replace')}\nNothing was published. Move the file out of the lake, "
                "and the manifest too: the next write makes a new one from the data files"
            ) from None


def _fatal(stream: str, file: LakeFile, line: int, path: tuple[str, ...], text: str, wanted: str) -> ExportError:
    place = ".".join(path) or "record"
    return ExportError(
        f"stream '{stream}': {file.path} line {line}, field '{place}': {text[:80]} can't be held exactly; "
        f"the schema wants {wanted}.\nNothing was published. Correct the schema or the value in the tap. Then move the "
        "file out of the lake, remove the stream's manifest.json (it is made anew), and extract again"
    )
