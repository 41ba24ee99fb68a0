"""Which tables there are: the catalog, from PostgreSQL's own, in one query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import psycopg

from burler.singer.catalog import Catalog, CatalogEntry

from .kinds import Column

# A domain is what it is made of, at any depth. Partitions come with the table that they are a part of.
_COLUMNS = """
with recursive kinds as (
    select oid, typname::text as kind, -1 as modifier from pg_catalog.pg_type where typtype <> 'd'
    union all
    select d.oid, k.kind, case when d.typtypmod = -1 then k.modifier else d.typtypmod end
    from pg_catalog.pg_type d join kinds k on k.oid = d.typbasetype where d.typtype = 'd'
)
select n.nspname::text, c.relname::text, c.relkind in ('v', 'm'), c.relkind in ('r', 'm'), a.attname::text, k.kind,
       case when a.atttypmod = -1 then k.modifier else a.atttypmod end,
       not a.attnotnull, format_type(a.atttypid, a.atttypmod), array_position(p.indkey::int2[], a.attnum)
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
join kinds k on k.oid = a.atttypid
left join pg_catalog.pg_index p on p.indrelid = c.oid and p.indisprimary
where n.nspname = any(%s) and c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition
      and has_schema_privilege(n.oid, 'USAGE') and has_column_privilege(c.oid, a.attnum, 'SELECT')
order by 1, 2, a.attnum
"""
_ORDERED = {"int2", "int4", "int8", "date", "timestamp", "timestamptz"}


@dataclass(frozen=True, slots=True)
class Table:
    """A table or view, with the columns that the user may read. ``is_stored``: it has rows of its own, in blocks."""

    schema: str
    name: str
    is_view: bool
    is_stored: bool
    columns: tuple[Column, ...]
    keys: tuple[str, ...]

    @property
    def stream(self) -> str:
        """The name of its stream."""
        return f"{self.schema}.{self.name}"


def tables_of(connection: psycopg.Connection[Any], schemas: Sequence[str]) -> list[Table]:
    """The tables and views of some schemas."""
    rows = connection.execute(_COLUMNS, (list(schemas),)).fetchall()
    return [_table(at, list(found)) for at, found in groupby(rows, key=lambda row: row[:4])]


def _table(at: tuple[Any, ...], rows: list[tuple[Any, ...]]) -> Table:
    schema, name, is_view, is_stored = at
    columns = tuple(Column(*row[4:9]) for row in rows)
    keys = sorted((row[9], row[4]) for row in rows if row[9] is not None)
    return Table(schema, name, is_view, is_stored, columns, tuple(key for _place, key in keys))


def catalog_of(tables: Sequence[Table], replication_key: str | None) -> Catalog:
    """Their catalog. Tables that have the column ``replication_key`` are incremental, all others full tables."""
    return Catalog({table.stream: _entry(table, replication_key) for table in tables})


def _entry(table: Table, replication_key: str | None) -> CatalogEntry:
    ordered = [column.name for column in table.columns if column.kind in _ORDERED]
    key = replication_key if replication_key in ordered else None
    metadata: dict[tuple[str, ...], dict[str, Any]] = {
        (): {"is-view": table.is_view, "schema-name": table.schema, "valid-replication-keys": ordered}
    }
    for column in table.columns:
        inclusion = "automatic" if column.name in (*table.keys, key) else "available"
        metadata["properties", column.name] = {"inclusion": inclusion, "sql-datatype": column.spelled}
    return CatalogEntry(
        table.stream,
        table.stream,
        {"type": "object", "properties": {column.name: column.schema for column in table.columns}},
        key_properties=table.keys,
        replication_key=key,
        replication_method="INCREMENTAL" if key else "FULL_TABLE",
        metadata=metadata,
    )
