"""The bookmarks of a unit: what follows them, and what of it goes into the state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from burler.declare.strategies import Manual
from burler.pipeline.bookmark import BookmarkTracker
from burler.runtime import entries, sources
from burler.runtime.interrupted import save_full_table
from burler.runtime.start import Start

if TYPE_CHECKING:
    from burler.runtime.stream import SyncRun
    from burler.runtime.unit import Unit


@dataclass(frozen=True, slots=True)
class Tracked:
    """What follows one stream's bookmark, and the key under which that stands."""

    key: str
    tracker: BookmarkTracker


def trackers_of(sync: SyncRun, start: Start) -> dict[str, Tracked]:
    """One for each stream of the line that keeps a bookmark, or a place where its full table goes on. Also for a parent
    that runs unseen: its own rows say how far its substreams have come."""
    line = sync.line
    names = list(line.planned)
    if line.root not in names and line.has_children:
        names.insert(0, line.root)
    found: dict[str, Tracked] = {}
    for name in names:
        tracked = _tracked(sync, start, name)
        if tracked is not None:
            found[name] = tracked
    return found


def _tracked(sync: SyncRun, start: Start, name: str) -> Tracked | None:
    planned, spec = sync.line.planned.get(name), sync.line.spec(name)
    if planned is None:
        if spec.replication_key is None or spec.bookmark_key != spec.replication_key:
            return None
        key, order, initial = spec.replication_key, spec.order, start.saved(name, spec.replication_key)
    elif planned.resume_key is not None:
        key, order, initial = planned.resume_key, "asc", start.resume_value()
    elif planned.bookmark_key is not None:
        key, order, initial = planned.bookmark_key, planned.order, start.saved(name, planned.bookmark_key)
    else:
        return None
    tracker = BookmarkTracker(
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
    return Tracked(key, tracker)


def save(unit: Unit, state: dict[str, Any]) -> None:
    """Put into a state what is safe to say of a unit now."""
    line, key = unit.line, unit.key
    for name, tracker in unit.trackers.items():
        planned, safe = line.planned.get(name), msgspec.to_builtins(tracker.safe)
        if planned is not None and planned.resume_key is not None:
            save_full_table(unit, state, safe)
        elif planned is not None or key is not None:
            entries.put(state, name, unit.keys[name], safe, key)
    for name, safe in unit.safe_states.items():
        if name != line.root or unit.coverage is None or unit.coverage.saves_position:
            copied = msgspec.json.decode(msgspec.json.encode(safe)) if safe else None
            entries.put(state, name, entries.POSITION, copied, key)
    sources.save(unit, state)
    # It speaks of the bookmark that it is beside: where this run moves none, it stays.
    if key is not None and line.declares_children and line.root in unit.trackers:
        if not entries.entry_of(state, line.root, key):
            return
        covers = sorted(line.selected)
        entries.put(state, line.root, entries.COVERS, covers if covers != [line.root] else None, key)
