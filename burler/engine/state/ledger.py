"""The state of a run: what it says of each family of streams, what is put into it as the run goes on, and when a STATE
is worth its line.

Whatever a run writes into its state document goes through the ``Ledger``, under the lock of the run. There is one state
for the whole run: each STATE says what is safe of all streams.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from burler.clock import Clock
from burler.engine.catalog.plan import Plan
from burler.engine.family import Family, Progress
from burler.engine.state.coverage import ChildCoverage
from burler.engine.state.ordered import OrderedPartitions
from burler.errors import StreamError
from burler.pipeline.lookback import before
from burler.singer import state as st
from burler.singer.bookmark_values import least
from burler.singer.messages import EncodedState

_BIG_STATE = 1024  # bytes of a STATE's value, from which on it is spaced between small streams
_TIMES = 4
_LATEST_SECONDS = 60.0
_SOON_SECONDS = 5.0  # the longest that such a STATE is put off
_OURS = {st.VERSION, *st.RESERVED}
_SDK = "replication_key_value"
_SHOWN = 3


class Ledger:
    """The state document of a run, and which of it is out.

    Args:
        state: what the run begins with; it is copied.
        always: a tail's, where each STATE covers what came since, also where it says the same.
        writes: False: a run that leaves rows out on purpose. Nothing is put into the state, and there is no STATE.

    Attributes:
        document: what is safe to say of all streams now.
        size: bytes of the last STATE's value; before the first one, of the state that the run was given.
        bytes_since: bytes of records since the last STATE.
        uncovered_since: when the first record went out that no STATE covers, by the clock; None if there is none.
        is_put_off: a stream has ended since the last STATE, and its STATE was put off.
    """

    def __init__(self, state: st.State | None, clock: Clock, *, always: bool = False, writes: bool = True) -> None:
        self.document = st.check_state(state)
        self._clock, self._always, self._writes = clock, always, writes
        self._work = self.document if writes else copy.deepcopy(self.document)
        given = msgspec.json.encode(self.document)
        # Where nothing comes in a tail, there is nothing to say (tail-mode proposal: "assuming 1 or more records").
        self._out: bytes | None = given if always else None
        self._out_at = clock.monotonic()
        self.size = len(given) if self.document else 0
        self.bytes_since = 0
        self.uncovered_since: float | None = None
        self._count = 0
        self.is_put_off = False

    # ---- the document ----------------------------------------------------------------------------------

    def family(self, family: Family, *, collapses: bool = True) -> FamilyState:
        """The part of one family.

        Args:
            collapses: False: of one partition alone, in a run that is a part of another one; it is there that those
                which rise collapse.
        """
        return FamilyState(self._work, family, collapses=collapses and self._writes)

    def note_syncing(self, stream: str | None) -> None:
        """Say which stream the run is in; None: none."""
        if self._writes:
            st.set_currently_syncing(self.document, stream)

    def place_of(self, streams: Collection[str]) -> bytes:
        """Where streams stand, to see whether they get on: what the state says, but for versions."""
        entries = [st.entry_of(self.document, name) for name in streams]
        return msgspec.json.encode([{key: entry[key] for key in entry if key != st.VERSION} for entry in entries])

    def take(self, streams: Collection[str], state: Mapping[str, Any]) -> bool:
        """Take over what another document says of streams; True if that is news."""
        changed = [name for name in streams if st.entry_of(state, name) != st.entry_of(self.document, name)]
        for name in changed:
            st.put_entry(self.document, name, st.entry_of(state, name))
        return bool(changed)

    def take_changes(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        """Take over what another program, which was given the state ``before``, has changed of it. Nothing is taken
        away: it may have left streams out that it was not shown."""
        for key, value in after.items():
            earlier = before.get(key)
            if key == "bookmarks" and isinstance(value, Mapping):
                earlier = earlier if isinstance(earlier, Mapping) else {}
                held = self.document.get(key)
                bookmarks = self.document[key] = held if isinstance(held, dict) else {}
                bookmarks.update((name, one) for name, one in value.items() if one != earlier.get(name))
            elif key != "currently_syncing" and value != earlier:
                self.document[key] = value

    def forget(self, streams: Collection[str]) -> None:
        """Take away what the state says of streams, but for the versions that targets have."""
        for name in streams:
            for key in [key for key in st.entry_of(self.document, name) if key != st.VERSION]:
                st.put(self.document, name, key, None)

    # ---- when a STATE comes ----------------------------------------------------------------------------

    def add(self, count: int) -> None:
        """So many bytes of records were written; 0 where nobody knows, as of a source's files."""
        self.bytes_since += count
        self.note()

    def note(self) -> None:
        """There is something that no STATE covers: a record, or what else a STATE would say anew."""
        if self.uncovered_since is None:
            self.uncovered_since = self._clock.monotonic()

    @property
    def is_small(self) -> bool:
        """Whether a STATE costs next to nothing."""
        return self.size <= _BIG_STATE

    def has_room(self) -> bool:
        """Whether the records since the last STATE outweigh its line: a big one several times, since making it takes
        time, too; in a slow stream, whether long enough has passed."""
        wanted = self.size if self.is_small else _TIMES * self.size
        late = self.uncovered_since is not None and self._seconds_since() >= _LATEST_SECONDS
        return late or self.bytes_since >= wanted

    def puts_off(self) -> bool:
        """Whether a STATE between two streams waits. Where there are thousands of small ones and the line is big, it
        does until the rows since the last one outweigh it or some time has passed; the run's last STATE always comes.
        """
        self.is_put_off = not (self.is_small or self.has_room() or self._seconds_since() >= _SOON_SECONDS)
        return self.is_put_off

    def _seconds_since(self) -> float:
        return self._clock.monotonic() - self._out_at

    def next_state(self, *, covers: bool = False) -> EncodedState | None:
        """A STATE that says what is safe, and goes out now; None: none is wanted, since the last one says
        the same. ``covers``: one is wanted all the same for rows that came since."""
        if not self._writes:
            return None
        self.is_put_off = False
        encoded = msgspec.json.encode(self.document)
        anyway = (self._always or covers) and self.uncovered_since is not None
        if encoded == self._out and not anyway:
            return None
        self._out, self.size = encoded, len(encoded)
        self._out_at, self.bytes_since, self.uncovered_since = self._clock.monotonic(), 0, None
        self._count += 1
        return EncodedState(encoded, self._count)

    @property
    def covering(self) -> int:
        """The number of the STATE that covers all that has come, which may be the next one; 0 where none comes."""
        return self._count + (self.uncovered_since is not None) if self._writes else 0


@dataclass(frozen=True, slots=True)
class Interrupted:
    """A full table that an earlier run has left unfinished: where it goes on (None: there is none), and the version of
    each stream that sends versions. Streams whose rows come in the same run go on under their own, or rows of theirs
    that are out would be dropped with the next ACTIVATE_VERSION."""

    value: Any = None
    versions: Mapping[str, int] = field(default_factory=dict)


class FamilyState:
    """The state's part of one family, in one run.

    Args:
        state: the document, changed in place.
        collapses: whether partitions that rise do.

    Attributes:
        interrupted: what an earlier run left unfinished, and this one goes on with.
        forgot: something was taken out of the state that can't be gone on with. A STATE without it must be out before
            rows that it does not speak of.
        coverage: what substreams have had; None where there are partitions.
        flat: the bookmark of each stream beside those of its partitions, as the run began.
    """

    def __init__(self, state: st.State, family: Family, *, collapses: bool) -> None:
        self.family, self._state = family, state
        self.interrupted = _interrupted(state, family)
        self.forgot = self.interrupted.value is None and self._forget_tables()
        self.coverage = None if family.is_partitioned else ChildCoverage(state, family)
        self.flat = flat_bookmarks(state, family)
        self._rising: OrderedPartitions | None = None
        if family.order is not None and collapses:
            self._rising = OrderedPartitions(state, family, family.order, self.flat.get(family.root))

    # ---- where it begins -------------------------------------------------------------------------------

    def start(self, partition: str | None) -> Start:
        """Where a call begins: the whole stream's, or a partition's."""
        return Start(self, self._state, partition)

    def forget_sources(self) -> bool:
        """Take away what was saved of sources: everything is to be fetched, and a run that ends half way must not leave
        it to the next one. True if there was something. Entries of other tools stay."""
        some = False
        for name in self.family.names:
            for key in (None, *st.partitions_of(self._state, name)):
                saved = st.value_of(self._state, name, st.SOURCES, key)
                listed = saved if isinstance(saved, list) else [saved]
                left = [entry for entry in listed if not isinstance(entry, dict) or "for" not in entry]
                if saved is not None and len(left) < len(listed):
                    st.put(self._state, name, st.SOURCES, left or None, key)
                    some = True
        return some

    def _forget_tables(self) -> bool:
        """A run that goes on from an older state would fill a version that targets have dropped."""
        stale = [name for name in self.family.names if st.value_of(self._state, name, st.FULL_TABLE) is not None]
        for name in stale:
            st.put(self._state, name, st.FULL_TABLE, None)
        return bool(stale)

    # ---- what it reaches -------------------------------------------------------------------------------

    def merge(self, progress: Progress) -> None:
        """Put in how far a call has come.

        Raises:
            UnsortedStreamError: one has come to its end, and partitions don't rise as declared.
        """
        self._put(progress)
        if self.coverage is not None:
            root = self.family.root
            self.coverage.note(progress.bookmarks.get(root), progress.positions.get(root))
        if self._rising is not None:
            self._rising.follow(progress)

    def finish(self) -> None:
        """All calls have come whole. A bookmark beside those of partitions, of a state from before there were any, is
        done with once each has its own; those that rise leave one behind."""
        family = self.family
        if self._rising is not None:
            self._rising.finish()
        elif family.is_partitioned and st.partitions_of(self._state, family.root):
            for name in family.selected:
                st.put(self._state, name, family.keys[name] or "", None)
            st.put(self._state, family.root, st.COVERS, None)

    def bookmark(self, name: str) -> Any:
        """The bookmark of a stream, beside those of its partitions."""
        return st.value_of(self._state, name, self.family.keys.get(name))

    # ---- versions of full tables -----------------------------------------------------------------------

    def version(self, name: str) -> int | None:
        """The version of a stream that counts: of the last whole table."""
        return st.get_version(self._state, name)

    def has_progress(self, name: str) -> bool:
        """Whether the state says anything of a stream but which whole tables were begun and ended."""
        return bool(set(st.entry_of(self._state, name)) - {st.FULL_TABLE, st.VERSION, st.PARENT_BOOKMARK})

    def put_version(self, name: str, version: int) -> None:
        """A whole table counts from here on."""
        st.put(self._state, name, st.VERSION, version)

    def _put(self, progress: Progress) -> None:
        family, state, partition = self.family, self._state, progress.partition.key
        for name, bookmark in progress.bookmarks.items():
            if name == family.root and family.resume_key is not None:
                self._put_table(progress, bookmark)
            elif name in family.selected or partition is not None:
                st.put(state, name, family.keys[name] or "", bookmark, partition)
        for name, position in progress.positions.items():
            if name != family.root or self.coverage is None or self.coverage.saves_position:
                st.put(state, name, st.POSITION, copy.deepcopy(position) if position else None, partition)
        for name, entries in progress.sources.items():
            st.put(state, name, st.SOURCES, list(entries) or None, partition)
        # It speaks of the bookmark that it is beside: where this run moves none, it stays.
        moves = partition is not None and family.has_substreams and family.root in progress.bookmarks
        if moves and st.entry_of(state, family.root, partition):
            st.put(state, family.root, st.COVERS, family.covers, partition)

    def _put_table(self, progress: Progress, bookmark: Any) -> None:
        """Note where a full table goes on if this run does not come to its end; nothing once it has."""
        family = self.family
        is_done = bookmark is None or progress.is_complete
        for name in family.names:
            entry: dict[str, Any] = {}
            if name in progress.versions:
                entry[st.VERSION] = progress.versions[name]
            if name == family.root:
                entry[family.resume_key or ""] = bookmark
                if family.covers is not None:
                    entry[st.COVERS] = family.covers
            st.put(self._state, name, st.FULL_TABLE, None if is_done or name not in family.selected else entry or None)


class Start:
    """The beginning of one call. Partitions that have no bookmark begin at the streams' own, as it was when the run
    began.

    Attributes:
        afresh: the root must not see what it has saved: some stream that is wanted has not had what lies before it.
        resume_value: where an interrupted full table goes on; None if it begins anew.
    """

    def __init__(self, of: FamilyState, state: st.State, partition: str | None) -> None:
        self._family, self._state, self._partition = of.family, state, partition
        self._entries: dict[str, dict[str, Any]] = {}
        self._flat, self._coverage, self.resume_value = of.flat, of.coverage, of.interrupted.value
        if self._coverage is not None:
            self.afresh, self._behind = self._coverage.afresh, self._coverage.behind
        else:  # what the state says of this partition is not true of all streams that are wanted now
            entry = self._entry(of.family.root) if of.family.has_substreams else {}
            self.afresh = bool(entry) and not of.family.selected <= st.covers_of(entry, of.family.root)
            self._behind = set(of.family.names) if self.afresh else set()

    def _entry(self, name: str) -> dict[str, Any]:
        """What the state says of a stream where this call begins, looked up once."""
        if name not in self._entries:
            self._entries[name] = st.entry_of(self._state, name, self._partition)
        return self._entries[name]

    def saved(self, name: str) -> Any:
        """The bookmark of a stream, as it stands in the state."""
        if name in self._behind:
            return None
        if name == self._family.root and self._coverage is not None:
            return self._coverage.start
        value = self._entry(name).get(self._family.keys.get(name) or "")
        if value is None and self._partition is not None:
            return self._flat.get(name)
        return value

    def bookmark(self, name: str, first: str | None) -> Any:
        """What the author sees as ``stream.bookmark``.

        Args:
            first: with which a stream begins that has none (``start_date``).

        Raises:
            StreamError: a bookmark has no room for a lookback; it can't be compared with that of a substream.
        """
        family = self._family
        if name == family.root and family.resume_key is not None:
            return self.resume_value
        if family.keys.get(name) is None:
            return None
        saved = self.saved(name)
        if saved is not None:
            saved = self._rolled_up(name, saved)
        return first if saved is None else self._looked_back(name, saved)

    def _looked_back(self, name: str, saved: Any) -> Any:
        lookback = self._family.lookbacks.get(name)
        if lookback is None:
            return saved
        return before(saved, lookback, stream=name, textual=self._family.key_formats.get(name))

    def _rolled_up(self, stream: str, saved: Any) -> Any:
        """The oldest of a stream's bookmark and those of substreams below it that roll up, less their lookback."""
        family, values = self._family, [saved]
        below = sorted(family.rollups & family.below(stream) - {stream}) if family.rollups else []
        if not below:
            return saved
        for name in below:
            value = self._entry(name).get(family.keys.get(name) or "")
            values.append(self._looked_back(name, value))
        if None in values:
            return None
        oldest = least(values, family.key_formats.get(stream))
        if oldest is None:
            raise StreamError(
                stream,
                f"stream '{stream}': its bookmark and those of its substreams with rollup=True are of different kinds: "
                f"{values!r:.200}. Leave rollup out, or give them keys of one kind.",
            )
        return oldest

    def position(self, name: str) -> dict[str, Any]:
        """A copy of what a stream has saved in ``stream.state``."""
        if name == self._family.root:
            if self.afresh:
                return {}
            if self._coverage is not None and self._coverage.position is not None:
                return self._coverage.position
        found = self._entry(name).get(st.POSITION)
        return copy.deepcopy(found) if isinstance(found, dict) else {}

    def sources(self, name: str) -> Any:
        """What the state holds of a stream's sources."""
        return self._entry(name).get(st.SOURCES)


def flat_bookmarks(state: Mapping[str, Any], family: Family) -> dict[str, Any]:
    """The flat bookmark of each stream of a family; none where some stream that is wanted has not had what lies before
    it."""
    root, key = family.root, family.key
    found = {name: st.value_of(state, name, family.keys.get(name)) for name in (*family.selected, root)}
    if not family.has_substreams:
        return found
    covered = st.covers_of(st.entry_of(state, root), root)
    if key is not None and found[root] is not None and not isinstance(st.value_of(state, root, st.COVERS), list):
        # Without partitions each substream notes how far its parent had come.
        covered.update(
            name for name in family.names if st.value_of(state, name, st.PARENT_BOOKMARK) == {key: found[root]}
        )
    return found if family.selected <= covered else dict.fromkeys(found)


def _interrupted(state: st.State, family: Family) -> Interrupted:
    """What an earlier run left unfinished, unless what is out can't be gone on with: a stream is wanted now that was
    not, or the version of the rows before is not known, or no longer the newest."""
    key, found = family.resume_key, st.value_of(state, family.root, st.FULL_TABLE)
    if key is None or not isinstance(found, dict) or found.get(key) is None:
        return Interrupted()
    if not family.selected <= st.covers_of(found, family.root):
        return Interrupted()
    versions: dict[str, int] = {}
    for name in family.tables:
        entry = st.value_of(state, name, st.FULL_TABLE)
        version = entry.get(st.VERSION) if isinstance(entry, dict) else None
        if not isinstance(version, int) or isinstance(version, bool) or version <= (st.get_version(state, name) or 0):
            return Interrupted()
        versions[name] = version
    return Interrupted(found[key], versions)


def unread(plan: Plan, state: Mapping[str, Any]) -> Iterator[str]:
    """A sentence for each stream with a bookmark of which the state holds something, but not under a name that burler
    reads: a state of the Singer SDK, or of a tap that named its bookmark otherwise. One for a state that
    knows no stream of the tap.
    """
    there = list(state.get("bookmarks") or ())
    if there and not any(name in plan.specs for name in there):
        yield (
            f"the state holds {_some(there)} and no stream of this tap: every stream begins anew. Is it the state of "
            "another tap?"
        )
    for stream in plan.streams:
        key = stream.bookmark_key
        entry = st.entry_of(state, stream.tap_stream_id)
        strange = sorted(set(entry) - _OURS)
        if key is None or key in entry or not strange or entry.keys() & {st.PARTITIONS, st.POSITION}:
            continue
        yield (
            f"stream '{stream.tap_stream_id}': the state holds {_some(strange)} of it and no '{key}', so the stream "
            "begins anew."
            + (
                " The Singer SDK writes such states; its page in the docs converts them."
                if _SDK in entry
                else f" If one of these is its bookmark, name it '{key}' in the state."
            )
        )


def _some(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
