"""State: pure functions on a plain dict of the shape that specs 11.27 fixes.

``{"bookmarks": {"commits": {"committed_at": "...", "version": 17..., "stream_state": {...}}},
"currently_syncing": "commits"}``; absent keys are left out. Keys that burler does not know are carried
along untouched, so that a state of another tap version or tool survives a run.
"""

from __future__ import annotations

import copy
from typing import Any

import msgspec

from burler.errors import StateError

State = dict[str, Any]


def check_state(value: Any, *, source: str = "state") -> State:
    """A deep copy of a state, checked.

    Raises:
        StateError: the state, its ``bookmarks`` or one stream's entry is not an object.
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise StateError(f"{source}: a state is a JSON object, not {_kind(value)}. Give the last STATE's value.")
    bookmarks = value.get("bookmarks")
    if bookmarks is not None and not isinstance(bookmarks, dict):
        raise StateError(f"{source}: 'bookmarks' must be an object of streams, not {_kind(bookmarks)}.")
    for stream, entry in (bookmarks or {}).items():
        if entry is not None and not isinstance(entry, dict):
            raise StateError(f"{source}: bookmarks.{stream} must be an object, not {_kind(entry)}.")
    return copy.deepcopy(value)


def _kind(value: Any) -> str:
    kinds = {list: "a list", str: "text", bool: "a boolean", int: "a number", float: "a number"}
    return kinds.get(type(value), "null" if value is None else type(value).__name__)


def parse_state(content: bytes, *, source: str) -> State:
    """A state from a file's bytes: a state object, a STATE message, or lines of STATE messages (last counts).

    Raises:
        StateError: none of the three. An empty file too: it is what a run that failed early leaves
            behind, and to take it for "no state" would silently read everything again.
    """
    if not content.strip():
        raise StateError(f"{source}: the file is empty. Leave --state out to start from the beginning.")
    try:
        value = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        value = _last_state_line(content, source)
    if isinstance(value, dict) and str(value.get("type", "")).upper() == "STATE" and "value" in value:
        value = value["value"]
    return check_state(value, source=source)


def _last_state_line(content: bytes, source: str) -> Any:
    lines = [line for line in content.splitlines() if line.strip()]
    value: Any = None
    for number, line in enumerate(lines, 1):
        try:
            value = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if number == len(lines) and number > 1:
                break  # a torn last line of a log of STATE lines: the one before it counts
            raise StateError(f"{source}: line {number} is not JSON ({error}).") from None
    return value


def stream_entry(state: State, stream: str) -> dict[str, Any]:
    """A stream's entry under ``bookmarks``, read only; empty if there is none."""
    return (state.get("bookmarks") or {}).get(stream) or {}


def get_bookmark(state: State, stream: str, key: str, default: Any = None) -> Any:
    """One value of a stream's entry."""
    value = stream_entry(state, stream).get(key)
    return default if value is None else value


def set_bookmark(state: State, stream: str, key: str, value: Any) -> None:
    """Set one value of a stream's entry in place; None takes the key away."""
    bookmarks = state.get("bookmarks")
    if not isinstance(bookmarks, dict):
        bookmarks = state["bookmarks"] = {}
    entry = bookmarks.get(stream)
    if not isinstance(entry, dict):
        entry = bookmarks[stream] = {}
    if value is None:
        entry.pop(key, None)
        if not entry:
            del bookmarks[stream]
        return
    entry[key] = value


def get_version(state: State, stream: str) -> int | None:
    """The version of a full table that was last activated; both spellings are read (specs 8)."""
    version = stream_entry(state, stream).get("version")
    if version is None:
        version = (state.get("activate_versions") or {}).get(stream)
    return version if isinstance(version, int) and not isinstance(version, bool) else None


def get_currently_syncing(state: State) -> str | None:
    """The stream that the last run was in when it ended."""
    value = state.get("currently_syncing")
    return value if isinstance(value, str) else None


def set_currently_syncing(state: State, stream: str | None) -> None:
    """Set in place; None takes the key away."""
    if stream is None:
        state.pop("currently_syncing", None)
    else:
        state["currently_syncing"] = stream
