"""What is said of a request that brought no answer: the fact, the reply's first words, and the cure."""

from __future__ import annotations

import http.client
import re
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from burler.config.secrets import masked
from burler.errors import CredentialsError, HttpError, NoAnswerError, NotFoundError
from burler.http.masking import mask_text, mask_url
from burler.log_settings import log_settings

if TYPE_CHECKING:
    import requests

SHOWN_CHARACTERS = 200
KEPT_BYTES = 1000

_CURES = {
    400: "The request is not as the source wants it: compare params and body with its documentation.",
    401: "The source does not accept the credentials: look whether they are right, and not expired.",
    403: "The credentials may not read this: look at their rights (scopes), and whether this address may ask.",
    404: "Look at base_url and the path; or say allow_statuses=(404,) if it may be missing.",
    405: "The path is there, but not for this method.",
    406: "Look at the header Accept: the source has no such form.",
    407: "The proxy wants credentials: put them into proxies=, or HTTPS_PROXY.",
    409: "The source is busy with something that excludes this; try later.",
    410: "It is gone; say allow_statuses=(410,) if that may be. If it is a page whose token has expired, "
    "retry_sync_on=burler.errors.NotFoundError begins the stream once more.",
    413: "The body is too big for the source.",
    414: "The URL is too long: ask for less at once.",
    415: "Look at the header Content-Type of the body.",
    422: "The source finds values of the request wrong: compare params and body with its documentation.",
    429: "Ask less often: requests_per_second= or requests_per_minute= of the client, or fewer workers.",
}
SOURCE_FAILS = "The source fails; run again later. More patience: retries= and max_wait_seconds= of the client."
LIMITED = _CURES[429]
_REACH = "Look at base_url, and whether the source can be reached from here (network, proxy)."
_NO_RETRY = "It was not sent again: a {method} could do its work twice. If it may be repeated, say retry=True."


@dataclass(frozen=True, slots=True)
class Failed:
    """One try that brought no answer.

    Attributes:
        fact: "503 Service Unavailable", "the connection was refused".
        reason: for the count of retries: "503", "no answer", "bad body", "too big", "redirects".
        passing: whether another try may do better.
        cure: what to do if not.
        method, url: of the last request, the URL masked.
        wait_seconds: so long whoever checked the reply says that the source wants us to wait.
    """

    fact: str
    reason: str
    passing: bool
    cure: str
    method: str
    url: str
    status: int | None = None
    body: str = ""
    response: requests.Response | None = None
    wait_seconds: float | None = None

    def error(self, attempts: int, more: str = "", cure: str = "") -> HttpError:
        """The error for the author.

        Args:
            more: goes on from the fact. cure: in place of the usual one.
        """
        tries = f", after {attempts} tries" if attempts > 1 else ""
        lines = [f"{self.method} {self.url}: {self.fact}{tries}{more}."]
        # With a good status they may be rows; a page for people has none.
        is_for_people = not 200 <= (self.status or 0) < 300 or self.body.lstrip()[:1] == "<"
        if self.body and (log_settings.values or is_for_people):
            lines.append(f"It says: {_glimpse(self.body)}")
        lines.append(cure or self.cure)
        return self._kind()(
            "\n".join(line for line in lines if line),
            status=self.status,
            url=self.url,
            method=self.method,
            body=self.body.encode()[:KEPT_BYTES],
            attempts=attempts,
        )

    def not_repeated(self) -> str:
        """The cure for a request that was not tried again because it writes."""
        if self.cure == _REACH and not self.fact.startswith("no reply"):  # nothing was sent at all
            return self.cure
        return _NO_RETRY.format(method=self.method)

    def _kind(self) -> type[HttpError]:
        if self.reason == "no answer":
            return NoAnswerError
        if self.reason == str(self.status):
            if self.status in (401, 403):
                return CredentialsError
            if self.status in (404, 410):
                return NotFoundError
        return HttpError


def of_status(response: requests.Response, retry_statuses: Any, more: str = "") -> Failed:
    """A reply whose status is an error."""
    status = response.status_code
    usual = SOURCE_FAILS if status >= 500 or status in (408, 425) else ""
    name = response.reason or http.client.responses.get(status, "")
    return Failed(
        fact=f"{status} {masked(str(name))[:60]}".strip() + more,
        reason=str(status),
        passing=status in retry_statuses,
        cure=_CURES.get(status, usual),
        status=status,
        body=first_words(response),
        response=response,
        method=response.request.method or "",
        url=mask_url(response.url),
    )


def of_reply(response: requests.Response, fact: str, reason: str, cure: str, *, passing: bool = True) -> Failed:
    """A reply with a good status that can't be taken for an answer."""
    return Failed(
        fact=fact,
        reason=reason,
        passing=passing,
        cure=cure,
        status=response.status_code,
        body=first_words(response),
        method=response.request.method or "",
        url=mask_url(response.url),
    )


def none_sent(status: int, *, has_some: bool) -> str:
    """The cure for a refusal of a request without credentials.

    Args:
        has_some: the client has credentials, for another server.
    """
    if has_some:
        return "The client's credentials were not sent: they go to the server of base_url, and nowhere else."
    cure = (
        "No credentials were seen: the client has no token= and no auth=, and no header or parameter is named like "
        "some. If one of these has them, they are wrong."
    )
    return cure + (" If it wants none, this address may not ask." if status == 403 else "")


def too_many_redirects(reply: requests.Response, history: list[requests.Response], most: int) -> Failed:
    """Redirects that don't end; where they go in a circle, it is shown."""
    places = [mask_url(one.url) for one in history]
    first = next((place for place in places if places.count(place) > 1), None)
    if first is not None:
        at = places.index(first)
        circle = places[at : places.index(first, at + 1) + 1]
        fact = "it redirects in a circle: " + " -> ".join(circle[:4] + (["..."] if len(circle) > 4 else []))
    else:
        fact = f"more than {most} redirects, one after the other"
    return of_reply(reply, fact, "redirects", "Look at base_url, and whether the source wants a login first.")


def no_more_requests(
    method: str, url: str, seconds: float, why: str, most_seconds: float, left_seconds: float, attempts: int
) -> HttpError:
    """The source takes no more requests for longer than we may wait."""
    shown = mask_url(url)
    return HttpError(
        f"{method} {shown}: the source takes no more requests for {seconds:.0f} seconds ({why}); "
        f"max_wait_seconds={most_seconds:g} leaves {left_seconds:.0f}.\n"
        "Run again later, give the client a greater max_wait_seconds, or, if what the source says is wrong, "
        "follow_rate_limit_headers=False.",
        url=shown,
        method=method,
        attempts=attempts,
    )


def first_words(response: requests.Response) -> str:
    """The beginning of a body that was read, masked; nothing where it is no text."""
    content = response._content
    if not isinstance(content, bytes) or not content:
        return ""
    text = content[: 4 * KEPT_BYTES].decode(errors="replace")
    if text.count("\ufffd") + text.count("\0") > len(text) / 10:
        return ""
    return mask_text(text)


def _glimpse(text: str) -> str:
    text = re.sub(r"\s+", " ", text).strip()
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + " ..."


def of_exception(
    error: BaseException, method: str, url: str, timeout: tuple[float, float], status: int | None
) -> Failed:
    """A request that brought no reply, or half of one. What the libraries say quotes whole URLs: it is not repeated.

    Args:
        status: of the reply that broke off; None where none began.
    """
    fact, cure, passing = _network(list(_causes(error)), timeout, begun=status is not None)
    return Failed(fact, "no answer", passing, cure, method, mask_url(url), status)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and what it was made of, the outermost first; requests and urllib3 wrap them in several ways."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        inner = [getattr(error, "reason", None), *error.args[:2], error.__cause__, error.__context__]
        error = next((one for one in inner if isinstance(one, BaseException)), None)


def _network(causes: list[BaseException], timeout: tuple[float, float], *, begun: bool) -> tuple[str, str, bool]:
    """(fact, cure, whether another try may do better)."""
    import requests
    import urllib3.exceptions as lib

    def caused(*kinds: type[BaseException]) -> BaseException | None:
        return next((one for one in reversed(causes) if isinstance(one, kinds)), None)

    reach = _REACH
    longer = "Ask for less at once, or say timeout_seconds=(to connect, between two bytes)."
    if found := caused(ssl.SSLCertVerificationError):
        said = masked(str(getattr(found, "verify_message", "") or "it could not be checked"))
        return f"its certificate is not trusted: {said}", "Say verify='path/of/the/ca.pem' if it is your own.", False
    if caused(ssl.SSLError, requests.exceptions.SSLError):
        return (
            "no safe connection (TLS) could be made",
            "Look whether base_url begins as it should: http or https.",
            True,
        )
    if caused(socket.gaierror):
        return "its host has no address", reach, True
    if caused(ConnectionRefusedError):
        return "the connection was refused", reach, True
    if caused(lib.ConnectTimeoutError, requests.exceptions.ConnectTimeout):
        return f"no connection within {timeout[0]:g} seconds", reach, True
    if caused(lib.ReadTimeoutError, requests.exceptions.ReadTimeout, TimeoutError):
        return f"nothing came for {timeout[1]:g} seconds", longer, True
    if caused(lib.DecodeError, requests.exceptions.ContentDecodingError):
        return "the reply is not compressed as its headers say", SOURCE_FAILS, True
    if begun:
        return "the reply broke off", SOURCE_FAILS, True
    if caused(lib.InvalidHeader):
        return "its reply has two lengths (Content-Length)", SOURCE_FAILS, True
    if any(type(one) in (http.client.HTTPException, http.client.LineTooLong) for one in causes):
        return "its reply has more headers, or longer ones, than can be read", SOURCE_FAILS, True
    if caused(ConnectionError, http.client.RemoteDisconnected):
        return "the connection was closed before the reply was complete", SOURCE_FAILS, True
    if caused(http.client.HTTPException, lib.ProtocolError):
        return "what came is no HTTP reply", "Look at base_url: is it the port of an HTTP server?", True
    inner = causes[-1]
    return f"no reply ({type(inner).__name__}: {masked(str(inner))[:80]})", reach, isinstance(inner, OSError)


def unsendable(error: Exception, method: str, url: str, *, prepared: bool) -> Failed:
    """A request that the libraries refuse to send. Their words quote headers, which may be secret."""
    import requests

    if isinstance(error, requests.exceptions.InvalidProxyURL):
        fact, cure = "the address of its proxy is none", "Look at proxies=, and at HTTPS_PROXY and its like."
    elif prepared or isinstance(error, requests.exceptions.InvalidHeader):
        fact = "a header can't be sent: it holds letters that no header may hold"
        cure = "Look at headers= and at the credentials: is there a line end behind the token?"
    else:
        fact, cure = "this is no address that can be asked", "Look at base_url and the path."
    return Failed(fact, "not sent", False, cure, method, mask_url(url))
