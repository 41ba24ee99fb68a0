"""From a lake to tables: each stream's new rows become one new, whole version of a table.

For each stream: one snapshot of its manifest, a plan
(``plan.decide``), its rows with or without Spark (``export_run``), one atomic commit by the table's format
(``formats``). A stream that fails leaves its table as it was and does not stop the others.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from burler.errors import BurlerError, ExportError, UsageError
from burler.lake import layout
from burler.lake.lake import Lake
from burler.lake.store import open_store
from burler.spark import batches_in
from burler.spark.export_options import ExportOptions, checked
from burler.spark.export_run import StreamResult, StreamRun
from burler.spark.export_staging import Staging, staging
from burler.spark.formats.opening import check_format, open_target, place_of
from burler.spark.lakefiles import load_stream
from burler.spark.session import session as start_session
from burler.storage.base import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger("burler.spark")


def export(
    spark: SparkSession | None,
    lake: str | Path | batches_in.Messages,
    out: str | Path,
    *,
    streams: Sequence[str] | None = None,
    taps: Sequence[str] | None = None,
    mode: str | None = None,
    format: str = "delta",
    options: Mapping[str, str] | None = None,
    since: dt.datetime | dt.date | str | None = None,
    partition_by: Sequence[str] | str = (),
    file_bytes: int | None = None,
    max_bad_rows: int = 0,
    timestamps: str = "micros",
    open_types: str = "text",
    engine: str = "burler",
    lake_options: Mapping[str, Any] | None = None,
    on_progress: Callable[[StreamResult], None] | None = None,
) -> list[StreamResult]:
    """Bring the tables under ``out`` up to date with a lake.

    Streams with keys keep the latest row of each key, others every row. Only files that are new to a table are
    read; a lake of another generation, changed keys or changed column types make the table anew, in one commit.
    Up to 50,000 new rows are done without Spark where the format allows.

    Args:
        spark: the session to work in; None starts one (``burler.spark.session``) when the first stream needs it.
        lake: the lake's folder or URL; or a file of Singer messages with BATCH, or such messages in a list. Those are
            exported whole each time.
        out: where tables go, as ``out/<tap_id>/<stream>``; for catalogs and databases, what the format says.
        streams, taps: names to export; all when left out. With messages: one name, that of their tap.
        mode: ``append`` keeps every row that the lake has, also of older table versions; ``upsert`` is for streams
            with keys alone.
        format: delta, parquet, iceberg, jdbc, or any that Spark can write. options: for that format.
        since: files whose rows were all extracted before are not read.
        partition_by: columns that the table's files are split by. file_bytes: size to aim at for one of them.
        max_bad_rows: so many rows of a stream may hold a value that its column can't, and go to quarantine.
        timestamps: ``micros``, or ``text`` to keep date-times as they were written.
        open_types: ``text``, or ``variant`` for what has no narrower type (Spark 4).
        engine: ``session`` writes with the Delta or Iceberg of the session itself.
        lake_options: for the library that reaches the lake's store, or the files of BATCH messages.
        on_progress: called once for each stream as it ends, failed ones too.

    Raises:
        UsageError: no such lake, tap or stream; an option that can't be. MissingExtra: a package is not installed.
        ExportError, LakeError, StorageError: a stream failed. Raised when all others are done; for several
            failed streams an ExportError with one line for each, or with the cause that they share.
    """
    wanted = checked(
        mode=mode,
        format=format,
        options=options,
        since=since,
        partition_by=partition_by,
        file_bytes=file_bytes,
        max_bad_rows=max_bad_rows,
        timestamps=timestamps,
        open_types=open_types,
        engine=engine,
    )
    check_format(wanted.kind, wanted.options)
    with _opened(lake, out, wanted, taps, lake_options) as (store, stage):
        exporter = _Exporter(spark, store, str(out), wanted, stage)
        results: list[StreamResult] = []
        chosen = None if batches_in.is_messages(lake) else taps
        for one in Lake(store).wanted(taps=chosen, streams=streams):
            results.append(exporter.run(*one.names))
            if on_progress is not None:
                on_progress(results[-1])
    _raise_failures([(result.stream, result.error) for result in results if result.error is not None])
    return results


def _raise_failures(failed: Sequence[tuple[str, BurlerError]]) -> None:
    """One error for all streams that failed; a cause that they share is told once, whole."""
    if len(failed) == 1:
        raise failed[0][1]
    shared = {str(error).removeprefix(f"stream '{stream}': ") for stream, error in failed}
    if len(shared) == 1:
        text = shared.pop()
        if text == str(failed[0][1]):  # of the whole export: a package that is missing, say
            raise failed[0][1]
        names = ", ".join(f"'{stream}'" for stream, _ in failed)
        raise ExportError(f"streams {names}: {text}")
    if failed:
        raise ExportError("\n".join(str(error).partition("\n")[0] for _, error in failed))


@contextlib.contextmanager
def _opened(
    lake: str | Path | batches_in.Messages,
    out: str | Path,
    options: ExportOptions,
    taps: Sequence[str] | None,
    lake_options: Mapping[str, Any] | None,
) -> Iterator[tuple[Store, Staging]]:
    """The lake, or messages laid as one, and the export's staging."""
    folder = _folder(out, options)
    if isinstance(lake, str | Path) and not batches_in.is_messages(lake):
        _refuse_inside(lake, folder)
    with staging(folder) as stage:
        if isinstance(lake, str | Path) and not batches_in.is_messages(lake):
            yield open_store(str(lake), must_exist=True, options=lake_options), stage
        else:
            tap_id = taps[0] if taps else batches_in.tap_of(lake)
            url = batches_in.lay(lake, stage.folder("messages"), tap_id, lake_options)
            yield open_store(url, must_exist=True), stage


def _folder(out: str | Path, options: ExportOptions) -> Path | None:
    """OUT as a folder that the tables lie in; None where it is a database."""
    return None if options.kind == "jdbc" else Path(out).absolute()


def _refuse_inside(lake: str | Path, folder: Path | None) -> None:
    """Tables have no place among a lake's own files.

    Raises:
        UsageError: OUT lies there.
    """
    own = (Path(str(lake).removeprefix("file://")) / layout.ROOT).resolve()
    if folder is not None and own in (folder.resolve(), *folder.resolve().parents):
        raise UsageError(f"OUT is {folder}, inside of the lake's own folder {own}. Choose a place outside of {own}")


class _Exporter:
    """One export run: the session, started when it is first needed, and where things lie."""

    def __init__(
        self, spark: SparkSession | None, store: Store, out: str, options: ExportOptions, staging: Staging
    ) -> None:
        self._spark = spark
        self._store = store
        self._options = options
        folder = _folder(out, options)
        self._out = out
        # Where OUT is no folder, what no column can hold is kept in the folder that the export runs in.
        self._quarantine = Path("burler-quarantine").absolute() if folder is None else folder / "_quarantine"
        self._staging = staging
        self._batched_at = dt.datetime.now(dt.UTC)
        self._start_seconds = 0.0

    def run(self, tap_id: str, stream: str) -> StreamResult:
        """Export one stream; its error, if it has one, is in the result."""
        started, self._start_seconds = time.monotonic(), 0.0
        place = ""
        try:
            lake = load_stream(self._store, tap_id, stream)
            place = place_of(self._options.kind, self._out, *lake.folders, tap_id, stream)
            target = open_target(
                self._options.kind,
                place,
                source=f"{tap_id}/{stream}",
                options=self._options.options,
                spark=self._session,
            )
            result = StreamRun(
                lake,
                target,
                self._options,
                self._session,
                lambda: self._staging.folder(*lake.folders),
                self._quarantine,
                self._batched_at,
            ).run()
        except BurlerError as error:
            _log.debug("stream '%s' failed", stream, exc_info=True)
            result = StreamResult(tap_id, stream, 0, 0, 0.0, None, False, place, error=error)
        except Exception as error:  # a value or a file that nobody thought of: this stream fails, the others go on
            _log.debug("stream '%s' failed", stream, exc_info=True)
            told = ExportError(f"stream '{stream}': {type(error).__name__}: {error}. Nothing was published.")
            result = StreamResult(tap_id, stream, 0, 0, 0.0, None, False, place, error=told)
        return replace(result, seconds=round(time.monotonic() - started - self._start_seconds, 3))

    def _session(self) -> SparkSession:
        if self._spark is None:
            started = time.monotonic()
            _log.info("starting Spark ...")
            self._spark = start_session("burler export")
            # Counted apart: the start of Spark is no work on the stream that happens to come first.
            self._start_seconds = time.monotonic() - started
            _log.info("Spark started in %.1f s; the first job takes longer than the others", self._start_seconds)
        return self._spark
