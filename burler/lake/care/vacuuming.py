"""``burler lake vacuum``: remove what nothing has referred to for a long time.

A manifest and the files were one before a file may go: the files are listed first, then the manifest is read, and what
goes is compared with the manifest once more while that is changed. Where there is no manifest, or a
broken one, every data file counts and none is removed.
"""

from __future__ import annotations

import datetime as dt
import errno
import math
import secrets
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal

from burler import times
from burler.errors import LakeError, StorageError, UsageError
from burler.lake import manifest as doc
from burler.lake import replaced
from burler.lake.care.inventory import Listing, StreamListing, listed, look
from burler.lake.datafile import DamagedFile
from burler.lake.lake import Lake, StreamFolder
from burler.lake.layout import SortKey, sort_key
from burler.lake.snapshot import Snapshot
from burler.lake.store import swap
from burler.storage.base import Conflict, OutcomeUnknown, Store, StoredFile

OLDER_THAN_SECONDS = 7 * 86_400.0

Reason = Literal["replaced", "orphan", "unfinished", "leftover", "lock"]
_OLD_NOTE_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class Unreferenced:
    """A file that ``vacuum`` removed, or would: its path in the lake, size as stored, why, and for how long nothing
    has referred to it."""

    path: str
    size_bytes: int
    reason: Reason
    age_seconds: float


@dataclass(frozen=True, slots=True)
class Vacuum:
    """What ``vacuum`` removed, or would have (``removed`` False). ``problems``: what was left alone, and why: data
    files of streams whose manifest can't be read or changed, and damaged files. ``younger``: how many files nothing
    refers to, but not for long enough."""

    files: tuple[Unreferenced, ...]
    removed: bool
    problems: tuple[str, ...] = ()
    younger: int = 0

    @property
    def size_bytes(self) -> int:
        """Of all of them, as stored."""
        return sum(file.size_bytes for file in self.files)


def vacuum(
    store: Store,
    *,
    taps: Sequence[str] | None = None,
    streams: Sequence[str] | None = None,
    older_than_seconds: float = OLDER_THAN_SECONDS,
    yes: bool = False,
    now: Callable[[], float] = time.time,
) -> Vacuum:
    """Find, and with ``yes`` remove, files that nothing refers to: replaced ones, orphans, leftovers of killed
    processes, locks that nobody renews.

    Args:
        older_than_seconds: for how long nothing has referred to them: since their last change and, for replaced
            files, since they were replaced. It must be longer than any read of the lake, and than files stay open.
        now: seconds since 1970, by the store's clock.

    Raises:
        UsageError: no such tap or stream, or an age below 0. StorageError: the store fails; what was removed until then
            stays so.
    """
    if not older_than_seconds >= 0:
        raise UsageError(f"vacuum needs an age of 0 seconds or more, not {older_than_seconds!r}.")
    lake, whole = Lake(store), taps is None and streams is None
    if yes:
        lake.warn_if_alone("vacuum")
    listings, elsewhere = listed(store, lake.folders(taps=taps, streams=streams), whole=whole, now=now())
    sweep = _Sweep(older_than_seconds, yes)
    # First what needs no change of a manifest: on a full disk there may be no room for that yet.
    for listing in (*listings, elsewhere):
        sweep.others(listing)
    full = [listing for listing in listings if not sweep.data(listing, is_last=False)]
    for listing in full:  # there may be room by now
        sweep.data(listing, is_last=True)
    problems = list(sweep.problems)
    if sweep.ageless:
        problems.append(
            f"Left alone: files that nothing refers to ({len(sweep.ageless):,}, such as "
            f"{store.locate(min(sweep.ageless))}). The store does not say when they were written, so none of them is "
            "old. Remove by hand what no run needs"
        )
    return Vacuum(tuple(sweep.found.values()), yes, tuple(problems), len(sweep.younger))


class _Sweep:
    """What one vacuum has found so far.

    Attributes:
        found: what is removed, or would be, by its path.
        problems: why other files stay, once each. ageless: paths of files that nothing refers to, of no known age.
        younger: paths of those that nothing has referred to for a shorter time.
    """

    def __init__(self, older_than: float, yes: bool) -> None:
        self._older_than, self._yes = older_than, yes
        self.found: dict[str, Unreferenced] = {}
        self.problems: dict[str, None] = {}
        self.ageless: set[str] = set()
        self.younger: set[str] = set()

    def others(self, listing: Listing) -> None:
        """Hidden leftovers, notes of compacted files that are not there, dead locks."""
        notes = {replaced.note_path(path) for path in listing.files if replaced.is_compacted(path)}
        loose = (one for path, one in listing.files.items() if path.endswith(replaced.SUFFIX) and path not in notes)
        for file in self._old((file, "leftover", listing.age(file)) for file in (*listing.unfinished(), *loose)):
            if self._yes:
                listing.store.remove(file.path)
            self.found[file.path] = file
        dead = {lock.file.path: lock for lock in listing.locks if lock.dead is not None}
        for file in self._old((lock.file, "lock", lock.age) for lock in dead.values()):
            try:
                if self._yes:
                    listing.store.delete(file.path, tag=dead[file.path].blob.tag)
            except (Conflict, OutcomeUnknown):  # it was renewed or taken over just now
                continue
            self.found[file.path] = file

    def data(self, stream: StreamListing, *, is_last: bool) -> bool:
        """Data files of a stream that nothing refers to; whether there was room to change its manifest.

        Args:
            is_last: it is not tried again: no room is a problem.
        """
        data: list[Unreferenced] = []
        has_room = True
        try:
            snapshot = stream.place.read_manifest()
            if snapshot is None:
                return True
            for file in self._old(_unlisted(stream, snapshot)):
                if (why := _why_kept(stream, file)) is not None:
                    self.problems[why] = None
                else:
                    data.append(file)
            gone = _taken_away(stream, snapshot, data) if self._yes else {file.path for file in data}
        except LakeError as error:
            self.problems[str(error)] = None
            return True
        except StorageError as error:
            if not _is_full(error):
                raise
            has_room, gone = False, _room_made(stream, data)
            if is_last:
                self.problems[str(error)] = None
        self.found |= {file.path: file for file in data if file.path in gone}
        return has_room

    def _old(self, files: Iterable[tuple[StoredFile, Reason, float]]) -> Iterator[Unreferenced]:
        """Those of files (why nothing refers to it, and for how long) that may go."""
        for file, reason, age in files:
            if age == -math.inf:
                self.ageless.add(file.path)
            elif age < self._older_than:
                self.younger.add(file.path)
            if age >= self._older_than:
                yield Unreferenced(file.path, file.size_bytes, reason, age)


def _unlisted(stream: StreamListing, snapshot: Snapshot) -> Iterator[tuple[StoredFile, Reason, float]]:
    """Data files that the manifest does not list, with their ages."""
    listed, since = {file.path for file in snapshot.files}, stream.replaced(snapshot)
    if stream.notes.broken:
        raise next(iter(stream.notes.broken.values()))
    for path, file in stream.data.items():
        if path in listed:
            continue
        if path in since:
            yield file, "replaced", stream.now - max(file.modified, since[path])
        elif not stream.awaits_commit(file):
            yield file, "unfinished" if path in stream.notes.good else "orphan", stream.age(file)


def _why_kept(stream: StreamListing, file: Unreferenced) -> str | None:
    """Why a file stays although no manifest names it: it may hold rows that nothing else holds.

    A writer that ended before its commit leaves whole files, and its rows came again. What is damaged was a file that
    counted once, and that ``rebuild`` left out.
    """
    if file.reason == "replaced":
        return None
    place = stream.place
    seen = look(place.store, file.path)
    if isinstance(seen, DamagedFile):
        return None if seen.damage == "missing" else f"Left alone, and in no manifest: {seen}"
    note = stream.notes.good.get(file.path)
    if note is None or any(place.path(name) in stream.files for name in note.through):
        return None
    parts = [name for name in note.replaces if not is_gone(name)]  # none: vacuum took them away, so it was listed once
    if parts and all(place.path(name) in stream.files for name in parts):
        return None
    return (
        f"Left alone: {place.store.locate(file.path)} is in no manifest, and files that it was made from are gone. "
        f"Take it in: burler lake rebuild {place.store.url}"
    )


def _taken_away(stream: StreamListing, snapshot: Snapshot, data: Sequence[Unreferenced]) -> set[str]:
    """Remove files, and have the manifest and its notes forget them; their paths."""
    _mend_notes(stream, snapshot)
    by_hand = (file.path for file in snapshot.replaced if file.path not in stream.files)
    names = [stream.place.name(path) for path in (*(file.path for file in data), *by_hand)]
    return set(map(stream.place.path, remove_unlisted(stream.place, names, now=stream.now) if names else ()))


def _mend_notes(stream: StreamListing, snapshot: Snapshot) -> None:
    """What a killed vacuum left to do: notes that name files which are gone, or newer files of the same name."""
    place, listed = stream.place, {file.path for file in snapshot.files}
    for file in snapshot.files:
        note, there = stream.notes.good.get(file.path), stream.files.get(replaced.note_path(file.path))
        if note is None or there is None or stream.age(there) < _OLD_NOTE_SECONDS:
            continue
        parts = (file.stats.replaces if file.stats else None) or {}
        names = {*note.replaces, *note.through}
        again = {name for name in names if place.path(name) in listed and name not in parts}
        gone = {name for name in names if place.path(name) not in stream.files}
        if again or gone:
            forget(place, file.path, again | gone)


def _room_made(stream: StreamListing, data: Sequence[Unreferenced]) -> set[str]:
    """Remove replaced files while there is no room to change the manifest; their paths.

    As if they were removed by hand: until the manifest can be changed it goes on naming them, so that no commit takes
    one in and no writer gives its name again. Their rows stand in a file that is listed, which is read to its end
    first: a rebuild that runs meanwhile finds it whole, too, and takes none of its parts. An orphan stays: without a
    word in the manifest, a writer that still lives could commit it when it is gone.
    """
    place, freed = stream.place, set[str]()
    snapshot = place.read_manifest()
    if snapshot is None:
        return freed
    old = {file.path for file in data if file.reason == "replaced"} & {file.path for file in snapshot.replaced}
    for file in snapshot.files:
        stats = file.stats
        parts = old & set(map(place.path, (stats.replaces if stats else None) or ()))
        seen = look(place.store, file.path) if parts else None
        if stats is None or seen is None or isinstance(seen, DamagedFile) or seen.stats.records != stats.records:
            continue
        for path in sorted(parts):
            place.store.remove(path)
            freed.add(path)
    return freed


def _is_full(error: StorageError) -> bool:
    cause = error.__cause__ or error.__context__
    return isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT)


_AT_ONCE = 8
GONE = "~"
"""No file of a lake has a name that begins so."""
_REMEMBERED_SECONDS = 90 * 86_400.0


def remove_unlisted(place: StreamFolder, names: Iterable[str], *, now: float) -> list[str]:
    """Remove data files that the manifest does not list now; the names of those that went.

    First the manifest says, by compare-and-swap, which names will go (``removed``); a commit of one of them is refused
    from then on, and a rebuild that read the manifest before must read it again. Then they go.

    Args:
        names: relative to the stream's folder.
        now: seconds since 1970.

    Raises:
        LakeError: the manifest is broken or gone; nothing is removed. StorageError: the store fails.
    """
    store, wanted = place.store, list(dict.fromkeys(names))
    mark = secrets.token_hex(16)
    going: list[str] = []
    compacted: list[str] = []

    def change(document: doc.Document) -> bool:
        listed = set(document["files"])
        compacted[:] = [name for name in listed if replaced.is_compacted(name)]
        going[:] = [name for name in wanted if name not in listed]
        if going:
            _note(document, going, now)
            sequence = document["sequence"]
            doc.add_commit(document, mark)
            document["sequence"] = sequence  # no data is added
        return bool(going)

    place.change(change, mark=mark)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for _ in pool.map(store.remove, map(place.path, going)):
            pass
    for name in going:
        if replaced.is_compacted(name):  # after the file: without its note that would count beside its parts
            store.remove(replaced.note_path(place.path(name)))
    # Last of all: as long as a part is there it must not count, and once it is gone its name may be used again.
    gone = set(going)
    for name in compacted:
        forget(place, place.path(name), gone)
    return going


def _note(document: doc.Document, going: list[str], now: float) -> None:
    """Forget what is known of files that go, and have nobody commit them any more."""
    committed, stats = replaced_names(document), document["file_stats"]
    removed = dict(document.get("removed") or {})
    written, oldest = (_time(moment) for moment in (now, now - _REMEMBERED_SECONDS))
    for name in [name for name, when in removed.items() if str(when) < oldest]:
        del removed[name]
    for name in going:
        stats.pop(name, None)
        if name not in committed:  # what was committed once is not committed again
            removed[name] = written
    if removed or "removed" in document:
        document["removed"] = removed
    gone = set(going)
    for name in document["files"]:
        parts = (stats.get(name) or {}).get("replaces")
        if parts:
            stats[name]["replaces"] = pruned(parts, gone)


def replaced_names(document: doc.Document) -> set[str]:
    """Files whose rows stand in a compacted file that the manifest lists."""
    stats = document["file_stats"]
    return {part for name in document["files"] for part in (stats.get(name) or {}).get("replaces") or ()}


def pruned(parts: dict[str, int], going: Collection[str]) -> dict[str, int]:
    """What a compacted file replaces, less files that are gone.

    The first and the last in replay order stay: they say how much of it a reader has who has read up to some commit,
    and where it stands. They get a mark, since a later file may have the same name.
    """

    def place(name: str) -> tuple[int, SortKey]:
        return parts[name], sort_key(name)

    here = {name: number for name, number in parts.items() if name not in going and not is_gone(name)}
    ends = {min(parts, key=place), max(parts, key=place)} - here.keys()
    return {**{_marked(name): parts[name] for name in sorted(ends, key=place)}, **here}


def _marked(name: str) -> str:
    folder, slash, file = name.rpartition("/")
    return name if is_gone(name) else f"{folder}{slash}{GONE}{file}"


def is_gone(name: str) -> bool:
    """Whether a name among those that a compacted file replaces is of a file that was removed."""
    return name.rpartition("/")[2].startswith(GONE)


def forget(place: StreamFolder, path: str, names: Collection[str]) -> None:
    """Have the note beside the compacted file at ``path`` no longer name files that are gone."""
    note_path = replaced.note_path(path)

    def changed(data: bytes | None, _again: bool) -> bytes | None:
        if data is None:
            return None
        note = replaced.from_bytes(data, place.store.locate(note_path))
        kept = replace(
            note,
            replaces=tuple(name for name in note.replaces if name not in names),
            through=tuple(name for name in note.through if name not in names),
        )
        return None if kept == note else replaced.to_bytes(kept)

    swap(place.store, note_path, changed)


def _time(seconds: float) -> str:
    return times.format_time(dt.datetime.fromtimestamp(seconds, dt.UTC))
