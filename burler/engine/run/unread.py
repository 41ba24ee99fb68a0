"""What a state says of a stream and burler does not read: no stream may begin anew for it in silence."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from burler.engine.catalog.plan import PlannedRun
from burler.singer import state as st

_OURS = {st.VERSION, *st.RESERVED}
_SDK = "replication_key_value"
_SHOWN = 3


def unread(plan: Iterable[PlannedRun], own: Container[str], state: Mapping[str, Any]) -> Iterator[str]:
    """A sentence for each stream with a bookmark of which the state holds something, but not under a name that burler
    reads: a state of the Singer SDK, or of a tap that named its bookmark otherwise. One for a state that
    knows no stream of the tap.

    Args:
        own: the names of all streams that the tap has.
    """
    there = list(state.get("bookmarks") or ())
    if there and not any(name in own for name in there):
        yield (
            f"the state holds {_some(there)} and no stream of this tap: every stream begins anew. Is it the state of "
            "another tap?"
        )
    for stream in (stream for planned in plan for stream in planned.streams):
        key = stream.bookmark_key
        entry = st.entry_of(state, stream.tap_stream_id, None)
        strange = sorted(set(entry) - _OURS)
        if key is None or key in entry or not strange or entry.keys() & {st.PARTITIONS, st.POSITION}:
            continue
        yield (
            f"stream '{stream.tap_stream_id}': the state holds {_some(strange)} of it and no '{key}', so the stream "
            "begins anew."
            + (
                " The Singer SDK writes such states; its page in the docs converts them."
                if _SDK in entry
                else f" If one of these is its bookmark, name it '{key}' in the state."
            )
        )


def _some(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
