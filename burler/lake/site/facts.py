"""Facts about taps and streams, from manifests, files' first lines, a tap's catalogue: whatever of these there is. The
fields of a schema, and what changed from one version to the next, in words; how much there is, and when it came.

A file's rows count evenly over the hours between its first and its last ``time_extracted``: nothing says more of them,
and a file that was compacted of many spans many days. Times are aware and in UTC.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Literal

import msgspec

from burler import schema_tree, times
from burler.errors import BurlerError, DeclarationError, LakeError
from burler.lake import layout
from burler.lake.care.taps import TapNotes
from burler.lake.datafile import read_lines, schema_message
from burler.lake.lake import StreamFolder
from burler.lake.snapshot import DataFile, Snapshot
from burler.schema.refs import resolve_refs
from burler.schema_tree import type_of, types_of, walk
from burler.singer.messages import Schema
from burler.storage.base import Store
from burler.surrogates import decode_veiled, unveil
from burler.words import counted, cut

Entry = Mapping[str, Any]
"""A stream in its tap's catalogue."""
_NEWEST = 20
_METHODS = ("forced-replication-method", "replication-method")
_MOST_VALUES = 100
_MOST_CHARACTERS = 300


# ---- how much, and when ----------------------------------------------------------------------------------------------

HOUR = dt.timedelta(hours=1)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
Amount = tuple[int, int, int]
"""Rows, bytes, files."""
Hours = tuple[int, int]
"""The first and the last hour that a file's rows are of, counted from 1970."""


@dataclass(slots=True)
class Tally:
    """Counts of some files. ``counted`` of them have statistics: ``records`` and ``bytes`` are of these alone."""

    files: int = 0
    counted: int = 0
    records: int = 0
    bytes: int = 0
    stored: int = 0
    stored_known: int = 0
    first: dt.datetime | None = None
    last: dt.datetime | None = None
    written: dt.datetime | None = None
    spans: dict[Hours, Amount] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether every file has statistics."""
        return self.counted == self.files

    @classmethod
    def of(cls, file: DataFile) -> Tally:
        """One file: by its statistics, else by its name alone."""
        ends = sorted(filter(None, map(times.lenient_moment, file.span or ())))
        one = cls(files=1, first=ends[0] if ends else None, last=ends[-1] if ends else None)
        if file.stats is not None:
            one.counted = 1
            one.records, one.bytes = file.stats.records, file.stats.bytes
            one.written = times.lenient_moment(file.stats.written)
            if file.stats.stored_bytes is not None:
                one.stored, one.stored_known = file.stats.stored_bytes, 1
        if ends:
            one.spans[hour_of(ends[0]), hour_of(ends[-1])] = (one.records, one.bytes, 1)
        return one

    def merge(self, other: Tally) -> None:
        """Count in what another one has counted."""
        for name in ("files", "counted", "records", "bytes", "stored", "stored_known"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.first = min(filter(None, (self.first, other.first)), default=None)
        self.last = max(filter(None, (self.last, other.last)), default=None)
        self.written = max(filter(None, (self.written, other.written)), default=None)
        for hours, amount in other.spans.items():
            self.spans[hours] = add(self.spans.get(hours, (0, 0, 0)), amount)


def add(one: Amount, two: Amount) -> Amount:
    """Two amounts together."""
    return one[0] + two[0], one[1] + two[1], one[2] + two[2]


def hour_of(at: dt.datetime) -> int:
    """Its number, counted from 1970."""
    return int((at - EPOCH) // HOUR)


# ---- fields ----------------------------------------------------------------------------------------------------------

MOST_FIELDS = 5000
MOST_LEVELS = 30
_SHORT = 120  # characters of a value in a limit
_MANY = 12  # values of an enum that are named
_LIMITS = {
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minimum": "at least {}",
    "maximum": "at most {}",
    "multipleOf": "a multiple of {}",
    "pattern": "matches {}",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "contentEncoding": "encoded as {}",
    "default": "default {}",
}


@dataclass(frozen=True, slots=True)
class Field:
    """One field. ``path`` is dotted, with ``[]`` for the items of an array (``tags[].name``); a name that holds such
    signs itself stands in quotes. ``parent`` is the path of the field it lies in, empty at the top. ``nullable`` is
    None where the schema allows anything.
    """

    path: str
    name: str
    parent: str
    depth: int
    type: str
    nullable: bool | None
    required: bool
    description: str
    limits: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class View:
    """One schema version as pages show it: its fields in its order, what had to be left out, in words (empty: nothing),
    keys and bookmark fields."""

    fields: tuple[Field, ...]
    left_out: str
    description: str
    keys: tuple[str, ...]
    bookmarks: tuple[str, ...]


def view_of(schema: Mapping[str, Any], keys: Iterable[str], bookmarks: Iterable[str] | None) -> View:
    """A schema as pages show it. References are resolved; those that can't be are said in ``left_out``."""
    notes = []
    root: Any = schema
    if any(isinstance(node, Mapping) and ("$ref" in node or "allOf" in node) for _, node in walk(schema)):
        try:
            root = resolve_refs(schema, source="the schema")
        except (DeclarationError, RecursionError) as error:
            notes.append(f"References could not be resolved: {error}")
    found = list(itertools.islice(_below(root, parent="", path="", depth=0), MOST_FIELDS + 1))
    if len(found) > MOST_FIELDS:
        found.pop()
        notes.append(f"Only the first {MOST_FIELDS:,} fields are shown.")
    if any(field.depth == MOST_LEVELS - 1 for field in found):
        notes.append(f"Fields deeper than {MOST_LEVELS} levels are left out.")
    return View(tuple(found), " ".join(notes), _description(root), tuple(keys), tuple(bookmarks or ()))


def _below(node: Any, *, parent: str, path: str, depth: int) -> Iterator[Field]:
    """The fields inside of a node; ``path`` is where they are counted from, with ``[]`` where it is an array."""
    if depth >= MOST_LEVELS:
        return
    required = {quoted(name) for part in _parts(node) for name in _listed(part, "required") if isinstance(name, str)}
    for name, child in _children(node):
        here = f"{path}.{name}" if path else name
        yield Field(
            path=here,
            name=name,
            parent=parent,
            depth=depth,
            type=type_words(child),
            nullable=_nullable(child),
            required=name in required,
            description=_description(child),
            limits=tuple(dict.fromkeys(text for part in _parts(child) for text in _limits(part))),
        )
        inner, brackets = child, ""
        while (items := _items(inner)) is not None and len(brackets) < 2 * MOST_LEVELS:
            inner, brackets = items, brackets + "[]"
        yield from _below(inner, parent=here, path=here + brackets, depth=depth + 1)


def _listed(node: Mapping[str, Any], key: str) -> list[Any]:
    return node[key] if isinstance(node.get(key), list) else []


def _children(node: Any) -> Iterator[tuple[str, Any]]:
    """Named fields, then rules for names that are not known beforehand."""
    seen: dict[str, Any] = {}
    for part in _parts(node):
        for way, child in schema_tree.parts(part):
            match way:
                case "properties", name:
                    seen.setdefault(quoted(name), child)
                case "patternProperties", pattern:
                    seen.setdefault(f"/{pattern}/", child)
                case ("additionalProperties",) if isinstance(child, Mapping) and child:
                    seen.setdefault("*", child)
    yield from seen.items()


def _parts(node: Any) -> Iterator[Mapping[str, Any]]:
    """The node itself, and the schemas of which a value has to fit one."""
    if not isinstance(node, Mapping):
        return
    yield node
    for branch in (*_listed(node, "anyOf"), *_listed(node, "oneOf")):
        if isinstance(branch, Mapping):
            yield branch


def _items(node: Any) -> Any:
    """The schema of an array's items, if there is one for all."""
    return next((part["items"] for part in _parts(node) if isinstance(part.get("items"), Mapping)), None)


def quoted(name: str) -> str:
    """A field's name as it stands in a path: in quotes where it would be misread."""
    return json.dumps(name, ensure_ascii=False) if not name or set(name) & set('.[]*/" \t\n') else name


def type_words(node: Any, depth: int = 0) -> str:
    """``string (date-time)``, ``array of integer``, ``integer or string``, ``any``."""
    if node is False:
        return "nothing"
    if not isinstance(node, Mapping) or depth > MOST_LEVELS:
        return "any"
    words = [_one_type(node, kind, depth) for kind in types_of(node) if kind != "null"]
    if not words:
        words = [type_words(part, depth + 1) for part in list(_parts(node))[1:] if types_of(part) != ("null",)]
        if not words and "properties" in node:
            words = ["object"]
        if not words and _values(node):
            words = [type_of(value) for value in _values(node) if value is not None]
    if not words:
        return "null" if "null" in types_of(node) else "any"
    return " or ".join(dict.fromkeys(words))


def _values(node: Mapping[str, Any]) -> list[Any]:
    return [node["const"]] if "const" in node else _listed(node, "enum")


def _one_type(node: Mapping[str, Any], kind: str, depth: int) -> str:
    if kind == "array":
        items = node.get("items")
        if isinstance(items, list | tuple):
            return "array of fixed length"
        return "array" if not isinstance(items, Mapping) or not items else f"array of {type_words(items, depth + 1)}"
    if kind in ("string", "number", "integer") and isinstance(node.get("format"), str):
        return f"{kind} ({cut(node['format'], _SHORT)})"
    return cut(kind, _SHORT)


def _nullable(node: Any) -> bool | None:
    if not isinstance(node, Mapping):
        return None
    types = {kind for part in _parts(node) for kind in types_of(part)}
    if types:
        return "null" in types
    return None in _values(node) if _values(node) else None


def _description(node: Any) -> str:
    """What is said about a field: its description, else its title, else what a branch says."""
    for key in ("description", "title"):
        for part in _parts(node):
            if isinstance(part.get(key), str) and part[key].strip():
                return str(part[key]).strip()
    return ""


def _limits(node: Mapping[str, Any]) -> Iterator[str]:
    if values := _values(node):
        named = ", ".join(_shown(value) for value in values[:_MANY])
        more = f" and {len(values) - _MANY:,} more" if len(values) > _MANY else ""
        yield f"always {named}" if "const" in node else f"one of {named}{more}"
    for key, words in _LIMITS.items():
        if key in node and node[key] is not None:
            yield words.format(_shown(node[key]))
    for key, words in (("exclusiveMinimum", "more than"), ("exclusiveMaximum", "less than")):
        value = node.get(key)
        if value is True:  # draft 4: a word beside minimum
            yield f"{words} its limit, not equal"
        elif isinstance(value, int | float | Decimal) and not isinstance(value, bool):
            yield f"{words} {_shown(value)}"


def _shown(value: Any) -> str:
    if isinstance(value, str | Decimal):
        return cut(str(value), _SHORT)
    try:
        return cut(json.dumps(value, ensure_ascii=False, default=float), _SHORT)
    except RecursionError:
        return "a value too deep to show"


Kind = Literal["added", "removed", "changed"]
_SHORT_CHANGE = 160


@dataclass(frozen=True, slots=True)
class Change:
    """One difference. ``path`` is a field, or empty for what concerns the stream itself; ``what`` says it in words."""

    kind: Kind
    path: str
    what: str


def compare(old: View, new: View) -> tuple[Change, ...]:
    """All differences: those of the stream first, then fields added, removed and changed, each in schema order."""
    before = {field.path: field for field in old.fields}
    after = {field.path: field for field in new.fields}
    return (
        *_of_stream(old, new),
        *_only_in("added", after, before),
        *_only_in("removed", before, after),
        *(
            Change("changed", path, "; ".join(said))
            for path, field in after.items()
            if path in before and (said := list(_differences(before[path], field)))
        ),
    )


def _of_stream(old: View, new: View) -> Iterator[Change]:
    for words, before, after in (("keys", old.keys, new.keys), ("bookmark fields", old.bookmarks, new.bookmarks)):
        if before != after:
            yield Change("changed", "", f"{words}: was {', '.join(before) or 'none'}, now {', '.join(after) or 'none'}")
    if old.description != new.description:
        yield Change("changed", "", _text("description", old.description, new.description))


def _only_in(kind: Kind, here: dict[str, Field], there: dict[str, Field]) -> Iterator[Change]:
    """Fields of one side alone. What lies inside such a field is counted, not listed."""
    inside: dict[str, int] = {}
    tops: dict[str, str] = {}
    for path, one in here.items():  # parents come before their fields
        if path not in there:
            tops[path] = tops.get(one.parent, path)
            inside[tops[path]] = inside.get(tops[path], -1) + 1
    for path, count in inside.items():
        words = [here[path].type]
        if here[path].nullable:
            words.append("may be null")
        if count:
            words.append(f"with {counted(count, 'field')} inside")
        yield Change(kind, path, ", ".join(words))


def _differences(old: Field, new: Field) -> Iterator[str]:
    if old.type != new.type:
        yield f"type: was {old.type}, now {new.type}"
    if bool(old.nullable) != bool(new.nullable):
        yield "may be null now" if new.nullable else "may not be null any more"
    if old.required != new.required:
        yield "always there now" if new.required else "may be missing now"
    if old.limits != new.limits:
        was, now = (cut("; ".join(one.limits), _SHORT_CHANGE) or "none" for one in (old, new))
        yield f"limits: was {was}, now {now}"
    if old.description != new.description:
        yield _text("description", old.description, new.description)


def _text(what: str, old: str, new: str) -> str:
    if not old:
        return f"{what} is new: “{cut(new, _SHORT_CHANGE)}”"
    return f"{what}: was “{cut(old, _SHORT_CHANGE)}”, now {f'“{cut(new, _SHORT_CHANGE)}”' if new else 'none'}"


# ---- streams ---------------------------------------------------------------------------------------------------------


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
    notes: TapNotes
    streams: list[StreamLine] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)
    problems: list[Problem] = field(default_factory=list)


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
            view = view_of(schema.schema, schema.key_properties, schema.bookmark_properties)
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
    return view_of(schema, _texts(keys), _texts(root.get("valid-replication-keys")))


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
    some = itertools.islice(message.record.items(), _MOST_VALUES)
    values = tuple((unveil(name.encode()).decode(), _value_text(unveil(bytes(value)))) for name, value in some)
    return Sample(values, max(0, len(message.record) - _MOST_VALUES), message.time_extracted or "")


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
