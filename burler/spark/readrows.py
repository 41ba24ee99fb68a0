"""The rows of a stream's lake files as one DataFrame, each value exact, with proof that none is lost.

Clean files go through Spark's own JSON reader (``scan``), all others
through exact Python (``exact``), on the driver where they are few and on executors where they are many (``spread``).
Exact rows are written to a staging folder at once, so what can't be held is known before anything is published.

    read = read_rows(spark, files, united, ...)   # may raise Flagged
    ... write read.frame ...
    report = read.verify()                        # may raise Flagged: read again with those files not clean
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from burler.errors import LakeError
from burler.records.columns.types import VARIANT, StructOf, holds
from burler.spark.columns import RANK, STAGED, named
from burler.spark.lakefiles import LakeFile
from burler.spark.readoptions import ReadOptions
from burler.spark.remote import Capabilities, capabilities
from burler.spark.scan import FLAGGED, ROWS, Field, Scan, Watch, count_where, explain, scan
from burler.spark.spread import Staged, stage
from burler.spark.types import spark_schema
from burler.spark.united import United, place_of
from burler.storage.base import Store
from burler.words import counted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation, SparkSession


class Flagged(Exception):
    """Read again, otherwise. No error of the user's: whoever calls ``read_rows`` does so.

    ``files``: Spark could not read lines of them although they count as clean; read them with ``clean=False``.
    ``as_text``: columns of doubles in which an older schema has integers that no double holds. Unite the versions again
    with these added to ``ReadOptions.as_text``, and nothing is rounded. (Read on without, such rows are bad ones.)
    """

    def __init__(self, files: Iterable[LakeFile] = (), as_text: Iterable[str] = ()) -> None:
        self.files = tuple(files)
        self.as_text = frozenset(as_text)
        super().__init__(
            f"{counted(len(self.files), 'file')} to be read a second time; as text: {sorted(self.as_text)}"
        )


@dataclass(frozen=True, slots=True)
class ReadReport:
    """What was read.

    ``rows``: rows in the frame. ``repaired``: values in an odd spelling that were read as what they mean.
    ``quarantined``: rows that are not in the frame; they are in ``bad`` (a file of ``quarantine.write_bad``).
    ``truncated``: times cut to microseconds, by field. ``watched``: how many rows fulfil the caller's conditions.
    ``notes``: for the user, one line for each thing.
    """

    rows: int
    repaired: int
    quarantined: int
    notes: tuple[str, ...]
    bad: Path | None
    truncated: Mapping[str, int] = field(default_factory=dict)
    watched: Mapping[str, int] = field(default_factory=dict)


class ReadRows:
    """Rows to be written, and what proves afterwards that they were all there.

    ``frame``: the columns of ``united.record``, then those of ``columns.STAGED``; lazy. ``activated``: by file rank the
    last ACTIVATE_VERSION of files that no manifest knows. ``bad_rows``, ``bad``: rows that are not in the frame, known
    at once; Spark may flag more (``verify``).
    """

    def __init__(
        self,
        frame: DataFrame,
        *,
        scanned: Scan | None,
        watched: Sequence[Observation | _Counted],
        files: Sequence[LakeFile],
        staged: Staged,
        store: Store,
        stream: str,
    ) -> None:
        self.frame = frame
        self.activated: Mapping[int, int] = staged.activated
        self.bad_rows = staged.bad_rows
        self.bad = staged.bad
        self._scanned = scanned
        self._watched = watched
        self._files = files
        self._staged = staged
        self._store = store
        self._stream = stream

    def verify(self) -> ReadReport:
        """Call it once the action that read ``frame`` has ended well, and before anything is published.

        Raises:
            Flagged: Spark could not read lines of clean files; what was written is not to be used.
            LakeError: a file holds more or fewer rows than its manifest says.
        """
        got: Counter[str] = Counter()
        if self._scanned is not None:
            got.update(self._scanned.counted())
            self._prove(got.pop(ROWS), got.pop(FLAGGED))
        for one in self._watched:
            got.update(one.get)
        staged = self._staged
        return ReadReport(
            rows=staged.rows + sum(file.records or 0 for file in self._files),
            repaired=staged.repaired,
            quarantined=staged.bad_rows,
            notes=notes_of(staged.dropped, staged.truncated, staged.repaired),
            bad=staged.bad,
            truncated=dict(staged.truncated),
            watched=got,
        )

    def _prove(self, rows: int, flagged: int) -> None:
        if flagged:
            raise Flagged(self._flagged_files())
        expected = sum(file.records or 0 for file in self._files)
        if rows != expected:
            raise explain(self._files, self._store, self._stream) or LakeError(
                f"stream '{self._stream}': Spark read {rows} rows where the manifest has {expected}. "
                "Nothing was published; run it again"
            )

    def _flagged_files(self) -> list[LakeFile]:
        """The files that hold a line that Spark flags: one more pass, in the rare case that there is one."""
        assert self._scanned is not None
        rank = named(RANK)
        found = {-1 - row[0] for row in self._scanned.rows.where(rank < 0).select(rank).distinct().collect()}
        return [file for file in self._files if file.rank in found]


def read_rows(
    spark: SparkSession,
    files: Sequence[LakeFile],
    united: United,
    *,
    store: Store,
    stream: str,
    options: ReadOptions,
    staging: Path,
    watch: Watch | None = None,
) -> ReadRows:
    """The rows of ``files``.

    Args:
        staging: a folder for what is read exactly; the caller removes it when the frame has been written.
        watch: makes conditions by name of a function from a column's name to its value; the rows that fulfil them are
            counted in the same pass that reads (``ReadReport.watched``). Conditions on the stream's columns,
            EXTRACTED_AT and VERSION cost nearly nothing, on others a copy of each row.

    Raises:
        Flagged: see there. LakeError: a damaged file. ExportError: a file under an unknown schema.
    """
    engine = capabilities(spark)
    plain = engine.has_corrupt_record and engine.has_metadata  # Sail's reader fails on the first odd line
    clean = [file for file in files if plain and _may_scan(file, united)]
    ranks = {file.rank for file in clean}
    odd = [file for file in files if file.rank not in ranks]
    staged = stage(spark, odd, united, store=store, stream=stream, options=options, staging=staging)
    if staged.as_text:
        raise Flagged(as_text=(place_of(path) for path in staged.as_text))
    watched: list[Observation | _Counted] = []
    scanned, early = _scanned(spark, clean, united, watch)
    parts = [scanned.rows] if scanned is not None else []
    if staged.frame is not None:
        parts.append(_observed(staged.frame, watch if early else None, watched, engine))
    if not parts:
        parts = [spark.createDataFrame([], spark_schema(StructOf(united.record.fields + STAGED.fields)))]
    frame = parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])
    frame = _observed(frame, None if early else watch, watched, engine)
    return ReadRows(frame, scanned=scanned, watched=watched, files=clean, staged=staged, store=store, stream=stream)


def notes_of(dropped: Mapping[str, int], truncated: Mapping[str, int], repaired: int = 0) -> tuple[str, ...]:
    """One line for each field that lost something, for the user."""
    lost = [f"field '{path}' is not in the schema: dropped from {counted(n, 'row')}" for path, n in dropped.items()]
    cut = [f"field '{path}': {counted(n, 'time')} cut to microseconds" for path, n in truncated.items()]
    odd = [f"{counted(repaired, 'value')} in an odd spelling, read as what is meant"] if repaired else []
    return (*lost, *cut, *odd)


def _may_scan(file: LakeFile, united: United) -> bool:
    """Whether Spark's reader gets all values of a file right. Of a VARIANT it would bend numbers in silence."""
    mapped = united.mapped(file.hash)
    return file.clean and file.records is not None and not mapped.wide and not holds(mapped.own, VARIANT)


@dataclass(frozen=True, slots=True)
class _Counted:
    """What an observation gives, where the engine has none: counted in a pass of its own."""

    frame: DataFrame
    counts: Sequence[Column]

    @property
    def get(self) -> dict[str, Any]:
        found = self.frame.agg(*self.counts).first()
        return found.asDict() if found is not None else {}


def _scanned(
    spark: SparkSession, files: Sequence[LakeFile], united: United, watch: Watch | None
) -> tuple[Scan | None, bool]:
    """The scan of clean files, and whether ``watch`` could do with what a line says (else: with finished rows)."""
    if not files:
        return None, True
    try:
        return scan(spark, files, united, watch), True
    except LookupError:
        return scan(spark, files, united), False


def _observed(
    frame: DataFrame,
    watch: Watch | None,
    watched: list[Observation | _Counted],
    engine: Capabilities,
) -> DataFrame:
    """``frame``, counted by ``watch`` when it is read; what counts is added to ``watched``."""
    from pyspark.sql import Observation

    column: Field = named
    counts = [count_where(one).alias(name) for name, one in (watch(column) if watch is not None else {}).items()]
    if not counts:
        return frame
    if not engine.has_observe:
        watched.append(_Counted(frame, counts))
        return frame
    seen = Observation()
    watched.append(seen)
    return frame.observe(seen, *counts)


__all__ = ["Flagged", "ReadOptions", "ReadReport", "ReadRows", "notes_of", "read_rows"]
