"""PostgreSQL's side of a table: types, names, and the statements of a publication. Texts only; nothing is run here.

Names are always quoted and kept as they are, capitals too; those over PostgreSQL's 63 bytes are cut and get a digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from burler.records.columns.types import DIGITS, DecimalOf, FieldType, ListOf, MapOf, Scalar, StructOf
from burler.spark.formats.databases import short_name
from burler.spark.formats.merging import wins

EXPORTS = "burler_exports"
STAGE = "_burler_stage_"
STAGES = f"^{STAGE}[0-9a-f]{{16}}$"
"""What all names of staging tables fit; those of their tasks have an ending."""
KEY = "burler_key_"
_TYPES = {
    "bigint": "bigint",
    "double": "double precision",
    "boolean": "boolean",
    "timestamp": "timestamp with time zone",
    "date": "date",
    "binary": "bytea",
}


def quoted(name: str) -> str:
    """A name as SQL has it."""
    return '"' + short_name(name).replace('"', '""') + '"'


def beside_values(name: str) -> str:
    """A quoted name for a statement that is given values: psycopg takes a single ``%`` there for one of them."""
    return name.replace("%", "%%")


def type_of(kind: FieldType) -> str:
    """The type that holds every value of a column exactly, as ``format_type`` spells it."""
    if isinstance(kind, DecimalOf):
        return f"numeric({DIGITS},{kind.scale})"
    if isinstance(kind, ListOf | MapOf | StructOf):
        return "jsonb"
    return _TYPES.get(kind.name, "text")


def make_exports(schema: str) -> str:
    """The table with one row for each table that exports made: its source, version, numbers and columns."""
    return (
        f"CREATE TABLE IF NOT EXISTS {quoted(schema)}.{EXPORTS} (table_name text PRIMARY KEY, source text NOT NULL, "
        "version bigint NOT NULL, numbers jsonb NOT NULL, columns jsonb NOT NULL, metadata jsonb NOT NULL, "
        "exported_at timestamptz NOT NULL DEFAULT now())"
    )


def make_table(table: str, columns: StructOf) -> str:
    """``table`` is quoted already."""
    return f"CREATE TABLE {table} ({_columns(columns)})"


def make_stage(stage: str, columns: StructOf) -> list[str]:
    """A staging table without a log, and beside it the list of the tasks whose rows are in it."""
    return [
        f"CREATE UNLOGGED TABLE {stage} ({_columns(columns)}) WITH (autovacuum_enabled = false)",
        f"CREATE UNLOGGED TABLE {tasks_of(stage)} (part bigint PRIMARY KEY)",
    ]


def tasks_of(stage: str) -> str:
    """The quoted name of a staging table's list of tasks."""
    return stage[:-1] + '_tasks"'


def copy_into(table: str, columns: StructOf) -> str:
    """Rows as CSV; null is nothing at all, empty text is ``""``."""
    return f"COPY {table} ({_names(columns)}) FROM STDIN (FORMAT csv, NULL '')"


def alterations(table: str, columns: StructOf, have: Mapping[str, str], *, replace: bool) -> list[str]:
    """What gives a table the columns that it should have.

    Args:
        have: its columns as they are: name -> type as ``format_type`` spells it.
        replace: the table is empty by now: columns that are not wanted go, others change without their values.
    """
    wanted = {short_name(name): type_of(kind) for name, kind in columns.fields}
    statements = []
    for name, kind in have.items():
        if replace and wanted.get(name) != kind:
            statements.append(f"ALTER TABLE {table} DROP COLUMN {quoted(name)}")
    for name, kind in wanted.items():
        if name not in have or (replace and have[name] != kind):
            statements.append(f"ALTER TABLE {table} ADD COLUMN {quoted(name)} {kind}")
        elif have[name] != kind:
            statements.append(
                f"ALTER TABLE {table} ALTER COLUMN {quoted(name)} TYPE {kind} USING {quoted(name)}::{kind}"
            )
    return statements


def insert(table: str, stage: str, columns: StructOf) -> str:
    """All rows of the staging table."""
    names = _names(columns)
    return f"INSERT INTO {table} ({names}) SELECT {names} FROM {stage}"


def upsert(table: str, stage: str, columns: StructOf, keys: Sequence[str], newer: Sequence[str]) -> str:
    """All rows of the staging table; where the key is there, the newer row stays."""
    there = {name for name, _ in columns.fields}
    set_to = ", ".join(f"{quoted(n)} = excluded.{quoted(n)}" for n, _ in columns.fields if n not in keys)
    condition = wins(
        newer,
        there,
        lambda name: _compared(f"excluded.{quoted(name)}", columns.get(name)),
        lambda name: _compared(f"old.{quoted(name)}", columns.get(name)),
    )
    action = f"UPDATE SET {set_to} WHERE {condition}" if set_to else "NOTHING"
    names = _names(columns)
    return (
        f"INSERT INTO {table} AS old ({names}) SELECT {names} FROM {stage} "
        f"ON CONFLICT ({', '.join(map(quoted, keys))}) DO {action}"
    )


def make_key(table: str, name: str, keys: Sequence[str]) -> str:
    """The unique index that an upsert goes by."""
    return f"CREATE UNIQUE INDEX {quoted(key_name(name, keys))} ON {table} ({', '.join(map(quoted, keys))})"


def key_name(table: str, keys: Sequence[str]) -> str:
    """Its name: other keys, another index."""
    return KEY + hashlib.sha256(json.dumps([table, *keys]).encode()).hexdigest()[:16]


def select(table: str, columns: StructOf) -> str:
    """All rows; what is ``jsonb`` as text."""
    shown = (f"{quoted(name)}::text" if type_of(kind) == "jsonb" else quoted(name) for name, kind in columns.fields)
    return f"SELECT {', '.join(shown)} FROM {table}"


def _compared(column: str, kind: FieldType | None) -> str:
    # By bytes, as Spark does, and not by the rules of the database's language.
    return f'{column} COLLATE "C"' if kind is None or (isinstance(kind, Scalar) and type_of(kind) == "text") else column


def _columns(columns: StructOf) -> str:
    return ", ".join(f"{quoted(name)} {type_of(kind)}" for name, kind in columns.fields)


def _names(columns: StructOf) -> str:
    return ", ".join(quoted(name) for name, _ in columns.fields)
