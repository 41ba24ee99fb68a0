"""What an outlet does beside lines where its rows go into batch files: columns, and files that the source has made."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from burler.pipeline.shape import ShapedPage, Shaper
from burler.pipeline.shape_lines import Output
from burler.singer.messages import ArrowPage
from burler.sinks.base import Batching, Sink, batch_config_of

if TYPE_CHECKING:
    from burler.call import Given
    from burler.engine.writer.outlet import Outlet
    from burler.pipeline.dicts_direct import DictsDirect
    from burler.pipeline.rows_direct import RowsDirect


class OutletFiles:
    """Of one outlet."""

    def __init__(self, outlet: Outlet, sink: Sink) -> None:
        self._outlet = outlet
        self._sink = sink
        self._direct: RowsDirect | None = None
        self._straight: DictsDirect | None = None

    def columns(self) -> Any:
        """The columns of the files that the rows go into, as an Arrow schema."""
        return self._sink.columns(self._outlet.planned.stream) if isinstance(self._sink, Batching) else None

    def output(
        self, schema: Any, buffer: bytearray, spill: Callable[[bytearray, int], None], moment: dt.datetime
    ) -> Output:
        """Where rows of a page go that become columns, if they can.

        Args:
            schema: by which they were shaped. spill: takes the lines of those that can't.
        """
        from burler.pipeline.rows_direct import ColumnsOutput, RowsDirect

        if self._direct is None:
            self._direct = RowsDirect(schema, self.columns())
        return ColumnsOutput(buffer, spill, direct=self._direct, give=partial(self.write_columns, moment=moment))

    def straight(self, rows: list[dict[str, Any]], output: Output, shaper: Shaper) -> ShapedPage | None:
        """Write a page as columns without shaping it first, where that surely comes to the same; None: shape it."""
        if self._outlet.form != "columns":
            return None
        from burler.pipeline.dicts_direct import DictsDirect
        from burler.pipeline.rows_direct import ColumnsOutput

        if not isinstance(output, ColumnsOutput):
            return None
        if self._straight is None:
            held = shaper.rules.check_constraints
            self._straight = DictsDirect(shaper.schema, self.columns(), key=shaper.key, check_constraints=held)
        found = self._straight.page(rows)
        if found is None:
            return None
        batch, keys = found
        output.give(batch)
        return ShapedPage(batch.num_rows, keys)

    def write_columns(self, table: Any, moment: dt.datetime | None = None) -> None:
        """Write rows that are such columns already, extracted now or at a ``moment``."""
        outlet = self._outlet
        page = ArrowPage(outlet.planned.stream, table, moment or outlet.now(), outlet.versions.now)
        self._sink.write(page)
        outlet.count(table.num_rows, table.nbytes)

    def pass_on(self, files: Any, given: Given) -> list[Any]:
        """Files that go on as they are; the bookmark that the author has said for them, which counts as that of a
        row."""
        outlet = self._outlet
        config = batch_config_of(self._sink)
        moment, version = files.time_extracted or outlet.now(), outlet.versions.now
        dialect = "both" if config is None else config.dialect
        for message in files.batches(outlet.planned.stream, time_extracted=moment, version=version, dialect=dialect):
            self._sink.write(message)
        outlet.count(files.count, files.size_bytes)
        key = outlet.planned.resume_key or outlet.planned.replication_key
        if key is None or files.bookmark is msgspec.UNSET:
            return []
        return [outlet.key_of({key: files.bookmark}, given)]
