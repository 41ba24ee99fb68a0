"""What an author asks with: get, post, json, and what each of them may say."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from burler.http import unfollowed
from burler.http.decoding import decode_json
from burler.http.misspelt import request_of

if TYPE_CHECKING:
    import requests

    from burler.http.request import Request
    from burler.http.sending import Check


class Asked(TypedDict, total=False):
    """What one request may say beside its path; see :class:`burler.http.Request`."""

    params: Mapping[str, Any] | None
    headers: Mapping[str, Any] | None
    json: Any
    data: Any
    endpoint: str | None
    retry: bool | None
    timeout_seconds: float | tuple[float, float] | None
    max_response_bytes: int | None
    allow_statuses: Collection[int]


class Checked(Asked, total=False):
    """The same, with ``check``: called with each reply that would be an answer; ValueError makes it be asked for
    again."""

    check: Check | None


class Paged(TypedDict, total=False):
    """What a request for pages may say beside its path."""

    params: Mapping[str, Any] | None
    paginator: Any
    records_path: str | Sequence[str] | None
    method: str
    json: Any
    headers: Mapping[str, Any] | None
    endpoint: str | None
    retry: bool | None
    timeout_seconds: float | tuple[float, float] | None
    max_response_bytes: int | None


class Verbs:
    """The verbs of HTTP over one method ``send``."""

    def send(self, request: Request, *, check: Check | None = None) -> requests.Response:
        """Send a request; see :meth:`burler.http.Client.send`."""
        raise NotImplementedError

    def request(
        self, method: str, path: str, *, check: Check | None = None, **asked: Unpack[Asked]
    ) -> requests.Response:
        """Ask once, with all the tries it takes; gives the reply, its body read.

        Args:
            path: behind ``base_url``, or a whole URL.

        Raises:
            NotFoundError, CredentialsError, NoAnswerError, HttpError: there is no answer.
        """
        return self._ask(request_of(method.lower(), method, path, asked, ["check"]), check)

    def _ask(self, request: Request, check: Check | None) -> requests.Response:
        response = self.send(request, check=check)
        unfollowed.answered(self, request, response)
        return response

    def get(self, path: str, **asked: Unpack[Checked]) -> requests.Response:
        """Ask with GET; see ``request``."""
        return self.request("GET", path, **asked)

    def post(self, path: str, **asked: Unpack[Checked]) -> requests.Response:
        """Send with POST; it is not sent again unless ``retry=True`` says so. See ``request``."""
        return self.request("POST", path, **asked)

    def put(self, path: str, **asked: Unpack[Checked]) -> requests.Response:
        """Send with PUT; see ``request``."""
        return self.request("PUT", path, **asked)

    def patch(self, path: str, **asked: Unpack[Checked]) -> requests.Response:
        """Send with PATCH; it is not sent again unless ``retry=True`` says so. See ``request``."""
        return self.request("PATCH", path, **asked)

    def delete(self, path: str, **asked: Unpack[Checked]) -> requests.Response:
        """Send with DELETE; see ``request``."""
        return self.request("DELETE", path, **asked)

    def head(self, path: str, **asked: Unpack[Checked]) -> requests.Response:
        """Ask with HEAD; see ``request``."""
        return self.request("HEAD", path, **asked)

    def json(self, path: str, *, method: str = "GET", check: Check | None = None, **asked: Unpack[Asked]) -> Any:
        """What a reply says in JSON: numbers with a fraction as Decimal, every digit kept. None if it has no body,
        or is no JSON but has a status that ``allow_statuses`` names.

        Raises:
            HttpError: there is no answer, or none in JSON.
        """
        found: list[Any] = [None]

        def read(response: requests.Response) -> None:
            found[0] = None
            if 200 <= response.status_code < 300 and response.status_code not in (204, 205):
                found[0] = decode_json(response.content)
            elif response.content:
                with contextlib.suppress(ValueError):
                    found[0] = decode_json(response.content)
            if check is not None:
                check(response)

        self._ask(request_of("json", method, path, asked, ["method", "check"]), read)
        return found[0]
