"""Batch files by the URLs of a manifest: this machine's, web servers' (also pre-signed), and every store's that fsspec
reaches (BATCH proposal).

Whatever goes wrong is one ``BatchError`` that names the file, without the query of its URL, which may be a signature. A
connection that breaks off is an error: no file is ever taken to end where it was only cut.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, cast

from burler.batch.allowed import Allowed, Refused
from burler.batch.message import AGAIN
from burler.config.secrets import hide
from burler.errors import BatchError, BurlerError, ConfigError
from burler.localfile import Cures
from burler.storage import location
from burler.storage.faults import is_about_options, open_filesystem, said
from burler.storage.location import Words, hide_options, local_path

_READING = Words(
    "a batch file's URL", "the storage options", "reading batch files", Cures(refused=""), wrong=ConfigError
)
_PIECE_BYTES = 1 << 20
_BLOCK_BYTES = 4 << 20
"""Asked of a store at once; about twice as much is held."""


def shown(url: str) -> str:
    """A URL as people may see it: without what stands behind ``?`` in those of other machines, without passwords."""
    return location.shown(url.partition("?")[0] if "://" in url and not url.lower().startswith("file:") else url)


def open_url(
    url: str, options: Mapping[str, Any] | None = None, *, stream: str = "", allowed: Allowed | None = None
) -> BinaryIO:
    """A file for reading its bytes as they are stored, from the beginning. Close it after use.

    Files of this machine and of stores can be read from any place (``seek``), those of web servers once, in order.

    Args:
        url: ``file:``, ``http:``, ``https:``, any that fsspec knows, or an absolute path. The path of a ``file:`` URL
            is taken as it is written, and percent-decoded where there is no such file: readers and writers disagree.
        options: for the store's library: keys, endpoints. Of web servers ``headers`` alone, and these for one origin
            (see ``Allowed.is_home``).
        stream: for errors.
        allowed: what may be read; None: what ``Allowed.of(None)`` says.

    Raises:
        BatchError: it is not there, may not be read, or the store does not answer; so does reading later on, also when
        fewer bytes come than the file has. MissingExtra: the store's package is not installed.
    """
    failure, allowed = _Failure(url, stream), Allowed.of(allowed)
    scheme = _scheme(url)
    if scheme in ("", "file"):
        return _open_local(url, allowed, failure)
    hide_options(options or {})
    if scheme in ("http", "https"):
        from burler.batch.urls_web import WebFile

        hide(url.partition("?")[2])
        with failure.of("read"):
            return _buffered(WebFile(url, _headers(options), allowed, failure.text))
    return _open_store(url, dict(options or {}), allowed, failure)


def size_of_url(
    url: str, options: Mapping[str, Any] | None = None, *, stream: str = "", allowed: Allowed | None = None
) -> int | None:
    """How many bytes a file has as it is stored, without reading it; None where nobody says.

    Raises:
        BatchError: as ``open_url``.
    """
    failure, allowed = _Failure(url, stream), Allowed.of(allowed)
    scheme = _scheme(url)
    if scheme in ("", "file"):
        with failure.of("read"):
            return _regular(_local(url, allowed, failure), failure).st_size
    hide_options(options or {})
    if scheme in ("http", "https"):
        from burler.batch.urls_web import size_of

        hide(url.partition("?")[2])
        with failure.of("read"):
            return size_of(url, _headers(options), allowed, failure.text)
    store, path = _store(url, dict(options or {}), allowed, failure)
    return _store_size(store, path, failure)


class _Failure:
    """Makes errors about one file."""

    def __init__(self, url: str, stream: str) -> None:
        self._start = f"stream '{stream}': " if stream else ""
        self._name = shown(url)

    def text(self, fact: str, cure: str = "") -> BatchError:
        """An error that states a fact, and the cure."""
        return BatchError(f"{self._start}batch file '{self._name}' {fact}." + (f"\n  {cure}" if cure else ""))

    @contextmanager
    def of(self, doing: str) -> Iterator[None]:
        """Whatever goes wrong becomes such an error."""
        try:
            yield
        except BurlerError:
            raise
        except Refused as refused:
            raise self.text(f"is not read: {refused}", refused.cure) from None
        except FileNotFoundError as error:
            self._missing(error, doing)
        except Exception as error:  # stores have errors of their own
            raise self.text(f"can't be {doing}: {said(error)}", _cure(error)) from None

    def _missing(self, error: FileNotFoundError, doing: str) -> NoReturn:
        from burler.storage.faults import is_gone

        if not is_gone(error):
            raise self.text(f"can't be {doing}: {said(error)}") from None
        raise self.text(
            "is not there",
            f"Is it the path as this machine sees it, and was the file not cleaned away? {AGAIN}",
        ) from None


def _cure(error: Exception) -> str:
    name = " ".join(kind.__name__ for kind in type(error).__mro__)
    if isinstance(error, PermissionError) or "Credential" in name:
        return "Check the rights of who reads it; credentials come from the storage options, or the environment."
    if is_about_options(error):
        return "Are the URL and the storage options right?"
    return ""


def _scheme(url: str) -> str:
    head, mark, _ = url.partition(":")
    return head.lower() if mark and len(head) > 1 and head.replace("+", "").replace("-", "").isalnum() else ""


def _headers(options: Mapping[str, Any] | None) -> dict[str, str]:
    return {str(name): str(value) for name, value in ((options or {}).get("headers") or {}).items()}


def _buffered(raw: io.RawIOBase) -> BinaryIO:
    return cast(BinaryIO, io.BufferedReader(raw, _PIECE_BYTES))


# ---- this machine ------------------------------------------------------------------------------------------


def _local(url: str, allowed: Allowed, failure: _Failure) -> Path:
    path = local_path(url) or Path(url)
    if not path.is_absolute():
        raise failure.text("is no absolute path", "A manifest has whole URLs, such as file:///data/x.jsonl.")
    return allowed.path(path)


def _regular(path: Path, failure: _Failure) -> os.stat_result:
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):  # a pipe would be waited for
        raise failure.text("is no file, but a folder, pipe or device")
    return found


def _open_local(url: str, allowed: Allowed, failure: _Failure) -> BinaryIO:
    with failure.of("read"):
        path = _local(url, allowed, failure)
        size_bytes = _regular(path, failure).st_size
        return _buffered(_Stored(open(path, "rb", buffering=0), size_bytes, failure))


# ---- stores ------------------------------------------------------------------------------------------------


def _store(url: str, options: dict[str, Any], allowed: Allowed, failure: _Failure) -> tuple[Any, str]:
    with failure.of("opened"):
        allowed.store(url, options)
        store, path = open_filesystem(url, options, _READING)
        allowed.opened_store(store)
        return store, path


def _store_size(store: Any, path: str, failure: _Failure) -> int | None:
    with failure.of("read"):
        store.invalidate_cache(store._parent(path))
        info = store.info(path)
        if info.get("type") == "directory":
            raise failure.text("is no file, but a folder")
        size = info.get("size")
        return size if isinstance(size, int) else None


def _open_store(url: str, options: dict[str, Any], allowed: Allowed, failure: _Failure) -> BinaryIO:
    store, path = _store(url, options, allowed, failure)
    size_bytes = _store_size(store, path, failure)
    with failure.of("read"):
        file = store.open(path, "rb", block_size=_BLOCK_BYTES)
    return _buffered(_Stored(file, size_bytes, failure))


class _Stored(io.RawIOBase):
    """A file that can be read from any place. Fewer bytes than it is known to have are an error."""

    def __init__(self, file: Any, size_bytes: int | None, failure: _Failure) -> None:
        super().__init__()
        self._file, self._size, self._failure = file, size_bytes, failure

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """Whether the file says so."""
        return bool(self._file.seekable())

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        with self._failure.of("read"):
            return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        """The place."""
        return int(self._file.tell())

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer as far as there are bytes."""
        with self._failure.of("read"):
            piece = self._file.read(len(buffer))
        if not piece and len(buffer) and self._size is not None and self.tell() < self._size:
            raise self._failure.text(
                f"ends after {self.tell():,} of {self._size:,} bytes", "Was it changed while it was read?"
            )
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._file.close()
        super().close()
