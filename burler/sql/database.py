"""``Database``: what a tap's author uses of a database."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from burler.context import StreamRun, running
from burler.errors import SqlError
from burler.numbers import is_measure
from burler.singer.catalog import Catalog
from burler.sql import discovery
from burler.sql.catalog import catalog_of
from burler.sql.failures import refuse_misuse, shown, sql_error
from burler.sql.position import with_position
from burler.sql.reading import Reading, reading_of
from burler.sql.tables import Table
from burler.sql.urls import engine_of, parsed

if TYPE_CHECKING:
    import sqlalchemy as sa

    from burler.sql.other import OtherReader
    from burler.sql.postgres import PostgresReader

logger = logging.getLogger(__name__)


class Database:
    """A database to read from: its tables as streams, or the rows of a query.

    ::

        @tap.client
        def client(config):
            return burler.sql.Database(config["database_url"])

        @tap.discover
        def discover(client):
            return client.discover(schemas=["public"])

        @tap.sync("*")
        def rows(client, stream):
            return client.pages(stream)

    One object serves all threads; each running stream has a connection of its own. Nothing connects before it is asked
    for something.

    Args:
        url: as SQLAlchemy has it: ``postgresql://user:password@host:5432/database``, ``sqlite:///shop.db``, ...
        connect_timeout_seconds: how long to wait for the server, at least 2.
        statement_timeout_seconds: how long PostgreSQL's next rows may take; None: as long as the server lets them.
        adbc: read PostgreSQL through ADBC; None: if its driver is installed.
        naive_times: ``"warn"`` (default), or ``"utc"``: you know that times without a zone are in UTC, so that burler
            need not say that it takes them for that.

    Raises:
        SqlError: a URL that is none, or a number that is none.
        MissingExtra: SQLAlchemy or the database's driver is not installed.
    """

    def __init__(
        self,
        url: str | sa.URL,
        *,
        connect_timeout_seconds: float = 10.0,
        statement_timeout_seconds: float | None = None,
        adbc: bool | None = None,
        naive_times: str = "warn",
    ) -> None:
        self.url = parsed(url)
        for name, value in (
            ("connect_timeout_seconds", connect_timeout_seconds),
            ("statement_timeout_seconds", statement_timeout_seconds),
        ):
            if value is not None and (not is_measure(value) or value <= 0):
                raise SqlError(f"{name} must be a number of seconds above 0, not {value!r:.40}.")
        if naive_times not in ("warn", "utc"):
            raise SqlError(f"naive_times must be 'warn' or 'utc', not {naive_times!r:.40}.")
        self._connect_seconds = connect_timeout_seconds
        self._statement_seconds = statement_timeout_seconds
        self._adbc = adbc
        self._lock = threading.Lock()
        self._engine: sa.Engine | None = None
        self._reader: PostgresReader | OtherReader | None = None
        self._tables: dict[str, Table] = {}
        self._warned: set[tuple[str, str]] = set()
        self._quiet = naive_times == "utc"

    def __repr__(self) -> str:
        return f"<Database {shown(self.url)}>"

    @property
    def dialect(self) -> str:
        """The kind of database: ``"postgresql"``, ``"sqlite"``, ..."""
        return str(self.url.get_backend_name())

    # ---- what there is ---------------------------------------------------------------------------------

    def discover(
        self,
        *,
        schemas: str | Sequence[str] | None = None,
        tables: str | Sequence[str] = "*",
        views: bool = True,
        replication_keys: str | Mapping[str, str] | None = None,
    ) -> Catalog:
        """The catalog of tables and views, for ``@tap.discover``.

        Args:
            schemas: those to look into; by default all of PostgreSQL but its own, the default one elsewhere.
            tables: names, or patterns with ``*`` and ``?``, of ``table`` or ``schema.table``.
            views: take views, too. They have no key; the user's catalog may give one (``view-key-properties``).
            replication_keys: the column that new and changed rows have greater values in: of all tables that have it
                (``"updated_at"``), or by stream (``{"public.orders": "updated_at", "*": "id"}``, the first that fits).
                Streams without one are full tables, unless the user's catalog chooses.

        Raises:
            SqlError: the database can't be reached, or has no such table.
        """
        keys = {"*": replication_keys} if isinstance(replication_keys, str) else dict(replication_keys or {})
        found = self._read_tables(_listed(schemas, "schemas"), _listed(tables, "tables") or ["*"], views=views)
        catalog = catalog_of(found, keys)
        with self._lock:
            self._tables.update({table.stream: table for table in found})
        return catalog

    def table(self, name: str) -> Table:
        """A table as it is now, by ``table`` or ``schema.table``.

        Raises:
            SqlError: there is none, or the name fits several.
        """
        schema, dot, bare = name.partition(".")
        sqlite = self.dialect == "sqlite"
        found: list[Table] = []
        if dot and not sqlite:
            try:
                found = [one for one in self._read_tables([schema], [bare], views=True) if one.name == bare]
            except SqlError:  # the dot may belong to the table's own name
                found = []
        if not found:
            found = [one for one in self._read_tables(None, [name], views=True) if one.name == name]
        if len(found) != 1:
            fact = f"{len(found)} tables are called" if found else "no table is called"
            raise SqlError(f"{fact} '{name}' in the database. Say which: schema.table.")
        return found[0]

    def _read_tables(self, schemas: list[str] | None, patterns: list[str], *, views: bool) -> list[Table]:
        engine = self._connected()
        try:
            with engine.connect() as connection:
                return discovery.read_tables(connection, schemas, patterns, views=views)
        except SqlError as error:
            raise SqlError(f"{shown(self.url)}: {error}") from None
        except _driver_errors() as error:
            raise sql_error(error, "discovery", self.url) from None

    # ---- rows ------------------------------------------------------------------------------------------

    def pages(self, stream: StreamRun, table: str | None = None) -> Iterator[Any]:
        """The rows of a stream's table, in pages, for a sync function to return.

        Selected columns only are asked for. An incremental stream gets the rows at or after its bookmark, in the order
        of its key; a full table with ``resumable_by`` comes in that order, and goes on where it was interrupted.

        Args:
            stream: the running stream.
            table: the table's name, where the stream's is another one: ``table`` or ``schema.table``.

        Raises:
            SqlError: the database can't be reached or goes away, or the table is not what the stream says.
        """
        found = self._table_of(stream.name if table is None else table)
        reading = reading_of(stream, found)
        self._warn_of_naive(reading)
        pages = self._reads().table_pages(reading)
        _count()
        return with_position(pages, reading, stream) if reading.resumes else pages

    def query(self, sql: str, values: Mapping[str, Any] | None = None) -> Iterator[Any]:
        """The rows of a statement of your own, in pages::

            client.query("select * from orders where updated_at >= :since", {"since": stream.bookmark})

        Values are bound, never written into the statement; ``\\\\:`` is a colon that names none. None is null.

        Raises:
            SqlError: the statement is wrong, or a value is missing.
        """
        if not isinstance(sql, str):
            raise refuse_misuse(sql, "query's statement", "text")
        _count()
        run = running()
        what = "query" if run is None else f"stream '{run.name}': query"
        return self._reads().query_pages(_bare(sql), dict(values or {}), what)

    def rows(self, sql: str, values: Mapping[str, Any] | None = None) -> Iterator[dict[str, Any]]:
        """The same as dicts, one by one: numbers with a fraction are ``Decimal``."""
        from burler.pages import as_page
        from burler.pipeline.yielded import rows_of

        for page in self.query(sql, values):
            yield from page if isinstance(page, list) else rows_of(as_page(page))

    def close(self) -> None:
        """Close all connections. burler does so at the end of a run."""
        with self._lock:
            engine, reader = self._engine, self._reader
            self._engine = self._reader = None
        if reader is not None:
            reader.close()
        if engine is not None:
            engine.dispose()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    # ---- inside ----------------------------------------------------------------------------------------

    def _table_of(self, name: str) -> Table:
        with self._lock:
            found = self._tables.get(name)
        if found is None:
            found = self.table(name)
            with self._lock:
                self._tables[name] = found
        return found

    def _warn_of_naive(self, reading: Reading) -> None:
        for column in reading.columns:
            at = (reading.table.stream, column.name)
            if not column.naive or self._quiet or at in self._warned or self.dialect == "sqlite":
                continue
            self._warned.add(at)
            logger.warning(
                "stream '%s': column '%s' (%s) says no time zone; its times are taken as UTC "
                "(naive_times='utc' says that this is right)",
                reading.stream,
                column.name,
                column.sql_type,
            )

    def _connected(self) -> sa.Engine:
        with self._lock:
            if self._engine is None:
                self._engine = engine_of(self.url, self._connect_seconds)
            return self._engine

    def _reads(self) -> PostgresReader | OtherReader:
        engine = self._connected()
        with self._lock:
            if self._reader is None:
                if self.dialect == "postgresql":
                    from burler.sql.postgres import PostgresReader

                    self._reader = PostgresReader(
                        self.url,
                        connect_timeout_seconds=self._connect_seconds,
                        statement_timeout_seconds=self._statement_seconds,
                        adbc=self._adbc,
                    )
                else:
                    from burler.sql.other import OtherReader

                    self._reader = OtherReader(engine, self.url)
            return self._reader


def _count() -> None:
    """One more query of the running stream, for its report."""
    run = running()
    if run is not None:
        run.tally.add("queries")


def _bare(sql: str) -> str:
    """A statement without white space and semicolons around it."""
    return sql.strip().rstrip("; \t\r\n")


def _listed(given: str | Sequence[str] | None, what: str) -> list[str] | None:
    if given is None or isinstance(given, str):
        return None if given is None else [given]
    if not isinstance(given, list | tuple | set | frozenset) or not all(isinstance(one, str) for one in given):
        raise refuse_misuse(given, f"discover's {what}", "a name or a list of names")
    return list(given)


def _driver_errors() -> tuple[type[BaseException], ...]:
    import sqlalchemy as sa

    return (sa.exc.SQLAlchemyError, OSError)
