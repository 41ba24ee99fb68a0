"""Which streams of a lake a replay reads, under which ids, and what of them; the catalog that says so.

A stream's id in catalogs and states is its name; where another tap of those that are read has a stream of that name,
``<tap_id>-<stream>``.
"""

from __future__ import annotations

import copy
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from burler.errors import BurlerError, CatalogError, LakeError, UsageError
from burler.lake import layout
from burler.lake.catalogue import read_catalogue
from burler.lake.choice import ALL_TIMES, Choice, Cut, Window, cut_of, no_such_version
from burler.lake.datafile import Head, head_by_hash
from burler.lake.lake import Lake, NoSuchStream, StreamFolder
from burler.lake.snapshot import Snapshot
from burler.singer import metadata as md
from burler.singer.catalog import Catalog, CatalogEntry, catalog_from_wire
from burler.singer.messages import Schema
from burler.singer.selection import deselected, prune, stream_selected, with_booleans
from burler.storage.base import Store
from burler.suggest import did_you_mean
from burler.words import some

_log = logging.getLogger("burler.lake")

_NAMELESS = (
    "its name was cut, and nothing in the lake says it whole. A stream's: burler lake rebuild reads it from its files; "
    "a tap's: give it whole (--tap NAME)"
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the options ask for; empty means everything. ``schema``: see ``Snapshot.versions_asked``."""

    taps: tuple[str, ...] = ()
    streams: tuple[str, ...] = ()
    schema: str | None = None
    times: Window = ALL_TIMES
    columns: tuple[str, ...] | None = None


Broken = dict[str, BurlerError]
"""Why streams can't be read, by their ids."""


def _find(lake: Lake, asked: Asked) -> dict[str, StreamFolder]:
    """The streams that the options name by their ids, tap by tap, in the order of each tap's catalog. No manifest is
    read.

    Raises:
        UsageError: a tap or stream that was asked for is not there, or the lake is empty.
    """
    folders = lake.folders(taps=asked.taps or None)
    for folder in dict.fromkeys(path for one in folders if (path := _nameless(one))):
        _log.warning("%s is left out: %s", folder, _NAMELESS)
    there = [one for one in folders if _nameless(one) is None]
    if not there:
        raise lake.is_empty()
    lake.narrowed(there, asked.streams)
    times = Counter(one.stream for one in there)
    found: dict[str, StreamFolder] = {}
    for tap_id, group in groupby(there, lambda one: one.tap_id):
        some = list(group)
        entries = _catalogue(lake.store, tap_id) if len(some) > 1 else ()
        order = {entry["stream"]: at for at, entry in enumerate(entries) if isinstance(entry.get("stream"), str)}
        for one in sorted(some, key=lambda one: (order.get(one.stream, len(order)), one.stream)):
            id = f"{tap_id}-{one.stream}" if times[one.stream] > 1 else one.stream
            if id in found:  # a stream whose own name begins with another tap's
                raise UsageError(
                    f"{lake.store.url}: two streams would both have the id '{id}'. Read one tap at a time: --tap"
                )
            found[id] = one
    return {id: one for id, one in found.items() if not asked.streams or one.stream in asked.streams}


def _nameless(one: StreamFolder) -> str | None:
    """The folder whose name nothing says, the tap's or the stream's; None where both are known."""
    path, *folders = one.folder.split("/")
    for folder, name in zip(folders, one.names, strict=True):
        path += f"/{folder}"
        if name == folder and layout.name_of(folder) is None:
            return path
    return None


def _catalogue(store: Store, tap_id: str) -> Sequence[dict[str, Any]]:
    """The entries of a tap's ``catalogue.json``; it can be spared, so a broken one is only told of."""
    try:
        return (read_catalogue(store, tap_id) or {}).get("streams") or ()
    except LakeError as error:
        _log.warning("%s", error)
        return ()


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
            for name in head.properties:
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
        digest = self.snapshot.newest(self.choice.hashes)
        return None if digest is None else head_by_hash(store, self.snapshot, digest)


def choose(store: Store, asked: Asked, catalog: Catalog | None, broken: Broken) -> list[ReplayStream]:
    """The streams to replay: each with the one snapshot of its manifest that the run uses.

    Args:
        broken: streams whose manifest can't be read are put here, and left out.

    Raises:
        UsageError: what was asked for is not there. CatalogError: the catalog selects a stream that the lake does not
            have, or two streams would go out under one name. StorageError: the store fails.
    """
    made = _load(store, asked, catalog, broken)
    if not broken:  # else the column may be in a stream that can't be looked at
        _refuse_unknown_columns(made, asked)
    _refuse_one_name_twice(made)
    return made


def _load(store: Store, asked: Asked, catalog: Catalog | None, broken: Broken) -> list[ReplayStream]:
    """As ``choose``, without the question of whether they can go out together."""
    lake = Lake(store)
    found = _find(lake, asked)
    if catalog is not None:
        found = _selected(found, catalog)
    snapshots: list[Snapshot] = []
    made: list[ReplayStream] = []
    for id, place in found.items():
        try:
            snapshot = lake.snapshot(*place.names)
        except NoSuchStream:  # a folder of somebody else, or of a writer that has just begun
            if place.stream in asked.streams:
                raise
            continue
        except (LakeError, UsageError) as error:  # broken; or we have no right to read it
            broken[id] = error
            continue
        snapshots.append(snapshot)
        hashes = snapshot.versions_asked(asked.schema)
        if asked.schema is not None and not hashes:
            _log.info("stream '%s' has no schema version '%s'; it is left out", id, asked.schema)
            continue
        entry = None if catalog is None else catalog.entries[id]
        made.append(
            ReplayStream(
                id=id,
                snapshot=snapshot,
                choice=Choice(hashes, asked.times),
                columns=asked.columns,
                name=None if entry is None or entry.emitted_name == place.stream else entry.emitted_name,
                metadata={} if entry is None else with_booleans(entry.metadata, stream=id),
                only=_only(snapshot, hashes, asked),
            )
        )
    if not made and snapshots and asked.schema is not None and not broken:
        raise no_such_version(asked.schema, snapshots)
    return made


def _only(snapshot: Snapshot, hashes: frozenset[str] | None, asked: Asked) -> dict[str, str]:
    only = {"since": asked.times.since, "until": asked.times.until}
    if hashes is not None and asked.schema is not None:
        first = next(name for digest, name in snapshot.version_names.items() if digest in hashes)
        only["schema"] = first + (".." if asked.schema.endswith("..") else "")
    return {key: value for key, value in only.items() if value is not None}


def _selected(found: dict[str, StreamFolder], catalog: Catalog) -> dict[str, StreamFolder]:
    """Those that the catalog selects, in the lake's own order."""
    wanted = [id for id, entry in catalog.entries.items() if stream_selected(entry.metadata, stream=id)]
    for id in wanted:
        if id not in found:
            raise CatalogError(
                f"the catalog selects stream '{id}', which is not among those that are read.{did_you_mean(id, found)} "
                f"There are: {some(list(found))}. Make the catalog anew: burler lake read LAKE --discover"
            )
    return {id: one for id, one in found.items() if id in wanted}


def _refuse_unknown_columns(streams: list[ReplayStream], asked: Asked) -> None:
    """A column that is in no schema is a slip of the pen; where a schema is not known beforehand, nothing is said."""
    known: set[str] = set()
    for one in streams:
        fields = one.choice.fields(one.snapshot)
        if fields is None:
            return
        known.update(fields)
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


def discover(store: Store, asked: Asked, broken: Broken) -> Catalog:
    """Every stream that the options name, with its newest schema among those that they name.

    What stands in a tap's ``catalogue.json`` beside the schema is kept: metadata, further keys. Streams are selected
    unless it says otherwise.

    Args:
        broken: streams whose manifest, or the file that a schema is read from, is broken are put here, and left out.

    Raises:
        UsageError: what was asked for is not there. StorageError: the store fails.
    """
    entries: dict[str, CatalogEntry] = {}
    known: dict[str, dict[str, CatalogEntry]] = {}
    for stream in _load(store, asked, None, broken):
        try:
            head = stream.newest(store)
        except (LakeError, UsageError) as error:
            broken[stream.id] = error
            continue
        if head is None:
            continue
        tap_id = stream.snapshot.tap_id
        if tap_id not in known:
            known[tap_id] = _noted(store, tap_id)
        entries[stream.id] = _entry(stream, head, known[tap_id].get(head.message.stream))
    return Catalog(entries)


def _noted(store: Store, tap_id: str) -> dict[str, CatalogEntry]:
    """What a tap's ``catalogue.json`` says, by stream."""
    try:
        noted = catalog_from_wire({"streams": list(_catalogue(store, tap_id))})
        return {one.stream: one for one in noted.entries.values()}
    except CatalogError as error:
        _log.warning("%s", error)
        return {}


def _entry(stream: ReplayStream, head: Head, noted: CatalogEntry | None) -> CatalogEntry:
    message = head.message
    compiled = md.standard_metadata(
        message.schema,
        key_properties=message.key_properties,
        replication_method=None,
        replication_key=message.bookmark_properties[0] if len(message.bookmark_properties) == 1 else None,
    )
    compiled[()]["selected"] = True
    for crumb, values in (noted.metadata if noted else {}).items():
        if crumb in compiled:
            compiled[crumb] = {**copy.deepcopy(values), **compiled[crumb]} if crumb else {**compiled[()], **values}
    for name in message.bookmark_properties:
        compiled.get(("properties", name), {})["inclusion"] = md.AUTOMATIC
    compiled[()]["table-key-properties"] = list(message.key_properties)
    return CatalogEntry(
        tap_stream_id=stream.id,
        stream=message.stream,
        schema=message.schema,
        key_properties=message.key_properties,
        metadata=compiled,
        extra=dict(noted.extra) if noted else {},
    )
