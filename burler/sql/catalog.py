"""The catalog of a database's tables and views."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from burler.errors import SqlError
from burler.singer.catalog import Catalog, CatalogEntry
from burler.singer.metadata import AUTOMATIC, AVAILABLE, UNSUPPORTED, MetadataMap
from burler.sql.tables import Column, Table, fits, some


def catalog_of(tables: Iterable[Table], replication_keys: Mapping[str, str]) -> Catalog:
    """The catalog of some tables.

    Args:
        replication_keys: streams (with ``*``) -> the column that new and changed rows have greater values in.

    Raises:
        SqlError: two tables with one stream name, or a replication key that is no column, or can't be one.
    """
    entries: dict[str, CatalogEntry] = {}
    for table in tables:
        if table.stream in entries:
            raise SqlError(
                f"two tables would be the stream '{table.stream}'. Leave one of them out: discover(tables=...)."
            )
        key = _replication_key(table, replication_keys)
        entries[table.stream] = CatalogEntry(
            table.stream,
            table.stream,
            {"type": "object", "properties": {column.name: dict(column.schema) for column in table.columns}},
            key_properties=table.keys,
            replication_key=key,
            replication_method="INCREMENTAL" if key else None,
            metadata=_metadata(table),
        )
    return Catalog(entries)


def _replication_key(table: Table, asked: Mapping[str, str]) -> str | None:
    """The column that the first pattern names; a pattern with ``*`` speaks of the tables that have it."""
    for pattern, key in asked.items():
        exact = pattern in (table.stream, table.name)
        if not exact and not fits(table.name, table.stream, pattern):
            continue
        if key in _ordered(table):
            return key
        if exact:
            fact = "can't be one" if key in table.by_name else "is no column of it"
            raise SqlError(
                f"stream '{table.stream}': its replication key '{key}' {fact}. It may be: {some(_ordered(table))}."
            )
    return None


def _ordered(table: Table) -> list[str]:
    """Columns whose values have an order that a bookmark can follow."""
    return [column.name for column in table.columns if not column.unsupported and _is_ordered(column)]


def _is_ordered(column: Column) -> bool:
    import sqlalchemy as sa

    types = column.schema.get("type", ())
    named = {types} if isinstance(types, str) else set(types)
    if named & {"integer", "number"}:
        return True
    if "string" not in named or "contentEncoding" in column.schema:
        return False
    if column.schema.get("format") in ("date", "date-time", "singer.decimal", "uuid"):
        return True
    return isinstance(column.type, sa.String) and not isinstance(column.type, sa.Enum)


def _metadata(table: Table) -> MetadataMap:
    root: dict[str, Any] = {"is-view": table.is_view}
    if table.schema is not None:
        root["schema-name"] = table.schema
    if table.database:
        root["database-name"] = table.database
    if ordered := _ordered(table):
        root["valid-replication-keys"] = ordered
    made: MetadataMap = {(): root}
    for column in table.columns:
        said: dict[str, Any] = {"inclusion": AUTOMATIC if column.name in table.keys else AVAILABLE}
        if column.unsupported:
            said = {"inclusion": UNSUPPORTED, "unsupported-description": column.unsupported}
        if column.sql_type:
            said["sql-datatype"] = column.sql_type
        made["properties", column.name] = said
    return made
