"""How many rows a worker takes at a time, whether a limit is reached, and whether a strategy asks for a STATE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burler.declare.strategies import EveryN, Since
from burler.errors import StreamError
from burler.logs import short

if TYPE_CHECKING:
    from burler.engine.run.stream import SyncRun


def full(sync: SyncRun) -> bool:
    """Whether a limit on rows is reached: every selected stream has its rows, or the function's own one has and
    a further row of it came, so that what belongs to its last row and stands behind it is here as well. A row of
    one stream may come with any number of another's: no more than a thousand are read for each that is wanted."""
    limit, own = sync.engine.limit, sync.writers.get(sync.name)
    if limit is None:
        return False
    writers = sync.writers.values()
    if not any(writer.room for writer in writers) or sum(writer.beyond for writer in writers) >= 1000 * limit:
        return True
    return own is not None and not own.room and own.beyond > 0


def limit_of(sync: SyncRun, page_rows: int) -> int:
    """Rows to pull for the next page of a worker that takes ``page_rows`` at a time."""
    strategy = sync.spec.strategy
    if isinstance(strategy, EveryN):
        # A STATE whose line is big may be put off: pages go on being cut where one might be due.
        left = strategy.count - sync.since_rows % strategy.count
        if len(sync.line.names) > 1:
            # Where rows of several streams come mixed, the exact count is not worth ever smaller pages.
            left = max(left, strategy.count // 10)
        page_rows = max(1, min(page_rows, left))
    if sync.pushes and sync.has_hooks:
        page_rows = 1  # hooks run where the function runs: what waits for a page would wait for hours
    return max(1, min(page_rows, max(writer.room for writer in sync.writers.values())))


def is_due(sync: SyncRun, since: Since) -> bool:
    """Whether the stream's strategy asks for a STATE. One of the author's that fails ends the stream."""
    try:
        return bool(sync.spec.strategy.is_due(since))
    except (Exception, SystemExit) as error:
        where = f"stream '{sync.name}' ({sync.spec.place})"
        fact = f"{where}: its bookmark strategy {sync.spec.strategy!r:.60} failed: {short(error)}"
        sync.failures.end(StreamError(sync.name, fact))
        return False
