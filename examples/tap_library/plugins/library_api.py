"""What the library's server does beside what datasette does: it asks for a token, says whether anything has changed,
and limits how often it is asked. datasette loads this file (`--plugins-dir`).

    LIBRARY_TOKEN         what `Authorization: Bearer ...` must say; without it nobody is let in
    LIBRARY_RATE_LIMIT    requests in a window, 0 for any number (default)
    LIBRARY_RATE_SECONDS  how long a window is (default 1)
    LIBRARY_LOG           a file that gets a JSON line for each request
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from typing import Any

from datasette import hookimpl

Message = dict[str, Any]
Headers = list[tuple[bytes, bytes]]
Send = Callable[[Message], Awaitable[None]]

# Tables that come whole in one reply, and what each of them says of itself.
_WITH_ETAG = ("branches", "holidays")
_WITH_LAST_MODIFIED = ("opening_hours", "closings")
_TABLE = re.compile(r"/library/(\w+)\.json")


@hookimpl
def asgi_wrapper(datasette: Any) -> Callable[[Any], Any]:
    """Stand before datasette."""
    limit = _Limit(int(os.environ.get("LIBRARY_RATE_LIMIT", "0")), float(os.environ.get("LIBRARY_RATE_SECONDS", "1")))

    def wrap(app: Any) -> Any:
        async def answer(scope: dict[str, Any], receive: Any, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            asked = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
            held = _Held()
            if not _let_in(asked.get("authorization", "")):
                held.refuse(401, "a token is needed: Authorization: Bearer ...", ("www-authenticate", "Bearer"))
            elif not limit.take():
                held.refuse(429, "too many requests", ("retry-after", str(limit.left())))
            else:
                await app(scope, receive, held.take)
                await _say_what_it_is(datasette, scope, held, asked)
            held.add(*limit.headers())
            _log(scope, asked, held)
            await held.pass_on(send)

        return answer

    return wrap


class _Held:
    """A reply that is held back until it is whole."""

    def __init__(self) -> None:
        self.status = 500
        self.headers: Headers = []
        self.body = b""

    async def take(self, message: Message) -> None:
        """What datasette calls in place of `send`."""
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], list(message["headers"])
        else:
            self.body += message.get("body", b"")

    def add(self, *pairs: tuple[str, str]) -> None:
        """Add headers."""
        self.headers += [(name.encode(), value.encode()) for name, value in pairs]

    def refuse(self, status: int, why: str, *headers: tuple[str, str]) -> None:
        """Make it another reply: no."""
        self.status, self.body = status, json.dumps({"ok": False, "error": why}).encode()
        self.headers = [(b"content-type", b"application/json")]
        self.add(*headers)

    async def pass_on(self, send: Send) -> None:
        """Send it."""
        if self.status != 304:
            self.headers = [pair for pair in self.headers if pair[0].lower() != b"content-length"]
            self.add(("content-length", str(len(self.body))))
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        await send({"type": "http.response.body", "body": self.body})


class _Limit:
    """So many requests in a window; then no more until the next one begins."""

    def __init__(self, requests: int, seconds: float) -> None:
        self.requests, self.seconds = requests, seconds
        self.begun, self.taken = 0.0, 0

    def take(self) -> bool:
        """Whether one more is allowed."""
        now = time.time()
        if now - self.begun >= self.seconds:
            self.begun, self.taken = now, 0
        if self.requests and self.taken >= self.requests:
            return False
        self.taken += 1
        return True

    def left(self) -> int:
        """Whole seconds to the next window, at least one."""
        return max(1, round(self.begun + self.seconds - time.time() + 0.5))

    def headers(self) -> list[tuple[str, str]]:
        """What the reply says of the limit."""
        if not self.requests:
            return []
        return [
            ("x-ratelimit-limit", str(self.requests)),
            ("x-ratelimit-remaining", str(self.requests - self.taken)),
            ("x-ratelimit-reset", str(self.left())),
        ]


def _let_in(authorization: str) -> bool:
    token = os.environ.get("LIBRARY_TOKEN", "")
    return bool(token) and hmac.compare_digest(authorization.encode(), f"Bearer {token}".encode())


async def _say_what_it_is(datasette: Any, scope: dict[str, Any], held: _Held, asked: dict[str, str]) -> None:
    """Add ETag or Last-Modified to a table that comes whole; make it 304 if that is what was asked for."""
    match = _TABLE.fullmatch(scope["path"])
    # Only where the body is the rows and nothing else: other shapes say how long the query took.
    if match is None or held.status != 200 or b"_shape=array" not in scope["query_string"]:
        return
    same = False
    if match[1] in _WITH_ETAG:
        etag = f'W/"{hashlib.sha256(held.body).hexdigest()[:16]}"'
        held.add(("etag", etag))
        same = etag in [one.strip() for one in asked.get("if-none-match", "").split(",")]
    elif match[1] in _WITH_LAST_MODIFIED:
        found = await datasette.get_database("library").execute(
            "select at from last_changes where name = ?", [match[1]]
        )
        changed = datetime.fromisoformat(found.single_value())
        held.add(("last-modified", format_datetime(changed.astimezone(UTC), usegmt=True)))
        same = _since(asked.get("if-modified-since", "")) >= changed
    if same:
        held.status, held.body = 304, b""
        held.headers = [pair for pair in held.headers if pair[0].lower() not in (b"content-type", b"content-length")]


def _since(header: str) -> datetime:
    """The time an `If-Modified-Since` names; long ago if it names none (RFC 9110 wants such ones ignored)."""
    try:
        # "-0000" and the like come back without a zone; HTTP knows GMT alone.
        return (
            parsedate_to_datetime(header).astimezone(UTC)
            if header.endswith(" GMT")
            else datetime.min.replace(tzinfo=UTC)
        )
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)


def _log(scope: dict[str, Any], asked: dict[str, str], held: _Held) -> None:
    path = os.environ.get("LIBRARY_LOG")
    if not path:
        return
    query = scope["query_string"].decode("latin-1")
    said = {name: asked[name] for name in ("if-none-match", "if-modified-since", "user-agent") if name in asked}
    line = {"method": scope["method"], "path": scope["path"], "query": query, "status": held.status, **said}
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
