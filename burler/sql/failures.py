"""What a driver says when something fails, as one ``SqlError``: what failed, the fact, the cure, and no secret."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus

from burler.config.secrets import MASKED, looks_secret
from burler.errors import SqlError

if TYPE_CHECKING:
    from sqlalchemy import URL

_MOST = 300  # characters of what a driver says
_CODE = re.compile(r"SQLSTATE: ([0-9A-Z]{5})")
_CURES = (
    ("28", "Look at user and password in the config"),
    ("3D000", "Look at the database's name in the URL"),
    ("42P01", "It was dropped or renamed, or the user may not see it: discover anew"),
    ("42703", "It was dropped or renamed: make the catalog anew (burler discover APP)"),
    ("42P18", "Say of which type it is: cast(:name as int)"),
    ("42501", "Let the user read it: GRANT SELECT ON it TO the user"),
    ("22P02", "If it is the state's bookmark: that is no value of this key; take it out of the state"),
    ("22007", "If it is the state's bookmark: that is no value of this key; take it out of the state"),
    ("57014", "It took longer than statement_timeout_seconds, or somebody cancelled it: an index may help"),
    ("57P", "The server went down or ended the connection; run again"),
    ("53", "The server has no more connections or memory to give; run again later"),
    ("08", "The connection was lost; run again"),
    ("25006", "burler.sql lets only through what reads"),
)  # fmt: skip
_SAID = (
    ('database "', "3D000"),
    ("canceling statement", "57014"),
    ("password authentication failed", "28P01"),
    ("no password supplied", "28P01"),
    ('role "', "28000"),
    ("no such table", "42P01"),
    ("no such column", "42703"),
    ("permission denied", "42501"),
    ("server closed the connection", "08006"),
    ("terminating connection", "57P01"),
    ("connection is lost", "08006"),
    ("could not connect", "08001"),
    ("failed to connect", "08001"),
    ("connection refused", "08001"),
    ("connection failed", "08001"),
    ("database is locked", "55P03"),
    ("readonly database", "25006"),
    ("not authorized", "25006"),
    ("authorization denied", "25006"),
)
_MORE_CURES = {
    "08001": "Is the server up, and are host and port right?",
    "55P03": "Somebody else is writing it; run again, or give it more time: ?timeout=60 in the URL",
    "28000": "Look at user and password in the config",
}


def sql_error(error: BaseException, what: str, url: URL) -> SqlError:
    """An error of a driver as burler's.

    Args:
        what: what was done: ``"stream 'public.orders'"``, ``"discovery"``.
    """
    fact = _fact(error)
    code = _state_of(error, fact)
    cure = _MORE_CURES.get(code) or next((cure for begin, cure in _CURES if code.startswith(begin)), "")
    secrets = secrets_of(url)
    said = without(fact, secrets)[:_MOST].rstrip(" .:")
    return SqlError(f"{what}: {shown(url)}: {said}." + (f"\n  {cure}{'' if cure[-1] == '?' else '.'}" if cure else ""))


def _fact(error: BaseException) -> str:
    """The first telling line of what a driver says, less the words around it."""
    origin = getattr(error, "orig", None) or error  # SQLAlchemy wraps the driver's own
    text = re.sub(r"\s*\n(LINE \d+:|Query was:|Background on this|\[SQL:).*", "", str(origin), flags=re.DOTALL)
    text = re.sub(r"^[A-Z_]+: ", "", text)  # ADBC's own code
    text = re.sub(r"\[libpq\] |Execution error \[PGRES_FATAL_ERROR\]: |Failed to prepare query: |ERROR:\s+", "", text)
    return " ".join(text.split()) or type(origin).__name__


def _state_of(error: BaseException, fact: str) -> str:
    """The SQLSTATE of an error, or one that says the same."""
    for one in (getattr(error, "orig", None), error):
        state = getattr(one, "sqlstate", None)
        if isinstance(state, str) and state:
            return state
    found = _CODE.search(str(error))
    if found:
        return found[1]
    lower = fact.lower()
    return next((state for said, state in _SAID if said in lower), "")


def shown(url: URL) -> str:
    """A database's URL as it may be shown: no password, no secret in its query, and no query that is empty."""
    query = {name: MASKED if looks_secret(name) else value for name, value in url.query.items()}
    return str(url.set(query=query).render_as_string(hide_password=True)).replace("%2A%2A%2A", MASKED)


def secrets_of(url: URL) -> tuple[str, ...]:
    """The secrets of a URL, in all the ways in which a driver may spell them."""
    plain = [str(url.password)] if url.password else []
    plain += [str(value) for name, value in url.query.items() if looks_secret(name)]
    return tuple(dict.fromkeys(way for text in plain for way in (text, quote(text, safe=""), quote_plus(text))))


def without(text: str, secrets: tuple[str, ...]) -> str:
    """A text with secrets masked."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, MASKED)
    return text


def refuse_misuse(value: Any, what: str, wanted: str) -> SqlError:
    """An error for an argument of the wrong kind."""
    return SqlError(f"{what} must be {wanted}, not {type(value).__name__}.")
