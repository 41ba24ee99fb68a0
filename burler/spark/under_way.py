"""What an export is doing, for whoever asks meanwhile: ``burler export`` shows it on a terminal or in the log.

How far a job is comes from Spark's status tracker; through Spark Connect there is none, and the rows alone are told.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from burler.words import counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(slots=True, eq=False)
class _Stream:
    """``rows``: so many are to be read, as far as is known. ``most``: the part of Spark's tasks that had ended."""

    name: str
    rows: int | None
    spark: SparkSession | None
    most: float = 0.0


_streams: list[_Stream] = []


@contextlib.contextmanager
def noted(name: str, rows: int | None, spark: SparkSession | None = None) -> Iterator[None]:
    """A stream is under way while the block runs; ``rows`` are to be read, as far as is known."""
    stream = _Stream(name, rows, spark)
    _streams.append(stream)
    try:
        yield
    finally:
        _streams.remove(stream)


def said() -> str:
    """The stream that is under way and how far it is; "" where there is none."""
    for stream in _streams[-1:]:
        stream.most = max(stream.most, _done(stream.spark))  # a job that ends makes room for one of no tasks yet
        return line(stream.name, stream.rows, stream.most)
    return ""


def line(name: str, rows: int | None, done: float) -> str:
    """What is said of a stream. ``done``: from 0 to 1; 0 where that is not known."""
    if rows is None:
        return name + (f": {done:.0%} of Spark's tasks" if done else "")
    if not done:
        return f"{name}: {counted(rows, 'row')} to read"
    return f"{name}: about {int(rows * done):,} of {counted(rows, 'row')}"


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
