"""Rows of lake files read in Python: each value exact, or its row is named as bad. No Spark.

Spark's JSON reader would null, cut or drop some values in silence, so files that are not clean, and
small increments, are read here: blocks of lines a column at a time (``burler.records.columns.from_json``), and a block
with a value that does not fit row by row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from burler.errors import LakeError
from burler.extras import require
from burler.lake.datafile import read_blocks
from burler.records.columns.converters import ColumnMisfit, Report, converter
from burler.records.columns.types import TIMESTAMP, StructOf
from burler.singer.lines import OpenMessage, decode_open
from burler.spark.columns import STAGED
from burler.spark.lakefiles import LakeFile
from burler.spark.quarantine import BadRow, bad_row
from burler.spark.readoptions import ReadOptions
from burler.spark.refit import Refit, refit
from burler.spark.types import arrow_schema
from burler.spark.united import United
from burler.storage.base import Store
from burler.surrogates import half_pair

if TYPE_CHECKING:
    import pyarrow

_TIME = ("time_extracted",)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the lines of one batch.

    ``rows``: rows in the batch. ``repaired``: values in an odd spelling (``1.0`` for an integer). ``bad``: rows that
    are not in it. ``truncated``: times cut to microseconds, ``dropped``: fields that no schema declares; both by field.
    ``activated``: version of the last ACTIVATE_VERSION of the file so far.
    """

    rows: int = 0
    repaired: int = 0
    bad: tuple[BadRow, ...] = ()
    truncated: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    activated: int | None = None


@dataclass(frozen=True, slots=True)
class _Row:
    """A RECORD line; ``number`` counts all lines of the file from 1."""

    number: int
    line: OpenMessage
    record: bytes


_BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def exact_batches(
    store: Store, file: LakeFile, united: United, *, stream: str, options: ReadOptions
) -> Iterator[tuple[pyarrow.RecordBatch, Outcome]]:
    """The rows of one file, in its order; batches of some thousand rows.

    Their columns are those of ``united.record``, then ``columns.STAGED``. VARIANT columns hold JSON text.

    Raises:
        LakeError: the file is missing, truncated or corrupt, or has not the rows that the manifest says.
        ExportError: the file's schema is none of the united ones.
    """
    require("pyarrow", extra="spark", needed_for="burler.spark")
    reader = _Reader(file, united)
    rows = bad = 0
    blocks = _blocks(store, file, stream)
    for block in blocks:
        batch, outcome = reader.block(block)
        rows += outcome.rows
        bad += len(outcome.bad)
        yield batch, outcome
    if file.records is not None and rows + bad != file.records:
        raise LakeError(
            f"stream '{stream}': {file.path} holds {rows + bad} rows, its manifest says {file.records}. Nothing was "
            "published.\nRestore it from a copy; burler lake rebuild takes it as it is."
        )


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


def _blocks(store: Store, file: LakeFile, stream: str) -> Iterator[bytes]:
    try:
        yield from read_blocks(store, file.lake_path)
    except LakeError as error:
        raise LakeError(f"stream '{stream}': {error}\nNothing was published.") from None


class _Reader:
    """Reads the blocks of one file, in order."""

    def __init__(self, file: LakeFile, united: United) -> None:
        from burler.records.columns.from_json import UNCERTAIN, Splitter

        mapped = united.mapped(file.hash)
        self._file = file
        self._split = Splitter(mapped.own)
        self._convert = converter(mapped.own, ())
        self._refit: Refit = refit(united.record, mapped)
        self._own_schema = arrow_schema(mapped.own)
        self._schema = arrow_schema(StructOf(united.record.fields + STAGED.fields))
        self._unsure: tuple[type[Exception], ...] = (ColumnMisfit, *UNCERTAIN)
        self._line = 0
        self._activated: int | None = None

    def block(self, block: bytes) -> tuple[pyarrow.RecordBatch, Outcome]:
        """Complete lines, each with its end."""
        bad: list[BadRow] = []
        rows = self._rows(block, bad)
        report = Report()
        arrays = self._quick(rows, report)
        if arrays is None:
            report = Report()
            rows, arrays = self._one_by_one(rows, bad, report)
        batch = self._batch(rows, arrays)
        outcome = Outcome(
            batch.num_rows,
            report.repaired.total(),
            tuple(bad),
            dict(report.truncated),
            dict(report.dropped),
            self._activated,
        )
        return batch, outcome

    def _rows(self, block: bytes, bad: list[BadRow]) -> list[_Row]:
        """The RECORD lines; what is no message goes to ``bad``."""
        lines = block[:-1].split(b"\n")
        first, self._line = self._line + 1, self._line + len(lines)
        found: list[_Row] = []
        for number, text in enumerate(lines, first):
            if not text or text.isspace():
                continue
            try:
                line = decode_open(text)
            except _BROKEN as error:
                bad.append(_no_message(self._file.name, number, text, error))
                continue
            kind = line.type.upper()
            if kind == "RECORD":
                found.append(_Row(number, line, b"null" if line.record is UNSET else bytes(line.record)))
            elif kind == "ACTIVATE_VERSION" and line.version is not None:
                self._activated = line.version
        return found

    def _quick(self, rows: list[_Row], report: Report) -> list[Any] | None:
        """The arrays of the file's own columns and of the times; None where some row wants a closer look."""
        import pyarrow as pa

        if not rows:
            return None
        data = b"\n".join([row.record for row in rows]) + b"\n"
        try:
            arrays = self._split.arrays(data, report)
            times = _times([row.line.time_extracted for row in rows])
            versions = pa.array([row.line.version for row in rows], pa.int64())
        except self._unsure:
            return None
        # Splitter passes over blank records; an empty one would put all others out of place.
        if any(len(array) != len(rows) for array in arrays):
            return None
        return [*arrays, times, versions]

    def _one_by_one(self, rows: list[_Row], bad: list[BadRow], report: Report) -> tuple[list[_Row], list[Any]]:
        """The rows that fit, and their arrays; the others go to ``bad``."""
        import pyarrow as pa

        good: list[_Row] = []
        values: list[dict[str, Any]] = []
        for row in rows:
            found = Report()
            record = row.record
            try:
                value = self._convert(record, found)
                _extracted(row.line)
            except ColumnMisfit as misfit:
                bad.append(bad_row(self._file.name, row.number, misfit.path, misfit.text, misfit.wanted, record))
                continue
            except _BROKEN as error:
                bad.append(bad_row(self._file.name, row.number, (), _shown(record), f"valid JSON ({error})", record))
                continue
            report.add(found)
            good.append(row)
            values.append(value)
        bad.sort(key=lambda one: one.line)
        batch = pa.RecordBatch.from_pylist(values, schema=self._own_schema)
        times = pa.array([_extracted(row.line) for row in good], pa.timestamp("us", "UTC"))
        versions = pa.array([row.line.version for row in good], pa.int64())
        return good, [*batch.columns, times, versions]

    def _batch(self, rows: list[_Row], arrays: list[Any]) -> pyarrow.RecordBatch:
        import pyarrow as pa

        count, file = len(rows), self._file
        own, times, versions = arrays[:-2], arrays[-2], arrays[-1]
        staged = [
            times,
            versions,
            pa.repeat(pa.scalar(file.sequence, pa.int64()), count),
            pa.repeat(pa.scalar(file.name, pa.string()), count),
            pa.repeat(pa.scalar(file.rank, pa.int64()), count),
            pa.repeat(pa.scalar(0, pa.int64()), count),
            pa.array([row.number for row in rows], pa.int64()),
        ]
        return pa.RecordBatch.from_arrays([*self._refit(own, count), *staged], schema=self._schema)


_moment = converter(TIMESTAMP, _TIME)


def _extracted(line: OpenMessage) -> Any:
    if line.version is not None and not -(2**63) <= line.version < 2**63:
        raise ColumnMisfit(("version",), str(line.version).encode(), "an integer of 64 bits")
    if line.time_extracted is None:
        return None
    return _moment(msgspec.json.encode(line.time_extracted), Report())


def _times(texts: list[str | None]) -> Any:
    """The times of a block: few different ones."""
    import pyarrow as pa

    nothing = Report()
    known = {text: text and _moment(msgspec.json.encode(text), nothing) for text in set(texts)}
    return pa.array([known[text] for text in texts], pa.timestamp("us", "UTC"))


def _no_message(name: str, number: int, text: bytes, error: Exception) -> BadRow:
    path = half_pair(text)
    if path is None:
        return bad_row(name, number, (), _shown(text), f"a Singer message ({error})", text)
    return bad_row(name, number, path[1:], _shown(text), "text without half of a surrogate pair", text)


def _shown(text: bytes) -> str:
    return text[:200].decode("utf-8", "replace")


__all__ = ["Outcome", "exact_batches", "numbered_lines"]
