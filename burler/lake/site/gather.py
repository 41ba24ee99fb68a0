"""Facts about a stream, from its manifest, its files' first lines, its tap's catalogue: whatever of these there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from burler.errors import LakeError, StorageError
from burler.lake import layout
from burler.lake.head import schema_message
from burler.lake.manifests import document as doc
from burler.lake.manifests.replaced import data_files
from burler.lake.site.changes import View, compare
from burler.lake.site.facts import Problem, Sample, StreamFacts, Version
from burler.lake.site.fields import fields_of
from burler.lake.site.samples import newest_samples
from burler.lake.site.tally import Tally
from burler.lake.snapshot import DataFile, Snapshot
from burler.singer.messages import Schema
from burler.storage.base import Store

Entry = Mapping[str, Any]
_NEWEST = 20
_METHODS = ("forced-replication-method", "replication-method")


def read_stream(
    store: Store, tap_id: str, folder: str, entries: Mapping[str, Entry], *, samples: int = 0
) -> StreamFacts | None:
    """What is known of the stream in ``folder`` (``raw/<tap>/<stream>``); None where there is no stream.

    What can't be read is a problem of the stream, never an error.
    """
    problems: list[Problem] = []
    snapshot = _snapshot(store, tap_id, folder, entries, problems)
    if snapshot is None:
        return None
    where = f"{tap_id}/{snapshot.stream}"
    entry = entries.get(snapshot.stream, {})
    versions = _versions(store, snapshot, entry, where, problems)
    current = _current(snapshot, versions)
    rows: tuple[Sample, ...] = ()
    rows_from = ""
    if samples and snapshot.files:
        try:
            rows, rows_from = newest_samples(store, snapshot.files, samples)
        except (LakeError, StorageError) as error:
            problems.append(Problem(where, plain(store, error)))
    total = Tally()
    for version in versions:
        total.merge(version.tally)
    return StreamFacts(
        tap_id=tap_id,
        stream=snapshot.stream,
        folder=folder,
        source="manifest" if snapshot.generation is not None or snapshot.versions else "folder",
        tally=total,
        versions=versions,
        current=current,
        view=current.view if current and current.view else _catalogue_view(entry),
        replication=_replication(entry),
        generation=snapshot.generation or "",
        sequence=snapshot.sequence,
        newest=snapshot.files[-_NEWEST:][::-1],
        samples=rows,
        samples_from=rows_from,
        problems=tuple(problems),
    )


def stream_of_catalogue(tap_id: str, stream: str, entry: Entry) -> StreamFacts:
    """A stream that the catalogue names and that has no folder yet."""
    return StreamFacts(
        tap_id=tap_id,
        stream=stream,
        folder=layout.stream_folder(tap_id, stream),
        source="catalogue",
        tally=Tally(),
        versions=(),
        current=None,
        view=_catalogue_view(entry),
        replication=_replication(entry),
    )


def plain(store: Store, error: Exception) -> str:
    """An error's text without the folder that the lake lies in: pages are read on other machines."""
    root = store.locate(layout.ROOT).removesuffix(layout.ROOT)
    return str(error).replace(root, "") if len(root) > 1 else str(error)


def _snapshot(
    store: Store, tap_id: str, folder: str, entries: Mapping[str, Entry], problems: list[Problem]
) -> Snapshot | None:
    stream = _stream_name(folder, entries)
    path = f"{folder}/manifest.json"
    manifest_is_there = False
    try:
        if (blob := store.read(path)) is not None:
            manifest_is_there = True
            document = doc.from_bytes(blob.data, store.locate(path))
            if layout.name_of(folder.rpartition("/")[2]) is None and isinstance(document.get("stream"), str):
                stream = document["stream"]
            return doc.to_snapshot(document, tap_id=tap_id, stream=stream, folder=folder, place=store.locate(path))
    except (LakeError, StorageError) as error:
        problems.append(Problem(f"{tap_id}/{stream}", plain(store, error)))
    try:
        files = _listed(store, folder)
    except (LakeError, StorageError) as error:
        problems.append(Problem(f"{tap_id}/{stream}", plain(store, error)))
        files = ()
    if not files and not manifest_is_there and not problems:
        return None
    return Snapshot(tap_id=tap_id, stream=stream, folder=folder, files=files)


def _listed(store: Store, folder: str) -> tuple[DataFile, ...]:
    """Data files found without a manifest, in replay order; not those that a compacted one stands for."""
    return tuple(sorted(map(DataFile, data_files(store, folder)), key=lambda file: file.order))


def _stream_name(folder: str, entries: Mapping[str, Entry]) -> str:
    last = folder.rpartition("/")[2]
    name = layout.name_of(last)
    return name or next((stream for stream in entries if layout.component(stream) == last), last)


def _versions(
    store: Store, snapshot: Snapshot, entry: Entry, where: str, problems: list[Problem]
) -> tuple[Version, ...]:
    tallies: dict[str, Tally] = {}
    for file in snapshot.files:
        tallies.setdefault(file.hash, Tally()).add(file)
    found: list[Version] = []
    before: View | None = None
    for number, digest in enumerate(snapshot.hashes, start=1):
        view = None
        try:
            view = view_of(_as_catalogued(schema_message(store, snapshot, digest), entry))
        except (LakeError, StorageError) as error:
            problems.append(Problem(where, plain(store, error)))
        found.append(
            Version(
                number=number,
                label=str(snapshot.versions.get(digest) or f"v{number}"),
                hash=digest,
                tally=tallies.get(digest, Tally()),
                view=view,
                line=snapshot.schema_lines.get(digest, b""),
                changes=compare(before, view) if before and view else None,
            )
        )
        before = view
    return tuple(found)


def _as_catalogued(schema: Schema, entry: Entry) -> Schema:
    """The same schema with its fields in the tap's order: the catalogue keeps it, the data files' first lines don't."""
    try:
        is_same = entry.get("schema") == schema.schema
    except RecursionError:
        is_same = False
    return replace(schema, schema=dict(entry["schema"])) if is_same else schema


def view_of(schema: Schema) -> View:
    """A SCHEMA message as pages show it."""
    return View(fields_of(schema.schema), schema.key_properties, schema.bookmark_properties or ())


def _current(snapshot: Snapshot, versions: Sequence[Version]) -> Version | None:
    """The version of the file that came last; without files, the last one that became known."""
    if not versions:
        return None
    newest = snapshot.files[-1].hash if snapshot.files else versions[-1].hash
    return next(version for version in versions if version.hash == newest)


def _catalogue_view(entry: Entry) -> View | None:
    schema = entry.get("schema")
    if not isinstance(schema, Mapping):
        return None
    root = _root_metadata(entry)
    keys = entry.get("key_properties") or root.get("table-key-properties")
    return View(fields_of(schema), _texts(keys), _texts(root.get("valid-replication-keys")))


def _root_metadata(entry: Entry) -> Mapping[str, Any]:
    items = entry.get("metadata")
    for item in items if isinstance(items, list) else ():
        if isinstance(item, Mapping) and not item.get("breadcrumb") and isinstance(item.get("metadata"), Mapping):
            return dict(item["metadata"])
    return {}


def _replication(entry: Entry) -> str:
    root = _root_metadata(entry)
    values = (entry.get("replication_method"), *(root.get(key) for key in _METHODS))
    return next((value for value in values if isinstance(value, str)), "")


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()
