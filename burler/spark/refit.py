"""Arrays of one schema version's fields, made the columns that all versions have together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from burler.records.columns.types import FieldType, ListOf, MapOf, StructOf, arrow_type
from burler.spark.united import Mapped, Path

Refit = Callable[[Sequence[Any], int], list[Any]]
"""From the arrays of ``Mapped.own``, in its order, and the number of rows to the arrays of the united columns."""
_Rename = Callable[[Any], Any]


def refit(record: StructOf, mapped: Mapped) -> Refit:
    """What puts a version's arrays where they belong: renamed, with nulls for what the version does not have."""
    places = {name: at for at, (name, _) in enumerate(mapped.own.fields)}
    columns = [
        (places.get(mapped.names.get((name,), name)), arrow_type(kind), _renamer(kind, mapped.names, (name,)))
        for name, kind in record.fields
    ]

    def fit(arrays: Sequence[Any], count: int) -> list[Any]:
        import pyarrow as pa

        return [
            pa.nulls(count, wanted) if at is None else _fitted(arrays[at], wanted, rename)
            for at, wanted, rename in columns
        ]

    return fit


def _fitted(array: Any, wanted: Any, rename: _Rename | None) -> Any:
    import pyarrow as pa

    if array.type == wanted:
        return array
    if rename is None:
        try:
            return array.cast(wanted)  # fields inside that this version does not have become null
        except pa.ArrowException:  # older releases of pyarrow don't: value by value then
            rename = _as_it_is
    return pa.array([None if value is None else rename(value) for value in array.to_pylist()], wanted)


def _as_it_is(value: Any) -> Any:
    return value


def _renamer(kind: FieldType, names: Mapping[Path, str], path: Path) -> _Rename | None:
    """What renames fields inside of a value; None where none is."""
    match kind:
        case StructOf(fields):
            return _struct_renamer(fields, names, path)
        case ListOf(item):
            return _list_renamer(_renamer(item, names, (*path, "[]")))
        case MapOf(value):
            return _map_renamer(_renamer(value, names, (*path, "{}")))
    return None


def _list_renamer(inner: _Rename | None) -> _Rename | None:
    return None if inner is None else lambda values: [_or_none(inner, value) for value in values]


def _map_renamer(inner: _Rename | None) -> _Rename | None:
    return None if inner is None else lambda pairs: [(key, _or_none(inner, value)) for key, value in pairs]


def _struct_renamer(fields: Sequence[tuple[str, FieldType]], names: Mapping[Path, str], path: Path) -> _Rename | None:
    parts = [
        (name, names.get((*path, name), name), _renamer(kind, names, (*path, name)) or _as_it_is)
        for name, kind in fields
    ]
    if all(name == source and inner is _as_it_is for name, source, inner in parts):
        return None

    def rename(value: Mapping[str, Any]) -> dict[str, Any]:
        return {name: _or_none(inner, value[source]) for name, source, inner in parts if source in value}

    return rename


def _or_none(rename: _Rename, value: Any) -> Any:
    return None if value is None else rename(value)
