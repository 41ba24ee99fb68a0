"""Where a database is: its URL, and SQLAlchemy's engine for it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from burler.errors import SqlError
from burler.extras import require
from burler.sql.failures import refuse_misuse, shown

if TYPE_CHECKING:
    import sqlalchemy as sa

_NEEDED = "burler.sql.Database"


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
    if (ended or rest.partition("?")[0].count("@") > 1) and not url.startswith("sqlite"):
        raise SqlError(
            "the database's URL has a sign in its user or password that ends it: write '@' as %40, '/' as %2F, '#' as "
            "%23, '?' as %3F (urllib.parse.quote(password, safe='') does it)."
        )


def engine_of(url: sa.URL, connect_seconds: float) -> sa.Engine:
    """The engine of a database. It does not connect yet.

    Raises:
        SqlError: a file that is not there, a database that SQLAlchemy does not know, a driver that is not installed.
    """
    import sqlalchemy as sa

    if url.get_backend_name() == "sqlite":
        path = url.database or ""
        if path and path != ":memory:" and not path.startswith("file:") and not Path(path).exists():
            raise SqlError(f"{shown(url)}: there is no such file. A relative path counts from where the tap runs.")
    arguments = {"connect_timeout": max(2, round(connect_seconds))} if url.get_backend_name() == "postgresql" else {}
    if "connect_timeout" in url.query:
        arguments = {}
    try:
        return sa.create_engine(url, connect_args=arguments, pool_pre_ping=True)
    except sa.exc.NoSuchModuleError:
        raise SqlError(f"{shown(url)}: SQLAlchemy knows no database '{url.drivername}'. Install its dialect.") from None
    except ModuleNotFoundError as error:
        extra = "pip install 'burler[sql]'" if error.name == "psycopg" else f"pip install {error.name}"
        raise SqlError(f"{shown(url)}: its driver '{error.name}' is not installed. Install it: {extra}") from None
