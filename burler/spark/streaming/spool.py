"""Removing from a spool what its query has taken for good.

First the note says up to which commit rows are given up, so that no reader takes their absence for the end; then the
manifest lets go of the files, by compare-and-swap; then they go.
"""

from __future__ import annotations

import datetime as dt
import secrets
import time

from burler import times
from burler.lake import layout
from burler.lake import manifest as doc
from burler.lake.layout import sort_key
from burler.lake.replay import is_behind
from burler.lake.snapshot import Snapshot
from burler.lake.store import swap
from burler.spark.streaming.note import Note, change_note, read_note
from burler.spark.streaming.offsets import Offset
from burler.storage.base import Store


def give_up(store: Store, snapshot: Snapshot, end: Offset, *, older_than_seconds: float) -> int:
    """Remove the files of whole commits that ``end`` covers and that are old enough; how many went.

    Raises:
        LakeError, StorageError: the spool can't be changed; what was not removed goes another time.
    """
    names, sequence = _going(snapshot, end, time.time() - older_than_seconds)
    note = read_note(store)
    if not names or note is None or end.generation != snapshot.generation:
        return 0

    def change(one: Note) -> None:
        one.given_up = max(one.given_up, sequence)
        kept = [stated for stated in one.states if stated.sequence > sequence]
        one.states = [*one.states[: len(one.states) - len(kept)][-1:], *kept]

    change_note(store, lambda: note, change)
    gone = set(names)

    def let_go(data: bytes | None, _again: bool) -> bytes | None:
        if data is None:
            return None
        document = doc.from_bytes(data, store.locate(path))
        going = gone & set(document["files"])
        if not going:
            return None
        document["files"] = [name for name in document["files"] if name not in going]
        for name in going:
            document["file_stats"].pop(name, None)
        document["commit_ids"] = [*document["commit_ids"], secrets.token_hex(16)][-100:]
        return doc.to_bytes(document)

    path = layout.manifest_path(snapshot.tap_id, snapshot.stream)
    swap(store, path, let_go)
    for name in names:
        store.remove(f"{snapshot.folder}/{name}")
    return len(names)


def _going(snapshot: Snapshot, end: Offset, before: float) -> tuple[list[str], int]:
    """The files that may go, as names below the stream's folder, and the last commit of which all go."""
    limit = end.position.limit(snapshot.folder)
    below = len(snapshot.folder) + 1
    names: list[str] = []
    sequence, open_sequence = 0, None
    for file in sorted(snapshot.files, key=lambda one: one.sequence):
        stats = file.stats
        is_taken = (
            stats is not None
            and not stats.replaces
            and not is_behind((stats.sequence, sort_key(file.path)), limit)
            and _seconds(stats.written) <= before
        )
        if not is_taken:
            open_sequence = file.sequence
            break
    for file in snapshot.files:
        if open_sequence is None or file.sequence < open_sequence:
            names.append(file.path[below:])
            sequence = max(sequence, file.sequence)
    return names, sequence


def _seconds(written: str) -> float:
    """When rows were committed; unknown is never long ago."""
    if not written:
        return float("inf")
    return (times.moment(written) - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)).total_seconds()
