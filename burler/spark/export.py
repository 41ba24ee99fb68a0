"""From a lake to tables: each stream's new rows become one new, whole version of a Delta table.

Source: specs 11.20, 11.24, 11.26, 11.30, 11.31; Spark facts E. For each stream: one snapshot of its manifest, a plan
(``plan.decide``), one Spark job that reads and writes (``rows``), proof that nothing was lost, one atomic
commit (``delta.commit``). A stream that fails leaves its table as it was and does not stop the others.
"""

from __future__ import annotations

import datetime as dt
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from burler.errors import BurlerError, ExportError
from burler.lake.store import Store, open_store
from burler.spark.delta import DeltaState, commit, data_folder, open_state, remove_leftovers, staging_of
from burler.spark.exact import Exact, stage
from burler.spark.lakefiles import LakeStream, find_streams, load_stream
from burler.spark.parquet import data_files
from burler.spark.plan import Plan, decide, last_activation
from burler.spark.rows import make, write
from burler.spark.scan import spark_failure
from burler.spark.session import job_confs
from burler.spark.session import session as start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger("burler.spark")


@dataclass(frozen=True, slots=True)
class StreamResult:
    """What an export did for one stream.

    ``rows_read``: RECORD lines read from the lake in this run. ``rows_written``: rows in the Parquet files that
    this run added. ``seconds``: wall time, without the start of Spark. ``version``: the table's version now, None
    if there is no table. ``skipped``: it was up to date and nothing was read. ``notes``: what the exact path
    had to drop or cut, one line a field. ``error``: set if the stream failed; its table is as it was.
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


def export(
    spark: SparkSession | None,
    lake: str,
    out: str,
    *,
    streams: Sequence[str] | None = None,
    taps: Sequence[str] | None = None,
    on_progress: Callable[[StreamResult], None] | None = None,
) -> list[StreamResult]:
    """Bring the tables under ``out`` up to date with a lake.

    Streams with keys keep the latest row of each key, others every row. Only files that are new to a table are
    read; a lake of another generation, changed keys or changed column types make the table anew, in one commit.

    Args:
        spark: the session to work in; None starts one (``burler.spark.session``) when the first stream needs it.
        lake: the lake's folder. out: where tables go, as ``out/<tap_id>/<stream>``.
        streams, taps: names to export; all when left out.
        on_progress: called once for each stream as it ends, failed ones too.

    Raises:
        UsageError: no such lake, tap or stream. MissingExtra: pyspark or deltalake is not installed.
        ExportError, LakeError, StorageError: a stream failed. Raised when all others are done; for several
            failed streams an ExportError with one line for each.
    """
    store = open_store(lake, must_exist=True)
    exporter = _Exporter(spark, store, Path(out).absolute())
    results: list[StreamResult] = []
    for tap_id, stream in find_streams(store, taps=taps, streams=streams):
        results.append(exporter.run(tap_id, stream))
        if on_progress is not None:
            on_progress(results[-1])
    failed = [result for result in results if result.error is not None]
    if len(failed) == 1 and failed[0].error is not None:
        raise failed[0].error
    if failed:
        raise ExportError("\n".join(str(result.error).partition("\n")[0] for result in failed))
    return results


class _Exporter:
    """One export run: the session, started when it is first needed, and where things lie."""

    def __init__(self, spark: SparkSession | None, store: Store, out: Path) -> None:
        self._spark = spark
        self._store = store
        self._out = out
        self._batched_at = dt.datetime.now(dt.UTC)
        self._start_seconds = 0.0

    def run(self, tap_id: str, stream: str) -> StreamResult:
        """Export one stream; its error, if it has one, is in the result."""
        started, self._start_seconds = time.monotonic(), 0.0
        path = ""
        try:
            lake = load_stream(self._store, tap_id, stream)
            path = str(table_path(self._out, lake))
            result = self._export(lake, Path(path))
        except BurlerError as error:
            _log.debug("stream '%s' failed", stream, exc_info=True)
            result = StreamResult(tap_id, stream, 0, 0, 0.0, None, False, path, error=error)
        except Exception as error:  # a value or a file that nobody thought of: this stream fails, the others go on
            _log.debug("stream '%s' failed", stream, exc_info=True)
            told = ExportError(f"stream '{stream}': {type(error).__name__}: {error}. Nothing was published.")
            result = StreamResult(tap_id, stream, 0, 0, 0.0, None, False, path, error=told)
        return _timed(result, time.monotonic() - started - self._start_seconds)

    def _export(self, lake: LakeStream, path: Path) -> StreamResult:
        state = open_state(path, f"{lake.tap_id}/{lake.stream}")
        remove_leftovers(state)
        plan = decide(lake, state)
        if plan.kind == "skip":
            return StreamResult(lake.tap_id, lake.stream, 0, 0, 0.0, state.version, True, str(path))
        with data_folder(path) as folder:
            rows_read, exact, transactions = self._write(lake, plan, state, folder)
            files = data_files(folder, path) if folder.is_dir() else []
            metadata = {
                "burler.data": folder.name,
                "burler.source": state.source,
                "burler.generation": lake.generation or "",
                "burler.sequence": str(lake.sequence),
            }
            version = commit(
                state, files, plan.schema, append=plan.kind == "append", transactions=transactions, metadata=metadata
            )
        rows_written = sum(file.rows for file in files)
        notes = exact.notes() if exact else ()
        return StreamResult(lake.tap_id, lake.stream, rows_read, rows_written, 0.0, version, False, str(path), notes)

    def _write(
        self, lake: LakeStream, plan: Plan, state: DeltaState, folder: Path
    ) -> tuple[int, Exact | None, dict[str, int]]:
        """Write the plan's rows to ``folder``; rows read, the exact path's outcome, the commit's transactions."""
        odd = [file for file in plan.files if not file.clean]
        exact = None
        if odd:
            exact = stage(odd, plan.record, plan.own, staging_of(folder), store=self._store, stream=lake.stream)
        cut = [key for key in plan.keys if exact is not None and exact.report.truncated.get(key)]
        if cut:
            raise ExportError(
                f"stream '{lake.stream}': date-times in its key {', '.join(cut)} have more than six digits; cut, "
                "different ones would become equal. Nothing was published. Declare the key as plain text."
            )
        active = last_activation(plan.files, exact.activated if exact else {}, plan.active)
        transactions = dict(plan.transactions)
        if active is not None and lake.generation:
            transactions[f"burler-active:{lake.generation}"] = active.version
        if not plan.files and plan.kind != "upsert":
            return 0, exact, transactions  # an empty table, or new columns only
        spark = self._session()
        clean = [file for file in plan.files if file.clean]
        failure: BurlerError | None = None
        with job_confs(spark):
            try:
                made = make(
                    spark,
                    plan,
                    state,
                    store=self._store,
                    stream=lake.stream,
                    exact=exact,
                    active=active,
                    batched_at=self._batched_at,
                )
                write(made.rows, folder)
            except Exception as error:  # Spark raises many kinds; all become one clear error
                failure = spark_failure(error, clean, self._store, lake.stream)
        if failure is not None:
            # Raised out here so that py4j's exception is not kept with it: freed once the JVM is gone, it would
            # print a traceback of its own.
            raise failure
        return made.verify() + (exact.rows if exact else 0), exact, transactions

    def _session(self) -> SparkSession:
        if self._spark is None:
            started = time.monotonic()
            _log.info("starting Spark ...")
            self._spark = start_session("burler export")
            # Counted apart: the start of Spark is no work on the stream that happens to come first.
            self._start_seconds = time.monotonic() - started
            _log.info("Spark started in %.1f s; the first job takes longer than the others", self._start_seconds)
        return self._spark


def table_path(out: Path, lake: LakeStream) -> Path:
    """Where a stream's table lies: the lake's own folder names under ``out``.

    ``~`` stands for the ``%`` of an escaped character: delta-rs takes no ``%`` in a table's path.
    """
    return out.joinpath(*(folder.replace("%", "~") for folder in lake.folders))


def _timed(result: StreamResult, seconds: float) -> StreamResult:
    return replace(result, seconds=round(seconds, 3))
