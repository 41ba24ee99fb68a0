"""Where a stream's, or a partition's, values stand in a state: plain functions on the state's dict.

``{"bookmarks": {"tickets": {"updated_at": ..., "partitions": {"{\\"account\\":\\"a\\"}": {"updated_at": ...}}}}}``
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from burler.singer import state as st

PARTITIONS, POSITION, COVERS, FULL = "partitions", "stream_state", "covers", "full_table"
SOURCES = "source_state"

State = dict[str, Any]


def partitions_of(state: Mapping[str, Any], stream: str) -> dict[str, Any]:
    """The entries of a stream's partitions, by their keys; read only."""
    found = ((state.get("bookmarks") or {}).get(stream) or {}).get(PARTITIONS)
    return found if isinstance(found, dict) else {}


def entry_of(state: Mapping[str, Any], stream: str, partition: str | None) -> dict[str, Any]:
    """The entry of a stream or of one of its partitions, read only; empty if there is none."""
    if partition is None:
        return (state.get("bookmarks") or {}).get(stream) or {}
    found = partitions_of(state, stream).get(partition)
    return found if isinstance(found, dict) else {}


def covers_of(entry: Mapping[str, Any], otherwise: str) -> set[str]:
    """The streams that an entry's bookmark is true of; ``otherwise`` alone where it does not say."""
    covers = entry.get(COVERS)
    return {one for one in covers if isinstance(one, str)} if isinstance(covers, list) else {otherwise}


def value_of(state: Mapping[str, Any], stream: str, key: str | None, partition: str | None = None) -> Any:
    """One value of an entry; None if there is none."""
    return entry_of(state, stream, partition).get(key) if key is not None else None


def put(state: State, stream: str, key: str, value: Any, partition: str | None = None) -> None:
    """Set one value in place; None takes the key away, and an entry that is empty then."""
    if partition is None:
        st.set_bookmark(state, stream, key, value)
        if value is None and not state.get("bookmarks"):
            state.pop("bookmarks", None)
        return
    if value is None:
        entry = entry_of(state, stream, partition)
        if key in entry:
            del entry[key]
        if not entry:
            drop(state, stream, partition)
        return
    bookmarks = state.setdefault("bookmarks", {})
    if not isinstance(bookmarks.get(stream), dict):
        bookmarks[stream] = {}
    entries = bookmarks[stream].get(PARTITIONS)
    if not isinstance(entries, dict):
        entries = bookmarks[stream][PARTITIONS] = {}
    if not isinstance(entries.get(partition), dict):
        entries[partition] = {}
    entries[partition][key] = value


def drop(state: State, stream: str, partition: str) -> None:
    """Take a partition's entry away, and what is empty without it."""
    entries = partitions_of(state, stream)
    if partition in entries:
        del entries[partition]
    if not entries:
        put(state, stream, PARTITIONS, None)
