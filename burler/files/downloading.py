"""A part of an export as a file on this machine, for as long as it is read."""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from burler.errors import DeclarationError, FileError
from burler.extras import require
from burler.files.listing import File
from burler.formats.compression import PIECE_BYTES
from burler.formats.names import COMPRESSIONS, HEAD_BYTES, format_of, format_of_media_type, kind_of
from burler.storage.location import shown


@dataclass(frozen=True, slots=True)
class Part:
    """One file of an export.

    Attributes:
        url: where it is: a URL, or a path on the client's server.
        name: its name, where the URL does not say what the file holds: ``"orders.csv.gz"``.
        size_bytes, sha256, md5: what the file must be, as its maker says; None: nobody says. Checksums as hex digits.
    """

    url: str
    name: str | None = None
    size_bytes: int | None = None
    sha256: str | None = None
    md5: str | None = None

    @property
    def label(self) -> str:
        """The name, or the end of the URL."""
        return self.name or unquote(urlsplit(self.url).path.rpartition("/")[2]) or "export"


def parts_of(found: Any) -> list[Part]:
    """What a ``ready`` function gave, as parts: a URL, a Part, or a list of these.

    Raises:
        DeclarationError: something else.
    """
    several = found if isinstance(found, list | tuple) else [found]
    parts = [Part(one) if isinstance(one, str) and one else one for one in several]
    wrong = [type(one).__name__ for one in parts if not isinstance(one, Part)]
    if wrong:
        raise DeclarationError(
            "burler.files.export: ready(job) gives None, a URL, a burler.files.Part or a list of these, "
            f"not {wrong[0]}."
        )
    return parts


@contextlib.contextmanager
def downloaded(
    part: Part, download: Any, *, folder: str | Path | None, max_bytes: int | None
) -> Iterator[tuple[File, str | None, str | None]]:
    """A part as a file: ``(file, what it holds, how it is packed)``; both None where nobody says. The file is gone
    afterwards, whatever happens.

    Args:
        download: a ``burler.http.Client``, or a function ``(part, path)`` that writes the file and may give headers.
        folder: for the file; None: the system's for temporary files.

    Raises:
        FileError: it is not as its maker says, or bigger than ``max_bytes``. And whatever the download raises.
    """
    with tempfile.TemporaryDirectory(prefix="burler-export-", dir=folder) as place:
        path = Path(place, "part")
        headers = _fetch(part, download, path, max_bytes)
        if not path.is_file():
            raise FileError(f"export '{shown(part.label)}': download(part, path) wrote no file.")
        _check(part, path, max_bytes)
        packing = _packing(path)
        kind = None if format_of(part.label) else format_of_media_type(headers.get("content-type", ""))
        yield _file(path, part), kind, packing


def _fetch(part: Part, download: Any, path: Path, max_bytes: int | None) -> Mapping[str, str]:
    fetch: Callable[..., Any] | None = getattr(download, "download", None)
    headers = download(part, path) if fetch is None else fetch(part.url, path, max_bytes=max_bytes)
    if not isinstance(headers, Mapping):
        return {}
    return {str(name).lower(): str(value) for name, value in headers.items()}


def _check(part: Part, path: Path, max_bytes: int | None) -> None:
    size, name = path.stat().st_size, shown(part.label)
    if max_bytes is not None and size > max_bytes:
        raise FileError(f"export '{name}' has {size:,} bytes; max_download_bytes is {max_bytes:,}.")
    if part.size_bytes is not None and size != part.size_bytes:
        raise FileError(f"export '{name}' came with {size:,} bytes, and should have {part.size_bytes:,}.")
    for kind, wanted in (("sha256", part.sha256), ("md5", part.md5)):
        if wanted is not None:
            found = _checksum(path, kind)
            if found != wanted.strip().lower():
                raise FileError(f"export '{name}' came damaged: its {kind} is {found}, and should be {wanted}.")


def _checksum(path: Path, kind: str) -> str:
    made = hashlib.new(kind, usedforsecurity=False)
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            made.update(piece)
    return made.hexdigest()


def _packing(path: Path) -> str | None:
    """How a file is packed, by its first bytes: on the way, a client may have unpacked what its name calls packed."""
    with path.open("rb") as file:
        found = kind_of(file.read(HEAD_BYTES))
    return found if found in COMPRESSIONS.values() else None


def _file(path: Path, part: Part) -> File:
    store = require("fsspec", extra="files", needed_for="burler.files.export").filesystem("file")
    stat = path.stat()
    return File(str(path), part.label, stat.st_size, None, store=store, title=part.label)
