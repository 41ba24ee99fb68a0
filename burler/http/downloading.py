"""Big bodies into files: a file is there when it is whole."""

from __future__ import annotations

import contextlib
import re
import secrets
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING

from burler.config.watched import clean
from burler.errors import StorageError
from burler.http import failed as fails
from burler.http.body import chunks, closing_what_is_left

if TYPE_CHECKING:
    import requests

    from burler.http.client import Client
    from burler.http.request import Request

_NO_LIMIT = 1 << 62
_NOTHING = "If there may be nothing, ask with client.get first: its status_code is 204 then."
_LEFTOVER_SECONDS = 24 * 60 * 60.0


def download(client: Client, request: Request, to: str | Path, *, max_bytes: int | None = None) -> Mapping[str, str]:
    """Put a body into a file; see :meth:`burler.http.Client.download`.

    The bytes go to a hidden file beside it, which takes the name at the end: a body that breaks off is asked for from
    its beginning, and nobody ever sees half of it.

    Raises:
        HttpError: there is no answer, or one without content (204). StorageError: the file can't be written.
    """
    path = Path(to)
    _remove_leftovers(path)
    most = _NO_LIMIT if max_bytes is None else max_bytes
    part = path.with_name(f".{path.name[:100]}.{secrets.token_hex(6)}.part")
    try:
        with open(part, "xb") as file:
            response = client._sender.send(request, read=lambda response: _write(response, file, most))
        if response.status_code in (204, 205):
            fact = f"{response.status_code} {response.reason}: there is nothing to put into a file"
            raise fails.of_reply(response, clean(fact), "bad body", _NOTHING, passing=False).error(1)
        part.replace(path)
    except OSError as error:
        raise StorageError(f"{path}: a download can't be written there: {error.strerror}.") from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink()
    return response.headers


def _remove_leftovers(path: Path) -> None:
    """Remove what killed downloads to this name have left: a nightly one that is killed would fill the disk. What was
    written to within the last day may be under way."""
    ours = re.compile(re.escape(f".{path.name[:100]}.") + r"[0-9a-f]{12}\.part")
    with contextlib.suppress(OSError):
        for item in path.parent.iterdir():
            if ours.fullmatch(item.name):
                with contextlib.suppress(OSError):
                    if time.time() - item.lstat().st_mtime > _LEFTOVER_SECONDS:
                        item.unlink()


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
