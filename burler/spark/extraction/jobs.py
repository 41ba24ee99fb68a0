"""A task as a job of Spark's, and slots that run several at a time.

Each task is a job of its own with one row for its result: so results come as tasks end, in any order, on classic
sessions and over Spark Connect, and what Spark does again (a worker died, a slow task has a second attempt) it does
within the job. Only the attempt whose result arrives counts; what others wrote is in no manifest.
"""

from __future__ import annotations

import contextlib
import logging
import pickle
import queue
import re
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from burler.config.secrets import masked
from burler.errors import BurlerError
from burler.logs import short
from burler.spark.extraction.tasks import FAILED, Task
from burler.spark.remote import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

_SAID = re.compile(re.escape(FAILED) + r"([^\n]*)")
_GONE = re.compile(r"(Python worker exited unexpectedly|Python worker failed to connect back|ExecutorLostFailure)")


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one task: what it gave, or the error of the last attempt."""

    name: Any
    value: Any = None
    error: BaseException | None = None


class TaskLost(BurlerError):
    """All attempts at a task failed; nothing of it counts."""


class Slots:
    """Runs tasks in a Spark session, some at a time; results stand in ``results`` as they come.

    Args:
        spark: classic or Connect.
        count: how many at a time. Sources wait, so this may be more than there are cores; the session must have as many
            task slots (``local[16]``; on a cluster executors times their cores, by ``spark.task.cpus``).
    """

    def __init__(self, spark: SparkSession, count: int) -> None:
        self._spark = spark
        self._tag = f"burler-extract-{uuid.uuid4().hex[:12]}"
        self._waiting: queue.SimpleQueue[tuple[Any, Callable[[], Task]] | None] = queue.SimpleQueue()
        self.results: queue.SimpleQueue[Result] = queue.SimpleQueue()
        self._cancelled = False
        self._threads = [
            threading.Thread(target=self._serve, name=f"burler-slot-{n + 1}", daemon=True) for n in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, name: Any, make: Callable[[], Task]) -> None:
        """Run a task once a slot is free. ``make`` gives it only then: thousands that wait cost little."""
        self._waiting.put((name, make))

    def cancel(self) -> None:
        """Begin nothing more, and interrupt what runs."""
        self._cancelled = True
        with contextlib.suppress(queue.Empty):
            while True:
                self._waiting.get_nowait()
        try:
            if is_connect(self._spark):
                self._spark.interruptTag(self._tag)
            else:  # a classic session's own tags are those of one thread
                self._spark.sparkContext.cancelJobsWithTag(self._tag)
        except Exception as error:  # what can't be interrupted ends with its session
            logger.warning("tasks of the extraction could not be interrupted: %s", short(error))

    def close(self) -> None:
        """No more tasks come. Threads that are still at one are left behind: they are daemons."""
        for _ in self._threads:
            self._waiting.put(None)

    def _serve(self) -> None:
        with contextlib.suppress(Exception):
            if is_connect(self._spark):
                self._spark.addTag(self._tag)
            else:
                self._spark.sparkContext.addJobTag(self._tag)
                self._spark.sparkContext.setInterruptOnCancel(True)
        while (given := self._waiting.get()) is not None:
            name, make = given
            if self._cancelled:
                continue
            try:
                value = pickle.loads(run_job(self._spark, pickle.dumps(make())))
            except BaseException as error:
                if not self._cancelled:
                    self.results.put(Result(name, error=error))
            else:
                self.results.put(Result(name, value))


def run_job(spark: SparkSession, payload: bytes) -> bytes:
    """One task as one job.

    The task travels in the function, not in a row: Spark shows rows of a plan to whoever looks at it.

    Raises:
        TaskLost: it failed, with the reason in one line.
    """

    def once(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        from burler.spark.extraction.tasks import work

        for _ in batches:
            pass
        yield pyarrow.RecordBatch.from_pydict({"result": pyarrow.array([work(payload)], pyarrow.binary())})

    try:
        (row,) = spark.range(0, 1, 1, 1).mapInArrow(once, "result binary").collect()
    except Exception as error:
        raise TaskLost(reason(error)) from None
    return bytes(row[0])


def reason(error: BaseException) -> str:
    """Why a job failed, in one line: what the task said, or what Spark says of its worker."""
    text = str(error)
    said = _SAID.search(text)
    if said:
        return masked(said[1].strip())
    gone = _GONE.search(text)
    if gone:
        return f"its Python worker ended before it was done ({gone[1]}); was it killed, or out of memory?"
    return short(error).split("\n")[0]
