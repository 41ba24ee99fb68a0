"""What an export is doing, on one line of a terminal that is written over again.

Nothing is shown where nobody asked for it (``live``), or where stderr is no terminal. How far a job is comes from
Spark's status tracker; through Spark Connect there is none, and the seconds alone are shown.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EVERY_SECONDS = 0.5
_shown: dict[str, TextIO | None] = {"on": None}


@contextlib.contextmanager
def live(stream: TextIO | None = None) -> Iterator[None]:
    """Show the progress of exports in this block on ``stream`` (stderr), if that is a terminal."""
    target = stream or sys.stderr
    _shown["on"] = target if target is not None and target.isatty() else None
    try:
        yield
    finally:
        _shown["on"] = None


@contextlib.contextmanager
def shown(name: str, rows: int | None, spark: SparkSession | None = None) -> Iterator[None]:
    """Show that ``name`` (a stream) is under way while the block runs; ``rows`` are to be read, as far as is known."""
    out = _shown["on"]
    if out is None:
        yield
        return
    over = threading.Event()
    painter = threading.Thread(target=_paint, args=(out, name, rows, spark, over), daemon=True)
    painter.start()
    try:
        yield
    finally:
        over.set()
        painter.join(timeout=5)
        _write(out, "\r\x1b[2K")


def _paint(out: TextIO, name: str, rows: int | None, spark: SparkSession | None, over: threading.Event) -> None:
    started, most = time.monotonic(), 0.0
    while not over.wait(_EVERY_SECONDS):
        most = max(most, _done(spark))
        _write(out, "\r\x1b[2K" + line(name, rows, most, time.monotonic() - started))


def line(name: str, rows: int | None, done: float, seconds: float) -> str:
    """The line as it is shown. ``done``: from 0 to 1; 0 where that is not known."""
    told = f"{name}: {seconds:.0f} s"
    if rows is None:
        return told + (f", {done:.0%} of Spark's tasks" if done else "")
    if not done:
        return told + f", {rows:,} rows to read"
    return told + f", about {int(rows * done):,} of {rows:,} rows"


def _done(spark: Any) -> float:
    """The part of the tasks of Spark's running jobs that has ended; 0 where there is no job, or no telling."""
    try:
        tracker = spark.sparkContext.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getActiveJobsIds()]
        stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        ended = sum(stage.numCompletedTasks for stage in stages if stage)
        return float(ended / (sum(stage.numTasks for stage in stages if stage) or 1))
    except Exception:  # no classic session, or one that ends just now: progress is no reason to fail
        return 0.0


def _write(out: TextIO, text: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        out.write(text)
        out.flush()
