"""Batch files by the URLs of a manifest (BATCH proposal); see ``storage.reading``.

Whatever goes wrong is one ``BatchError`` that names the file, without the query of its URL, which may be a signature.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, BinaryIO

from burler.batch.allowed import Allowed
from burler.batch.message import AGAIN
from burler.errors import BatchError, BurlerError, ConfigError
from burler.localfile import Cures
from burler.storage import location
from burler.storage.location import Words
from burler.storage.reading import open_file, size_of_file, unread
from burler.storage.web import ReadFault

_READING = Words(
    "a batch file's URL", "the storage options", "reading batch files", Cures(refused=""), wrong=ConfigError
)


def shown(url: str) -> str:
    """A URL as people may see it: without what stands behind ``?`` in those of other machines, without passwords."""
    return location.shown(url.partition("?")[0] if "://" in url and not url.lower().startswith("file:") else url)


def open_url(url: str, options: Mapping[str, Any] | None, allowed: Allowed) -> BinaryIO:
    """A file for reading its bytes as they are stored, from the beginning. Close it after use.

    Files of this machine and of stores can be read from any place (``seek``), those of web servers once, in order.

    Args:
        url: ``file:``, ``http:``, ``https:``, any that fsspec knows, or an absolute path. The path of a ``file:`` URL
            is taken as it is written, and percent-decoded where there is no such file: readers and writers disagree.
        options: for the store's library: keys, endpoints. Of web servers ``headers`` alone, and these for one origin
            (see ``Allowed.is_home``).
        allowed: what may be read.

    Raises:
        BatchError: it is not there, may not be read, or the store does not answer; so does reading later on, also when
        fewer bytes come than the file has. MissingExtra: the store's package is not installed.
    """
    return open_file(url, options or {}, allowed, _READING, partial(_named, shown(url)))


def size_of_url(url: str, options: Mapping[str, Any] | None, allowed: Allowed) -> int | None:
    """How many bytes a file has as it is stored, without reading it; None where nobody says.

    Raises:
        BatchError: as ``open_url``.
    """
    with _named(shown(url)):
        return size_of_file(url, options or {}, allowed, _READING)


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Whatever goes wrong becomes an error that names the file, and says the cure."""
    try:
        yield
    except BurlerError:
        raise
    except Exception as error:
        fact, cure = unread(error, "the storage options")
        if fact == "is not there":
            cure = f"Is it the path as this machine sees it, and was the file not cleaned away? {AGAIN}"
        elif isinstance(error, ReadFault):
            cure = cure or _cure_of_status(error)
        raise BatchError(f"batch file '{name}' {fact}." + (f"\n  {cure}" if cure else "")) from None


def _cure_of_status(fault: ReadFault) -> str:
    if fault.status in (404, 410):
        return f"Is the URL right, and was the file not cleaned away? {AGAIN}"
    if fault.status in (401, 403) and fault.is_stranger:
        return "The headers of the storage options go to the first server of --allow alone, and this is another one."
    if fault.status in (400, 401, 403):
        return f"A signed URL holds for a time only: sign for longer (batch_config.presign_seconds). {AGAIN}"
    return ""
