"""Request everything, emit what is new: for sources that can't be asked for changes, but whose rows carry a key."""

from __future__ import annotations

import datetime as dt
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from burler import times
from burler.context import StreamRun
from burler.errors import BurlerError
from burler.patterns.items import is_page, items_of
from burler.patterns.progress import failed, is_full_table
from burler.patterns.spans import BadTime, Calendar
from burler.singer.bookmark_values import comparable

logger = logging.getLogger(__name__)

# Moments in UTC, whose order as text is that in time once the Z, and zeros at the bookmark's end, are gone.
_PLAIN = re.compile(rf"{times.DAY}T{times.CLOCK}(?:\.\d+)?Z", re.ASCII)
_DATE_LENGTH = len("2024-01-02")

Key = str | Callable[[Mapping[str, Any]], Any]


def full_request_incremental_emit(stream: StreamRun, rows: Iterable[Any], key: Key | None = None) -> Iterator[Any]:
    """``yield from full_request_incremental_emit(stream, client.everything())``: of all rows those whose key is at or
    after the bookmark. Rows without a key come as well. One line in the log says how many there were of each.

    Args:
        rows: rows, lists of rows, or a mix: parsed, since each row is looked at. A list comes out as a list.
        key: a field, or a function of the row; the stream's replication key if left out.

    Raises:
        StreamError: a page of bytes or Arrow; a key of another kind than the bookmark; no key at all.
    """
    name = key if key is not None else stream.replication_key
    if name is None:
        raise failed(stream, "full_request_incremental_emit() needs a key: the stream's replication_key, or key=.")
    return _emit(rows, _Newer(stream, name))


def _emit(rows: Iterable[Any], newer: _Newer) -> Iterator[Any]:
    yield from chosen(rows, newer.wants, newer.stream, "full_request_incremental_emit()")
    newer.report()


def chosen(
    rows: Iterable[Any], wants: Callable[[Mapping[str, Any]], bool], stream: StreamRun, what: str
) -> Iterator[Any]:
    """The rows that are wanted of rows and lists of rows: a row as a row, a list as a list, unless nothing is left.

    Raises:
        StreamError: something that is neither.
    """
    if isinstance(rows, list) and set(map(type, rows)) == {dict}:
        rows = [rows]
    elif is_page(rows) and not isinstance(rows, list):
        raise _unseen(rows, stream, what)
    else:
        rows = items_of(iter(rows) if isinstance(rows, list) else rows, stream, what=what)
    for item in rows:
        if isinstance(item, Mapping):
            if wants(item):
                yield item
            continue
        strange = [one for one in item if not isinstance(one, Mapping)] if isinstance(item, list) else [item]
        if strange:
            raise _unseen(strange[0], stream, what)
        kept = [row for row in item if wants(row)]
        if kept:
            yield kept


def _unseen(item: Any, stream: StreamRun, what: str) -> BurlerError:
    return failed(
        stream,
        f"{what} looks at each row, so it takes rows (dicts) and lists of rows, not {type(item).__name__}. "
        "Give reply.json(), or table.to_pylist().",
    )


class _Newer:
    """Compares rows with the bookmark and counts them."""

    def __init__(self, stream: StreamRun, key: Key) -> None:
        self.stream = stream
        self._value: Callable[[Mapping[str, Any]], Any] = key if callable(key) else lambda row: row.get(key)
        self._shown = key if isinstance(key, str) else "key"
        self._kind = ""
        self._from: Any = None  # None: all rows are new
        self._plain: str | None = None
        self._asked = self._emitted = self._without = 0
        if stream.raw_bookmark is not None and not is_full_table(stream):
            self._begin_at(stream.raw_bookmark)
            if self._from is None:
                raise failed(stream, f"the bookmark is {self._kind} ({stream.raw_bookmark!r:.60}), which has no order.")

    def _begin_at(self, bookmark: Any) -> None:
        self._kind, self._from = comparable(bookmark)
        self._plain = None
        moment = times.strict(bookmark) if isinstance(bookmark, str) else None
        if moment is not None:
            body, _, fraction = moment[:-1].partition(".")
            self._plain = f"{body}.{fraction}".rstrip("0").rstrip(".") if fraction else body

    def wants(self, row: Mapping[str, Any]) -> bool:
        """Whether a row is to go out."""
        self._asked += 1
        value = self._value(row)
        if value is None:
            self._without += 1
        elif self._plain is not None and type(value) is str and _PLAIN.fullmatch(value) is not None:
            if value[:-1] < self._plain:
                return False
        elif self._from is not None:
            kind, rank = comparable(value)
            # What has no place in an order (rank None) comes: the engine judges it.
            if rank is not None and (kind == self._kind or self._adapted(kind, value)) and rank < self._from:
                return False
        self._emitted += 1
        return True

    def _adapted(self, kind: str, value: Any) -> bool:
        """Whether the bookmark can be made one of the keys' kind: a day and a moment can, in UTC. A start_date says
        nothing of keys that are no times: then all rows are new.

        Raises:
            StreamError: it can't be.
        """
        stream = self.stream
        fits = _as_fine(stream.raw_bookmark, value)
        if fits is not None:
            self._begin_at(fits)
            if self._kind == kind:
                return True
        elif stream.raw_bookmark == stream.start_date:
            self._from = None
            return False
        raise failed(
            stream,
            f"'{self._shown}' is {kind} ({value!r:.60}) where the bookmark is {comparable(stream.raw_bookmark)[0]} "
            f"({stream.raw_bookmark!r:.60}); only values of one kind can be compared.",
        )

    def report(self) -> None:
        """One line in the log."""
        logger.info(
            "stream '%s': of %d rows asked for %d are new; %d have no '%s' and come",
            self.stream.name,
            self._asked,
            self._emitted,
            self._without,
            self._shown,
        )


def _as_fine(bookmark: Any, value: Any) -> str | None:
    """A bookmark as a day where the value is one, as a moment where it is one; None where one of them is no time."""
    try:
        Calendar(dt.UTC, dates=True).moment(value, "the key")
        dates = len(value) == _DATE_LENGTH if isinstance(value, str) else not isinstance(value, dt.datetime)
        calendar = Calendar(dt.UTC, dates=dates)
        return calendar.text(calendar.moment(bookmark, "the bookmark"))
    except BadTime:
        return None
