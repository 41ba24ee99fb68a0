"""Confs of an export's own job, set for as long as it runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from burler.spark.session import job_confs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROWS_A_FILE = "spark.sql.files.maxRecordsPerFile"


@contextlib.contextmanager
def export_confs(spark: SparkSession, rows_a_file: int | None) -> Iterator[None]:
    """What decides that rows come out right (``session.job_confs``), and where Spark begins a new file.

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
