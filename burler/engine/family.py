"""A family: a stream that is called by itself, and all streams whose rows come in its run."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Family:
    """The streams of one run of a function: its own, substreams of it at any depth, and what these emit. Plain data.

    Attributes:
        root: the stream whose function is called first.
        names: all of them, in the order in which they are declared.
        selected: those that are wanted.
        above: by each stream, those that it hangs on, itself first.
        substreams: those whose rows come from a function that is called for rows of a parent.
        has_substreams: whether any is declared, wanted or not.
        keys: under which key of the state each one's bookmark stands: of those that are wanted, and of the root.
        key_formats: what the schema says of a bookmark that is text: "date-time", "date", "decimal", or None.
        resume_key: the root's field by which an interrupted full table goes on.
        tables: those that are wanted and send versions.
        lookbacks: how far before its bookmark a stream begins.
        rollups: those that are wanted and make the root begin where they stand.
        givers: the stream whose function yields a stream's rows: itself, or the one that emits it.
        called: those whose functions run. has_children: whether any of them is called for rows of a parent.
        emits: of those that are called, the streams whose rows each one's function yields.
        asks_children: those whose bookmark function wants to know what came below a row.
    """

    root: str
    names: tuple[str, ...]
    selected: frozenset[str]
    above: Mapping[str, tuple[str, ...]]
    substreams: frozenset[str] = frozenset()
    has_substreams: bool = False
    keys: Mapping[str, str | None] = field(default_factory=dict)
    key_formats: Mapping[str, str | None] = field(default_factory=dict)
    resume_key: str | None = None
    tables: frozenset[str] = frozenset()
    lookbacks: Mapping[str, float | dt.timedelta] = field(default_factory=dict)
    rollups: frozenset[str] = frozenset()
    givers: Mapping[str, str] = field(default_factory=dict)
    called: tuple[str, ...] = ()
    has_children: bool = False
    emits: Mapping[str, frozenset[str]] = field(default_factory=dict)
    asks_children: frozenset[str] = frozenset()

    @property
    def key(self) -> str | None:
        """Under which key the root's bookmark stands; None if it keeps none."""
        return self.keys.get(self.root)

    @property
    def key_format(self) -> str | None:
        """What the schema says of the root's bookmark, where that is text."""
        return self.key_formats.get(self.root)

    def rank(self, name: str) -> int:
        """Where rows of a stream stand in a page: a function's own rows first, parents before children, since those
        may refer to them."""
        above = self.above.get(name)
        return len(above) if above is not None else len(self.names)

    def is_substream(self, name: str) -> bool:
        """Whether a stream's rows come from a function that is called for rows of a parent."""
        return name in self.substreams

    def below(self, name: str) -> set[str]:
        """A stream, and all that hang on it."""
        return {one for one in self.names if name in self.above[one]}
