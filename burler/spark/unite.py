"""One set of columns from all schema versions of a stream, united by field name.

The lake's files are then all read with the united types, straight from their text. That is why every
step here must be exact for the *text*: an integer read as text is its digits, a date-time read as
text is what the tap wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from burler.columns.kinds import NULL, DecimalOf, FieldType, ListOf, MapOf, Scalar, StructOf, widen
from burler.errors import ExportError


@dataclass(frozen=True, slots=True)
class VersionType:
    """The columns of one schema version: its hash, its version (``v1``) and its type."""

    hash: str
    version: str
    record: StructOf


class _Conflict(Exception):
    def __init__(self, path: str, left: FieldType, right: FieldType) -> None:
        super().__init__(path)
        self.path, self.left, self.right = path, left, right


def unite_versions(stream: str, versions: Sequence[VersionType]) -> StructOf:
    """The columns that hold the rows of every version; fields in the order they first appeared.

    New fields are added, equal ones kept, others widened where every value stays exact
    (``kinds.widen``); objects, lists and maps are united inside.

    Raises:
        ExportError: a field whose types no one type holds, or two fields that differ only in upper and
            lower case (most readers take those for one); names the field and both versions.
    """
    united, seen = versions[0].record, [versions[0]]
    for version in versions[1:]:
        try:
            merged = unite(united, version.record)
        except _Conflict as conflict:
            raise _error(stream, conflict, seen, version) from None
        assert isinstance(merged, StructOf)
        united = merged
        seen.append(version)
    twins = case_twins(united)
    if twins is not None:
        raise ExportError(
            f"stream '{stream}': the fields '{twins[0]}' and '{twins[1]}' differ only in upper and lower case; "
            "most table readers take them for one. Deselect or rename one of them in the tap"
        )
    return united


def unite(left: FieldType, right: FieldType, path: str = "") -> FieldType:
    """The type that holds both. Raises ``_Conflict`` (made an ExportError by ``unite_versions``)."""
    wider = widen(left, right)
    if wider is not None:
        return wider
    match left, right:
        case StructOf(fields), StructOf(others):
            mine = dict(fields)
            for name, kind in others:
                place = f"{path}.{name}" if path else name
                mine[name] = unite(mine[name], kind, place) if name in mine else kind
            return StructOf(tuple(mine.items()))
        case ListOf(item), ListOf(other):
            return ListOf(unite(item, other, f"{path}[]"))
        case MapOf(value), MapOf(other):
            return MapOf(unite(value, other, f"{path}{{}}"))
    raise _Conflict(path, left, right)


def restrict(wide: FieldType, own: FieldType) -> FieldType:
    """``wide`` without the struct fields that ``own`` does not declare: how rows of one version are read."""
    match wide, own:
        case StructOf(fields), StructOf():
            kept = ((name, kind, own.get(name)) for name, kind in fields)
            return StructOf(tuple((name, restrict(kind, mine)) for name, kind, mine in kept if mine is not None))
        case ListOf(item), ListOf(own_item):
            return ListOf(restrict(item, own_item))
        case MapOf(value), MapOf(own_value):
            return MapOf(restrict(value, own_value))
    return wide


def case_twins(kind: FieldType, path: str = "") -> tuple[str, str] | None:
    """Two fields of one struct, at any depth, that differ only in upper and lower case."""
    match kind:
        case StructOf(fields):
            lowered: dict[str, str] = {}
            for name, inner in fields:
                place = f"{path}{name}"
                first = lowered.setdefault(name.lower(), place)
                found = (first, place) if first != place else case_twins(inner, f"{place}.")
                if found is not None:
                    return found
        case ListOf(inner) | MapOf(inner):
            return case_twins(inner, path)
    return None


def spell(kind: FieldType) -> str:
    """A type as a reader of an error knows it."""
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
            return name


def _error(stream: str, conflict: _Conflict, seen: Sequence[VersionType], new: VersionType) -> ExportError:
    # The united type came from one of the versions before: name the last that has this field.
    old = next((one for one in reversed(seen) if _at(one.record, conflict.path) not in (None, NULL)), seen[-1])
    return ExportError(
        f"stream '{stream}', field '{conflict.path}': {spell(conflict.left)} in schema {old.version} ({old.hash}) "
        f"and {spell(conflict.right)} in {new.version} ({new.hash}) have no common type.\n"
        "Export the versions apart into two lakes, or make the tap send one of them as text"
    )


def _at(kind: FieldType | None, path: str) -> FieldType | None:
    """The type at a path as ``unite`` writes it; None where a version lacks it (names with dots: best effort)."""
    for part in path.replace("[]", ".[]").replace("{}", ".{}").split("."):
        match kind:
            case StructOf():
                kind = kind.get(part)
            case ListOf(inner) | MapOf(inner):
                kind = inner
            case _:
                return None
    return kind
