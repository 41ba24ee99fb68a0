"""The outlet of one planned stream: from rows to messages in the sink, with its bookmark and version."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from burler.context import call_bound
from burler.declare.spec import UserFunction
from burler.errors import BadRecordError, StreamError
from burler.pipeline.bookmark import BookmarkTracker
from burler.pipeline.pull import describe
from burler.pipeline.shape import ShapedPage, Shaper
from burler.runtime.logs import short
from burler.runtime.plan import PlannedStream
from burler.singer import state as st
from burler.singer.messages import ActivateVersion, Records, Schema, record_prefix_suffix
from burler.sinks.base import Sink

logger = logging.getLogger(__name__)


Given = dict[str, Callable[[], Any]]


class Outlet:
    """Shapes pages of one stream and hands them to the sink; knows what a STATE may say of the stream."""

    def __init__(
        self,
        planned: PlannedStream,
        sink: Sink,
        state: dict[str, Any],
        *,
        initial: Any,
        now: Callable[[], dt.datetime],
        invoke: Callable[[UserFunction, Given], Any],
        limit: int | None = None,
    ) -> None:
        name = planned.tap_stream_id
        self.planned = planned
        self.rows = 0
        self.bytes = 0
        self.limit = limit
        self.beyond = 0
        self.left_out = 0
        self._sink = sink
        self._state = state
        self._now = now
        self._invoke = invoke
        self._buffer = bytearray()
        self._tracker: BookmarkTracker | None = None
        key = planned.bookmark_key
        shaped_key = planned.replication_key if planned.spec.bookmark is None and key else None
        shaper = partial(
            Shaper,
            planned.stream,
            planned.schema,
            key_properties=planned.key_properties,
            key=shaped_key,
            deselected=planned.deselected,
        )
        self._shaper = shaper()
        # What a post_transform function sees; it may make the key.
        self._fitter = shaper(keys_required=False) if planned.spec.post_transform is not None else self._shaper
        if key is not None:
            sorted_rows = planned.order == "asc"
            self._tracker = BookmarkTracker(name, key, initial=initial, sorted_rows=sorted_rows)
        self._previous_version = st.get_version(state, name)
        self._version: int | None = None
        if planned.versions:
            stamp = int(now().timestamp() * 1000)
            # A clock that was set back must not make a version that targets take for an older one.
            self._version = max(stamp, (self._previous_version or 0) + 1)

    def open(self) -> None:
        """SCHEMA; on the first run of a full table also the version it fills (specs 8)."""
        planned = self.planned
        self._sink.write(schema_of(planned))
        # Rows up to a limit are never a whole table: nothing may be dropped for them.
        if self._version is not None and self._previous_version is None and self.limit is None:
            self._sink.write(ActivateVersion(planned.stream, self._version))

    def write(self, rows: list[dict[str, Any]], given: Given) -> tuple[list[Any], StreamError | None]:
        """Shape rows and write them as a page.

        Returns their bookmark values, for ``observe``, and an error if a row does not fit (the rows before
        it are written, it and those after it are not) or has no bookmark value (all are written).
        """
        if len(set(map(id, rows))) < len(rows):
            return [], self._same_row_again()
        if self.limit is not None:
            left = max(0, self.limit - self.rows)
            self.beyond += max(0, len(rows) - left)
            rows = rows[:left]
        del self._buffer[:]
        moment = self._now()
        prefix, suffix = record_prefix_suffix(self.planned.stream, moment, self._version)
        if self.planned.spec.post_transform is None:
            page = self._shaper.shape(rows, self._buffer, prefix, suffix)
            taken = page.count
        else:
            page, taken = self._transformed(rows, given, prefix, suffix)
        keys = page.keys
        error: StreamError | None = page.error
        if self.planned.spec.bookmark is not None and self._tracker is not None:
            keys, unknown = self._ask_bookmarks(rows[:taken], given)
            error = error or unknown
        if page.count:
            self._sink.write(Records(self.planned.stream, self._buffer, page.count, moment, self._version))
            self.rows += page.count
            self.bytes += len(self._buffer)
        return keys, error

    def _same_row_again(self) -> StreamError:
        spec = self.planned.spec
        place = spec.sync.place if spec.sync is not None else spec.place
        return StreamError(
            spec.tap_stream_id,
            f"stream '{spec.tap_stream_id}' ({place}): yielded one and the same dict more than once; rows wait for "
            "their page, so each would show what was written into it last. Yield a new dict for each row.",
        )

    def _transformed(
        self, rows: list[dict[str, Any]], given: Given, prefix: bytes, suffix: bytes
    ) -> tuple[ShapedPage, int]:
        """A page through the author's post_transform function, and how many rows of it were taken. What comes out
        is shaped once more, so that no hook can break the SCHEMA."""
        fitted = self._fitter.fit(rows)
        made: list[dict[str, Any]] = []
        origin: list[int] = []
        failed = self._ask_each("post_transform", fitted.rows, given, lambda i, out: _keep(i, out, made, origin))
        taken = failed[0] if failed else len(fitted.rows)
        page = self._shaper.shape(made, self._buffer, prefix, suffix)
        self.left_out += taken - len(made)
        broken: StreamError | None = None
        if page.error is not None:
            taken = origin[page.count]
            function = self.planned.spec.post_transform
            assert function is not None
            place = f"as its post_transform function ({function.place}) gave it"
            broken = BadRecordError(page.error.stream, f"{place}: {page.error}")
        error = broken or (failed[1] if failed else None) or fitted.error
        return ShapedPage(page.count, fitted.keys[:taken], error), taken

    def _ask_each(
        self, what: str, rows: list[dict[str, Any]], given: Given, take: Callable[[int, Any], None]
    ) -> tuple[int, StreamError] | None:
        """Call a function of the author's for each row; the row and the error at which it stopped, if it did."""
        function: UserFunction = getattr(self.planned.spec, what)

        def each() -> tuple[int, StreamError] | None:
            current: dict[str, Any] = {}
            asked = {**given, "record": lambda: current}
            for i, current in enumerate(rows):  # noqa: B007  the lambda reads it
                try:
                    take(i, self._invoke(function, asked))
                except (Exception, SystemExit) as error:
                    name = self.planned.tap_stream_id
                    failed = StreamError(
                        name, f"stream '{name}': its {what} function ({function.place}) failed: {short(error)}"
                    )
                    failed.__cause__ = error
                    return i, failed
            return None

        stopped: tuple[int, StreamError] | None = call_bound(given["stream"](), each)
        return stopped

    @property
    def full(self) -> bool:
        """Whether as many rows are out as a limit allows."""
        return self.limit is not None and self.rows >= self.limit

    def observe(self, keys: list[Any]) -> None:
        """Take the bookmark values of rows that are written, once everything yielded before them is, too.

        Raises:
            UnsortedStreamError, StreamError: see ``BookmarkTracker``.
        """
        if self._tracker is not None:
            self._tracker.observe(keys)

    def _ask_bookmarks(self, rows: list[dict[str, Any]], given: Given) -> tuple[list[Any], StreamError | None]:
        """The values that the author's bookmark function gives, up to the row for which it fails."""
        keys: list[Any] = []
        failed = self._ask_each("bookmark", rows, given, lambda _i, key: keys.append(key))
        return keys, failed[1] if failed else None

    def complete(self) -> None:
        """All rows are out: the version that they make up counts from here on."""
        if self._tracker is not None:
            self._tracker.complete()
        if self._version is not None:
            self._sink.write(ActivateVersion(self.planned.stream, self._version))
            st.set_bookmark(self._state, self.planned.tap_stream_id, "version", self._version)

    def save_bookmark(self) -> None:
        """Put the safe bookmark into the state."""
        if self._tracker is None or self.planned.bookmark_key is None:
            return
        name, key = self.planned.tap_stream_id, self.planned.bookmark_key
        value = self._tracker.safe
        # None takes away what an earlier STATE of this run said: the order turned out to be broken.
        if value is not None or st.get_bookmark(self._state, name, key) is not None:
            st.set_bookmark(self._state, name, key, msgspec.to_builtins(value))

    def report(self) -> None:
        """One warning for fields that no schema knows, and one for rows that no bookmark can follow."""
        blank = self._tracker.without_value if self._tracker is not None else 0
        if blank:
            logger.warning(
                "stream '%s': %d of %d rows have no '%s'; they come, but the bookmark can't follow them",
                self.planned.tap_stream_id,
                blank,
                self.rows,
                self.planned.bookmark_key,
            )
        unknown = {**self._fitter.unknown, **self._shaper.unknown}
        if unknown:
            shown = ", ".join(f"{path} ({count} rows)" for path, count in sorted(unknown.items())[:20])
            more = f" and {len(unknown) - 20} more" if len(unknown) > 20 else ""
            logger.warning(
                "stream '%s': fields that its schema does not know were dropped: %s%s",
                self.planned.tap_stream_id,
                shown,
                more,
            )


def _keep(i: int, out: Any, made: list[dict[str, Any]], origin: list[int]) -> None:
    """Take what a post_transform function gave: a row, or None, which leaves it out."""
    if isinstance(out, dict):
        made.append(out)
        origin.append(i)
    elif out is not None:
        raise TypeError(f"it gives the row back, or None to leave it out, not {describe(out)}")


def schema_of(planned: PlannedStream) -> Schema:
    """The SCHEMA message of a planned stream."""
    bookmarks = (planned.replication_key,) if planned.replication_key else ()
    return Schema(planned.stream, planned.schema, planned.key_properties, bookmarks)
