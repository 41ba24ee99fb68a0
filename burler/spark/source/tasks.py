"""What one Spark task extracts: plain data that travels to an executor, and the rows that it becomes there.

``Task`` holds no client, no lock and no process: a worker makes these, and ends them with the rows, however that comes
about: the last row, an error, a limit, or a reader that wants no more.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from burler.engine.run.start import calm_collector
from burler.errors import BurlerError, StreamError
from burler.spark.source.app import AppWork
from burler.spark.source.declared import Declared
from burler.spark.source.foreign import ForeignTap
from burler.spark.source.messages import StreamRows
from burler.spark.source.telling import one_line
from burler.words import counted

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger(__name__)

_OBJECTS_TO_COLLECT = 50_000
"""Measured on dicts of twelve fields: a quarter of the time."""


@dataclass(frozen=True, slots=True)
class ExecWork:
    """A run of a Singer tap's command. ``catalog``: the tap's own, the one stream selected."""

    tap: ForeignTap
    catalog: Mapping[str, Any] = field(repr=False)
    state: Mapping[str, Any] | None = field(default=None, repr=False)
    drop_unknown: bool = False

    @property
    def config(self) -> Mapping[str, Any] | None:
        """What the tap is given."""
        return self.tap.config


@dataclass(frozen=True, slots=True)
class Task:
    """A part of a stream's extraction. Its repr shows no config and no state."""

    declared: Declared
    work: tuple[ExecWork | AppWork, ...]
    """One after the other; several only where a limit holds for all of them together."""
    limit: int | None = None


def run_task(task: Task) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task in the columns of ``task.declared.arrow``.

    Raises:
        BurlerError: the stream failed; its text names the stream and the place in one line, without secrets.
    """
    left = task.limit
    for work in task.work:
        batches = _exec_rows(task, work) if isinstance(work, ExecWork) else work.rows(task.declared)
        with one_line(work.config), contextlib.closing(batches), calm_collector(_OBJECTS_TO_COLLECT):
            for batch in batches:
                if left is not None:
                    if batch.num_rows >= left:
                        yield task.declared.conform(batch.slice(0, left))
                        return
                    left -= batch.num_rows
                yield task.declared.conform(batch)


def _exec_rows(task: Task, work: ExecWork) -> Generator[pa.RecordBatch, None, None]:
    stream = task.declared.stream
    rows = StreamRows(task.declared, drop_unknown=work.drop_unknown, warn=logger.warning)
    with work.tap.sync(work.catalog, work.state) as tap:
        try:
            while block := tap.read():
                yield from rows.take(block)
            if tap.end():
                failure = tap.failure(f" after {counted(rows.seen, 'row')}")
                raise StreamError(
                    stream,
                    f"stream '{stream}': {failure}. No row of this read counts; run the command by itself to see more",
                )
            yield from rows.finish()
        except StreamError:
            raise
        except BurlerError as error:
            raise StreamError(
                stream,
                f"stream '{stream}': {work.tap.source} printed what is no Singer message: "
                f"{tap.command.clean(str(error))}. Only messages may go to stdout",
            ) from None
        if not rows.schema_seen and (work.state is None or rows.state is None):
            raise StreamError(
                stream,
                f"stream '{stream}': {work.tap.source} ended well and sent no SCHEMA of the stream: "
                f"nothing is known of its rows. It said last: {tap.last_words()}. Does the tap take its "
                "catalog by --catalog or --properties, and is the stream called so?",
            )
