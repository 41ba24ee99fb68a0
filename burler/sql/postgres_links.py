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
from burler.sql.urls import libpq_arguments

if TYPE_CHECKING:
    from sqlalchemy import URL

_BATCH_BYTES = 2 * 1024 * 1024
_MOST_ROWS = 5000
_COPY_HEAD = 19  # bytes before the first row of a binary COPY
_ROW_HEAD = 6  # bytes of a row with one column: how many columns, and the length of the value
_CANCEL_SECONDS = 5.0


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
        """Arrow's record batches (ADBC), or lists of the texts of a single column (psycopg)."""

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


def conninfo(url: URL, connect_seconds: float) -> str:
    """What libpq connects by, in its own form; with the password. (Its URLs know spaces and '+' otherwise.)"""
    from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

    dialect: Any = PGDialect_psycopg()  # type: ignore[no-untyped-call]
    _nothing, given = dialect.create_connect_args(url.set(drivername="postgresql+psycopg"))
    said = {**given, **libpq_arguments(url, connect_seconds)}
    known = {name: str(value).replace("\\", "\\\\").replace("'", "\\'") for name, value in said.items()}
    return " ".join(f"{name}='{value}'" for name, value in known.items())


class AdbcLink:
    """A connection of ``adbc-driver-postgresql``.

    Through the driver manager itself: its DB-API module imports pandas and polars where they are installed, which takes
    longer than to read some hundred thousand rows.
    """

    def __init__(self, url: URL, connect_seconds: float) -> None:
        from burler.extras import require

        driver = require("adbc_driver_postgresql", extra="sql", needed_for="reading PostgreSQL")
        self._manager = require("adbc_driver_manager", extra="sql", needed_for="reading PostgreSQL")
        self._database = driver.connect(conninfo(url, connect_seconds))
        try:
            self._connection = self._manager.AdbcConnection(self._database)
            self._connection.set_autocommit(False)
        except BaseException:
            self.close()
            raise
        self._statement: Any = None

    def begin(self, settings: Mapping[str, str]) -> None:
        """See ``Link``."""
        _set(self, settings)

    def ask(self, sql: str, values: Sequence[str] = ()) -> list[tuple[Any, ...]]:
        """See ``Link``."""
        import pyarrow as pa

        from burler.records.arrow.json_text import one_text

        with self._manager.AdbcStatement(self._connection) as statement:
            statement.set_sql_query(sql)
            statement.prepare()
            if values:
                names = [str(place) for place in range(len(values))]
                statement.bind(pa.RecordBatch.from_arrays([one_text(value) for value in values], names))
            with _reader(statement) as reader:
                columns = [[one.to_pylist() for one in batch.columns] for batch in reader]
                return [row for found in columns for row in zip(*found, strict=True)]

    def fetch(self, sql: str) -> Generator[Any, None, None]:
        """See ``Link``."""
        statement = self._statement = self._manager.AdbcStatement(self._connection)
        try:
            statement.set_options(**{"adbc.postgresql.batch_size_hint_bytes": str(_BATCH_BYTES)})
            statement.set_sql_query(sql)
            with _reader(statement) as reader:
                yield from reader
        finally:
            self._statement = None
            statement.close()

    def cancel(self) -> None:
        """See ``Link``."""
        statement = self._statement
        if statement is not None:
            with contextlib.suppress(Exception):  # it has just ended
                statement.cancel()

    def end(self) -> None:
        """See ``Link``."""
        self._connection.rollback()

    def close(self) -> None:
        """See ``Link``."""
        for opened in (getattr(self, "_connection", None), self._database):
            with contextlib.suppress(Exception):  # it may be broken: that is why it is closed
                if opened is not None:
                    opened.close()


def _reader(statement: Any) -> Any:
    """What a statement gives, as pyarrow's reader of record batches."""
    import pyarrow as pa

    stream, _count = statement.execute_query()
    return pa.RecordBatchReader.from_stream(stream)


class PsycopgLink:
    """A connection of ``psycopg``."""

    def __init__(self, url: URL, connect_seconds: float) -> None:
        from burler.extras import require

        psycopg = require("psycopg", extra="sql", needed_for="reading PostgreSQL")
        self._connection = psycopg.connect(conninfo(url, connect_seconds))

    def begin(self, settings: Mapping[str, str]) -> None:
        """See ``Link``."""
        _set(self, settings)

    def ask(self, sql: str, values: Sequence[str] = ()) -> list[tuple[Any, ...]]:
        """See ``Link``."""
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
        """Rows come one by one, so a page is as big as it may be, whatever the sizes of the rows before it."""
        with (
            self._connection.cursor() as cursor,
            cursor.copy(f"COPY ({sql}\n) TO STDOUT (FORMAT binary)".encode()) as rows,
        ):
            page: list[bytes] = []
            size, head = 0, _COPY_HEAD
            for row in rows:
                text = bytes(row[head + _ROW_HEAD :])
                if not text:  # the head alone, or what stands at the end
                    head = 0
                    continue
                head = 0
                page.append(text)
                size += len(text)
                if size >= _BATCH_BYTES or len(page) >= _MOST_ROWS:
                    yield page
                    page, size = [], 0
            if page:
                yield page

    def cancel(self) -> None:
        """See ``Link``."""
        with contextlib.suppress(Exception):
            self._connection.cancel_safe(timeout=_CANCEL_SECONDS)

    def end(self) -> None:
        """See ``Link``."""
        self._connection.rollback()

    def close(self) -> None:
        """See ``Link``."""
        with contextlib.suppress(Exception):
            self._connection.close()
