"""Endpoints on a class with a ``request`` of its author's: requests go through that, and pages are made of what it
gives."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from burler.clock import Clock
from burler.context import running
from burler.errors import HttpError, SourceError
from burler.http import unfollowed
from burler.http.masking import mask_url
from burler.http.options import RETRY_STATUSES
from burler.http.request import IDEMPOTENT
from burler.http.waits import Waits, retry_after_seconds
from burler.log_settings import near

if TYPE_CHECKING:
    from burler.http.request import Request

RETRIES = 5
MAX_WAIT_SECONDS = 300.0

_encoder = msgspec.json.Encoder(decimal_format="number")
_clock = Clock()


def own_options(request: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """What the author's ``request`` takes beside method and path, as keywords.

    Raises:
        ValueError: it does not take a method and a path.
    """
    found = list(inspect.signature(request).parameters.values())
    plain = [one for one in found if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    several = any(one.kind is one.VAR_POSITIONAL for one in found)
    if len(plain) < 3 and not several:
        raise ValueError("it must take a method and a path: def request(self, method, path, **options)")
    options = {one.name: one for one in [*plain[3:], *(one for one in found if one.kind is one.KEYWORD_ONLY)]}
    options.pop("endpoint", None)  # filled with the path as it was declared
    more = [one for one in found if one.kind is one.VAR_KEYWORD]
    needed = [one.name for one in options.values() if one.default is one.empty]
    if needed:
        raise ValueError(f"it needs {', '.join(needed)} beside a method and a path; give that a default")
    named = {name: one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for name, one in options.items()}
    return named | {one.name: one for one in more}


class OwnSource:
    """Sends through the ``request`` of an author's object, for ``paging``.

    Args:
        owner: the object. endpoint: the path as it was declared.
    """

    def __init__(self, owner: Any, endpoint: str) -> None:
        self.owner = owner
        self._endpoint = endpoint
        self._base: str | None = None
        self.base_url: str = getattr(owner, "base_url", None) or ""
        self.records_path = getattr(owner, "records_path", None)

    def call(self, method: str, path: str, options: dict[str, Any]) -> Any:
        """What the author's ``request`` gives."""
        if "endpoint" in inspect.signature(self.owner.request).parameters:
            options = {**options, "endpoint": self._endpoint}
        return self.owner.request(method, path, **options)

    def send(self, request: Request, *, check: Any = None) -> Any:
        """A response for a page.

        Raises:
            SourceError: ``request`` gave something else, or no JSON. HttpError: its status is an error.
        """
        given = {name: getattr(request, name) for name in ("params", "headers", "json", "data")}
        options = {name: value for name, value in given.items() if value is not None}
        unfollowed.asked(self, request)
        where = f"{request.method} {self._endpoint}"
        found = self.call(request.method, self._below_base(request.path), options)
        response = found if hasattr(found, "content") and hasattr(found, "headers") else _wrapped(found, request, where)
        self._learn(request.path, str(getattr(response, "url", "") or ""))
        status = response.status_code
        if not 200 <= status < 300 and status not in request.allow_statuses:
            raise _refused(response, where)
        try:
            if check is not None:
                check(response)
        except ValueError as error:
            raise SourceError(f"{where}: {error}{near(bytes(response.content))}.") from None
        return response

    def _below_base(self, path: str) -> str:
        """A next URL as the author's ``request`` knows paths: what stands behind the base of the first one."""
        base = self.base_url or self._base
        if base and path.startswith(base) and path[len(base) :][:1] in ("", "/", "?"):
            return path[len(base) :]
        return path

    def _learn(self, path: str, url: str) -> None:
        """What the author's ``request`` put before a path."""
        path, url = path.partition("?")[0], url.partition("?")[0]
        if self._base is None and not urlsplit(path).scheme and url.endswith(path):
            self._base = url[: -len(path)] if path.startswith("/") else url[: -len(path)].rstrip("/")


class _Wrapped:
    """A body without headers, as some ``request`` functions give it."""

    def __init__(self, content: bytes, url: str) -> None:
        self.content = content
        self.url = url
        self.headers: dict[str, str] = {}
        self.status_code = 200
        self.request = None


def _wrapped(found: Any, request: Request, where: str) -> _Wrapped:
    if isinstance(found, bytes | bytearray | memoryview):
        return _Wrapped(bytes(found), request.path)
    if isinstance(found, str):
        return _Wrapped(found.encode(), request.path)
    if isinstance(found, dict | list):
        return _Wrapped(_encoder.encode(found), request.path)
    raise SourceError(
        f"{where}: request() gave a value of type {type(found).__name__}. For pages it gives a requests.Response, "
        "bytes of JSON, or what was read from JSON."
    )


def _refused(response: Any, where: str) -> HttpError:
    from burler.http.failed import of_status

    if getattr(response, "request", None) is not None:
        return of_status(response, ()).error(1)
    message = f"{where}: status {response.status_code}."
    return HttpError(message, status=response.status_code, url=mask_url(response.url), method="", body=b"", attempts=1)


def with_backoff(
    request: Callable[..., Any], strategy: Callable[[], Any], *, of_client: bool = False
) -> Callable[..., Any]:
    """The author's ``request``, called again while the source does not answer: no connection, no reply, a status such
    as 429 or 503, raised or given back. A POST or PATCH is never sent twice.

    Args:
        strategy: gives the waits, as ``backoff.expo``; each is shortened by chance (full jitter). ``Retry-After`` comes
            before it. At the most five tries follow the first, within five minutes of waits.
        of_client: it is of a Client, whose HttpErrors come behind tries of its own: they are not tried again.
    """

    @functools.wraps(request)
    def retrying(self: Any, method: str, *args: Any, **options: Any) -> Any:
        waits, waited = Waits(strategy), 0.0
        for tries in range(RETRIES + 1):
            error: Exception | None = None
            found: Any = None
            try:
                found = request(self, method, *args, **options)
            except Exception as caught:
                error = caught
            response = getattr(error, "response", None) if error is not None else found
            tried = of_client and isinstance(error, HttpError)
            reason = "" if tried else _passing(error, found, response)
            if reason and tries < RETRIES and method.upper() in IDEMPOTENT:
                headers = getattr(response, "headers", None) or {}
                asked = retry_after_seconds(headers, _clock.time())
                seconds = waits.next(error or found)
                seconds = asked if asked is not None else seconds
                if seconds is not None and waited + seconds <= MAX_WAIT_SECONDS:
                    _count(reason)
                    _clock.pause(seconds)
                    waited += seconds
                    continue
            if error is not None:
                raise error
            return found
        raise AssertionError("the last try gives or raises")  # pragma: no cover

    return retrying


def _passing(error: Exception | None, found: Any, response: Any) -> str:
    """Why another try may help; "" if it may not."""
    import requests

    status = getattr(response, "status_code", None)
    if error is None:
        return str(status) if status in RETRY_STATUSES else ""
    if isinstance(error, HttpError):
        return ("no answer" if error.status is None else str(error.status)) if _may_pass(error.status) else ""
    if isinstance(error, requests.HTTPError):
        return str(status) if status in RETRY_STATUSES else ""
    lost = (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError, ConnectionError)
    return "no answer" if isinstance(error, (*lost, TimeoutError)) else ""


def _may_pass(status: int | None) -> bool:
    return status is None or status in RETRY_STATUSES


def _count(reason: str) -> None:
    run = running()
    if run is not None:
        run.tally.add("retries", reason)
