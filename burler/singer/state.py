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

_MESSAGES = ("STATE", "SCHEMA", "RECORD", "BATCH", "ACTIVATE_VERSION")


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
        own = (entry or {}).get("stream_state")
        if own is not None and not isinstance(own, dict):
            raise StateError(f"{source}: bookmarks.{stream}.stream_state must be an object, not {_kind(own)}.")
    return copy.deepcopy(value)


def _kind(value: Any) -> str:
    kinds = {list: "a list", str: "text", bool: "a boolean", int: "a number", float: "a number"}
    return kinds.get(type(value), "null" if value is None else type(value).__name__)


def parse_state(content: bytes, *, source: str) -> State:
    """A state from a file's bytes: a state object, a STATE message, or lines of either (the last counts).

    Messages of other types among the lines are passed over: the file may hold all that a tap printed.

    Raises:
        StateError: none of the three. An empty file too: it is what a run that failed early leaves
            behind, and to take it for "no state" would silently read everything again.
    """
    content = content.removeprefix(b"\xef\xbb\xbf")
    if not content.strip():
        raise StateError(f"{source}: the file is empty. Leave --state out to start from the beginning.")
    try:
        values = [msgspec.json.decode(content)]
    except (msgspec.DecodeError, UnicodeDecodeError):
        values = _lines(content, source)
    states = [value["value"] if _is_message(value) and "value" in value else value for value in values]
    states = [state for state in states if not _is_message(state)]
    if not states:
        raise StateError(f"{source}: holds messages, and no STATE among them.")
    if states[-1] is None:
        raise StateError(f"{source}: the state is null. Leave --state out to start from the beginning.")
    return check_state(states[-1], source=source)


def _is_message(value: Any) -> bool:
    """Whether a JSON value is a Singer message and not a state. Only STATE has a ``value``."""
    return isinstance(value, dict) and str(value.get("type")).upper() in _MESSAGES


def _lines(content: bytes, source: str) -> list[Any]:
    lines = [line for line in content.splitlines() if line.strip()]
    values: list[Any] = []
    for number, line in enumerate(lines, 1):
        try:
            values.append(msgspec.json.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if number == len(lines) and number > 1:
                break  # a torn last line of a log of STATE lines: the one before it counts
            raise StateError(f"{source}: line {number} is not JSON ({error}).") from None
    return values


def stream_entry(state: State, stream: str) -> dict[str, Any]:
    """A stream's entry under ``bookmarks``, read only; empty if there is none."""
    return (state.get("bookmarks") or {}).get(stream) or {}


def get_bookmark(state: State, stream: str, key: str, default: Any = None) -> Any:
    """One value of a stream's entry."""
    value = stream_entry(state, stream).get(key)
    return default if value is None else value


def set_bookmark(state: State, stream: str, key: str, value: Any) -> None:
    """Set one value of a stream's entry in place; None takes the key away."""
    if value is None:
        entry = stream_entry(state, stream)
        if key in entry:
            del entry[key]
            if not entry:
                del state["bookmarks"][stream]
        return
    bookmarks = state.get("bookmarks")
    if not isinstance(bookmarks, dict):
        bookmarks = state["bookmarks"] = {}
    if not isinstance(bookmarks.get(stream), dict):
        bookmarks[stream] = {}
    bookmarks[stream][key] = value


_LARGEST_VERSION = 2**53
"""Versions are milliseconds since 1970; what lies beyond is a broken state, and no number that every reader knows."""


def get_version(state: State, stream: str) -> int | None:
    """The version of a full table that was last activated; both spellings are read (specs 8)."""
    version = stream_entry(state, stream).get("version")
    if version is None:
        others = state.get("activate_versions")
        version = others.get(stream) if isinstance(others, dict) else None
    known = isinstance(version, int) and not isinstance(version, bool) and 0 < version < _LARGEST_VERSION
    return version if known else None


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
