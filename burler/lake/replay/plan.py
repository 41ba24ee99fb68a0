"""Which streams of a lake a replay brings, under which names, and what of each: options and catalog, decided.

The rules of selection are those of every burler tap (``burler.singer.selection``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from burler.errors import BurlerError, CatalogError, LakeError, UsageError
from burler.lake.head import Head, head_by_hash, head_of
from burler.lake.manifests import manifest
from burler.lake.reading.choice import (
    Choice,
    newest,
    no_such_version,
    version_names,
    versions_wanted,
)
from burler.lake.reading.cut import Cut, cut_of
from burler.lake.reading.pages import properties_of
from burler.lake.replay.finding import Asked, Found, find
from burler.lake.snapshot import Snapshot
from burler.singer import metadata as md
from burler.singer.catalog import Catalog
from burler.singer.messages import Schema
from burler.singer.selection import deselected, prune, stream_selected, with_booleans
from burler.storage.base import Store
from burler.suggest import did_you_mean
from burler.words import some

_log = logging.getLogger("burler.lake")

OnBroken = Callable[[str, BurlerError], object]
"""(a stream's id, why it can't be read)."""


@dataclass(frozen=True, slots=True)
class ReplayStream:
    """A stream to replay: one snapshot of it, and what of it comes out.

    ``name``: the stream's name on the wire; None for the one in its files. ``metadata``: what the catalog says of it.
    ``only``: how the run is narrowed, as the state notes it.
    """

    id: str
    snapshot: Snapshot
    choice: Choice
    columns: tuple[str, ...] | None = None
    name: str | None = None
    metadata: md.MetadataMap = field(default_factory=dict)
    only: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_part(self) -> bool:
        """Whether some rows are left out: then no table is whole, and none may be activated."""
        return bool(self.only)

    def shaped(self, head: Head) -> tuple[bytes, Cut]:
        """The SCHEMA line that goes out for a file's, and what is taken out of the rows behind it."""
        message = head.message
        always = [*message.key_properties, *message.bookmark_properties]
        metadata = {crumb: dict(values) for crumb, values in self.metadata.items()}
        for name in always:
            metadata.setdefault(("properties", name), {})["inclusion"] = md.AUTOMATIC
        keep = None
        if self.columns is not None:
            keep = list(dict.fromkeys((*always, *self.columns)))
            for name in properties_of(message):
                if name not in keep:
                    metadata.setdefault(("properties", name), {}).update(inclusion=md.UNSUPPORTED)
        off = deselected(metadata, stream=self.id)
        cut = cut_of(off, keep)
        if not cut and self.name in (None, message.stream):
            return head.line_out(), cut
        schema = prune(message.schema, metadata, stream=self.id) if cut else message.schema
        pruned = Schema(self.name or message.stream, schema, message.key_properties, message.bookmark_properties)
        return Head(b"", pruned, is_plain=False).line_out(), cut

    def newest(self, store: Store) -> Head | None:
        """The newest SCHEMA of those that are wanted; None where the lake knows none."""
        digest = newest(self.snapshot, self.choice.hashes)
        return None if digest is None else head_by_hash(store, self.snapshot, digest)


def choose(
    store: Store, asked: Asked, catalog: Catalog | None = None, *, on_broken: OnBroken | None = None
) -> list[ReplayStream]:
    """The streams to replay: each with the one snapshot of its manifest that the run uses.

    Args:
        on_broken: told of each stream whose manifest can't be read; it is left out. None: the error is raised.

    Raises:
        UsageError: what was asked for is not there. CatalogError: the catalog selects a stream that the lake does not
            have, or two streams would go out under one name. LakeError: a manifest is broken. StorageError: the store
            fails.
    """
    broken: list[str] = []

    def tell(id: str, error: BurlerError) -> None:
        if on_broken is None:
            raise error
        on_broken(id, error)
        broken.append(id)

    made = load_all(store, asked, catalog, on_broken=tell)
    if not broken:  # else the column may be in a stream that can't be looked at
        _refuse_unknown_columns(made, asked)
    _refuse_one_name_twice(made)
    return made


def load_all(
    store: Store, asked: Asked, catalog: Catalog | None = None, *, on_broken: OnBroken | None = None
) -> list[ReplayStream]:
    """As ``choose``, without the question of whether they can go out together."""
    found = find(store, asked)
    if catalog is not None:
        found = _selected(found, catalog)
    snapshots: list[tuple[Found, Snapshot]] = []
    is_whole = True
    for one in found:
        try:
            snapshot = _load(store, one, asked)
        except manifest.NoSuchStream:
            raise
        except (LakeError, UsageError) as error:  # broken; or we have no right to read it
            if on_broken is None:
                raise
            on_broken(one.id, error)
            is_whole = False
            continue
        if snapshot is not None:
            snapshots.append((one, snapshot))
    made = [stream for one, snapshot in snapshots if (stream := _stream(one, snapshot, asked, catalog)) is not None]
    if not made and snapshots and asked.schema is not None and is_whole:
        raise no_such_version(asked.schema, [snapshot for _, snapshot in snapshots])
    return made


def _load(store: Store, one: Found, asked: Asked) -> Snapshot | None:
    try:
        return manifest.load(store, one.tap_id, one.stream)
    except manifest.NoSuchStream:  # a folder of somebody else, or of a writer that has just begun
        if one.stream in asked.streams:
            raise
        return None


def _stream(one: Found, snapshot: Snapshot, asked: Asked, catalog: Catalog | None) -> ReplayStream | None:
    hashes = versions_wanted(snapshot, asked.schema)
    if asked.schema is not None and not hashes:
        _log.info("stream '%s' has no schema version '%s'; it is left out", one.id, asked.schema)
        return None
    entry = None if catalog is None else catalog.entries[one.id]
    name = None
    if entry is not None and entry.emitted_name != one.stream:
        name = entry.emitted_name
    return ReplayStream(
        id=one.id,
        snapshot=snapshot,
        choice=Choice(hashes, asked.times),
        columns=asked.columns,
        name=name,
        metadata={} if entry is None else with_booleans(entry.metadata, stream=one.id),
        only=_only(snapshot, hashes, asked),
    )


def _only(snapshot: Snapshot, hashes: frozenset[str] | None, asked: Asked) -> dict[str, str]:
    only = {"since": asked.times.since, "until": asked.times.until}
    if hashes is not None and asked.schema is not None:
        first = next(name for digest, name in version_names(snapshot).items() if digest in hashes)
        only["schema"] = first + (".." if asked.schema.endswith("..") else "")
    return {key: value for key, value in only.items() if value is not None}


def _selected(found: list[Found], catalog: Catalog) -> list[Found]:
    """Those that the catalog selects, in the lake's own order."""
    known = {one.id: one for one in found}
    wanted = {id for id, entry in catalog.entries.items() if stream_selected(entry.metadata, stream=id)}
    for id in catalog.entries:
        if id in wanted and id not in known:
            raise CatalogError(
                f"the catalog selects stream '{id}', which is not among those that are read.{did_you_mean(id, known)} "
                f"There are: {some(list(known))}. Make the catalog anew: burler lake read LAKE --discover"
            )
    return [one for one in found if one.id in wanted]


def _refuse_unknown_columns(streams: list[ReplayStream], asked: Asked) -> None:
    """A column that is in no schema is a slip of the pen; where a schema is not known beforehand, nothing is said."""
    known: set[str] = set()
    for one in streams:
        for digest in one.snapshot.hashes:
            if one.choice.hashes is not None and digest not in one.choice.hashes:
                continue
            line = one.snapshot.schema_lines.get(digest)
            if line is None:
                return
            known |= set(properties_of(head_of(line, one.snapshot.folder).message))
    unknown = [name for name in asked.columns or () if name not in known]
    if unknown and streams:
        hint = did_you_mean(unknown[0], known)
        raise UsageError(f"no stream that is read has the field '{unknown[0]}'. Fields: {some(sorted(known))}.{hint}")


def _refuse_one_name_twice(streams: list[ReplayStream]) -> None:
    """Two streams under one name on the wire would be one table to a target."""
    seen: dict[str, ReplayStream] = {}
    for one in streams:
        name = one.name or one.snapshot.stream
        other = seen.setdefault(name, one)
        if other is not one:
            raise CatalogError(
                f"taps '{other.snapshot.tap_id}' and '{one.snapshot.tap_id}' both have a stream '{name}', which would "
                f"be one table to a target. Read one tap: --tap {other.snapshot.tap_id}\nOr give one of them another "
                "'stream_alias' in a catalog: burler lake read LAKE --discover"
            )


__all__ = ["Asked", "Found", "ReplayStream", "choose", "find", "load_all"]
