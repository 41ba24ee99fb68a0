"""Which files may become one: pure decisions from a snapshot.

Rows must keep their place: only files that follow each other in replay order, of one schema version. And an
ACTIVATE_VERSION drops rows by the files they stand in (rows without a version, and rows of later versions that came
before it), so it can only be the last line that counts in a compacted file, and nothing before it may be of a
later version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from burler.lake.snapshot import DataFile, FileStats, Snapshot

Run = tuple[tuple[DataFile, FileStats], ...]

_OUTWEIGHS = 4


def runs(snapshot: Snapshot, *, below_bytes: int, is_old: Callable[[DataFile], bool]) -> list[Run]:
    """Groups of two files or more that are to become one each, in replay order.

    Args:
        below_bytes: the most that a group may have, uncompressed; files of half of it or more stay as they are.
        is_old: whether a file may be touched at all.
    """
    found = []
    for stretch in _stretches(snapshot, below_bytes // 2, is_old):
        for run in _cut(stretch, below_bytes):
            kept = _worthwhile(run)
            if len(kept) > 1:
                found.append(tuple(kept))
    return found


def _stretches(
    snapshot: Snapshot, big_bytes: int, is_old: Callable[[DataFile], bool]
) -> Iterator[list[tuple[DataFile, FileStats]]]:
    """Neighbours that may be put together as far as schema and size go."""
    stretch: list[tuple[DataFile, FileStats]] = []
    for file in snapshot.files:
        stats = file.stats
        fits = stats is not None and stats.bytes < big_bytes and is_old(file)
        if stretch and (not fits or file.hash != stretch[-1][0].hash):
            yield stretch
            stretch = []
        if fits and stats is not None:
            stretch.append((file, stats))
    if stretch:
        yield stretch


def _cut(stretch: list[tuple[DataFile, FileStats]], below_bytes: int) -> Iterator[list[tuple[DataFile, FileStats]]]:
    """A stretch in pieces: by size, and where an activation stands."""
    run: list[tuple[DataFile, FileStats]] = []
    size = 0
    newest: int | None = None
    for file, stats in stretch:
        drops = stats.activate_version is not None and newest is not None and newest > stats.activate_version
        if run and (size + stats.bytes > below_bytes or drops):
            yield run
            run, size, newest = [], 0, None
        run.append((file, stats))
        size += stats.bytes
        newest = max((version for version in (newest, *(stats.versions or ())) if version is not None), default=None)
        if stats.activate_version is not None:
            yield run
            run, size, newest = [], 0, None
    if run:
        yield run


def _worthwhile(run: list[tuple[DataFile, FileStats]]) -> list[tuple[DataFile, FileStats]]:
    """Without files at its beginning that outweigh all the rest by far: else each compact writes these rows again."""
    rest = sum(stats.bytes for _, stats in run)
    for at, (_, stats) in enumerate(run):
        rest -= stats.bytes
        if stats.bytes <= _OUTWEIGHS * rest:
            return run[at:]
    return []
