"""Databases as places of tables: their URLs, which never hold a password, and names within their limits."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from urllib.parse import quote, unquote, urlsplit

from burler.config.secrets import hide, raw_secrets
from burler.config.secrets import masked as masked_text
from burler.errors import UsageError
from burler.extras import require

_MARK = "#table="
MAX_NAME = 63
"""Bytes of a PostgreSQL name; it cuts longer ones in silence."""


def is_postgres(url: str) -> bool:
    """Whether burler loads this database itself (COPY); others go through Spark's JDBC writer."""
    return url.startswith(("postgresql://", "postgres://", "jdbc:postgresql:"))


def join_place(url: str, tap_id: str, stream: str) -> str:
    """A table's place: the database's URL and the names.

    Raises:
        UsageError: the URL is none of a database, or holds a password.
    """
    if not (is_postgres(url) or url.startswith("jdbc:")):
        raise UsageError(
            f"format jdbc needs the URL of a database as OUT, and {masked(url)} is none. "
            "Give postgresql://HOST/DATABASE or jdbc:..."
        )
    if has_password(url):
        raise UsageError(
            f"{masked(url)}: a password in OUT would show in logs and process lists. "
            "Give it as environment variable PGPASSWORD, in ~/.pgpass, or as --option password=..."
        )
    return f"{url}{_MARK}{quote(tap_id, safe='')}/{quote(stream, safe='')}"


def split_place(place: str) -> tuple[str, str, str]:
    """What ``join_place`` joined: URL, tap id, stream."""
    url, _, names = place.rpartition(_MARK)
    tap_id, _, stream = names.partition("/")
    return url, unquote(tap_id), unquote(stream)


def has_password(url: str) -> bool:
    """Whether a URL carries a password, before the host or among its parameters."""
    parts = urlsplit(url.removeprefix("jdbc:"))
    return bool(parts.password) or "password=" in url.lower()


def masked(url: str) -> str:
    """A URL that may be shown."""
    if not has_password(url):
        return url
    lead = "jdbc:" if url.startswith("jdbc:") else ""
    parts = urlsplit(url.removeprefix("jdbc:"))
    host = parts.netloc.rpartition("@")[2]
    return f"{lead}{parts.scheme}://***@{host}{parts.path.partition(';')[0]}"


def short_name(name: str, most: int = MAX_NAME) -> str:
    """A name within a database's limit: a longer one is cut and gets a digest of the whole, so that two stay two."""
    data = name.encode()
    if len(data) <= most:
        return name
    digest = hashlib.sha256(data).hexdigest()[:10]
    return f"{data[: most - 11].decode(errors='ignore')}~{digest}"


def connection_of(url: str, options: Mapping[str, str]) -> dict[str, str]:
    """psycopg's parameters for a PostgreSQL URL (``postgresql://`` or ``jdbc:postgresql://``) and options.

    Secrets among them are hidden from logs and errors from here on.

    Raises:
        UsageError: the URL or an option is none of PostgreSQL's.
    """
    psycopg = require("psycopg", extra="sql", needed_for="burler export --format jdbc")
    plain = url.removeprefix("jdbc:")
    if plain.startswith("postgresql:") and not plain.startswith("postgresql://"):
        plain = f"postgresql:///{plain.partition(':')[2]}"  # JDBC's short form: a database on this machine
    for secret in raw_secrets(dict(options)):
        hide(secret)
    try:
        said = psycopg.conninfo.conninfo_to_dict(psycopg.conninfo.make_conninfo(plain, **options))
    except psycopg.Error as error:
        raise UsageError(
            f"{masked(url)}: {masked_text(str(error).strip())}. Give postgresql://HOST:PORT/DATABASE, and as options "
            "PostgreSQL's own (user, password, sslmode, ...), schema or connections"
        ) from None
    said.setdefault("application_name", "burler export")
    return {name: str(value) for name, value in said.items() if value is not None}
