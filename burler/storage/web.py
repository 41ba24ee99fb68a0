"""Files on web servers, as streams: counted, so that no end is taken for granted. Who asks says by a ``Gate`` which
addresses may be asked, and who may see the headers.
"""

from __future__ import annotations

import io
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from burler.http.origins import same_origin
from burler.http.prepared import location_of
from burler.storage import location
from burler.storage.faults import said

if TYPE_CHECKING:
    import requests


class ReadFault(Exception):
    """A file that can't be read, as what is said of it.

    Attributes:
        cure: what to do.
    """

    def __init__(self, fact: str, cure: str = "") -> None:
        super().__init__(fact)
        self.cure = cure


class Refused(ReadFault):
    """Something that may not be read. ``cure``: what to do if it should be."""


class Gate:
    """What may be read, where others than who reads have named it: here, all. Heirs raise ``Refused``."""

    def path(self, path: Path) -> Path:
        """The file of this machine to be opened for an absolute path."""
        return path

    def web(self, url: str) -> None:
        """Look at an http(s) address, before it is asked."""

    def store(self, url: str, options: Mapping[str, Any]) -> None:
        """Look at a URL that fsspec is to open with such options."""

    def opened_store(self, store: Any) -> None:
        """Look at fsspec's store of a URL."""

    def is_home(self, url: str, first: str) -> bool:
        """Whether an http(s) address may see the headers among the options. They go to one origin.

        Args:
            first: the address that was asked at first, if ``url`` is one that it redirects to.
        """
        return same_origin(url, first)

    def check_headers(self, url: str) -> None:
        """Look whether there is a host at all that the headers may go to."""

    def guard(self, session: requests.Session) -> None:
        """Have a session look at who answers, before it asks."""


_TIMEOUT = (10, 60)  # seconds to connect, and between two pieces
_TRIES = 3
_MOST_REDIRECTS = 10
_WAIT_SECONDS = 0.5
_CURES = {
    **dict.fromkeys((400, 401, 403), "A signed URL holds for a time only: sign for longer."),
    **dict.fromkeys((404, 410), "Is the URL right, and was the file not cleaned away?"),
}
_STRANGER = "The headers among the options go to one server alone, and this is another one."
_PASSING = frozenset({429, 500, 502, 503, 504})


class WebFile(io.RawIOBase):
    """The body of a GET, as the server stores it: not unpacked. It can be read once. ``size_bytes``: as the server
    says; None where it does not.

    Args:
        headers: for the one origin that may see them (see ``Gate.is_home``).

    Raises:
        ReadFault: it can't be read, or may not; so does reading later on.
    """

    def __init__(self, url: str, headers: Mapping[str, str], gate: Gate) -> None:
        super().__init__()
        self._count = 0
        self._response = _asked(url, headers, gate)
        length = self._response.headers.get("Content-Length", "")
        self.size_bytes = int(length) if length.isdigit() else None

    def tell(self) -> int:
        """How many bytes have come."""
        return self._count

    def read(self, size: int = -1, /) -> bytes:
        """As many bytes as have come, at most ``size``; b"" at the end."""
        try:
            piece: bytes = self._response.raw.read(size, decode_content=False)
        except Exception as error:  # urllib3, ssl, socket: all are a connection that broke
            raise self._cut(said(error)) from None
        self._count += len(piece)
        if not piece and size and self.size_bytes is not None and self._count < self.size_bytes:
            raise self._cut("the connection was closed")
        return piece

    def close(self) -> None:
        """Close the connection."""
        if not self.closed and hasattr(self, "_response"):  # also what was never open is closed, by Python
            self._response.close()
        super().close()

    def _cut(self, fact: str) -> ReadFault:
        of = "" if self.size_bytes is None else f" of {self.size_bytes:,}"
        return ReadFault(f"broke off after {self._count:,}{of} bytes: {fact}", "Run again.")


def _asked(url: str, headers: Mapping[str, str], gate: Gate) -> requests.Response:
    """A reply with a body; a server that is busy is asked again."""
    import requests

    for tried in range(1, _TRIES + 1):
        try:
            response = _followed(url, headers, gate)
        except (requests.ConnectionError, requests.Timeout) as error:
            fact = f"can't be read: no answer from its server ({_reason(error)})"
            cure = "Is the host the right one, and reachable from here? If it is, run again."
        except (requests.RequestException, ValueError) as error:
            raise ReadFault(f"can't be read: {said(error)}") from None
        else:
            if response.status_code == 200:
                return response
            fact = f"can't be read: its server answers {response.status_code} {response.reason}".rstrip()
            cure = "Run again."
            response.close()
            if response.status_code not in _PASSING:
                is_stranger = bool(headers) and not gate.is_home(response.url, url)
                raise ReadFault(fact, _STRANGER if is_stranger else _CURES.get(response.status_code, ""))
        if tried < _TRIES:
            time.sleep(_WAIT_SECONDS * tried)
    raise ReadFault(fact, cure)


def _followed(url: str, headers: Mapping[str, str], gate: Gate) -> requests.Response:
    """The reply at the end of all redirects. Each address is looked at before it is asked, and sees the headers only if
    they are meant for it."""
    import requests

    first = url
    with requests.Session() as session:
        gate.guard(session)
        for _ in range(_MOST_REDIRECTS + 1):
            try:
                gate.web(url)
                if headers and url is first:
                    gate.check_headers(url)
                response = session.get(
                    url,
                    headers={**(headers if gate.is_home(url, first) else {}), "Accept-Encoding": "identity"},
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


def _reason(error: Exception) -> str:
    """Why there was no answer, without the URL that the library puts into it."""
    inner: Any = error.args[0] if error.args else error
    inner = getattr(inner, "reason", None) or inner
    return said(inner).rpartition(": ")[2] or type(error).__name__
