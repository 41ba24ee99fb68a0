"""What ``check`` sees in one stream: first by its listing and manifest, then in each data file."""

from __future__ import annotations

import datetime as dt
import re
import shlex
from collections.abc import Iterator

from burler import times
from burler.errors import LakeError
from burler.lake import layout
from burler.lake.care.check_names import leftovers
from burler.lake.care.examining import Examined
from burler.lake.care.findings import LEFT_OUT, Finding, finding
from burler.lake.care.listed import StreamListing
from burler.lake.care.locks import LOCK, awaits_commit, dead_for, guarded
from burler.lake.care.places import read_json, read_snapshot
from burler.lake.care.rebuilding import stream_of
from burler.lake.manifests import replaced
from burler.lake.manifests.replaced import Replacement
from burler.lake.measure import DamagedFile, Measured
from burler.lake.snapshot import FileStats, Snapshot
from burler.storage.base import Store, StoredFile

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
            self.snapshot = read_snapshot(store, listing.place)
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
