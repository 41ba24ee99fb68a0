"""The options of a stream, in one place for every style: names, types, and what they become."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from burler.declare.option_checks import (
    ORDERS,
    count_of,
    exceptions_of,
    format_of,
    lookback_of,
    milliseconds_of,
    seconds_of,
    setup_of,
)
from burler.declare.spec import BAD_RECORD_POLICIES
from burler.declare.strategies import Strategy, parse_strategy
from burler.errors import DeclarationError
from burler.paths import path_of
from burler.schema.sources import SchemaLike, as_source
from burler.singer.metadata import METHODS
from burler.suggest import did_you_mean, nearest

if TYPE_CHECKING:
    from burler.declare.handle import StreamHandle

ON_UNSORTED = ("error", "end_of_sync")
RESUMES = ("inclusive", "exclusive")
Order = Literal["asc", "none"] | None
NOT_GIVEN: Any = object()  # where a decorator was written with empty parentheses


class StreamOptions(TypedDict, total=False):
    """What may be said of a stream, in ``@tap.sync``, ``tap.stream``, ``.substream`` and on a class.

    Keyword Args:
        key_properties: the field or fields that identify a row.
        replication_key: the field whose greatest value is the bookmark; makes the stream INCREMENTAL.
        replication_method: ``burler.FULL_TABLE``, ``INCREMENTAL`` or ``LOG_BASED``.
        bookmark_strategy: when a STATE is due: ``end_of_sync``, ``every_n(count)``, ``every_seconds(seconds)``,
            ``on_page``, ``manual``, or an object with ``is_due(since)``.
        order: ``"asc"`` if rows rise by the replication key (checked), else ``"none"``.
        on_unsorted: ``"error"`` (default), or ``"end_of_sync"``: where the declared order breaks, go on with a warning,
            and the bookmark moves at the end only.
        resume: ``"inclusive"`` (default), or ``"exclusive"`` for a source that gives rows strictly after the bookmark.
        lookback: how far before the saved bookmark each run begins: a ``timedelta``, or a number (seconds for
            date-times, days for dates, units for numbers).
        bookmark_format: how ``stream.bookmark`` is written where it is a date-time or date: a form of ``strftime``, in
            UTC; ``%3f`` are milliseconds (default: as the source wrote it).
        signpost: a saved bookmark never passes the time at which the stream's sync began (default: no).
        resumable_by: the field by which a FULL_TABLE stream's rows rise (checked): when interrupted it goes on there.
            ``"*"`` on a name with ``*``: the first field of each stream's key, if rows can rise by it.
        retry_sync_on: an exception class, or a tuple of them: user code that raises one is begun anew.
        setup_retry: a function that is called before each retry; gives None, or a bookmark to begin with.
        max_retries: tries after the first (default 3).
        workers: how many partitions are synced at a time (default 1).
        rollup: read the first stream of the line again from where this substream stands (default: no).
        versions: send ``version`` and ACTIVATE_VERSION for a FULL_TABLE stream (default: yes).
        on_bad_record: ``"error"`` (default), ``"skip"`` or ``"null"``: what happens to a row that does not fit.
        check_constraints: hold values against enums, bounds, lengths, patterns (default: yes), or against types only.
        source_state: ask the source for what has changed only: the one resource that the function asks for with GET is
            not sent again while it says that it is the same (default: no).
        records_path: names that lead to the rows in JSON documents given as bytes: ``"result.items"``.
        new_record_polling_interval_ms: the wait between two polls of the stream in a tail run, in milliseconds
            (default: the setting).
        max_full_table_age_seconds: in a tail run, a FULL_TABLE stream is read again when its last reading began this
            long ago (default: the setting).
        schema: a JSON Schema: a dict, ``burler.json_file(...)``, a typed class, ...
        parent: the stream for each row of which the sync function is called.
        emitted_by: the stream whose sync function yields this one's rows as ``(name, rows)``.
    """

    key_properties: str | Sequence[str]
    replication_key: str | None
    replication_method: Literal["FULL_TABLE", "INCREMENTAL", "LOG_BASED"] | None
    bookmark_strategy: str | Strategy
    order: Order
    on_unsorted: Literal["error", "end_of_sync"] | None
    resume: Literal["inclusive", "exclusive"] | None
    lookback: float | timedelta | None
    bookmark_format: str | None
    signpost: bool | None
    resumable_by: str | None
    retry_sync_on: type[Exception] | tuple[type[Exception], ...] | list[type[Exception]] | None
    setup_retry: Callable[..., Any] | None
    max_retries: int | None
    workers: int | None
    rollup: bool | None
    versions: bool | None
    on_bad_record: Literal["error", "skip", "null"] | None
    check_constraints: bool | None
    source_state: bool | None
    records_path: str | Sequence[str] | None
    new_record_polling_interval_ms: int | None
    max_full_table_age_seconds: float | None
    schema: SchemaLike
    parent: str | type | StreamHandle | None
    emitted_by: str | type | StreamHandle | None


OPTION_NAMES = tuple(StreamOptions.__annotations__)
_FOREIGN = {
    "primary_key": "key_properties",
    "primary_keys": "key_properties",
    "merge_key": "key_properties",
    "cursor_field": "replication_key",
    "incremental_key": "replication_key",
    "bookmark_key": "replication_key",
    "bookmark_properties": "replication_key",
    "valid_replication_keys": "replication_key",
    "sync_mode": "replication_method",
    "forced_replication_method": "replication_method",
    "is_sorted": "order",
    "check_sorted": "on_unsorted",
    "parent_stream": "parent",
    "parent_stream_type": "parent",
    "records_jsonpath": "records_path",
    "schema_filepath": "schema",
    "state_checkpoint_interval": "bookmark_strategy",
}
"""What the Singer SDK, singer-python, Airbyte and dlt call our options, where it is no other word for anything else."""


def meant(name: str, known: Sequence[str], *, cutoff: float = 0.6) -> str | None:
    """What may have been meant by a name that is none of ``known``: another framework's word, or a misspelt one."""
    if name in _FOREIGN:
        return _FOREIGN[name]
    return nearest(name, known, cutoff=cutoff)


def check_name(stream: Any, place: str, *, decorator: str = "sync") -> None:
    """Refuse what is no stream's name; a function, where the decorator's parentheses were forgotten.

    Raises:
        DeclarationError: see above.
    """
    if callable(stream) or stream is NOT_GIVEN:
        raise DeclarationError(f"{place}: the decorator needs the stream's name first: @tap.{decorator}('contacts').")
    if not isinstance(stream, str) or not stream:
        raise DeclarationError(f"{place}: the stream's name must be text, not {stream!r:.60}.")
    if not is_unicode(stream):
        raise DeclarationError(
            f"{place}: the stream's name holds half a character, {stream!a:.60}: no message can carry it."
        )


def is_unicode(text: str) -> bool:
    """Whether a text has a form in UTF-8; one with half a surrogate pair has none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def parse_options(
    stream: str, place: str, options: Mapping[str, Any], *, beside: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The options that were given, as fields of a spec (``bookmark_strategy`` is ``strategy`` there, and those of
    retries make one field when the tap is sealed).

    Args:
        beside: what else may be said where they are given, for the hint on a misspelt name.

    Raises:
        DeclarationError: an unknown option, method, strategy or order, or key properties that are no names.
    """
    where = f"stream '{stream}' ({place})"
    parsed: dict[str, Any] = {}
    for name, value in options.items():
        if name not in OPTION_NAMES:
            known = (*OPTION_NAMES, *beside)
            near = meant(name, known)
            hint = f" Did you mean '{near}'?" if near else ""
            if name == "overlap":
                hint = f" It is said of a tail function: @tap.tail({stream!r}, overlap=True)."
            raise DeclarationError(f"{where}: unknown option '{name}'.{hint} Options: {', '.join(known)}.")
        if name == "bookmark_strategy":
            parsed["strategy"] = parse_strategy(value, place=where)
        elif name == "key_properties":
            parsed[name] = _keys(value, where)
        elif name == "schema":
            parsed[name] = as_source(value, where=where)
        elif name == "records_path":
            parsed[name] = _path(value, where)
        elif value is not None and name in _PARSERS:
            parsed[name] = _PARSERS[name](value, where)
        elif value is not None:
            _check(name, value, where)
            parsed[name] = stream_name(value) if name in ("parent", "emitted_by") else value
    return parsed


_INTERVAL, _AGE = "new_record_polling_interval_ms", "max_full_table_age_seconds"
_PARSERS: dict[str, Callable[[Any, str], Any]] = {
    "lookback": lookback_of,
    "bookmark_format": format_of,
    "retry_sync_on": exceptions_of,
    "setup_retry": setup_of,
    "max_retries": lambda value, where: count_of("max_retries", value, where),
    "workers": lambda value, where: count_of("workers", value, where),
    "new_record_polling_interval_ms": lambda value, where: milliseconds_of(_INTERVAL, value, where),
    "max_full_table_age_seconds": lambda value, where: seconds_of(_AGE, value, where),
}
_WORDS = {
    "replication_method": METHODS,
    "order": ORDERS,
    "on_bad_record": BAD_RECORD_POLICIES,
    "on_unsorted": ON_UNSORTED,
    "resume": RESUMES,
}
_SWITCHES = ("versions", "check_constraints", "signpost", "rollup", "source_state")


def stream_name(named: Any) -> Any:
    """The name of a stream that is given as text, as its handle or as its class (``CallNotes`` is call_notes)."""
    if isinstance(named, str):
        return named
    name = getattr(named, "name", None)
    if isinstance(name, str):
        return name
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", named.__name__).lower() if isinstance(named, type) else named


def _keys(given: Any, where: str) -> tuple[str, ...]:
    keys = (given,) if isinstance(given, str) else given
    if (
        not isinstance(keys, list | tuple)
        or not all(isinstance(key, str) and key for key in keys)
        or len(set(keys)) != len(keys)
    ):
        raise DeclarationError(f"{where}: key_properties must be different field names, not {given!r}.")
    return tuple(keys)


def _path(given: Any, where: str) -> tuple[str, ...]:
    try:
        return path_of(given or ())
    except ValueError as error:
        raise DeclarationError(f"{where}: {error}.") from None


def _check(name: str, value: Any, where: str) -> None:
    problem = None
    if name in ("replication_key", "resumable_by") and (not isinstance(value, str) or not value):
        problem = f"{name} must be a field's name, not {value!r}."
    elif name in _WORDS and value not in _WORDS[name]:
        problem = f"{name} {value!r} is unknown.{did_you_mean(value, _WORDS[name])} Known: {', '.join(_WORDS[name])}."
    elif name in _SWITCHES and not isinstance(value, bool):
        problem = f"{name} must be True or False, not {value!r}."
    elif name in ("parent", "emitted_by") and (not isinstance(stream_name(value), str) or not stream_name(value)):
        problem = f"{name} must be a stream's name, not {value!r}."
    if problem:
        raise DeclarationError(f"{where}: {problem}")
