"""The outlet of one planned stream: from rows to messages in the sink, with its bookmark and version."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import msgspec

from burler import pages
from burler.call import Given
from burler.declare.spec import StreamSpec, UserFunction
from burler.engine.catalog.batch_settings import batch_enabled
from burler.engine.catalog.plan import PlannedStream
from burler.engine.state.ledger import FamilyState
from burler.engine.writer.asking import Asking, without
from burler.engine.writer.comparing import Comparing
from burler.engine.writer.other_pages import OtherPages
from burler.engine.writer.outlet_files import OutletFiles
from burler.engine.writer.versions import Versions
from burler.errors import BadRecordError, BatchError, StreamError
from burler.events import Remarks, UnfitRows
from burler.pipeline.repeats import Repeats
from burler.pipeline.rules import Rules
from burler.pipeline.shape import Shaper
from burler.pipeline.shape_lines import Output
from burler.pipeline.unknown import Unknown
from burler.settings import Settings
from burler.singer.bookmark_values import spelled
from burler.singer.messages import Records, Schema, record_prefix_suffix
from burler.sinks.base import Form, Sink, form_for

Part = Any
"""``list[dict]``, a ``JsonPage``, or a RecordBatch or Table of pyarrow."""


class Outlet:
    """Shapes pages of one stream and hands them to the sink; knows what a STATE may say of the stream."""

    def __init__(
        self,
        planned: PlannedStream,
        sink: Sink,
        saved: FamilyState,
        *,
        now: Callable[[], dt.datetime],
        invoke: Callable[[UserFunction, Given], Any],
        settings: Settings | None = None,
        limit: int | None = None,
        wrote: Callable[[int], None] = lambda _bytes: None,
        interrupted_version: int | None = None,
    ) -> None:
        self.planned = planned
        self.rows = 0
        self.bytes = 0
        self.repeated = 0  # rows that were out already, as they are
        self.limit = limit
        self._wrote = wrote
        self.beyond = 0
        self.left_out = 0
        self._sink = sink
        # A look at a few rows is no load: it shows them.
        self.form: Form = "messages" if limit is not None else form_for(sink, planned.stream, batch_enabled(planned))
        self.now = now
        self._buffer = bytearray()
        self.without_value = 0
        self.newer = 0
        self.bookmark_from: Any = None
        own_key = planned.replication_key if planned.spec.bookmark is None and planned.bookmark_key else None
        shaped_key = planned.resume_key or own_key
        shaper = partial(
            Shaper,
            planned.stream,
            planned.schema,
            key_properties=planned.key_properties,
            key=shaped_key,
            deselected=planned.deselected,
            rules=_rules(settings, planned.spec),
        )
        self._make_shaper = shaper
        self._scratch: Shaper | None = None
        self.hook_since: float | None = None
        self._shaper = shaper()
        self.files = OutletFiles(self, sink)
        self._others = OtherPages(self, self._shaper, self._write_rows)
        # What a post_transform function sees; it may make the key.
        self._fitter = shaper(keys_required=False) if planned.spec.post_transform is not None else self._shaper
        self._shapers = list({id(one): one for one in (self._fitter, self._shaper)}.values())
        self._skipped_before = 0  # in earlier rounds of a tail
        self.comparing = Comparing(self, self._shapers)
        self._asking = Asking(self, self._fitter, self._shaper, invoke)
        said, settings = planned.spec.versions, settings or Settings()
        allowed = settings.full_table_versions if said is None else said
        self.versions = Versions(
            planned, sink, saved, now=now, limited=limit is not None, allowed=allowed, interrupted=interrupted_version
        )

    def begin_round(self) -> None:
        """Another round of a tail: limits count anew."""
        self._skipped_before = sum(shaper.bad.skipped for shaper in self._shapers)
        for shaper in self._shapers:
            shaper.bad.begin_round()

    def open(self) -> None:
        """SCHEMA.

        Raises:
            StreamError: files have no form for such a schema.
        """
        try:
            self._sink.write(schema_of(self.planned))
        except BatchError as error:
            raise StreamError(self.planned.tap_stream_id, str(error)) from None

    def joined(self, parts: list[Part]) -> list[Part]:
        """Parts of the stream with single JSON lines that follow each other put together."""
        return pages.joined(parts, self.planned.spec.records_path)

    def write(self, part: Part, given: Given, repeats: Repeats | None = None) -> tuple[list[Any], StreamError | None]:
        """Shape what was yielded and write it: rows, the bytes of a JSON page, or Arrow's table or batch.

        Args:
            repeats: what is known of the rows of the stream (in the partition that these are of): those that went out
                before, as they are, do not go out again. Their bookmark values count.

        Returns their bookmark values, for ``observe``, and an error if a row does not fit (the rows before
        it are written, it and those after it are not) or has no bookmark value (all are written).
        """
        self.versions.begin()
        try:
            if repeats is None:
                return self._write(part, given, None)
            with self.comparing.by(repeats):
                return self._write(part, given, repeats)
        except BatchError as error:  # which rows are in the file is not told: none of the page counts for the bookmark
            if repeats is not None:
                repeats.forget()
            return [], BadRecordError(self.planned.tap_stream_id, str(error))

    def _write(self, part: Part, given: Given, repeats: Repeats | None) -> tuple[list[Any], StreamError | None]:
        if isinstance(part, list):
            if len(set(map(id, part))) < len(part):
                return [], self._same_row_again()
            return self._write_rows(part, given, repeats)
        if pages.is_passed(part):
            return self.files.pass_on(part, given), None
        spec = self.planned.spec
        by_row = self.limit is not None or spec.post_transform is not None or self._asks_bookmarks
        return self._others.write(part, given, by_row=by_row, repeats=repeats)

    def count(self, rows: int, size: int) -> None:
        """So many rows are out, of so many bytes."""
        self.rows += rows
        self.bytes += size
        self._wrote(size)

    def _write_rows(
        self, rows: list[dict[str, Any]], given: Given, repeats: Repeats | None
    ) -> tuple[list[Any], StreamError | None]:
        if self.limit is not None:  # never in a tail, so that none of them is a repeat
            left = max(0, self.limit - self.rows)
            self.beyond += max(0, len(rows) - left)
            rows = rows[:left]
        with self.page(repeats=repeats) as output:
            if self.planned.spec.post_transform is None:
                page = self.files.straight(rows, output, self._shaper) or self._shaper.shape_to(rows, output)
                taken = without(range(page.taken), page.skipped) if page.skipped else None
            else:
                page, taken = self._asking.transformed(rows, given, output, repeats)
        if repeats is not None and self.planned.spec.post_transform is None:
            repeats.page_ended(page.keys)
        keys = page.keys
        error: StreamError | None = page.error
        if self._asks_bookmarks:
            asked = rows[: page.taken] if taken is None else [rows[i] for i in taken]
            keys, unknown = self._asking.bookmarks(asked, given)
            error = error or unknown
        return keys, error

    @property
    def asks_bookmarks(self) -> bool:
        """Whether a function of the author's gives the bookmark values."""
        return self.planned.spec.bookmark is not None and self.planned.bookmark_key is not None

    @property
    def _asks_bookmarks(self) -> bool:
        """The same, of each row as it is written: not where the function wants to know what comes below the row."""
        function = self.planned.spec.bookmark
        return self.asks_bookmarks and function is not None and "children" not in function.names

    @contextlib.contextmanager
    def page(self, moment: dt.datetime | None = None, repeats: Repeats | None = None) -> Iterator[Output]:
        """Where the lines of one page go; they are handed to the sink on the way and at the end.

        Args:
            moment: their ``time_extracted``, if it is not now: parts of a page have one.
            repeats: lines that are out already are left out.
        """
        moment = moment or self.now()
        compared = repeats if self.planned.spec.post_transform is None else None  # else it was before the function
        bare = self.form != "messages"
        prefix, suffix = (b"", b"\n") if bare else record_prefix_suffix(self.planned.stream, moment, self.versions.now)

        def spill(lines: Any, count: int) -> None:
            if compared is not None:
                lines, repeated = compared.sift(lines, prefix, suffix)
                count -= repeated
                self.repeated += repeated
                if not count:
                    return
            try:
                version, vouched = self.versions.now, output.vouched  # noqa: F821 (deleted behind the last call)
                self._sink.write(Records(self.planned.stream, lines, count, moment, version, bare, vouched))
            except BatchError as error:
                self.count(error.rows_taken, 0)
                raise
            self.count(count, len(lines))

        columns = self.form == "columns"
        direct = columns and repeats is None
        # Columns are made of whole pages: each call costs the same, however few rows it has.
        held = columns and not direct
        if direct:
            output = self.files.output(self._shaper.schema, self._buffer, spill, moment)
        else:
            output = Output(self._buffer, prefix, suffix, None if held else spill)
        try:
            yield output
            if held and output.count:
                spill(output.buffer, output.count)
            output.flush()
        finally:
            del self._buffer[:]
            # ``spill`` and the output hold each other, and with them the page's rows: the collector comes seldom.
            output.vouched = None
            del output

    def _same_row_again(self) -> StreamError:
        spec = self.planned.spec
        place = spec.sync.place if spec.sync is not None else spec.place
        return StreamError(
            spec.tap_stream_id,
            f"stream '{spec.tap_stream_id}' ({place}): yielded one and the same dict more than once; rows wait for "
            "their page, so each would show what was written into it last. Yield a new dict for each row.",
        )

    @property
    def full(self) -> bool:
        """Whether as many rows are out as a limit allows."""
        return self.limit is not None and self.rows >= self.limit

    def ask_bookmark(self, row: Mapping[str, Any], children: Any, given: Given) -> list[Any]:
        """The value that the author's bookmark function gives for one row, as a list of one.

        Raises:
            StreamError: the function failed.
        """
        keys, error = self._asking.bookmarks([dict(row)], {**given, "children": lambda: children or {}})
        if error is not None:
            raise error
        return keys

    def key_of(self, row: Mapping[str, Any], given: Given) -> Any:
        """The bookmark value of one row that is out, as it stands in the state; UNSET if it can't be told."""
        if self._asks_bookmarks:
            keys = self.ask_bookmark(row, None, given)
        else:
            if self._scratch is None:  # it counts and tells nothing a second time
                self._scratch = self._make_shaper(keys_required=False, rules=self._shaper.strictly)
            keys = self._scratch.fit([dict(row)]).keys
        return spelled(keys, 0) if keys else msgspec.UNSET

    @property
    def skipped(self) -> int:
        """Rows of this round that were left out: by a post_transform function, or because they did not fit."""
        return self.left_out + sum(shaper.bad.skipped for shaper in self._shapers) - self._skipped_before

    @property
    def remarked(self) -> int:
        """How much there is to say in ``remarks``, so far."""
        return self.without_value + sum(one.bad.skipped + one.bad.nulled + one.unknown.total for one in self._shapers)

    def remarks(self) -> Remarks:
        """Rows that no bookmark can follow, rows that did not fit, fields that no schema knows."""
        unknown = Unknown()
        for shaper in self._shapers:
            unknown.merge(shaper.unknown)
        unfit = [one.bad for one in self._shapers if one.bad.skipped + one.bad.nulled]
        return Remarks(
            rows=self.rows,
            without_key=self.without_value,
            key=self.planned.resume_key or self.planned.bookmark_key,
            unfit=tuple(UnfitRows(bad.skipped, bad.nulled, dict(bad.fields)) for bad in unfit),
            dropped=unknown.fields,
            further=unknown.further,
        )


def _rules(settings: Settings | None, spec: StreamSpec) -> Rules:
    """How strict shaping is: what the operator says comes before what the stream's author says."""
    settings = settings or Settings()
    held = settings.check_constraints if settings.check_constraints is not None else spec.check_constraints
    return Rules(
        on_bad_record=settings.on_bad_record or spec.on_bad_record or "error",
        max_bad_records=settings.max_bad_records,
        on_nan=settings.on_nan,
        check_constraints=held is not False,
    )


def schema_of(planned: PlannedStream) -> Schema:
    """The SCHEMA message of a planned stream."""
    bookmarks = (planned.replication_key,) if planned.replication_key else ()
    return Schema(planned.stream, planned.schema, planned.key_properties, bookmarks)
