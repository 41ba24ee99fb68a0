"""A batch file on a web server, as a stream: counted, so that no end is taken for granted."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from burler.batch.allowed import Allowed, Refused
from burler.batch.message import AGAIN
from burler.errors import BatchError
from burler.http.prepared import location_of
from burler.storage import location
from burler.storage.faults import said

if TYPE_CHECKING:
    import requests

Failing = Callable[..., BatchError]

_TIMEOUT = (10, 60)  # seconds to connect, and between two pieces
_TRIES = 3
_MOST_REDIRECTS = 10
_WAIT_SECONDS = 0.5
_PASSING = frozenset({429, 500, 502, 503, 504})
_TOTAL = re.compile(r"bytes (?:\d+-\d+|\*)/(\d+)")
_GONE = f"Is the URL right, and was the file not cleaned away? {AGAIN}"
_FORBIDDEN = f"A signed URL holds for a time only: sign for longer (batch_config.presign_seconds). {AGAIN}"


class WebFile(io.RawIOBase):
    """The body of a GET, as the server stores it: not unpacked. It can be read once.

    Args:
        headers: for the one origin that may see them (see ``Allowed.is_home``).
        failing: makes an error of a fact and a cure.

    Raises:
        BatchError: as ``failing`` makes it. Refused: it may not be read.
    """

    def __init__(self, url: str, headers: Mapping[str, str], allowed: Allowed, failing: Failing) -> None:
        super().__init__()
        self._failing = failing
        self._count = 0
        self._response = _asked(url, headers, allowed, failing)
        length = self._response.headers.get("Content-Length", "")
        self._size = int(length) if length.isdigit() else None

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer as far as bytes have come."""
        try:
            piece = self._response.raw.read(len(buffer), decode_content=False)
        except Exception as error:  # urllib3, ssl, socket: all are a connection that broke
            raise self._cut(said(error)) from None
        self._count += len(piece)
        if not piece and len(buffer) and self._size is not None and self._count < self._size:
            raise self._cut("the connection was closed")
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        """Close the connection."""
        if not self.closed and hasattr(self, "_response"):  # also what was never open is closed, by Python
            self._response.close()
        super().close()

    def _cut(self, fact: str) -> BatchError:
        of = "" if self._size is None else f" of {self._size:,}"
        return self._failing(f"broke off after {self._count:,}{of} bytes: {fact}", "Run again.")


def size_of(url: str, headers: Mapping[str, str], allowed: Allowed, failing: Failing) -> int | None:
    """The size of a file by a GET for its first byte: a URL that is signed for GET is good for nothing else.

    Raises:
        BatchError, Refused: see ``WebFile``.
    """
    with _asked(url, headers, allowed, failing, {"Range": "bytes=0-0"}) as response:
        if response.status_code == 200:
            length = response.headers.get("Content-Length", "")
            return int(length) if length.isdigit() else None
        total = _TOTAL.fullmatch(response.headers.get("Content-Range", ""))
        return int(total[1]) if total else None


def _asked(
    url: str, headers: Mapping[str, str], allowed: Allowed, failing: Failing, more: Mapping[str, str] | None = None
) -> requests.Response:
    """A reply with a body; a server that is busy is asked again.

    Args:
        more: headers that every server may see.
    """
    import requests

    good = (200, 206, 416) if more else (200,)
    for tried in range(1, _TRIES + 1):
        try:
            response = _followed(url, headers, allowed, {**(more or {}), "Accept-Encoding": "identity"})
        except (requests.ConnectionError, requests.Timeout) as error:
            fact = f"can't be read: no answer from its server ({_reason(error)})"
        except (requests.RequestException, ValueError) as error:
            raise failing(f"can't be read: {said(error)}") from None
        else:
            if response.status_code in good:
                return response
            fact = f"can't be read: its server answers {response.status_code} {response.reason}".rstrip()
            response.close()
            if response.status_code not in _PASSING:
                raise failing(
                    fact, _cure(response.status_code, bool(headers) and not allowed.is_home(response.url, url))
                )
        if tried < _TRIES:
            time.sleep(_WAIT_SECONDS * tried)
    raise failing(fact, "Run again.")


def _followed(url: str, headers: Mapping[str, str], allowed: Allowed, more: Mapping[str, str]) -> requests.Response:
    """The reply at the end of all redirects. Each address is looked at before it is asked, and sees the headers only if
    they are meant for it."""
    import requests

    first = url
    with requests.Session() as session:
        allowed.guard(session)
        for _ in range(_MOST_REDIRECTS + 1):
            try:
                allowed.web(url)
                if headers and url is first:
                    allowed.check_headers(url)
                response = session.get(
                    url,
                    headers={**(headers if allowed.is_home(url, first) else {}), **more},
                    # As the URL says, and nothing more: a password for this host in ~/.netrc would void a signature.
                    auth=lambda request: request,
                    timeout=_TIMEOUT,
                    stream=True,
                    allow_redirects=False,
                )
            except Refused as refused:
                if url is first:
                    raise
                raise Refused(
                    f"it redirects to '{location.shown(url.partition('?')[0])}': {refused}", refused.cure
                ) from None
            if not response.is_redirect:
                return response
            response.close()
            url = location_of(response.url, response.headers["Location"])
    raise requests.TooManyRedirects(f"more than {_MOST_REDIRECTS} redirects")


def _cure(status: int, is_stranger: bool) -> str:
    if status in (404, 410):
        return _GONE
    if status in (401, 403) and is_stranger:
        return "The headers of the storage options go to the first server of --allow alone, and this is another one."
    return _FORBIDDEN if status in (400, 401, 403) else ""


def _reason(error: Exception) -> str:
    """Why there was no answer, without the URL that the library puts into it."""
    inner: Any = error.args[0] if error.args else error
    inner = getattr(inner, "reason", None) or inner
    return said(inner).rpartition(": ")[2] or type(error).__name__
