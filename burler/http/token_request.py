"""Requests to token servers (RFC 6749, section 4 to 6): the form, who asks, and what is said of a refusal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qsl, quote

import msgspec

from burler.clock import FunctionClock
from burler.config.secrets import hide, masked
from burler.errors import CredentialsError, DeclarationError
from burler.http.client import Client, basic_header
from burler.http.limits import Limiter
from burler.http.masking import mask_url
from burler.http.options import Options
from burler.http.request import Request
from burler.http.sending import Sender
from burler.http.token_store import Token, TokenStore, token_of
from burler.http.wire import make_session

if TYPE_CHECKING:
    import requests


ClientAuth = Literal["basic", "body"]

_REFUSALS = frozenset(range(400, 500)) - {408, 425, 429}  # those are tried again
_MOST_BYTES = 1 << 20
_TEXT = 300  # of what the server says
_CURES = {
    "invalid_grant": "Log in again, and put the new refresh_token into the config.",
    "invalid_client": "Check client_id and client_secret{other}.",
    "unauthorized_client": "The source does not allow this client this kind of login: see its settings there.",
    "unsupported_grant_type": "The source has another kind of login: see its documentation.",
    "invalid_scope": "Check scope=.",
    "invalid_request": "Does the source want more form fields (extra=){other}?",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenServer:
    """Where tokens come from, and how this client shows who it is.

    Attributes:
        what: the function of the author's that asks, for errors.
        client_auth: "basic": in the Authorization header, as RFC 6749 would have it; "body": as form fields.
        extra: more form fields.
        headers: more headers.
        cures: what to do, by the ``error`` of a refusal, where it is not the usual.
    """

    what: str
    url: str
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    client_auth: ClientAuth = "basic"
    extra: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    cures: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.url, str) or not self.url.startswith(("https://", "http://")):
            raise DeclarationError(f"{self.what}: token_url must begin with https://.")
        if self.client_auth not in ("basic", "body"):
            raise DeclarationError(f"{self.what}: client_auth is 'basic' or 'body'.")
        if self.client_secret is not None and not self.client_id:
            raise DeclarationError(f"{self.what}: client_id is empty. Is it in the config?")
        if self.client_secret is not None and not isinstance(self.client_secret, str):
            raise DeclarationError(f"{self.what}: client_secret must be a text. Is it in the config?")
        if self.client_secret:
            hide(self.client_secret)

    def __str__(self) -> str:
        return f"{self.what} ({mask_url(self.url)})"

    def token(self, form: Mapping[str, str | None], client: Client | None, store: TokenStore) -> Token:
        """Ask for a token, and keep it.

        Raises:
            as ``ask``; CredentialsError: the reply's token can't be used.
        """
        token = token_of(self.ask(form, client), what=str(self))
        store.keep(token)
        return token

    def ask(self, form: Mapping[str, str | None], client: Client | None) -> Mapping[str, Any]:
        """Send a form; give the reply, an object that has ``access_token``.

        Args:
            form: fields; those without a value are left out.
            client: whose session is used, without its credentials and headers; a new one if None.

        Raises:
            CredentialsError: the server refuses, or its reply has no token.
            HttpError: the server fails, or does not answer, also after retries.
        """
        who = self.client_id or ""
        fields = {**form, **self.extra}
        headers = {"Accept": "application/json", **self.headers}
        if self.client_secret is None or self.client_auth == "body":
            fields = {"client_id": self.client_id, "client_secret": self.client_secret, **fields}
        else:
            # RFC 6749, 2.3.1: both are encoded before they are joined. A space as %20, which those servers understand,
            # too, that decode it as in a URL and not as in a form.
            headers["Authorization"] = basic_header(*(quote(text, safe="") for text in (who, self.client_secret)))
        return self._judged(_post(self.url, {key: value for key, value in fields.items() if value}, headers, client))

    def _judged(self, response: requests.Response) -> Mapping[str, Any]:
        reply = _decoded(response)
        if response.status_code < 300 and isinstance(reply, Mapping) and reply.get("access_token"):
            return reply
        code, text = _refusal(reply)
        cure = self.cures.get(code) or _CURES.get(code, "Check token_url and the credentials in the config.")
        other = "body" if self.client_auth == "basic" else "basic"
        hint = f"; some servers want client_auth='{other}'" if self.client_secret else ""
        said = f" {code}" if code else " no access_token"
        raise CredentialsError(
            f"{self}: the server says {response.status_code}{said}{': ' + text if text else ''}\n"
            f"  {cure.format(other=hint)}",
            status=response.status_code,
            url=mask_url(self.url),
            method="POST",
            body=masked(response.text[:_TEXT]).encode() if response.status_code >= 400 else b"",
        )


def _post(url: str, form: Mapping[str, str], headers: Mapping[str, str], client: Client | None) -> requests.Response:
    """Send a form past methods that the author may have replaced, and past what the running stream knows of its source.
    It is sent again after a lost reply, too: that one may have used up the refresh token, but then it is lost anyway.
    """
    request = Request(
        "POST", url, data=form, headers=headers, retry=True, max_response_bytes=_MOST_BYTES, allow_statuses=_REFUSALS
    )
    if client is not None:
        return client._sender.bare().send(request)
    with make_session(None) as session:
        return Sender(session, Options(), None, Limiter(None, None), FunctionClock()).send(request)


def _decoded(response: requests.Response) -> Any:
    """The reply's object: JSON, or a form, as some servers send it in spite of what was asked for."""
    kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind == "application/x-www-form-urlencoded":
        return dict(parse_qsl(response.text))
    try:
        return msgspec.json.decode(response.content)
    except (msgspec.DecodeError, RecursionError):
        return dict(parse_qsl(response.text)) if kind == "text/plain" else None


def _refusal(reply: Any) -> tuple[str, str]:
    """The code and the words of a refusal: RFC 6749's form, or an object below ``error``, as some have it."""
    if not isinstance(reply, Mapping):
        return "", ""
    error: Any = reply.get("error")
    text: Any = reply.get("error_description") or reply.get("message")
    if isinstance(error, Mapping):
        error, text = error.get("code") or error.get("type"), error.get("message")
    shown = masked(" ".join(str(text).split()))[:_TEXT] if text else ""
    return (masked(str(error))[:_TEXT] if error else ""), shown
