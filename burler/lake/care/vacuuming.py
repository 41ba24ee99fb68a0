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
from burler.lake.care.inventory import LOCK, StreamListing, awaits_commit, dead_for, guarded, listed, look
from burler.lake.datafile import DamagedFile
from burler.lake.lake import Lake, StreamFolder
from burler.lake.layout import SortKey, sort_key
from burler.lake.snapshot import Snapshot
from burler.lake.store import swap
from burler.localfile import TEMPORARY
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
    files of streams whose manifest can't be read or changed, and damaged files."""

    files: tuple[Unreferenced, ...]
    removed: bool
    problems: tuple[str, ...] = ()

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
    if yes:
        Lake(store).warn_if_alone("vacuum")
    moment = now()
    found: list[Unreferenced] = []
    problems: list[str] = []
    ageless: list[str] = []

    def sweep(streams: Iterable[StreamListing]) -> list[tuple[StreamListing, list[str]]]:
        """Gives those for whose manifest there was no room, and what is to be said of them."""
        full = []
        for stream in streams:
            told: list[str] = []
            try:
                found.extend(
                    _unlisted(store, stream, moment, older_than_seconds, yes=yes, problems=told, ageless=ageless)
                )
            except LakeError as error:
                told.append(str(error))
            except StorageError as error:
                if not _is_full(error):
                    raise
                full.append((stream, [*told, str(error)]))
                continue
            problems.extend(told)
        return full

    listing = listed(store, Lake(store).folders(taps=taps, streams=streams), whole=taps is None and streams is None)
    # First what needs no change of a manifest: on a full disk there may be no room for that yet.
    for files in (*(stream.files for stream in listing.streams), listing.elsewhere):
        found += _others(store, files, moment, older_than_seconds, yes=yes, ageless=ageless)
    full = sweep(listing.streams)
    if full and found:  # there may be room by now
        full = sweep([stream for stream, _ in full])
    problems += [problem for _, told in full for problem in told]
    if ageless:
        count = len(set(ageless))
        problems.append(
            f"Left alone: files that nothing refers to ({count:,}, such as {store.locate(ageless[0])}). The "
            "store does not say when they were written, so none of them is old. Remove by hand what no run needs"
        )
    return Vacuum(tuple(found), yes, tuple(problems))


def _unlisted(
    store: Store,
    stream: StreamListing,
    now: float,
    older_than: float,
    *,
    yes: bool,
    problems: list[str],
    ageless: list[str],
) -> list[Unreferenced]:
    """Data files of a stream that nothing refers to; removed if ``yes``.

    Args:
        problems: why files stay is added here. ageless: the paths of those whose age nobody knows are.

    Raises:
        LakeError: its manifest is broken.
    """
    snapshot = stream.place.read_manifest()
    if snapshot is None:
        return []
    unlisted = list(_data(stream, snapshot, store, now))
    ageless += [file.path for file in unlisted if file.age_seconds == -math.inf]
    old = [file for file in unlisted if file.age_seconds >= older_than]
    kept = {file.path: why for file in old if (why := _why_kept(store, stream, file))}
    problems += kept.values()
    data = [file for file in old if file.path not in kept]
    if not yes:
        return data
    freed: set[str] = set()
    try:
        gone = _taken_away(store, stream, snapshot, data, now)
    except StorageError as error:
        freed = _room_made(store, stream, data) if _is_full(error) else freed
        if not freed:
            raise
        try:
            gone = _taken_away(store, stream, snapshot, data, now)
        except StorageError as once_more:
            if not _is_full(once_more):
                raise
            problems.append(str(once_more))
            gone = freed
    return [file for file in data if file.path in gone]


def _taken_away(
    store: Store, stream: StreamListing, snapshot: Snapshot, data: Sequence[Unreferenced], now: float
) -> set[str]:
    """Remove files, and have the manifest and its notes forget them; their paths."""
    _mend_notes(store, stream, snapshot, now)
    below = len(stream.place.folder) + 1
    by_hand = [file.path for file in snapshot.replaced if not stream.find(file.path)]
    names = [path[below:] for path in (*(file.path for file in data), *by_hand)]
    gone = remove_unlisted(store, stream.place, names, now=now) if names else ()
    return {f"{stream.place.folder}/{name}" for name in gone}


def _room_made(store: Store, stream: StreamListing, data: Sequence[Unreferenced]) -> set[str]:
    """Remove replaced files while there is no room to change the manifest; their paths.

    As if they were removed by hand: until the manifest can be changed it goes on naming them, so that no commit takes
    one in and no writer gives its name again. Their rows stand in a file that is listed, which is read to its end
    first: a rebuild that runs meanwhile finds it whole, too, and takes none of its parts. An orphan stays: without a
    word in the manifest, a writer that still lives could commit it when it is gone.
    """
    snapshot = stream.place.read_manifest()
    if snapshot is None:
        return set()
    old = {file.path for file in data if file.reason == "replaced"} & {file.path for file in snapshot.replaced}
    freed: set[str] = set()
    for file in snapshot.files:
        stats = file.stats
        parts = old & {f"{snapshot.folder}/{name}" for name in (stats.replaces if stats else None) or ()}
        seen = look(store, file.path) if parts else None
        if stats is None or seen is None or isinstance(seen, DamagedFile) or seen.stats.records != stats.records:
            continue
        for path in sorted(parts):
            store.remove(path)
            freed.add(path)
    return freed


def _why_kept(store: Store, stream: StreamListing, file: Unreferenced) -> str | None:
    """Why a file stays although no manifest names it: it may hold rows that nothing else holds.

    A writer that ended before its commit leaves whole files, and its rows came again. What is damaged was a file that
    counted once, and that ``rebuild`` left out.
    """
    if file.reason not in ("orphan", "unfinished"):
        return None
    seen = look(store, file.path)
    if isinstance(seen, DamagedFile):
        return None if seen.damage == "missing" else f"Left alone, and in no manifest: {seen}"
    note = replaced.read(store, file.path) if file.reason == "unfinished" else None
    if note is None or any(stream.find(f"{stream.place.folder}/{name}") for name in note.through):
        return None
    parts = [name for name in note.replaces if not is_gone(name)]  # none: vacuum took them away, so it was listed once
    if parts and all(stream.find(f"{stream.place.folder}/{name}") for name in parts):
        return None
    return (
        f"Left alone: {store.locate(file.path)} is in no manifest, and files that it was made from are gone. "
        f"Take it in: burler lake rebuild {store.url}"
    )


def _is_full(error: StorageError) -> bool:
    cause = error.__cause__ or error.__context__
    return isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT)


def _data(stream: StreamListing, snapshot: Snapshot, store: Store, now: float) -> Iterator[Unreferenced]:
    """Data files that the manifest does not list, with their ages."""
    files = {file.path: file for file in stream.data_files}
    names = {file.path for file in snapshot.files}
    since = _replaced_since(stream, snapshot, store, now)
    busy = guarded(store, stream.files, now=now)
    for path, file in files.items():
        if path in names:
            continue
        if path in since:
            yield Unreferenced(path, file.size_bytes, "replaced", now - max(file.modified, since[path]))
            continue
        if awaits_commit(file, busy):
            continue
        unfinished = replaced.is_compacted(path) and stream.find(replaced.note_path(path)) is not None
        reason: Reason = "unfinished" if unfinished else "orphan"
        yield Unreferenced(path, file.size_bytes, reason, now - file.modified)


def _replaced_since(stream: StreamListing, snapshot: Snapshot, store: Store, now: float) -> dict[str, float]:
    """Files that a listed compacted file stands for -> since when: as old as the first note that names them."""
    since: dict[str, float] = {}
    todo, seen = [], set()
    for file in snapshot.files:
        if file.stats is not None and file.stats.replaces:  # known without the note, too
            there = stream.find(file.path)
            written = now if there is None else there.modified
            since |= {f"{snapshot.folder}/{part}": written for part in file.stats.replaces}
        if replaced.is_compacted(file.path):
            todo.append(file.path)
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        note, there = replaced.read(store, path), stream.find(replaced.note_path(path))
        if note is None:
            continue
        written = now if there is None else there.modified  # it was written after the files were listed
        for name in (*note.replaces, *note.through):
            part = f"{stream.place.folder}/{name}"
            since[part] = min(written, since.get(part, written))
        todo += [f"{stream.place.folder}/{name}" for name in note.through]
    return since


def _mend_notes(store: Store, stream: StreamListing, snapshot: Snapshot, now: float) -> None:
    """What a killed vacuum left to do: notes that name files which are gone, or newer files of the same name."""
    folder, listed_now = snapshot.folder, {file.path for file in snapshot.files}
    for file in snapshot.files:
        there = stream.find(replaced.note_path(file.path))
        if there is None or now - there.modified < _OLD_NOTE_SECONDS or not replaced.is_compacted(file.path):
            continue
        note, parts = replaced.read(store, file.path), (file.stats.replaces if file.stats else None) or {}
        names = (*note.replaces, *note.through) if note else ()
        again = {name for name in names if f"{folder}/{name}" in listed_now and name not in parts}
        gone = {name for name in names if stream.find(f"{folder}/{name}") is None}
        if again or gone:
            forget(store, stream.place, file.path, again | gone)


def _others(
    store: Store, files: Sequence[StoredFile], now: float, older_than: float, *, yes: bool, ageless: list[str]
) -> Iterator[Unreferenced]:
    """Hidden leftovers, notes of compacted files that are not there, dead locks; removed if ``yes``."""
    notes = {replaced.note_path(file.path) for file in files if replaced.is_compacted(file.path)}
    busy = guarded(store, files, now=now)
    for file in files:
        folder, _, name = file.path.rpartition("/")
        age = now - file.modified
        if name.startswith(TEMPORARY) and folder not in busy:
            reason: Reason = "leftover"
        elif name.endswith(replaced.SUFFIX) and file.path not in notes:
            reason = "leftover"
        elif name == LOCK:
            reason = "lock"
        else:
            continue
        if age == -math.inf:
            ageless.append(file.path)
        if age < older_than:
            continue
        if reason == "lock":
            if not _remove_lock(store, file.path, age, yes=yes):
                continue
        elif yes:
            store.remove(file.path)
        yield Unreferenced(file.path, file.size_bytes, reason, age)


def _remove_lock(store: Store, path: str, age_seconds: float, *, yes: bool) -> bool:
    """Whether a lock's holder is dead and, with ``yes``, the lock gone."""
    blob = store.read(path)
    if blob is None or dead_for(store, path, blob.data, age_seconds=age_seconds) is None:
        return False
    if yes:
        try:
            store.delete(path, tag=blob.tag)
        except (Conflict, OutcomeUnknown):  # it was renewed or taken over just now
            return False
    return True


_AT_ONCE = 8
GONE = "~"
"""No file of a lake has a name that begins so."""
_REMEMBERED_SECONDS = 90 * 86_400.0


def remove_unlisted(store: Store, place: StreamFolder, names: Iterable[str], *, now: float) -> list[str]:
    """Remove data files that the manifest does not list now; the names of those that went.

    First the manifest says, by compare-and-swap, which names will go (``removed``); a commit of one of them is refused
    from then on, and a rebuild that read the manifest before must read it again. Then they go.

    Args:
        names: relative to the stream's folder.
        now: seconds since 1970.

    Raises:
        LakeError: the manifest is broken or gone; nothing is removed. StorageError: the store fails.
    """
    wanted = list(dict.fromkeys(names))
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
        for _ in pool.map(store.remove, [f"{place.folder}/{name}" for name in going]):
            pass
    for name in going:
        if replaced.is_compacted(name):  # after the file: without its note that would count beside its parts
            store.remove(replaced.note_path(f"{place.folder}/{name}"))
    # Last of all: as long as a part is there it must not count, and once it is gone its name may be used again.
    gone = set(going)
    for name in compacted:
        forget(store, place, f"{place.folder}/{name}", gone)
    return going


def _note(document: doc.Document, going: list[str], now: float) -> None:
    """Forget what is known of files that go, and have nobody commit them any more."""
    committed, stats = doc.replaced_names(document), document["file_stats"]
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


def forget(store: Store, place: StreamFolder, path: str, names: Collection[str]) -> None:
    """Have the note beside the compacted file at ``path`` no longer name files that are gone."""
    note_path = replaced.note_path(path)

    def changed(data: bytes | None, _again: bool) -> bytes | None:
        if data is None:
            return None
        note = replaced.from_bytes(data, store.locate(note_path))
        kept = replace(
            note,
            replaces=tuple(name for name in note.replaces if name not in names),
            through=tuple(name for name in note.through if name not in names),
        )
        return None if kept == note else replaced.to_bytes(kept)

    swap(store, note_path, changed)


def _time(seconds: float) -> str:
    return times.format_time(dt.datetime.fromtimestamp(seconds, dt.UTC))
