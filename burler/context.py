"""The one context variable, and what a running stream offers to its author.

``def contacts(client, stream)`` is the first choice: the parameter works in generators, threads and
tests alike. ``tap.get_bookmark()`` is sugar for it and reads the variable (style 7.4).
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

from burler.errors import BurlerError

_RUN: ContextVar[StreamRun] = ContextVar("burler_stream_run")


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
    ) -> None:
        self.tap = tap
        self.name = name
        self.config = config if config is not None else {}
        self.key_properties = key_properties
        self.replication_key = replication_key
        self.replication_method = replication_method
        self.field = field
        self._client = client
        self._bookmark = bookmark
        self._state: dict[str, Any] = {} if state is None else state
        self._selected = selected
        self._schema = schema or {}
        self._metadata = metadata or {}

    @property
    def bookmark(self) -> Any:
        """Where the last run got to: the replication key's greatest value, or ``start_date``, or None.

        It stays the same for the whole run. Ask the source for rows at or after it (``>=``, specs 11.9).
        """
        return self._bookmark

    @property
    def state(self) -> dict[str, Any]:
        """A JSON object of the author's own, saved with STATE (specs 11.27).

        Change it *after* yielding the rows it speaks of; then no STATE ever says more than what is out.
        """
        return self._state

    @state.setter
    def state(self, value: dict[str, Any]) -> None:
        if not isinstance(value, dict):
            raise BurlerError(f"stream '{self.name}': stream.state must be a JSON object, not {type(value).__name__}.")
        self._state = value

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
