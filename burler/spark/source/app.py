"""A part of a burler app, extracted where it was sent to, by the engine of any run, into columns instead of lines.

The engine calls the author's function and pushes; Spark's reader pulls. So the run has a thread of its own, and hands
batches over through a queue that holds few of them.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from burler.appref import AppRef
from burler.engine.remote import Part, PartEnd, plain_error, run_part
from burler.engine.run.signals import Stopper
from burler.errors import BatchError, BurlerError, StreamError
from burler.settings import Settings
from burler.singer.messages import ArrowPage, Message, Records
from burler.sinks import Form, Sink
from burler.spark.source.declared import Declared, layout_of
from burler.spark.source.sending import load

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger(__name__)

_QUEUED = 4
_MOST_ROWS = 10_000
_MOST_BYTES = 4 << 20
_LEAVE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class AppWork:
    """A part of an app's stream. ``catalog`` has that one stream selected; ``state`` is what the part has to know."""

    ref: AppRef
    part: Part
    catalog: Mapping[str, Any] = field(repr=False)
    config: Mapping[str, Any] | None = field(default=None, repr=False)
    state: Mapping[str, Any] | None = field(default=None, repr=False)

    def rows(self, declared: Declared) -> Generator[pa.RecordBatch, None, None]:
        """Yield the part's rows in the columns of ``declared.record``.

        Raises:
            BurlerError: the part failed; see ``run_part``.
        """
        app, config = load(self.ref), dict(self.config or {})

        def settings(own: Settings) -> Settings:
            """Pages as large as batches: each has its cost, and nothing waits for the rows of one alone."""
            return own if "page_max_rows" in config else replace(own, page_max_rows=_MOST_ROWS)

        def run(sink: ColumnsSink, stopper: Stopper) -> PartEnd:
            return run_part(
                app,
                self.part,
                config=config,
                catalog=self.catalog,
                state=self.state,
                sink=sink,
                settings=settings,
                stopper=stopper,
            )

        end = yield from _pulled(run, declared)
        if end.errors:
            failed = end.errors[0]
            text = str(failed.error)
            raise StreamError(failed.stream, f"{text} ({failed.where})" if failed.where not in text else text)


class _Enough(Exception):
    """Nobody wants more rows."""


class ColumnsSink(Sink):
    """A sink that hands on the rows of one stream as batches of columns; all else is let go. Batch files of a
    source are read, not passed on.

    Args:
        give: takes each batch; raises ``_Enough`` where nobody wants it.
    """

    def __init__(self, declared: Declared, give: Callable[[pa.RecordBatch], None]) -> None:
        self._declared = declared
        self._layout = layout_of(declared)
        self._give = give
        self._parts: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def choose(self, stream: str, said: bool | None) -> Form:
        """See ``Sink.choose``: columns where batch files have the same ones."""
        return "columns" if self._declared.is_plain else "rows"

    def columns(self, stream: str) -> Any:
        """See ``Sink.columns``."""
        return self._layout.arrow_schema

    def write(self, message: Message) -> None:
        """Take a message.

        Raises:
            BatchError: a row that its column can't hold.
        """
        if isinstance(message, ArrowPage) and message.stream in self._declared.names:
            for batch in message.table.to_batches() if hasattr(message.table, "to_batches") else (message.table,):
                self._add(batch)
        elif isinstance(message, Records) and message.stream in self._declared.names:
            for batch in self._layout.batches(message.lines, message.count):
                self._add(batch)

    def _add(self, batch: pa.RecordBatch) -> None:
        self._parts.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= _MOST_ROWS or self._bytes >= _MOST_BYTES:
            self._hand_on()

    def _hand_on(self) -> None:
        """Small batches as one: each has its cost in Spark."""
        import pyarrow as pa

        parts, self._parts, self._rows, self._bytes = self._parts, [], 0, 0
        if len(parts) > 1:
            parts = pa.Table.from_batches(parts).combine_chunks().to_batches()
        for batch in parts:
            self._give(batch)

    def close(self, *, complete: bool) -> None:
        """Hand on the rest. After an error the rows before it make no difference: the task has failed."""
        if complete:
            self._hand_on()
            for remark in self._layout.remarks():
                logger.warning("stream '%s': %s", self._declared.stream, remark)


def _pulled(
    run: Callable[[ColumnsSink, Stopper], PartEnd], declared: Declared
) -> Generator[pa.RecordBatch, None, PartEnd]:
    """Yield what a run gives, as it gives it; returns its end."""
    waiting: queue.Queue[Any] = queue.Queue(_QUEUED)
    left = threading.Event()
    stopper = Stopper()

    def give(batch: Any) -> None:
        while not left.is_set():
            with contextlib.suppress(queue.Full):
                waiting.put(batch, timeout=0.1)
                return
        raise _Enough

    def work() -> None:
        try:
            end: Any = run(ColumnsSink(declared, give), stopper)
        except BaseException as error:
            end = error
        with contextlib.suppress(_Enough):
            give(end)

    thread = threading.Thread(target=work, name="burler-extract", daemon=True)
    thread.start()
    try:
        while True:
            given = waiting.get()
            if isinstance(given, PartEnd):
                return given
            if isinstance(given, BaseException):
                raise _as_ours(given, declared.stream)
            yield given
    finally:
        left.set()
        stopper.end(now=False)
        thread.join(_LEAVE_SECONDS)  # user code that waits for a source can't be woken: it ends at its next page


def _as_ours(error: BaseException, stream: str) -> BurlerError:
    if isinstance(error, BatchError):
        fact = str(error).partition("\n")[0].removeprefix(f"stream '{stream}': ")
        return StreamError(stream, f"stream '{stream}': {fact}. Correct the schema or the value in the tap")
    if isinstance(error, BurlerError):
        return error
    return plain_error(stream, error)
