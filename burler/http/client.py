"""The client that authors use, and credentials: how a request shows who asks. ``sending`` has how it sends."""

from __future__ import annotations

import base64
import copy
import dataclasses
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, Unpack
from urllib.parse import parse_qsl, urlsplit

from burler.call import caller
from burler.clock import Clock, FunctionClock
from burler.config.secrets import hide
from burler.context import running
from burler.errors import DeclarationError
from burler.http import unfollowed
from burler.http.limits import Limiter
from burler.http.masking import mask_url
from burler.http.misspelt import names_options, request_of
from burler.http.options import (
    MIB,
    RETRY_STATUSES,
    Backoff,
    Options,
    check_bytes,
    check_pool,
    check_timeout,
    exponential,
)
from burler.http.origins import joined, taken_apart
from burler.http.prepared import hide_given, is_secret_header
from burler.http.request import Request
from burler.http.sending import Check, Sender
from burler.http.verbs import Paged, Verbs
from burler.http.wire import make_session, with_cookies_of_its_own
from burler.paths import path_of
from burler.suggest import did_you_mean

if TYPE_CHECKING:
    from pathlib import Path

    import requests
    from requests.auth import AuthBase

    from burler.http.paginators import Paginator, PagingFunction
    from burler.http.stubs import Class, VerbsGiven
    from burler.pages import JsonPage

_LIMITS = ("requests_per_second", "requests_per_minute")
_FIELDS = tuple(one.name for one in dataclasses.fields(Options) if one.name != "of_session")
_OTHERS = ("token", "auth", "records_path")
_FIT = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")  # what a header may hold, whatever the server


class Auth:
    """Base of all credentials. A Client calls :meth:`attach` once, :meth:`apply` before each attempt of a request to
    the origin of its ``base_url``, :meth:`refused` after a 401, :meth:`close` at its end. Several threads call at once.

    Also one of requests' own: ``requests.get(url, auth=bearer(token))`` works, without :meth:`refused`.

    Attributes:
        cure: a sentence for the error after a 401: what a person should do.
    """

    cure: str = ""

    def attach(self, client: Client) -> None:
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


class Client(Verbs):
    """Asks an HTTP source: tries again, keeps limits, counts, and says clearly what is wrong.

    One client serves all threads of a run. Credentials (``token``, ``auth``), ``headers`` and ``params`` go to the
    origin of ``base_url`` (scheme, host, port) and nowhere else, also across redirects.

    Args:
        base_url: stands before every path; its own path stays.
        token: a bearer token; short for ``auth=burler.http.bearer(token)``.
        auth: credentials of burler's (``burler.http.basic``, ``oauth2_refresh``, ...), of requests, or a pair of
            user and password.
        headers, params: sent with every request.
        timeout_seconds: to connect, and between two bytes.
        retries: further tries of a request that brought no answer, at the most.
        max_wait_seconds: all waits of one request together, at the most.
        backoff_strategy: waits between tries, as in the package backoff (``backoff.expo``, ``backoff.fibo``, or a
            generator function of your own), each with full jitter: between 0 and what it gives.
        retry_statuses: statuses that may pass.
        retry_writes: whether POST and PATCH, too, are sent again; ``retry=True`` says it for one request.
        requests_per_second, requests_per_minute: how often the source is asked, by all threads together.
        follow_rate_limit_headers: wait where the source says that no request remains.
        max_response_bytes: a reply that is bigger, once unpacked, is an error.
        max_redirects: one after the other.
        pool_size: connections kept open to one server; None: as many as there are workers that ask at once.
        user_agent: by default ``burler/VERSION (NAME OF THE TAP)``.
        verify, cert, proxies: as in requests.
        records_path: where the rows stand in replies, for ``pages`` and ``rows``.
        session: a requests.Session of your own; it is not closed here.
        sleep, now, monotonic: clocks, for tests.

    Raises:
        DeclarationError: a setting that can't work.
    """

    backoff_strategy: ClassVar[Backoff | None] = None
    """What a subclass uses where none is given."""

    @names_options("burler.http.Client")
    def __init__(
        self,
        base_url: str = "",
        *,
        token: str | None = None,
        auth: Any = None,
        headers: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        timeout_seconds: float | tuple[float, float] = (10.0, 60.0),
        retries: int = 5,
        max_wait_seconds: float = 300.0,
        backoff_strategy: Backoff | None = None,
        retry_statuses: Collection[int] = RETRY_STATUSES,
        retry_writes: bool = False,
        requests_per_second: float | None = None,
        requests_per_minute: float | None = None,
        follow_rate_limit_headers: bool = True,
        max_response_bytes: int = 256 * MIB,
        max_redirects: int = 10,
        pool_size: int | None = None,
        user_agent: str | None = None,
        verify: bool | str | None = None,
        cert: str | tuple[str, str] | None = None,
        proxies: Mapping[str, str] | None = None,
        records_path: str | Sequence[str] | None = None,
        session: requests.Session | None = None,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        strategy = backoff_strategy or type(self).backoff_strategy or exponential
        base_url, of_url, user = taken_apart(base_url)
        options = Options(
            base_url=base_url,
            headers=headers or {},
            params={**of_url, **(params or {})},
            timeout_seconds=timeout_seconds,
            retries=retries,
            max_wait_seconds=max_wait_seconds,
            backoff_strategy=strategy,
            retry_statuses=retry_statuses,
            retry_writes=retry_writes,
            requests_per_second=requests_per_second,
            requests_per_minute=requests_per_minute,
            follow_rate_limit_headers=follow_rate_limit_headers,
            max_response_bytes=max_response_bytes,
            max_redirects=max_redirects,
            user_agent=user_agent,
            verify=verify,
            cert=cert,
            proxies=proxies,
        )
        self.records_path: str | Sequence[str] | None = None if records_path is None else path_of(records_path)
        self._owns_session = session is None
        session = _new_session(pool_size) if session is None else session
        limiter = Limiter(requests_per_second, requests_per_minute)
        credentials = _auth_of(token, auth or user) or _auth_of(None, session.auth)
        self._connect(session, options, credentials, limiter, FunctionClock(sleep=sleep, now=now, monotonic=monotonic))

    def _connect(self, session: requests.Session, options: Options, auth: Any, limiter: Limiter, clock: Clock) -> None:
        hide_given(options, session)
        secret = [name for name in options.headers if is_secret_header(name)]
        if not options.base_url and (auth is not None or secret):
            what = f"the header '{secret[0]}'" if secret else "credentials"
            raise DeclarationError(
                f"burler.http.Client: {what} without a base_url: nobody can tell which server may see it. "
                "Give base_url='https://...'."
            )
        self.session = session
        self.base_url = options.base_url
        self.headers = options.headers
        self.params = options.params
        self.auth = auth
        self._sender = Sender(session, options, auth, limiter, clock)
        if auth is not None:
            auth.attach(self)

    # One request: the verbs stand in Verbs

    def url_of(self, path: str) -> str:
        """The whole URL of a path, without parameters of the client's."""
        return joined(self.base_url, path)

    def send(self, request: Request, *, check: Check | None = None) -> requests.Response:
        """Send a request that is made already.

        Args:
            check: called with each reply that would be an answer; ValueError says what is wrong with it, and it is
                asked for again as a lost one is.
        """
        if request.timeout_seconds is not None:
            check_timeout(request.timeout_seconds)
        if request.max_response_bytes is not None:
            check_bytes("max_response_bytes", request.max_response_bytes)
        unfollowed.asked(self, request)
        run = running()
        if run is None or run.is_in_hook or not run.source_state.automatic:
            return self._sender.send(request, check)
        from burler.http import conditional

        of = conditional.resource(self._sender, request)
        request = conditional.prepare(run, request, of)
        response = self._sender.send(request, check or conditional.has_body)
        conditional.judge(run, request, of, response)
        return response

    # Many

    def pages(self, path: str, **paged: Unpack[Paged]) -> Iterator[JsonPage]:
        """The pages of a list as bytes, for a sync function to yield: ``yield from client.pages("/contacts")``.

        They go to the typed decoder as they came. See docs/paging.md for ``paginator`` and ``records_path``.
        """
        from burler.http import paging

        request, rest = _paged("pages", path, dict(paged))
        return paging.pages(self, request, **rest)

    def rows(self, path: str, **paged: Unpack[Paged]) -> Iterator[dict[str, Any]]:
        """The rows of all pages as dicts, numbers with a fraction as Decimal; arguments as of ``pages``."""
        from burler.http import paging

        request, rest = _paged("rows", path, dict(paged))
        return paging.rows(self, request, **rest)

    @names_options("client.conditional")
    def conditional(
        self,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, Any] | None = None,
        records_path: str | Sequence[str] | None = None,
        source: str = "odf/polling",
        stream: Any = None,
        endpoint: str | None = None,
    ) -> Iterator[JsonPage]:
        """One resource, if it has changed since the last run: its page, or nothing. See docs/source-state.md."""
        from burler.http import conditional

        request = Request("GET", path, params=params, headers=headers, endpoint=endpoint)
        given = self.records_path if records_path is None else records_path
        way = None if given is None else path_of(given)
        of = conditional.resource(self._sender, request)
        return conditional.conditional(self, request, of, records_path=way, source=source, stream=stream)

    @names_options("client.download")
    def download(
        self,
        path: str,
        to: str | Path,
        *,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, Any] | None = None,
        max_bytes: int | None = None,
        endpoint: str | None = None,
        timeout_seconds: float | tuple[float, float] | None = None,
    ) -> Mapping[str, str]:
        """Put a body of any size into a file, which is there when it is whole; gives the reply's headers.

        Args:
            max_bytes: after unpacking; None for no limit.

        Raises:
            HttpError: as of ``request``. StorageError: the file can't be written.
        """
        from burler.http.downloading import download

        if max_bytes is not None:
            check_bytes("max_bytes", max_bytes)
        request = Request(
            "GET", path, params=params, headers=headers, endpoint=endpoint, timeout_seconds=timeout_seconds
        )
        return download(self._sender, request, to, max_bytes=max_bytes)

    @classmethod
    def generate(cls, paths: Any, **options: Any) -> Any:
        """A class decorator that adds methods for endpoints, named by their paths; see docs/endpoints.md."""
        from burler.http.stubs import generated

        return generated(cls, paths, **options)

    # The client itself

    def with_options(self, **changes: Any) -> Self:
        """The same client with some settings changed: same connections, same limits unless they are named.

        Args:
            changes: settings of the client. ``headers`` and ``params`` take the place of all that were there (add
                to them with ``{**client.headers, ...}``). With another ``base_url`` the credentials go there, unless
                ``auth=None`` is said.

        Raises:
            DeclarationError: a setting that is none, or can't be changed.
        """
        for name in changes:
            if name not in (*_FIELDS, *_OTHERS):
                hint = did_you_mean(name, (*_FIELDS, *_OTHERS))
                raise DeclarationError(f"burler.http.Client.with_options can't change '{name}'.{hint}")
        sender = self._sender
        fields = {name: value for name, value in changes.items() if name in _FIELDS}
        for name in ("headers", "params"):
            if name in fields:
                fields[name] = fields[name] or {}
        options = dataclasses.replace(sender.options, **fields)
        limiter = sender.limiter
        if any(name in changes for name in _LIMITS):
            limiter = Limiter(options.requests_per_second, options.requests_per_minute)
        auth = self.auth
        if "token" in changes or "auth" in changes:  # auth=None: no credentials
            auth = _auth_of(changes.get("token"), changes.get("auth"))
        other = copy.copy(self)
        other._owns_session = False
        if "records_path" in changes:
            path = changes["records_path"]
            other.records_path = None if path is None else path_of(path)
        session = sender.session
        if auth is not None and auth is not self.auth:
            session = with_cookies_of_its_own(session)
        other._connect(session, options, auth, limiter, sender.clock)
        return other

    def close(self) -> None:
        """Close the connections, unless they belong to a session of the author's or to another client. A renewal of
        credentials that is under way in another thread may end first, so that nothing of it is lost."""
        if self.auth is not None:
            self.auth.close()
        if self._owns_session:
            self.session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {mask_url(self.base_url)}>"


def endpoints(
    paths: Mapping[str, str] | None = None,
    /,
    *,
    verbs: VerbsGiven = None,
    backoff_strategy: Callable[[], Any] | None = None,
    paginator: Paginator | PagingFunction | None = None,
    records_path: str | Sequence[str] | None = None,
    **named: str,
) -> Callable[[Class], Class]:
    """Class decorator: methods for endpoints. ``endpoints(contacts="/contacts", notes="/contacts/{id}/notes")`` makes
    ``get_contacts()``, ``pages_contacts()``, ``rows_contacts()``, ``get_notes(id)`` and so on.

    The class is one of three:

    - a subclass of :class:`burler.http.Client`: requests go through the client;
    - a class with its own ``request(self, method, path, **options)``: requests go through that;
    - any other class, without ``__init__``: it becomes a subclass of Client.

    Args:
        paths: name -> path, for names that are options here.
        verbs: which methods: a list for all endpoints, or a mapping name -> list. One that is not named has get, pages,
            rows, post, put, patch and delete. There is head, too.
        backoff_strategy: how long to wait between tries, as ``backoff.expo``. Around the author's own ``request``,
            or of the client, where it was made without one.
        paginator: of ``pages_`` and ``rows_``; see ``Client.pages``.
        records_path: the way to the rows, of ``pages_`` and ``rows_``.
        named: name -> path. Braces are places: ``{id}`` becomes a parameter of the method.

    Raises:
        DeclarationError: a path, a name or a verb that is none; a method that the class has already.
    """
    from burler.http.stubs import decorator

    given = [*(paths or {}).items(), *named.items()]
    return decorator(given, Client, verbs, backoff_strategy, paginator, records_path, caller().place)


def _auth_of(token: str | None, auth: Any) -> Auth | None:
    """Credentials in the one form that is used; None if there are none."""
    if token is not None and auth is not None:
        raise DeclarationError("burler.http.Client: token and auth are both given; one of them is enough.")
    return as_auth(auth) if token is None else bearer(token)


def _new_session(pool_size: int | None) -> requests.Session:
    check_pool(pool_size)
    return make_session(pool_size)


def _paged(call: str, path: str, paged: dict[str, Any]) -> tuple[Request, dict[str, Any]]:
    rest = {name: paged.pop(name, None) for name in ("paginator", "records_path")}
    return request_of(call, paged.pop("method", "GET"), path, paged, [*rest, "method"]), rest


# ---- credentials that stay as they are; renewed ones stand in ``renewing`` ------------------------------------------


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
