"""Where the bookmark of a stream stands in a STATE, whoever made it, and how its values are compared.

Singer leaves the inside of a state to the tap. Known here: ``bookmarks.<stream>.<replication key>`` (singer-python,
burler), ``replication_key_value`` (the Singer SDK), partitions of both kinds, ``<stream>: value`` and
``<stream>.<key>`` at the top (older taps), and an entry with one value of the right kind under a name that bookmarks
bear (``last_update``, ``since``). A stream stands under its ``tap_stream_id`` or under its name. What is none of these
is the tap's own secret: rules about bookmarks are then not looked at.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from burler import times

Kind = Literal["number", "time", "text"]
_EPOCHS = ((1e8, 1e10, 1.0), (1e11, 1e13, 1e-3), (1e14, 1e16, 1e-6))
_NUMBER = re.compile(r"-?\d{1,18}(?:\.\d{1,18})?", re.ASCII)
_NOT_BOOKMARKS = frozenset(
    {"version", "starting_replication_value", "replication_key_signpost", "replication_key", "progress_markers"}
    | {"last_replication_method", "replication_method"}
)
_OF_BOOKMARKS = frozenset(
    {"replication_key", "replication_key_value", "starting_replication_value", "replication_key_signpost", "version"}
)
_PLACES = re.compile(r"page|offset|cursor|token|skip|xmin|position", re.IGNORECASE)
_BOOKMARK_NAMES = re.compile(
    r"since|last|latest|max|until|updated|modified|changed|created|date|time|_at$|bookmark|value|watermark|replication",
    re.IGNORECASE,
)
_PLAIN_TEXT = re.compile(r"[0-9A-Za-z_:-]*", re.ASCII)
_DAY_FIRST = re.compile(r"\d\d[-:_]\d\d[-:_]\d{4}", re.ASCII)
_UNDER_WAY = frozenset({"full_table", "last_pk_fetched", "max_pk_values"})
_PASSING = _UNDER_WAY | {"version", "stream_state", "replication_key", "last_replication_method", "replication_method"}
_OF_FULL_TABLES = _UNDER_WAY | {"version", "replication_key", "last_replication_method", "initial_full_table_complete"}
_DEPTH = 10
MISSING: Any = object()
ZONES = dt.timedelta(hours=14)
"""So far local time without a zone may be ahead of UTC."""


def entry_of(state: Any, stream: str, tap_stream_id: str = "") -> Any:
    """What a state holds of a stream; ``MISSING`` where there is nothing."""
    if not isinstance(state, Mapping):
        return MISSING
    bookmarks = state.get("bookmarks")
    holder = bookmarks if isinstance(bookmarks, Mapping) else state
    for name in (tap_stream_id, stream):
        if name and name in holder and (holder is bookmarks or name not in ("bookmarks", "currently_syncing")):
            return holder[name]
    return MISSING


def bookmark_of(state: Any, stream: str, key: str | None, kind: Kind | None = None, *, tap_stream_id: str = "") -> Any:
    """A stream's bookmark, as it is written; ``MISSING`` where there is none, or where each partition has its own."""
    entry = entry_of(state, stream, tap_stream_id)
    if entry is MISSING and isinstance(state, Mapping) and not isinstance(state.get("bookmarks"), Mapping):
        entry = state.get(f"{stream}.{key}", MISSING)
    if not isinstance(entry, Mapping):
        return entry if _is_scalar(entry) else MISSING
    for name in (key, "replication_key_value"):
        if name is not None and _is_scalar(entry.get(name)):
            return entry[name]
    if partitions_of(entry) is not None:
        return MISSING
    scalars = [value for name, value in entry.items() if _is_scalar(value) and _may_be_bookmark(name)]
    fitting = [value for value in scalars if kind is None or comparable(value)[0] == kind]
    return fitting[0] if len(fitting) == 1 and kind is not None and not isinstance(fitting[0], bool) else MISSING


def _may_be_bookmark(name: Any) -> bool:
    """Whether a name that is not the replication key's may be that of a bookmark. A page, an offset or a partition
    (by its name) is none."""
    return name not in _NOT_BOOKMARKS and _BOOKMARK_NAMES.search(str(name)) is not None


def holds_bookmark(entry: Any) -> bool:
    """Whether something stands in a stream's entry that may be a bookmark, and not the place in a list that is read."""
    if not isinstance(entry, Mapping):
        return _is_scalar(entry)
    values = [value for name, value in entry.items() if name not in _NOT_BOOKMARKS and not _PLACES.search(str(name))]
    return any(map(_is_scalar, values))


def knows_more(entry: Any, key: str) -> bool:
    """Whether a stream's entry holds more than its bookmark: a position of the tap's own, beside which the bookmark
    alone says nothing of what comes again."""
    return isinstance(entry, Mapping) and not entry.keys() <= {key, *_OF_BOOKMARKS}


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


def has_bookmark(entry: Any) -> bool:
    """Whether a stream's entry says how far it was read: by a value that is no version, or by partitions."""
    if not isinstance(entry, Mapping):
        return _is_scalar(entry)
    if partitions_of(entry) is not None or entry.get("progress_markers"):
        return True
    return any(_is_scalar(value) and name not in _NOT_BOOKMARKS for name, value in entry.items())


def is_of_full_table(entry: Any) -> bool:
    """Whether a stream's entry may be that of one that is read whole each time: it says nothing but of versions."""
    return entry is MISSING or entry is None or (isinstance(entry, Mapping) and entry.keys() <= _OF_FULL_TABLES)


def holds_place(entry: Any, depth: int = 0) -> bool:
    """Whether it would be lost how far a stream was read, if its entry went: what stands in it while a full table is
    under way, and the versions of tables, may go."""
    if depth > _DEPTH:
        return True
    if isinstance(entry, Mapping):
        return any(holds_place(value, depth + 1) for name, value in entry.items() if name not in _PASSING)
    if isinstance(entry, list):
        return any(holds_place(value, depth + 1) for value in entry)
    return _is_scalar(entry)


def version_of(state: Any, stream: str, tap_stream_id: str = "") -> tuple[int | None, bool]:
    """The version of a full table that a state speaks of, in each way that it is written, and whether the table was
    whole."""
    entry = entry_of(state, stream, tap_stream_id)
    activated = state.get("activate_versions") if isinstance(state, Mapping) else None
    found: list[tuple[Any, bool]] = []
    if isinstance(entry, Mapping):
        found.append((entry.get("version"), _UNDER_WAY.isdisjoint(entry)))
        found += [(below.get("version"), False) for below in entry.values() if isinstance(below, Mapping)]
    if isinstance(activated, Mapping):
        found.append((activated.get(tap_stream_id, activated.get(stream)), True))
    return next((one for one in found if type(one[0]) is int), (None, True))


def mentions(state: Any, name: str) -> bool:
    """Whether a name stands anywhere in a state."""
    try:
        text = json.dumps(state, ensure_ascii=False)
    except (RecursionError, ValueError):
        return True
    return re.search(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", text, re.IGNORECASE) is not None


def comparable(value: Any) -> tuple[Kind, Any]:
    """A value as something that can be compared with others of its kind. A number that is written as text is a number:
    as text "9" would come after "10"."""
    if isinstance(value, str):
        moment = moment_of(value)
        if moment is not None:
            return "time", moment
        return ("number", _number(value)) if _NUMBER.fullmatch(value) else ("text", value)
    return "number", value


def of_kind(value: Any, kind: Kind, like: Any = None) -> Any:
    """A value of a STATE in the kind that the rows have; None where it has no such form. Numbers may be times since
    1970, in seconds, milliseconds or microseconds; ``like`` is one of the rows' numbers, which tells the unit."""
    own, found = comparable(value)
    if own == kind:
        return _in_unit_of(found, like) if kind == "number" else found
    if kind == "time" and own == "number":
        for least, most, factor in _EPOCHS:
            if least <= found < most:
                return dt.datetime.fromtimestamp(found * factor, dt.UTC)
    if kind == "number" and own == "time" and isinstance(like, int | float):
        for least, most, factor in _EPOCHS:
            if least <= like < most:
                return round(found.timestamp() / factor, 6)
    return str(value) if kind == "text" else None


def epoch_unit(number: Any) -> float | None:
    """How much of a number of this size a second is, if it is a time since 1970; None of any other."""
    return next((1 / factor for least, most, factor in _EPOCHS if least <= number < most), None)


def _in_unit_of(number: Any, like: Any) -> Any:
    """A time since 1970 in the unit that the rows have; other numbers stay what they are."""
    own = epoch_unit(number)
    theirs = epoch_unit(like) if isinstance(like, int | float) else None
    return number if own is None or theirs is None or own == theirs else round(number / own * theirs, 6)


def moment_of(text: str) -> dt.datetime | None:
    """A date or date-time as a moment (without a zone: UTC); None where text is none."""
    if len(text) < 10 or text[4] != "-":
        return None
    return times.lenient_moment(text)


def has_zone(text: Any) -> bool:
    """Whether text that is a moment says in which zone."""
    return not isinstance(text, str) or not times.is_naive(text)


def comparables(values: Sequence[Any], kind: Kind | None = None) -> tuple[Kind, list[Any], list[int]]:
    """A column of one kind, to be compared, and the places of the values that are not of it.

    Args:
        kind: what values before these were; else the first of these says, which must be a number or text.
    """
    types = set(map(type, values))
    if types <= {int, float} and kind in (None, "number"):
        return "number", list(values), []
    kind = kind or comparable(values[0])[0]
    if types == {str}:
        if kind == "text":
            return "text", list(values), []
        try:
            if kind == "time":
                return "time", times.lenient_moments(values), []
        except ValueError:
            pass
    column, odd = [], []
    for place, value in enumerate(values):
        one = _as(value, kind)
        if one is None:
            odd.append(place)
        else:
            column.append(one)
    return kind, column, odd


def is_ordered(texts: Sequence[str]) -> bool:
    """Whether texts that are no date-times and no numbers surely stand in the order of their characters: all are of
    one length, in capitals or not, as codes and times without separators are. Nobody knows how a source sorts others
    ("Wed, 01 May", "2024-9" before "2024-10", "12/30/2023")."""
    joined = "".join(texts)
    one_case = joined in (joined.upper(), joined.lower())
    one_length = len(set(map(len, texts))) == 1
    return one_case and one_length and bool(_PLAIN_TEXT.fullmatch(joined)) and not any(map(_DAY_FIRST.match, texts))


def _as(value: Any, kind: Kind) -> Any:
    """A row's value as one of a kind; None if it is none."""
    if kind == "text":
        return value if isinstance(value, str) else None
    if kind == "number":
        if isinstance(value, str):
            return _number(value) if _NUMBER.fullmatch(value) else None
        return value if type(value) in (int, float) else None
    return times.lenient_moment(value)


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)
