"""What is told to whoever runs a part of a stream: plain data, which can be pickled."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from burler.engine.family import Family
from burler.engine.state.ordered import PartitionOrder
from burler.engine.state.progress import where
from burler.singer.state import partitions_of


@dataclass(frozen=True, slots=True)
class Table:
    """A full table that the parts of a stream make up: the name on the wire, and the version that its rows carry."""

    stream: str
    version: int


@dataclass(frozen=True, slots=True)
class Shared:
    """What the parts of a stream have in common, and what has to be known to put their ends together.

    Attributes:
        flat: the bookmark of the stream as a whole that the state had.
        order: what is declared of partitions that rise; None: they do not.
        asks_state: functions want to see the whole state.
        incomplete: there may be partitions that nobody found.
    """

    family: Family
    flat: Any = None
    order: PartitionOrder | None = None
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
    shared: Shared

    @property
    def where(self) -> str:
        """Which part it is, for errors and logs; empty for a stream as a whole."""
        return where(self.key)

    def state_for(self, state: Mapping[str, Any] | None) -> dict[str, Any]:
        """What of a state this part has to be told: of thousands of partitions, each one's own entry."""
        own: dict[str, Any] = copy.deepcopy(dict(state or {}))
        if self.key is None or self.shared.asks_state:
            return own
        for name in self.shared.family.names:
            others = partitions_of(own, name)
            for key in [key for key in others if key != self.key]:
                del others[key]
        return own
