"""Confs of an export's own jobs, set for as long as they run."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from burler.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOB_CONFS: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",  # a time without offset is UTC
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # INT96 has no statistics, Iceberg refuses it
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.files.ignoreCorruptFiles": "false",  # true loses rows in silence
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.json.enablePartialResults": "true",
    # Spark looks at a list of files in a task each, up to 10,000: 79 CPU seconds for 10,000 files, 3 with few tasks.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "32",
}
"""Confs that decide what comes out right, or at what cost. An export sets them for its own jobs in any session."""

_ROWS_A_FILE = "spark.sql.files.maxRecordsPerFile"

# Sessions with exports under way: how many, and the caller's confs. Exports may share a session in threads.
_under_way: dict[int, tuple[int, dict[str, str | None]]] = {}
_under_way_lock = threading.Lock()


@contextlib.contextmanager
def job_confs(spark: SparkSession) -> Iterator[None]:
    """Set the confs that an export depends on; the last export to end puts the caller's back.

    Raises:
        UsageError: the session does not let one be set, and has another value.
    """
    with _under_way_lock:
        count, before = _under_way.get(id(spark), (0, {}))
        if not count:
            before = {key: spark.conf.get(key, None) for key in JOB_CONFS}
            for key, value in JOB_CONFS.items():
                if before[key] != value:
                    _set_or_check(spark, key, value)
        _under_way[id(spark)] = (count + 1, before)
    try:
        yield
    finally:
        with _under_way_lock:
            count, before = _under_way.pop(id(spark))
            if count > 1:
                _under_way[id(spark)] = (count - 1, before)
            else:
                _restore(spark, before)


def _set_or_check(spark: SparkSession, key: str, value: str) -> None:
    """Some services let few confs be set; where one then reads as we need it, that is as good."""
    reason = ""
    try:
        spark.conf.set(key, value)
    except Exception as error:
        reason = str(error).strip().partition("\n")[0][:120]
    if reason and spark.conf.get(key, value) != value:
        raise UsageError(
            f"this Spark session has {key}={spark.conf.get(key)} and does not let it be set ({reason}). "
            f"burler's rows come out right with {value} only: set it where the session is made"
        )


def _restore(spark: SparkSession, before: Mapping[str, str | None]) -> None:
    for key, was in before.items():
        if was == JOB_CONFS[key]:
            continue
        with contextlib.suppress(Exception):  # what could not be set need not be put back; a stopped session has none
            if was is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, was)


@contextlib.contextmanager
def export_confs(spark: SparkSession, rows_a_file: int | None) -> Iterator[None]:
    """What decides that rows come out right (``job_confs``), and where Spark begins a new file.

    Args:
        rows_a_file: None: as Spark's partitions are.
    """
    with job_confs(spark):
        if rows_a_file is None:
            yield
            return
        before = spark.conf.get(_ROWS_A_FILE, None)
        spark.conf.set(_ROWS_A_FILE, str(rows_a_file))
        try:
            yield
        finally:
            if before is None:
                spark.conf.unset(_ROWS_A_FILE)
            else:
                spark.conf.set(_ROWS_A_FILE, before)
