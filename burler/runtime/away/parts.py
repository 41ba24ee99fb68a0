"""What is told to whoever runs a part of a stream: plain data, which can be pickled."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from burler.runtime import entries


@dataclass(frozen=True, slots=True)
class Table:
    """A full table that the parts of a stream make up: the name on the wire, and the version that its rows carry."""

    stream: str
    version: int


@dataclass(frozen=True, slots=True)
class Line:
    """A stream, those that come with it, and what has to be known to put the ends of its parts together.

    ``names`` are all of them (``tap_stream_id``), ``selected`` those that are wanted. ``keys``: under which key of the
    state the bookmark of each selected one stands. ``flat``: the bookmark of the stream as a whole that the state had,
    ``textual`` what the schema says of a bookmark that is text. ``rises``: the partitions rise (``order="asc"``).
    ``asks_state``: functions want to see the whole state. ``incomplete``: there may be partitions that nobody found.
    """

    root: str
    names: tuple[str, ...]
    selected: frozenset[str]
    keys: Mapping[str, str | None]
    root_key: str | None
    flat: Any = None
    textual: str | None = None
    rises: bool = False
    resume: str = "inclusive"
    manual: bool = False
    on_unsorted: str = "error"
    tables: Mapping[str, Table] = field(default_factory=dict)
    asks_state: bool = False
    incomplete: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """One partition of a stream, or a stream that has none, as a whole.

    ``key`` is that of the partition's entry in the state; ``number`` says which one of ``count`` it is, in the order in
    which the author's function gave them. Streams that come with this one (substreams, emitted ones) come here as well.
    """

    stream: str
    partition: Mapping[str, Any] | None
    key: str | None
    number: int
    count: int
    line: Line

    @property
    def where(self) -> str:
        """Which part it is, for errors and logs; empty for a stream as a whole."""
        return "" if self.key is None else f"partition {self.key[:200]}"

    def state_for(self, state: Mapping[str, Any] | None) -> dict[str, Any]:
        """What of a state this part has to be told: of thousands of partitions, each one's own entry."""
        own: dict[str, Any] = copy.deepcopy(dict(state or {}))
        if self.key is None or self.line.asks_state:
            return own
        for name in self.line.names:
            others = entries.partitions_of(own, name)
            for key in [key for key in others if key != self.key]:
                del others[key]
        return own
