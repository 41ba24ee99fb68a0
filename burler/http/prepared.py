"""How a request becomes what goes over the wire, who may see credentials, and where redirects lead.

Credentials, the client's own headers and its parameters go to one origin: that of ``base_url``. A redirect, or a whole
URL that a reply gave, may lead elsewhere; there only the request itself arrives.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urljoin

import msgspec

from burler.config.secrets import hide
from burler.http.masking import is_secret_name, mask_url, secrets_in
from burler.http.options import Options, default_user_agent
from burler.http.origins import Origin, is_web, joined, names_in_query, origin_of
from burler.http.request import Request, as_text, query_pairs

if TYPE_CHECKING:
    import requests

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_SAFE_ABROAD = frozenset({"accept", "accept-language", "range", "if-none-match", "if-modified-since"})
_json = msgspec.json.Encoder(decimal_format="number")


class BadRedirect(Exception):
    """A redirect that is not followed. ``args``: the fact, and the cure."""


@dataclass(frozen=True, slots=True)
class Target:
    """What is sent where: the request itself, or what a redirect made of it.

    Attributes:
        url: with its query, without credentials.
        headers: of the request alone.
        body: bytes, text, a form's fields, or an iterator (which can be sent once only).
        first: whether it is the request itself.
    """

    method: str
    url: str
    params: tuple[tuple[str, str], ...]
    headers: Mapping[str, Any]
    body: Any
    first: bool = True

    @property
    def repeatable(self) -> bool:
        """Whether the body can be sent once more."""
        return self.body is None or isinstance(self.body, bytes | str | Mapping | list | tuple)


def target_of(request: Request, options: Options) -> Target:
    """The first target of a request."""
    url = joined(options.base_url, request.path)
    headers = dict(request.headers or {})
    body = request.data
    if request.json is not None:
        body = _json.encode(request.json)
        if not any(name.lower() == "content-type" for name in headers):
            headers["Content-Type"] = "application/json"
    return Target(request.method, url, tuple(query_pairs(request.params)), headers, body)


@functools.lru_cache(256)
def origin_as_sent(url: str) -> Origin:
    """The origin of a URL in the form in which requests sends it (host names as IDNA, ...).

    Raises:
        requests.exceptions.InvalidURL and its like: it is none.
    """
    import requests

    prepared = requests.PreparedRequest()
    prepared.prepare_url(url, "")
    return origin_of(prepared.url or "")


def prepare(
    target: Target, options: Options, session: requests.Session, home: Origin, tap_name: str
) -> tuple[requests.PreparedRequest, Origin]:
    """The request as it goes over the wire, without credentials, and where it goes to.

    Raises:
        requests.exceptions.RequestException: the URL or a header can't be sent.
    """
    import requests

    prepared = requests.PreparedRequest()
    prepared.prepare_method(target.method)
    carried = names_in_query(target.url)
    own = [pair for pair in target.params if pair[0] not in carried]
    # As text: of anything else requests asks first whether it is a file, which costs more than all the rest.
    prepared.prepare_url(target.url, urlencode(own))
    origin = origin_of(prepared.url or "")
    at_home = origin == home
    if at_home and target.first:
        carried |= {name for name, _value in own}
        of_session = _mapping(session.params) if options.of_session else {}
        more = [*query_pairs(of_session), *query_pairs(options.params)]
        more = [pair for pair in more if pair[0] not in carried]
        if more:
            prepared.prepare_url(prepared.url, urlencode(more))
    of_home = [_of_session(session, options), options.headers] if at_home else []
    prepared.prepare_headers(_header_texts([*of_home, target.headers], options, tap_name))
    if at_home and options.of_session:
        prepared.prepare_cookies(_cookies_of(session, options))
    if target.body is None:
        prepared.prepare_content_length(None)
    else:
        prepared.prepare_body(target.body, None)
    prepared.prepare_hooks(session.hooks)
    return prepared, origin


def _header_texts(given: Sequence[Mapping[str, Any]], options: Options, tap_name: str) -> dict[str, str | bytes]:
    """All headers, a later one in place of an earlier; None takes one away."""
    from requests.structures import CaseInsensitiveDict

    headers: CaseInsensitiveDict[Any] = CaseInsensitiveDict()
    headers["User-Agent"] = options.user_agent or default_user_agent(tap_name)
    headers["Accept"] = "application/json, */*;q=0.8"
    headers["Accept-Encoding"] = "gzip"
    for one in given:
        headers.update(one)
    return {
        name: value if isinstance(value, bytes) else as_text(value)
        for name, value in headers.items()
        if value is not None
    }


def _of_session(session: requests.Session, options: Options) -> Mapping[str, Any]:
    """The headers of a session of the author's; without a base_url nobody can tell who may see the secret ones."""
    if options.base_url:
        return session.headers
    if not options.of_session:
        return {}
    return {name: value for name, value in session.headers.items() if not is_secret_header(name)}


def _cookies_of(session: requests.Session, options: Options) -> Any:
    """The cookies for the origin of ``base_url``. Without one, only those that say whose they are: a cookie that the
    author put into a session without a domain would go to every server that is asked."""
    cookies: Any = session.cookies
    if options.base_url:
        return cookies
    with cookies._cookies_lock:  # replies in other threads add some
        found = list(cookies)
    if all(cookie.domain for cookie in found):
        return cookies
    from requests.cookies import RequestsCookieJar

    known = RequestsCookieJar()
    for cookie in found:
        if cookie.domain:
            known.set_cookie(cookie)
    return known


def is_secret_header(name: str) -> bool:
    """Whether a header shows who asks."""
    return is_secret_name(name) or name.lower() == "cookie"


def hide_given(options: Options, session: requests.Session) -> None:
    """Keep the secrets among headers and parameters of a client out of logs and errors: a source may repeat them."""
    for given in (options.headers, options.params, session.headers, _mapping(session.params)):
        for name, value in given.items():
            for one in value if isinstance(value, list | tuple) else (value,):
                for text in secrets_in(str(name), one):
                    hide(text)


def _mapping(params: Any) -> Mapping[str, Any]:
    return params if isinstance(params, Mapping) else {}


def redirected(target: Target, response: requests.Response) -> Target | None:
    """Where a reply sends us; None if it is no redirect.

    A POST that is redirected becomes a GET, as everywhere, where the other place is of the same origin, or the status
    is 303 ("see other"). The body of a request never goes to another origin.

    Raises:
        BadRedirect: it is not followed.
    """
    location = response.headers.get("Location")
    status = response.status_code
    if status not in _REDIRECTS or not location:
        return None
    try:
        url = location_of(response.url, location)
    except ValueError:
        raise BadRedirect(f"it redirects to '{mask_url(location)[:200]}', which is no web address", "") from None
    shown = mask_url(url)
    if not is_web(url):
        raise BadRedirect(f"it redirects to '{shown}', which is no web address", "")
    abroad = _leaves(response.url, url)
    method, body = target.method, target.body
    if (status == 303 and method != "HEAD") or (status in (301, 302) and method == "POST" and not abroad):
        method, body = "GET", None
    if abroad and method not in ("GET", "HEAD"):
        cure = "Its body was not sent there. If the source has moved, give the new address as base_url."
        raise BadRedirect(f"it redirects a {method} to another server, '{shown}'", cure)
    if body is not None and not target.repeatable:
        raise BadRedirect(f"it redirects to '{shown}', but the body can't be sent again", "Give data as bytes.")
    headers = target.headers
    if abroad:
        headers = {name: value for name, value in headers.items() if name.lower() in _SAFE_ABROAD}
    if body is None:
        headers = {name: value for name, value in headers.items() if not name.lower().startswith("content-")}
    return replace(target, method=method, url=url, params=(), headers=headers, body=body, first=False)


def location_of(base: str, location: str) -> str:
    """The URL of a ``Location``, which may be relative, and holds UTF-8 that was read as Latin-1."""
    from requests.utils import requote_uri

    with contextlib.suppress(UnicodeError):
        location = location.encode("latin-1").decode()
    return requote_uri(urljoin(base, location.strip()).partition("#")[0])


def _leaves(here: str, there: str) -> bool:
    try:
        return origin_as_sent(here) != origin_as_sent(there)
    except ValueError:  # no address: preparing it says so
        return True
