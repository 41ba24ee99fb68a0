"""Where the bookmark of a stream stands in a STATE, whoever made it, and how its values are compared.

Singer leaves the inside of a state to the tap. Known here: ``bookmarks.<stream>.<replication key>`` (singer-python,
burler), ``replication_key_value`` (the Singer SDK), partitions of both kinds, ``<stream>: value`` and ``<stream>.<key>``
at the top (older taps), and an entry with one value of the right kind, however it is called. What is none of these is
the tap's own secret: rules about bookmarks are then not looked at.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

Kind = Literal["number", "time", "text"]
_EPOCHS = ((1e8, 1e10, 1.0), (1e11, 1e13, 1e-3), (1e14, 1e16, 1e-6))
_NOT_BOOKMARKS = frozenset(
    {"version", "starting_replication_value", "replication_key_signpost", "replication_key", "progress_markers"}
)
MISSING: Any = object()


def entry_of(state: Any, stream: str) -> Any:
    """What a state holds of a stream; ``MISSING`` where there is nothing."""
    if not isinstance(state, Mapping):
        return MISSING
    bookmarks = state.get("bookmarks")
    if isinstance(bookmarks, Mapping) and stream in bookmarks:
        return bookmarks[stream]
    if isinstance(bookmarks, Mapping) or stream in ("bookmarks", "currently_syncing"):
        return MISSING
    return state.get(stream, MISSING)


def bookmark_of(state: Any, stream: str, key: str | None, kind: Kind | None = None) -> Any:
    """A stream's bookmark, as it is written; ``MISSING`` where there is none, or where each partition has its own."""
    entry = entry_of(state, stream)
    if not isinstance(entry, Mapping):
        return entry if _is_scalar(entry) else MISSING
    for name in (key, "replication_key_value"):
        if name is not None and _is_scalar(entry.get(name)):
            return entry[name]
    if partitions_of(entry) is not None:
        return MISSING
    scalars = [value for name, value in entry.items() if _is_scalar(value) and name not in _NOT_BOOKMARKS]
    fitting = [value for value in scalars if kind is None or comparable(value)[0] == kind]
    return fitting[0] if len(fitting) == 1 and kind is not None and not isinstance(fitting[0], bool) else MISSING


def without_streams(state: Any, streams: Collection[str]) -> Any:
    """A copy of a state that says nothing of some streams, as before they were selected."""
    if not isinstance(state, Mapping):
        return state
    out = {key: value for key, value in state.items() if key != "currently_syncing"}
    if isinstance(out.get("bookmarks"), Mapping):
        out["bookmarks"] = {name: entry for name, entry in out["bookmarks"].items() if name not in streams}
        return out
    return {key: value for key, value in out.items() if key not in streams}


def partitions_of(entry: Any) -> dict[str, Mapping[str, Any]] | None:
    """The entries of partitions by their canonical name; None where there are none."""
    given = entry.get("partitions") if isinstance(entry, Mapping) else None
    if isinstance(given, Mapping):
        return {str(name): one for name, one in given.items() if isinstance(one, Mapping)}
    if isinstance(given, Sequence) and not isinstance(given, str):
        found = {}
        for one in given:
            if isinstance(one, Mapping):
                found[json.dumps(one.get("context"), sort_keys=True, default=str)] = one
        return found
    return None


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def streams_of(state: Any) -> list[str]:
    """The streams that a state names."""
    if not isinstance(state, Mapping):
        return []
    bookmarks = state.get("bookmarks")
    if isinstance(bookmarks, Mapping):
        return [str(name) for name in bookmarks]
    return [str(name) for name in state if name not in ("bookmarks", "currently_syncing")]


def comparable(value: Any) -> tuple[Kind, Any]:
    """A value as something that can be compared with others of its kind."""
    if isinstance(value, str):
        moment = moment_of(value)
        return ("text", value) if moment is None else ("time", moment)
    return "number", value


def of_kind(value: Any, kind: Kind) -> Any:
    """A value of a STATE in the kind that the rows have; None where it has no such form. Numbers may be times since
    1970, in seconds, milliseconds or microseconds."""
    own, found = comparable(value)
    if own == kind:
        return found
    if kind == "time" and own == "number":
        for least, most, factor in _EPOCHS:
            if least <= found < most:
                return dt.datetime.fromtimestamp(found * factor, dt.UTC)
    if kind == "number" and own == "text":
        try:
            return float(value)
        except ValueError:
            return None
    return str(value) if kind == "text" else None


def moment_of(text: str) -> dt.datetime | None:
    """A date or date-time as a moment (without a zone: UTC); None where text is none."""
    if len(text) < 10 or text[4] != "-":
        return None
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)


def comparables(values: Sequence[Any]) -> tuple[Kind, list[Any]] | None:
    """A column of one kind, to be compared; None where values are of several kinds."""
    kinds = set(map(type, values))
    if kinds <= {int, float}:
        return "number", list(values)
    if kinds != {str}:
        return None
    if len(values[0]) >= 10 and values[0][4] == "-":
        try:
            moments = list(map(dt.datetime.fromisoformat, values))
        except ValueError:
            return "text", list(values)
        if None in {moment.tzinfo for moment in moments}:
            moments = [one if one.tzinfo is not None else one.replace(tzinfo=dt.UTC) for one in moments]
        return "time", moments
    return "text", list(values)
