"""``burler lake rebuild``: the JSON files of a lake, made anew from its data files.

The manifest is read first, the files are listed after it, and the new manifest takes its place only if it is still the
one that was read: a commit that comes between is seen by the next try. The claims of all writers end with it, so that
no file that it took in can be committed a second time. A manifest that says what is there stays as it is. One that was
readable is continued (``continues`` in it): what it listed keeps its sequence, what is taken in gets a later one, so
that who has read the old one up to a commit goes on from there.
"""

from __future__ import annotations

import datetime as dt
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from burler import times
from burler.errors import LakeError, UsageError
from burler.lake import catalogue, layout, replaced
from burler.lake import manifest as doc
from burler.lake.care.inventory import Notes, examined
from burler.lake.care.vacuuming import pruned, replaced_names
from burler.lake.datafile import DamagedFile, Measured, head_by_hash
from burler.lake.lake import Lake, StreamFolder
from burler.lake.layout import sort_key
from burler.lake.replaced import Replacement
from burler.lake.snapshot import DataFile, FileStats, Snapshot
from burler.lake.store import swap
from burler.storage.base import UNKNOWN_TIME, Store, StoredFile


@dataclass(frozen=True, slots=True)
class Damaged:
    """A file that was left out: its path in the lake, and what is wrong with it, with the cure."""

    path: str
    problem: str


@dataclass(frozen=True, slots=True)
class RebuiltStream:
    """A stream whose manifest was made anew, or was found right.

    ``files``, ``records``, ``versions`` count what it has now. ``adopted``: files that the old manifest did not list;
    None where there was no old one that could be read. ``gone``: files that it did list and that are not there.
    ``damaged``: files that are there and were left out.
    """

    tap_id: str
    stream: str
    files: int = 0
    records: int = 0
    versions: int = 0
    adopted: tuple[str, ...] | None = None
    gone: tuple[str, ...] = ()
    damaged: tuple[Damaged, ...] = ()


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What ``rebuild`` did. ``problems``: descriptive files that could not be written."""

    streams: tuple[RebuiltStream, ...]
    problems: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether nothing was damaged, gone or left undone."""
        return not self.problems and not any(one.damaged or one.gone for one in self.streams)


def rebuild(
    store: Store,
    *,
    taps: Sequence[str] | None = None,
    streams: Sequence[str] | None = None,
    jobs: int | None = None,
    processes: bool = False,
    on_progress: Callable[[RebuiltStream], object] | None = None,
    on_file: Callable[[int, int], object] | None = None,
) -> Rebuilt:
    """Make manifests, catalogues and ``singerlake.json`` from the files that are there.

    What a readable manifest knows beyond them is kept: the order of commits and versions, schemas without data. A
    manifest that changes gets a new generation; running writers of the stream are fenced out (``LockLost``) and lose no
    row. One that is right stays as it is.

    Args:
        jobs, processes: see ``burler.lake.care.inventory``.
        on_progress: called as each stream is done.
        on_file: gets how many files of the stream have been read, and of how many, as each is done.

    Raises:
        UsageError: no such tap or stream. LakeError: a manifest of a newer format. StorageError: the store fails;
            streams that are done stay so.
    """
    lake = Lake(store)
    lake.warn_if_alone("rebuild")
    found: list[RebuiltStream] = []
    problems: list[str] = []
    for place in lake.folders(taps=taps, streams=streams):
        made = _stream(place, _Contents(place, jobs, processes, on_file))
        if made is None:
            continue
        result, snapshot = made
        found.append(result)
        if on_progress is not None:
            on_progress(result)
        problems += _described(place, snapshot)
    return Rebuilt(tuple(found), tuple(problems))


def _stream(place: StreamFolder, contents: _Contents) -> tuple[RebuiltStream, Snapshot] | None:
    """Make one manifest anew: what was done, and what readers see now. None: an empty folder."""
    mark = secrets.token_hex(16)
    made: list[tuple[RebuiltStream, Snapshot]] = []
    only_fenced = True

    def changed(data: bytes | None, again: bool) -> bytes | None:
        nonlocal only_fenced
        old = None if data is None else _readable(place, data)
        # A writer that commits all the time would always be faster: its claim is taken first, which is done at once.
        # It is tried until it is done: what is done in full takes longer the more files there are.
        only_fenced = again and old is not None and mark not in old["commit_ids"]
        if old is not None and mark in old["commit_ids"]:
            return None
        if old is not None and only_fenced:
            old["writers"] = _raised(old["writers"], old["versions"])
            return doc.to_bytes(old)
        found = contents.found(old)
        if data is None and not found and not contents.damaged:
            return None
        stream = _named(place, old, found)
        document = _assembled(stream, old, found, mark=mark, there=contents.there)
        made[:] = [(_told(stream, old, document, contents), stream.picture(document))]
        return None if document is old else doc.to_bytes(document)

    blob = place.store.read(place.manifest)
    # The long part is done before the swap, which gives up when others write for a minute.
    contents.found(_readable(place, blob.data) if blob else None)
    while only_fenced:
        swap(place.store, place.manifest, changed)
    return made[0] if made else None


def _readable(place: StreamFolder, data: bytes) -> doc.Document | None:
    """The manifest that there is; None if it can't be read.

    Raises:
        LakeError: it is of a newer format.
    """
    try:
        document = doc.from_bytes(data, place.store.locate(place.manifest))
        place.picture(document)
    except doc.NewerFormat:
        raise
    except LakeError:
        return None
    return document


@dataclass(frozen=True, slots=True)
class _Found:
    """A data file that counts: where it lies, what is in it, and the note of what it replaces, if it is compacted."""

    file: StoredFile
    measured: Measured
    note: Replacement | None


class _Contents:
    """What is in the data files of a stream. Each is read once, however often the swap is tried.

    Attributes:
        there: the paths of all files there are. damaged: those that can't be used, by their paths.
    """

    def __init__(
        self, place: StreamFolder, jobs: int | None, processes: bool, on_file: Callable[[int, int], object] | None
    ) -> None:
        self._place, self._jobs, self._processes, self._on_file = place, jobs, processes, on_file
        self._measured: dict[str, Measured] = {}
        self.there: set[str] = set()
        self.damaged: dict[str, Damaged] = {}

    def found(self, old: doc.Document | None) -> list[_Found]:
        """The files that count beside a manifest. A damaged compacted file gives way to its parts."""
        place, store = self._place, self._place.store
        files = {file.path: file for file in store.files(place.folder)}
        self.there = set(files)
        removed = set(map(place.path, (old or {}).get("removed") or ()))
        data = set(replaced.all_data_files(place.folder, files)) - removed
        notes = Notes.read(store, data)
        self.damaged |= {path: Damaged(path, str(error)) for path, error in notes.broken.items()}
        listed = {} if old is None else {name: old["file_stats"].get(name) or {} for name in old["files"]}
        trusted = {path: _trusted(listed, place.name(path), notes.good.get(path)) for path in data}
        while True:
            usable = data - self.damaged.keys()
            standing_for = {path: note for path in usable if (note := trusted[path]) is not None}
            standing = sorted(usable - replaced.hidden_by(place.folder, standing_for, data))
            todo = [files[path] for path in standing if path not in self._measured]
            if self._measure(todo):
                return [_Found(files[path], self._measured[path], notes.good.get(path)) for path in standing]

    def _measure(self, files: list[StoredFile]) -> bool:
        """Read files to their ends; whether all are whole (else others may have to stand in)."""
        damaged = len(self.damaged)
        seen = examined(self._place.store, files, jobs=self._jobs, processes=self._processes)
        for done, (file, one) in enumerate(seen, 1):
            if self._on_file is not None:
                self._on_file(done, len(files))
            if isinstance(one, DamagedFile):
                self.damaged[file.path] = Damaged(file.path, str(one))
            else:
                self._measured[file.path] = one
        return len(self.damaged) == damaged


def _trusted(listed: Mapping[str, doc.Document], name: str, note: Replacement | None) -> Replacement | None:
    """What a file replaces. An old manifest that lists it knows better than its note: that may be lost, or name a file
    that has gone and whose name was used again. ``listed``: what the manifest knows of each of its files."""
    parts = listed.get(name, {}).get("replaces")
    if not parts:
        return note
    through = [*note.through, *note.replaces] if note else []
    return Replacement(tuple(parts), tuple(part for part in through if part not in listed))


def _named(place: StreamFolder, old: doc.Document | None, found: Sequence[_Found]) -> StreamFolder:
    """The stream with its name: one that its folder can't say (it was cut) stands in the files."""
    folder = place.folder.rpartition("/")[2]
    if old is not None or layout.name_of(folder) is not None:
        return place
    names = (one.measured.stream for one in found)
    return next((replace(place, stream=name) for name in names if name and layout.component(name) == folder), place)


def _told(place: StreamFolder, old: doc.Document | None, document: doc.Document, contents: _Contents) -> RebuiltStream:
    listed, before = (set(map(place.path, one["files"])) for one in (document, old or {"files": ()}))
    return RebuiltStream(
        tap_id=place.tap_id,
        stream=place.stream,
        files=len(listed),
        records=sum(document["file_stats"][name]["records"] for name in document["files"]),
        versions=len(document["versions"]),
        adopted=None if old is None else tuple(sorted(listed - before)),
        gone=tuple(sorted(before - contents.there)),
        damaged=tuple(contents.damaged[path] for path in sorted(contents.damaged)),
    )


_KEPT_GENERATIONS = 20
_OF_EACH_REBUILD = frozenset({"generation", "sequence", "commit_ids", "writers", "continues"})


def _assembled(
    place: StreamFolder, old: doc.Document | None, found: Sequence[_Found], *, mark: str, there: Collection[str]
) -> doc.Document:
    """The new manifest, of a new generation and with all claims raised; ``old`` itself if nothing changes.

    Files that the old one has, or had before they were compacted, keep their sequence; all others are new.

    Args:
        old: the one before, if it could be read: it knows the order of commits and versions, and schemas without data.
        found: the files it will list. mark: the commit id of this rebuild. there: paths of all files there are.
    """
    document = doc.new_document(place.tap_id, place.stream)
    known: doc.Document = old or doc.new_document(place.tap_id, place.stream)
    document |= {key: value for key, value in known.items() if key not in document}
    document |= {key: dict(known[key]) for key in ("versions", "schemas")}
    document["sequence"] = known["sequence"]
    sequence = doc.add_commit(document, mark)

    listed, parts = frozenset(known["files"]), replaced_names(known)
    stats: dict[str, FileStats] = {}
    for one in found:
        name, wire = place.name(one.file.path), None
        was = known["file_stats"].get(name) if name in listed or name in parts else None
        if was is not None and (name in listed or _is_same(was, one.measured.stats)):
            wire = was
        stats[one.file.path] = _stats(place, one, known, sequence, wire, there)
    files = sorted((DataFile(path, one) for path, one in stats.items()), key=lambda file: file.order)
    lines = {one.file.path: one.measured.line for one in found}
    for file in files:
        line = document["schemas"].get(file.hash, {}).get("line")
        if file.hash not in document["versions"] or not isinstance(line, str):
            doc.add_schema(document, lines[file.path], digest=file.hash)
    document["files"] = sorted((place.name(file.path) for file in files), key=sort_key)
    document["file_stats"] = {name: stats[place.path(name)].to_wire() for name in document["files"]}
    still = (replaced_names(document) & known["file_stats"].keys()) - document["file_stats"].keys()
    document["file_stats"] |= {name: known["file_stats"][name] for name in sorted(still)}
    if old is not None:
        if old["generation"] and all(old.get(key) == document[key] for key in document.keys() - _OF_EACH_REBUILD):
            return old
        document["continues"] = _continued(old, document)
    document["writers"] = _raised(known["writers"], (file.hash for file in files))
    return document


def _continued(old: doc.Document, new: doc.Document) -> dict[str, int]:
    """What ``continues`` says of a new manifest that was made from an old one: generation -> sequence.

    None of them if a file that both list has other rows now: who has read it must read again.
    """
    before, now = old["file_stats"], new["file_stats"]
    for name in set(old["files"]) & set(new["files"]):
        was, is_ = before.get(name), now.get(name)
        if was is not None and (is_ is None or any(was.get(key) != is_[key] for key in ("records", "bytes"))):
            return {}
    every = {**(old.get("continues") or {}), old["generation"]: old["sequence"]}
    return {generation: every[generation] for generation in [*every][-_KEPT_GENERATIONS:] if generation}


def _is_same(wire: doc.Document, stats: FileStats) -> bool:
    """Whether a file is the one that a compacted one replaced: then it was committed before, and keeps its place."""
    return (wire.get("records"), wire.get("bytes")) == (stats.records, stats.bytes)


def _stats(
    place: StreamFolder, one: _Found, known: doc.Document, sequence: int, wire: Any, there: Collection[str]
) -> FileStats:
    """What was measured, with what only an old manifest can know of a file (``wire``), else with what its note says."""
    known_time = one.file.modified != UNKNOWN_TIME
    modified = times.format_time(dt.datetime.fromtimestamp(one.file.modified, dt.UTC)) if known_time else ""
    stats = replace(one.measured.stats, sequence=sequence, written=modified, stored_bytes=one.file.size_bytes)
    if wire is not None:
        was = FileStats.from_wire(wire)
        written = was.written or modified
        return replace(stats, sequence=was.sequence, rank=was.rank, replaces=was.replaces, written=written)
    if one.note is not None and one.note.replaces:
        before = known["file_stats"]
        counted = {part: number for was in before.values() for part, number in (was.get("replaces") or {}).items()}
        counted |= {part: was.get("sequence", sequence) for part, was in before.items()}
        parts = {part: int(counted.get(part, sequence)) for part in one.note.replaces}
        gone = {part for part in parts if part not in before and place.path(part) not in there}
        return replace(stats, rank=max(parts.values()), replaces=pruned(parts, gone))
    return stats


def _raised(writers: doc.Document, hashes: Iterable[str]) -> doc.Document:
    """Claims that nobody holds: every writer before is fenced out."""
    writer_id = f"rebuild-{secrets.token_hex(4)}"
    return {
        digest: {"writer-id": writer_id, "epoch": writers.get(digest, {}).get("epoch", 0) + 1}
        for digest in sorted({*writers, *hashes})
    }


def _described(place: StreamFolder, snapshot: Snapshot) -> list[str]:
    """Have the stream in its tap's catalogue, and the tap in ``singerlake.json``; what went wrong."""
    store, tap_id = place.store, place.tap_id
    if layout.tap_folder(tap_id) != place.tap_folder:
        return []  # the tap's name was cut, and nothing knows it
    problems = []
    for describe in (
        lambda: _in_catalogue(store, snapshot),
        lambda: catalogue.describe_lake(store, tap_id, mend=True),
    ):
        try:
            describe()
        except (LakeError, UsageError) as error:
            problems.append(str(error))
    return problems


def _in_catalogue(store: Store, snapshot: Snapshot) -> None:
    """Have the stream in its tap's catalogue; one that nobody can read is made anew."""
    try:
        known = catalogue.read_catalogue(store, snapshot.tap_id)
    except LakeError:
        known = None
    newest = snapshot.newest()
    if newest is not None and snapshot.stream not in map(catalogue.stream_named, (known or {"streams": ()})["streams"]):
        message = head_by_hash(store, snapshot, newest).message
        catalogue.describe_streams(store, snapshot.tap_id, [message], mend=True)
