"""``burler lake check``: everything that can be wrong with a lake, each with its cure. Changes nothing.

The files are listed first, then the manifests are read: what is committed in between is no finding. What is suspicious
because the manifest does not say it, or says it wrongly, is looked at once more at the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from burler.errors import LakeError
from burler.lake.care import check_names, check_stream
from burler.lake.care.check_lost import lost
from burler.lake.care.examining import examined
from burler.lake.care.findings import Finding
from burler.lake.care.listed import listed
from burler.lake.care.places import places, read_snapshot
from burler.storage.base import Store

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
        jobs, processes: see ``burler.lake.care.examining``.
        now: seconds since 1970, by the store's clock.
        on_progress: called now and then with the number of data files read, and of all.

    Raises:
        UsageError: no such tap or stream. StorageError: the store fails.
    """
    whole = taps is None and streams is None
    wanted = places(store, taps=taps, streams=streams)
    listing = listed(store, wanted, whole=whole)
    findings: list[Finding] = list(check_names.look(store, listing, wanted, whole=whole, now=now()))
    known = [check_stream.StreamCheck(store, stream, now()) for stream in listing.streams]
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


def _still(store: Store, streams: Iterable[check_stream.StreamCheck], findings: Sequence[Finding]) -> Iterator[Finding]:
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
            snapshot = read_snapshot(store, stream.listing.place)
        except LakeError:
            snapshot = stream.snapshot
        yield from (one for one in mine if not stream.is_settled(one, snapshot))
