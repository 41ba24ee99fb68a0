"""The helpdesk's API: pages of rows, as bytes, over one requests.Session for each thread."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urljoin

import requests

Params = Mapping[str, str | None]


class ApiError(Exception):
    """The helpdesk did not answer as it should."""


class Unavailable(ApiError):
    """It is busy, slow or broken (429, 5xx, no answer in time): asking again may help."""


class NotFound(ApiError):
    """There is no such thing (404), or not any more, or not yet."""


class Api:
    """A client that several threads may use at once.

    Args:
        url: where the helpdesk is, such as http://127.0.0.1:8765.
        timeout_seconds: how long to wait for a connection, and for each reply.
    """

    def __init__(self, url: str, timeout_seconds: float = 30.0) -> None:
        self._url = url.rstrip("/") + "/"
        self._timeout_seconds = timeout_seconds
        self._local = threading.local()
        self._sessions: list[requests.Session] = []

    @property
    def session(self) -> requests.Session:
        """This thread's Session: requests does not say that one may be shared."""
        if not hasattr(self._local, "session"):
            self._local.session = requests.Session()
            self._sessions.append(self._local.session)  # one step: no lock
        session: requests.Session = self._local.session
        return session

    def get(self, path: str, params: Params | None = None, *, headers: Params | None = None) -> requests.Response:
        """GET one reply: 200, or 304 where `headers` ask whether there is anything new.

        Args:
            path: below the helpdesk's address, or a whole address.
            params: for the address. Those that are None are left out, as are such headers.

        Raises:
            Unavailable, NotFound, ApiError: any other answer, or none.
        """
        address = urljoin(self._url, path.lstrip("/"))
        try:
            reply = self.session.get(address, params=params, headers=headers, timeout=self._timeout_seconds)
        except (requests.ConnectionError, requests.Timeout) as error:
            raise Unavailable(f"GET {address}: no answer: {error}") from error
        if reply.status_code in (200, 304):
            return reply
        text = f"GET {address}: {reply.status_code} {reply.reason}: {reply.text[:200]}"
        if reply.status_code == 429 or reply.status_code >= 500:
            raise Unavailable(text)
        raise (NotFound if reply.status_code in (404, 410) else ApiError)(text)

    def pages(self, path: str, **params: str | None) -> Iterator[bytes]:
        """Yield the pages of a list, each a JSON array, as long as the replies name a next one."""
        reply = self.get(path, params)
        yield reply.content
        while following := reply.links.get("next"):
            reply = self.get(urljoin(reply.url, following["url"]))
            yield reply.content

    def rows(self, path: str, **params: str | None) -> Iterator[dict[str, Any]]:
        """Yield the rows of a list as dicts, for who has to look into them."""
        for page in self.pages(path, **params):
            yield from json.loads(page)

    def close(self) -> None:
        """Close all connections."""
        for session in self._sessions:
            session.close()
