"""Which tables and views a database has."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from burler.errors import SqlError
from burler.sql import sqlite
from burler.sql.json_types import json_type, nullable
from burler.sql.tables import Column, Table, fits, some

if TYPE_CHECKING:
    import sqlalchemy as sa

logger = logging.getLogger(__name__)

_SYSTEM = ("information_schema",)
_CLOSED = "the user has no right to read this column"
_COLUMNS_OF_POSTGRES = """
select n.nspname, c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attndims, c.relispartition,
       has_schema_privilege(n.oid, 'USAGE') and has_column_privilege(c.oid, a.attnum, 'SELECT')
from pg_catalog.pg_attribute a
join pg_catalog.pg_class c on c.oid = a.attrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = any(:schemas) and a.attnum > 0 and not a.attisdropped and c.relkind in ('r', 'p', 'v', 'm', 'f')
"""


@dataclass(frozen=True, slots=True)
class _Known:
    """What PostgreSQL says of a column beside its type."""

    sql_type: str
    dimensions: int
    is_partition: bool
    readable: bool


def read_tables(
    connection: sa.Connection, schemas: Sequence[str] | None, patterns: Sequence[str], *, views: bool
) -> list[Table]:
    """The tables and views that fit a pattern, in the order of their names.

    Args:
        schemas: those to look into; None: all but the system's own, or the default one where a database counts
            schemas by the thousand.
        patterns: names with ``*`` and ``?``, as ``table`` or ``schema.table``.
        views: take views too.

    Raises:
        SqlError: a schema that is not there, or no table that fits.
    """
    import sqlalchemy as sa

    inspector = sa.inspect(connection)
    dialect = connection.dialect.name
    found: list[Table] = []
    for schema in _schemas(inspector, dialect, schemas):
        names = list(_names(inspector, schema, patterns, views=views))
        if names:
            found += _read(connection, inspector, dialect, schema, names)
    closed = [table.stream for table in found if all(column.unsupported == _CLOSED for column in table.columns)]
    if closed:
        logger.warning(
            "the user may read no column of %s; left out. To have them: GRANT SELECT ON them TO the user", some(closed)
        )
        found = [table for table in found if table.stream not in closed]
    if not found:
        raise SqlError(_nothing_fits(inspector, schemas, patterns))
    return sorted(found, key=lambda table: (table.schema or "", table.name))


def _schemas(inspector: Any, dialect: str, asked: Sequence[str] | None) -> list[str | None]:
    if asked is None:
        if dialect == "postgresql":
            return [name for name in inspector.get_schema_names() if name not in _SYSTEM and name[:3] != "pg_"]
        return [None if dialect == "sqlite" else inspector.default_schema_name]
    there = inspector.get_schema_names()
    missing = [name for name in asked if name not in there]
    if missing:
        raise SqlError(f"there is no schema '{missing[0]}' in the database. Schemas: {some(there)}.")
    return [None if dialect == "sqlite" and name == "main" else name for name in asked]


def _names(inspector: Any, schema: str | None, patterns: Sequence[str], *, views: bool) -> Iterator[str]:
    """The names of tables and views that fit, each once."""
    names = inspector.get_table_names(schema=schema)
    if views:
        names = [*names, *inspector.get_view_names(schema=schema), *_materialized(inspector, schema)]
    for name in dict.fromkeys(names):
        whole = name if schema is None else f"{schema}.{name}"
        if any(pattern in (name, whole) or fits(name, whole, pattern) for pattern in patterns):
            yield name


def _materialized(inspector: Any, schema: str | None) -> list[str]:
    try:
        return list(inspector.get_materialized_view_names(schema=schema))
    except NotImplementedError:
        return []


def _read(
    connection: sa.Connection, inspector: Any, dialect: str, schema: str | None, names: list[str]
) -> Iterator[Table]:
    import sqlalchemy as sa
    from sqlalchemy.engine import ObjectKind

    known = _known(connection, schema) if dialect == "postgresql" else {}
    asked: dict[str, Any] = {"schema": schema, "filter_names": names, "kind": ObjectKind.ANY}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sa.exc.SAWarning)  # of types that it does not know: they are told of below
        try:
            columns = inspector.get_multi_columns(**asked)
        except sa.exc.OperationalError as error:
            if dialect != "sqlite" or "no such" not in str(error.orig):
                raise
            if len(names) == 1:  # a view of a table or column that is gone: SQLite keeps it
                logger.warning("'%s' can't be read (%s); it is left out", names[0], error.orig)
            else:
                for name in names:
                    yield from _read(connection, inspector, dialect, schema, [name])
            return
        primary = inspector.get_multi_pk_constraint(**asked)
        unique = inspector.get_multi_unique_constraints(**asked)
    views = {*inspector.get_view_names(schema=schema), *_materialized(inspector, schema)}
    for at, given in columns.items():
        name = at[1]
        if any(one.is_partition for one in known.get(name, {}).values()):
            continue  # its rows come with the table that it is a part of
        if not given:
            logger.info("table '%s' has no columns; it is left out", name)
            continue
        solid = sqlite.never_null(connection, name, schema, primary.get(at)) if dialect == "sqlite" else ""
        given = [{**one, "nullable": False} if one["name"] == solid else one for one in given]
        made = tuple(_column(column, dialect, known.get(name, {}).get(column["name"])) for column in given)
        keys = _keys(given, primary.get(at), unique.get(at) or ())
        unreadable = {column.name for column in made if column.unsupported}
        keys = () if unreadable.intersection(keys) else keys
        yield Table(name, schema, made, keys, name in views, _database(connection, dialect))


def _database(connection: sa.Connection, dialect: str) -> str:
    return "" if dialect == "sqlite" else connection.engine.url.database or ""


def _known(connection: sa.Connection, schema: str | None) -> dict[str, dict[str, _Known]]:
    import sqlalchemy as sa

    made: dict[str, dict[str, _Known]] = {}
    rows = connection.execute(sa.text(_COLUMNS_OF_POSTGRES), {"schemas": [schema]})
    for _schema, table, column, *facts in rows:
        made.setdefault(table, {})[column] = _Known(*facts)
    return made


def _column(given: Mapping[str, Any], dialect: str, known: _Known | None) -> Column:
    import sqlalchemy as sa

    kind = given["type"]
    while hasattr(kind, "data_type"):  # a domain: what it is made of
        kind = kind.data_type
    made = json_type(kind, dialect, known.dimensions if known else 1)
    why = ""
    if made is None:
        why = f"values of the type {_spelled(kind, dialect)} have no form in JSON that burler knows"
    if known is not None and not known.readable:
        why = _CLOSED
    schema = made if made is not None else {}
    return Column(
        given["name"],
        nullable(schema) if given.get("nullable", True) else schema,
        known.sql_type if known else _spelled(kind, dialect),
        naive=isinstance(kind, sa.DateTime) and not kind.timezone and type(kind).__name__ != "DATETIMEOFFSET",
        unsupported=why,
        type=kind,
    )


def _spelled(kind: Any, dialect: str) -> str:
    import sqlalchemy as sa

    try:
        return str(kind.compile(dialect=sa.make_url(f"{dialect}://").get_dialect()()))
    except (sa.exc.SQLAlchemyError, ImportError, AttributeError):
        return type(kind).__name__.upper()


def _keys(given: Sequence[Mapping[str, Any]], primary: Any, unique: Sequence[Any]) -> tuple[str, ...]:
    """The primary key; else the shortest unique constraint of columns that are never null."""
    if primary and primary.get("constrained_columns"):
        return tuple(primary["constrained_columns"])
    solid = {column["name"] for column in given if not column.get("nullable", True)}
    choices = [tuple(one["column_names"]) for one in unique if one["column_names"]]
    return min((names for names in choices if solid.issuperset(names)), key=_by_length, default=())


def _by_length(names: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    return len(names), names


def _nothing_fits(inspector: Any, schemas: Sequence[str] | None, patterns: Sequence[str]) -> str:
    where = f"in the schemas {some(schemas)}" if schemas else "in the database"
    looked_into: Sequence[str | None] = schemas or [None]
    there = [name for schema in looked_into for name in inspector.get_table_names(schema=schema)]
    shown = f"Tables there: {some(there)}" if there else "The user may see no table there"
    return f"no table or view {where} is called {some(patterns)}. {shown}."
