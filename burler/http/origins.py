"""Where a request goes: URLs put together, and who is who."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, parse_qsl, unquote, unquote_plus, urlsplit

from burler.errors import DeclarationError

Origin = tuple[str, str, int | None]
"""Scheme, host and port: credentials belong to one."""

PORTS = {"http": 80, "https": 443}


def origin_of(url: str) -> Origin:
    """The origin of a URL; two URLs of one server have the same.

    Raises:
        ValueError: a port that is none.
    """
    return origin(urlsplit(url))


def origin(parts: SplitResult) -> Origin:
    """The same of a URL that was taken apart."""
    scheme = parts.scheme.lower()
    return scheme, (parts.hostname or "").lower().rstrip("."), parts.port or PORTS.get(scheme)


def as_sent(url: str) -> SplitResult:
    """The parts of an address as requests will send it; nothing, for what is no address. Python's own parser and the
    one that sends do not always see the same host: ``http://a\\@b/`` has two."""
    import requests

    prepared = requests.PreparedRequest()
    try:
        prepared.prepare_url(url, "")
        parts = urlsplit(prepared.url or "")
        _ = parts.port
    except (requests.RequestException, ValueError):
        return urlsplit("")
    return parts


def same_origin(one: str, other: str) -> bool:
    """Whether two addresses, as they are sent, have one scheme, host and port."""
    there = origin(as_sent(one))
    return bool(there[1]) and there == origin(as_sent(other))


def climbs(path: str) -> bool:
    """Whether a path of an address has a step upwards in it, however it is written: a server may take it after all
    beginnings were compared."""
    return ".." in unquote(unquote(path)).replace("\\", "/").split("/")


def begins(parts: SplitResult, beginning: SplitResult) -> bool:
    """Whether an address lies at or below another: whole parts of the path, not letters of one."""
    if origin(parts) != origin(beginning) or not parts.hostname:
        return False
    folder = beginning.path.rstrip("/")
    return parts.path == folder or parts.path.startswith(folder + "/")


def taken_apart(base_url: str) -> tuple[str, dict[str, list[str]], tuple[str, str] | None]:
    """A base URL without its query and its user, the query's parameters, and the user with the password: paths stand
    behind it, and nobody should see the password in a log."""
    _check_password(base_url)
    whole, _, query = base_url.partition("#")[0].partition("?")
    scheme, slashes, rest = whole.partition("//")
    host, slash, path = rest.partition("/")
    user, at, host = host.rpartition("@")
    params: dict[str, list[str]] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        params.setdefault(name, []).append(value)
    name, _, password = user.partition(":")
    return scheme + slashes + host + slash + path, params, (unquote(name), unquote(password)) if at else None


def _check_password(base_url: str) -> None:
    """Refuse a password with signs that end it for a parser: the half of it would be taken for a path, and shown.

    Raises:
        DeclarationError: it has; the text of the URL is not in it.
    """
    rest = base_url.partition("://")[2]
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    name, colon, port = authority.partition(":")
    if colon and "@" not in authority and "@" in rest and not port.isdecimal() and not name.startswith("["):
        raise DeclarationError(
            "burler.http.Client: base_url has a sign in its user or password that ends it. Write '/' as %2F, '#' as "
            "%23, '?' as %3F, or give them apart: auth=burler.http.basic(user, password)."
        )


def is_web(path: str) -> bool:
    """Whether a path is a whole http(s) address."""
    return path[:8].lower().startswith(("http://", "https://"))


def joined(base_url: str, path: str) -> str:
    """``base_url`` with what stands behind it: the base's own path stays (``https://x/api`` and ``/a`` are
    ``https://x/api/a``), unlike with ``urljoin``. A whole URL stands for itself."""
    if is_web(path):
        return path
    if not path:
        return base_url
    if path.startswith("?"):
        return base_url + path
    return f"{base_url.rstrip('/')}/{path.lstrip('/')}"


def names_in_query(url: str) -> set[str]:
    """The names of the parameters that a URL carries already."""
    return {unquote_plus(pair.partition("=")[0]) for pair in urlsplit(url).query.split("&") if pair}


def shown_path(url: str, base_url: str) -> str:
    """What METRIC lines call an endpoint that has no name: the path behind ``base_url``, without the query."""
    whole = url.partition("#")[0].partition("?")[0]
    base = base_url.rstrip("/")
    if base and (whole == base or whole.startswith(base + "/")):
        return whole[len(base) :] or "/"
    return whole
