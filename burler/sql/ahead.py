"""The next page is fetched while the last one is shaped and written: the driver runs in C beside the encoder."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator
from typing import Any, TypeVar

T = TypeVar("T")

_STEP_SECONDS = 0.5
_PATIENCE = 20  # steps that a cancelled query is given to end
_END: Any = object()


class _Failed:
    """An error of the fetching thread, to be raised where pages are asked for."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class NothingCame(Exception):
    """No item came for as long as one may take."""


class InHand:
    """What the fetching thread works with, so that another one can end that.

    Args:
        stop: ends what a link does, from any thread.
    """

    def __init__(self, stop: Callable[[Any], None]) -> None:
        self._stop = stop
        self._lock = threading.Lock()
        self._link: Any = None
        self.cancelled = False

    @contextlib.contextmanager
    def holding(self, link: Any) -> Iterator[None]:
        """A block in which a link is used; behind it the link may be another's."""
        with self._lock:
            self._link = link
        try:
            yield
        finally:
            with self._lock:
                self._link = None

    def cancel(self) -> None:
        """End what runs."""
        with self._lock:
            if self._link is not None:
                self.cancelled = True
                with contextlib.suppress(Exception):  # it has just ended, or knows no such thing
                    self._stop(self._link)


def fetch_ahead(
    source: Generator[T, None, None],
    cancel: Callable[[], None],
    *,
    patience_seconds: float | None = None,
    monotonic: Callable[[], float] = time.monotonic,
) -> Generator[T, None, None]:
    """The items of ``source``, which a thread of its own goes through: one waits, and the next one is fetched.

    Whoever waits for an item can be stopped by a signal, which a driver's own call can't. When the iterator is closed
    early, ``cancel`` is called until the thread has ended; it must be safe in any thread and at any time. Where the
    server says nothing any more, both threads are left behind after some seconds.

    Args:
        patience_seconds: how long to wait for one item; None: for ever. The time between two of them, which is that of
            whoever takes them, is not in it.

    Raises:
        NothingCame: see ``patience_seconds``.
        Exception: what ``source`` raises, behind the items before it.
    """
    items: queue.Queue[Any] = queue.Queue(1)
    stopped = threading.Event()
    thread = threading.Thread(target=_fetch, args=(source, items, stopped), name="burler-sql", daemon=True)
    thread.start()
    ended = False
    try:
        while True:
            item = _next(items, thread, patience_seconds, monotonic)
            if item is _END or isinstance(item, _Failed):
                ended = True
            if item is _END:
                return
            if isinstance(item, _Failed):
                raise item.error
            yield item
    finally:
        stopped.set()
        _join(thread, None if ended else cancel)


def _fetch(source: Generator[Any, None, None], items: queue.Queue[Any], stopped: threading.Event) -> None:
    """What the thread does: all items, then the end or an error."""
    try:
        with contextlib.closing(source):
            for item in source:
                if not _put(item, items, stopped):
                    return
        _put(_END, items, stopped)
    except BaseException as error:
        _put(_Failed(error), items, stopped)


def _put(item: Any, items: queue.Queue[Any], stopped: threading.Event) -> bool:
    """False if nobody wants items any more."""
    while not stopped.is_set():
        try:
            items.put(item, timeout=_STEP_SECONDS)
            return True
        except queue.Full:
            continue
    return False


def _next(
    items: queue.Queue[Any], thread: threading.Thread, patience_seconds: float | None, monotonic: Callable[[], float]
) -> Any:
    """The next item, waited for in steps: in worker threads nothing else can wake who waits."""
    began = monotonic()
    while True:
        step = _STEP_SECONDS
        if patience_seconds is not None:
            step = max(0.001, min(step, began + patience_seconds - monotonic()))
        try:
            return items.get(timeout=step)
        except queue.Empty:
            if patience_seconds is not None and monotonic() - began >= patience_seconds:
                raise NothingCame from None
            if not thread.is_alive() and items.empty():
                return _Failed(RuntimeError("the thread that fetches pages has died"))


def _join(thread: threading.Thread, cancel: Callable[[], None] | None) -> None:
    """Wait for the thread; a cancelled query that does not end is left behind. To cancel is to ask the server over a
    connection of its own, and that may hang as well."""
    asking: threading.Thread | None = None
    for _ in range(_PATIENCE):
        if cancel is not None and thread.is_alive() and (asking is None or not asking.is_alive()):
            asking = threading.Thread(target=cancel, name="burler-sql-cancel", daemon=True)
            asking.start()
        thread.join(_STEP_SECONDS)
        if not thread.is_alive():
            return
