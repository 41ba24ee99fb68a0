"""The one context variable, and what a running stream offers to its author.

``def contacts(client, stream)`` is the first choice: the parameter works in generators, threads and
tests alike. ``tap.get_bookmark()`` is sugar for it and reads the variable.
"""

from __future__ import annotations

import contextlib
import contextvars
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

from burler.errors import BurlerError
from burler.singer.select import like
from burler.source_state import SourceStates
from burler.tally import Tally

_RUN: ContextVar[StreamRun] = ContextVar("burler_stream_run")
_NOTHING: Any = object()


class Channel:
    """Where a stream puts what it emits beside its function's own rows. This one takes nothing: what is emitted outside
    of a running sync function would be lost in silence."""

    def rows(self, emitter: str, stream: str, rows: Iterable[Any]) -> None:
        """Rows of ``stream`` that the function of ``emitter`` emits, behind all that was yielded so far."""
        raise self._refused(emitter, "emit_record")

    def save_bookmark(self, stream: str, value: Any, *, given: bool) -> None:
        """A STATE is due; ``value`` is what the author gave, if ``given``."""
        raise self._refused(stream, "save_bookmark")

    def version_begins(self, stream: str) -> None:
        """Rows from here on are a full table."""
        raise self._refused(stream, "full_table")

    def version_ends(self, stream: str, *, whole: bool) -> None:
        """The full table has ended; ``whole``: without an error."""

    def not_modified(self, stream: str) -> None:
        """The source says that nothing has changed."""
        raise self._refused(stream, "not_modified")

    def in_hook(self) -> bool:
        """Whether code that runs here now is a hook, called for rows on their way out."""
        return False

    def stopping(self) -> bool:
        """Whether the function is to come to its end."""
        return False

    def wait(self, seconds: float) -> bool:
        """Sleep, no longer than until the function is to come to its end; whether it is."""
        time.sleep(seconds)
        return False

    def catch_up(self, stream: str) -> Iterator[Any]:
        """What the stream's sync function gives."""
        raise self._refused(stream, "catch_up")

    def state_set(self, stream: str) -> None:
        """``stream.state`` was given another object."""

    def source_dropped(self, stream: str) -> None:
        """What was saved of a source of the stream no longer counts."""

    def _refused(self, stream: str, what: str) -> BurlerError:
        return BurlerError(
            f"stream '{stream}': {what}() works inside a running sync function only: not in other functions of the "
            "tap, and not once the function has ended."
        )


class Call:
    """One call of a stream's function, as the engine sees it; its author sees it as ``stream``.

    Attributes:
        bookmark: what it begins with.
        channel: where what it emits beside its rows goes.
        incomplete: what its source said of rows that it did not read; empty if nothing.
        is_unchanged: the source says that nothing has changed.
        at_end: what is to be done once it has come to its end by itself, by who has asked for it.
    """

    __slots__ = ("at_end", "bookmark", "channel", "incomplete", "is_unchanged")

    def __init__(self, bookmark: Any = None, channel: Channel | None = None) -> None:
        self.bookmark = bookmark
        self.channel = channel or _NOWHERE
        self.incomplete = ""
        self.is_unchanged = False
        self.at_end: dict[Any, Callable[[], None]] = {}

    def begin(self) -> None:
        """It is made (once more): what was said of an earlier one is over."""
        self.incomplete, self.is_unchanged = "", False
        self.at_end.clear()

    def end(self) -> None:
        """The function has come to its end by itself: what its sources said of more rows, for which it did not ask,
        counts."""
        acts = list(self.at_end.values())
        self.at_end.clear()
        for act in acts:
            act()


_NOWHERE = Channel()


class StreamRun:
    """One stream while it is synced: its bookmark, its state, what is selected.

    Authors get it as the parameter ``stream``.
    """

    def __init__(
        self,
        tap: Any,
        name: str,
        *,
        bookmark: Any = None,
        state: dict[str, Any] | None = None,
        selected: frozenset[str] = frozenset(),
        schema: Mapping[str, Any] | None = None,
        metadata: Mapping[tuple[str, ...], Mapping[str, Any]] | None = None,
        config: Mapping[str, Any] | None = None,
        client: Callable[[], Any] | None = None,
        key_properties: tuple[str, ...] = (),
        replication_key: str | None = None,
        replication_method: str | None = None,
        field: Any = None,
        partition: Mapping[str, Any] | None = None,
        start_date: str | None = None,
        manual: bool = False,
        in_parts: bool = False,
        tally: Tally | None = None,
        source_state: SourceStates | None = None,
        schemas: Mapping[str, Mapping[str, Any]] | None = None,
        resumable_by: str | None = None,
        sends_versions: bool = False,
        tailing: bool = False,
        write_bookmark: Callable[[Any], Any] | None = None,
        told: dict[int, Any] | None = None,
        call: Call | None = None,
    ) -> None:
        self.tap = tap
        self.name = name
        self.config = config if config is not None else {}
        self.key_properties = key_properties
        self.replication_key = replication_key
        self.replication_method = replication_method
        self.field = field
        self.partition = partition
        self.start_date = start_date
        self.resumable_by = resumable_by
        self.sends_versions = sends_versions
        self.tailing = tailing
        self.tally = tally or Tally()
        self.source_state = source_state or SourceStates(name)
        self._call = call or Call(bookmark)
        self.manual = manual
        self._in_block = False
        self._in_parts = in_parts or partition is not None
        self._client = client
        self._write_bookmark = write_bookmark
        self._state: dict[str, Any] = {} if state is None else state
        self._selected = selected
        self._schema = schema or {}
        self._schemas = schemas or {}
        self._metadata = metadata or {}
        self._told: dict[int, Any] = {} if told is None else told  # what was said already in the run of the tap
        self._has_position = bool(self._state)

    @property
    def bookmark(self) -> Any:
        """Where the last run got to: the replication key's greatest value, as the source wrote it, less the stream's
        ``lookback``; or ``start_date``, or None. In a partitioned stream: the partition's own. With
        ``bookmark_format``: a date-time or date in that form.

        It stays the same for the whole run. Ask the source for rows at or after it (``>=``).
        """
        return self.written(self._call.bookmark)

    @property
    def raw_bookmark(self) -> Any:
        """The same, without regard to ``bookmark_format``."""
        return self._call.bookmark

    def written(self, bookmark: Any) -> Any:
        """A bookmark as the source wants to be asked: in the stream's ``bookmark_format``, if it has one.

        Raises:
            StreamError: there is such a form, and the bookmark is neither a date-time nor a date.
        """
        return bookmark if bookmark is None or self._write_bookmark is None else self._write_bookmark(bookmark)

    @property
    def state(self) -> dict[str, Any]:
        """A JSON object of the author's own, saved with STATE.

        Change it *after* yielding the rows it speaks of; then no STATE ever says more than what is out. A tail function
        gives it a new object (``stream.state = {...}``): that counts at once, a change in place with the next yield.
        """
        return self._state

    @state.setter
    def state(self, value: dict[str, Any]) -> None:
        if not isinstance(value, dict):
            raise BurlerError(f"stream '{self.name}': stream.state must be a JSON object, not {type(value).__name__}.")
        self._state = value
        self._call.channel.state_set(self.name)

    def emit_record(self, record: Mapping[str, Any], stream: str | None = None) -> None:
        """Emit one row, of this stream or of another one that this function may emit, from anywhere in a sync: it
        stands behind what was yielded before."""
        self.emit_records((record,), stream)

    def emit_records(self, records: Iterable[Mapping[str, Any]], stream: str | None = None) -> None:
        """Emit rows, as ``emit_record`` does.

        Raises:
            BurlerError: something that is no row.
        """
        if isinstance(records, Mapping | str | bytes):
            raise BurlerError(
                f"stream '{self.name}': emit_records takes a list or an iterator of rows; for one row: emit_record."
            )
        self._call.channel.rows(self.name, stream or self.name, records)

    def save_bookmark(self, value: Any = _NOTHING) -> None:
        """A STATE is due here, behind the rows yielded so far.

        With ``bookmark_strategy="manual"`` the bookmark becomes the greatest value that is out, or ``value``: you
        vouch that all rows up to it are out. With other strategies it says what it would say anyway.

        Raises:
            BurlerError: a value, and another strategy.
        """
        if value is not _NOTHING and not self.manual:
            raise BurlerError(
                f"stream '{self.name}': save_bookmark(value) needs bookmark_strategy='manual': with any other, the "
                "bookmark follows the rows. Leave the value out to have a STATE here."
            )
        self._call.channel.save_bookmark(
            self.name, value if value is not _NOTHING else None, given=value is not _NOTHING
        )

    @contextlib.contextmanager
    def full_table(self) -> Iterator[None]:
        """``with stream.full_table():`` rows that are yielded inside get a ``version`` of their own; ACTIVATE_VERSION
        follows when the block ends without an error, so that targets drop all rows of older versions.

        Streams that are FULL_TABLE do the same by themselves; use it where some runs read everything anew.

        Raises:
            BurlerError: in a partitioned stream or a substream: a version is about all of its rows.
        """
        if self._in_parts:
            raise BurlerError(
                f"stream '{self.name}': full_table() is about a whole stream; its function is called for each "
                "partition, or for each row of a parent."
            )
        if self._in_block:
            raise BurlerError(f"stream '{self.name}': full_table() inside of full_table(): a table is whole once.")
        self._call.channel.version_begins(self.name)
        self._in_block, whole = True, False
        try:
            yield
            self._call.end()
            whole = not self._call.incomplete
        finally:
            self._in_block = False
            self._call.channel.version_ends(self.name, whole=whole)

    def not_modified(self) -> None:
        """The source says that nothing has changed since the last run (HTTP 304): that this run brings no rows does
        not mean that there are none. No ACTIVATE_VERSION is sent, and the version in the state stays."""
        self._call.channel.not_modified(self.name)
        self._call.is_unchanged = True

    def may_be_incomplete(self, why: str) -> None:
        """The source has said that there is more than was read. Rows may be missing, so nothing is to follow that needs
        all of them: no ACTIVATE_VERSION, and no bookmark that moves with the last row only. ``burler.http`` calls it.

        Args:
            why: what the source said, and where, for the log.
        """
        self._call.incomplete = self._call.incomplete or why

    @property
    def _reads_all(self) -> bool:
        """Whether all rows are to be read. Who goes on from a bookmark, or a position of his own, may read the newest
        first, and stop on purpose where he has been before."""
        begins = self._call.bookmark in (None, self.start_date)
        return begins and (self.replication_method == "FULL_TABLE" or not self._has_position)

    @property
    def stopping(self) -> bool:
        """Whether this function is to come to its end: the run is, or it is to begin anew with a new client. Functions
        in threads beside the main one can't be interrupted; those that never block for long look here."""
        return self._call.channel.stopping()

    def wait(self, seconds: float) -> bool:
        """Sleep, and wake at once when the function is to come to its end. Gives ``stopping``."""
        return self._call.channel.wait(seconds)

    def catch_up(self) -> Iterator[Any]:
        """In a tail function declared with ``overlap=True``: what the stream's sync function gives, from the bookmark
        that this call began with. ``yield from stream.catch_up()`` once you are subscribed to what comes next.

        Raises:
            BurlerError: elsewhere, or called twice.
        """
        return self._call.channel.catch_up(self.name)

    @property
    def is_in_hook(self) -> bool:
        """Whether a hook runs (``post_transform``, a bookmark function), and not the stream's own function."""
        return self._call.channel.in_hook()

    @property
    def client(self) -> Any:
        """The tap's client, made at the first use.

        Raises:
            BurlerError: the tap has none, or it could not be made.
        """
        if self._client is None:
            raise BurlerError(f"stream '{self.name}': there is no client here.")
        return self._client()

    @property
    def schema(self) -> Mapping[str, Any]:
        """The JSON Schema of what is emitted: selected fields only."""
        return self._schema

    def schema_of(self, stream: str) -> Mapping[str, Any]:
        """The same of another stream whose rows come in this one's run; {} if it is not wanted, or there is none."""
        return self._schemas.get(stream, self._schema if stream == self.name else {})

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The stream's own metadata (``selected``, keys, what the tap wrote)."""
        return self._metadata.get((), {})

    def selected(self, stream: str | None = None) -> bool:
        """Whether this stream (or another one that this function emits) is wanted in this run."""
        return (stream or self.name) in self._selected

    def __repr__(self) -> str:
        return f"<StreamRun {self.name!r}>"


def current_run(what: str, tap: Any, *, declared_with: str = "@tap.sync") -> StreamRun:
    """The stream that is running in this context.

    Args:
        declared_with: the decorator of the functions in which ``what`` may be called, for the error.

    Raises:
        BurlerError: nothing is running here, or a stream of another tap is.
    """
    run = _RUN.get(None)
    if run is None or run.tap is not tap:
        raise BurlerError(
            f"{what} was called outside a running stream. Call it inside a function that you declare with "
            f"{declared_with}; in your own threads take 'stream' as a parameter; in tests use "
            "burler.testing.bind_stream."
        )
    return run


def running() -> StreamRun | None:
    """The stream that runs in this context; None outside of one, and in threads of the author's own."""
    return _RUN.get(None)


def call_of(run: StreamRun) -> Call:
    """What the engine and sources know of the call in which a stream runs."""
    return run._call


def in_call(
    run: StreamRun,
    call: Call,
    *,
    state: dict[str, Any],
    partition: Mapping[str, Any] | None,
    source_state: SourceStates,
) -> StreamRun:
    """The same stream in a call of its function. Cheap: there may be thousands."""
    made = StreamRun.__new__(StreamRun)
    made.__dict__.update(
        run.__dict__,
        partition=partition,
        source_state=source_state,
        _call=call,
        _in_parts=run._in_parts or partition is not None,
        _state=state,
        _has_position=bool(state),
    )
    return made


def spec_of(run: StreamRun) -> Any:
    """How a stream is declared, by its own name or by a pattern; None where there is no tap, as in some tests."""
    specs = specs_of(run)
    if run.name in specs:
        return specs[run.name]
    return next((spec for name, spec in specs.items() if spec.is_pattern and like(run.name, name)), None)


def specs_of(run: StreamRun) -> Mapping[str, Any]:
    """How all streams of the tap are declared; none where there is no tap, as in some tests."""
    seal = getattr(run.tap, "seal", None)
    specs: Mapping[str, Any] = seal().streams if callable(seal) else {}
    return specs


def beside(run: StreamRun | None) -> contextvars.Context:
    """A context for work that a stream causes and that is none of its own (a renewal of credentials): what is counted
    there belongs to the stream, and its requests are not those that ``source_state`` speaks of."""
    context = contextvars.copy_context()
    if run is not None:
        context.run(_RUN.set, StreamRun(run.tap, run.name, config=run.config, tally=run.tally, told=run._told))
    return context


def bind(run: StreamRun) -> Any:
    """Set the variable in the current context; gives the token. Only ``pipeline.pull`` and tests call it."""
    return _RUN.set(run)


def unbind(token: Any) -> None:
    """Undo ``bind``."""
    _RUN.reset(token)


def call_bound(run: StreamRun, fn: Callable[[], Any]) -> Any:
    """Call a function in a context of its own, in which ``run`` is the running stream."""

    def bound() -> Any:
        _RUN.set(run)
        return fn()

    return contextvars.copy_context().run(bound)
