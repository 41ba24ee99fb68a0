"""Pull: the only place that runs user code, a page at a time.

The user's iterator is driven from C: ``page.extend(islice(iterator, n))`` inside a private copy of the
context (a generator has no context of its own), one context entry a page. What was yielded so
far is visible in the page while the generator blocks, so that a timer may take it, and an exception in
the generator leaves there exactly the rows yielded before it.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from itertools import islice, repeat
from typing import Any

from burler.context import StreamRun, bind
from burler.errors import StreamError
from burler.pages import as_page, batches, is_files, is_line, is_passed, misused, size_bytes
from burler.pipeline.describing import describe
from burler.pipeline.markers import Marker
from burler.pipeline.yielded import MAY_CHANGE, Item, Strange, is_row, size_of_item, size_of_row, tell_giver

_STEP_ROWS = 64  # that are gathered without a look at them
_BIG_BYTES = 2 * 1024 * 1024
_BIG_PAGE_BYTES = 16 * 1024  # a page of this size is written before user code goes on
_MOMENT_SECONDS = 0.005
_FULL_BYTES = 256 * 1024  # of pages, after which user code waits until they are written


_CUT = Strange("what follows does not count")


class _Level:
    """One iterator on the way down: the function's own, or one that it yielded.

    ``rows`` is None until the first item decides: rows are gathered, anything else is taken one by
    one, since an iterator must be read to its end before the function that gave it goes on. ``ready``:
    it goes through a list of rows, which can be cut into pages without waiting.
    """

    __slots__ = ("iterator", "ready", "rows", "step", "stream")

    def __init__(self, iterator: Iterator[Any], stream: str | None, *, ready: bool = False) -> None:
        self.iterator = iterator
        self.stream = stream
        self.ready = ready
        self.rows: bool | None = ready or None
        self.step = _STEP_ROWS if ready else 1


class Pull:
    """Drives one sync function. ``start`` calls it with its parameters filled in.

    ``fill`` belongs to one thread; ``take`` may be called from another at any time.
    """

    def __init__(self, start: Callable[[], Any], run: StreamRun, *, place: str) -> None:
        self._start = start
        self._name = run.name
        self._place = place
        self._context = contextvars.copy_context()
        self._context.run(bind, run)
        self._levels: list[_Level] | None = None
        self._page: deque[Item] = deque()
        self._taken = 0
        self._until = 0.0
        self._more = 0  # rows in the page beyond one an item
        self._page_bytes = 0  # of pages that were put there since the last ``fill`` began
        self._take_lock = threading.Lock()
        self._cutting = self._is_cut = False
        self.take_files: Callable[[str | None, Any], Any] = lambda _stream, files: files
        """What becomes of files that user code yields for a stream: something that goes on as it is, or pages."""
        self.passed: Callable[[str | None, Any], None] = lambda _stream, _files: None
        """Told of such files once they stand in the page."""
        self.one_by_one = False
        """Whether rows may trickle: each fill then ends as soon as it took a moment, so that what the author keeps
        beside the rows is looked at."""
        self.whole_pages = False
        """Whether a list of rows is taken as one page, however long it is."""
        self.page_by_page = False
        """Whether each page of another kind is written before user code goes on: a STATE may be due behind it."""

    def fill(self, limit: int) -> bool:
        """Run user code until ``limit`` rows more were gathered, or the function has ended.

        Returns False once it has ended. Whatever the user's code raises comes through.
        """
        if self._levels is None:
            self._open()
        levels = self._levels or []
        begun = self._count()
        self._page_bytes = 0
        self._until = time.monotonic() + _MOMENT_SECONDS
        while levels:
            left = limit - (self._count() - begun)
            if left <= 0 or self._page_bytes >= _FULL_BYTES or (left < limit and self._took_a_moment()):
                return True
            level = levels[-1]
            try:
                if level.rows and level.ready and self.whole_pages:
                    self._gather_whole(level)
                elif level.rows:
                    self._gather(level, left)
                else:
                    self._step(level)
            except _Ended:
                levels.pop()
        return False

    def _took_a_moment(self) -> bool:
        return self.one_by_one and time.monotonic() >= self._until

    def _open(self) -> None:
        self._levels = []
        result = self._context.run(self._start)
        if result is not None:
            self._push(result, None)

    def _gather_whole(self, level: _Level) -> None:
        """A list, as it is; what comes next waits until it is written."""
        rows = list(level.iterator)
        if level.stream is None:
            self._page.extend(rows)
        elif rows:
            self._more += len(rows) - 1
            self._page.append((level.stream, rows))
        self._page_bytes += _FULL_BYTES
        raise _Ended

    def _gather(self, level: _Level, limit: int) -> None:
        source: Iterator[Any] = islice(level.iterator, limit)
        if level.stream is not None and level.ready:
            rows = list(source)
            if rows:
                self._more += len(rows) - 1
                self._page.append((level.stream, rows))
            if len(rows) < limit:
                raise _Ended
            return
        if level.stream is not None:
            source = zip(repeat(level.stream), source, strict=False)
        while limit > 0:
            step = 1 if self.one_by_one and not level.ready else min(limit, level.step)
            before = self._count()
            self._context.run(self._page.extend, islice(source, step))
            if self._count() - before < step:
                raise _Ended
            if self._cutting or self._took_a_moment():
                return
            limit -= step
            level.step = min(level.step * 2, _STEP_ROWS)
            if self._ends_with_much(level, step):
                return

    def _ends_with_much(self, level: _Level, count: int) -> bool:
        """Whether what was gathered last is as much as a page should hold: rows may become big all at once, which
        ``PageSize`` sees once they are out. Pages of other kinds are taken one by one from here on."""
        with self._take_lock:
            items = list(islice(reversed(self._page), count))  # fewer, if the timer has just taken some
        if set(map(type, items)) == {tuple}:
            items = [item[1] if len(item) == 2 else item for item in items]
        if set(map(type, items)) == {dict}:
            size = size_of_row(items[0]) * count
        else:
            items = [item for item in items if not isinstance(item, Marker)]
            size = sum(map(size_of_item, items))
            if any(type(item) is not dict and not (type(item) is bytes and is_line(item)) for item in items):
                level.rows, level.step = False, 1
        if size < _BIG_BYTES and level.rows:
            return False
        self._page_bytes += max(size, _FULL_BYTES if size >= _BIG_BYTES else 0)
        return True

    def _step(self, level: _Level) -> None:
        try:
            item = self._context.run(next, level.iterator)
        except StopIteration:
            raise _Ended from None
        row = is_row(item)
        small = type(item) is bytes and is_line(item)
        if level.rows is None:
            level.rows = row or small
        if row:
            self._page_bytes += size_of_item(item)
            self._page.append(item if level.stream is None else (level.stream, item))
        else:
            self._push(item, level.stream)

    def _push(self, item: Any, stream: str | None) -> None:
        """Go down into something that gives rows; a row goes into the page."""
        if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str) and stream is None:
            stream, item = item
        if misused(item):
            raise self.refuse(item if stream is None else (stream, item))
        if isinstance(item, Mapping):
            self._page.append(item if stream is None else (stream, item))
            return
        if is_files(item):
            item = self._context.run(self.take_files, stream, item)
        page = as_page(item)
        if page is not None:
            if self._levels:
                tell_giver(self._levels[-1].iterator, item)
            item = batches(page)
            if item is None:
                size = size_bytes(page)
                small = size < _BIG_PAGE_BYTES and not self.page_by_page and not is_passed(page)
                self._page_bytes += size if small else _FULL_BYTES
                self._page.append(page if stream is None else (stream, page))
                if is_passed(page):
                    self._context.run(self.passed, stream, page)
                return
        if item is None or isinstance(item, str) or not hasattr(item, "__iter__"):
            raise self.refuse(item if stream is None else (stream, item))
        assert self._levels is not None
        ready = isinstance(item, list) and set(map(type, item)) == {dict}
        self._levels.append(_Level(self._context.run(iter, item), stream, ready=ready))

    def refuse(self, item: Any) -> StreamError:
        """The error for something that is neither a row nor a page, as it is or as ``split`` gave it."""
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
        return StreamError(self._name, f"stream '{self._name}' ({self._place}): yielded {describe(item)}; {cure}")

    def _count(self) -> int:
        with self._take_lock:
            return len(self._page) + self._taken + self._more

    def __len__(self) -> int:
        return len(self._page)

    def put(self, item: Item) -> None:
        """Add a row or a marker from within user code; its place is behind all that was yielded before."""
        if isinstance(item, Marker):
            with self._take_lock:  # it counts for no row
                self._more -= 1
                self._page.append(item)
        else:
            self._page.append(item)

    def cut(self) -> None:
        """Nothing that user code yields from here on counts: Stop is being raised in it, and if it eats that and goes
        on, what it yields then stands behind a hole. Called in a signal handler: one append, no lock."""
        self._cutting = True
        self._page.append(_CUT)

    def take(self) -> list[Item]:
        """All items gathered so far, in order; they leave the page."""
        with self._take_lock:
            count = len(self._page)
            popleft = self._page.popleft
            items = [popleft() for _ in range(count)]
            self._taken += count
            if self._is_cut:
                return []
            if self._cutting:
                at = next((i for i, item in enumerate(items) if item is _CUT), None)
                if at is not None:
                    self._is_cut = True
                    items = items[:at]
        return items

    def close(self) -> None:
        """End the user's generators, innermost first, in their context; their ``finally`` blocks run.

        An error from there comes through, after all of them were closed.
        """
        levels, self._levels = self._levels or [], []
        with contextlib.ExitStack() as stack:
            for level in levels:
                stack.callback(self._close_level, level)

    def _close_level(self, level: _Level) -> None:
        close = getattr(level.iterator, "close", None)
        if close is not None:
            self._context.run(close)


class _Ended(Exception):
    """An iterator has ended."""
