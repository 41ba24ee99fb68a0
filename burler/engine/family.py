"""A family: a stream that is called by itself, and all streams whose rows come in its run; and how far a call of its
function has come. Plain data, which can be pickled."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from burler.pipeline.bookmark import NOWHERE, Mark

_CHARACTERS = 200  # of a partition's key, in errors


class PartitionOrder(msgspec.Struct, frozen=True):
    """What is declared of partitions that rise (``order="asc"``).

    Attributes:
        is_exclusive: the source gives only what lies behind a bookmark.
        is_vouched: the bookmark moves by the author's word alone, and that of such a source is for whole partitions.
        ends_unsorted: where they turn out not to rise, the bookmark moves at the end; else that is an error.
    """

    is_exclusive: bool = False
    is_vouched: bool = False
    ends_unsorted: bool = False


@dataclass(frozen=True, slots=True)
class Family:
    """The streams of one run of a function: its own, substreams of it at any depth, and what these emit.

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
        is_partitioned: the root's function is called once for each partition.
        order: of partitions that rise; None: they do not.
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
    is_partitioned: bool = False
    order: PartitionOrder | None = None

    @property
    def key(self) -> str | None:
        """Under which key the root's bookmark stands; None if it keeps none."""
        return self.keys.get(self.root)

    @property
    def key_format(self) -> str | None:
        """What the schema says of the root's bookmark, where that is text."""
        return self.key_formats.get(self.root)

    @property
    def covers(self) -> list[str] | None:
        """What a bookmark of this run is true of, as the state says it; None: of the root alone."""
        return sorted(self.selected) if self.selected != {self.root} else None

    def rank(self, name: str) -> int:
        """Where rows of a stream stand in a page: a function's own rows first, parents before children, since those
        may refer to them."""
        above = self.above.get(name)
        return len(above) if above is not None else len(self.names)

    def below(self, name: str) -> set[str]:
        """A stream, and all that hang on it."""
        return {one for one in self.names if name in self.above[one]}


class Partition(msgspec.Struct, frozen=True):
    """Which call of a root's function it is: that of a partition, or of the stream as a whole.

    Attributes:
        values: what the partitions function gave; None: the stream as a whole.
        key: of the partition's entry in the state.
        number: in the order in which partitions were given, from 0 on.
    """

    values: Mapping[str, Any] | None = None
    key: str | None = None
    number: int = 0

    @property
    def where(self) -> str:
        """Which one it is, for errors and reports; empty for a stream as a whole."""
        return "" if self.key is None else f"partition {self.key[:_CHARACTERS]}"


class Progress(msgspec.Struct, frozen=True):
    """How far one call of a root's function has come with all that is called below it, as far as it is safe to say now.

    Attributes:
        partition: which call.
        bookmarks: of each stream that keeps one, as JSON has it; None: there is none yet.
        positions: what each function keeps in ``stream.state``.
        sources: the source states to be saved, of each stream of which they have changed.
        versions: of the rows of each full table that is going out.
        is_complete: the function has come to its end, and all that it gave is out.
        behind: streams of which rows are missing.
        unchanged: full tables of which the source said that nothing has changed.
        least, greatest: of the key of its rows, where partitions rise.
    """

    partition: Partition = Partition()
    bookmarks: Mapping[str, Any] = {}
    positions: Mapping[str, dict[str, Any]] = {}
    sources: Mapping[str, Sequence[Mapping[str, Any]]] = {}
    versions: Mapping[str, int] = {}
    is_complete: bool = False
    behind: frozenset[str] = frozenset()
    unchanged: frozenset[str] = frozenset()
    least: Mark = NOWHERE
    greatest: Mark = NOWHERE
