"""The two ways to fetch from PostgreSQL: ADBC, which gives Arrow, and psycopg, which gives texts of JSON.

A link is one connection. What is read happens in one transaction, which only reads and is rolled back at the end, so
nothing that was set for it outlives it, also behind a pool that hands connections around.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from burler.sql.postgres_select import Result

if TYPE_CHECKING:
    from sqlalchemy import URL

_BATCH_BYTES = 2 * 1024 * 1024
_FIRST_ROWS, _MOST_ROWS = 10, 5000  # nothing is known of the rows' size at first


@dataclass(frozen=True, slots=True)
class Described:
    """The columns that a statement gives, and the types of its parameters as a cast names them."""

    columns: list[Result]
    parameters: list[str]


class Link(Protocol):
    """A connection that pages are read through."""

    def begin(self, settings: Mapping[str, str]) -> None:
        """Begin a transaction that reads only, with settings of its own."""

    def ask(self, sql: str, values: Sequence[str] = ()) -> list[tuple[Any, ...]]:
        """All rows of a small answer. ``values`` are bound to ``$1``, ``$2`` (ADBC) as texts."""

    def fetch(self, sql: str) -> Generator[Any, None, None]:
        """Arrow's record batches (ADBC), or lists of tuples (psycopg)."""

    def cancel(self) -> None:
        """Cancel what runs, from any thread."""

    def end(self) -> None:
        """Roll back; the link can begin anew."""

    def close(self) -> None:
        """Close the connection."""


def _set(link: Link, settings: Mapping[str, str]) -> None:
    """Set what holds for a transaction, in one statement with bound values."""
    calls = ", ".join(f"set_config(${2 * i + 1}, ${2 * i + 2}, true)" for i in range(len(settings)))
    link.ask(f"select {calls}", [text for pair in settings.items() for text in pair])


def libpq_url(url: URL) -> str:
    """A URL as libpq reads it; with the password."""
    return str(url.set(drivername="postgresql").render_as_string(hide_password=False))


class AdbcLink:
    """A connection of ``adbc-driver-postgresql``."""

    def __init__(self, url: URL, connect_timeout_seconds: int) -> None:
        from burler.extras import require

        dbapi = require("adbc_driver_postgresql.dbapi", extra="sql", needed_for="reading PostgreSQL")
        given = (
            url
            if "connect_timeout" in url.query
            else url.update_query_dict({"connect_timeout": str(connect_timeout_seconds)})
        )
        self._connection = dbapi.connect(libpq_url(given), autocommit=False)
        self._cursor: Any = None

    def begin(self, settings: Mapping[str, str]) -> None:
        _set(self, settings)

    def ask(self, sql: str, values: Sequence[str] = ()) -> list[tuple[Any, ...]]:
        with self._connection.cursor() as cursor:
            cursor.execute(sql, tuple(values) or None)
            return list(cursor.fetchall()) if cursor.description else []

    def fetch(self, sql: str) -> Generator[Any, None, None]:
        cursor = self._cursor = self._connection.cursor()
        try:
            cursor.adbc_statement.set_options(**{"adbc.postgresql.batch_size_hint_bytes": str(_BATCH_BYTES)})
            cursor.execute(sql)
            yield from cursor.fetch_record_batch()
        finally:
            self._cursor = None
            cursor.close()

    def cancel(self) -> None:
        cursor = self._cursor
        if cursor is not None:
            with contextlib.suppress(Exception):  # it has just ended
                cursor.adbc_cancel()

    def end(self) -> None:
        self._connection.rollback()

    def close(self) -> None:
        with contextlib.suppress(Exception):  # it may be broken: that is why it is closed
            self._connection.close()


class PsycopgLink:
    """A connection of ``psycopg``."""

    def __init__(self, url: URL, connect_timeout_seconds: int) -> None:
        from burler.extras import require

        psycopg = require("psycopg", extra="sql", needed_for="reading PostgreSQL")
        more = {} if "connect_timeout" in url.query else {"connect_timeout": connect_timeout_seconds}
        self._connection = psycopg.connect(libpq_url(url), **more)

    def begin(self, settings: Mapping[str, str]) -> None:
        _set(self, settings)

    def ask(self, sql: str, values: Sequence[str] = ()) -> list[tuple[Any, ...]]:
        for i in range(len(values), 0, -1):
            sql = sql.replace(f"${i}", "%s")
        with self._connection.cursor() as cursor:
            cursor.execute(sql, tuple(values) or None)
            return list(cursor.fetchall()) if cursor.description else []

    def describe(self, sql: str) -> Described:
        """What a statement asks for and gives; nothing of it is run."""
        from psycopg import errors, pq

        server = self._connection.pgconn  # a cursor knows the columns of what has run only
        prepared = server.prepare(b"burler_asked", sql.encode())
        found = server.describe_prepared(b"burler_asked") if prepared.status == pq.ExecStatus.COMMAND_OK else prepared
        if found.status != pq.ExecStatus.COMMAND_OK:
            raise errors.error_from_result(found)
        self.ask("deallocate burler_asked")
        given = [(found.fname(i).decode(), found.ftype(i), found.fmod(i)) for i in range(found.nfields)]
        asked = [found.param_type(i) for i in range(found.nparams)]
        listed = "{" + ",".join(sorted({str(kind) for kind in (*asked, *(kind for _name, kind, _mod in given))})) + "}"
        rows = self.ask(
            "select oid, typname, format_type(oid, null) from pg_catalog.pg_type where oid = any(cast($1 as oid[]))",
            [listed],
        )
        names = {int(oid): (str(name), str(whole)) for oid, name, whole in rows}
        columns = [Result(name, names[kind][0], modifier) for name, kind, modifier in given]
        return Described(columns, [names[kind][1] for kind in asked])

    def fetch(self, sql: str) -> Generator[Any, None, None]:
        with self._connection.cursor(name="burler") as cursor:
            cursor.itersize = 0
            cursor.execute(sql)
            count = _FIRST_ROWS
            while rows := cursor.fetchmany(count):
                yield rows
                size = max(1, sum(len(text) for row in rows[-100:] for text in row if text) // len(rows[-100:]))
                count = max(1, min(_MOST_ROWS, _BATCH_BYTES // size))

    def cancel(self) -> None:
        with contextlib.suppress(Exception):
            self._connection.cancel()

    def end(self) -> None:
        self._connection.rollback()

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._connection.close()
