"""Big bodies into files: a file is there when it is whole."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING

from burler.config.secrets import masked
from burler.errors import StorageError
from burler.http import failed as fails
from burler.http.body import chunks, closing_what_is_left
from burler.localfile import hidden_file, remove_leftovers

if TYPE_CHECKING:
    import requests

    from burler.http.request import Request
    from burler.http.sending import Sender

_NO_LIMIT = 1 << 62
_NOTHING = "If there may be nothing, ask with client.get first: its status_code is 204 then."
_LEFTOVER_SECONDS = 24 * 60 * 60.0  # a nightly one that is killed must not fill the disk


def download(sender: Sender, request: Request, to: str | Path, *, max_bytes: int | None = None) -> Mapping[str, str]:
    """Put a body into a file; see :meth:`burler.http.Client.download`.

    The bytes go to a hidden file beside it, which takes the name at the end: a body that breaks off is asked for from
    its beginning, and nobody ever sees half of it.

    Raises:
        HttpError: there is no answer, or one without content (204). StorageError: the file can't be written.
    """
    path = Path(to)
    remove_leftovers(path, seconds=_LEFTOVER_SECONDS)
    most = _NO_LIMIT if max_bytes is None else max_bytes
    try:
        with hidden_file(path) as part:
            with open(part.path, "wb") as file:
                response = sender.send(request, read=lambda response: _write(response, file, most))
            if response.status_code in (204, 205):
                fact = f"{response.status_code} {response.reason}: there is nothing to put into a file"
                raise fails.of_reply(response, masked(fact), "bad body", _NOTHING, passing=False).error(1)
            part.path.replace(path)
    except OSError as error:
        raise StorageError(f"{path}: a download can't be written there: {error.strerror}.") from None
    return response.headers


def _write(response: requests.Response, file: IO[bytes], most_bytes: int) -> int:
    """Read a body into the file, from its beginning; gives its length.

    Raises:
        StorageError: the file can't be written. And as ``read_body``.
    """
    with _of_the_file(file):
        file.seek(0)
        file.truncate()
    response.__dict__["_content"] = b""
    with closing_what_is_left(response):
        for chunk in chunks(response, most_bytes):
            with _of_the_file(file):
                file.write(chunk)
    return file.tell()


@contextlib.contextmanager
def _of_the_file(file: IO[bytes]) -> Iterator[None]:
    """What goes wrong here is not to be taken for a broken connection."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"{file.name}: a download can't be written there: {error.strerror}.") from None
