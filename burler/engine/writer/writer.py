"""One stream's way to the sink: from what user code yielded to messages, with its bookmark values and versions."""

from __future__ import annotations

import contextlib
import datetime as dt
import functools
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from burler import pages
from burler.call import Given
from burler.context import StreamRun, call_bound
from burler.declare.spec import StreamSpec, UserFunction
from burler.engine.catalog.plan import PlannedStream, key_format
from burler.engine.state.ledger import FamilyState
from burler.engine.writer.page_buffer import PageBuffer, RowCounts
from burler.engine.writer.versions import Versions
from burler.errors import BadRecordError, BatchError, FileError, StreamError
from burler.events import Counts, Remarks, Status, StreamEnded
from burler.log_settings import describe
from burler.logs import short
from burler.pages import JsonPage, PageError
from burler.pipeline.repeats import Recurring, Repeats, StreamRepeats
from burler.pipeline.yielded import rows_of
from burler.records.shape.bad_rows import Rules
from burler.records.shape.shaper import ShapedPage, Shaper
from burler.records.shape.unknown import Unknown
from burler.settings import Settings
from burler.singer.bookmark_values import KeyValues, spelled
from burler.singer.messages import Schema
from burler.sinks import Form, Sink

if TYPE_CHECKING:
    from burler.batch.source_files import Intake
    from burler.records.arrow.pages import ArrowPages

Part = Any
"""``list[dict]``, a ``JsonPage``, a RecordBatch or Table of pyarrow, or files that go on as they are."""
Written = tuple[list[Any], StreamError | None]
"""The bookmark values of rows that are out, and what is wrong with the row behind them."""

_PART_BYTES = 2 * 1024 * 1024  # lines that are made at once of a page of bytes
_MOST_ROWS = 5000
_ARROW_BYTES = 4 * 1024 * 1024  # the same of Arrow, whose kernels cost 0.3 ms a call of all of them
_ARROW_ROWS = 10_000


class StreamWriter:
    """Shapes pages of one stream and hands them to the sink. ``begin_round`` comes first.

    Args:
        now: the clock that ``time_extracted`` is read from.
        invoke: calls a function of the author's with what it asks for.
        limit: so many rows go out; None: all.

    Attributes:
        repeats: what is known of rows that may come again. versions: of the round's rows.
        bookmark_from: the bookmark as the round began.
        counts: of the rows of the round.
        hook_since: when a function of the author's was called that has not come back yet.
    """

    def __init__(
        self,
        planned: PlannedStream,
        sink: Sink,
        *,
        now: Callable[[], dt.datetime],
        invoke: Callable[[UserFunction, Given], Any],
        settings: Settings,
        limit: int | None = None,
    ) -> None:
        spec = planned.spec
        self._sink, self._now, self._invoke = sink, now, invoke
        self._limit = sys.maxsize if limit is None else limit
        # A look at a few rows is no load: it shows them.
        form: Form = "messages" if limit is not None else sink.choose(planned.stream, planned.told("batch-enabled"))
        self._asks_bookmarks = spec.bookmark is not None and planned.bookmark_key is not None
        # Not where the function wants to know what comes below the row.
        self._asks_each = spec.bookmark is not None and self._asks_bookmarks and "children" not in spec.bookmark.names
        self._is_hooked = spec.post_transform is not None
        self._by_row = limit is not None or self._is_hooked or self._asks_each
        self._versions_allowed = settings.full_table_versions if spec.versions is None else spec.versions
        own_key = planned.replication_key if spec.bookmark is None and planned.bookmark_key else None
        self._make_shaper = partial(
            Shaper,
            planned.stream,
            planned.schema,
            key_properties=planned.key_properties,
            key=planned.resume_key or own_key,
            deselected=planned.deselected,
            rules=_rules(settings, spec),
        )
        self._shaper = self._make_shaper()
        # What a post_transform function sees; it may make the key.
        self._fitter = self._make_shaper(keys_required=False) if self._is_hooked else self._shaper
        self._fitter.bad, self._fitter.exact = self._shaper.bad, self._shaper.exact  # one account for both
        self._bad = self._shaper.bad
        self._page = PageBuffer(planned.stream, sink, form=form, shaper=self._shaper)
        self._known: Repeats | None = None  # of the rows that are being written
        self.hook_since: float | None = None
        self._is_open = False
        key = planned.resume_key or planned.bookmark_key
        self.repeats = StreamRepeats(
            planned.tap_stream_id,
            planned.key_properties,
            textual=key_format(planned.schema, key) if key is not None else None,
            rises=planned.order == "asc" and spec.on_unsorted == "error",
        )

    def begin_round(self, planned: PlannedStream, saved: FamilyState, recurring: Recurring | None = None) -> None:
        """A run, or another round of a tail: everything counts anew. What the shapers have learned stays, and what is
        known of rows that may come again.

        Args:
            saved: what the state says of the stream.
            recurring: which rows may come again, in a tail.
        """
        self.planned = planned
        self.repeats.begin_round(recurring)
        self.counts = self._page.counts = RowCounts()
        self.bookmark_from = saved.bookmark(planned.tap_stream_id)
        self._skipped_before = self._bad.skipped  # in earlier rounds of a tail
        self._bad.begin_round()
        self.versions = Versions(
            planned,
            self._sink,
            saved,
            now=self._now,
            limited=self._limit < sys.maxsize,
            allowed=self._versions_allowed,
        )

    def open(self) -> None:
        """SCHEMA, if it is not out yet.

        Raises:
            StreamError: files have no form for such a schema.
        """
        if self._is_open:
            return
        try:
            self._sink.write(schema_of(self.planned))
        except BatchError as error:
            raise StreamError(self.planned.tap_stream_id, str(error)) from None
        self._is_open = True

    # ---- tasks -----------------------------------------------------------------------------------------

    def task_again(self, partition: str | None) -> None:
        """A task begins once more."""
        self.versions.restart(self.rows)
        self.repeats.again(partition)

    def begin_block(self) -> None:
        """A block of the author's begins, whose rows are a full table: targets drop what went out before it."""
        self.versions.begin_block()
        self.repeats.forget()

    # ---- pages -----------------------------------------------------------------------------------------

    def write(self, parts: list[Part], given: Given, partition: str | None) -> Written:
        """Shape what was yielded and write it. In a tail, rows that went out before, as they are, do not go out again;
        their bookmark values count.

        Args:
            given: what functions of the author's may ask for.
            partition: whose rows they are.

        Returns their bookmark values, for ``observe``, and an error if a row does not fit (the rows before
        it are written, it and those after it are not) or has no bookmark value (all are written).
        """
        self.versions.begin()
        repeats = self._known = None if self.versions.in_block else self.repeats.of(partition)
        self._bad.known = None if repeats is None else repeats.bad
        keys: list[list[Any]] = []
        error: StreamError | None = None
        for part in pages.joined(parts, self.planned.spec.records_path):
            if error is not None:
                break
            before = len(keys)
            self._page.begin_part(self._now(), self.versions.now, None if self._is_hooked else repeats)
            try:
                with contextlib.nullcontext() if repeats is None else self._once():
                    for more in self._steps(part, given):
                        keys.append(more)
            except StreamError as broken:
                error = broken
            except BatchError as broken:  # which rows are in the file is not told: for the bookmark none of them counts
                del keys[before:]
                error = BadRecordError(self.planned.tap_stream_id, str(broken))
                if repeats is not None:
                    repeats.forget()
        return keys[0] if len(keys) == 1 else KeyValues.joined(keys), error

    def _steps(self, part: Part, given: Given) -> Iterator[list[Any]]:
        """Write a part, a step at a time; gives the bookmark values of each.

        Raises:
            StreamError: behind what is out, what is wrong with the row that follows.
        """
        self._bad.where = None
        if isinstance(part, list):
            if len(set(map(id, part))) < len(part):
                fact = (
                    f"{self._where}: yielded one and the same dict more than once; rows wait for "
                    "their page, so each would show what was written into it last. Yield a new dict for each row."
                )
                raise StreamError(self.planned.tap_stream_id, fact)
            yield from self._write_rows(part, given)
        elif pages.is_passed(part):
            yield self._pass_files(part, given)
        elif isinstance(part, JsonPage):
            yield from self._write_json(part, given)
        else:
            yield from self._write_arrow(part, given)

    @contextlib.contextmanager
    def _once(self) -> Iterator[None]:
        """Where nothing but rows comes that are out already, no field of theirs counts as unknown once more."""
        rows, repeated, exact = self.rows, self.counts.repeated, self._shaper.exact
        unknown = exact.unknown
        exact.unknown = Unknown(onto=unknown)
        try:
            yield
        finally:
            if self.rows > rows or self.counts.repeated == repeated:
                unknown.merge(exact.unknown)
            exact.unknown = unknown

    def _write_rows(self, rows: list[dict[str, Any]], given: Given) -> Iterator[list[Any]]:
        if len(rows) > self.room:
            self.counts.beyond += len(rows) - self.room
            rows = rows[: self.room]
        if self._is_hooked:
            keys, taken, error = self._transform(rows, given)
        else:
            page = self._put(rows)
            keys, error = page.keys, page.error
            taken = _without(range(page.taken), page.skipped) if self._asks_each else []
        if self._asks_each:
            keys, failed = self._ask("bookmark", [rows[i] for i in taken], given)
            error = error or failed
        yield keys
        if error is not None:
            raise error

    def _put(self, rows: list[dict[str, Any]]) -> ShapedPage:
        """Shape rows as a page: by columns where that surely comes to the same."""
        out = self._page
        out.begin()
        keys = out.give_rows(rows)
        page = ShapedPage(len(rows), keys) if keys is not None else self._shaper.shape(rows, out)
        out.end(page.keys)
        return page

    def _write_json(self, page: JsonPage, given: Given) -> Iterator[list[Any]]:
        """JSON in bytes becomes lines without becoming dicts, if it can."""
        if page.records_path is None:
            page = JsonPage(page.data, self.planned.spec.records_path)
        structs = None if self._by_row else self._shaper.decode(page)
        if structs is None:
            yield from self._write_as_rows(page, given)
            return
        step = max(1, min(_MOST_ROWS, _PART_BYTES * len(structs) // max(1, len(page.data))))
        for first in range(0, len(structs), step):
            part = structs[first : first + step]
            self._page.begin()
            done, keys = self._shaper.write_decoded(part, self._page)
            self._page.end(keys)
            yield keys
            if done < len(part):  # and the rest too: the page is read once more, not once for each part of it
                if done:
                    self._shaper.count(rows_of(page)[first : first + done])
                yield from self._write_as_rows(page, given, first + done)
                return

    def _write_arrow(self, page: Any, given: Given) -> Iterator[list[Any]]:
        """Arrow becomes columns, or lines, without becoming dicts, if it can."""
        out = self._page
        out.begin()
        if out.takes_columns and not self._by_row:
            columns = self._arrow.columns(page, out.columns, self._shaper.unknown)
            if columns is not None:
                out.give(columns[0])
                yield columns[1]
                return
        step = max(1, min(_ARROW_ROWS, _ARROW_BYTES * page.num_rows // max(1, page.nbytes)))
        for batch in pages.sliced(page, step):
            out.begin()
            unknown = self._shaper.unknown
            made = None if self._by_row else self._arrow.lines(batch, out.prefix, out.suffix, unknown)
            if made is None:
                yield from self._write_as_rows(batch, given)
                continue
            lines, keys = made
            out.pass_on(lines, batch.num_rows)
            out.end(keys)
            yield keys

    def _write_as_rows(self, page: Any, given: Given, first: int = 0) -> Iterator[list[Any]]:
        """A page of bytes or of Arrow by the way of dicts. What stands before the place where it breaks goes out before
        the error."""
        error: StreamError | None = None
        try:
            rows = rows_of(page)
        except (PageError, RecursionError) as broken:
            rows = broken.rows if isinstance(broken, PageError) else []
            fact = broken if isinstance(broken, PageError) else "the page is nested too deep to be read"
            error = StreamError(self.planned.tap_stream_id, f"{self._where}: {fact}.")
        origin = pages.origin_of(page)
        self._bad.where = None if origin is None else functools.partial(origin.of, rows)
        for at in range(first, len(rows), _MOST_ROWS):
            yield from self._write_rows(rows[at : at + _MOST_ROWS], given)
        if error is not None:
            raise error

    # What makes lines or columns of pages; each is imported, and made, once it is needed.

    @functools.cached_property
    def _arrow(self) -> ArrowPages:
        from burler.records.arrow.pages import ArrowPages

        shaper = self._shaper
        return ArrowPages(shaper.schema, key=shaper.key, rules=shaper.rules)

    @functools.cached_property
    def _silent(self) -> Shaper:
        """It counts and tells nothing a second time."""
        return self._make_shaper(keys_required=False, rules=self._shaper.rules.strictly)

    @property
    def _where(self) -> str:
        spec = self.planned.spec
        return f"stream '{spec.tap_stream_id}' ({spec.sync.place if spec.sync is not None else spec.place})"

    # ---- functions of the author's ---------------------------------------------------------------------

    def _transform(self, rows: list[dict[str, Any]], given: Given) -> tuple[list[Any], list[int], StreamError | None]:
        """Write rows through the author's post_transform function; gives the keys and the places of those that were
        taken. What comes out is shaped once more, so that no hook can break the SCHEMA. Rows that are out already don't
        go through it."""
        fitted, repeats = self._fitter.fit(rows), self._known
        known = None if repeats is None else repeats.page_of(fitted.rows)
        places = _without(range(len(fitted.rows)), known.repeats if known is not None else ())
        self.counts.repeated += len(fitted.rows) - len(places)
        asked, failed = self._ask("post_transform", [fitted.rows[i] for i in places], given, _row_or_none)
        made = [(row, place) for row, place in zip(asked, places, strict=False) if row is not None]
        self.counts.left_out += len(asked) - len(made)
        taken = places[len(asked)] if failed is not None else len(fitted.rows)
        page = self._put([row for row, _place in made])
        error = failed or fitted.error
        if page.error is not None:
            taken = made[page.taken][1]
            function = self.planned.spec.post_transform
            assert function is not None
            place = f"as its post_transform function ({function.place}) gave it"
            error = BadRecordError(page.error.stream, f"{place}: {page.error}")
        if repeats is not None and known is not None:
            out = {made[i][1] for i in _without(range(page.taken), page.skipped)}
            repeats.note(known, fitted.keys, out=out, taken=taken)
        return fitted.keys.up_to(taken), fitted.origin[:taken], error

    def _ask(
        self, what: str, rows: list[dict[str, Any]], given: Given, read: Callable[[Any], Any] = lambda value: value
    ) -> Written:
        """What a function gives for each row, and the error that ended it."""
        function: UserFunction = getattr(self.planned.spec, what)
        found: list[Any] = []

        def each() -> StreamError | None:
            current: dict[str, Any] = {}
            asked = {**given, "record": lambda: current}
            for current in rows:  # noqa: B007  the lambda reads it
                self.hook_since = time.monotonic()
                try:
                    found.append(read(self._invoke(function, asked)))
                except (Exception, SystemExit) as error:
                    name = self.planned.tap_stream_id
                    fact = f"stream '{name}': its {what} function ({function.place}) failed: {short(error)}"
                    failed = StreamError(name, fact)
                    failed.__cause__ = error
                    return failed
                finally:
                    self.hook_since = None
            return None

        return found, call_bound(given["stream"](), each)

    def ask_bookmark(self, row: Mapping[str, Any], children: Any, given: Given) -> list[Any]:
        """The value that the author's bookmark function gives for one row, as a list of one.

        Raises:
            StreamError: the function failed.
        """
        keys, error = self._ask("bookmark", [dict(row)], {**given, "children": lambda: children or {}})
        if error is not None:
            raise error
        return keys

    def key_of(self, row: Mapping[str, Any], given: Given) -> Any:
        """The bookmark value of one row that is out, as it stands in the state; UNSET if it can't be told."""
        keys = self.ask_bookmark(row, None, given) if self._asks_each else self._silent.fit([dict(row)]).keys
        return spelled(keys, 0) if keys else msgspec.UNSET

    # ---- files (burler.batch_files) --------------------------------------------------------------------

    def take_files(self, files: Any, run: StreamRun) -> Any:
        """Files that user code yields: what stands for those that go on as they are, or an iterator of their pages.

        Raises:
            FileError: they are not there, or not what they should be. StreamError: a bookmark is said of them, and the
                stream has none.
        """
        planned = self.planned
        spec, may_have_one = planned.spec, planned.metadata.get((), {}).get("valid-replication-keys")
        # A catalog may have a stream read without its replication key; then it plays no part, like those of rows.
        keeps_one = spec.replication_key is not None or may_have_one or planned.replication_key or planned.resume_key
        if files.bookmark is not msgspec.UNSET and not keeps_one:
            raise StreamError(
                spec.tap_stream_id,
                f"{self._where}: batch_files(bookmark=...) needs a stream with a "
                "replication_key, and this one has none: no state would hold the bookmark.\n"
                "  Declare the replication_key, or leave bookmark= out.",
            )
        try:
            return self._intake.take(files, run)
        except BatchError as error:  # of the source's files, and so of its stream
            raise FileError(str(error)) from None

    @functools.cached_property
    def _intake(self) -> Intake:
        from burler.batch.source_files import Intake

        rows_needed = "its bookmark function looks at the rows" if self._asks_bookmarks else None
        if self.planned.spec.post_transform is not None:
            rows_needed = "a hook is called for its rows"
        config = self._sink.config if self._page.form != "messages" else None
        return Intake(config=config, rows_needed=rows_needed)

    def _pass_files(self, files: Any, given: Given) -> list[Any]:
        """Write files that go on as they are; gives the bookmark that the author has said for them, which counts as
        that of a row."""
        self._page.pass_files(files)
        key = self.planned.resume_key or self.planned.replication_key
        if key is None or files.bookmark is msgspec.UNSET:
            return []
        return [self.key_of({key: files.bookmark}, given)]

    # ---- what is out -----------------------------------------------------------------------------------

    @property
    def joins_rows(self) -> bool:
        """Whether the values that ``write`` gives for rows are those of the first rows, one for each."""
        is_strict = self._shaper.rules.on_bad_record == "error"
        return self._page.form == "messages" and is_strict and not self._by_row

    @property
    def rows(self) -> int:
        """Rows that are out."""
        return self.counts.rows

    @property
    def room(self) -> int:
        """How many rows may go out yet."""
        return max(0, self._limit - self.rows)

    def ended(self, status: Status, *, bookmark: Any, counts: Counts) -> StreamEnded:
        """What is told of its end.

        Args:
            bookmark: in the state, by now.
            counts: what was counted while its source was read.
        """
        of_rows, bad = self.counts, self._bad
        seen = self.planned.bookmark_key is not None and "passed_files" not in counts  # nobody has, of such files
        return StreamEnded(
            self.planned.tap_stream_id,
            self.planned.stream,
            status,
            rows=of_rows.rows,
            # Rows that were out before are looked at, too.
            updated=min(of_rows.newer, of_rows.rows) if seen else None,
            skipped=of_rows.left_out + bad.skipped - self._skipped_before,
            left_out=of_rows.left_out,
            bookmark=bookmark,
            counts={**counts, "repeated": of_rows.repeated} if of_rows.repeated else counts,
            remarked=of_rows.without_value + bad.skipped + bad.nulled + self._shaper.unknown.total,
            remarks=self._remarks,
        )

    def _remarks(self) -> Remarks:
        """Rows that no bookmark can follow, rows that did not fit, fields that no schema knows."""
        bad, unknown = self._bad, self._shaper.unknown
        return Remarks(
            rows=self.rows,
            without_key=self.counts.without_value,
            key=self.planned.resume_key or self.planned.bookmark_key,
            skipped=bad.skipped,
            nulled=bad.nulled,
            unfit=dict(bad.fields),
            dropped=unknown.fields,
            further=unknown.further,
        )


def _without(places: Iterable[int], left_out: Iterable[int]) -> list[int]:
    """The places that are not left out."""
    dropped = set(left_out)
    return [place for place in places if place not in dropped]


def _row_or_none(out: Any) -> dict[str, Any] | None:
    """What a post_transform function gave."""
    if out is not None and not isinstance(out, dict):
        raise TypeError(f"it gives the row back, or None to leave it out, not {describe(out)}")
    return out


def _rules(settings: Settings, spec: StreamSpec) -> Rules:
    """How strict shaping is: what the operator says comes before what the stream's author says."""
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


class UnseenKey:
    """The replication key of a parent that runs unseen, for its substreams alone: in the form that it would go out in.
    Takes the key of rows that are not shaped.

    Args:
        schema: of the whole row, from the catalog.
    """

    def __init__(self, stream: str, key: str, schema: Mapping[str, Any]) -> None:
        node = (schema.get("properties") or {}).get(key)
        self._key = key
        self._shaper: Shaper | None = None
        if isinstance(node, dict):
            alone = {"type": "object", "properties": {key: node}}
            self._shaper = Shaper(stream, alone, key=key, keys_required=False)

    def of(self, rows: Sequence[Mapping[str, Any]]) -> list[Any]:
        """The values of some rows; as they are, where they fit no schema."""
        values = [row.get(self._key) for row in rows]
        if self._shaper is None:
            return values
        fitted = self._shaper.fit([{self._key: value} for value in values])
        return fitted.keys if len(fitted.keys) == len(values) else values
