"""Credentials: how a request shows who asks. Those that stay as they are; renewed ones stand in ``renewing``."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any, Protocol, Self
from urllib.parse import parse_qsl, urlsplit

from burler.config.secrets import hide
from burler.errors import DeclarationError

if TYPE_CHECKING:
    import requests
    from requests.auth import AuthBase

    from burler.http.sending import Sender

_FIT = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")  # what a header may hold, whatever the server


class AskingClient(Protocol):
    """What credentials need of the :class:`burler.http.Client` that they are for."""

    _sender: Sender

    def with_options(self, **changes: Any) -> Self:
        """The same client with some settings changed."""
        raise NotImplementedError


class Auth:
    """Base of all credentials. A Client calls :meth:`attach` once, :meth:`apply` before each attempt of a request to
    the origin of its ``base_url``, :meth:`refused` after a 401, :meth:`close` at its end. Several threads call at once.

    Also one of requests' own: ``requests.get(url, auth=bearer(token))`` works, without :meth:`refused`.

    Attributes:
        cure: a sentence for the error after a 401: what a person should do.
    """

    cure: str = ""

    def attach(self, client: Any) -> None:
        """Get to know the client that these credentials are for."""

    def apply(self, prepared: requests.PreparedRequest) -> None:
        """Put the credentials into a request that is about to be sent.

        Raises:
            CredentialsError: there are none, since they could not be renewed.
        """
        raise NotImplementedError

    def refused(self, response: requests.Response) -> bool:
        """After a 401: whether the credentials are others now, so that the request may be sent once more."""
        return False

    def close(self) -> None:
        """The client is closed: what is under way may come to its end first."""

    def __call__(self, prepared: requests.PreparedRequest) -> requests.PreparedRequest:
        """As requests wants it."""
        self.apply(prepared)
        return prepared

    def __repr__(self) -> str:
        return f"{type(self).__name__}(***)"


class HeaderAuth(Auth):
    """The same header in every request."""

    def __init__(self, header: str, value: str, *, cure: str) -> None:
        self._header = header
        self._value = value
        self.cure = cure

    def apply(self, prepared: requests.PreparedRequest) -> None:
        """Set the header."""
        prepared.headers[self._header] = self._value


class QueryAuth(Auth):
    """The same parameter in every URL."""

    def __init__(self, param: str, value: str, *, cure: str) -> None:
        self._param = param
        self._value = value
        self.cure = cure

    def apply(self, prepared: requests.PreparedRequest) -> None:
        """Add the parameter, unless it is there: a second attempt sends the same request, and some sources put it into
        the URL of the next page."""
        url = prepared.url or ""
        if (self._param, self._value) not in parse_qsl(urlsplit(url).query, keep_blank_values=True):
            prepared.prepare_url(url, {self._param: self._value})


class ForeignAuth(Auth):
    """Credentials of requests' own kind, or of a package's for it."""

    def __init__(self, auth: AuthBase) -> None:
        self._auth = auth

    def apply(self, prepared: requests.PreparedRequest) -> None:
        """Let them change the request, as requests itself would."""
        changed = self._auth(prepared)
        if changed is not prepared:  # requests takes over what such a function gives
            prepared.__dict__.update(changed.__dict__)

    def __repr__(self) -> str:
        return f"ForeignAuth({type(self._auth).__name__})"


def as_auth(auth: Any) -> Auth | None:
    """What a Client is given as ``auth``, as credentials of ours.

    Raises:
        DeclarationError: it is none of an Auth, a function or object for requests, and a pair (user, password).
    """
    if auth is None or isinstance(auth, Auth):
        return auth
    if isinstance(auth, tuple) and len(auth) == 2:
        return basic(*auth)
    if callable(auth) and not isinstance(auth, type):
        return ForeignAuth(auth)
    raise DeclarationError(
        f"burler.http.Client: auth can't be a {type(auth).__name__}. It takes bearer(token), basic(user, password), "
        "api_key(key, ...), one of the oauth2 functions, or an auth object of requests."
    )


def bearer(token: str, *, header: str = "Authorization", scheme: str = "Bearer") -> Auth:
    """A token that stays as it is: ``Authorization: Bearer TOKEN``.

    Args:
        scheme: the word before the token; "" for none.

    Raises:
        DeclarationError: the token is empty, or holds what no header can.
    """
    value = fit_for_header(token, what="bearer(): the token")
    hide(value)
    return HeaderAuth(header, f"{scheme} {value}".strip(), cure="Is the token right, and has it not run out?")


def basic(user: str, password: str = "") -> Auth:
    """User name and password (RFC 7617), as UTF-8.

    Raises:
        DeclarationError: one of them is no text, or the user name holds a colon.
    """
    for what, text in (("user name", user), ("password", password)):
        if not isinstance(text, str):
            raise DeclarationError(
                f"basic(): the {what} must be a text, not {type(text).__name__}. Is it in the config?"
            )
    if ":" in user:
        raise DeclarationError("basic(): a user name with a colon can't be sent: the server takes it for two.")
    return HeaderAuth("Authorization", basic_header(user, password), cure="Are user name and password right?")


def basic_header(user: str, password: str) -> str:
    """The value of an Authorization header; it is hidden from then on, and so is the password."""
    pair = base64.b64encode(f"{user}:{password}".encode(errors="replace")).decode()
    hide(pair)
    # Some sources take the key as user name, and no password.
    hide(password or user)
    return f"Basic {pair}"


def api_key(key: str, *, header: str | None = None, param: str | None = None, scheme: str = "") -> Auth:
    """A key that stays as it is, in a header or in the query.

    Args:
        header: its name; "X-API-Key" if neither it nor ``param`` is given.
        param: the name of a parameter of the URL. A header is better where the source takes one: URLs end in the logs
            of servers and proxies (burler's own logs and errors mask the key).
        scheme: a word before the key in the header, such as "Token" or "SSWS".

    Raises:
        DeclarationError: the key is empty or can't be sent; both places were given.
    """
    if header is not None and param is not None:
        raise DeclarationError("api_key(): give one of header= and param=, not both.")
    cure = "Is the key right?"
    if param is not None:
        if not isinstance(key, str) or not key:
            raise DeclarationError(f"api_key(): the key is {_kind(key)}. Is it in the config?")
        hide(key)
        return QueryAuth(param, key, cure=cure)
    value = fit_for_header(key, what="api_key(): the key")
    hide(value)
    return HeaderAuth(header or "X-API-Key", f"{scheme} {value}".strip(), cure=cure)


def fit_for_header(text: Any, *, what: str) -> str:
    """``text``, if a header can hold it. requests would refuse it, too, and show it.

    Raises:
        DeclarationError: it is no text, is empty, begins or ends with a space, or has signs that no header can hold.
    """
    if not isinstance(text, str) or not text:
        raise DeclarationError(f"{what} is {_kind(text)}. Is it in the config?")
    if not _FIT.fullmatch(text):
        if _FIT.fullmatch(text.strip()):
            raise DeclarationError(f"{what} has spaces or a line break around it. Take them away in the config.")
        raise DeclarationError(f"{what} has signs that no header can hold (ASCII letters, digits and signs only).")
    return text


def _kind(value: Any) -> str:
    return "empty" if value is None or value == "" else f"no text but {type(value).__name__}"
