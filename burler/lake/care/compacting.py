"""``burler lake compact``: many small files into few, in one commit that fences nobody out.

A compacted file is published, with a note of what it replaces beside it, and then the manifest is changed by
compare-and-swap: the new file in, its parts out, if all of them are still listed. No claim is taken: a writer's
commit only adds files, so each of the two can come first. The parts stay in place for readers of older snapshots,
until ``vacuum``.
"""

from __future__ import annotations

import datetime as dt
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from burler import times
from burler.errors import LakeError, UsageError
from burler.lake.care.merging import Merged, merge
from burler.lake.care.places import Place, change_manifest, places, read_snapshot, warn_if_alone
from burler.lake.care.removing import remove_unlisted
from burler.lake.care.runs import Run, runs
from burler.lake.manifests import document as doc
from burler.lake.snapshot import DataFile, Snapshot
from burler.storage.base import Store

BELOW_BYTES = 64 * 1024 * 1024
_FILES_A_COMMIT = 20
_COMPRESSIONS = ("gz", "bz2", None)


@dataclass(frozen=True, slots=True)
class CompactedFile:
    """A file that ``compact`` made. Paths are relative to the lake.

    ``bytes`` are those before compression, ``stored_bytes`` those after.
    """

    path: str
    parts: tuple[str, ...]
    records: int
    bytes: int
    stored_bytes: int


@dataclass(frozen=True, slots=True)
class CompactedStream:
    """What ``compact`` did for a stream: files listed before and after it, the new ones, and what it could not read."""

    tap_id: str
    stream: str
    before: int
    after: int
    files: tuple[CompactedFile, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Compaction:
    """What ``compact`` did, stream by stream."""

    streams: tuple[CompactedStream, ...]


def compact(
    store: Store,
    *,
    taps: Sequence[str] | None = None,
    streams: Sequence[str] | None = None,
    below_bytes: int = BELOW_BYTES,
    older_than_seconds: float = 0.0,
    compression: str | None = "gz",
    compression_level: int = 1,
    now: Callable[[], float] = time.time,
    on_progress: Callable[[CompactedStream], object] | None = None,
    on_file: Callable[[int, int], object] | None = None,
) -> Compaction:
    """Put small neighbours in replay order together. Safe while others write and read.

    Streams without a manifest are left as they are: nothing says in which order their files were committed.

    Args:
        below_bytes: the most that a new file may have before compression; files of half of it or more stay.
        older_than_seconds: files whose rows were committed later than that stay.
        compression, compression_level: of the new files; see ``burler.formats.compression``.
        now: seconds since 1970.
        on_progress: called as each stream is done.
        on_file: gets how many small files of the stream have been read, and of how many, as a new one is written.

    Raises:
        UsageError: no such tap or stream; a size or compression that can't be. StorageError: the store fails; what
            was committed until then stays so.
    """
    if below_bytes < 1 or not older_than_seconds >= 0:
        raise UsageError("compact needs a size of 1 byte or more, and an age of 0 seconds or more.")
    if compression not in _COMPRESSIONS:
        raise UsageError(f"compression {compression!r} is unknown. Known: gz, bz2, none.")
    warn_if_alone(store, "compact")
    found = []
    for place in places(store, taps=taps, streams=streams):
        before = now() - older_than_seconds
        work = _Work(store, place, below_bytes, before, compression, compression_level, now, on_file)
        found.append(work.run())
        if on_progress is not None:
            on_progress(found[-1])
    return Compaction(tuple(found))


@dataclass(slots=True)
class _Work:
    """The compaction of one stream. ``before``: seconds since 1970; what was committed later stays."""

    store: Store
    place: Place
    below_bytes: int
    before: float
    compression: str | None
    level: int
    now: Callable[[], float]
    on_file: Callable[[int, int], object] | None

    def run(self) -> CompactedStream:
        nothing = CompactedStream(self.place.tap_id, self.place.stream, 0, 0)
        try:
            snapshot = read_snapshot(self.store, self.place)
        except LakeError as error:
            return replace(nothing, problems=(str(error),))
        if snapshot is None:
            return nothing
        groups = runs(snapshot, below_bytes=self.below_bytes, is_old=self._is_old)
        done: list[CompactedFile] = []
        problems: list[str] = []
        merging = self._merge(groups, problems)
        while merged := list(islice(merging, _FILES_A_COMMIT)):
            done += self._commit(snapshot, merged)
        count = len(snapshot.files)
        gone = sum(len(file.parts) - 1 for file in done)
        return replace(nothing, before=count, after=count - gone, files=tuple(done), problems=tuple(problems))

    def _is_old(self, file: DataFile) -> bool:
        written = file.stats.written if file.stats else ""
        try:
            moment = times.moment(written or (file.stats.last if file.stats else ""))
        except ValueError:
            return False
        return moment.timestamp() <= self.before

    def _merge(self, groups: Sequence[Run], problems: list[str]) -> Iterator[Merged]:
        read, small = 0, sum(map(len, groups))
        for run in groups:
            written = times.format_time(dt.datetime.fromtimestamp(self.now(), dt.UTC))
            try:
                yield merge(
                    self.store, self.place, run, compression=self.compression, level=self.level, written=written
                )
            except LakeError as error:
                problems.append(str(error))
            read += len(run)
            if self.on_file is not None:
                self.on_file(read, small)

    def _commit(self, snapshot: Snapshot, merged: list[Merged]) -> list[CompactedFile]:
        """Put the new files into the manifest in the place of their parts; those that went in.

        Where somebody else replaced or dropped a part meanwhile, or made the manifest anew, the file is removed again.
        """
        mark = secrets.token_hex(16)
        taken: list[Merged] = []

        def change(document: doc.Document) -> bool:
            taken.clear()
            listed = set(document["files"])
            if document["generation"] == snapshot.generation:
                taken.extend(one for one in merged if listed.issuperset(one.parts))
            if not taken:
                return False
            sequence = doc.add_commit(document, mark)
            gone = {part for one in taken for part in one.parts}
            document["files"] = [name for name in document["files"] if name not in gone]
            doc.add_files(document, [(one.name, replace(one.stats, sequence=sequence)) for one in taken])
            return True

        change_manifest(self.store, self.place, change, mark=mark)
        unused = [one.name for one in merged if one not in taken]
        if unused:
            remove_unlisted(self.store, self.place, unused, now=self.now())
        return [self._told(one) for one in taken]

    def _told(self, one: Merged) -> CompactedFile:
        return CompactedFile(
            path=f"{self.place.folder}/{one.name}",
            parts=tuple(f"{self.place.folder}/{part}" for part in one.parts),
            records=one.stats.records,
            bytes=one.stats.bytes,
            stored_bytes=one.stats.stored_bytes or 0,
        )
