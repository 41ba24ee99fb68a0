"""The export of one stream: a plan, the rows that it asks for, proof that nothing was lost, one atomic publication."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from burler.errors import BurlerError, ExportError
from burler.spark import under_way
from burler.spark.confs import export_confs
from burler.spark.export_bad import BadRows
from burler.spark.export_options import ExportOptions
from burler.spark.formats.base import Change, Kind, Published, TableState, Target
from burler.spark.lakefiles import LakeStream
from burler.spark.plan import Plan, decide
from burler.spark.readrows import Flagged, ReadReport, ReadRows, read_rows
from burler.spark.remote import task_slots
from burler.spark.rows import key_error, make, watch
from burler.spark.scan import spark_failure
from burler.spark.small import fits, read_small

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger("burler.spark")

_FILE_BYTES = 24 << 20
"""Bytes of Parquet for each file of a table, unless the user says otherwise."""
_LEAST_BYTES = 2 << 20
"""Files are made smaller than ``_FILE_BYTES``, down to this, where that gives each task slot the same work."""
_PARQUET_RATIO = 5
"""How much smaller a table's Parquet is than the lake's JSON lines, as a guess."""


@dataclass(frozen=True, slots=True)
class StreamResult:
    """What an export did for one stream.

    ``rows_read``: RECORD lines read from the lake in this run. ``rows_written``: rows in the files that this run added.
    ``seconds``: wall time, without the start of Spark. ``version``: the table's version now, None if there is no
    table. ``skipped``: it was up to date and nothing was read. ``table``: path or name of the table. ``notes``: what a
    person should know, one line each. ``repaired``: rows that Spark's reader flagged and that were read exactly after
    all. ``quarantined``: rows that no column can hold, of which ``quarantine`` is the file. ``error``: set if the
    stream failed; its table is as it was.
    """

    tap_id: str
    stream: str
    rows_read: int
    rows_written: int
    seconds: float
    version: int | None
    skipped: bool
    table: str
    notes: tuple[str, ...] = ()
    error: BurlerError | None = None
    repaired: int = 0
    quarantined: int = 0
    quarantine: str | None = None


@dataclass(slots=True)
class StreamRun:
    """One stream of one export.

    ``session``: gives the Spark session, and starts it if there is none. ``staging``: makes and gives the folder for
    what is on its way. ``quarantine``: where rows go that no column can hold.
    """

    lake: LakeStream
    target: Target
    options: ExportOptions
    session: Callable[[], SparkSession]
    staging: Callable[[], Path]
    quarantine: Path
    batched_at: dt.datetime
    _report: ReadReport = field(default_factory=lambda: ReadReport(0, 0, 0, (), None), init=False)

    def run(self) -> StreamResult:
        """Bring the table up to date.

        Raises:
            BurlerError: it failed; nothing was published.
        """
        lake, state = self.lake, self.target.open()
        plan = decide(lake, state, self.options)
        if plan.kind == "skip":
            return StreamResult(lake.tap_id, lake.stream, 0, 0, 0.0, state.version, True, self.target.place)
        bad = BadRows(lake, self.options, self.quarantine)
        with bad.kept():
            plan, published = self._read_until_right(plan, state, bad)
        report = self._report
        return StreamResult(
            lake.tap_id,
            lake.stream,
            report.rows + report.quarantined,
            published.rows_written,
            0.0,
            published.version,
            False,
            self.target.place,
            notes=(*plan.united.notes, *report.notes),
            repaired=report.repaired,
            quarantined=report.quarantined,
            quarantine=bad.place,
        )

    def _read_until_right(self, plan: Plan, state: TableState, bad: BadRows) -> tuple[Plan, Published]:
        """Read and publish; again where a reading shows that files or columns want another way."""
        odd: frozenset[int] = frozenset()
        while True:
            try:
                return plan, self._publish(plan, state, bad)
            except Flagged as flagged:
                ranks = odd | {file.rank for file in flagged.files}
                as_text = plan.read.as_text | flagged.as_text
                if (ranks, as_text) == (odd, plan.read.as_text):
                    raise self._unsteady(flagged) from None
            _log.info("stream '%s': some values want a closer look; reading again", self.lake.stream)
            odd = ranks
            if as_text != plan.read.as_text:
                plan = decide(self.lake, state, replace(self.options, read=replace(plan.read, as_text=as_text)))
            files = tuple(replace(file, clean=False) if file.rank in odd else file for file in plan.files)
            plan = replace(plan, files=files)

    def _unsteady(self, flagged: Flagged) -> ExportError:
        names = ", ".join(file.path for file in flagged.files[:3])
        return ExportError(
            f"stream '{self.lake.stream}': what is read from {names or 'its files'} differs each time. "
            "Nothing was published. Is the lake being changed? Run the export again"
        )

    def _publish(self, plan: Plan, state: TableState, bad: BadRows) -> Published:
        if not plan.files and (plan.kind != "upsert" or plan.replaces):
            return self.target.publish(None, self._change(plan, state))  # an empty table, or new columns only
        if self._is_small(plan):
            with under_way.noted(self._name, plan.rows):
                return self._small(plan, state, bad)
        return self._spark(plan, state, bad)

    @property
    def _name(self) -> str:
        return f"{self.lake.tap_id}/{self.lake.stream}"

    def _is_small(self, plan: Plan) -> bool:
        if not fits(plan, self.options):
            return False
        if plan.kind == "upsert" and not plan.replaces:
            return self.target.merges_arrow and plan.active == plan.before
        return self.target.appends_arrow

    def _small(self, plan: Plan, state: TableState, bad: BadRows) -> Published:
        made = read_small(self.lake, plan, batched_at=self.batched_at, staging=self.staging)
        self._report = made.report
        bad.refuse_cut_keys(made.report, plan.keys)
        return self.target.publish(made.rows, self._change(made.plan, state, check=lambda: bad.publish(made.report)))

    def _spark(self, plan: Plan, state: TableState, bad: BadRows) -> Published:
        spark = self.session()
        failure: BurlerError
        with export_confs(spark, self._rows_a_file(plan)), under_way.noted(self._name, plan.rows, spark):
            try:
                read = self._read(spark, plan)
                if read is not None and read.bad_rows > plan.read.max_bad_rows:
                    bad.publish(ReadReport(0, 0, read.bad_rows, (), read.bad))  # before anything is written in vain
                plan = plan.activated(read.activated) if read is not None else plan
                merge = plan.kind == "upsert" and self.target.merges_frames and plan.active == plan.before
                old = self.target.rows(spark) if plan.kind == "upsert" and not merge and not plan.replaces else None
                rows = make(None if read is None else read.frame, old, plan, batched_at=self.batched_at)
                change = self._change(
                    plan,
                    state,
                    merge=merge,
                    slots=task_slots(spark) or 1,
                    check=lambda: self._verify(read, plan, bad),
                )
                return self.target.publish(rows, change)
            except (BurlerError, Flagged):
                raise
            except Exception as error:  # Spark raises many kinds; all become one clear error
                failure = spark_failure(error, plan.files, self.lake.store, self.lake.stream)
        # Raised out here so that py4j's exception is not kept with it: freed once the JVM is gone, it would
        # print a traceback of its own.
        raise failure

    def _read(self, spark: SparkSession, plan: Plan) -> ReadRows | None:
        if not plan.files:
            return None
        return read_rows(
            spark,
            plan.files,
            plan.united,
            store=self.lake.store,
            stream=self.lake.stream,
            options=plan.read,
            staging=self.staging(),
            watch=watch(plan),
        )

    def _verify(self, read: ReadRows | None, plan: Plan, bad: BadRows) -> None:
        """Once all rows are written, and before they are published."""
        if read is None:
            return
        report = self._report = read.verify()
        fault = key_error(
            self.lake.stream, plan.keys, report.watched.get("keyless", 0), report.watched.get("blurred", 0)
        )
        if fault is not None:
            raise fault
        bad.refuse_cut_keys(report, plan.keys)
        bad.publish(report)

    def _change(
        self,
        plan: Plan,
        state: TableState,
        *,
        merge: bool = True,
        slots: int = 1,
        check: Callable[[], None] = lambda: None,
    ) -> Change:
        merge &= plan.kind == "upsert" and not plan.replaces
        kind: Kind = "append" if plan.kind == "append" else "merge" if merge else "replace"
        return Change(
            kind=kind,
            columns=plan.columns,
            schema=plan.schema,
            numbers=plan.numbers,
            keys=plan.keys,
            newer=(*plan.order, "_sdc_extracted_at", "_sdc_sequence") if plan.keys else (),
            metadata={
                "burler.source": self._name,
                "burler.generation": self.lake.generation or "",
                "burler.sequence": str(self.lake.sequence),
                "burler.mode": self.options.mode or "",
            },
            partition_by=plan.partition_by,
            file_count=self._file_count(plan, state, kind, slots),
            check=check,
        )

    def _file_count(self, plan: Plan, state: TableState, kind: str, slots: int) -> int:
        """How many files to write, one by each task: a small table is one file, a larger one keeps all slots busy."""
        size = plan.bytes // _PARQUET_RATIO
        if plan.kind == "upsert" and kind == "replace" and not plan.replaces:
            size += state.bytes
        if self.options.file_bytes is not None:
            return 1 + size // self.options.file_bytes
        files = 1 + size // _FILE_BYTES
        return max(files, min(-(-files // slots) * slots, size // _LEAST_BYTES))

    def _rows_a_file(self, plan: Plan) -> int | None:
        """How many rows make a file of the size that the user wants; None without a wish."""
        wanted = self.options.file_bytes
        if wanted is None or not plan.rows or not plan.bytes:
            return None
        return max(1, wanted * _PARQUET_RATIO * plan.rows // plan.bytes)
