"""Read, change, replace if nobody else did in between: how every shared JSON file of a lake changes."""

from __future__ import annotations

from collections.abc import Callable

from burler.clock import Clock
from burler.errors import StorageError
from burler.storage.base import Conflict, OutcomeUnknown, Store

_GIVE_UP_SECONDS = 60.0
_LONGEST_WAIT_SECONDS = 0.5
_MOST_DOUBLINGS = 8

Change = Callable[[bytes | None, bool], bytes | None]
"""(content or None when there is no file, whether an earlier try may have succeeded) -> new content, or
None when there is nothing (more) to write."""


def swap(store: Store, path: str, change: Change, *, clock: Clock | None = None) -> None:
    """Change a file by compare-and-swap, again and again with jitter until no other writer was in between.

    A store may report a conflict with one's own write whose reply was lost: ``change`` is told
    from the second try on, and can look for its own mark.

    Args:
        clock: time and chance; the system's by default.

    Raises:
        StorageError: the store fails, or others have been writing for a minute without a gap.
    """
    clock = clock or Clock()
    give_up, attempt = clock.monotonic() + _GIVE_UP_SECONDS, 0
    while True:
        blob = store.read(path)
        data = change(blob.data if blob else None, attempt > 0)
        if data is None:
            return
        try:
            if blob is None:
                store.create(path, data)
            else:
                store.replace(path, data, tag=blob.tag)
            return
        except (Conflict, FileExistsError, OutcomeUnknown):
            attempt += 1
        if clock.monotonic() > give_up:
            raise StorageError(f"{store.locate(path)}: others write it all the time. Run again with fewer writers.")
        clock.sleep(clock.uniform(0, min(_LONGEST_WAIT_SECONDS, 0.005 * 2 ** min(attempt, _MOST_DOUBLINGS))))
