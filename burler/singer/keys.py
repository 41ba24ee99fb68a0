"""The keys of Singer metadata: what each means, who writes it, where it stands, and what its value is.

``check_key`` holds what a tap's author writes against this table; catalogs of users may carry any key.
The source is the discovery page of Singer's documentation; the last rows are what taps and tools use besides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from burler.errors import DeclarationError
from burler.singer.metadata import AUTOMATIC, AVAILABLE, METHODS, UNSUPPORTED
from burler.suggest import did_you_mean

STREAM, FIELD = "stream", "field"


@dataclass(frozen=True, slots=True)
class MetadataKey:
    """One key. ``publishable``: a tap may write it in discovery; the others are the user's alone.

    ``on`` holds "stream", "field" or both. ``read`` gives the value as it is written, or raises ValueError
    with what was expected. What an author may write in place of a key of the user's: ``instead``, another key, or
    ``option``, an option of the stream.
    """

    name: str
    on: tuple[str, ...]
    read: Callable[[Any], Any]
    about: str
    publishable: bool = True
    instead: str = ""
    option: str = ""


def _truth(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueError("true or false")


def _text(value: Any) -> str:
    if isinstance(value, str) and value:
        return value
    raise ValueError("text")


def _names(value: Any) -> list[str]:
    given = [value] if isinstance(value, str) else value
    if isinstance(given, list | tuple) and all(isinstance(name, str) and name for name in given):
        if len(set(given)) < len(given):
            raise ValueError("a list of different field names")
        return list(given)
    raise ValueError("a list of field names")


def _count(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise ValueError("a whole number, 0 or more")


def _as_setting(name: str) -> Callable[[Any], Any]:
    """What the setting of that name may be; null is no word of a catalog's."""

    def read(value: Any) -> Any:
        from burler.settings import read_value  # an import of burler alone has no use for the settings

        return read_value(name, value, null=False)

    return read


def _one_of(*known: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if isinstance(value, str) and value in known:
            return value
        raise ValueError("one of " + ", ".join(known))

    return read


_BOTH = (STREAM, FIELD)
_METHOD = _one_of(*METHODS)

KEYS = {
    key.name: key
    for key in (
        MetadataKey(
            "selected",
            _BOTH,
            _truth,
            "Whether the user wants this stream or field.",
            publishable=False,
            instead="selected-by-default",
        ),
        MetadataKey(
            "replication-method",
            (STREAM,),
            _METHOD,
            "The user's choice of method.",
            publishable=False,
            instead="forced-replication-method",
        ),
        MetadataKey(
            "replication-key",
            (STREAM,),
            _text,
            "The user's choice of replication key.",
            publishable=False,
            instead="valid-replication-keys",
        ),
        MetadataKey(
            "inclusion",
            _BOTH,
            _one_of(AUTOMATIC, AVAILABLE, UNSUPPORTED),
            "'automatic': always comes; 'available': may be chosen; 'unsupported': never comes.",
        ),
        MetadataKey("selected-by-default", _BOTH, _truth, "What counts where the user says nothing."),
        MetadataKey("valid-replication-keys", (STREAM,), _names, "The fields that may be the replication key."),
        MetadataKey("forced-replication-method", (STREAM,), _METHOD, "The one method that the stream has."),
        MetadataKey("table-key-properties", (STREAM,), _names, "The key properties of a stream or table."),
        MetadataKey("view-key-properties", (STREAM,), _names, "The key properties of a view; the user knows them."),
        MetadataKey("schema-name", (STREAM,), _text, "The stream's name, or the database schema it lies in."),
        MetadataKey("database-name", (STREAM,), _text, "The database of a table."),
        MetadataKey("is-view", (STREAM,), _truth, "Whether the stream is a database view."),
        MetadataKey("row-count", (STREAM,), _count, "Rows of a table when it was discovered."),
        MetadataKey("sql-datatype", (FIELD,), _text, "The type of a column in its database."),
        MetadataKey("batch-enabled", (STREAM,), _truth, "Whether the stream goes out as BATCH messages."),
        MetadataKey(
            "new-record-polling-interval-ms",
            (STREAM,),
            _as_setting("new_record_polling_interval_ms"),
            "Tail: the wait between two polls of this stream, in milliseconds.",
            publishable=False,
            option="new_record_polling_interval_ms",
        ),
        MetadataKey(
            "max-full-table-age-seconds",
            (STREAM,),
            _as_setting("max_full_table_age_seconds"),
            "Tail: this FULL_TABLE stream is read again once its last reading began so many seconds ago.",
            publishable=False,
            option="max_full_table_age_seconds",
        ),
        MetadataKey("parent-tap-stream-id", (STREAM,), _text, "The stream whose rows this one's belong to."),
        MetadataKey("unsupported-description", (FIELD,), _text, "Why a field is unsupported."),
    )
}

ALIASES = {
    "key_properties": "table-key-properties",
    "key-properties": "table-key-properties",
    "view_keys": "view-key-properties",
    "replication_method": "forced-replication-method",
    "replication_key": "valid-replication-keys",
    "replication_keys": "valid-replication-keys",
    "replication-keys": "valid-replication-keys",
    "sql_type": "sql-datatype",
}
"""Short names that authors may write. A wire name with underscores is read as well (``selected_by_default``)."""


def wire_key(key: str) -> str:
    """The name under which a key goes over the wire: short and underscored names are translated."""
    if key in KEYS:
        return key
    if key in ALIASES:
        return ALIASES[key]
    hyphened = key.replace("_", "-")
    return hyphened if hyphened in KEYS else key


def check_key(key: str, value: Any, *, tap_name: str, level: int, place: str) -> tuple[str, Any]:
    """One metadata key that a tap's author writes, as it goes over the wire: (key, value).

    Kept are the keys of ``KEYS`` that a tap may publish, and the tap's own, which begin with its name and a dot
    (``tap-crm.custom``; ``tap_crm.custom`` too) and hold any JSON value.

    Args:
        level: 0 for the stream, 1 and more for its fields.
        place: begins every error: stream, field, file and line.

    Raises:
        DeclarationError: an unknown key, one that is the user's, one of the other level, or a value of another kind.
    """
    if not isinstance(key, str):
        raise DeclarationError(f"{place}: a metadata key is text, not {type(key).__name__}.")
    if key.startswith((f"{tap_name}.", f"{tap_name.replace('-', '_')}.")) and not key.endswith("."):
        return key, _json(key, value, place)
    known = KEYS.get(wire_key(key))
    if known is None:
        raise DeclarationError(f"{place}: metadata key '{key}' is unknown.{_hint(key, tap_name)}")
    if not known.publishable:
        cure = f"Give the stream the option {known.option}=." if known.option else f"Did you mean '{known.instead}'?"
        raise DeclarationError(f"{place}: metadata key '{known.name}' is the user's to write, in a catalog. {cure}")
    here = FIELD if level else STREAM
    if here not in known.on:
        other = "the stream itself (level 0)" if level else "a field"
        raise DeclarationError(f"{place}: metadata key '{known.name}' belongs to {other}. {known.about}")
    try:
        return known.name, known.read(value)
    except ValueError as wanted:
        raise DeclarationError(f"{place}: metadata key '{known.name}' must be {wanted}, not {value!r:.60}.") from None


def _hint(key: str, tap_name: str) -> str:
    names = [name for name, known in KEYS.items() if known.publishable]
    near = did_you_mean(wire_key(key).replace("_", "-"), names)
    return f"{near} A key of the tap's own begins with its name: '{tap_name}.{key}'."


def _json(key: str, value: Any, place: str) -> Any:
    try:
        return msgspec.json.decode(msgspec.json.encode(value))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise DeclarationError(f"{place}: metadata key '{key}' must hold a JSON value: {error}.") from None
