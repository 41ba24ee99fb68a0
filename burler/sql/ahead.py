"""The next page is fetched while the last one is shaped and written: the driver runs in C beside the encoder."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Generator
from typing import Any, TypeVar

T = TypeVar("T")

_STEP_SECONDS = 0.5
_PATIENCE = 20  # steps that a cancelled query is given to end
_END: Any = object()


class _Failed:
    """An error of the fetching thread, to be raised where pages are asked for."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


def fetch_ahead(
    source: Generator[T, None, None], cancel: Callable[[], None], *, depth: int = 2
) -> Generator[T, None, None]:
    """The items of ``source``, which a thread of its own goes through, ``depth`` of them ahead.

    Whoever waits for an item can be stopped by a signal, which a driver's own call can't. When the iterator is closed
    early, ``cancel`` is called until the thread has ended; it must be safe in any thread and at any time.

    Raises:
        Exception: what ``source`` raises, behind the items before it.
    """
    items: queue.Queue[Any] = queue.Queue(depth)
    stopped = threading.Event()
    thread = threading.Thread(target=_fetch, args=(source, items, stopped), name="burler-sql", daemon=True)
    thread.start()
    ended = False
    try:
        while True:
            item = _next(items, thread)
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


def _next(items: queue.Queue[Any], thread: threading.Thread) -> Any:
    """The next item, waited for in steps: in worker threads nothing else can wake who waits."""
    while True:
        try:
            return items.get(timeout=_STEP_SECONDS)
        except queue.Empty:
            if not thread.is_alive() and items.empty():
                return _Failed(RuntimeError("the thread that fetches pages has died"))


def _join(thread: threading.Thread, cancel: Callable[[], None] | None) -> None:
    """Wait for the thread; a cancelled query that does not end is left behind."""
    for _ in range(_PATIENCE):
        if cancel is not None and thread.is_alive():
            cancel()
        thread.join(_STEP_SECONDS)
        if not thread.is_alive():
            return
