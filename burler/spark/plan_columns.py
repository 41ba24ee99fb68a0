"""The columns that a plan is about: of the stream and of its table, its keys, and those that it is partitioned by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from burler.errors import ExportError
from burler.records.columns.types import FieldType, ListOf, MapOf, StructOf
from burler.spark.export_options import ExportOptions
from burler.spark.formats.base import TableState
from burler.spark.lakefiles import LakeStream
from burler.spark.readoptions import ReadOptions
from burler.spark.united import United, place_of, unite_stream


def united_columns(lake: LakeStream, state: TableState, options: ExportOptions) -> tuple[ReadOptions, United]:
    """The stream's columns. What an earlier export found to be no double, and made text, stays text."""
    united = unite_stream(lake.stream, lake.versions, options.read)
    wide = {path for mapped in united.mappings.values() for path in mapped.wide}
    had = {place_of(path) for path in wide if state.schema and _is_text(state.schema, path)}
    if not had - options.read.as_text:
        return options.read, united
    read = replace(options.read, as_text=options.read.as_text | had)
    return read, unite_stream(lake.stream, lake.versions, read)


def _is_text(schema: Any, path: tuple[str, ...]) -> bool:
    """Whether a table's column, in Spark's JSON form, is text. ``path`` as ``united`` spells it."""
    for part in path:
        if part == "[]":
            schema = schema.get("elementType")
        elif part == "{}":
            schema = schema.get("valueType")
        else:
            schema = next((one["type"] for one in schema.get("fields", ()) if one["name"] == part), None)
        if not isinstance(schema, Mapping):
            return bool(schema == "string")
    return False


def key_columns(lake: LakeStream, united: United, options: ExportOptions) -> tuple[str, ...]:
    """The key columns of a table with one row a key; none where every row is kept.

    Raises:
        ExportError: mode ``upsert`` without keys; a key that is no column, or no plain value.
    """
    newest = lake.versions[-1]
    if options.mode == "upsert" and not newest.key_properties:
        raise ExportError(
            f"stream '{lake.stream}': it has no keys, so there is no latest row of a key. "
            "Declare key_properties in the tap, or leave --mode upsert out"
        )
    if options.mode == "append":
        return ()
    columns = []
    for key in newest.key_properties:
        column = united.column(newest.hash, key)
        if column is None:
            raise ExportError(
                f"stream '{lake.stream}': its key '{key}' is no field of its schema, so rows can't be told apart. "
                "Correct key_properties in the tap, or select the field; or keep every row: mode append"
            )
        if not _is_plain(united.record.get(column)):
            raise ExportError(
                f"stream '{lake.stream}': its key '{key}' is an object or a list; a key must be a plain value"
            )
        columns.append(column)
    return tuple(columns)


def _is_plain(kind: FieldType | None) -> bool:
    return not isinstance(kind, ListOf | MapOf | StructOf)


def grown_columns(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool | None:
    """Whether ``new`` has more columns than ``old``; None when it is no mere growth (types changed, columns gone)."""
    before = {one["name"]: one["type"] for one in old["fields"]}
    after = {one["name"]: one["type"] for one in new["fields"]}
    if any(after.get(name) != kind for name, kind in before.items()):
        return None
    return len(after) > len(before)


def as_the_table_has_them(columns: StructOf, state: TableState) -> StructOf:
    """The columns in the order of a table that goes on, new ones at its end."""
    had = [one["name"] for one in (state.schema or {}).get("fields", [])]
    kinds = dict(columns.fields)
    return StructOf(tuple((name, kinds[name]) for name in dict.fromkeys((*had, *kinds))))
