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
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from burler import times
from burler.errors import BurlerError, LakeError, UsageError
from burler.lake import catalogue, layout, replaced
from burler.lake import manifest as doc
from burler.lake.care.inventory import examined
from burler.lake.care.vacuuming import pruned
from burler.lake.datafile import DamagedFile, Measured, head_by_hash
from burler.lake.lake import Lake, StreamFolder
from burler.lake.layout import sort_key
from burler.lake.replaced import Replacement
from burler.lake.snapshot import DataFile, FileStats, Snapshot
from burler.lake.store import swap
from burler.storage.base import UNKNOWN_TIME, Conflict, OutcomeUnknown, Store, StoredFile


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
    Lake(store).warn_if_alone("rebuild")
    wanted = Lake(store).folders(taps=taps, streams=streams)
    found, problems = [], []
    for place in wanted:
        work = _Work(store, place, jobs, processes, on_file)
        work.run()
        if work.result is None:
            continue
        found.append(work.result)
        if on_progress is not None:
            on_progress(work.result)
        problems += _described(store, work.place, work.snapshot)
    return Rebuilt(tuple(found), tuple(problems))


@dataclass(slots=True)
class _Work:
    """One stream. What was measured is kept for the next try of the compare-and-swap."""

    store: Store
    place: StreamFolder
    jobs: int | None
    processes: bool
    on_file: Callable[[int, int], object] | None
    snapshot: Snapshot | None = None
    result: RebuiltStream | None = None
    _mark: str = field(default_factory=lambda: secrets.token_hex(16))
    _measured: dict[str, Measured] = field(default_factory=dict)
    _damaged: dict[str, Damaged] = field(default_factory=dict)
    _notes: dict[str, Replacement] = field(default_factory=dict)
    _there: set[str] = field(default_factory=set)
    _only_fenced: bool = False

    def run(self) -> None:
        blob = self.store.read(self.place.manifest)
        old = self._readable(blob.data) if blob else None
        # The long part is done before the swap, which gives up when others write for a minute.
        self._read(old, list(self.store.files(self.place.folder)))
        self._only_fenced = True
        while self._only_fenced:
            swap(self.store, self.place.manifest, self._changed)

    def _changed(self, data: bytes | None, again: bool) -> bytes | None:
        old = None if data is None else self._readable(data)
        if old is not None and self._mark in old["commit_ids"]:
            self._only_fenced = False
            return None
        # A writer that commits all the time would always be faster: its claim is taken first, which is done at once.
        # It is tried until it is done: what is done in full takes longer the more files there are.
        self._only_fenced = again and old is not None
        if self._only_fenced and old is not None:
            old["writers"] = raised(old["writers"], old["versions"])
            return doc.to_bytes(old)
        found = self._read(old, list(self.store.files(self.place.folder)))
        if data is None and not found and not self._damaged:
            return None  # an empty folder
        self._name_stream(old, found)
        document = assemble(self.place, old, found, mark=self._mark, there=self._there)
        where = self.store.locate(self.place.manifest)
        self.snapshot = doc.to_snapshot(
            document, tap_id=self.place.tap_id, stream=self.place.stream, folder=self.place.folder, place=where
        )
        self.result = self._told(old, document)
        return None if document is old else doc.to_bytes(document)

    def _readable(self, data: bytes) -> doc.Document | None:
        where = self.store.locate(self.place.manifest)
        if is_newer(data):
            raise LakeError(f"{where} is of a newer format. Upgrade burler: this one would lose what stands in it.")
        try:
            document = doc.from_bytes(data, where)
            doc.to_snapshot(document, tap_id="", stream="", folder=self.place.folder, place=where)
        except LakeError:
            return None
        return document

    def _read(self, old: doc.Document | None, files: list[StoredFile]) -> list[Found]:
        """The files that count, measured. A damaged compacted file gives way to its parts."""
        folder = self.place.folder
        removed = {f"{folder}/{name}" for name in (old or {}).get("removed") or ()}
        self._there = {file.path for file in files}
        data = set(replaced.all_data_files(folder, self._there)) - removed
        there = {file.path: file for file in files if file.path in data}
        for path in there:
            if replaced.is_compacted(path) and path not in self._notes:
                self._read_note(path)
        listed = frozenset((old or {}).get("files") or ())
        while True:
            usable = there.keys() - self._damaged.keys()
            notes = {path: _trusted(old, listed, path[len(folder) + 1 :], self._notes.get(path)) for path in usable}
            standing_for = {path: note for path, note in notes.items() if note is not None}
            hidden = replaced.hidden_by(folder, standing_for, set(there))
            standing = [there[path] for path in sorted(usable - hidden)]
            todo = [file for file in standing if file.path not in self._measured]
            if not self._measure(todo):
                return [Found(file, self._measured[file.path], self._notes.get(file.path)) for file in standing]

    def _read_note(self, path: str) -> None:
        try:
            note = replaced.read(self.store, path)
        except LakeError as error:
            self._damaged[path] = Damaged(path, str(error))
            return
        if note is not None:
            self._notes[path] = note

    def _measure(self, files: list[StoredFile]) -> bool:
        """Measure files; whether some are damaged, so that others may have to stand in."""
        some = False
        found = examined(self.store, files, jobs=self.jobs, processes=self.processes)
        for done, (file, seen) in enumerate(found, 1):
            if self.on_file is not None:
                self.on_file(done, len(files))
            if isinstance(seen, DamagedFile):
                self._damaged[file.path] = Damaged(file.path, str(seen))
                some = True
            else:
                self._measured[file.path] = seen
        return some

    def _name_stream(self, old: doc.Document | None, found: list[Found]) -> None:
        """A name that its folder can't say (it was cut) stands in the files."""
        if old is not None or layout.name_of(self.place.folder.rpartition("/")[2]) is not None:
            return
        for one in found:
            name = stream_of(one.measured.line)
            if name and layout.component(name) == self.place.folder.rpartition("/")[2]:
                self.place = replace(self.place, stream=name)
                return

    def _told(self, old: doc.Document | None, document: doc.Document) -> RebuiltStream:
        listed = {f"{self.place.folder}/{name}" for name in document["files"]}
        before = {f"{self.place.folder}/{name}" for name in (old or {}).get("files") or ()}
        stats = document["file_stats"]
        return RebuiltStream(
            tap_id=self.place.tap_id,
            stream=self.place.stream,
            files=len(listed),
            records=sum(stats[name]["records"] for name in document["files"]),
            versions=len(document["versions"]),
            adopted=None if old is None else tuple(sorted(listed - before)),
            gone=tuple(sorted(before - self._there)),
            damaged=tuple(self._damaged[path] for path in sorted(self._damaged)),
        )


def _trusted(
    old: doc.Document | None, listed: Collection[str], name: str, note: Replacement | None
) -> Replacement | None:
    """What a file replaces. An old manifest that lists it knows better than its note: that may be lost, or name a file
    that has gone and whose name was used again."""
    known = (old or {}).get("file_stats", {}).get(name) if name in listed else None
    parts = (known or {}).get("replaces")
    if not parts:
        return note
    through = [*note.through, *note.replaces] if note else []
    return Replacement(tuple(parts), tuple(part for part in through if part not in listed))


def stream_of(line: bytes) -> str | None:
    """The stream that a SCHEMA line names."""
    try:
        message = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    name = message.get("stream") if isinstance(message, dict) else None
    return name if isinstance(name, str) else None


def _described(store: Store, place: StreamFolder, snapshot: Snapshot | None) -> list[str]:
    """Have the stream in its tap's catalogue, and the tap in ``singerlake.json``; what went wrong."""
    if snapshot is None or layout.tap_folder(place.tap_id) != place.folder.rpartition("/")[0]:
        return []  # the tap's name was cut, and nothing knows it
    problems = []
    try:
        _drop_if_broken(
            store, layout.catalogue_path(place.tap_id), lambda: catalogue.read_catalogue(store, place.tap_id)
        )
        known = catalogue.read_catalogue(store, place.tap_id) or {"streams": []}
        if place.stream not in map(catalogue.stream_named, known["streams"]) and snapshot.hashes:
            newest = snapshot.files[-1].hash if snapshot.files else snapshot.hashes[-1]
            schema = head_by_hash(store, snapshot, newest).message
            catalogue.describe_streams(store, place.tap_id, [schema])
    except (LakeError, UsageError) as error:
        problems.append(str(error))
    try:
        catalogue.describe_lake(store, place.tap_id, mend=True)
    except (LakeError, UsageError) as error:
        problems.append(str(error))
    return problems


def _drop_if_broken(store: Store, path: str, read: Callable[[], object]) -> None:
    """Remove a descriptive file that nobody can read, so that it can be made anew."""
    try:
        read()
    except BurlerError:
        blob = store.read(path)
        if blob is not None:
            try:
                store.delete(path, tag=blob.tag)
            except (Conflict, OutcomeUnknown):
                return  # somebody has just mended it


_OF_EACH_REBUILD = frozenset({"generation", "sequence", "commit_ids", "writers", "continues"})


@dataclass(frozen=True, slots=True)
class Found:
    """A data file that counts: where it lies, what is in it, and the note of what it replaces, if it is compacted."""

    file: StoredFile
    measured: Measured
    note: Replacement | None = None


def is_newer(data: bytes) -> bool:
    """Whether a manifest is of a format that this burler does not know."""
    try:
        document = read_json(data)
    except ValueError:
        return False
    number = document.get("format", doc.FORMAT) if isinstance(document, dict) else None
    return isinstance(number, int) and number > doc.FORMAT


def assemble(
    place: StreamFolder, old: doc.Document | None, found: Sequence[Found], *, mark: str, there: Collection[str]
) -> doc.Document:
    """The new manifest, of a new generation and with all claims raised; ``old`` itself if nothing changes.

    Files that the old one has, or had before they were compacted, keep their sequence; all others are new.

    Args:
        old: the one before, if it could be read: it knows the order of commits and versions, and schemas without data.
        found: the files it will list. mark: the commit id of this rebuild. there: paths of all files there are.
    """
    document = doc.new_document(place.tap_id, place.stream)
    known: doc.Document = old or {}
    document |= {key: value for key, value in known.items() if key not in document}
    document["versions"] = dict(known.get("versions") or {})
    document["schemas"] = dict(known.get("schemas") or {})
    document["sequence"] = int(known.get("sequence") or 0)
    sequence = doc.add_commit(document, mark)

    below = len(place.folder) + 1
    listed, here = frozenset(known.get("files") or ()), frozenset(path[below:] for path in there)
    parts = frozenset(doc.replaced_names(old)) if old is not None else frozenset()
    stats = {}
    for one in found:
        name = one.file.path[below:]
        wire = known["file_stats"].get(name) if name in listed or name in parts else None
        if name not in listed and not _is_same(wire, one.measured.stats):
            wire = None
        stats[one.file.path] = _stats(one, known, sequence, wire, here)
    files = [DataFile(path, one) for path, one in stats.items()]
    lines = {one.file.path: one.measured.line for one in found}
    for file in sorted(files, key=lambda file: file.order):
        if file.hash not in document["versions"] or not _has_line(document, file.hash):
            doc.add_schema(document, lines[file.path], digest=file.hash)
    names = {file.path[below:]: file for file in files}
    document["files"] = sorted(names, key=sort_key)
    document["file_stats"] = {name: stats[f"{place.folder}/{name}"].to_wire() for name in document["files"]}
    still = doc.replaced_names(document) & (known.get("file_stats") or {}).keys()
    document["file_stats"] |= {name: known["file_stats"][name] for name in sorted(still - names.keys())}
    if old is not None and _is_as_it_was(old, document):
        return old
    document["continues"] = {} if old is None else doc.continued(old, document)
    document["writers"] = raised(known.get("writers") or {}, (file.hash for file in files))
    return document


def _is_as_it_was(old: doc.Document, new: doc.Document) -> bool:
    return bool(old["generation"]) and all(old.get(key) == new[key] for key in new.keys() - _OF_EACH_REBUILD)


def _is_same(wire: Any, stats: FileStats) -> bool:
    """Whether a file is the one that a compacted one replaced: then it was committed before, and keeps its place."""
    return wire is not None and (wire.get("records"), wire.get("bytes")) == (stats.records, stats.bytes)


def _stats(one: Found, known: doc.Document, sequence: int, wire: Any, here: frozenset[str]) -> FileStats:
    """What was measured, with what only an old manifest can know of a file (``wire``), else with what its note says."""
    known_time = one.file.modified != UNKNOWN_TIME
    modified = times.format_time(dt.datetime.fromtimestamp(one.file.modified, dt.UTC)) if known_time else ""
    stats = replace(one.measured.stats, sequence=sequence, written=modified, stored_bytes=one.file.size_bytes)
    if wire is not None:
        was = FileStats.from_wire(wire)
        written = was.written or modified
        return replace(stats, sequence=was.sequence, rank=was.rank, replaces=was.replaces, written=written)
    if one.note is not None and one.note.replaces:
        before = known.get("file_stats") or {}
        counted = {part: number for was in before.values() for part, number in (was.get("replaces") or {}).items()}
        counted |= {part: was.get("sequence", sequence) for part, was in before.items()}
        parts = {part: int(counted.get(part, sequence)) for part in one.note.replaces}
        return replace(stats, rank=max(parts.values()), replaces=pruned(parts, set(parts) - before.keys() - here))
    return stats


def _has_line(document: doc.Document, digest: str) -> bool:
    known = document["schemas"].get(digest)
    return isinstance(known, dict) and isinstance(known.get("line"), str)


def raised(writers: dict[str, Any], hashes: Iterable[str]) -> dict[str, Any]:
    """Claims that nobody holds: every writer before is fenced out."""
    writer_id = f"rebuild-{secrets.token_hex(4)}"
    new = {}
    for digest in sorted({*writers, *hashes}):
        entry = writers.get(digest)
        epoch = entry.get("epoch") if isinstance(entry, dict) else 0
        new[digest] = {"writer-id": writer_id, "epoch": (epoch if isinstance(epoch, int) else 0) + 1}
    return new


def read_json(data: bytes) -> Any:
    """JSON of whatever shape.

    Raises:
        ValueError: it is none; says why.
    """
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None
