"""Facts about a stream, from its manifest, its files' first lines, its tap's catalogue: whatever of these there is."""

from __future__ import annotations

import contextlib
import datetime as dt
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from burler.errors import LakeError, StorageError
from burler.lake import layout
from burler.lake.datafile import read_lines, schema_message
from burler.lake.lake import Lake, StreamFolder
from burler.lake.site.fields import Change, View, compare, fields_of
from burler.lake.site.tally import Tally
from burler.lake.site.words import cut
from burler.lake.snapshot import DataFile, Snapshot
from burler.singer.messages import Schema
from burler.storage.base import Store
from burler.surrogates import decode_veiled, unveil


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that could not be read: where (a tap, or ``tap/stream``), and what is wrong."""

    where: str
    what: str


@dataclass(frozen=True, slots=True)
class Status:
    """How the last run of a tap went, as its writer has said (``singerlake.json``). All may be empty."""

    state: str = ""
    writer: str = ""
    started: dt.datetime | None = None
    ended: dt.datetime | None = None
    link: str = ""


@dataclass(frozen=True, slots=True)
class Version:
    """One schema version. ``changes`` are those since the version before; None where either is unknown."""

    number: int
    label: str
    hash: str
    tally: Tally
    view: View | None
    line: bytes
    changes: tuple[Change, ...] | None


@dataclass(frozen=True, slots=True)
class Sample:
    """One record as it stands in the lake: (field, value) of the top level, as text; ``left_out`` more fields."""

    values: tuple[tuple[str, str], ...]
    left_out: int
    extracted: str


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """One stream. ``view`` is its newest schema, ``current`` the version that has it (None: from the catalogue).

    ``source`` says where the list of files comes from: ``manifest``, ``folder``, or ``catalogue`` (there are no files).
    """

    tap_id: str
    stream: str
    folder: str
    source: str
    tally: Tally
    versions: tuple[Version, ...]
    current: Version | None
    view: View | None
    replication: str = ""
    generation: str = ""
    sequence: int = 0
    newest: tuple[DataFile, ...] = ()
    samples: tuple[Sample, ...] = ()
    samples_from: str = ""
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class StreamLine:
    """A stream in the list of its tap: what is kept of it once its page is written."""

    tap_id: str
    stream: str
    page: str
    description: str
    tally: Tally
    fields: int
    versions: int
    source: str
    broken: bool


@dataclass(slots=True)
class TapFacts:
    """One tap: its notes, its streams, and what they hold together. ``folder`` is ``raw/<tap>``."""

    tap_id: str
    folder: str
    page: str
    owner: str = ""
    description: str = ""
    documentation: str = ""
    status: Status | None = None
    streams: list[StreamLine] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)
    problems: list[Problem] = field(default_factory=list)


_MOST_FIELDS = 100
_MOST_CHARACTERS = 300


class _Record(msgspec.Struct, gc=False):
    type: str
    record: dict[str, msgspec.Raw] | None = None
    time_extracted: str | None = None


_decode = msgspec.json.Decoder(_Record).decode


def newest_samples(store: Store, files: Sequence[DataFile], most: int) -> tuple[tuple[Sample, ...], str]:
    """The first records of the newest file that has any, and that file's path. ``files`` are in replay order.

    Raises:
        LakeError: the file is missing, torn, or holds a line that is no message.
    """
    for file in reversed(files):
        if file.stats is not None and not file.stats.records:
            continue
        found: list[Sample] = []
        with contextlib.closing(read_lines(store, file.path)) as lines:
            for line in lines:
                if (sample := _sample(line, file.path)) is not None:
                    found.append(sample)
                if len(found) == most:
                    break
        if found:
            return tuple(found), file.path
    return (), ""


def _sample(line: bytes, path: str) -> Sample | None:
    try:
        message, _ = decode_veiled(_decode, line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise LakeError(f"{path}: a line is no message: {error}. Look at the file with: zcat FILE | head") from None
    if message.type != "RECORD" or message.record is None:
        return None
    some = itertools.islice(message.record.items(), _MOST_FIELDS)
    values = tuple((unveil(name.encode()).decode(), value_text(unveil(bytes(value)))) for name, value in some)
    return Sample(values, max(0, len(message.record) - _MOST_FIELDS), message.time_extracted or "")


def value_text(raw: bytes) -> str:
    """A value as JSON, as exact as it stands there, cut where it is long; text outside of ASCII is readable."""
    text = raw.decode("utf-8", "backslashreplace")
    if len(text) > 20 * _MOST_CHARACTERS or "\\u" not in text:
        return cut(text, _MOST_CHARACTERS)
    with contextlib.suppress(ValueError, RecursionError):
        value: Any = json.loads(text)
        if isinstance(value, str):  # numbers keep their digits: only text is written anew
            return cut(json.dumps(value, ensure_ascii=False), _MOST_CHARACTERS)
    return cut(text, _MOST_CHARACTERS)


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
    place = StreamFolder(store, tap_id, _stream_name(folder, entries), folder)
    try:
        _, *folders = folder.split("/")
        place = StreamFolder(store, tap_id, Lake(store).stream_of(*folders) or place.stream, folder)
        snapshot = place.read_manifest()
        if snapshot is not None:
            return snapshot
    except (LakeError, StorageError) as error:
        problems.append(Problem(place.title, plain(store, error)))
    try:
        snapshot = place.listed()
    except (LakeError, StorageError) as error:
        problems.append(Problem(place.title, plain(store, error)))
        snapshot = place.without_manifest(())
    return snapshot if snapshot.files or problems else None


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
