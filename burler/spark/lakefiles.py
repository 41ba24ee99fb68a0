"""Which files of a lake make up a stream, and in which order: one snapshot of its manifest.

The manifest is read once; without one the files are
listed once, and none of them counts as clean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from burler.errors import LakeError
from burler.lake.datafile import read_blocks
from burler.lake.lake import Lake
from burler.lake.snapshot import DataFile, Snapshot
from burler.storage.base import Store


@dataclass(frozen=True, slots=True)
class LakeFile:
    """One data file of a stream.

    ``path`` is what Spark opens, ``lake_path`` its path in the store, ``name`` its path inside the stream's folder.
    ``sequence`` is the commit that its rows stand for in the order of all rows; for a compacted file that of the last
    file it replaces. ``committed`` is the commit that added the file itself, and ``replaces`` the names and commits of
    the files whose rows it holds. ``rank`` is its place in replay order, from 0. ``records`` counts its RECORD lines,
    ``bytes`` is its size uncompressed; both None when no manifest knows them. ``versions`` are the table versions of
    its rows. ``last`` is the greatest ``time_extracted``, RFC 3339 UTC with six digits.
    """

    path: str
    lake_path: str
    name: str
    hash: str
    sequence: int
    rank: int
    clean: bool
    records: int | None
    bytes: int | None
    activate_version: int | None
    versions: tuple[int, ...] | None
    committed: int
    replaces: Mapping[str, int] | None = None
    last: str | None = None

    def is_older_than(self, version: int) -> bool:
        """Whether no row of the file can belong to table version ``version`` or a later one."""
        return self.records is not None and all(one < version for one in self.versions or ())


@dataclass(frozen=True, slots=True)
class Activation:
    """An ACTIVATE_VERSION: its version, and the rank of its file."""

    version: int
    rank: int


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """A SCHEMA message of the stream: its folder name, its version (``v1``) and what it says."""

    hash: str
    version: str
    schema: Mapping[str, Any]
    key_properties: tuple[str, ...]
    bookmark_properties: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LakeStream:
    """A stream as one snapshot of its manifest has it.

    ``files`` in replay order, ``versions`` in order of first commit (at least one). ``folders`` are the lake's own
    spelling of tap and stream. ``generation`` is None where there is no manifest. ``replaced`` are files that are still
    there although their rows stand in one of ``files``, by name. ``snapshot`` is the picture that all of it was made
    from; ``continues``: the manifests that this one was made from, by generation with the sequence of each.
    """

    store: Store
    tap_id: str
    stream: str
    folders: tuple[str, str]
    generation: str | None
    sequence: int
    files: tuple[LakeFile, ...]
    versions: tuple[SchemaVersion, ...]
    replaced: Mapping[str, LakeFile] = field(default_factory=dict)
    snapshot: Snapshot | None = field(default=None, repr=False)

    @property
    def continues(self) -> Mapping[str, int]:
        """See above; empty without a manifest."""
        return self.snapshot.continues if self.snapshot is not None else {}


def load_stream(store: Store, tap_id: str, stream: str) -> LakeStream:
    """One snapshot of a stream.

    Raises:
        LakeError: the manifest is broken, or the first line of a schema version's file is.
    """
    return lake_stream(store, Lake(store).snapshot(tap_id, stream))


def lake_stream(store: Store, snapshot: Snapshot) -> LakeStream:
    """The same of a snapshot that the caller has.

    Raises:
        LakeError: the first line of a schema version's file is broken.
    """
    below = len(snapshot.folder) + 1
    _, tap_folder, stream_folder = snapshot.folder.split("/")
    # Ranked together: replaced files take the places at which their rows stand.
    both = sorted((*snapshot.files, *snapshot.replaced), key=lambda file: file.order)
    ranked = {file.path: _file(store, file, rank, below) for rank, file in enumerate(both)}
    return LakeStream(
        store=store,
        tap_id=snapshot.tap_id,
        stream=snapshot.stream,
        folders=(tap_folder, stream_folder),
        generation=snapshot.generation,
        sequence=snapshot.sequence,
        files=tuple(ranked[file.path] for file in snapshot.files),
        versions=tuple(_versions(store, snapshot)),
        replaced={file.path[below:]: ranked[file.path] for file in snapshot.replaced},
        snapshot=snapshot,
    )


def _file(store: Store, file: DataFile, rank: int, below: int) -> LakeFile:
    stats = file.stats
    return LakeFile(
        path=store.locate(file.path),
        lake_path=file.path,
        name=file.path[below:],
        hash=file.hash,
        sequence=file.order[0],
        rank=rank,
        clean=file.clean,
        records=stats.records if stats else None,
        bytes=stats.bytes if stats else None,
        activate_version=stats.activate_version if stats else None,
        versions=stats.versions if stats else None,
        committed=file.sequence,
        replaces=stats.replaces if stats else None,
        last=stats.last if stats else None,
    )


def _versions(store: Store, snapshot: Snapshot) -> Iterator[SchemaVersion]:
    """Schema versions by first commit. The line comes from the manifest or, if it lacks it, from a file."""
    samples: dict[str, str] = {}
    for file in snapshot.files:
        samples.setdefault(file.hash, file.path)
    for at, digest in enumerate(snapshot.hashes, 1):
        line = snapshot.schema_lines.get(digest)
        if line is None and digest in samples:
            line = next(read_blocks(store, samples[digest]))
        if line is not None:  # else a version of another writer that has neither a line nor a file
            yield _version(digest, snapshot.versions.get(digest, f"v{at}"), line, snapshot.stream)


def _version(digest: str, version: str, line: bytes, stream: str) -> SchemaVersion:
    try:
        message = msgspec.json.decode(line)
        schema = message["schema"]
    except (msgspec.DecodeError, KeyError, TypeError) as error:
        raise LakeError(
            f"stream '{stream}': the SCHEMA line of version {version} ({digest}) can't be read ({error!r}). "
            "Move the manifest away: the next write makes a new one from the data files"
        ) from None
    keys, bookmarks = message.get("key_properties"), message.get("bookmark_properties")
    return SchemaVersion(digest, version, schema, tuple(keys or ()), tuple(bookmarks or ()))


__all__ = ["LakeFile", "LakeStream", "SchemaVersion", "lake_stream", "load_stream"]
