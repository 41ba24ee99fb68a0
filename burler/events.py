"""What a run of a tap tells as it goes on, and who listens.

    events = Events(stats, log)
    events.tell(Page("orders", 120, "2026-01-01T00:00:00Z"))

The engine tells what happens, and does not know who listens. Events hold plain data; none is told for each row. Any
thread may tell one, mostly under the run's lock, so whoever hears it is quick.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

import msgspec

Status = Literal["succeeded", "failed", "stopped", "unfinished"]
Counts = Mapping[str, int | Mapping[str, int]]
"""What was counted while a source was read: ``{"requests": 31, "retries": {"429": 3}}``."""


class Event(msgspec.Struct, frozen=True):
    """Something that has happened."""


class RunBegan(Event, frozen=True):
    """The run of a tap begins."""

    tap: str


class StreamBegan(msgspec.Struct, frozen=True):
    """A stream begins, or a round of it, at a bookmark or None."""

    stream: str
    method: str | None
    bookmark: Any


class FamilyBegan(Event, frozen=True):
    """A stream begins with all that is synced with it.

    Attributes:
        bookmark: where it begins; ``partitions``: so many have a bookmark of their own.
        late: streams that have not had what lies before the bookmark ``passed``, so that it begins before that.
    """

    root: str
    method: str | None
    bookmark: Any
    partitions: int
    streams: tuple[StreamBegan, ...]
    passed: Any = None
    late: tuple[str, ...] = ()


class Page(Event, frozen=True):
    """A page is out: rows of the stream in this round by now, and its bookmark (None says nothing new)."""

    stream: str
    rows: int
    bookmark: Any


class Failed(Event, frozen=True):
    """Something failed: a part of a stream, named by ``where``, or the stream itself."""

    stream: str
    where: str | None
    error: BaseException


class DroppedField(msgspec.Struct, frozen=True):
    """A field that a stream's schema does not know: its names from the row on down (None: the items of an array), how
    many objects had it, some of its values, a schema that would keep it."""

    path: tuple[str | None, ...]
    count: int
    examples: tuple[Any, ...]
    schema: Mapping[str, Any]


class Remarks(msgspec.Struct, frozen=True):
    """What there is to say of the rows of a stream.

    Attributes:
        rows: that are out. ``without_key`` have no value of ``key``, the bookmark's.
        skipped, nulled: rows that did not fit the schema, and were left out, or had fields set to null: ``unfit``.
        dropped: fields, the most frequent first; ``further``: how often others came.
    """

    rows: int
    without_key: int
    key: str | None
    skipped: int
    nulled: int
    unfit: Mapping[str, int]
    dropped: tuple[DroppedField, ...]
    further: int


class StreamEnded(msgspec.Struct, frozen=True):
    """The last word on a stream, or on a round of it.

    Attributes:
        name: the stream's in messages.
        updated: rows whose bookmark value is beyond the bookmark that the stream began with; None without a bookmark.
        skipped: rows left out; ``left_out``: those of them that its post_transform function did not want.
        remarked: so much there is to say in ``remarks``, which are made when they are asked for; both grow with the
            rounds of a tail.
    """

    stream: str
    name: str
    status: Status
    rows: int
    updated: int | None
    skipped: int
    left_out: int
    bookmark: Any
    counts: Counts
    remarked: int
    remarks: Callable[[], Remarks]


class FamilyEnded(Event, frozen=True):
    """A stream has ended with all that was synced with it, or a round has.

    Attributes:
        bookmark: the root's; ``partitions``: so many have one of their own. ``instead``: what the state holds in its
            place.
        failed: streams of which something failed, in the order in which that is told.
        saves_nothing: its function was to move the bookmark by hand, and never did.
        covering: the number of the STATE that covers all of it.
    """

    root: str
    status: Status
    seconds: float
    bookmark: Any
    partitions: int
    instead: Literal["", "table", "position"]
    streams: tuple[StreamEnded, ...]
    failed: tuple[str, ...]
    saves_nothing: bool
    covering: int


class Incomplete(Event, frozen=True):
    """Rows of a stream may be missing although nothing failed: its source said that there is more.

    Attributes:
        why: what the source said.
        waiting: streams whose bookmark or table waits.
        held: what does not happen, in sentences.
    """

    stream: str
    why: str
    waiting: frozenset[str]
    held: tuple[str, ...]


class StateWritten(Event, frozen=True):
    """The sink has taken a STATE; ``size``: bytes of its value."""

    size: int


class StateOut(Event, frozen=True):
    """The line of a STATE is out, by its ``number``: what it covers is safe."""

    number: int


class TailFamily(msgspec.Struct, frozen=True):
    """A stream that a tail reads, with all that is synced with it.

    Attributes:
        kind: "poll", "full" (FULL_TABLE, read again by its age) or "push" (a tail function).
        once: a full table that is not read again.
        moves_last: its tail function must return before its bookmark moves.
    """

    root: str
    streams: tuple[str, ...]
    kind: Literal["poll", "full", "push"]
    once: bool
    moves_last: bool


class TailPlanned(Event, frozen=True):
    """What a tail reads; told again when another discovery has found it otherwise."""

    families: tuple[TailFamily, ...]


class RoundEnded(Event, frozen=True):
    """A round of a tail has ended, or could not begin.

    Attributes:
        status: "failed" where the next one is an attempt to mend it.
        failures: in a row, this one among them.
        next_at: when the next one begins, by the monotonic clock; None: there is none.
    """

    root: str
    streams: tuple[str, ...]
    status: Status
    failures: int
    next_at: float | None


class ClientRenewed(Event, frozen=True):
    """The tap's client was made anew."""


class Tick(Event, frozen=True):
    """About a second of a tail has passed; told by one thread at a time, which may wait for those who listen."""


class TailEnded(Event, frozen=True):
    """A tail is over, and everything is out.

    Attributes:
        blocked: streams whose functions are left behind.
        failing: streams that had failed so often when the run was stopped.
    """

    blocked: tuple[str, ...]
    failing: Mapping[str, int]


class RunEnded(Event, frozen=True):
    """The run of a tap has ended.

    Attributes:
        exit_code: None where an error ended it.
        batch: files that were made (``burler.sinks.Sink.made``).
    """

    tap: str
    status: Status
    exit_code: int | None
    seconds: float
    batch: Mapping[str, Any] | None


class Listener(Protocol):
    """Who hears what a run tells."""

    def hear(self, event: Event) -> None:
        """An event has happened; those that mean nothing to a listener are passed over."""


class Events:
    """Tells each event to all who listen, one after the other."""

    def __init__(self, *listeners: Listener) -> None:
        self._listeners = listeners

    def tell(self, event: Event) -> None:
        """Something has happened."""
        for listener in self._listeners:
            listener.hear(event)
