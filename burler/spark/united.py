"""All schema versions of a stream as one set of columns, and how the rows of each version go into them.

A lake's files are read with the united types straight from their text, so each step must be exact for the *text*: an
integer read as text is its digits, a date-time read as text is what the tap wrote. Nothing is ever lost: fields are
added and stay, types widen where every value stays exact, and what no one type holds is text. What was decided and may
surprise stands in ``United.notes``. The rules, in the user's words: docs/table-types.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from burler.errors import BurlerError, ExportError
from burler.records.columns.types import (
    BIGINT,
    DOUBLE,
    NULL,
    STRING,
    WIDE,
    DecimalOf,
    FieldType,
    ListOf,
    MapOf,
    Scalar,
    StructOf,
    widest,
)
from burler.schema.refs import resolve_refs
from burler.schema_tree import walk
from burler.spark.lakefiles import SchemaVersion
from burler.spark.readoptions import ReadOptions
from burler.spark.types import read_type
from burler.spark.unite_names import RESERVED, name_columns

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mapped:
    """How rows of one version are read.

    ``own``: the version's fields by their own names, each with the type of its column; a field that is not in it is
    not in the schema. Where the column holds doubles and this version integers the type is ``WIDE``, and the path is
    among ``wide``: an integer beyond 2^53 must not be rounded in silence. ``names``: of each column (its path) the
    version's own name, where it is another.
    """

    own: StructOf
    names: Mapping[Path, str]
    wide: frozenset[Path]

    def source_place(self, path: Path) -> str:
        """A column's path as the version itself would spell it."""
        return ".".join(self.names.get(path[: at + 1], name) for at, name in enumerate(path))


@dataclass(frozen=True, slots=True)
class United:
    """The columns of a stream, keys first.

    ``own``: by hash, see ``Mapped.own``. ``notes``: one line for each decision that a user should know of.
    """

    record: StructOf
    own: Mapping[str, StructOf]
    notes: tuple[str, ...]
    mappings: Mapping[str, Mapped] = field(repr=False)

    def mapped(self, hash: str) -> Mapped:
        """How rows of the version with this hash are read.

        Raises:
            ExportError: it is none of the versions that were united.
        """
        try:
            return self.mappings[hash]
        except KeyError:
            raise ExportError(
                f"the lake holds a file under schema {hash}, of which its manifest knows nothing. Run burler lake "
                "rebuild, then export again"
            ) from None

    def column(self, hash: str, name: str) -> str | None:
        """The column that holds a field of one version (a key, say); None when the version has no such field."""
        mapped = self.mapped(hash)
        if mapped.own.get(name) is None:
            return None
        return next(column for column, _ in self.record.fields if mapped.names.get((column,), column) == name)


def unite_stream(stream: str, versions: Sequence[SchemaVersion], options: ReadOptions | None = None) -> United:
    """The columns that hold the rows of every version; fields in the order they first appeared, keys before all.

    Args:
        versions: oldest first; at least one.

    Raises:
        ExportError: no version, or a schema that can't be columns: recursive, without properties, with a reference
            that leads nowhere.
        UsageError: an option that this Spark can't fulfil.
    """
    options = options or ReadOptions()
    if not versions:
        raise ExportError(f"stream '{stream}': the lake knows no schema of it, so there is no table to make")
    records = [_record(stream, version, options) for version in versions]
    uniting = _Uniting(options.as_text, frozenset(versions[-1].key_properties))
    views = [_View(version.hash, version.version, record) for version, record in zip(versions, records, strict=True)]
    record = uniting.objects(views, ())
    mappings = {
        view.hash: Mapped(
            _Own(uniting.names.get(view.hash, {}), uniting.wide.get(view.hash, set())).struct(record, view.kind),
            uniting.names.get(view.hash, {}),
            frozenset(uniting.wide.get(view.hash, ())),
        )
        for view in views
        if isinstance(view.kind, StructOf)
    }
    own = {digest: mapped.own for digest, mapped in mappings.items()}
    united = United(record, own, tuple(uniting.notes), mappings)
    newest = versions[-1]
    keys = [united.column(newest.hash, key) for key in newest.key_properties]
    fields = sorted(record.fields, key=lambda one: keys.index(one[0]) if one[0] in keys else len(keys))
    return United(StructOf(tuple(fields)), own, united.notes, mappings)


def spell(kind: FieldType) -> str:
    """A type as a reader of a note or an error knows it."""
    match kind:
        case DecimalOf(scale):
            return f"decimal(38,{scale})"
        case ListOf():
            return "array"
        case MapOf():
            return "map"
        case StructOf():
            return "object"
        case Scalar(name):
            return {"bigint": "integer", "double": "number", "timestamp": "date-time", "variant": "any JSON"}.get(
                name, name
            )


def place_of(path: Path) -> str:
    """A path as notes, errors and ``ReadOptions.as_text`` spell it."""
    return ".".join(path)


def _record(stream: str, version: SchemaVersion, options: ReadOptions) -> StructOf:
    schema = version.schema
    if any("$ref" in node for _, node in walk(schema) if isinstance(node, Mapping)):
        try:
            schema = resolve_refs(schema, source=f"stream '{stream}'")
        except BurlerError as error:
            raise ExportError(
                f"stream '{stream}': its schema {version.version} is recursive or refers to what is not there, so it "
                f"can't be columns ({error}). Declare the field without properties: it is then held as JSON text"
            ) from None
    return read_type(schema, stream=stream, timestamps=options.timestamps, open_types=options.open_types)


@dataclass(frozen=True, slots=True)
class _View:
    """A place in one version of the schema."""

    hash: str
    version: str
    kind: FieldType


class _Uniting:
    """The types of all versions laid on each other, from the top down."""

    def __init__(self, as_text: frozenset[str], keys: frozenset[str]) -> None:
        self._as_text = as_text
        self._keys = keys
        self.notes: list[str] = []
        self.names: dict[str, dict[Path, str]] = {}
        self.wide: dict[str, set[Path]] = {}

    def objects(self, views: Sequence[_View], path: Path) -> StructOf:
        """Objects of all versions: the fields of all of them."""
        inside = [dict(view.kind.fields) for view in views if isinstance(view.kind, StructOf)]
        fields: list[tuple[str, FieldType]] = []
        reserved, keys = (frozenset(), frozenset()) if path else (RESERVED, self._keys)
        for column in name_columns([list(one) for one in inside], reserved, keys):
            place = (*path, column.name)
            same: list[_View] = []
            for view, own, source in zip(views, inside, column.sources, strict=True):
                if source is not None:
                    same.append(_View(view.hash, view.version, own[source]))
                    if source != column.name:
                        self.names.setdefault(view.hash, {})[place] = source
            if column.why:
                newest = next(source for source in reversed(column.sources) if source is not None)
                self.notes.append(f"field '{place_of((*path, newest))}': {column.why}")
            fields.append((column.name, self._join(same, place)))
        return StructOf(tuple(fields))

    def _join(self, views: Sequence[_View], path: Path) -> FieldType:
        told = [view for view in views if view.kind != NULL]
        if not told:
            return NULL
        kinds = [view.kind for view in told]
        if all(isinstance(kind, StructOf) for kind in kinds):
            return self.objects(told, path)
        for nest, mark in ((ListOf, "[]"), (MapOf, "{}")):
            if all(isinstance(kind, nest) for kind in kinds):
                return nest(self._join(list(_inside(told)), (*path, mark)))
        is_mixed = STRING in kinds and len(set(kinds)) > 1
        wide = None if is_mixed else widest(kinds)
        if wide == DOUBLE and BIGINT in kinds:
            if place_of(path) in self._as_text:
                wide = None
            else:
                for view in told:
                    if view.kind == BIGINT:
                        self.wide.setdefault(view.hash, set()).add(path)
        if wide is None:
            self._note_text(told, path)
            return STRING
        return wide

    def _note_text(self, views: Sequence[_View], path: Path) -> None:
        first: dict[str, str] = {}
        for view in views:
            first.setdefault(spell(view.kind), view.version)
        said = ", ".join(f"{kind} in {version}" for kind, version in first.items())
        self.notes.append(f"field '{place_of(path)}': {said}: held as text")


def _inside(views: Sequence[_View]) -> Iterator[_View]:
    for view in views:
        match view.kind:
            case ListOf(inner) | MapOf(inner):
                yield _View(view.hash, view.version, inner)


class _Own:
    """The columns by one version's names, and without the fields that the version does not have."""

    def __init__(self, names: Mapping[Path, str], wide: Set[Path]) -> None:
        self._names = names
        self._wide = wide

    def struct(self, kind: StructOf, own: StructOf, path: Path = ()) -> StructOf:
        had, kept = dict(own.fields), []
        for name, inner in kind.fields:
            place = (*path, name)
            source = self._names.get(place, name)
            if source in had:
                kept.append((source, self._of(inner, had[source], place)))
        return StructOf(tuple(kept))

    def _of(self, kind: FieldType, own: FieldType, path: Path) -> FieldType:
        match kind, own:
            case StructOf(), StructOf():
                return self.struct(kind, own, path)
            case ListOf(item), ListOf(own_item):
                return ListOf(self._of(item, own_item, (*path, "[]")))
            case MapOf(value), MapOf(own_value):
                return MapOf(self._of(value, own_value, (*path, "{}")))
        return WIDE if path in self._wide else kind
