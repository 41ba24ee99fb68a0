"""Any Singer tap's command, one task a stream: its messages into files of the lake, on an executor.

Its catalog goes back to it as it came, with that one stream selected (``burler.spark.source.foreign``).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from burler.config.secrets import hide_config, masked
from burler.engine.remote import Merge
from burler.errors import MessageError, StreamError
from burler.lake.rolling import WrittenFile
from burler.lake.writer import LakeDriver, PartWriter, ingest
from burler.singer.catalog import catalog_from_wire
from burler.singer.messages import Message, Schema, State
from burler.singer.select import apply_select, parse_select
from burler.singer.selection import stream_selected
from burler.spark.extraction.tasks import Done, Target
from burler.spark.extraction.work import Named, rows_told
from burler.spark.source.foreign import ForeignTap
from burler.spark.source.foreign import select as select_stream

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Whole:
    """The name of a task: a stream of a foreign tap."""

    stream: str
    where: str = ""


@dataclass(frozen=True, slots=True)
class ExecEnd:
    """How a foreign tap's run of one stream ended. ``state`` is the value of its last STATE, which speaks of nothing
    that is not in the files; None if there was none."""

    rows: Mapping[str, int]
    state: Mapping[str, Any] | None
    seconds: float
    error: str = ""


@dataclass(frozen=True, slots=True)
class ExecTask:
    """One stream of a foreign tap."""

    tap: ForeignTap
    stream: str
    target: Target
    catalog: Mapping[str, Any] = field(repr=False)
    state: Mapping[str, Any] | None = field(default=None, repr=False)

    def run(self) -> Done:
        """See ``Task.run``. A tap that fails has said what it has said: that counts, up to its last STATE, as it does
        where a tap is piped into ``burler lake write``."""
        hide_config(dict(self.tap.config or {}))
        begun = time.monotonic()
        writer: _Collecting = self.target.writer(_Collecting)
        with self.tap.sync(self.catalog, self.state) as tap:
            error = ""
            try:
                ingest(tap.fd, writer, warn=logger.warning)
            except MessageError as wrong:
                error = masked(str(wrong))
            else:
                error = tap.failure() if tap.end() else ""
        rows: dict[str, int] = {}
        for file in writer.done:
            rows[file.stream] = rows.get(file.stream, 0) + file.stats.records
        end = ExecEnd(rows, writer.last, time.monotonic() - begun, error)
        return Done(end, tuple(writer.done), tuple(writer.schemas))


class _Collecting(PartWriter):
    """Keeps the files, the schemas and the last STATE of a tap's run."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.last: dict[str, Any] | None = None
        self.done: list[WrittenFile] = []
        self.schemas: list[Schema] = []

    def schema(self, message: Schema) -> None:
        """See ``PartWriter.schema``."""
        super().schema(message)
        if message not in self.schemas:
            self.schemas.append(message)

    def state(self, message: State) -> None:
        """Every row before it is in a file once the run has ended, or the run counts for nothing."""
        self.last = message.whole

    def close(self) -> list[WrittenFile]:
        """End all files."""
        self.done += super().close()
        return self.done


class ExecWork:
    """The streams of a foreign tap that are selected.

    Args:
        tap, catalog: what ``look`` gave. chosen: the catalog is the user's.
    """

    def __init__(
        self,
        tap: ForeignTap,
        catalog: Mapping[str, Any],
        target: Target,
        *,
        chosen: bool,
        state: Mapping[str, Any] | None,
        select: str | None,
    ) -> None:
        self._tap, self._catalog = tap, catalog
        self._chosen, self._select, self._target = chosen, select, target
        self._begun = dict(state or {})
        self.merge = Merge(self._begun)
        self.streams = tuple(_selected(self._catalog, chosen=self._chosen, select=select, source=self._tap.source))
        self.seen: Collection[str] = self.streams
        self.unseen: Collection[str] = ()
        if not self.streams:
            logger.warning("%s: no stream is selected. Select some in the catalog or with --select.", self._tap.source)

    def find(self, stream: str) -> list[Named]:
        """See ``Work.find``."""
        patterns = _fields_of(stream, self._select)
        changed, _ = select_stream(self._catalog, stream, patterns, chosen=self._chosen, source=self._tap.source)
        return [(Whole(stream), lambda: ExecTask(self._tap, stream, self._target, changed, self._begun or None))]

    def prepare(self, stream: str, lake: LakeDriver) -> None:
        """See ``Work.prepare``. Discovery's schema need not be what the tap will say."""
        entry = catalog_from_wire(self._catalog, source=self._tap.source).entries[stream]
        lake.expect(Schema(entry.emitted_name, dict(entry.schema), tuple(entry.key_properties)))

    def begin(self, stream: str) -> bool:
        """See ``Work.begin``."""
        return False

    def add(self, name: Whole, end: ExecEnd) -> str:
        """See ``Work.add``."""
        self.merge.add_foreign(end.rows, self._begun, end.state)
        if end.error:
            self.lost(name, end.error)
        how = "failed" if end.error else "done"
        return f"stream '{name.stream}': {how}, {rows_told(name.stream, end.rows)}, {end.seconds:.1f} s"

    def lost(self, name: Whole, reason: str) -> None:
        """See ``Work.lost``."""
        self.merge.fail(name.stream, StreamError(name.stream, f"stream '{name.stream}': {reason}"))

    def finish(self, stream: str) -> tuple[list[Schema], list[Message]]:
        """See ``Work.finish``: the tap has sent its own ACTIVATE_VERSION."""
        return [], []


def _selected(wire: Mapping[str, Any], *, chosen: bool, select: str | None, source: str) -> Iterator[str]:
    """The streams to extract: those that ``--select`` or the user's catalog says, else all."""
    entries = catalog_from_wire(wire, source=source).entries
    metadata = {name: entry.metadata for name, entry in entries.items()}
    if select is not None:
        schemas = {name: entry.schema for name, entry in entries.items()}
        metadata = apply_select(parse_select(select), schemas, metadata, over=chosen)
    everything = not chosen and select is None
    for name in entries:
        if stream_selected(metadata[name], stream=name, default=everything):
            yield name


def _fields_of(stream: str, select: str | None) -> list[str]:
    """What ``--select`` says of a stream's fields."""
    found = []
    for rule in parse_select(select) if select is not None else ():
        pattern = rule.field_of(stream)
        if pattern:
            found.append(pattern if rule.keep else f"!{pattern}")
    return found
