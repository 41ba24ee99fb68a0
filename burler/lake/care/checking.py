"""``burler lake check``: everything that can be wrong with a lake, each with its cure. Changes nothing.

The files are listed first, then the manifests are read: what is committed in between is no finding. What is suspicious
because the manifest does not say it, or says it wrongly, is looked at once more at the end.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

import msgspec

from burler import times
from burler.errors import BurlerError, LakeError, StateError
from burler.lake import catalogue, layout, replaced
from burler.lake.care.inventory import Examined, Listing, StreamListing, examined, listed
from burler.lake.datafile import CURE_CHANGED, CURE_DAMAGED, CURE_MOVED, DamagedFile, Measured
from burler.lake.lake import Lake, StreamFolder
from burler.lake.snapshot import FileStats, Snapshot
from burler.lake.state import StoredState
from burler.storage.base import Store, StoredFile, is_hidden
from burler.words import counted

PROGRESS_FILES = 1000
LEFTOVER_SECONDS = 86_400.0
"""A hidden file that did not change for so long is no file that is being written."""

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


def check(
    store: Store,
    *,
    taps: Sequence[str] | None = None,
    streams: Sequence[str] | None = None,
    fast: bool = False,
    jobs: int | None = None,
    processes: bool = False,
    now: Callable[[], float] = time.time,
    on_progress: Callable[[int, int], object] | None = None,
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
    lake = Lake(store)
    wanted = lake.folders(taps=taps, streams=streams)
    listings, elsewhere = listed(store, wanted, whole=whole, now=now())
    findings = [*_by_names(store, wanted, whole=whole), *_leftovers(elsewhere)]
    tap_folders = {f"{layout.ROOT}/{folder}" for folder in lake.wanted_taps(taps)} if streams is None else set()
    for tap_folder in tap_folders | {place.tap_folder for place in wanted}:
        findings += _states(store, tap_folder)
    known = [_Stream(listing) for listing in listings]
    for stream in known:
        stream.findings += stream.by_listing(fast=fast)
    readers = {} if fast else {file.path: stream for stream in known for file in stream.readable}
    files = [stream.listing.files[path] for path, stream in readers.items()]
    for done, (file, seen) in enumerate(examined(store, files, jobs=jobs, processes=processes), 1):
        readers[file.path].findings += readers[file.path].by_reading(file, seen)
        if on_progress is not None and (done % PROGRESS_FILES == 0 or done == len(files)):
            on_progress(done, len(files))
    for stream in known:
        findings += stream.lasting()
    missing, remarks = _missing(store, known, whole=whole)
    data = [file for listing in listings for file in listing.data.values()]
    return Checked(
        findings=tuple(sorted((*findings, *missing), key=lambda one: (one.path, one.kind))),
        streams=len(known),
        files=len(data),
        stored_bytes=sum(file.size_bytes for file in data),
        opened=len(files),
        remarks=remarks,
    )


_STAMPS = re.compile(r"\d{8}T\d{6}Z-\d{8}T\d{6}Z", re.ASCII)
_TIMES = {"first", "last"}
_COMPARED = ("records", "bytes", "first", "last", "activate_version", "versions")


class _Stream:
    """One stream, as it was when its listing was made; its manifest is read now.

    ``readable``: the data files that are worth reading: all but those that a compacted one stands for. ``is_bare``:
    there is no manifest, not even a broken one.
    """

    def __init__(self, listing: StreamListing) -> None:
        self.listing = listing
        self.place = listing.place
        self.findings: list[Finding] = []
        self._snapshot: Snapshot | None = None
        try:
            self._snapshot = self.place.read_manifest()
        except LakeError as error:
            self.findings.append(_finding("json", self.place.manifest, self._fact(self.place.manifest, error)))
        self.is_bare = self._snapshot is None and not self.findings
        self._stats = {file.path: file.stats for file in self._snapshot.files} if self._snapshot else {}
        if self._snapshot is None:
            self._replaced = replaced.hidden_by(self.place.folder, listing.notes.good, set(listing.data))
        else:
            self._replaced = set(listing.replaced(self._snapshot))
        self.readable = [file for path, file in listing.data.items() if path not in self._replaced]

    def by_listing(self, *, fast: bool) -> Iterator[Finding]:
        """What can be told without opening a data file. ``fast``: none will be."""
        for path, error in self.listing.notes.broken.items():
            fact, _, cure = str(error).partition("\n")
            yield _finding("json", replaced.note_path(path), fact, cure)
        if self._snapshot is not None:
            yield from self._listed()
            yield from self._unlisted(fast)
        for path in self.listing.files.keys() - self.listing.data.keys():
            if not is_hidden(path) and layout.parse_file_name(path.rpartition("/")[2]):
                yield _finding("misplaced", path, "a data file outside of a schema folder: no reader sees it")
        yield from self._locks()
        yield from _leftovers(self.listing)

    def _listed(self) -> Iterator[Finding]:
        """What is wrong with the files that the manifest lists."""
        for path, stats in self._stats.items():
            file = self.listing.data.get(path)
            if file is None:
                yield _finding("missing", path, "the manifest names it, and it is not there")
                continue
            if path in self._replaced:
                yield _finding("double", path, "is listed, and so is the compacted file that holds its rows")
            if stats is not None and stats.stored_bytes not in (None, file.size_bytes):
                fact = f"has {file.size_bytes:,} bytes, and the manifest says {stats.stored_bytes:,}"
                yield _finding("torn", path, fact)
            note = replaced.note_path(path)
            if stats is not None and stats.replaces and note not in self.listing.files:
                fact = "is missing: readers that list folders would take the rows of a compacted file twice"
                cure = "burler lake vacuum, once the files that were replaced are old; keep the manifest until then."
                yield _finding("json", note, fact, cure)

    def _unlisted(self, fast: bool) -> Iterator[Finding]:
        """Data files that nothing names."""
        tap_id, stream = map(shlex.quote, self.place.names)
        cure = f"burler lake rebuild --tap {tap_id} --stream {stream} takes it in; {_VACUUM} once it is old."
        for path in self.listing.data.keys() - self._stats.keys() - self._replaced:
            if self.listing.awaits_commit(self.listing.data[path]):
                continue
            if path in self.listing.notes.good:
                yield _finding("unfinished", path, "a compact was killed before its commit, or another was faster")
                continue
            fact = "no manifest names it: a writer ended, or was fenced out, before its commit; its rows came again"
            fact += "; or burler lake rebuild left it out as damaged" if fast else ""
            yield _finding("orphan", path, fact, cure)

    def _locks(self) -> Iterator[Finding]:
        for lock in self.listing.locks:
            path = lock.file.path
            try:
                if not isinstance(msgspec.json.decode(lock.blob.data), dict):
                    raise ValueError("no JSON object")
            except (msgspec.DecodeError, ValueError, RecursionError) as error:
                cure = "The next writer takes it over; burler lake vacuum removes it."
                yield _finding("json", path, f"is no lock: {error}", cure)
                continue
            if lock.dead is not None:
                yield _finding("lock", path, lock.dead)

    def by_reading(self, file: StoredFile, seen: Examined) -> Iterator[Finding]:
        """What is wrong with one data file, after it was read."""
        if isinstance(seen, DamagedFile):
            if seen.damage != "missing":  # taken away since it was listed
                yield self._damaged(file.path, seen)
            return
        if seen.stream and layout.component(seen.stream) != self.place.folder.rpartition("/")[2]:
            fact = f"its SCHEMA is of the stream '{seen.stream}', not of its folder's"
            yield _finding("message", file.path, fact)
        elif seen.stranger is not None:
            yield _finding("message", file.path, f"line {seen.stranger} is a message of another stream")
        yield from _named(file.path, seen)
        stats = self._stats.get(file.path)
        if stats is None:
            return
        different = [
            _difference(name, seen.stats, stats)
            for name in _COMPARED
            if (seen.timed or name not in _TIMES) and getattr(seen.stats, name) != getattr(stats, name)
        ]
        if different:
            yield _finding("count", file.path, f"is not what the manifest says: {', '.join(different)}")
        elif stats.clean and not seen.stats.clean:
            fact = "the manifest calls it clean, and some of its rows do not fit their schema"
            yield _finding("count", file.path, fact)

    def _damaged(self, path: str, seen: DamagedFile) -> Finding:
        """What rebuild has left out is in no manifest, and so is what a writer of damaged files never committed."""
        fact = self._fact(path, seen)
        if self._snapshot is None or path in self._stats:
            return _finding(seen.damage, path, fact)
        return _finding(seen.damage, path, f"{fact}; no manifest names it, so readers pass over it", _LEFT_OUT)

    def _fact(self, path: str, error: LakeError) -> str:
        """The first line of an error, without the file's name: the finding has it."""
        text = str(error).partition("\n")[0]
        for name in (self.place.store.locate(path), path):
            text = text.removeprefix(name)
        return text.lstrip(":, ").removesuffix(".")  # ends without a full stop, as all facts do

    def lasting(self) -> Iterator[Finding]:
        """The findings, less those that are one with another, or that later commits have settled.

        A damaged file is one finding, with what reading it has shown (which came last): its size, and that no manifest
        names it, are none beside that.
        """
        damaged = {one.path: one for one in self.findings if one.kind in ("torn", "hash", "message")}
        listed = set(self._stats)
        if any(one.kind in ("orphan", "unfinished", "missing") for one in self.findings):
            with contextlib.suppress(LakeError):
                now = self.place.read_manifest()
                listed = {file.path for file in now.files} if now else set()
        for one in self.findings:
            if one.kind in ("torn", "orphan") and damaged.get(one.path, one) is not one:
                continue
            if one.kind in ("orphan", "unfinished") and one.path in listed:
                continue
            if one.kind == "missing" and (one.path not in listed or self._is_there(one.path)):
                continue
            yield one

    def _is_there(self, path: str) -> bool:
        """Whether a file can be opened: one that was made after the listing is in no listing."""
        try:
            self.place.store.open(path).close()
        except FileNotFoundError:
            return False
        return True


def _named(path: str, seen: Measured) -> Iterator[Finding]:
    """Whether a file's name says when its rows were extracted."""
    name = path.rpartition("/")[2]
    named = layout.parse_file_name(name)
    if named is None or not seen.timed:
        return
    first, last = (times.moment(text).replace(microsecond=0) for text in (seen.stats.first, seen.stats.last))
    if (named.first, named.last) == (first, last):
        return
    # The times stand right before the number and the ending.
    stamps = "-".join(f"{moment.year:04d}{moment:%m%dT%H%M%S}Z" for moment in (first, last))
    right = stamps.join(name.rsplit(_STAMPS.findall(name)[-1], 1))
    fact = f"its rows were extracted from {seen.stats.first} to {seen.stats.last}, which its name does not say"
    yield _finding("time", path, fact, f"Rename it to {right}; then burler lake rebuild.")


def _difference(name: str, is_: FileStats, said: FileStats) -> str:
    one, other = (
        f"{value:,}" if isinstance(value, int) else str(value) for value in (getattr(is_, name), getattr(said, name))
    )
    return f"{name} {one} (manifest: {other})"


def _leftovers(listing: Listing) -> Iterator[Finding]:
    """Hidden files of processes that were killed."""
    for file in listing.unfinished():
        age = listing.age(file)
        if age >= LEFTOVER_SECONDS:
            fact = f"a hidden file that nobody has written to for {age / 86_400:,.1f} days"
            yield _finding("leftover", file.path, fact)


_NO_STATE = (
    f"Put back the one before it ({layout.PREVIOUS_STATE}) with burler state set; burler state reset begins anew."
)
_NO_NOTES = "Restore it from a copy. Else burler lake rebuild makes it anew, without owners and descriptions."
_FOREIGN = "Keep it: another program made this lake."


def _by_names(store: Store, wanted: Sequence[StreamFolder], *, whole: bool) -> Iterator[Finding]:
    """Findings about names, ``singerlake.json`` (if the ``whole`` lake is looked at) and catalogues."""
    folders: dict[str, list[str]] = {}
    for place in wanted:
        folders.setdefault(place.tap_folder, []).append(place.folder.rpartition("/")[2])
    if whole:
        yield from _twins(layout.ROOT, [folder.rpartition("/")[2] for folder in folders])
        path = layout.singerlake_path()
        yield from _unusable(store, path, "describes the lake", lambda *_: catalogue.encoding_of(store))
    for tap_folder, names in folders.items():
        yield from _twins(tap_folder, names)
        for name in ("catalogue.json", "catalog.json"):
            yield from _unusable(store, f"{tap_folder}/{name}", "is the tap's catalogue", catalogue.as_catalogue)


def _states(store: Store, tap_folder: str) -> Iterator[Finding]:
    """Findings about the state of a tap, which may be there without any stream."""
    for name, cure in ((layout.STATE, _NO_STATE), (layout.PREVIOUS_STATE, "Remove it: it can be spared.")):
        yield from _unusable(store, f"{tap_folder}/{name}", "is the tap's state", StoredState.from_bytes, cure)


def _twins(folder: str, names: list[str]) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for name in names:
        twin = seen.setdefault(name.lower(), name)
        if twin != name:
            yield _finding("twins", f"{folder}/{name}", f"differs from {twin} only in upper and lower case")


def _unusable(
    store: Store, path: str, what: str, read: Callable[[bytes, str], object], cure: str = ""
) -> Iterator[Finding]:
    """Whether a JSON file that is there can be read. ``what``: it is."""
    blob = store.read(path)
    try:
        if blob is not None:
            read(blob.data, store.locate(path))
    except StateError:
        yield _finding("json", path, f"{what}, and can't be used", cure)
    except BurlerError as error:
        cure = cure if isinstance(error, LakeError) else _FOREIGN
        fact = str(error).partition("\n")[0].removesuffix(".")
        yield _finding("json", path, f"{what}, and can't be used: {fact}", cure)


def _missing(store: Store, streams: Sequence[_Stream], *, whole: bool) -> tuple[list[Finding], tuple[str, ...]]:
    """What is wrong with JSON files that are not there; and remarks where nothing is. To be called last: what a writer
    makes meanwhile is there then.

    Other writers need not make them. So they are lost only where the lake has been kept with them: where there is a
    ``singerlake.json``, or a manifest.

    Args:
        whole: whether ``streams`` are all of the lake.
    """
    with_data = [stream for stream in streams if stream.listing.data]
    bare = [one for one in with_data if one.is_bare and store.read(one.place.manifest) is None]
    singerlake = store.read(layout.singerlake_path())
    if singerlake is None and len(bare) == len(with_data):
        remark = (
            "no stream has a manifest, as writers of another make may leave a lake; readers list folders, and read "
            "streams from the start each time. burler lake rebuild makes manifests."
        )
        return [], (remark,) if bare else ()
    findings = []
    for one in bare:
        there = counted(len(one.listing.data), "data file")
        fact = f"is missing: without it readers read the stream ({there}) anew in each run"
        findings.append(_finding("no manifest", one.place.manifest, fact))
    for folder, some in groupby(with_data, lambda one: one.place.tap_folder):
        # A writer makes its tap's catalogue after its first commit.
        at_work = any(stream.listing.locks for stream in some)
        path = f"{folder}/catalogue.json"
        if not at_work and store.read(path) is None and store.read(f"{folder}/catalog.json") is None:
            findings.append(_finding("json", path, "is missing: it is the tap's catalogue"))
    if singerlake is None and whole:
        findings.append(_finding("json", layout.singerlake_path(), "is missing: it names the taps", _NO_NOTES))
    return findings, ()


_LEFT_OUT = "Restore it from a copy; then burler lake rebuild. Else move it out of the lake; extract that time again."
"""The cure for a damaged file that no manifest names."""
_VACUUM = "burler lake vacuum removes it"
_CURES: dict[Kind, str] = {
    "unfinished": f"Nothing is lost: {_VACUUM} once it is old.",
    "missing": "Restore it from a copy. Else burler lake rebuild drops it; then extract that time again.",
    "double": "burler lake rebuild lists the compacted file alone.",
    "hash": CURE_MOVED,
    "torn": CURE_DAMAGED,
    "message": CURE_DAMAGED,
    "count": CURE_CHANGED,
    "misplaced": "Move it into the folder of its schema version; then burler lake rebuild.",
    "json": "burler lake rebuild makes it anew.",
    "no manifest": "burler lake rebuild makes it anew.",
    "twins": "Rename one of them: in the tap, and its folder; then burler lake rebuild.",
    "lock": f"The next writer takes it over; {_VACUUM} once it is old.",
    "leftover": f"{_VACUUM}.",
}


def _finding(kind: Kind, path: str, fact: str, cure: str = "") -> Finding:
    """A finding with the usual cure of its kind, or its own."""
    return Finding(kind, path, fact, cure or _CURES[kind])
