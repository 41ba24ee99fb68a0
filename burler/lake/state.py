"""The state of a tap, beside its data: ``raw/<tap_id>/state.json``.

::

    {"type": "STATE", "value": {"bookmarks": {...}}, "format": 1, "config": {"account": "1f3a9c02", ...},
     "writer-id": "...", "written": "2024-01-02T12:00:00.000000Z"}

It is a STATE message with more keys: ``--state`` takes the file as it is. It is written by compare-and-swap behind the
commits that it covers, so it is never ahead of them: where a run is killed between the two, rows come again. A run
replaces the entries (of streams, of their partitions) that it ran, and leaves the others. Where one of its own entries
was changed meanwhile, another run is at the same streams: this one ends once it has the lock of such a stream, before a
row of it (``StateKeeper.check``), at the latest before its next STATE (``StateKeeper.save``). ``state.previous.json``
is how it was before the last run that changed it. In the model of ``tests/lake/model`` this is ``keep_swap``.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from burler import times
from burler.clock import Clock
from burler.config.fingerprint import Fingerprint
from burler.errors import LakeError, LockLost, StateError
from burler.lake import layout
from burler.lake.locks import new_writer_id
from burler.lake.store import parse_json, swap
from burler.singer.messages import encode
from burler.singer.state import PARTITIONS, VERSION, parse_state
from burler.storage.base import Store

FORMAT = 1
_OURS = ("type", "value", "format", "config", "writer-id", "written")
_BOOKMARKS, _SYNCING = "bookmarks", "currently_syncing"
_GONE = object()

EntryPath = tuple[str, ...]
"""``("bookmarks", stream)`` for what is said of a stream but for its partitions, ``("bookmarks", stream, partition)``,
or another key of a state alone."""


@dataclass(frozen=True, slots=True)
class StoredState:
    """What a ``state.json`` says.

    ``value``: of the state, without ``currently_syncing``; every digit as it is written. ``config``: the hashes of the
    config of the last run (``Fingerprint``); None: of any config. ``more``: keys that this burler does not know.
    """

    value: dict[str, Any] = field(default_factory=dict)
    config: dict[str, str | None] | None = None
    writer_id: str | None = None
    written: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_bytes(cls, data: bytes, place: str) -> StoredState:
        """From a file.

        Args:
            place: what is named if it is none.

        Raises:
            StateError: it is none, or of a newer burler.
        """
        try:
            wire = parse_json(data, place)
        except LakeError:
            wire = {}
        value, config = wire.get("value"), wire.get("config")
        if not isinstance(value, dict) or not isinstance(config, dict | None):
            raise StateError(
                f"{place} is no state. The one before it may be in {layout.PREVIOUS_STATE} beside it: "
                "burler state set LAKE --tap-id ID < FILE, or begin anew: burler state reset LAKE --tap-id ID"
            )
        if wire.get("format", FORMAT) != FORMAT:
            raise StateError(f"{place} has format {wire['format']}. Upgrade burler to go on from it.")
        more = {key: kept for key, kept in wire.items() if key not in _OURS}
        texts = {key: said for key in ("writer-id", "written") if isinstance(said := wire.get(key), str)}
        return cls(value, config, texts.get("writer-id"), texts.get("written"), more)

    def start(self, place: str) -> dict[str, Any]:
        """The state that a run goes on from.

        Args:
            place: what is named if it is none.

        Raises:
            StateError: it is none.
        """
        return parse_state(self.to_bytes(), source=place)

    def to_bytes(self) -> bytes:
        """As it stands in the lake."""
        wire = {
            "type": "STATE",
            "value": self.value,
            "format": FORMAT,
            "config": self.config,
            "writer-id": self.writer_id,
            "written": self.written,
            **self.more,
        }
        return msgspec.json.format(encode(wire), indent=1) + b"\n"


class LakeState:
    """The state of one tap in a lake."""

    def __init__(self, store: Store, tap_id: str, *, clock: Clock | None = None) -> None:
        self.store, self.tap_id, self._clock = store, tap_id, clock or Clock()
        self.path = layout.state_path(tap_id)

    @property
    def place(self) -> str:
        """Its file, as people find it."""
        return self.store.locate(self.path)

    def read(self) -> StoredState | None:
        """What it says; None where there is none.

        Raises:
            StateError: it can't be read.
        """
        blob = self.store.read(self.path)
        return None if blob is None else StoredState.from_bytes(blob.data, self.place)

    def start(self) -> dict[str, Any] | None:
        """The state that a run goes on from; None where there is none.

        Raises:
            StateError: it can't be read.
        """
        stored = self.read()
        return None if stored is None else stored.start(self.place)

    def change(
        self,
        change: Callable[[StoredState | None, bool], StoredState],
        *,
        mend: bool = False,
        previous: bool = True,
        writer_id: str | None = None,
    ) -> StoredState:
        """Compare-and-swap; what stands there then. Not written where nothing changes.

        Args:
            change: gets what is there, and whether an earlier try may have been written.
            mend: what is there need not be a state.
            previous: keep what is there as ``state.previous.json``.

        Raises:
            StateError: what is there can't be read. StorageError: the store fails.
        """
        done: list[StoredState] = []

        def changed(data: bytes | None, again: bool) -> bytes | None:
            try:
                there = None if data is None else StoredState.from_bytes(data, self.place)
            except StateError:
                if not mend:
                    raise
                there = None
            new = change(there, again)
            if there is not None and (new.value, new.config) == (there.value, there.config):
                done[:] = [there]
                return None
            if there is not None and previous:
                swap(self.store, layout.previous_state_path(self.tap_id), lambda *_: data, clock=self._clock)
            done[:] = [replace(new, writer_id=writer_id, written=times.format_time(self._clock.now()))]
            return done[0].to_bytes()

        swap(self.store, self.path, changed, clock=self._clock)
        return done[0]


class StateKeeper:
    """Keeps the state of one run in the lake: ``save`` is called with each STATE, once what it covers is committed.

    Args:
        begun: what the lake had as the run began; None: nothing.
        start: the state that the run was given; None: by nobody that we know, as of a tap in a pipe. Then the newest
            state counts, whoever else writes.
        fingerprint: of the run's config.
        refreshed: streams that are read anew: what the lake has of them is not left. None: all that run.
        replaces: what the lake has is of another source, and nothing of it is left.

    Attributes:
        writer_id: names the run.
    """

    def __init__(
        self,
        state: LakeState,
        *,
        begun: StoredState | None = None,
        start: Mapping[str, Any] | None = None,
        fingerprint: Fingerprint | None = None,
        refreshed: Collection[str] | None = (),
        replaces: bool = False,
    ) -> None:
        self.state, self.writer_id = state, new_writer_id()
        begun = begun or StoredState()
        # What this run has read or written itself: an entry that is another one now was changed by somebody else.
        self._known, self._config, self._fingerprint = _entries(begun.value), begun.config, fingerprint
        self._is_run, self._refreshed, self._replaces = start is not None, refreshed, replaces
        self._said = _entries(_exact(start or {}))
        self._goes_on = frozenset[str]()
        if begun.writer_id is not None and fingerprint is not None:
            self._goes_on = frozenset(
                path[1]
                for path, entry in self._said.items()
                if len(path) > 1
                and entry == self._known.get(path)
                and isinstance(entry, dict)
                and set(entry) - {VERSION}
            )
        self._ran: Collection[str] = ()
        self._unseen: Collection[str] = ()
        self._is_first, self._has_written, self._looked = True, False, ""

    def runs(self, streams: Collection[str], *, unseen: Collection[str] = ()) -> None:
        """The streams whose rows the run brings, by their names in the state: their entries are its own.

        Args:
            unseen: streams that it reads for their substreams alone. What it was given of them need not be true of this
                lake, which gets none of their rows.
        """
        self._ran, self._unseen = frozenset(streams), frozenset(unseen)

    def goes_on(self, stream: str) -> bool:
        """Whether the run goes on behind rows of a stream, by what a run before it has left in the lake; not by what
        somebody has set there, nor where nobody knows what a state says, as of a tap that is not burler's."""
        return stream in self._goes_on

    def check(self) -> None:
        """Look whether another run has changed what this one runs: once the lock of a stream is ours, before the first
        row of it. Who had it before has saved its state by then.

        Raises:
            LockLost: so it is. StateError, StorageError: the state can't be read.
        """
        blob = self.state.store.read(self.state.path) if self._is_run else None
        if blob is None or blob.tag == self._looked:
            return
        there = StoredState.from_bytes(blob.data, self.state.place)
        held = _entries(there.value)
        own = {path for path in {**held, **self._known} if len(path) > 1 and path[1] in self._ran}
        self._check(there, held, dict.fromkeys(own), again=False)
        self._looked = blob.tag

    def save(self, value: Mapping[str, Any]) -> None:
        """Put a state into the lake. All that it covers has been committed.

        Raises:
            LockLost: another run has changed what this one runs: the state is not written.
            StateError, StorageError: it can't be.
        """
        now = _entries(_exact(value))
        edits = self._edits(now)

        def changed(there: StoredState | None, again: bool) -> StoredState:
            there = there or StoredState()
            held = _entries(there.value)
            if self._is_run:
                self._check(there, held, edits, again)
            wanted = {**held, **edits}
            config = there.config if self._fingerprint is None else self._fingerprint.hashes(self._config)
            return replace(
                there, value=_document({key: one for key, one in wanted.items() if one is not _GONE}), config=config
            )

        stored = self.state.change(changed, previous=not self._has_written, writer_id=self.writer_id)
        self._config, self._has_written = stored.config, stored.writer_id == self.writer_id
        self._known.update(edits)
        self._said, self._is_first = now, False

    def _edits(self, now: Mapping[EntryPath, Any]) -> dict[EntryPath, Any]:
        """The entries that the run puts into the lake, and those that it takes away."""
        paths = {**now, **self._said}
        edits = {path: now.get(path, _GONE) for path in paths if now.get(path, _GONE) != self._said.get(path, _GONE)}
        if not self._is_first or not self._is_run:
            return edits
        # The first one: where the run was given another state than the lake's, its own entries take the place of these.
        for path in {**self._known, **now}:
            is_own = path[0] != _BOOKMARKS or (len(path) > 1 and path[1] in self._ran)
            if path in now:
                if is_own:
                    edits[path] = now[path]
            elif self._is_refreshed(path) or (is_own and len(path) == 2):
                edits[path] = _GONE
        return edits

    def _is_refreshed(self, path: EntryPath) -> bool:
        refreshed = {*self._ran, *self._unseen} if self._refreshed is None else self._refreshed
        return self._replaces or (len(path) > 1 and path[1] in refreshed)

    def _check(
        self, there: StoredState, held: Mapping[EntryPath, Any], edits: Mapping[EntryPath, Any], again: bool
    ) -> None:
        """Whether the entries are still those that this run knows (or, with ``again``, has written itself: the answer
        may have been lost)."""
        for path, new in edits.items():
            found = held.get(path, _GONE)
            if found != self._known.get(path, _GONE) and not (again and found == new):
                what = f"of stream '{path[1]}'" if len(path) > 1 else f"('{path[0]}')"
                raise LockLost(
                    f"{self.state.place}: the state {what} was changed meanwhile: another run of "
                    f"'{self.state.tap_id}' writes it, too, or somebody has set it.\nThis one stops; what it has "
                    "committed stays, and comes again. Have one run of a stream at a time."
                )
        if self._fingerprint is None or there.config in (None, self._config):
            return
        if keys := self._fingerprint.differing(there.config or {}):
            raise LockLost(
                f"{self.state.place}: a run with another config has written it meanwhile (other: {_listed(keys)}). "
                "This one stops. Give each config a --tap-id of its own."
            )


def differing_config(state: LakeState, stored: StoredState, fingerprint: Fingerprint) -> str | None:
    """What is to be said where a lake has a tap's rows from another config; None where it does not."""
    keys = [] if stored.config is None else fingerprint.differing(stored.config)
    if not keys:
        return None
    return (
        f"{state.store.url} holds '{state.tap_id}' from another config: {_listed(keys)} "
        f"{'differs' if len(keys) == 1 else 'differ'}. Another source needs a --tap-id of its own; --full-refresh "
        f"reads all anew.\nThe same source all the same: burler state accept {shlex.quote(state.store.url)} "
        f"--tap-id {shlex.quote(state.tap_id)}"
    )


def _listed(keys: list[str]) -> str:
    shown = ", ".join(f"'{key}'" for key in keys[:5])
    return f"{shown}, ..." if len(keys) > 5 else shown


def _exact(value: Mapping[str, Any]) -> dict[str, Any]:
    """A state as it is read from a file: so that numbers compare alike."""
    return parse_json(encode(value), "the state")


def _entries(value: Mapping[str, Any]) -> dict[EntryPath, Any]:
    """A state by its entries, without ``currently_syncing``."""
    found: dict[EntryPath, Any] = {}
    for key, held in value.items():
        if key == _SYNCING:
            continue
        if key != _BOOKMARKS or not isinstance(held, dict):
            found[key,] = held
            continue
        for stream, entry in held.items():
            parts = entry.get(PARTITIONS) if isinstance(entry, dict) else None
            if not isinstance(parts, dict):
                found[key, stream] = entry
                continue
            flat = {name: one for name, one in entry.items() if name != PARTITIONS}
            if flat or not parts:
                found[key, stream] = flat
            found.update(((key, stream, part), one) for part, one in parts.items())
    return found


def _document(entries: Mapping[EntryPath, Any]) -> dict[str, Any]:
    """The state of such entries."""
    value: dict[str, Any] = {}
    for path, entry in sorted(entries.items(), key=lambda one: len(one[0])):
        if len(path) == 1:
            value[path[0]] = entry
            continue
        bookmarks = _object(value, _BOOKMARKS)
        if len(path) == 2:
            bookmarks[path[1]] = dict(entry) if isinstance(entry, dict) else entry
        else:
            _object(_object(bookmarks, path[1]), PARTITIONS)[path[2]] = entry
    return value


def _object(value: dict[str, Any], key: str) -> dict[str, Any]:
    """The object at a key: a new one where there is none, but null or what else a tap in a pipe has said."""
    found = value.get(key)
    if not isinstance(found, dict):
        found = value[key] = {}
    return found
