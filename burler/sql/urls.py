"""Where a database is: its URL, and SQLAlchemy's engine for it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from burler.errors import SqlError
from burler.extras import require
from burler.installing import install
from burler.sql.failures import refuse_misuse, secrets_of, shown, without

if TYPE_CHECKING:
    import sqlalchemy as sa

_NEEDED = "burler.sql.Database"
_PACKAGES = {
    "psycopg2": "psycopg2-binary",
    "MySQLdb": "mysqlclient",
    "cx_Oracle": "oracledb, and write oracle+oracledb://",
}
"""Packages that are called otherwise than the module in them."""
_LIVENESS = {
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",  # milliseconds
}
_READING_PRAGMAS = frozenset(
    ("table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo", "foreign_key_list")
)
"""Those of SQLite whose argument is what to look at; all others change something."""


def parsed(url: Any) -> sa.URL:
    """A URL as SQLAlchemy has it; PostgreSQL's with the driver that burler reads it by.

    Raises:
        SqlError: it is none. MissingExtra: SQLAlchemy is not installed.
    """
    sqlalchemy = require("sqlalchemy", extra="sql", needed_for=_NEEDED)
    if not isinstance(url, str | sqlalchemy.URL):
        raise refuse_misuse(url, "the database's URL", "text")
    if isinstance(url, str):
        _check_password(url)
    try:
        made: sa.URL = sqlalchemy.make_url(url)
    except (sqlalchemy.exc.ArgumentError, ValueError):
        raise SqlError(
            "the database's URL is none that can be read. It looks like postgresql://user:password@host:5432/name "
            "(special characters of a password as %40) or sqlite:///shop.db."
        ) from None
    if made.drivername in ("postgres", "postgresql"):
        made = made.set(drivername="postgresql+psycopg")
    return made


def _check_password(url: str) -> None:
    """Refuse a password with signs that end it for a parser: what is left of it would be taken for a host, and shown.

    Raises:
        SqlError: it has; the text of the URL is not in it.
    """
    rest = url.partition("://")[2]
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    _name, colon, port = authority.partition(":")
    ended = "@" not in authority and "@" in rest and bool(colon) and not port.isdecimal()
    ended = ended or (not authority and "@" in rest)  # a slash too many: all of it would be the database's name
    if (ended or rest.partition("?")[0].count("@") > 1) and not url.startswith("sqlite"):
        raise SqlError(
            "the database's URL has a sign in its user or password that ends it: write '@' as %40, '/' as %2F, '#' as "
            "%23, '?' as %3F (urllib.parse.quote(password, safe='') does it); two slashes stand before the user."
        )


def engine_of(url: sa.URL, connect_seconds: float) -> sa.Engine:
    """The engine of a database. It does not connect yet.

    Raises:
        SqlError: a file that is not there, a database that SQLAlchemy does not know, a driver that is not installed.
    """
    import sqlalchemy as sa

    if url.get_backend_name() == "sqlite":
        path = _file_of(url)
        if path and not Path(path).exists():
            raise SqlError(
                f"'{without(path, secrets_of(url))}': there is no such file. A relative path counts from where the tap "
                "runs."
            )
    by_libpq = url.drivername in ("postgresql+psycopg", "postgresql+psycopg2")
    arguments = libpq_arguments(url, connect_seconds) if by_libpq else {}
    try:
        dialect: Any = url.get_dialect()
        queue = issubclass(dialect.get_pool_class(url), sa.QueuePool)
        # Each running stream has a connection, and the setting ``workers`` says how many there are.
        more: dict[str, Any] = {"max_overflow": -1} if queue else {}
        engine = sa.create_engine(url, connect_args=arguments, pool_pre_ping=True, **more)
    except sa.exc.NoSuchModuleError:
        raise SqlError(f"{shown(url)}: SQLAlchemy knows no database '{url.drivername}'. Install its dialect.") from None
    except ModuleNotFoundError as error:
        cure = (
            install("sql") if error.name == "psycopg" else f"pip install {_PACKAGES.get(str(error.name), error.name)}"
        )
        raise SqlError(f"{shown(url)}: its driver '{error.name}' is not installed. Install it: {cure}") from None
    if url.get_backend_name() == "sqlite":
        sa.event.listen(engine, "connect", _only_read)
    return engine


def _file_of(url: sa.URL) -> str:
    """The file of a SQLite database; empty: it is in memory."""
    path = url.database or ""
    if path.startswith("file:"):
        path = unquote(path[5:].partition("?")[0])
        if path.startswith("//"):  # behind it a host, which is this one
            path = "/" + path[2:].partition("/")[2]
        if url.query.get("mode") == "memory":
            return ""
    return "" if path == ":memory:" else path


def libpq_arguments(url: sa.URL, connect_seconds: float) -> dict[str, str]:
    """What libpq is told beside the URL, whose own words count.

    Texts come as UTF-8 whatever the database holds them in: both drivers read nothing else. A server that is gone
    without a word (a cut cable) is noticed after a minute; the kernel's own time is two hours.
    """
    said = {**_LIVENESS, "connect_timeout": str(max(2, round(connect_seconds)))}  # libpq takes 1 for 2
    return {name: value for name, value in said.items() if name not in url.query} | {"client_encoding": "utf8"}


def _only_read(connection: Any, _record: Any) -> None:
    """Let nothing through to a SQLite file that writes it, nor what would take this back or open another file."""
    import sqlite3

    def allowed(action: int, first: str | None, second: str | None, *_where: str | None) -> int:
        refused = action in (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH)
        if action == sqlite3.SQLITE_PRAGMA and second is not None:
            refused = str(first).lower() not in _READING_PRAGMAS
        return sqlite3.SQLITE_DENY if refused else sqlite3.SQLITE_OK

    connection.execute("pragma query_only = 1")
    connection.set_authorizer(allowed)
