"""Which files hold the rows of commits in (start, end], whatever compaction has done since.

A *point* is where a file was committed: its commit's sequence, then its place among the files of that commit. A
compacted file has the points of all files whose rows it holds. Rows are asked for by points, so a range means the same
rows before and after a compaction; only where ``vacuum`` has taken the single files away, and the range cuts through
the compacted one, can they not be told apart any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from burler.errors import LakeError
from burler.lake.replay import Point, Position, is_behind, origins_of
from burler.lake.snapshot import DataFile, Snapshot


@dataclass(frozen=True, slots=True)
class Piece:
    """A file whose rows come together: one as it was committed, or a compacted one whose parts are gone.

    ``points`` are its own, in order. ``records`` and ``bytes`` (uncompressed): of all of it.
    """

    file: DataFile
    points: tuple[Point, ...]
    records: int
    bytes: int


class CutThrough(LakeError):
    """A range cuts through a compacted file whose parts are gone."""


def pieces(snapshot: Snapshot, end: Position | None = None) -> list[Piece]:
    """Everything in a stream as the smallest pieces there are, in the order of their first points.

    Args:
        end: where the caller's range ends. A compacted file that was there by then is read as it is, so that a
            range that is asked for again is read from the same files; one made later is read from its parts, as
            long as they are there.

    Raises:
        LakeError: there is no manifest, or it knows nothing of a file, so nobody can say which commit brought it.
    """
    if snapshot.generation is None:
        raise LakeError(
            f"stream '{snapshot.stream}' has no manifest, so nothing says which rows are new.\n"
            "Make one: burler lake rebuild LAKE"
        )
    replaced = {file.path: file for file in snapshot.replaced}
    found: list[Piece] = []
    for file in snapshot.files:
        if file.stats is None:
            raise LakeError(
                f"stream '{snapshot.stream}': the manifest knows nothing of {file.path}, so nothing says when its rows "
                "came.\nLook at it: burler lake check LAKE; or take it in: burler lake rebuild LAKE"
            )
        found += _pieces_of(snapshot, file, replaced, end)
    return sorted(found, key=lambda piece: piece.points[0])


def _pieces_of(
    snapshot: Snapshot, file: DataFile, replaced: dict[str, DataFile], end: Position | None
) -> Iterator[Piece]:
    stats = file.stats
    assert stats is not None
    origins = origins_of(snapshot, file)
    parts = [replaced.get(path) for _, path in origins]
    was_there = end is not None and stats.sequence <= end.sequence
    if stats.replaces and not was_there and all(part is not None and part.stats is not None for part in parts):
        for part in parts:
            if part is not None and part.stats is not None:
                yield Piece(part, (part.order,), part.stats.records, part.stats.bytes)
        return
    yield Piece(file, tuple(point for point, _ in origins), stats.records, stats.bytes)


def between(snapshot: Snapshot, start: Position, end: Position, *, again: bool = False) -> list[DataFile]:
    """The files that hold the rows behind ``start``, up to and with ``end``, in replay order.

    Args:
        again: of a compacted file that can't be told apart all rows come, those from outside of the range too.

    Raises:
        CutThrough: there is such a file, and ``again`` is not said. LakeError: as ``pieces``.
    """
    low, high = start.limit(snapshot.folder), end.limit(snapshot.folder)
    files: list[DataFile] = []
    for piece in _whole(snapshot, end, low, high):
        inside = [point for point in piece.points if is_behind(point, low) and not is_behind(point, high)]
        if not inside:
            continue
        if len(inside) < len(piece.points) and not again:
            raise CutThrough(
                f"stream '{snapshot.stream}': {piece.file.path} holds rows of commits {piece.points[0][0]} to "
                f"{piece.points[-1][0]}, and 'burler lake vacuum' has removed the single files, so the rows of commits "
                f"{start.sequence} to {end.sequence} can't be told from those read before.\n"
                'Set option("behind", "again"): its rows come again (an upsert takes that). Vacuum less early.'
            )
        files.append(piece.file)
    return sorted(files, key=lambda file: file.order)


def _whole(snapshot: Snapshot, end: Position, low: tuple[object, ...], high: tuple[object, ...]) -> Iterator[Piece]:
    """As ``pieces``; but a compacted file that the range cuts through is taken apart after all, if it can be."""
    single: dict[str, list[Piece]] | None = None
    for piece in pieces(snapshot, end):
        cut = len({is_behind(point, low) and not is_behind(point, high) for point in piece.points}) > 1
        if not cut:
            yield piece
            continue
        if single is None:
            single = {}
            replaced = {file.path: file for file in snapshot.replaced}
            for file in snapshot.files:
                single[file.path] = list(_pieces_of(snapshot, file, replaced, None))
        yield from single[piece.file.path]


def furthest(
    snapshot: Snapshot,
    start: Position,
    to: int,
    *,
    max_rows: int | None,
    max_files: int | None,
    max_bytes: int | None,
) -> Position:
    """How far a batch from ``start`` goes, no further than commit ``to``: the next piece in any case, then as many as
    the limits have room for. ``start`` itself where nothing is left.

    A piece that holds several points, and others that lie between those, come together or not at all.
    """
    low = start.limit(snapshot.folder)
    rows = files = size = 0
    end: Point | None = None
    left = [piece for piece in pieces(snapshot) if is_behind(piece.points[-1], low) and piece.points[0][0] <= to]
    for piece in left:
        rows, files, size = rows + piece.records, files + 1, size + piece.bytes
        fits = (
            (max_rows is None or rows <= max_rows)
            and (max_files is None or files <= max_files)
            and (max_bytes is None or size <= max_bytes)
        )
        if end is not None and not fits and piece.points[0] > end:
            break
        end = piece.points[-1] if end is None else max(end, piece.points[-1])
    return start if end is None else _position(snapshot, end, left)


def _position(snapshot: Snapshot, end: Point, left: Sequence[Piece]) -> Position:
    """``end`` as a position: without a file's name where it is the last of its commit."""
    sequence, key = end
    is_last = not any(point[0] == sequence and point > end for piece in left for point in piece.points)
    return Position(sequence, None if is_last else key[3][len(snapshot.folder) + 1 :])
