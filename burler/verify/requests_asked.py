"""One request as it is judged: its endpoint, what makes two of them the same, and what it shows to whom."""

from __future__ import annotations

import hashlib
import ipaddress
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import msgspec

from burler.config.secrets import masked
from burler.http.masking import is_secret_name, mask_path, mask_url

Pair = tuple[str, str]

_UUID = re.compile(r"\{?[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}\}?", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?\d[\d.,:_-]*")
_HEX = re.compile(r"(?=.*\d)[0-9a-f]{16,}", re.IGNORECASE)
_COUNTED = re.compile(r"[a-z]+[-_]\d{2,}", re.IGNORECASE)
_LONG = re.compile(r"(?=.*\d)[\w.:~+=-]{20,}")
_MOST_BODY = 1 << 20
_SHOWN = 200

# What differs between two requests for the same thing.
_VOLATILE = frozenset({
    "connection", "content-length", "cookie", "date", "expect", "host", "keep-alive", "proxy-authorization",
    "proxy-connection", "te", "traceparent", "tracestate", "transfer-encoding", "user-agent", "x-amz-date",
    "x-b3-traceid", "x-correlation-id", "x-request-id",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Asked:
    """A request on its way.

    Attributes:
        url: whole, with its query. It may hold secrets: what is kept of it is masked.
        body: None, bytes or text; anything else is sent once only and not looked at.
        timeout: whether there is one; None where nobody can see it.
        verified: False where the server's certificate is not looked at.
    """

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    timeout: bool | None = None
    verified: bool = True

    @property
    def parts(self) -> SplitResult:
        """The URL, taken apart."""
        return parts_of(self.url)

    @property
    def shown(self) -> str:
        """The URL as findings may show it: masked, and not too long."""
        return mask_url(self.url)[:_SHOWN]

    def header(self, name: str) -> str:
        """The value of a header, whatever its case; "" without it."""
        return next((str(value) for key, value in self.headers.items() if key.lower() == name), "")


def parts_of(url: str) -> SplitResult:
    """A URL taken apart; of one that is none, nothing."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


def endpoint_of(asked: Asked) -> str:
    """``GET /contacts/{id}/notes``: the path with ``{id}`` for what names one thing."""
    segments = masked(mask_path(asked.parts.path or "/")).split("/")
    return f"{asked.method} {'/'.join(map(_named, segments))}"[:_SHOWN]


def _named(segment: str) -> str:
    text = unquote(segment)
    if "@" in text or any(form.fullmatch(text) for form in (_NUMBER, _UUID, _HEX, _LONG, _COUNTED)):
        return "{id}"
    return segment


def pairs_of(asked: Asked) -> list[Pair]:
    """What was asked for: the parameters of the query and the fields of a form or of a JSON object, one level of
    objects in it included (GraphQL's variables)."""
    return [*parse_qsl(asked.parts.query, keep_blank_values=True), *_of_body(asked)]


def _of_body(asked: Asked) -> list[Pair]:
    body = _bytes(asked.body)
    if not body:
        return []
    kind = asked.header("content-type").lower()
    if "form-urlencoded" in kind:
        return [(f"body.{name}", value) for name, value in parse_qsl(body.decode("latin-1"), keep_blank_values=True)]
    try:
        fields = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return [("body", hashlib.blake2b(body, digest_size=16).hexdigest())]
    found: list[Pair] = []
    for name, value in fields.items():
        inner = value.items() if isinstance(value, dict) else ()
        found += [(f"body.{name}.{key}", _text(one)) for key, one in inner] or [(f"body.{name}", _text(value))]
    return found


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _bytes(body: Any) -> bytes | None:
    """A body that can be looked at; None otherwise."""
    if isinstance(body, str):
        body = body.encode()
    return bytes(body) if isinstance(body, bytes | bytearray) and len(body) <= _MOST_BODY else None


def digest_of(asked: Asked, *, headers: bool) -> int | None:
    """A number that two requests for the same thing share; None where the body can't be looked at.

    Args:
        headers: whether those count that may change the answer (an account, a page, a range).
    """
    if asked.body is not None and _bytes(asked.body) is None:
        return None
    parts = asked.parts
    query = sorted(parse_qsl(parts.query, keep_blank_values=True))
    what: list[Any] = [asked.method, parts.scheme, parts.netloc, parts.path, query, _bytes(asked.body) or b""]
    if headers:
        what.append(sorted((n.lower(), str(v)) for n, v in asked.headers.items() if n.lower() not in _VOLATILE))
    return number_of(what)


def asks_for_a_schema(asked: Asked) -> bool:
    """Whether it is GraphQL's question for the types of a server, which has no rows: many servers refuse it."""
    body = _bytes(asked.body)
    return body is not None and any(word in body for word in (b"__schema", b"__type("))


def is_login(asked: Asked) -> bool:
    """Whether it asks for a token (RFC 6749, section 4)."""
    return asked.method == "POST" and b"grant_type" in (_bytes(asked.body) or b"")


def number_of(what: Any) -> int:
    """A digest of plain values."""
    return int.from_bytes(hashlib.blake2b(repr(what).encode("utf-8", "replace"), digest_size=8).digest(), "big")


def shows_credentials(asked: Asked) -> str:
    """What of a request shows who asks: "the header Authorization"; "" where nothing does. Never its value."""
    for name in asked.headers:
        if name.lower() == "authorization" or (is_secret_name(name) and "cookie" not in name.lower()):
            return f"the header {name}"
    if "@" in asked.parts.netloc:
        return "a user in the URL"
    for name, value in parse_qsl(asked.parts.query):
        if value and is_secret_name(name):
            return f"the parameter {name}"
    return ""


def is_this_machine(host: str) -> bool:
    """Whether a host is the one we run on; no name is looked up."""
    host = host.lower().rstrip(".")
    if host in ("", "localhost", socket.gethostname().lower()) or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
