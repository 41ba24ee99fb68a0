"""The options of a stream, a row each: what a value must be, what the spec holds of it, and what it goes with.

Checks, classes, errors and the table of the docs have it from its row. A new option is a row of ``OPTIONS``, its line
in ``StreamOptions`` and in ``Stream``, which type checkers and editors read, and a field of ``StreamSpec``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, Protocol, TypedDict

from burler.call import takes_one
from burler.declare.hooks import HOOKS, Row
from burler.declare.strategies import KNOWN, Strategy, parse_strategy
from burler.errors import DeclarationError
from burler.numbers import MOST_SECONDS, is_count, is_measure
from burler.paths import path_of
from burler.schema.sources import SchemaLike, as_source
from burler.singer.metadata import METHODS
from burler.suggest import did_you_mean, nearest
from burler.surrogates import is_unicode

Order = Literal["asc", "none"] | None
NOT_GIVEN: Any = object()  # where a decorator was written with empty parentheses


class NamedStream(Protocol):
    """What has a stream's name: a handle."""

    name: str


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
    parent: str | type | NamedStream | None
    emitted_by: str | type | NamedStream | None


@dataclass(frozen=True, slots=True)
class Option(Row):
    """One option.

    Attributes:
        takes: what a value must be, in words.
        fits: whether a value is that.
        words: the words that it may be, in place of both.
        make: what the spec holds of such a value; it is given the place, too.
        null: None says nothing of it.
        argument: of the hook's decorator, and the hook: it is given there, and with no other decorator.
        foreign: what other frameworks call it, where that is no other word for anything else.
    """

    takes: str = ""
    fits: Callable[[Any], bool] = lambda given: True
    words: tuple[str, ...] = ()
    make: Callable[[Any, str], Any] = lambda given, where: given
    null: bool = True
    argument: tuple[str, str] = ("", "")
    foreign: tuple[str, ...] = ()

    def read(self, given: Any, where: str) -> Any:
        """What the spec holds of a value.

        Raises:
            DeclarationError: it is something else than the option takes.
        """
        what = f"{where}: {self.called or self.name}"
        if self.words and given not in self.words:
            known = ", ".join(self.words)
            raise DeclarationError(f"{what} {given!r:.60} is unknown.{did_you_mean(given, self.words)} Known: {known}.")
        if not self.fits(given):
            raise DeclarationError(f"{what} must be {self.takes}, not {given!r:.60}.")
        return self.make(given, where)


def _is_text(given: Any) -> bool:
    return isinstance(given, str) and bool(given)


def _are_keys(given: Any) -> bool:
    keys = [given] if isinstance(given, str) else given
    return isinstance(keys, list | tuple) and all(map(_is_text, keys)) and len(set(keys)) == len(keys)


def _are_exceptions(given: Any) -> bool:
    several = given if isinstance(given, list | tuple) else [given]
    return bool(several) and all(isinstance(one, type) and issubclass(one, Exception) for one in several)


def _is_lookback(given: Any) -> bool:
    return given >= timedelta(0) if isinstance(given, timedelta) else is_measure(given) and given >= 0


def _names_partitions(given: Any) -> bool:
    return _is_text(given) or (takes_one(given) and not isinstance(given, type))


def _several(given: Any, where: str) -> tuple[Any, ...]:
    return tuple(given) if isinstance(given, list | tuple) else (given,)


def _path(given: Any, where: str) -> tuple[str, ...]:
    try:
        return path_of(given or ())
    except ValueError as error:
        raise DeclarationError(f"{where}: {error}.") from None


def stream_name(named: Any, where: str = "") -> Any:
    """The name of a stream that is given as text, as its handle or as its class (``CallNotes`` is call_notes)."""
    name = named if isinstance(named, str) else getattr(named, "name", None)
    if isinstance(name, str) or not isinstance(named, type):
        return name
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", named.__name__).lower()


def _switch(name: str, **more: Any) -> Option:
    return Option(name, "True or False", lambda given: isinstance(given, bool), **more)


def _field(name: str, **more: Any) -> Option:
    return Option(name, "a field's name", _is_text, **more)


def _stream(name: str, **more: Any) -> Option:
    return Option(name, "a stream's name", lambda given: _is_text(stream_name(given)), make=stream_name, **more)


def _count(name: str, least: int, most: int, unit: str = "", such: str = "", **more: Any) -> Option:
    takes = f"a whole number{unit} from {least} to {most:,}{such}"
    return Option(name, takes, lambda given: is_count(given, least) and given <= most, **more)


_ROWS = (
    Option(
        "key_properties",
        "different field names",
        _are_keys,
        make=_several,
        null=False,
        foreign=("primary_key", "primary_keys", "merge_key"),
    ),
    _field(
        "replication_key",
        foreign=("cursor_field", "incremental_key", "bookmark_key", "bookmark_properties", "valid_replication_keys"),
    ),
    Option("replication_method", words=METHODS, foreign=("sync_mode", "forced_replication_method")),
    Option(
        "bookmark_strategy",
        f"{KNOWN}, or an object with is_due(since)",
        make=parse_strategy,
        null=False,
        field="strategy",
        foreign=("state_checkpoint_interval",),
    ),
    Option("order", words=("asc", "none"), foreign=("is_sorted",)),
    Option("on_unsorted", words=("error", "end_of_sync"), needs=("bookmark",), foreign=("check_sorted",)),
    Option("resume", words=("inclusive", "exclusive"), needs=("bookmark",)),
    Option(
        "lookback",
        "a timedelta or a number, 0 or more and finite (seconds for date-times, days for dates, else units of the key)",
        _is_lookback,
        make=lambda given, where: given or None,
        needs=("bookmark",),
    ),
    Option(
        "bookmark_format",
        "a form as strftime takes it, such as '%Y-%m-%dT%H:%M:%S.%3fZ'",
        lambda given: isinstance(given, str) and "%" in given,
        needs=("bookmark",),
    ),
    _switch("signpost", needs=("bookmark",)),
    _field("resumable_by", of_leader=True),
    Option(
        "retry_sync_on",
        "an exception class below Exception or a tuple of them, such as (TimeoutError, ConnectionError)",
        _are_exceptions,
        make=_several,
        of_leader="emitted_by",
    ),
    Option(
        "setup_retry",
        "a function, such as def setup_retry(client, error, retry): ...",
        lambda given: callable(given) and not isinstance(given, type),
        make=lambda given, where: HOOKS["setup_retry"].function(given, f"{where}: its setup_retry function"),
        needs=("retry_sync_on",),
    ),
    _count("max_retries", 0, 1_000_000, needs=("retry_sync_on",)),
    _count("workers", 1, 1000, needs=("partitions",)),  # each is a thread
    _switch("rollup", needs=("parent", "replication_key", "bookmark")),
    _switch("versions"),
    Option("on_bad_record", words=("error", "skip", "null")),
    _switch("check_constraints"),
    _switch("source_state", of_leader=True),
    Option("records_path", "names that lead to the rows", make=_path, foreign=("records_jsonpath",)),
    _count(
        "new_record_polling_interval_ms",
        1,
        int(MOST_SECONDS) * 1000,
        " of milliseconds",
        ", such as 5000",
        of_leader=True,
    ),
    Option(
        "max_full_table_age_seconds",
        f"a number of seconds above 0 and up to {MOST_SECONDS:,.0f}, such as 3600",
        lambda given: is_measure(given) and 0 < given <= MOST_SECONDS,
        of_leader=True,
    ),
    Option("schema", "a JSON Schema", make=lambda given, where: as_source(given, where=where), null=False),
    _stream("parent", foreign=("parent_stream", "parent_stream_type")),
    _stream("emitted_by"),
    _switch("overlap", argument=("tail", "overlap"), needs=("tail", "sync")),
    Option(
        "partition_order",
        words=("asc", "none"),
        argument=("partitions", "order"),
        called="order of partitions",
        needs=("partitions", "bookmark"),
    ),
    Option(
        "partition_key",
        "a field's name or a function of the partition alone (in a class: a staticmethod), such as "
        "lambda partition: partition['id']",
        _names_partitions,
        argument=("partitions", "key"),
        called="key of partitions",
        needs=("partitions",),
    ),
)
OPTIONS = {option.name: option for option in _ROWS}
_FOREIGN = {word: option.name for option in _ROWS for word in option.foreign} | {"schema_filepath": "schema"}


def meant(name: str, known: Sequence[str], *, cutoff: float = 0.6) -> str | None:
    """What may have been meant by a name that is none of ``known``: another framework's word, or a misspelt one."""
    return _FOREIGN.get(name) or nearest(name, known, cutoff=cutoff)


def read_options(where: str, options: Mapping[str, Any], *, stream: str, beside: str | None) -> dict[str, Any]:
    """The options that were given, as fields of a spec (those of retries make one field when the tap is sealed).

    Args:
        where: begins each error.
        beside: the hook whose own options may be given, too; None: those of all.

    Raises:
        DeclarationError: an unknown option, or a value that it does not take.
    """
    read: dict[str, Any] = {}
    for name, value in options.items():
        option = OPTIONS.get(name)
        if option is None or (beside is not None and option.argument[0] not in ("", beside)):
            known = [key for key, one in OPTIONS.items() if one.argument[0] in ("", beside)]
            near = meant(name, known)
            hint = f" Did you mean '{near}'?" if near else ""
            if option is not None:
                other, argument = option.argument
                hint = f" It is said of a {other} function: @tap.{other}({stream!r}, {argument}={value!r:.60})."
            raise DeclarationError(f"{where}: unknown option '{name}'.{hint} Options: {', '.join(known)}.")
        if value is not None or not option.null:
            read[option.part] = option.read(value, where)
    return read


def check_name(stream: Any, place: str, *, decorator: str = "sync") -> None:
    """Refuse what is no stream's name; a function, where the decorator's parentheses were forgotten.

    Raises:
        DeclarationError: see above.
    """
    if callable(stream) or stream is NOT_GIVEN:
        raise DeclarationError(f"{place}: the decorator needs the stream's name first: @tap.{decorator}('contacts').")
    if not _is_text(stream):
        raise DeclarationError(f"{place}: the stream's name must be text, not {stream!r:.60}.")
    if not is_unicode(stream):
        raise DeclarationError(
            f"{place}: the stream's name holds half a character, {stream!a:.60}: no message can carry it."
        )
