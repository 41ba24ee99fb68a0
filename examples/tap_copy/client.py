"""The database: its catalog, and tables as CSV files that COPY writes."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg import IsolationLevel, conninfo, sql

import burler
from burler.errors import SqlError
from burler.singer.catalog import Catalog

from .catalog import Table, catalog_of, tables_of
from .copying import copied
from .files import Exports
from .kinds import REFUSED, Column, quoted
from .parts import in_parts, named

_SETTINGS = {
    "TimeZone": "UTC",
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "extra_float_digits": "1",
    "jit": "off",  # it takes longer to begin than a plain scan saves
    "idle_in_transaction_session_timeout": "0",  # who takes the files may be slow
}
_SET = "select " + ", ".join(["set_config(%s, %s, true)"] * len(_SETTINGS))
_LIVENESS = {"connect_timeout": 10, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
_REFUSED = re.compile(f'{REFUSED}(?P<what>.*)"$', re.DOTALL)
_NULL_ALONE = "\\N"


class Warehouse:
    """A PostgreSQL database whose tables are copied.

    Args:
        url: ``postgresql://user:password@host:5432/database``.
        schemas: whose tables are streams.
        replication_key: the column that new and changed rows have greater values in; None: all tables are full tables.
        folder, compression, most_bytes: of files; see ``Exports``.
        connections: how many read a big table at the same time.
    """

    def __init__(
        self,
        url: str,
        *,
        schemas: list[str],
        replication_key: str | None,
        folder: str,
        compression: str,
        most_bytes: int,
        connections: int = 1,
    ) -> None:
        self._url, self._schemas, self._key = url, schemas, replication_key
        self._folder, self._compression, self._most_bytes = folder, compression, most_bytes
        self._connections = connections
        self._tables: dict[str, Table] = {}

    def discover(self) -> Catalog:
        """All tables and views that the user may read."""
        with self._snapshot("discovery") as connection:
            found = tables_of(connection, self._schemas)
        self._tables = {table.stream: table for table in found}
        return catalog_of(found, self._key)

    def copy(self, stream: Any) -> Iterator[Any]:
        """The rows of a stream's table as files: all of a full table, those at or after the bookmark of an incremental
        one. Everything is read in one snapshot, so the bookmark is that of exactly these rows.

        Yields:
            ``burler.batch_files``, one for each file, as soon as it is whole; the last one with the bookmark.

        Raises:
            SqlError: the database can't be reached, goes away, or holds a value that the schema does not know.
        """
        table = self._table(stream.name)
        columns = _selected(stream, table)
        with self._snapshot(f"stream '{stream.name}'") as connection:
            (made_at,) = connection.execute("select now()").fetchone() or (None,)
            where, greatest = _since(connection, stream, table)
            exports = Exports(
                self._folder, stream.tap.name, stream.name, compression=self._compression, most_bytes=self._most_bytes
            )
            most = 1 if where else self._connections  # what is new is found by an index
            with in_parts(connection, table, most, self._connect) as parts:
                statements = {one: _copy(table, columns, where or at) for one, at in parts.items()}
                last = None
                try:
                    for made in exports.files(copied(statements)):
                        if last is not None:
                            yield self._files(last, columns, made_at)
                        last = made
                except Exception:
                    if last is not None:  # it is whole, whatever came of the others
                        yield self._files(last, columns, made_at)
                    raise
            if last is not None:
                yield self._files(last, columns, made_at, **({} if greatest is None else {"bookmark": greatest}))

    def _files(self, made: Any, columns: list[Column], made_at: Any, **more: Any) -> Any:
        null = _NULL_ALONE if len(columns) == 1 else ""
        return burler.batch_files(
            made.url,
            format="csv",
            size=made.rows,
            null=null,
            time_extracted=made_at,
            temporary="://" not in self._folder,
            **more,
        )

    def _table(self, stream: str) -> Table:
        if stream not in self._tables:
            self.discover()
        if stream not in self._tables:
            raise SqlError(
                f"stream '{stream}': its table is gone, or the user may not read it.\n"
                "  Make the catalog anew (--discover), or GRANT SELECT."
            )
        return self._tables[stream]

    @contextlib.contextmanager
    def _snapshot(self, what: str) -> Iterator[psycopg.Connection[Any]]:
        """A connection in one transaction that only reads, and sees the database as it is at its first statement."""
        try:
            with contextlib.closing(self._connect()) as connection:
                yield connection
        except psycopg.Error as error:
            raise SqlError(f"{what}: {_said(error)}") from None

    def _connect(self, snapshot: str | None = None) -> psycopg.Connection[Any]:
        """A connection in a transaction. ``snapshot``: what another connection sees, and has exported."""
        given: dict[str, Any] = {**_LIVENESS, **conninfo.conninfo_to_dict(self._url), "client_encoding": "utf8"}
        connection = psycopg.connect(**given)
        try:
            connection.isolation_level = IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            if snapshot is not None:
                connection.execute(sql.SQL("set transaction snapshot {}").format(snapshot))
            connection.execute(_SET.encode(), [text for pair in _SETTINGS.items() for text in pair])
        except BaseException:
            connection.close()
            raise
        return connection


def _said(error: psycopg.Error) -> str:
    """What the server said, in its first line; of a value that was refused, which."""
    said = (error.diag.message_primary or str(error) or type(error).__name__).strip()
    refused = _REFUSED.search(said)
    if refused is not None:
        return (
            f"column {refused['what']} is no value of its JSON Schema (NaN, infinity, a date out of the years 1 to "
            "9999, an array in an array).\n  Change it in the database, or deselect the column."
        )
    return said.split("\n")[0]


def _selected(stream: Any, table: Table) -> list[Column]:
    """The columns of a stream's selected fields, in the order of its schema."""
    wanted = list(stream.schema.get("properties") or ())
    by_name = {column.name: column for column in table.columns}
    missing = next((name for name in wanted if name not in by_name), None)
    if missing is not None or not wanted:
        fact = f"its table has no column '{missing}' (any more)" if wanted else "no column is selected"
        raise SqlError(f"stream '{stream.name}': {fact}.\n  Make the catalog anew (--discover).")
    return [by_name[name] for name in wanted]


def _since(connection: psycopg.Connection[Any], stream: Any, table: Table) -> tuple[str, str | None]:
    """The condition that leaves older rows out, and the replication key's greatest value in this snapshot."""
    key = stream.replication_key
    if key is None or stream.replication_method != "INCREMENTAL":
        return "", None
    column = next((one for one in table.columns if one.name == key), None)
    if column is None:
        raise SqlError(f"stream '{stream.name}': its table has no column '{key}', which is its replication key.")
    where = ""
    if stream.bookmark is not None:
        known = sql.Literal(str(stream.bookmark)).as_string(connection)
        read_as = "timestamptz" if column.kind == "timestamp" else column.kind
        value = f"cast({known} as {read_as})" + (" at time zone 'UTC'" if column.kind == "timestamp" else "")
        where = f"{quoted(key)} >= {value}"
    greatest = Column("greatest", column.kind, column.modifier)
    asked = f"select cast(value as text) from (select {greatest.selected.rpartition(' as ')[0]} as value from "
    asked += f"(select max({quoted(key)}) as greatest from {named(table)} {'where ' * bool(where)}{where}) as t) as t"
    (found,) = connection.execute(asked.encode()).fetchone() or (None,)
    return where, found


def _copy(table: Table, columns: list[Column], where: str) -> str:
    """A row of one null would be an empty line, which readers of CSV pass over: there null has a text of its own."""
    null = f", NULL '{_NULL_ALONE}'" if len(columns) == 1 else ""
    question = f"select {', '.join(column.selected for column in columns)} from {named(table)}"
    question += f" where {where}" if where else ""
    return f"copy ({question}) to stdout (format csv, header{null})"
