"""Facts about taps and streams, from manifests, files' first lines, a tap's catalogue: whatever of these there is."""

from __future__ import annotations

import contextlib
import datetime as dt
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from burler import times
from burler.errors import BurlerError, LakeError
from burler.lake import layout
from burler.lake.datafile import read_lines, schema_message
from burler.lake.lake import StreamFolder
from burler.lake.site.fields import Change, View, compare, fields_of
from burler.lake.site.plots import Tally
from burler.lake.snapshot import DataFile, Snapshot
from burler.singer.messages import Schema
from burler.storage.base import Store
from burler.surrogates import decode_veiled, unveil
from burler.words import cut

Entry = Mapping[str, Any]
"""A stream in its tap's catalogue."""
_NEWEST = 20
_METHODS = ("forced-replication-method", "replication-method")
_MOST_FIELDS = 100
_MOST_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that could not be read: where (a tap, or ``tap/stream``), and what is wrong."""

    where: str
    what: str


class Problems:
    """What could not be read, as it is met: never an error. The texts are without the folder that the lake lies in:
    pages are read on other machines."""

    def __init__(self, store: Store) -> None:
        self.found: list[Problem] = []
        root = store.locate(layout.ROOT).removesuffix(layout.ROOT)
        self._root = root if len(root) > 1 else ""

    @contextlib.contextmanager
    def at(self, where: str) -> Iterator[None]:
        """What is read within."""
        try:
            yield
        except BurlerError as error:
            self.found.append(Problem(where, str(error).replace(self._root, "")))


@dataclass(frozen=True, slots=True)
class Status:
    """How the last run of a tap went, as its writer has said (``singerlake.json``). All may be empty."""

    state: str = ""
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

    stream: str
    source: str
    tally: Tally
    versions: tuple[Version, ...]
    current: Version | None
    view: View | None
    replication: str = ""
    newest: tuple[DataFile, ...] = ()
    samples: tuple[Sample, ...] = ()
    samples_from: str = ""
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class StreamLine:
    """A stream in the list of its tap: what is kept of it once its page is written."""

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


def tap_of_notes(tap_id: str, folder: str, page: str, notes: Any) -> TapFacts:
    """A tap as ``singerlake.json`` describes it, with whatever stands there."""
    notes = notes if isinstance(notes, dict) else {}
    owner, description, documentation = (str(notes.get(key) or "") for key in ("owner", "description", "documentation"))
    value = notes.get("status")
    if isinstance(value, str):
        value = {"state": value}
    status = None
    if isinstance(value, dict) and value.get("state"):
        status = Status(
            state=str(value["state"]),
            started=times.lenient_moment(value.get("started")),
            ended=times.lenient_moment(value.get("ended")),
            link=str(value.get("link") or ""),
        )
    return TapFacts(tap_id, folder, page, owner, description, documentation, status)


def read_stream(place: StreamFolder, entry: Entry, problems: Problems, *, samples: int = 0) -> StreamFacts | None:
    """What is known of a stream; None where there is none.

    Args:
        entry: its entry in the tap's catalogue, empty where there is none.
    """
    before = len(problems.found)
    snapshot: Snapshot | None = None
    with problems.at(place.title):
        snapshot = place.read_manifest()
    source = "folder" if snapshot is None else "manifest"
    if snapshot is None:
        snapshot = place.without_manifest(())
        with problems.at(place.title):
            snapshot = place.listed()
        if not snapshot.files and len(problems.found) == before:
            return None
    versions = _versions(place, snapshot, entry, problems)
    newest = snapshot.newest()
    current = next((version for version in versions if version.hash == newest), None)
    rows: tuple[Sample, ...] = ()
    rows_from = ""
    if samples:
        with problems.at(place.title):
            rows, rows_from = _newest_samples(place.store, snapshot.files, samples)
    total = Tally()
    for version in versions:
        total.merge(version.tally)
    return StreamFacts(
        stream=place.stream,
        source=source,
        tally=total,
        versions=versions,
        current=current,
        view=current.view if current and current.view else _catalogue_view(entry),
        replication=_replication(entry),
        newest=snapshot.files[-_NEWEST:][::-1],
        samples=rows,
        samples_from=rows_from,
        problems=tuple(problems.found[before:]),
    )


def stream_of_catalogue(stream: str, entry: Entry) -> StreamFacts:
    """A stream that the catalogue names and that has no folder yet."""
    return StreamFacts(stream, "catalogue", Tally(), (), None, _catalogue_view(entry), _replication(entry))


def _versions(place: StreamFolder, snapshot: Snapshot, entry: Entry, problems: Problems) -> tuple[Version, ...]:
    tallies = {digest: Tally() for digest in snapshot.hashes}
    for file in snapshot.files:
        tallies[file.hash].merge(Tally.of(file))
    found: list[Version] = []
    before: View | None = None
    for number, (digest, name) in enumerate(snapshot.version_names.items(), start=1):
        view = None
        with problems.at(place.title):
            schema = _as_catalogued(schema_message(place.store, snapshot, digest), entry)
            view = View(fields_of(schema.schema), schema.key_properties, schema.bookmark_properties or ())
        found.append(
            Version(
                number=number,
                label=str(name),
                hash=digest,
                tally=tallies[digest],
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


class _Record(msgspec.Struct, gc=False):
    type: str
    record: dict[str, msgspec.Raw] | None = None
    time_extracted: str | None = None


_decode = msgspec.json.Decoder(_Record).decode


def _newest_samples(store: Store, files: Sequence[DataFile], most: int) -> tuple[tuple[Sample, ...], str]:
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
    values = tuple((unveil(name.encode()).decode(), _value_text(unveil(bytes(value)))) for name, value in some)
    return Sample(values, max(0, len(message.record) - _MOST_FIELDS), message.time_extracted or "")


def _value_text(raw: bytes) -> str:
    """A value as JSON, as exact as it stands there, cut where it is long; text outside of ASCII is readable."""
    text = raw.decode("utf-8", "backslashreplace")
    if len(text) > 20 * _MOST_CHARACTERS or "\\u" not in text:
        return cut(text, _MOST_CHARACTERS)
    with contextlib.suppress(ValueError, RecursionError):
        value: Any = json.loads(text)
        if isinstance(value, str):  # numbers keep their digits: only text is written anew
            return cut(json.dumps(value, ensure_ascii=False), _MOST_CHARACTERS)
    return cut(text, _MOST_CHARACTERS)
