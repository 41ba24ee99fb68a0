"""Pull: the only place that runs sync functions, a page at a time.

The user's iterator is driven from C: ``buffer.extend(islice(iterator, n))`` inside a private copy of the context (a
generator has no context of its own), one context entry a page. What was yielded so far is visible in the buffer while
the generator blocks, so that a timer may take it, and an exception in the generator leaves there exactly the rows
yielded before it.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from itertools import islice, repeat
from types import GeneratorType
from typing import Any

from burler.errors import StreamError
from burler.log_settings import describe
from burler.pages import PageError, as_page, batches, is_files, is_line, is_passed, misused, size_bytes
from burler.pipeline.yielded import (
    MAY_CHANGE,
    Item,
    Rows,
    Strange,
    is_row,
    joined,
    rows_of,
    size_of_item,
    size_of_row,
    tell_giver,
)
from burler.settings import Settings

_STEP_ROWS = 64  # that are gathered without a look at them
_FIRST_STEP_ROWS, _SMALL_BYTES = 8, 4096  # the same behind a first row that is small, before others were
_LOOK_ROWS = 16  # of so many one is measured, where each is looked at
_BIG_BYTES = 2 * 1024 * 1024
_BIG_PAGE_BYTES = 16 * 1024  # a page of this size is written before user code goes on
_MOMENT_SECONDS = 0.005
_FULL_BYTES = 256 * 1024  # of pages, after which user code waits until they are written
_PAGE_BYTES = 4 * 1024 * 1024
_FIRST_PAGE_ROWS = 10
_LOT_BYTES = 2 * 1024 * 1024
_LOT_LOOK_ROWS = 4  # of so many of a lot one is measured
_CUT = Strange("what follows does not count")
_NONE: Any = object()


class PageSize:
    """Starts small and follows what it sees of the stream's rows and of the time they take."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.rows = min(_FIRST_PAGE_ROWS, settings.page_max_rows)
        self._rows_before = self._size_before = 0

    def adapt(self, *, rows: int, size: int, seconds: float) -> None:
        """Take in what a page has shown.

        Args:
            rows, size: how many rows, and bytes of lines, the stream has had so far.
            seconds: how long the last page took to come together.
        """
        limit = self._settings.page_max_rows
        new, new_size = rows - self._rows_before, size - self._size_before
        if new > 0:
            limit = min(limit, max(1, _PAGE_BYTES // max(1, new_size // new)))
            self._rows_before, self._size_before = rows, size
        age = self._settings.page_max_age_seconds / 2
        if seconds > age:
            limit = min(limit, int(self.rows / seconds * age))
        self.rows = max(1, min(limit, self.rows * 4))


class Lot:
    """Rows of parents that were read ahead.

    Args:
        most_rows, most_seconds: of one lot.
    """

    __slots__ = ("_most_rows", "_most_seconds", "_size", "_until", "rows")

    def __init__(self, most_rows: int, most_seconds: float) -> None:
        self.rows: deque[tuple[str, Mapping[str, Any]]] = deque()
        self._most_rows, self._most_seconds = most_rows, most_seconds
        self.begin()

    def begin(self) -> None:
        """Another one."""
        self._size, self._until = 0, time.monotonic() + self._most_seconds

    def add(self, stream: str, row: Mapping[str, Any]) -> None:
        """Add a row."""
        if len(self.rows) % _LOT_LOOK_ROWS == 0:
            self._size += size_of_row(row) * _LOT_LOOK_ROWS
        self.rows.append((stream, row))

    @property
    def is_full(self) -> bool:
        """Whether no more is to be read ahead."""
        full = len(self.rows) >= self._most_rows or self._size >= _LOT_BYTES
        return full or time.monotonic() >= self._until


class Buffer:
    """What functions have given and nobody has taken yet: rows and pages, by the stream whose function it was. One
    thread puts, any thread may take. ``is_cutting``: ``cut`` was called."""

    def __init__(self) -> None:
        self._given: dict[str, list[Item]] = {}
        self._now: list[Item] = []
        self._taken = 0
        self._more = 0  # rows beyond one an item
        self._lock = threading.Lock()
        self.is_cutting = self._is_cut = False

    def of(self, stream: str) -> list[Item]:
        """Where a function's rows go, from now on: of one function at a time."""
        with self._lock:
            if stream not in self._given:
                self._given[stream] = []
            self._now = self._given[stream]
        return self._now

    def put(self, stream: str, item: Item) -> None:
        """Add a row that a function gives beside those that it yields."""
        with self._lock:
            self._given.setdefault(stream, []).append(item)

    def several(self, rows: int) -> None:
        """An item of so many rows follows."""
        self._more += rows - 1

    def count(self) -> int:
        """How many rows were given, of those that were taken, too."""
        with self._lock:
            return sum(map(len, self._given.values())) + self._taken + self._more

    def __len__(self) -> int:
        return sum(map(len, tuple(self._given.values())))

    def last(self, count: int) -> list[Item]:
        """The last items of the function that runs; fewer, if the timer has just taken some."""
        with self._lock:
            return self._now[-count:]

    def cut(self) -> None:
        """Nothing that user code yields from here on counts: Stop is being raised in it, and if it eats that and goes
        on, what it yields then stands behind a hole. Called in a signal handler: one append, no lock."""
        self.is_cutting = True
        self._now.append(_CUT)

    def take(self) -> dict[str, list[Item]]:
        """All items so far, in order; they leave the buffer."""
        found: dict[str, list[Item]] = {}
        with self._lock:
            for stream, given in self._given.items():
                count = len(given)
                if count:  # more may be put behind these meanwhile, by a function that runs
                    found[stream] = given[:count]
                    del given[:count]
                    self._taken += count
            if self._is_cut:
                return {}
            for stream, items in found.items() if self.is_cutting else ():
                at = next((i for i, item in enumerate(items) if item is _CUT), None)
                if at is not None:
                    self._is_cut = True
                    found[stream] = items[:at]
        return {stream: joined(items) if self._more else items for stream, items in found.items() if items}


class _Level:
    """One iterator on the way down: the function's own, or one that it yielded.

    ``rows`` is None until the first item decides: rows are gathered, anything else is taken one by
    one, since an iterator must be read to its end before the function that gave it goes on. ``ready``:
    it goes through a list of rows, which can be cut into pages without waiting. ``odd``: what came among rows and is
    none, of a function that may mix them; ``paused``: enough has come for now. ``seen``: how many rows it has given,
    where each is looked at.
    """

    __slots__ = ("iterator", "odd", "paused", "ready", "rows", "seen", "source", "step", "stream")

    def __init__(self, iterator: Iterator[Any], stream: str | None, *, ready: bool = False) -> None:
        self.source = self.iterator = iterator
        self.stream = stream
        self.ready = ready
        self.rows: bool | None = ready or None
        self.step = _STEP_ROWS if ready else 1
        self.odd: Any = _NONE
        self.paused = False
        self.seen: int | None = None


class Pull:
    """Drives calls of a function, one after the other, and learns from them whether its rows are small.

    Args:
        stream: whose function it is; its rows stand under that name in the buffer.
        place: of the function, for errors.
        names: the streams whose rows it may give; each row is looked at then. None: whoever writes them looks.
        one_by_one: rows may trickle: each fill ends as soon as it took a moment, so that what the author keeps beside
            the rows is looked at.
        whole_pages: a list of rows is taken as one page, however long it is.
        page_by_page: each page of another kind is written before user code goes on: a STATE may be due behind it.
    """

    def __init__(
        self,
        *,
        stream: str,
        place: str,
        names: frozenset[str] | None = None,
        records_paths: Mapping[str, tuple[str, ...]] | None = None,
        one_by_one: bool = False,
        whole_pages: bool = False,
        page_by_page: bool = False,
    ) -> None:
        self.stream = self._name = stream
        self._place, self._names = place, names
        self._records_paths = records_paths or {}
        self._one_by_one, self._whole_pages, self._page_by_page = one_by_one, whole_pages, page_by_page
        self._rows_seen = 0
        self._first_step = _FIRST_STEP_ROWS
        self._page_bytes = 0  # of pages that were put there since the last ``fill`` began
        self._until = 0.0
        self._is_enough = False

    def begin(
        self,
        start: Callable[[], Any],
        buffer: Buffer,
        context: contextvars.Context,
        *,
        ended: Callable[[], None],
        keep: Callable[[str, Mapping[str, Any]], bool] | None,
        take_files: Callable[[str | None, Any], Any],
        passed: Callable[[str | None, Any], None],
    ) -> None:
        """Begin a call; user code runs with the first ``fill``.

        Args:
            start: makes the call, with its parameters filled in.
            buffer: takes what it gives.
            context: in which it runs.
            ended: called in the context once the function has come to its end.
            keep: is shown each row with its stream, as it comes; True: it is enough for now. With it, or with
                ``names``, pages become rows.
            take_files: what becomes of files that it yields for a stream: something that goes on as it is, or pages.
            passed: told of such files once they stand in the buffer.
        """
        self._start, self._context, self._ended, self._keep = start, context, ended, keep
        self._take_files, self._passed = take_files, passed
        self._looks = self._names is not None or keep is not None
        self._buffer = buffer
        self._levels: list[_Level] | None = None

    def fill(self, limit: int) -> bool:
        """Run user code until ``limit`` rows more were gathered, or the function has ended.

        Returns False once it has ended. Whatever the user's code raises comes through.
        """
        self._page = self._buffer.of(self._name)
        self._until = time.monotonic() + _MOMENT_SECONDS
        self._is_enough = False
        if self._levels is None:
            self._open()
        levels = self._levels or []
        begun = self._buffer.count()
        self._page_bytes = 0
        left = limit
        while levels:
            level = levels[-1]
            if level.ready:
                goes_on = self._gather_list(level, None if self._whole_pages else left)
            else:
                goes_on = self._gather(level, left) if level.rows else self._step(level)
            if not goes_on:
                levels.pop()
                if not levels:
                    break
            left = limit - (self._buffer.count() - begun)
            if left <= 0 or self._page_bytes >= _FULL_BYTES or (left < limit and self._is_time()):
                return True
        self._context.run(self._ended)
        return False

    def _is_time(self) -> bool:
        return self._is_enough or (self._one_by_one and time.monotonic() >= self._until)

    def _open(self) -> None:
        self._levels = []
        result = self._context.run(self._start)
        if result is not None:
            self._push(result, None)

    def _gather_list(self, level: _Level, limit: int | None) -> bool:
        """Gather rows that are there: up to the limit, or all as they are, and what comes next waits until they are
        written. False once the level has ended."""
        rows = Rows(islice(level.iterator, limit))
        if rows:
            self._buffer.several(len(rows))
            self._page.append(rows if level.stream is None else (level.stream, rows))
        some = rows[:: len(rows) // 4 + 1]
        size = sum(map(size_of_row, some)) * len(rows) // max(1, len(some))
        if limit is None or size >= _BIG_BYTES:
            self._page_bytes += max(size, _FULL_BYTES)
        return len(rows) == limit

    def _gather(self, level: _Level, limit: int) -> bool:
        """Gather rows, up to the limit; False once the level has ended."""
        source: Iterator[Any] = islice(level.iterator, limit)
        if level.stream is not None:
            source = zip(repeat(level.stream), source, strict=False)
        if self._one_by_one:
            source = self._for_a_moment(source)
        before = self._given_by(level)
        while limit > 0:
            step = min(limit, level.step)
            self._context.run(self._page.extend, islice(source, step))
            given = self._given_by(level)
            if given - before < step:
                return self._goes_on_behind(level) if not self._is_enough or level.paused else True
            if self._buffer.is_cutting or self._is_time():
                return True
            before, limit = given, limit - step
            level.step = min(level.step * 2, _STEP_ROWS)
            if not self._looks:
                if self._ends_with_much(level, step):
                    self._first_step = _FIRST_STEP_ROWS
                    return True
                self._first_step = _STEP_ROWS
        return True

    def _given_by(self, level: _Level) -> int:
        """How many rows it has given, or all have: both tell how many have come since."""
        return level.seen if level.seen is not None else self._buffer.count()

    def _for_a_moment(self, rows: Iterator[Any]) -> Iterator[Any]:
        """Rows that may trickle, until they took a moment: then user code does not go on."""
        for row in rows:
            yield row
            if time.monotonic() >= self._until:
                self._is_enough = True
                return

    def _goes_on_behind(self, level: _Level) -> bool:
        """No more rows of a level for now: it has ended (False), or there is enough, or something that is no row stands
        among the rows; that is gone into, and then the rows go on."""
        if level.odd is _NONE and not level.paused:
            return False
        item, level.odd, level.paused = level.odd, _NONE, False
        self._look_at(level)
        if item is not _NONE:
            self._push(item, level.stream)
        return True

    def _look_at(self, level: _Level) -> None:
        level.seen = level.seen or 0
        level.iterator = self._seen(level)

    def _seen(self, level: _Level) -> Iterator[Any]:
        """The rows of a level up to something that is none, each looked at as it comes."""
        name, keep = level.stream or self._name, self._keep
        size, seen, before = 0, level.seen or 0, self._rows_seen
        for item in level.source:
            stream, row = name, item
            if type(item) is not dict:
                if not is_row(item) or (level.stream is not None and isinstance(item, tuple)):
                    level.odd = item
                    return
                if isinstance(item, tuple):
                    stream, row = item
                    self._check_name(stream)
            if (before + seen) % _LOOK_ROWS == 0:
                size += size_of_row(row)
            level.seen = seen = seen + 1
            if (keep is not None and keep(stream, row)) or size * _LOOK_ROWS >= _BIG_BYTES:
                self._is_enough = level.paused = True
                yield item
                return
            yield item
        self._rows_seen = before + seen

    def _check_name(self, stream: str) -> None:
        if self._names is not None and stream not in self._names:
            raise not_emitted(stream, self._name, self._place)

    def _ends_with_much(self, level: _Level, count: int) -> bool:
        """Whether what was gathered last is as much as a page should hold: rows may become big all at once, which
        ``PageSize`` sees once they are out. Pages of other kinds are taken one by one from here on."""
        items = self._buffer.last(count)
        kinds = set(map(type, items))
        if kinds == {tuple}:
            items = [item[1] if len(item) == 2 else item for item in items]
            kinds = set(map(type, items))
        if kinds == {dict}:
            size = size_of_row(items[-1]) * count
        else:
            size = sum(map(size_of_item, items))
            if any(type(item) is not dict and not (type(item) is bytes and is_line(item)) for item in items):
                level.rows, level.step = False, 1
        if size < _BIG_BYTES and level.rows:
            return False
        self._page_bytes += max(size, _FULL_BYTES if size >= _BIG_BYTES else 0)
        return True

    def _step(self, level: _Level) -> bool:
        """Take one item; False once the level has ended."""
        try:
            item = self._context.run(next, level.iterator)
        except StopIteration:
            return self._goes_on_behind(level)
        row = type(item) is dict or is_row(item)
        small = type(item) is bytes and is_line(item)
        if level.rows is None:
            level.rows = row or small
        if row:
            size = size_of_row(item) if type(item) is dict else size_of_item(item)
            if size < _SMALL_BYTES:
                level.step = self._first_step
            self._page_bytes += size
            self._page.append(item if level.stream is None else (level.stream, item))
        else:
            self._push(item, level.stream)
        return True

    def _push(self, item: Any, stream: str | None) -> None:
        """Go down into something that gives rows; a row goes into the page."""
        if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str) and stream is None:
            stream, item = item
            self._check_name(stream)
        if type(item) is GeneratorType:
            self._go_down(item, stream, ready=False)
            return
        if item is None and self._looks and not self._levels:
            return
        if misused(item):
            raise self.refuse(item if stream is None else (stream, item))
        if isinstance(item, Mapping):
            self._is_enough = self._keep is not None and self._keep(stream or self._name, item)
            self._page.append(item if stream is None else (stream, item))
            return
        if is_files(item):
            item = self._context.run(iter, item) if self._looks else self._context.run(self._take_files, stream, item)
        page = as_page(item)
        if page is not None:
            if self._levels:
                tell_giver(self._levels[-1].source, item)
            item = self._rows_of(page, stream or self._name) if self._looks else batches(page)
            if item is None:
                size = size_bytes(page)
                small = size < _BIG_PAGE_BYTES and not self._page_by_page and not is_passed(page)
                self._page_bytes += size if small else _FULL_BYTES
                self._page.append(page if stream is None else (stream, page))
                if is_passed(page):
                    self._context.run(self._passed, stream, page)
                return
        if item is None or isinstance(item, str) or not hasattr(item, "__iter__"):
            raise self.refuse(item if stream is None else (stream, item))
        self._go_down(item, stream, ready=isinstance(item, list) and set(map(type, item)) == {dict})

    def _go_down(self, item: Any, stream: str | None, *, ready: bool) -> None:
        assert self._levels is not None
        level = _Level(item if type(item) is GeneratorType else self._context.run(iter, item), stream, ready=ready)
        if self._looks and (self._keep is not None or not ready):
            level.ready, level.rows, level.step = False, True, _STEP_ROWS
            self._look_at(level)
        self._levels.append(level)

    def _rows_of(self, page: Any, stream: str) -> Iterator[dict[str, Any]]:
        """The rows of a page; those before the place where it breaks come before the error."""
        try:
            yield from rows_of(page, self._records_paths.get(stream, ()))
        except PageError as error:
            yield from error.rows
            raise StreamError(self._name, f"stream '{self._name}' ({self._place}): {error}.") from None

    def refuse(self, item: Any) -> StreamError:
        """The error for something that is neither a row nor a page, as it is or as ``split`` gave it."""
        return refused(item, self._name, self._place)

    def close(self) -> None:
        """End the user's generators, innermost first, in their context; their ``finally`` blocks run.

        An error from there comes through, after all of them were closed.
        """
        levels, self._levels = self._levels or [], []
        with contextlib.ExitStack() as stack:
            for level in levels:
                stack.callback(self._close_level, level)

    def _close_level(self, level: _Level) -> None:
        close = getattr(level.source, "close", None)
        if close is not None:
            self._context.run(close)


def refused(item: Any, stream: str, place: str) -> StreamError:
    """The error for something that is neither a row nor a page."""
    if isinstance(item, Strange):
        item = item.item
    cure = "yield rows (dicts), lists or iterators of rows, bytes of JSON, Arrow tables, or (stream, rows)."
    inner = item[1] if isinstance(item, tuple) and len(item) == 2 else item
    if misused(inner):
        cure = misused(inner) or cure
    elif is_files(inner):
        cure = "a function that has yielded a row first yields batch_files by 'yield from' (they are read then)."
    elif isinstance(inner, MAY_CHANGE):
        cure = "a function that has yielded a row first yields bytes(...): what is in a buffer may change."
    elif hasattr(inner, "__iter__") and not isinstance(inner, str | bytes | tuple):
        # Rows are gathered ahead, so that it would be read too late: after the function has gone on.
        cure = "a function that has yielded a row first yields no iterators: write 'yield from', or list(...)."
    return StreamError(stream, f"stream '{stream}' ({place}): yielded {describe(item)}; {cure}")


def not_emitted(name: str, stream: str, place: str) -> StreamError:
    """The error for rows of a stream that a function does not emit."""
    return StreamError(
        stream,
        f"stream '{stream}' ({place}): yielded rows of '{name}', which it does not emit. "
        f"Declare it: tap.stream({name!r}, emitted_by={stream!r}, ...)",
    )
