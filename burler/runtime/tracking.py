"""What follows the bookmarks of a task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burler.declare.strategies import Manual
from burler.engine.state.ledger import Start
from burler.pipeline.bookmark import BookmarkTracker

if TYPE_CHECKING:
    from burler.runtime.stream import SyncRun


def trackers_of(sync: SyncRun, start: Start) -> dict[str, BookmarkTracker]:
    """One for each stream of the line that keeps a bookmark, or a place where its full table goes on. Also for a parent
    that runs unseen: its own rows say how far its substreams have come."""
    line = sync.line
    names = list(line.planned)
    if line.root not in names and line.has_children:
        names.insert(0, line.root)
    found = {name: _tracker(sync, start, name) for name in names}
    return {name: tracker for name, tracker in found.items() if tracker is not None}


def _tracker(sync: SyncRun, start: Start, name: str) -> BookmarkTracker | None:
    planned, spec, key = sync.line.planned.get(name), sync.line.spec(name), sync.line.family.keys[name]
    order, initial = spec.order, None
    if planned is None and (spec.replication_key is None or spec.bookmark_key != spec.replication_key):
        return None
    if planned is not None and planned.resume_key is not None:
        key, order, initial = planned.resume_key, "asc", start.resume_value
    elif key is not None:
        order, initial = order if planned is None else planned.order, start.saved(name)
    if key is None:
        return None
    return BookmarkTracker(
        name,
        key,
        initial=initial,
        sorted_rows=order == "asc",
        exclusive=spec.resume == "exclusive",
        on_unsorted=spec.on_unsorted,
        manual=isinstance(spec.strategy, Manual),
        signpost=sync.began if spec.signpost else None,
        textual=sync.line.textual(name),
    )
