"""``readStream.format("burler")``: a tap as a stream whose offset is the Singer state.

A source can't be asked for the same rows twice, and Spark asks for a batch again after a crash. So the tap runs into a
*spool*, a lake of this query's own (option ``spool``), by the machinery of ``burler run --sink lake:``, and the stream
is that of the lake: a range of commits gives the same rows whenever it is read. Each offset carries the newest state
that covers no more than the rows up to it. What the sink has committed is removed from the spool after a while.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from burler.errors import UsageError
from burler.lake.replay import START
from burler.lake.store import open_store
from burler.spark.lakefiles import SchemaVersion, load_stream
from burler.spark.lakesource.options import FollowOptions
from burler.spark.lakesource.shape import frame_columns
from burler.spark.lakesource.tasks import ReadTask
from burler.spark.remote import pyspark_version
from burler.spark.streaming.appoptions import AppOptions, app_options
from burler.spark.streaming.follower import Follower, follower_reader
from burler.spark.streaming.holding import held
from burler.spark.streaming.keeper import spooled
from burler.spark.streaming.lakestream import LakeFollower
from burler.spark.streaming.note import Note, Stated, change_note, check_owner, read_note
from burler.spark.streaming.offsets import Offset
from burler.spark.streaming.pump import Work, tap_name
from burler.spark.streaming.pumping import Pumping
from burler.spark.streaming.spool import give_up
from burler.spark.types import spark_schema
from burler.spark.united import unite_stream
from burler.storage.base import Hold, Store

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_log = logging.getLogger("burler.spark.stream")

_OLDEST = (4, 2)
_WAIT_SECONDS = 0.1
_HOLD_SECONDS = 20.0
_TIDY_SECONDS = 60.0
_STATE_SECONDS = 0.5


def stream_schema(given: Mapping[str, str]) -> StructType:
    """The columns of a stream over a tap: those of what its spool holds and of what discovery says now, and burler's.

    Raises:
        UsageError: options, config or the tap are wrong, or the spool is of another tap.
    """
    from burler.spark.source.options import parse
    from burler.spark.source.planning import find_stream

    options = app_options(given)
    found = find_stream(parse(given))
    stream = found.declared.stream
    store = open_store(options.spool)
    note = read_note(store)
    check_owner(note, tap_name(found), stream, store)
    place = spooled(store, note) if note is not None else None
    versions = () if place is None else load_stream(store, *place).versions
    keys = tuple(found.declared.keys)
    discovered = SchemaVersion("discovered", "as discovered", found.declared.schema, keys, ())
    record = unite_stream(stream, (*versions, discovered), options.lake.read).record
    return spark_schema(frame_columns(record, options.lake, stream))


def stream_reader(given: Mapping[str, str], schema: StructType) -> Any:
    """What Spark asks while a query runs."""
    return follower_reader()(functools.partial(_follower, dict(given)), schema)


def _follower(given: Mapping[str, str]) -> Follower:
    """Raises: UsageError: an option is wrong, or this pyspark is too old."""
    if pyspark_version() < _OLDEST:
        raise UsageError(
            f"readStream.format('burler') needs pyspark {_OLDEST[0]}.{_OLDEST[1]} or later: "
            "older ones don't tell a source where its query stands.\nLand the tap instead "
            "(burler run APP --sink lake:LAKE), and stream the lake: "
            "readStream.format('singerlake')"
        )
    options = app_options(given)
    return AppFollower(options, LakeFollower(options.lake, options.follow))


@dataclass(slots=True)
class AppFollower:
    """Follows a tap through its spool; lives on the driver as long as the query."""

    options: AppOptions
    spool: LakeFollower
    once: bool = False
    _store: Store | None = None
    _hold: Hold | None = None
    _pumping: Pumping | None = None
    _tidied: float = 0.0
    _seen: tuple[int, float] = (-1, 0.0)
    _quiet: tuple[Offset | None, float] = (None, 0.0)

    @property
    def follow(self) -> FollowOptions:
        """The limits of a batch."""
        return self.options.follow

    @property
    def store(self) -> Store:
        """The spool's store; the spool is this query's from here on.

        Raises:
            UsageError: another query that runs has it.
        """
        if self._store is None:
            store = open_store(self.options.spool)
            self._hold = held(store, "query", seconds=_HOLD_SECONDS, otherwise="belongs to another query that runs")
            self._store = store
        return self._store

    def initial(self) -> Offset:
        """A new query begins with the first row that its spool has."""
        return self.spool.initial()

    def prepare_available_now(self) -> None:
        """One run of the tap to its end, all of it, and then no more."""
        self.once = True

    def latest(self, start: Offset, *, limited: bool) -> Offset:
        """How far the next batch goes. Under availableNow this waits for the tap, batch by batch, until it has ended.

        Raises:
            StreamError, UsageError: the tap failed; what it brought until then has been taken before.
        """
        if self._is_quiet(start):
            return start
        store = self.store
        self._check(start)
        if self._pumping is None:
            work = Work(
                self.options.given, self.options.spool, self.once, self.options.poll_seconds, self.options.land_seconds
            )
            self._pumping = Pumping(work, stream=self.options.given.get("stream", ""))
        while True:
            has_ended = self._pumping.has_ended
            end, is_covered = self._latest(store, start, limited=limited, fresh=has_ended or self.once)
            is_new = end.to_wire() != start.to_wire()
            if is_new and (is_covered or has_ended or not self._is_fresh(end)):
                return end
            if has_ended:
                if (failure := self._pumping.failure) is not None:
                    raise failure
                return start
            if not self.once:
                self._quiet = (start, time.monotonic() + self.follow.poll_seconds)
                return start
            time.sleep(_WAIT_SECONDS)

    def _is_quiet(self, start: Offset) -> bool:
        """Whether nothing new was there just now: Spark asks every few milliseconds."""
        return self._quiet[0] == start and time.monotonic() < self._quiet[1]

    def _latest(self, store: Store, start: Offset, *, limited: bool, fresh: bool) -> tuple[Offset, bool]:
        """How far the next batch could go, and whether there is a STATE that covers its last rows."""
        note = read_note(store)
        place = None if note is None else spooled(store, note)
        if note is None or place is None:
            return start, True
        self.spool.names = place
        self.spool.snapshot(fresh=fresh)
        bare = self._here(start, note)
        end = self.spool.latest(bare, limited=limited)
        sequence = end.position.sequence - (1 if end.position.file is not None else 0)
        state = note.state_at(end.generation, sequence)
        if end == bare and (state is None or end.is_start):
            return start, True
        is_covered = bool(note.states) and note.states[-1].sequence >= end.position.sequence
        return replace(end, state=state if state is not None else start.state), is_covered

    def _is_fresh(self, end: Offset) -> bool:
        """Whether rows came just now, so that their STATE is on its way: a batch that waits saves one without rows."""
        now = time.monotonic()
        if self._seen[0] != end.position.sequence:
            self._seen = (end.position.sequence, now)
        return now - self._seen[1] < _STATE_SECONDS

    def tasks(self, start: Offset, end: Offset, schema: StructType) -> list[ReadTask]:
        """The rows of (start, end].

        Raises:
            OtherLake: the spool can't give them any more; says why.
        """
        store = self.store
        self._check(start)
        note = read_note(store)
        if note is not None and self._is_continued(end, note):
            return []  # its spool is gone: the rows come again from the state before them, in the next batch
        place = None if note is None else spooled(store, note)
        if note is None or place is None:
            if end.position == start.position:
                return []
            self._begin_again(end, start.state)
            return []
        self.spool.names = place
        self._check_given_up(start, note)
        return self.spool.tasks(self._here(start, note), replace(end, state=None), schema)

    def committed(self, end: Offset) -> None:
        """The sink has everything up to here; what has been there long enough goes."""
        now = time.monotonic()
        note = read_note(self.store)
        if (
            note is None
            or self._is_continued(end, note)
            or now - self._tidied < _TIDY_SECONDS * min(1.0, self.options.keep_hours)
        ):
            return
        self._tidied = now
        place = spooled(self.store, note)
        if place is None:
            return
        self.spool.names = place
        give_up(self.store, self.spool.snapshot(), end, older_than_seconds=self.options.keep_hours * 3600)

    def stop(self) -> None:
        """The query has ended."""
        if self._pumping is not None:
            self._pumping.stop()
        if self._hold is not None:
            self._hold.release()

    def _check(self, start: Offset) -> None:
        """Where a query comes with a checkpoint to a spool that is new, or whose rows were removed, the tap goes on
        from the checkpoint's state."""
        note = read_note(self.store)
        if note is not None:
            self._check_given_up(start, note)
        if self._is_hollow(note) if note is not None else not start.is_start:
            self._begin_again(start, start.state)

    def _is_hollow(self, note: Note) -> bool:
        """Whether states speak of rows that nobody holds."""
        return any(one.sequence for one in note.states) and spooled(self.store, note) is None

    def _check_given_up(self, start: Offset, note: Note) -> None:
        if start.position.sequence < note.given_up and not self._is_continued(start, note):
            raise UsageError(
                f"the spool {self.store.url} no longer holds the rows of commits {start.position.sequence + 1} to "
                f"{note.given_up}: another query, or this one with another checkpoint, has taken them.\n"
                'Give the query a spool of its own; option("state", ...) says where its tap begins.'
            )

    def _begin_again(self, end: Offset, state: Mapping[str, Any] | None) -> None:
        """Make a new spool that goes on where another one ended: from ``state``, or, where the checkpoint has none,
        from the beginning. So rows may come again, and none is missing."""
        from burler.spark.source.options import parse
        from burler.spark.source.planning import find_stream

        found = find_stream(parse(self.options.given))
        _log.warning(
            "the query's spool %s is new: the tap goes on from %s",
            self.store.url,
            "the beginning" if state is None else "the state in the query's checkpoint",
        )

        def begin() -> Note:
            return Note(tap_name(found), found.declared.stream, sorted(found.declared.names))

        def change(note: Note) -> None:
            note.continued.append((end.generation, end.position.sequence))
            if self._is_hollow(note):
                note.states.clear()
                note.given_up = 0
            if state is not None and not note.states:
                note.add(Stated(None, 0, dict(state)))

        change_note(self.store, begin, change)

    def _is_continued(self, offset: Offset, note: Note) -> bool:
        return (offset.generation, offset.position.sequence) in [tuple(one) for one in note.continued]

    def _here(self, offset: Offset, note: Note) -> Offset:
        """The offset in this spool."""
        if self._is_continued(offset, note):
            return Offset(None, START)
        return replace(offset, state=None)
