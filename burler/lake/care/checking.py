"""``burler lake check``: everything that can be wrong with a lake, each with its cure. Changes nothing.

The files are listed first, then the manifests are read: what is committed in between is no finding. What is suspicious
because the manifest does not say it, or says it wrongly, is looked at once more at the end.
"""

from __future__ import annotations

import datetime as dt
import re
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from burler import times
from burler.errors import BurlerError, LakeError, StateError
from burler.lake import catalogue, layout, replaced
from burler.lake.care.inventory import (
    LOCK,
    Examined,
    LakeListing,
    StreamListing,
    awaits_commit,
    dead_for,
    examined,
    guarded,
    listed,
)
from burler.lake.care.rebuilding import read_json, stream_of
from burler.lake.datafile import DamagedFile, Measured
from burler.lake.lake import Lake, StreamFolder
from burler.lake.replaced import Replacement
from burler.lake.snapshot import FileStats, Snapshot
from burler.lake.state import StoredState
from burler.localfile import TEMPORARY
from burler.storage.base import Store, StoredFile

PROGRESS_FILES = 1000


@dataclass(frozen=True, slots=True)
class Checked:
    """What ``check`` found. ``files`` and ``stored_bytes``: data files there are; ``opened``: how many were read.
    ``remarks``: what is worth knowing, and no fault."""

    findings: tuple[Finding, ...]
    streams: int
    files: int
    stored_bytes: int
    opened: int
    remarks: tuple[str, ...] = ()


Progress = Callable[[int, int], object]
"""(data files read, of how many)."""


def check(
    store: Store,
    *,
    taps: Sequence[str] | None = None,
    streams: Sequence[str] | None = None,
    fast: bool = False,
    jobs: int | None = None,
    processes: bool = False,
    now: Callable[[], float] = time.time,
    on_progress: Progress | None = None,
) -> Checked:
    """Look for what is wrong. Safe while others write.

    Args:
        fast: open no data file: only listings, manifests and other JSON files.
        jobs, processes: see ``burler.lake.care.inventory``.
        now: seconds since 1970, by the store's clock.
        on_progress: called now and then with the number of data files read, and of all.

    Raises:
        UsageError: no such tap or stream. StorageError: the store fails.
    """
    whole = taps is None and streams is None
    wanted = Lake(store).folders(taps=taps, streams=streams)
    listing = listed(store, wanted, whole=whole)
    findings: list[Finding] = list(by_names(store, listing, wanted, whole=whole, now=now()))
    known = [StreamCheck(store, stream, now()) for stream in listing.streams]
    for stream in known:
        findings += stream.by_listing(fast=fast)
    files = [] if fast else [file for stream in known for file in stream.readable]
    by_path = {file.path: stream for stream in known for file in stream.readable}
    for done, (file, seen) in enumerate(examined(store, files, jobs=jobs, processes=processes), 1):
        findings += by_path[file.path].by_reading(file, seen)
        if on_progress is not None and (done % PROGRESS_FILES == 0 or done == len(files)):
            on_progress(done, len(files))
    findings = [*_still(store, known, _one_each(findings))]
    missing, remarks = lost(store, known, whole=whole)
    return Checked(
        findings=tuple(sorted((*findings, *missing), key=lambda one: (one.path, one.kind))),
        streams=len(known),
        files=sum(len(stream.listing.data_files) for stream in known),
        stored_bytes=sum(file.size_bytes for stream in known for file in stream.listing.data_files),
        opened=len(files),
        remarks=remarks,
    )


def _one_each(findings: Sequence[Finding]) -> list[Finding]:
    """A damaged file is one finding, with what reading it has shown: its size, and that no manifest names it, are none
    beside that. ``findings``: those by listing before those by reading."""
    damaged = {one.path: one for one in findings if one.kind in ("torn", "hash", "message")}
    return [one for one in findings if one.kind not in ("torn", "orphan") or damaged.get(one.path, one) is one]


def _still(store: Store, streams: Iterable[StreamCheck], findings: Sequence[Finding]) -> Iterator[Finding]:
    """Findings that later commits have not settled: manifests are read once more where that matters."""
    doubtful = {"orphan", "unfinished", "missing"}
    for one in findings:
        if one.kind not in doubtful:
            yield one
    for stream in streams:
        folder = stream.listing.place.folder + "/"
        mine = [one for one in findings if one.kind in doubtful and one.path.startswith(folder)]
        if not mine:
            continue
        try:
            snapshot = stream.listing.place.read_manifest()
        except LakeError:
            snapshot = stream.snapshot
        yield from (one for one in mine if not stream.is_settled(one, snapshot))


_STAMPS = re.compile(r"\d{8}T\d{6}Z-\d{8}T\d{6}Z", re.ASCII)
_TIMES = {"first", "last"}
_COMPARED = ("records", "bytes", "first", "last", "activate_version", "versions")


class StreamCheck:
    """One stream, as it was when its listing was made; its manifest is read now.

    ``readable``: the data files that are worth reading: all but those that a compacted one stands for. ``is_bare``:
    there is no manifest, not even a broken one.
    """

    def __init__(self, store: Store, listing: StreamListing, now: float) -> None:
        self.listing = listing
        self.snapshot: Snapshot | None = None
        self._store = store
        self._now = now
        self._first: list[Finding] = []
        try:
            self.snapshot = listing.place.read_manifest()
        except LakeError as error:
            self._first.append(finding("json", listing.place.manifest, self._fact(listing.place.manifest, error)))
        self.is_bare = self.snapshot is None and not self._first
        self._data = {file.path: file for file in listing.data_files}
        self._notes = dict(self._read_notes())
        self._stats = {file.path: file.stats for file in self.snapshot.files} if self.snapshot else {}
        self._replaced = self._hidden()
        self.readable = [file for path, file in self._data.items() if path not in self._replaced]

    def by_listing(self, *, fast: bool = False) -> Iterator[Finding]:
        """What can be told without opening a data file. ``fast``: none will be."""
        yield from self._first
        if self.snapshot is not None:
            yield from self._by_manifest(fast)
        yield from self._misplaced()
        yield from self._locks()
        yield from leftovers(self._store, self.listing.files, self._now)

    def by_reading(self, file: StoredFile, seen: Examined) -> Iterator[Finding]:
        """What is wrong with one data file, after it was read."""
        if isinstance(seen, DamagedFile):
            if seen.damage != "missing":  # taken away since it was listed
                yield self._damaged(file.path, seen)
            return
        yield from self._strangers(file, seen)
        yield from self._name(file, seen)
        stats = self._stats.get(file.path)
        if stats is not None:
            different = [name for name in _COMPARED if seen.timed or name not in _TIMES]
            different = [name for name in different if getattr(seen.stats, name) != getattr(stats, name)]
            if different:
                told = ", ".join(_difference(name, seen.stats, stats) for name in different)
                yield finding("count", file.path, f"is not what the manifest says: {told}")
            elif stats.clean and not seen.stats.clean:
                yield finding(
                    "count", file.path, "the manifest calls it clean, and some of its rows do not fit their schema"
                )

    def _damaged(self, path: str, seen: DamagedFile) -> Finding:
        """What rebuild has left out is in no manifest, and so is what a writer of damaged files never committed."""
        fact = self._fact(path, seen)
        if self.snapshot is None or path in self._stats:
            return finding(seen.damage, path, fact)
        return finding(seen.damage, path, f"{fact}; no manifest names it, so readers pass over it", LEFT_OUT)

    def _fact(self, path: str, error: LakeError) -> str:
        """The first line of an error, without the file's name: the finding has it."""
        text = str(error).partition("\n")[0]
        for name in (self._store.locate(path), path):
            text = text.removeprefix(name)
        return text.lstrip(":, ").removesuffix(".")  # ends without a full stop, as all facts do

    def is_settled(self, found: Finding, now: Snapshot | None) -> bool:
        """Whether a finding that depends on the manifest is none any more by a later reading of it (``now``)."""
        listed = {file.path for file in now.files} if now else set()
        if found.kind in ("orphan", "unfinished"):
            return found.path in listed
        return found.kind == "missing" and (found.path not in listed or self._is_there(found.path))

    def _is_there(self, path: str) -> bool:
        """Whether a file can be opened: one that was made after the listing is in no listing."""
        try:
            self._store.open(path).close()
        except FileNotFoundError:
            return False
        return True

    def _read_notes(self) -> Iterator[tuple[str, Replacement]]:
        for path in self._data:
            if not replaced.is_compacted(path):
                continue
            try:
                note = replaced.read(self._store, path)
            except LakeError as error:
                fact, _, cure = str(error).partition("\n")
                self._first.append(finding("json", replaced.note_path(path), fact, cure or None))
                continue
            if note is not None:
                yield path, note

    def _hidden(self) -> set[str]:
        folder = self.listing.place.folder
        if self.snapshot is None:
            return replaced.hidden_by(folder, self._notes, set(self._data))
        known = {
            f"{folder}/{name}" for stats in self._stats.values() if stats is not None for name in stats.replaces or ()
        }
        for path, note in self._notes.items():
            stats = self._stats.get(path)
            if path in self._stats:  # what the manifest lists, a note may name for an older file of the same name
                names = {f"{folder}/{name}" for name in (*note.replaces, *note.through)}
                known |= names - self._stats.keys() if stats is not None and stats.replaces else names
        return known

    def _by_manifest(self, fast: bool) -> Iterator[Finding]:
        for path, stats in self._stats.items():
            file = self._data.get(path)
            if file is None:
                yield finding("missing", path, "the manifest names it, and it is not there")
                continue
            if path in self._replaced:
                yield finding("double", path, "is listed, and so is the compacted file that holds its rows")
            if stats is not None and stats.stored_bytes not in (None, file.size_bytes):
                fact = f"has {file.size_bytes:,} bytes, and the manifest says {stats.stored_bytes:,}"
                yield finding("torn", path, fact)
            note = replaced.note_path(path)
            if stats is not None and stats.replaces and self.listing.find(note) is None:
                fact = "is missing: readers that list folders would take the rows of a compacted file twice"
                cure = "burler lake vacuum, once the files that were replaced are old; keep the manifest until then."
                yield finding("json", note, fact, cure)
        busy = guarded(self._store, self.listing.files, now=self._now)
        for path in self._data.keys() - self._stats.keys() - self._replaced:
            if awaits_commit(self._data[path], busy):
                continue
            if path in self._notes:
                yield finding("unfinished", path, "a compact was killed before its commit, or another was faster")
            else:
                fact = "no manifest names it: a writer ended, or was fenced out, before its commit; its rows came again"
                fact += "; or burler lake rebuild left it out as damaged" if fast else ""
                place = self.listing.place
                only = f" --tap {shlex.quote(place.tap_id)} --stream {shlex.quote(place.stream)}"
                yield finding("orphan", path, fact, only=only)

    def _misplaced(self) -> Iterator[Finding]:
        for file in self.listing.visible:
            if file.path not in self._data and layout.parse_file_name(file.path.rpartition("/")[2]):
                yield finding("misplaced", file.path, "a data file outside of a schema folder: no reader sees it")

    def _locks(self) -> Iterator[Finding]:
        for file in self.listing.visible:
            blob = self._store.read(file.path) if file.path.endswith(f"/{LOCK}") else None
            if blob is None:
                continue
            try:
                if not isinstance(read_json(blob.data), dict):
                    raise ValueError("no JSON object")
            except ValueError as error:
                yield finding(
                    "json",
                    file.path,
                    f"is no lock: {error}",
                    "The next writer takes it over; burler lake vacuum removes it.",
                )
                continue
            why = dead_for(self._store, file.path, blob.data, age_seconds=self._now - file.modified)
            if why is not None:
                yield finding("lock", file.path, why)

    def _strangers(self, file: StoredFile, seen: Measured) -> Iterator[Finding]:
        folder = self.listing.place.folder.rpartition("/")[2]
        stream = stream_of(seen.line)
        if stream and layout.component(stream) != folder:
            yield finding("message", file.path, f"its SCHEMA is of the stream '{stream}', not of its folder's")
        elif seen.stranger is not None:
            yield finding("message", file.path, f"line {seen.stranger} is a message of another stream")

    def _name(self, file: StoredFile, seen: Measured) -> Iterator[Finding]:
        name = file.path.rpartition("/")[2]
        named = layout.parse_file_name(name)
        if named is None or not seen.timed:
            return
        first, last = _second(seen.stats.first), _second(seen.stats.last)
        if (named.first, named.last) != (first, last):
            yield finding(
                "time",
                file.path,
                f"its rows were extracted from {seen.stats.first} to {seen.stats.last}, which its name does not say",
                f"Rename it to {_renamed(name, first, last)}; then burler lake rebuild.",
            )


def _second(text: str) -> dt.datetime:
    return times.moment(text).replace(microsecond=0)


def _renamed(name: str, first: dt.datetime, last: dt.datetime) -> str:
    """The same name with other times; they stand right before the number and the ending."""
    old = _STAMPS.findall(name)[-1]
    stamps = (f"{moment.year:04d}{moment:%m%dT%H%M%S}Z" for moment in (first, last))
    return "-".join(stamps).join(name.rsplit(old, 1))


def _difference(name: str, is_: FileStats, said: FileStats) -> str:
    one, other = getattr(is_, name), getattr(said, name)
    return f"{name} {_text(one)} (manifest: {_text(other)})"


def _text(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


LEFTOVER_SECONDS = 86_400.0
"""A hidden file that did not change for so long is no file that is being written."""
_NO_STATE = (
    f"Put back the one before it ({layout.PREVIOUS_STATE}) with burler state set; burler state reset begins anew."
)


def by_names(
    store: Store, listing: LakeListing, wanted: Sequence[StreamFolder], *, whole: bool, now: float
) -> Iterator[Finding]:
    """Findings about names, ``singerlake.json`` (if the ``whole`` lake is looked at), catalogues and leftovers."""
    folders: dict[str, list[str]] = {}
    for place in wanted:
        tap_folder, _, stream_folder = place.folder.rpartition("/")
        folders.setdefault(tap_folder, []).append(stream_folder)
    if whole:
        yield from _twins(layout.ROOT, [folder.rpartition("/")[2] for folder in folders])
        yield from _readable(store, layout.singerlake_path(), "describes the lake")
    for tap_folder, names in folders.items():
        yield from _twins(tap_folder, names)
        for name in ("catalogue.json", "catalog.json"):
            yield from _readable(store, f"{tap_folder}/{name}", "is the tap's catalogue")
        yield from _states(store, tap_folder)
    yield from leftovers(store, listing.elsewhere, now)


def leftovers(store: Store, files: Sequence[StoredFile], now: float) -> Iterator[Finding]:
    """Hidden files of processes that were killed; not where a writer is at work."""
    busy = guarded(store, files, now=now)
    for file in files:
        folder, _, name = file.path.rpartition("/")
        days = (now - file.modified) / 86_400
        if name.startswith(TEMPORARY) and folder not in busy and now - file.modified >= LEFTOVER_SECONDS:
            yield finding("leftover", file.path, f"a hidden file that nobody has written to for {days:,.1f} days")


def _twins(folder: str, names: list[str]) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for name in names:
        twin = seen.setdefault(name.lower(), name)
        if twin != name:
            yield finding("twins", f"{folder}/{name}", f"differs from {twin} only in upper and lower case")


def _states(store: Store, tap_folder: str) -> Iterator[Finding]:
    """What can't be read of the tap's state, and of the one before it."""
    for name, cure in ((layout.STATE, _NO_STATE), (layout.PREVIOUS_STATE, "Remove it: it can be spared.")):
        path = f"{tap_folder}/{name}"
        blob = store.read(path)
        try:
            if blob is not None:
                StoredState.from_bytes(blob.data, store.locate(path))
        except StateError:
            yield finding("json", path, "is the tap's state, and can't be used", cure)


def _readable(store: Store, path: str, what: str) -> Iterator[Finding]:
    blob = store.read(path)
    if blob is None:
        return
    try:
        if path == layout.singerlake_path():
            catalogue.encoding_of(store)
        else:
            catalogue.as_catalogue(blob.data, store.locate(path))
    except BurlerError as error:
        cure = None if isinstance(error, LakeError) else "Keep it: another program made this lake."
        yield finding("json", path, f"{what}, and can't be used: {str(error).partition('. Repair')[0]}", cure)


_NO_NOTES = "Restore it from a copy. Else burler lake rebuild makes it anew, without owners and descriptions."


def lost(store: Store, streams: Sequence[StreamCheck], *, whole: bool) -> tuple[list[Finding], tuple[str, ...]]:
    """What is wrong with JSON files that are not there; and remarks where nothing is. To be called last: what a writer
    makes meanwhile is there then.

    Other writers need not make them. So they are lost only where the lake has been kept with them: where there is a
    ``singerlake.json``, or a manifest.

    Args:
        whole: whether ``streams`` are all of the lake.
    """
    with_data = [stream for stream in streams if stream.listing.data_files]
    bare = [one for one in with_data if one.is_bare and store.read(one.listing.place.manifest) is None]
    singerlake = store.read(layout.singerlake_path())
    if singerlake is None and len(bare) == len(with_data):
        remark = (
            "no stream has a manifest, as writers of another make may leave a lake; readers list folders, and read "
            "streams from the start each time. burler lake rebuild makes manifests."
        )
        return [], (remark,) if bare else ()
    findings = [
        finding(
            "no manifest",
            one.listing.place.manifest,
            f"is missing: there are {len(one.listing.data_files):,} data files, which readers read anew in each run",
        )
        for one in bare
    ]
    findings += _catalogues(store, with_data)
    if singerlake is None and whole:
        findings.append(finding("json", layout.singerlake_path(), "is missing: it names the taps", _NO_NOTES))
    return findings, ()


def _catalogues(store: Store, streams: Sequence[StreamCheck]) -> Iterator[Finding]:
    """A writer makes its tap's catalogue after its first commit: while one is at work nothing is said."""
    for folder, some in groupby(streams, lambda one: one.listing.place.folder.rpartition("/")[0]):
        at_work = any(file.path.endswith(f"/{LOCK}") for one in some for file in one.listing.visible)
        path = f"{folder}/catalogue.json"
        if not at_work and store.read(path) is None and store.read(f"{folder}/catalog.json") is None:
            yield finding("json", path, "is missing: it is the tap's catalogue")


Kind = Literal[
    "orphan",
    "unfinished",
    "missing",
    "double",
    "hash",
    "torn",
    "message",
    "time",
    "count",
    "misplaced",
    "json",
    "no manifest",
    "twins",
    "lock",
    "leftover",
]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong: where (a path in the lake), what, and what to do about it."""

    kind: Kind
    path: str
    fact: str
    cure: str


_ANEW = "Restore it from a copy. Else move it out of the lake, run burler lake rebuild, and extract that time again."
LEFT_OUT = "Restore it from a copy; then burler lake rebuild. Else move it out of the lake; extract that time again."
"""The cure for a damaged file that no manifest names."""
_CURES: dict[Kind, str] = {
    "orphan": "burler lake rebuild{only} takes it in; burler lake vacuum removes it once it is old.",
    "unfinished": "Nothing is lost: burler lake vacuum removes it once it is old.",
    "missing": "Restore it from a copy. Else burler lake rebuild drops it; then extract that time again.",
    "double": "burler lake rebuild lists the compacted file alone.",
    "hash": "Restore it from a copy, or move it to the folder it belongs to; then burler lake rebuild.",
    "torn": _ANEW,
    "message": _ANEW,
    "time": "Give it the right name; then burler lake rebuild.",
    "count": "If it was changed, restore it from a copy; burler lake rebuild takes it as it is.",
    "misplaced": "Move it into the folder of its schema version; then burler lake rebuild.",
    "json": "burler lake rebuild makes it anew.",
    "no manifest": "burler lake rebuild makes it anew.",
    "twins": "Rename one of them: in the tap, and its folder; then burler lake rebuild.",
    "lock": "The next writer takes it over; burler lake vacuum removes it once it is old.",
    "leftover": "burler lake vacuum removes it.",
}


def finding(kind: Kind, path: str, fact: str, cure: str | None = None, *, only: str = "") -> Finding:
    """A finding with the usual cure of its kind, or its own. ``only``: options that keep a command to one stream."""
    return Finding(kind, path, fact, cure or _CURES[kind].replace("{only}", only))
