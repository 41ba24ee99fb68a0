"""The outlet of one planned stream: from rows to messages in the sink, with its bookmark and version."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from burler.declare.inject import call
from burler.errors import StreamError
from burler.pipeline.bookmark import BookmarkTracker
from burler.pipeline.shape import Shaper
from burler.runtime.logs import short
from burler.runtime.plan import PlannedStream
from burler.singer import state as st
from burler.singer.messages import ActivateVersion, Records, Schema, record_prefix_suffix
from burler.sinks.base import Sink

logger = logging.getLogger(__name__)


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
    ) -> None:
        name = planned.tap_stream_id
        self.planned = planned
        self.rows = 0
        self.bytes = 0
        self._sink = sink
        self._state = state
        self._now = now
        self._buffer = bytearray()
        self._tracker: BookmarkTracker | None = None
        key = planned.bookmark_key
        shaped_key = planned.replication_key if planned.spec.bookmark is None and key else None
        self._shaper = Shaper(
            planned.stream,
            planned.schema,
            key_properties=planned.key_properties,
            key=shaped_key,
            deselected=planned.deselected,
        )
        if key is not None:
            sorted_rows = planned.spec.order == "asc"
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
        bookmarks = (planned.replication_key,) if planned.replication_key else ()
        self._sink.write(Schema(planned.stream, planned.schema, planned.key_properties, bookmarks))
        if self._version is not None and self._previous_version is None:
            self._sink.write(ActivateVersion(planned.stream, self._version))

    def write(
        self, rows: list[dict[str, Any]], given: dict[str, Callable[[], Any]]
    ) -> tuple[list[Any], StreamError | None]:
        """Shape rows and write them as a page.

        Returns their bookmark values, for ``observe``, and an error if a row does not fit (the rows before
        it are written, it and those after it are not) or has no bookmark value (all are written).
        """
        del self._buffer[:]
        moment = self._now()
        prefix, suffix = record_prefix_suffix(self.planned.stream, moment, self._version)
        page = self._shaper.shape(rows, self._buffer, prefix, suffix)
        keys = page.keys
        error: StreamError | None = page.error
        if self.planned.spec.bookmark is not None and self._tracker is not None:
            keys, unknown = self._ask_bookmarks(rows[: page.count], given)
            error = error or unknown
        if page.count:
            self._sink.write(Records(self.planned.stream, self._buffer, page.count, moment, self._version))
            self.rows += page.count
            self.bytes += len(self._buffer)
        return keys, error

    def observe(self, keys: list[Any]) -> None:
        """Take the bookmark values of rows that are written, once everything yielded before them is, too.

        Raises:
            UnsortedStreamError, StreamError: see ``BookmarkTracker``.
        """
        if self._tracker is not None:
            self._tracker.observe(keys)

    def _ask_bookmarks(
        self, rows: list[dict[str, Any]], given: dict[str, Callable[[], Any]]
    ) -> tuple[list[Any], StreamError | None]:
        """The values that the author's bookmark function gives, up to the row for which it fails."""
        function = self.planned.spec.bookmark
        assert function is not None
        keys: list[Any] = []
        for row in rows:
            try:
                keys.append(call(function.fn, function.names, {**given, "record": partial(_itself, row)}))
            except Exception as error:
                name = self.planned.tap_stream_id
                failed = StreamError(
                    name,
                    f"stream '{name}': its bookmark function ({function.place}) failed: {short(error)}",
                )
                failed.__cause__ = error
                return keys, failed
        return keys, None

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
        unknown = self._shaper.unknown
        if unknown:
            shown = ", ".join(f"{path} ({count} rows)" for path, count in sorted(unknown.items())[:20])
            more = f" and {len(unknown) - 20} more" if len(unknown) > 20 else ""
            logger.warning(
                "stream '%s': fields that its schema does not know were dropped: %s%s",
                self.planned.tap_stream_id,
                shown,
                more,
            )


def _itself(row: dict[str, Any]) -> dict[str, Any]:
    return row
