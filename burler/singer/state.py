"""State: pure functions on a plain dict of one shape.

``{"bookmarks": {"commits": {"committed_at": "...", "version": 17..., "stream_state": {...}}},
"currently_syncing": "commits"}``; absent keys are left out. Keys that burler does not know are carried
along untouched, so that a state of another tap version or tool survives a run. Each partition of a stream has an entry
of its own: ``{"tickets": {"partitions": {"{\\"account\\":\\"a\\"}": {"updated_at": "..."}}}}``.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec

from burler.errors import StateError

State = dict[str, Any]
VERSION, POSITION, PARTITIONS, COVERS = "version", "stream_state", "partitions", "covers"
FULL_TABLE, PARENT_BOOKMARK, SOURCES = "full_table", "parent_bookmark", "source_state"
RESERVED = (PARTITIONS, POSITION, COVERS, FULL_TABLE, PARENT_BOOKMARK, SOURCES)
"""What burler keeps in a stream's entry beside its bookmark and version."""

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
        _check_partitions(entry or {}, stream, source)
    return copy.deepcopy(value)


def _check_partitions(entry: State, stream: str, source: str) -> None:
    partitions = entry.get("partitions")
    if partitions is not None and not isinstance(partitions, dict):
        raise StateError(f"{source}: bookmarks.{stream}.partitions must be an object, not {_kind(partitions)}.")
    for key, one in (partitions or {}).items():
        if one is not None and not isinstance(one, dict):
            raise StateError(f"{source}: bookmarks.{stream}.partitions.{key} must be an object, not {_kind(one)}.")


def _kind(value: Any) -> str:
    kinds = {list: "a list", str: "text", bool: "a boolean", int: "a number", float: "a number"}
    return kinds.get(type(value), "null" if value is None else type(value).__name__)


def parse_state(content: bytes, *, source: str, merge: bool = False) -> State:
    """A state from a file's bytes: a state object, a STATE message, or lines of either.

    Messages of other types among the lines are passed over: the file may hold all that a tap printed.

    Args:
        merge: each line carries only what changed (``state_scope: touched``): all of them count, in their order.
            Else the last one counts.

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
    if merge:
        return merge_states(check_state(state, source=source) for state in states)
    return check_state(states[-1], source=source)


def is_state(value: Mapping[str, Any]) -> bool:
    """Whether an object looks like the state of a tap."""
    return "bookmarks" in value or "currently_syncing" in value


def read_state_file(content: bytes, *, source: str, merge: bool = False) -> State:
    """As :func:`parse_state`, of a file that must hold the state of a tap, or an empty one.

    Raises:
        StateError: none; an object that is no state of a tap.
    """
    state = parse_state(content, source=source, merge=merge)
    if state and not is_state(state):
        cure = (
            "What stands below its 'singer_state' is the state of a tap (meltano state get): jq .singer_state FILE"
            if "singer_state" in state
            else "Is it the right file? Leave --state out to start from the beginning."
        )
        raise StateError(f"{source} holds neither 'bookmarks' nor 'currently_syncing'. {cure}")
    return state


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


def get_bookmark(state: State, stream: str, key: str, default: Any = None) -> Any:
    """One value of a stream's entry."""
    value = value_of(state, stream, key)
    return default if value is None else value


def set_bookmark(state: State, stream: str, key: str, value: Any) -> None:
    """Set one value of a stream's entry in place; None takes the key away, and an entry that is empty then."""
    if value is not None:
        _objects_below(state, "bookmarks", stream)[key] = value
    elif key in (entry := entry_of(state, stream)):
        del entry[key]
        if not entry:
            del state["bookmarks"][stream]


def _objects_below(state: dict[str, Any], *keys: str) -> dict[str, Any]:
    """What stands below some keys, made where there is no object."""
    for key in keys:
        if not isinstance(state.get(key), dict):
            state[key] = {}
        state = state[key]
    return state


def partitions_of(state: Mapping[str, Any], stream: str) -> dict[str, Any]:
    """The entries of a stream's partitions, by their keys; read only."""
    found = ((state.get("bookmarks") or {}).get(stream) or {}).get(PARTITIONS)
    return found if isinstance(found, dict) else {}


def entry_of(state: Mapping[str, Any], stream: str, partition: str | None = None) -> dict[str, Any]:
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
        set_bookmark(state, stream, key, value)
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
    _objects_below(state, "bookmarks", stream, PARTITIONS, partition)[key] = value


def put_entry(state: State, stream: str, entry: Mapping[str, Any] | None, partition: str | None = None) -> None:
    """Set a whole entry in place, as a copy; None and an empty one take it away."""
    if partition is not None and entry is None:
        drop(state, stream, partition)
    elif partition is not None and entry is not None:
        for key, value in entry.items():
            put(state, stream, key, copy.deepcopy(value), partition)
        for key in entry_of(state, stream, partition).keys() - entry.keys():
            put(state, stream, key, None, partition)
    elif entry:
        state.setdefault("bookmarks", {})[stream] = copy.deepcopy(dict(entry))
    elif stream in state.get("bookmarks", {}):
        del state["bookmarks"][stream]
        if not state["bookmarks"]:
            del state["bookmarks"]


def drop(state: State, stream: str, partition: str) -> None:
    """Take a partition's entry away, and what is empty without it."""
    entries = partitions_of(state, stream)
    if partition in entries:
        del entries[partition]
    if not entries:
        put(state, stream, PARTITIONS, None)


_LARGEST_VERSION = 2**53
"""Versions are milliseconds since 1970; what lies beyond is a broken state, and no number that every reader knows."""


def get_version(state: State, stream: str) -> int | None:
    """The version of a full table that was last activated; both spellings are read."""
    version = entry_of(state, stream).get("version")
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


# ---- states that carry only what has changed ---------------------------------------


def merge_states(states: Iterable[State | None]) -> State:
    """The full state that STATEs with only what has changed give together, in their order; a new dict.

    As RFC 7386 merges, at four levels: the state's own keys, the streams under ``bookmarks``, the keys of a stream, and
    the entries of its ``partitions``. There null takes a key away, and what is not named stays. Whatever stands deeper
    (an entry of ``partitions``, ``stream_state``) is replaced whole.
    """
    merged: State = {}
    for state in states:
        merge_into(merged, state or {})
    return merged


def merge_into(state: State, change: State) -> None:
    """As :func:`merge_states`, in place: the cost is that of the change. ``change`` is left as it is, and nothing in it
    that may change later becomes part of ``state``."""
    _merge(state, change, 0)


def state_diff(before: State | None, after: State, touched: Mapping[str, Collection[str]] | None = None) -> State:
    """What has changed, for :func:`merge_states` to make ``after`` of ``before``; {} if nothing has. A new dict.

    A key that holds null at one of the levels of :func:`merge_states` is as good as absent.

    Args:
        touched: the streams that may have changed, each with the partitions that may have (keys of ``partitions``).
            Nothing else below ``bookmarks`` is looked at: the cost does not grow with the size of the state.
    """
    if touched is not None:
        return _diff(_only(before or {}, touched), _only(after, touched), 0)
    return _diff(before or {}, after, 0)


def _deeper(level: int, key: str) -> bool:
    """Whether what stands under a key is merged key by key. Levels: state, bookmarks, stream, partitions."""
    return level == 1 or (level == 0 and key == "bookmarks") or (level == 2 and key == "partitions")


def _merge(target: dict[str, Any], change: dict[str, Any], level: int) -> None:
    for key, value in change.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict) and _deeper(level, key):
            if not isinstance(target.get(key), dict):
                target[key] = {}
            _merge(target[key], value, level + 1)
        else:
            target[key] = copy.deepcopy(value)


def _diff(before: dict[str, Any], after: dict[str, Any], level: int) -> dict[str, Any]:
    gone = [key for key, old in before.items() if old is not None and key not in after]
    change: dict[str, Any] = dict.fromkeys(gone)
    for key, value in after.items():
        old = before.get(key)
        if isinstance(value, dict) and isinstance(old, dict) and _deeper(level, key):
            inner = _diff(old, value, level + 1)
            if inner:
                change[key] = inner
        elif not _same(old, value):
            change[key] = copy.deepcopy(value)
    return change


def _same(one: Any, other: Any) -> bool:
    """Whether two JSON values are written alike: to Python 1, 1.0 and True are equal."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def _only(state: State, touched: Mapping[str, Collection[str]]) -> State:
    """A state without the streams and partitions that are not touched."""
    bookmarks = state.get("bookmarks")
    if not isinstance(bookmarks, dict):
        return state
    left: dict[str, Any] = {}
    for stream, keys in touched.items():
        if stream in bookmarks:
            entry = left[stream] = bookmarks[stream]
            parts = entry.get("partitions") if isinstance(entry, dict) else None
            if isinstance(parts, dict):
                left[stream] = {**entry, "partitions": {key: parts[key] for key in keys if key in parts}}
    return {**state, "bookmarks": left}
