"""A token server and a source behind it, over real sockets: every token is a canary, every request is written down."""

from __future__ import annotations

import base64
import contextlib
import json
import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, unquote_plus

from burler.testing import canary
from support import servers

CLIENT_ID = "tap id/1"  # needs encoding, as RFC 6749 has it for Basic


class TokenServer:
    """What the server knows, and how it behaves.

    Attributes:
        rotates: a new refresh token with each access token; the old one is refused from then on.
        expires_in: what replies say; None: nothing.
        uses: requests that an access token is good for; None: any number.
        first_uses: the same of the first tokens, one each.
        answers: replies to token requests in place of the next real ones: (status, headers, body).
        asked: forms of the token requests, each with "client": how the client showed who it is.
        logins: what was sent to /login, which gives a session to everybody.
        seen: (path, credentials) of the requests for rows, status included.
        gate: token requests wait until it is set; ``waiting`` counts those that have come there.
    """

    def __init__(self) -> None:
        self.client_secret = canary("client+secret/ü%")
        self.refresh_token = canary("refresh-first")
        self.rotates = True
        self.expires_in: Any = 3600
        self.uses: int | None = None
        self.first_uses: list[int] = []
        self.answers: list[tuple[int, dict[str, str], bytes]] = []
        self.asked: list[dict[str, str]] = []
        self.seen: list[tuple[str, str | None, int]] = []
        self.valid: dict[str, int | None] = {}
        self.gate = threading.Event()
        self.gate.set()
        self.waiting = 0
        self.slow_seconds = 0.0
        self.rows_limit = 1
        self.logins: list[Any] = []
        self.url = ""
        self._lock = threading.Lock()

    @property
    def token_url(self) -> str:
        return f"{self.url}/token"

    def oauth(self, **more: Any) -> dict[str, Any]:
        """Arguments for the oauth2 functions."""
        return {"token_url": self.token_url, "client_id": CLIENT_ID, "client_secret": self.client_secret, **more}

    def new_token(self) -> str:
        """An access token that counts from now on."""
        token = canary("access")
        self.valid[token] = self.first_uses.pop(0) if self.first_uses else self.uses
        return token

    def token_reply(self, form: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        """Judge a token request as RFC 6749 would."""
        with self._lock:
            self.asked.append(form)
            if self.answers:
                return self.answers.pop(0)
            if form["client"] not in ("basic", "body"):
                return refusal(401, "invalid_client", "who are you?")
            reply: dict[str, Any] = {"token_type": "Bearer"}
            if self.expires_in is not None:
                reply["expires_in"] = self.expires_in
            if form.get("grant_type") == "refresh_token":
                if form.get("refresh_token") != self.refresh_token:
                    return refusal(400, "invalid_grant", f"unknown: {form.get('refresh_token')}")
                if self.rotates:
                    reply["refresh_token"] = self.refresh_token = canary("refresh-next")
            elif form.get("grant_type") != "client_credentials":
                return refusal(400, "unsupported_grant_type")
            return answer({**reply, "access_token": self.new_token()})

    def client_of(self, headers: Any, form: dict[str, str]) -> str:
        """How the client showed who it is: "basic", "body", or what is wrong."""
        given = headers.get("authorization", "")
        if given.startswith("Basic "):
            pair = base64.b64decode(given[6:]).decode().partition(":")
            who, how = (unquote_plus(pair[0]), unquote_plus(pair[2])), "basic"
        else:
            who, how = (form.get("client_id", ""), form.get("client_secret", "")), "body"
        return how if who == (CLIENT_ID, self.client_secret) else f"wrong {how}"

    def rows_status(self, token: str | None) -> int:
        """200 if a token counts."""
        with self._lock:
            uses = self.valid.get(token or "", 0)
            if uses is None:
                return 200
            if uses <= 0:
                return 401
            self.valid[token or ""] = uses - 1
            return 200


def answer(body: Any, status: int = 200, kind: str = "application/json") -> tuple[int, dict[str, str], bytes]:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return status, {"Content-Type": kind}, content


def refusal(status: int, error: str, text: str = "") -> tuple[int, dict[str, str], bytes]:
    return answer({"error": error, **({"error_description": text} if text else {})}, status)


@contextlib.contextmanager
def serving(server: TokenServer | None = None) -> Iterator[TokenServer]:
    """Run a token server on a free port."""
    state = server or TokenServer()

    def reply(asked: servers.Asked) -> tuple[int, dict[str, str], bytes]:
        if asked.path == "/login":
            state.logins.append(asked.json)
            return answer({"session": state.new_token()})
        if asked.method == "POST":
            form = dict(parse_qsl(asked.body.decode(), keep_blank_values=True))
            state.waiting += 1
            state.gate.wait(20)
            time.sleep(state.slow_seconds)
            return state.token_reply({**form, "client": state.client_of(asked.headers, form)})
        credentials = asked.headers.get("authorization")
        token = (credentials or "").removeprefix("Bearer ")
        status = state.rows_status(token)
        state.seen.append((asked.raw, credentials, status))
        if status != 200:
            return refusal(status, "invalid_token", f"not {token}")
        begin = int(asked.query.get("from", 0))
        return answer([{"id": begin + i} for i in range(state.rows_limit)])

    with servers.serving(reply) as running:
        state.url = running.url
        try:
            yield state
        finally:
            state.gate.set()
