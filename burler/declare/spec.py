"""What a stream is declared to be: one frozen object, whatever spelling declared it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from burler.declare.strategies import EndOfSync, Strategy
from burler.schema.sources import SchemaSource

FULL_TABLE = "FULL_TABLE"
INCREMENTAL = "INCREMENTAL"
LOG_BASED = "LOG_BASED"
REPLICATION_METHODS = (FULL_TABLE, INCREMENTAL, LOG_BASED)
_END = EndOfSync()


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A function of the tap's author and the parameters it asks for."""

    fn: Callable[..., Any]
    names: tuple[str, ...]
    place: str


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """One declared stream.

    ``emitted_by`` names the stream whose sync function yields this one's rows; then ``sync`` is None.
    ``order`` is "asc" (rows rise by the replication key; checked) or "none".
    ``versions``: None follows the tap's setting, True/False decides for this stream (specs 11.31).
    """

    tap_stream_id: str
    place: str
    sync: UserFunction | None = None
    emitted_by: str | None = None
    key_properties: tuple[str, ...] = ()
    replication_key: str | None = None
    replication_method: str = FULL_TABLE
    strategy: Strategy = _END
    order: str = "none"
    versions: bool | None = None
    schema: SchemaSource | None = None
    schema_fn: UserFunction | None = None
    bookmark: UserFunction | None = None

    @property
    def bookmark_key(self) -> str | None:
        """The key under which the stream's bookmark stands in the state; None if it keeps none."""
        if self.replication_method == FULL_TABLE:
            return None
        return self.replication_key or ("bookmark" if self.bookmark else None)
